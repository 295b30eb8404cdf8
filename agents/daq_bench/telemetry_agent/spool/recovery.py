"""Counts the points that an earlier agent left in `points.lp`, and measures its torn end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daq_bench.telemetry_agent.spool.tally import Thinned, measurement_of
from daq_bench.telemetry_agent.spool.thinning import parse_comment


@dataclass
class Recovery:
    """`offset_points`: points before the delivery's saved offset; None when that is no line's end."""

    size_bytes: int = 0
    torn_bytes: int = 0
    spooled: Counter[str] = field(default_factory=Counter)
    thinned: list[Thinned] = field(default_factory=list)
    offset_points: int | None = None
    last_time_ns: int = 0  # the latest stamp of the agent's own
    workload_points: int = 0
    workload_time_ns: int | None = None  # the latest of the workload's

    @property
    def points(self) -> int:
        """Whole points in the file."""
        return sum(self.spooled.values())


def recover(path: Path, workload_measurements: Sequence[str] = (), offset: int = 0) -> Recovery:
    """Read a spool from its start to its last whole line."""
    found = Recovery()
    points = 0
    with path.open("rb") as stream:
        for line in stream:
            if found.size_bytes == offset:
                found.offset_points = points
            if not line.endswith(b"\n"):
                found.torn_bytes = len(line)
                break
            found.size_bytes += len(line)
            if line.startswith(b"#"):
                thinned = parse_comment(line)
                if thinned is not None:
                    found.thinned.append(thinned)
                continue
            points += 1
            name = measurement_of(line)
            found.spooled[name] += 1
            _note_time(found, line, name in workload_measurements)
    if found.size_bytes == offset:
        found.offset_points = points
    return found


def _note_time(found: Recovery, line: bytes, from_workload: bool) -> None:
    try:
        time_ns = int(line[line.rfind(b" ") + 1 :])
    except ValueError:  # a spool that was made by hand: InfluxDB will say what it thinks of the line
        return
    if not from_workload:
        found.last_time_ns = max(found.last_time_ns, time_ns)
        return
    found.workload_points += 1
    if found.workload_time_ns is None or time_ns > found.workload_time_ns:
        found.workload_time_ns = time_ns
