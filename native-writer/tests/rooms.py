"""Checks that the rooms of `src/` include one another as the README's table says.

Exit 1 names each include that the table does not allow, each room without a line and each line without a room."""

import re
import sys
from pathlib import Path

NATIVE_WRITER = Path(__file__).resolve().parent.parent
LINE = re.compile(r"^\| `(\w+)` \|.*\| ([\w, ]*)\|$", re.MULTILINE)
INCLUDE = re.compile(r'^#include "(\w+)/(\w+\.h)"', re.MULTILINE)


def allowed_of(readme: str) -> dict[str, set[str]]:
    """Each room of the table under "Rooms" with what it may include, in the table's order."""
    table = readme.split("\n## Rooms\n")[1].split("\n## ")[0]
    return {room: set(filter(None, (name.strip() for name in names.split(",")))) for room, names in LINE.findall(table)}


def faults(source: Path, allowed: dict[str, set[str]]) -> list[str]:
    rooms, order = {path.name for path in source.iterdir()}, list(allowed)
    found = [f"README.md: a line for {room}, which is no folder of src" for room in order if room not in rooms]
    found += [f"src/{room}: has no line in the README's table of rooms" for room in sorted(rooms - set(order))]
    for room, names in allowed.items():
        found += [
            f"README.md: {room} may not include {name}, which stands below it"
            for name in sorted(names)
            if name not in order[: order.index(room)]
        ]
    for path in sorted([*source.glob("*/*.h"), *source.glob("*/*.cpp")]):
        room = path.parent.name
        for name, header in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if name != room and name not in allowed.get(room, set()):
                found.append(
                    f"src/{room}/{path.name}: includes {name}/{header}, which the README's table does not allow"
                )
    return found


if __name__ == "__main__":
    found = faults(NATIVE_WRITER / "src", allowed_of((NATIVE_WRITER / "README.md").read_text(encoding="utf-8")))
    print("\n".join(found), file=sys.stderr)
    sys.exit(1 if found else 0)
