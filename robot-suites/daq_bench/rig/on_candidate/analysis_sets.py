"""Sets of ROOT files of the analysis reader: `remove FOLDER` takes the set's own files and the folder away. Prints {result} or {error}.

Works without uproot, so that a set is removed also where the reader cannot run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PATTERNS = ("events-*.root", "set.json")


def remove(folder: Path) -> int:
    """Removes the set and returns how many files that were; none there is fine. A foreign file stays, and is an error."""
    count = 0
    for pattern in PATTERNS:
        for file in folder.glob(pattern):
            file.unlink()
            count += 1
    if folder.exists():
        folder.rmdir()
    return count


def main(arguments: list[str]) -> dict[str, Any]:
    try:
        return {"result": remove(Path(arguments[1]))}
    except OSError as failure:
        return {"error": f"{failure.filename or arguments[1]}: {failure.strerror}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
