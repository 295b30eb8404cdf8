"""The live display of a run: phase, rate, backlog and time left. It only reads the bundle's growing files.

On a terminal it redraws in place; elsewhere (a log, CI) it prints a line per phase and one every ten seconds."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from daq_bench.bench_model.bundle.files import TAIL_BYTES, last_lines
from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.bench_model.bundle.telemetry_files import OWN, POINTS_FILE
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.event_lines import event_of
from daq_bench.rig.base.terminal import printable, say
from daq_bench.rig.workloads.registry import WORKLOADS

REFRESH_S = 0.25
LOG_EVERY_S = 10.0
GLANCE_BYTES = 1 << 20  # 20 s of telemetry of a server with many drives
# A line of the log under way; the output that takes its place has no such prefix.
# Ansible's own task at the head of each role ends with the role's description, in words enough for a line of this file.
TASK = re.compile(
    r"^\S+ \S+ p=\d+ .*\| TASK \[(?P<role>[^:]+: )?(?:Validating arguments against arg spec '[^']*'(?: - )?)?(?P<what>.*)\] \*"
)
STALE_NS = 1.5e9  # a record that is older belongs to an earlier phase
REMOTE_STALE_NS = 5e9  # the agent's period, the mirror and the clocks' difference come on top
CLOCKS_NS = 2e9  # a candidate's clock may be behind ours


@dataclass
class Phase:
    """One part of the run that was planned beforehand; times in s."""

    name: str
    expected_s: float
    started: float | None = None
    ended: float | None = None


@dataclass
class Snapshot:
    """The values that the display shows. Rates in B/s, amounts in B; None: unknown at this moment.

    `place`: the step's number and how many there are; `measured_ns`: when the rates and amounts were measured, ns since 1970 UTC."""

    phase: str
    step: str
    elapsed_s: float
    left_s: float
    rates: dict[str, float] = field(default_factory=dict)
    backlog_bytes: int | None = None
    busy: int | None = None
    lost: int | None = None
    buffer_bytes: int | None = None
    place: tuple[int, int] | None = None
    measured_ns: int | None = None

    def line(self) -> str:
        parts = [f"{self.phase}: {self.step}" if self.step else self.phase]
        parts += [f"{name} {rate / 1e9:.3f} GB/s" for name, rate in self.rates.items()]
        if self.backlog_bytes is not None:
            parts.append(f"backlog {self.backlog_bytes / 1e6:.1f} MB")
        if self.busy:
            parts.append(f"BUSY {self.busy} times")
        if self.lost:
            parts.append(f"{self.lost} superchunks LOST")
        parts.append(f"{clock(self.elapsed_s)} elapsed, about {clock(self.left_s)} left")
        return " | ".join(parts)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Plan:
    """The run's phases in order, each with the time it should take; later ones are known only by their estimate."""

    def __init__(self, phases: list[tuple[str, float]], now: Callable[[], float] = time.monotonic) -> None:
        self._phases = [Phase(name, expected) for name, expected in phases]
        self._now = now
        self._started = now()

    def begin(self, name: str) -> None:
        """`name` runs now; whatever ran before has ended. Raises KeyError for a phase that was not planned."""
        now = self._now()
        index = [phase.name for phase in self._phases].index(name)
        for position, phase in enumerate(self._phases):
            if phase.started is not None and phase.ended is None and position != index:
                phase.ended = now
        if self._phases[index].started is None:
            self._phases[index].started = now

    def expect(self, name: str) -> None:
        """Adds a phase that nobody could plan, such as a load that a suite has just asked for."""
        if name not in self.names():
            self._phases.append(Phase(name, 0.0))

    def current(self) -> str:
        running = [phase.name for phase in self._phases if phase.started is not None and phase.ended is None]
        return running[-1] if running else "starting"

    def place(self) -> tuple[int, int]:
        """The running phase's number, 0 before the first, and how many there are."""
        names = [phase.name for phase in self._phases]
        return (names.index(self.current()) + 1 if self.current() in names else 0, len(names))

    def names(self) -> set[str]:
        return {phase.name for phase in self._phases}

    def elapsed_s(self) -> float:
        return self._now() - self._started

    def left_s(self) -> float:
        """Returns the time that the running phase still needs by its estimate, plus the whole of those that follow."""
        now, left = self._now(), 0.0
        for phase in self._phases:
            if phase.started is None:
                left += phase.expected_s
            elif phase.ended is None:
                left += max(0.0, phase.expected_s - (now - phase.started))
        return left


