"""Trees of /proc and /sys as text, in the form that Prometheus' ttar writes: unpacked, and read by the agent's collectors.

Promise: nothing outside of the folder is written, whatever paths and links a text holds."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from telemetry_agent.base.point import Encoder
from telemetry_agent.collectors import system_collectors
from telemetry_agent.reading.collector import Unsupported

# Those that answer from files alone, at one reading.
COLLECTORS = ("pressure", "temperature", "md_array", "numa", "edac", "pcie_link", "pcie_errors", "rapl")
BETWEEN = re.compile(r"^# ttar (?:- )+-\n", re.MULTILINE)
ENTRY = re.compile(r"(?:# Archive .*\n)?(?:Path|Directory): (?P<path>[^\n]+)\n(?P<rest>.*)", re.DOTALL)
FILE = re.compile(r"Lines: (?P<lines>\d+)\n(?P<content>.*)", re.DOTALL)
LINK = "SymlinkTo: "
NO_LINE_BREAK = "EOF"  # ends a text whose last line has none


def unpack(text: str, root: Path) -> None:
    """Raises ValueError for a text of another form, and for a path or link that leads out of `root`."""
    for part in BETWEEN.split(text):
        entry = ENTRY.fullmatch(part)
        if entry is None:
            raise ValueError(f"it is no archive of ttar: {part[:80]!r}")
        path = root / entry["path"].lstrip("/")
        if not _inside(path, root):
            raise ValueError(f"it has a path that leads out: {entry['path'][:80]!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        rest = entry["rest"]
        if rest.startswith(LINK):
            target = rest[len(LINK) :].splitlines()[0]
            if target.startswith("/") or not _inside(path.parent / target, root):
                raise ValueError(f"it has a link that leads out: {target[:80]!r}")
            path.symlink_to(target)
        elif (file := FILE.fullmatch(rest)) is not None:
            lines = file["content"].splitlines(keepends=True)[: int(file["lines"])]
            path.write_text(
                "".join(lines).replace("NULLBYTE", "\0").removesuffix(NO_LINE_BREAK + "\n"), encoding="utf-8"
            )


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def points_of(text: str) -> dict[str, Any]:
    """Returns what the collectors read of the tree: {"points": line protocol without times, "faults": ...}."""
    encoder = Encoder({})
    lines: list[str] = []
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        unpack(text, root)
        for collector in system_collectors(1.0, root):
            if collector.name not in COLLECTORS:
                continue
            try:
                reading = collector.read()
            except Unsupported:
                continue
            except OSError as error:
                faults.append(str(error).replace(f"{root}/", ""))
                continue
            faults += [fault.replace(f"{root}/", "") for fault in reading.faults]
            lines += [encoder.encode(point._replace(time_ns=0)).strip() for point in collector.parse(reading, None)]
    if not lines:
        raise ValueError("no collector reads anything of this tree")
    return {"points": sorted(lines), "faults": sorted(faults)}
