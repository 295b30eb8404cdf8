"""CPU time and written bytes of processes that are not the bench's, from /proc/PID/stat and /proc/PID/io.

Promise: names only (the kernel's, of 15 characters), never an argument; the OTHERS_MAX that took most CPU time since the
reading before, and all of them together. Not counted: kernel threads, which do the load's own work; the agent, its parent and
what that started; what lies in the agent's own folder; children of the bench's supervisor; and tools that measure (TOOLS),
whoever runs them, so that nobody makes a load of others with the bench's own tools. The time of children that ended counts
with their parent, once: a compiler that lives for a second is seen in `make`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, whole_number
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, rate_interval_s, reading_now

PERIOD_S_MIN = 2.0  # a thousand processes cost about 30 ms
OTHERS_MAX = 5
ALL = "(all others)"
TOOLS = frozenset(("daqwriter", "hotstore", "netprobe", "fio", "iperf3", "perf"))
SUPERVISOR = "supervise.py"
KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
CPUS, OWN = "cpus", "own"
UNREADABLE = "?"
STAT_FIELDS_MIN = 20
ARGUMENTS_LOOKED_AT = 3  # interpreter, option, script


class Process(NamedTuple):
    """One process as read. Ticks: its own, and those of its children that ended and were waited for. Bytes: None where the agent may not
    read them."""

    name: str
    parent: int
    started: int
    own_ticks: int
    waited_ticks: int
    written_bytes: int | None


def parse_stat(text: str) -> tuple[Process, bool]:
    """The process, and whether it is a kernel thread. Raises ValueError. `text`: /proc/PID/stat, then bytes written in a line of its own.

    The name stands in parentheses and may hold any character, also a parenthesis or a line's end."""
    head, _, written = text.rstrip("\n").rpartition("\n")
    before, _, rest = head.rpartition(")")
    columns = rest.split()
    name = before.partition("(")[2]
    if not before or len(columns) < STAT_FIELDS_MIN:
        raise ValueError(f"/proc/PID/stat: {excerpt(text)} is not the kernel's line")
    parent, flags, *ticks, started = (whole_number(columns[at], "/proc/PID/stat") for at in (1, 6, 11, 12, 13, 14, 19))
    shown = "".join(one if one.isprintable() and one not in '"\\' else "?" for one in name).strip() or "?"
    known = None if written == UNREADABLE else whole_number(written, "/proc/PID/io")
    of = Process(shown, parent, started, sum(ticks[:2]), sum(ticks[2:]), known)
    return of, bool(flags & KERNEL_THREAD)


def processes_of(texts: Mapping[str, str]) -> dict[int, Process]:
    """All but kernel threads, by number."""
    found = {}
    for number, text in texts.items():
        if number not in (CPUS, OWN):
            process, is_kernel = parse_stat(text)
            if not is_kernel:
                found[int(number)] = process
    return found


def others_of(found: Mapping[int, Process], own: AbstractSet[int]) -> dict[int, Process]:
    """Those that are not the bench's. `own`: the bench's own processes, whose children are the bench's too."""
    family = set(own)
    for number, process in found.items():
        line, at = [number], process.parent
        while at in found and at not in line and at not in own:
            line.append(at)
            at = found[at].parent
        if at in own or process.name in TOOLS:
            family.update(line if at in own else (number,))
    return {number: process for number, process in found.items() if number not in family}


class Spent(NamedTuple):
    """`written_bytes`: None where they are not known of one of the processes."""

    ticks: int = 0
    written_bytes: int | None = 0

    def plus(self, ticks: int, written_bytes: int | None) -> Spent:
        """The sum; what is not known of a part is not known of the whole."""
        known = self.written_bytes is not None and written_bytes is not None
        return Spent(self.ticks + ticks, (self.written_bytes or 0) + (written_bytes or 0) if known else None)


