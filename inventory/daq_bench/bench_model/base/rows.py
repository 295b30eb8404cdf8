"""The rows of a campaign that may be stopped at any time: a line of JSON each. A line that was cut off is no row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def rows_in(file: Path) -> list[Any]:
    """The rows so far; none where there is no file. Raises ValueError for a whole line that is no JSON."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def add_rows(file: Path, rows: Iterable[Any]) -> None:
    """Adds rows behind the last whole one, in one write: the rest of a line that was cut off goes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as stream:
        if stream.tell() and os.pread(stream.fileno(), 1, stream.tell() - 1) != b"\n":
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)
        stream.write("".join(f"{json.dumps(row)}\n" for row in rows).encode())
