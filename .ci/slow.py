#!/usr/bin/env python3
"""`make slow`: writes .ci/slow.txt, the tests that use more than half a second of CPU, from the JUnit files of the last `make test`.

CPU time is of the test itself and of the processes that it waits for, without fixtures, which tests share. The first test of a process
also pays for what it imports, and a neighbour on the same core makes a CPU second longer by half or more. So `make test` names the tests
that the list lacks, and never fails for them: a bound that a busy machine can break would say nothing about the test."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / ".ci" / "slow.txt"
RESULTS = ROOT / "build" / "test-results"
CPU_S_MAX = 0.5
STAYS_ABOVE = 0.5  # of the bound: a test near it does not come and go
TITLE = "# Tests that use more than 0.5 s of CPU (`make slow` writes this list from a run of `make test`); `make check` leaves them out.\n"


def listed(text: str) -> frozenset[str]:
    return frozenset(filter(None, (line.partition("#")[0].strip() for line in text.splitlines())))


def nodeid(classname: str, name: str, root: Path = ROOT) -> str | None:
    """The test of a JUnit case without its parameters; None for one that is no file of ours (ctest's), or no test (a failed import)."""
    parts = classname.split(".") if classname else []
    for length in range(len(parts), 0, -1):
        file = Path(*parts[:length]).with_suffix(".py")
        if (root / file).is_file():
            return "::".join([file.as_posix(), *parts[length:], name.partition("[")[0]])
    return None


def measured(folder: Path, root: Path = ROOT) -> dict[str, float]:
    """CPU seconds of each test; one with parameters counts as its longest case."""
    found: dict[str, float] = {}
    for file in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            used_s = [float(one.get("value", "")) for one in case.iter("property") if one.get("name") == "cpu_s"]
            test = nodeid(case.get("classname", ""), case.get("name", ""), root)
            if used_s and test:
                found[test] = max(used_s[0], found.get(test, 0.0))
    return found


def covers(names: frozenset[str], test: str) -> bool:
    return test in names or test.partition("::")[0] in names


def missing(names: frozenset[str], cpu_s: dict[str, float]) -> list[str]:
    """Tests above the bound that the list does not name, the most expensive first."""
    return sorted((t for t, s in cpu_s.items() if s > CPU_S_MAX and not covers(names, t)), key=lambda t: -cpu_s[t])


def renewed(names: frozenset[str], cpu_s: dict[str, float], root: Path = ROOT) -> list[str]:
    """The list after a run: what was measured counts; what was not stays while its file is there."""
    stays = {name for name in names if cpu_s.get(name, CPU_S_MAX) > CPU_S_MAX * STAYS_ABOVE}
    return sorted(name for name in stays | {*missing(names, cpu_s)} if (root / name.partition("::")[0]).is_file())


def main() -> int:
    cpu_s = measured(RESULTS)
    if not cpu_s:
        print(f"slow: no test with its CPU time below {RESULTS}. Run `make test` first", file=sys.stderr)
        return 2
    before = listed(LIST.read_text(encoding="utf-8"))
    after = renewed(before, cpu_s)
    LIST.write_text(TITLE + "".join(f"{name}\n" for name in after), encoding="utf-8")
    print(f"{LIST.relative_to(ROOT)}: {len(after)} names, {len(set(after) - before)} of them new")
    return 0


if __name__ == "__main__":
    sys.exit(main())