def spent_since(now: Mapping[int, Process], before: Mapping[int, Process]) -> dict[str, Spent]:
    """Returns what each name took between two readings. `before` has all processes: one whose parent ended is not new."""
    gone: dict[int, int] = {}  # ticks that were counted already while a child lived, by parent
    for number, process in before.items():
        if number not in now or now[number].started != process.started:
            gone[process.parent] = gone.get(process.parent, 0) + process.own_ticks + process.waited_ticks
    found: dict[str, Spent] = {}
    for number, process in now.items():
        earlier = before.get(number)
        if earlier is None or earlier.started != process.started:
            earlier = process._replace(own_ticks=0, waited_ticks=0, written_bytes=0)
        waited = max(0, process.waited_ticks - earlier.waited_ticks - gone.get(number, 0))
        ticks = max(0, process.own_ticks - earlier.own_ticks) + waited
        written = (
            None if process.written_bytes is None else max(0, process.written_bytes - (earlier.written_bytes or 0))
        )
        found[process.name] = found.get(process.name, Spent()).plus(ticks, written)
    return found


class Processes:
    """Collector of the measurement `process`."""

    name = "process"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._proc = root / "proc"
        self._folder = str(Path(sys.argv[0]).resolve().parent)

    def read(self) -> Reading:
        """Read two files of each process; one that ended meanwhile is left out."""
        texts = {}
        for entry in os.listdir(self._proc):
            if entry.isdigit():
                text = self._of(entry)
                if text:
                    texts[entry] = text
        if not texts:
            raise Unsupported(f"{self._proc}: no process can be read there")
        texts[OWN] = " ".join(str(number) for number in self._family(texts))
        texts[CPUS] = str(os.cpu_count() or 1)
        return reading_now(texts)

    def _of(self, number: str) -> str:
        try:
            stat = (self._proc / number / "stat").read_text(encoding="utf-8", errors="replace").rstrip("\n")
        except OSError:  # it ended
            return ""
        try:
            io = (self._proc / number / "io").read_text(encoding="ascii")
        except OSError:  # it ended, or is another user's and the agent has no right to it (CAP_SYS_PTRACE)
            io = ""
        written = next((line.split()[-1] for line in io.splitlines() if line.startswith("write_bytes:")), UNREADABLE)
        return f"{stat}\n{written}"

    def _family(self, texts: Iterable[str]) -> list[int]:
        """The agent and its parent, and all that the bench started by itself."""
        own = {os.getpid(), os.getppid()} - {1}
        for entry in texts:
            arguments = self._arguments(entry)
            scripts = [one.rpartition("/")[2] for one in arguments]
            if SUPERVISOR in scripts or any(one.startswith(self._folder + "/") for one in arguments):
                own.add(int(entry))
        return sorted(own)

    def _arguments(self, number: str) -> list[str]:
        try:
            text = (self._proc / number / "cmdline").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return text.split("\0")[:ARGUMENTS_LOOKED_AT]

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point for each of the names that took most, and one for all."""
        interval_s = rate_interval_s(reading, previous, self.period_s)
        if previous is None or interval_s is None:
            return []
        own = {int(one) for one in reading.texts[OWN].split()}
        found = spent_since(others_of(processes_of(reading.texts), own), processes_of(previous.texts))
        per_cpu = os.sysconf("SC_CLK_TCK") * interval_s * int(reading.texts[CPUS])
        every = Spent()
        for one in found.values():
            every = every.plus(*one)
        most = sorted(found.items(), key=lambda pair: (pair[1].ticks, pair[1].written_bytes or 0), reverse=True)
        shown = [(name, one) for name, one in most[:OTHERS_MAX] if one.ticks or one.written_bytes]
        points = []
        for name, one in [*shown, (ALL, every)]:
            fields: dict[str, FieldValue] = {"cpu_fraction": one.ticks / per_cpu}
            if one.written_bytes is not None:
                fields["written_bytes_per_s"] = one.written_bytes / interval_s
            points.append(Point("process", (("name", name),), fields, reading.time_ns))
        return points
