"""CPU time from /proc/stat, in total at every sample and per core once a second (tag `core`).

Promise: fractions of the time between two readings, 0 to 1, which sum to 1 with idle. The kernel's ticks are
their own clock here. `user` includes nice (and guests, which the kernel already counts as user).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, whole_numbers
from daq_bench.telemetry_agent.reading.collector import FAST, Every, HeldFile, Reading, rate_interval_s, reading_now

Ticks = tuple[int, ...]  # user nice system idle iowait irq softirq steal
CORES_PERIOD_S = 1.0
STAT, STAT_BEFORE = "stat", "cores_since"


@lru_cache(maxsize=3)  # this reading, the one before, and that of a second ago
def cpu_lines(text: str) -> dict[str, list[str]]:
    """The columns by core ("total", "0", "1", ...). Raises ValueError on anything else than the kernel's table."""
    table = {}
    head, _, rest = text.partition("\nintr")  # the intr line alone is tens of kB on a large server
    for line in (head + "\n" if rest else text).splitlines():
        columns = line.split()
        if not columns or not columns[0].startswith("cpu"):
            continue
        if len(columns) < 9:
            raise ValueError(f"/proc/stat: {len(columns)} columns in {excerpt(line)}, at least 9 are expected")
        table[columns[0][3:] or "total"] = columns[1:9]
    if "total" not in table or not rest:
        raise ValueError(f"/proc/stat: no line for all CPUs, or none for interrupts, in {excerpt(text)}")
    return table


def ticks_of(columns: list[str]) -> Ticks:
    """Ticks of one core."""
    return tuple(whole_numbers(columns, "/proc/stat"))


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
        self._cores = Every(max(CORES_PERIOD_S, period_s))
        self._cores_since = ""

    def read(self) -> Reading:
        """Read /proc/stat. Once a second the text of a second ago comes with it: the cores' shares are since then."""
        text = self._stat.text()
        reading = reading_now({STAT: text})
        if self._cores.due(reading.monotonic_s):
            if self._cores_since:
                reading = reading._replace(texts={STAT: text, STAT_BEFORE: self._cores_since})
            self._cores_since = text
        return reading

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point for all cores, and one for each where this reading has their ticks of a second ago."""
        now = cpu_lines(reading.texts[STAT])
        points: list[Point] = []
        if previous is not None and rate_interval_s(reading, previous, self.period_s) is not None:
            before = cpu_lines(previous.texts[STAT])
            points += _points(reading, ("total",), now, before)
        if STAT_BEFORE in reading.texts:
            earlier = cpu_lines(reading.texts[STAT_BEFORE])
            points += _points(reading, [core for core in now if core != "total"], now, earlier)
        return points


def _points(
    reading: Reading, cores: Iterable[str], now: dict[str, list[str]], before: dict[str, list[str]]
) -> Iterator[Point]:
    for core in cores:
        if core in before:
            fields = fractions(ticks_of(now[core]), ticks_of(before[core]))
            if fields is not None:
                yield Point("cpu", (("core", core),), fields, reading.time_ns)
