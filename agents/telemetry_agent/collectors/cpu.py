"""CPU time from /proc/stat, per core and in total (tag `core`).

Promise: fractions of the time between two readings, 0 to 1, which sum to 1 with idle. The kernel's ticks are
their own clock here. `user` includes nice (and guests, which the kernel already counts as user).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from telemetry_agent.collector import FAST, HeldFile, Reading, rate_interval_s, reading_now
from telemetry_agent.point import FieldValue, Point

Ticks = tuple[int, ...]  # user nice system idle iowait irq softirq steal


@lru_cache(maxsize=2)
def parse_stat(text: str) -> dict[str, Ticks]:
    """Ticks by core ("total", "0", "1", ...)."""
    table = {}
    for line in text.split("\nintr", 1)[0].splitlines():  # the intr line alone is tens of kB on a large server
        columns = line.split()
        if not columns or not columns[0].startswith("cpu"):
            continue
        if len(columns) < 9:
            raise ValueError(f"/proc/stat: {len(columns)} columns in {line!r}, at least 9 are expected")
        table[columns[0][3:] or "total"] = tuple([int(column) for column in columns[1:9]])
    if "total" not in table:
        raise ValueError("/proc/stat: no line for all CPUs")
    return table


def fractions(now: Ticks, before: Ticks) -> dict[str, FieldValue] | None:
    """Shares of each state, or None when no tick passed."""
    # iowait may run backwards (documented in proc(5)): a negative difference counts as none.
    spent = [max(0, later - earlier) for later, earlier in zip(now, before)]
    total = sum(spent)
    if total == 0:
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = spent
    return {
        "busy_fraction": (total - idle - iowait) / total,
        "user_fraction": (user + nice) / total,
        "system_fraction": system / total,
        "iowait_fraction": iowait / total,
        "irq_fraction": irq / total,
        "softirq_fraction": softirq / total,
        "steal_fraction": steal / total,
        "idle_fraction": idle / total,
    }


class Cpu:
    """Collector of the measurement `cpu`."""

    name = "cpu"
    pace = FAST

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = period_s
        self._stat = HeldFile(root / "proc/stat", at_once=True)

    def read(self) -> Reading:
        """Read /proc/stat."""
        return reading_now({"stat": self._stat.text()})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per core that both readings know."""
        now = parse_stat(reading.texts["stat"])
        if previous is None or rate_interval_s(reading, previous, self.period_s) is None:
            return []
        before = parse_stat(previous.texts["stat"])
        points = []
        for core, ticks in now.items():
            if core in before:
                fields = fractions(ticks, before[core])
                if fields is not None:
                    points.append(Point("cpu", (("core", core),), fields, reading.time_ns))
        return points
