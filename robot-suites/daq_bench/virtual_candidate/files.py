"""Small state files: written whole or not at all, and changed by one process at a time."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.whole_files import replace_file


def write_json(path: Path, document: Any, mode: int = 0o644) -> None:
    replace_file(path, json.dumps(document, indent=2) + "\n", mode)


def read_json(path: Path, default: Any = None) -> Any:
    """The document in `path`; `default` when the file is not there."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file `path`; the kernel releases it when its holder dies."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def append_json_line(path: Path, document: dict[str, Any]) -> None:
    """Adds one line in one write, so that the lines of several processes do not mix."""
    stamped = {"time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), **document}
    with path.open("ab", buffering=0) as file:
        file.write((json.dumps(stamped) + "\n").encode())


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Every line of a log as a document; empty when nothing was logged yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