class Observer:
    """Reads the tails of a bundle's files into snapshots."""

    def __init__(self, bundle: Bundle, plan: Plan, live: bool = True, glance: bool = False) -> None:
        """`live`: the tools write into the bundle itself. Otherwise their records come with the agent's, seconds later. `glance`: somebody
        looks now and then, and sees the last values of the running step, however old they are."""
        self._bundle, self._plan = bundle, plan
        self._points = bundle.path / OWN / POINTS_FILE
        self._records = bundle.workload_file if live else self._points
        self._stale_ns = STALE_NS if live else REMOTE_STALE_NS
        self._glance, self._step_ns = glance, 0.0

    @property
    def _device(self) -> str | None:
        device = self._bundle.run.target.device
        return device.name if device else None

    def snapshot(self) -> Snapshot:
        step, place = self._step()
        shown = Snapshot(self._plan.current(), step, self._plan.elapsed_s(), self._plan.left_s(), place=place)
        if shown.phase in WORKLOADS:
            with suppress(
                ValueError, OverflowError
            ):  # an invalid record shows nothing; the run's own readers refuse it
                self._add_record(shown)
            if not shown.rates:
                with suppress(ValueError, OverflowError):
                    self._add_device(shown)
        return shown

    def _step(self) -> tuple[str, tuple[int, int] | None]:
        for event in map(event_of, reversed(last_lines(self._bundle.events_file))):
            if event and event.kind == "phase":
                if event.source in WORKLOADS:
                    self._plan.expect(event.source)
                if event.source in self._plan.names():
                    self._plan.begin(event.source)
                self._step_ns = event.time.timestamp() * 1e9
                step, steps = event.data.get("step"), event.data.get("steps")
                place = (step, steps) if isinstance(step, int) and isinstance(steps, int) and steps > 1 else None
                position = f" ({step}/{steps})" if place else ""
                return f"{event.text}{position}{self._task()}", place
        return "", None

    def _task(self) -> str:
        """The task that Ansible is at, by the log that it writes while it runs."""
        for log in self._bundle.path.glob("facts/ansible-*.log"):
            for line in reversed(last_lines(log)):
                if task := TASK.search(line):
                    return f", {task['role'] or ''}{task['what'] or 'checking its arguments'}"
        return ""

    def _add_record(self, shown: Snapshot) -> None:
        points = [parse_line(line) for line in self._tail(self._records) if line.startswith("daqwriter,")]
        if len(points) < 2 or not self._counts(points[-1].time_ns):
            return
        first = next(point for point in points if points[-1].time_ns - point.time_ns <= 1e9)
        last = points[-1]
        for name, field_name in (("offered", "offered_bytes"), ("stored", "stored_bytes"), ("read back", "read_bytes")):
            rate = _rate(first, last, field_name)
            if rate is not None:
                shown.rates[name] = rate
        shown.measured_ns = last.time_ns
        if "buffer_bytes" in last.fields:
            shown.buffer_bytes = int(last.fields["buffer_bytes"])
        if "backlog_bytes" in last.fields:
            shown.backlog_bytes = int(last.fields["backlog_bytes"])
        if "busy_count" in last.fields:  # the storage application holds its source back instead
            shown.busy, shown.lost = int(last.fields["busy_count"]), int(last.fields["lost_superchunks"])

    def _add_device(self, shown: Snapshot) -> None:
        for line in reversed(self._tail(self._points)):
            if line.startswith("block_device,") and f"device={self._device}," in line:
                point = parse_line(line)
                fields, shown.measured_ns = point.fields, point.time_ns
                for name, key in (("writes", "written_bytes_per_s"), ("reads", "read_bytes_per_s")):
                    if fields.get(key):
                        shown.rates[f"{self._device} {name}"] = float(fields[key])
                return

    def _tail(self, path: Path) -> list[str]:
        """Records of a load stand alone in their file; the agent's stand among all its others."""
        return last_lines(path, GLANCE_BYTES if self._glance and path.name == POINTS_FILE else TAIL_BYTES)

    def _counts(self, time_ns: int) -> bool:
        """Says whether a record of that time is one of the running step."""
        return time_ns >= self._step_ns - CLOCKS_NS if self._glance else time.time_ns() - time_ns <= self._stale_ns


def _rate(first: Point, last: Point, name: str) -> float | None:
    seconds = (last.time_ns - first.time_ns) / 1e9
    if seconds <= 0 or name not in last.fields or name not in first.fields:
        return None
    rate = (float(last.fields[name]) - float(first.fields[name])) / seconds
    return rate if rate >= 0 else None  # a counter that fell is another program's


class ProgressDisplay:
    """Shows an observer's snapshots from a thread of its own while the run goes on; a context manager."""

    def __init__(self, observer: Observer, console: Console) -> None:
        self._observer, self._console = observer, console
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="progress", daemon=True)

    def __enter__(self) -> ProgressDisplay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        if self._console.is_terminal:
            with Live(self._table(), console=self._console, refresh_per_second=1 / REFRESH_S, transient=True) as live:
                while not self._stop.wait(REFRESH_S):
                    live.update(self._table())
            return
        shown, last = "", 0.0
        while not self._stop.wait(REFRESH_S):
            snapshot = self._observer.snapshot()
            if snapshot.phase != shown or time.monotonic() - last >= LOG_EVERY_S:
                say(self._console, snapshot.line())
                shown, last = snapshot.phase, time.monotonic()

    def _table(self) -> Table:
        snapshot = self._observer.snapshot()
        table = Table.grid(padding=(0, 2))
        table.add_row("phase", f"[bold]{snapshot.phase}[/bold]  {escape(printable(snapshot.step))}")
        table.add_row(
            "rate",
            "  ".join(f"{escape(printable(name))} {rate / 1e9:.3f} GB/s" for name, rate in snapshot.rates.items())
            or "-",
        )
        backlog = "-" if snapshot.backlog_bytes is None else f"{snapshot.backlog_bytes / 1e6:.1f} MB"
        trouble = f"  BUSY {snapshot.busy} times" if snapshot.busy else ""
        trouble += f"  [bold red]{snapshot.lost} superchunks LOST[/bold red]" if snapshot.lost else ""
        table.add_row("backlog", backlog + trouble)
        table.add_row("time", f"{clock(snapshot.elapsed_s)} elapsed, about {clock(snapshot.left_s)} left")
        return table


def announce(bundle: Bundle, name: str, text: str) -> None:
    """Begins a phase of the run that has one step."""
    bundle.event("phase", name, text, step=1, steps=1)


def announce_clean_up(bundle: Bundle, name: str, text: str) -> None:
    """Begins a phase of the clean-up. A bundle that takes no more, because its disk is full, keeps no candidate from being given back; that
    fault of the disk ends the run all the same."""
    with suppress(OSError):
        announce(bundle, name, text)
