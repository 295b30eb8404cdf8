"""Looks from outside at the runs that this control node drives: at their bundles, and at the words in the locks of their candidates.

Promise: it writes nothing, takes no lock, starts nothing and asks no candidate; each look reads a bounded part of what grows. It judges
nothing: a requirement's value so far is a number, and whether it meets its bound is the judge's to say."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.behaviour.drive_temperature import DRIVES_OWN, KERNELS, from_points
from daq_bench.bench_model.bundle.files import SPOOL_BYTES_MAX, last_lines, open_file, parse_json, read_bytes
from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.bench_model.bundle.provenance import MANIFEST, REPORTS_MANIFEST
from daq_bench.bench_model.bundle.telemetry_files import OWN, POINTS_FILE
from daq_bench.bench_model.documents.run import FINISHED, Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.measured import Measured, measure
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.verdict.decision import worst_fact
from daq_bench.bench_model.verdict.judging import Profiles, profiles_of
from daq_bench.bench_model.verdict.verdict import bounds
from daq_bench.rig.base.bundle import RUN, Bundle
from daq_bench.rig.base.event_lines import event_of
from daq_bench.rig.base.settings import Layout, load_profiles
from daq_bench.rig.candidate.lock import holder_since_s
from daq_bench.rig.run.planning import plan_run
from daq_bench.rig.run.progress import GLANCE_BYTES, Observer, Plan
from daq_bench.rig.run.qualify import DRIVES_A_RUN
from daq_bench.rig.run.record import request_of
from daq_bench.rig.telemetry.agent import PERIOD_S

RUNS_MAX = 500  # the newest by name, which begins with the time
EVENTS_BYTES_MAX = 4 << 20  # of one look
RESULT_BYTES_MAX = 16 << 20
PHASES_MAX = 64
DRIVES_OWN_PERIOD_S = 10.0  # the least between two questions to a drive (agents: SLOW_PERIOD_S)
CLOCK_S = 2.0  # by which a process's begin is known
CLOCKS_APART_S = 60.0  # a candidate's clock and ours
GOING_ON, DEAD, UNREADABLE = "going on", "dead", "unreadable"


@dataclass(frozen=True)
class Hottest:
    """The drive that is nearest to its own warning limit, or the warmest where none states one. degrees C; `period_s`: of its readings."""

    device: str
    degc: float
    warning_degc: float | None
    age_s: float
    period_s: float


@dataclass(frozen=True)
class SoFar:
    """One requirement: its value from the results that are there, in `unit`; None where there is none yet. `bound` is this run's."""

    id: str
    text: str
    severity: str
    measured: float | None
    comparison: str
    bound: float
    unit: str


@dataclass(frozen=True)
class Sight:
    """One run as a look finds it. Times and ages in s, rates in B/s, amounts in B; None: not known. `period_s`: of the telemetry.
    `phase_number` of `phases`, as foreseen; `step_number` of `steps` within it. `next_step`: what to do about a run that is dead;
    `faults`: what could not be read."""

    run: str
    state: str
    candidate: str = ""
    target: str = ""
    scenario: str = ""
    scale: float | None = None
    phase: str = ""
    phase_number: int | None = None
    phases: int | None = None
    step: str = ""
    step_number: int | None = None
    steps: int | None = None
    elapsed_s: float | None = None
    left_s: float | None = None
    foreseen_s: float | None = None
    last_event_age_s: float | None = None
    rates_bytes_per_s: dict[str, float] = field(default_factory=dict)
    rates_age_s: float | None = None
    demand_bytes_per_s: float | None = None
    backlog_bytes: int | None = None
    backlog_percent: float | None = None  # of the buffer
    buffer_bytes: int | None = None
    busy: int | None = None
    lost_superchunks: int | None = None
    hottest: Hottest | None = None
    telemetry_age_s: float | None = None
    period_s: float = PERIOD_S
    requirements: tuple[SoFar, ...] = ()
    next_step: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


class Onlooker:
    """Looks at the runs in one folder, again and again, and reads no ended run twice."""

    def __init__(self, runs: Path, layout: Layout) -> None:
        self._runs, self._layout = runs, layout
        self._ended: dict[str, str] = {}  # name -> candidate
        self._followed: dict[str, _Followed] = {}

    def look(self) -> list[Sight]:
        """The runs that are going on, or that a killed process left unfinished; only a candidate's newest run can be either. Raises OSError
        where the folder cannot be listed."""
        if not self._runs.exists():
            return []
        names = sorted(
            (one.name for one in self._runs.iterdir() if one.is_dir() and not one.is_symlink()), reverse=True
        )
        seen: set[str] = set()
        found = [sight for name in names[:RUNS_MAX] for sight in self._look_at(name, seen)]
        return found[::-1]

    def _look_at(self, name: str, seen: set[str]) -> Iterator[Sight]:
        if name in self._ended:
            seen.add(self._ended[name])
            return
        path = self._runs / name
        try:
            run = Bundle.open(path).run if (path / RUN).exists() else None
            if run is None:
                return
            since_s = holder_since_s(run.candidate.name, DRIVES_A_RUN)
            is_driven = since_s is not None and since_s <= run.started.timestamp() + CLOCK_S
            is_rendering = is_driven and run.state == FINISHED and not (path / REPORTS_MANIFEST).exists()
            if run.candidate.name in seen or ((path / MANIFEST).exists() and not is_rendering):
                self._ended[name] = run.candidate.name
                seen.add(run.candidate.name)
                return
            seen.add(run.candidate.name)
            followed = self._followed.get(name) or _Followed(Bundle(path, run), self._layout)
            self._followed[name] = followed
            yield followed.sight(Bundle(path, run), is_driven)
        except (BenchError, OSError) as error:
            yield Sight(name, UNREADABLE, faults=(in_words(error),))


class _Followed:
    """One run, with what was read of it already."""

    def __init__(self, bundle: Bundle, layout: Layout) -> None:
        self._bundle = bundle
        self._clock_s = self._last_event_s = bundle.run.started.timestamp()
        phases, self._foreseen_s = _foreseen(bundle, layout)
        self._plan, self._is_planned = Plan(phases, now=lambda: self._clock_s), bool(phases)
        self._offset = self._no_events = 0
        self._profiles: Profiles | None = None
        self._versions: dict[str, tuple[int, int]] = {}
        self._so_far: tuple[SoFar, ...] = ()
        self._torn: list[str] = []

    def sight(self, bundle: Bundle, is_driven: bool) -> Sight:
        self._bundle, run, now_s, faults = bundle, bundle.run, time.time(), list[str]()
        common = Sight(
            bundle.id, GOING_ON, run.candidate.name, run.target.name, run.scenario.id, run.scenario.scale, foreseen_s=self._foreseen_s
        )  # fmt: skip
        for read in (self._read_events, self._read_requirements):
            try:
                read()
            except FileNotFoundError:  # the run has not come to it yet
                continue
            except BenchError as error:
                faults.append(in_words(error))
        faults += self._torn
        if self._no_events:
            faults.append(f"{self._no_events} lines of events.jsonl are no events; they are left out")
        self._clock_s = now_s
        seen = Observer(bundle, self._plan, live=run.candidate.connection == "local", glance=True).snapshot()
        number, phases = self._plan.place() if self._is_planned else (None, None)
        step_number, steps = seen.place or (None, None)
        common = replace(
            common, phase=seen.phase, phase_number=number, phases=phases, step=seen.step, step_number=step_number, steps=steps,
            last_event_age_s=max(0.0, now_s - self._last_event_s), requirements=self._so_far, faults=tuple(faults),
        )  # fmt: skip
        if not is_driven:
            return replace(common, state=DEAD, next_step=_next_step(run, bundle.path))
        period_s, buffer = _period_s(run), seen.buffer_bytes or run.candidate.transient_buffer_bytes
        points = last_lines(bundle.path / OWN / POINTS_FILE, GLANCE_BYTES)
        return replace(
            common,
            elapsed_s=seen.elapsed_s,
            left_s=None if self._foreseen_s is None else seen.left_s,
            rates_bytes_per_s=seen.rates,
            rates_age_s=_age_s(seen.measured_ns, now_s),
            demand_bytes_per_s=run.demand.offered_bytes_per_s if run.demand else None,
            backlog_bytes=seen.backlog_bytes,
            backlog_percent=None if seen.backlog_bytes is None or not buffer else 100 * seen.backlog_bytes / buffer,
            buffer_bytes=buffer,
            busy=seen.busy,
            lost_superchunks=seen.lost,
            hottest=_hottest(points, run.target.names, period_s, now_s),
            telemetry_age_s=_age_s(_newest_ns(points, now_s), now_s),
            period_s=period_s,
        )

    def _read_events(self) -> None:
        """Follows the phases by the times of their events, so that a look that comes late knows how long each has taken."""
        with open_file(self._bundle.path, self._bundle.events_file.name, SPOOL_BYTES_MAX) as file:
            if file.seek(0, 2) < self._offset:  # it was cut
                self._offset = self._no_events = 0
            file.seek(self._offset)
            content = file.read(EVENTS_BYTES_MAX)
        whole = content[: content.rfind(b"\n") + 1] or (content if len(content) == EVENTS_BYTES_MAX else b"")
        self._offset += len(whole)
        for line in filter(None, whole.split(b"\n")):
            event = event_of(line)
            self._no_events += event is None
            if event:
                self._clock_s = self._last_event_s = event.time.timestamp()
                if event.kind == "phase" and (len(names := self._plan.names()) < PHASES_MAX or event.source in names):
                    self._plan.expect(event.source)
                    self._plan.begin(event.source)

    def _read_requirements(self) -> None:
        """Reads results when one of them has changed: they may be large."""
        run = self._bundle.run
        self._profiles = self._profiles or profiles_of(self._bundle.path, run.requirement.id)
        asked, metrics = self._profiles[0].requirements, self._profiles[1]
        files = sorted({metrics[one.metric].file for one in asked})
        versions = {file: found for file in files if (found := _version(self._bundle.path / file))}
        if versions == self._versions and self._so_far:
            return
        results: dict[str, Document] = {}
        self._versions, self._torn = versions, []
        for file in versions:
            try:
                document = parse_json(read_bytes(self._bundle.path, file, RESULT_BYTES_MAX), file)
                results |= {file: document} if isinstance(document, dict) else {}
            except (BenchError, OSError) as error:
                self._torn.append(in_words(error))
        self._so_far = tuple(_so_far(one, measure(one, metrics[one.metric], results), run) for one in asked)


def _version(file: Path) -> tuple[int, int] | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _so_far(asked: Requirement, measured: Measured, run: Run) -> SoFar:
    """The value of the worst stratum, as the judge takes it."""
    worst = worst_fact(asked, measured) if measured.values else None
    return SoFar(asked.id, asked.text, asked.severity, worst, asked.comparison, bounds(asked, run)[1], asked.unit)


def _foreseen(bundle: Bundle, layout: Layout) -> tuple[list[tuple[str, float]], float | None]:
    """The run's phases with their durations, as `daq-bench plan` foresees them, and their sum; nothing where no plan can be made again."""
    running = msgspec.structs.replace(bundle.run, state="running")
    try:
        asked = request_of(Bundle(bundle.path, running))
        plan = plan_run(load_profiles(asked, layout), layout, directory=asked.target_directory)
    except (BenchError, OSError):
        return [], None
    return plan.phases, plan.duration_s


def _next_step(run: Run, path: Path) -> tuple[str, ...]:
    restore = f"`daq-bench restore --candidate {run.candidate.name}` gives the machine back"
    if run.own_suite:
        return ("start your suite again", restore)
    if run.state == FINISHED:
        return (f"`daq-bench judge {path}` says what it measured", restore)
    return (f"`daq-bench resume {path}` starts it again", f"{restore} without a new run")


def _period_s(run: Run) -> float:
    asked = run.scenario.parameters.get("telemetry_period_s")
    return float(asked) if isinstance(asked, int | float) and asked > 0 else PERIOD_S


def _age_s(time_ns: int | None, now_s: float) -> float | None:
    return None if time_ns is None else max(0.0, now_s - time_ns / 1e9)


def _newest_ns(lines: list[str], now_s: float) -> int | None:
    """The last line may not be the newest: a span is written at its end, with the time of its begin. Times to come do not count."""
    stamps = (line.rpartition(" ")[2] for line in lines)
    times = (int(stamp) for stamp in stamps if stamp.isascii() and stamp.isdigit() and len(stamp) < 20)
    return max((one for one in times if one <= (now_s + CLOCKS_APART_S) * 1e9), default=None)


def _hottest(lines: list[str], drives: list[str], period_s: float, now_s: float) -> Hottest | None:
    """By the last reading of each sensor; limits are the drives' own (bench_model.behaviour.drive_temperature)."""
    last: dict[tuple[str, ...], Point] = {}
    for line in lines:
        if line.startswith((f"{KERNELS},", f"{DRIVES_OWN},")):
            try:
                point = parse_line(line)
            except (ValueError, OverflowError):
                continue
            last[point.measurement, *(f"{name}={text}" for name, text in sorted(point.tags.items()))] = point
    found = [one for drive in drives for one in _warmth(drive, list(last.values()), period_s, now_s)]
    return min(found, key=lambda one: (one.warning_degc is None, (one.warning_degc or 0.0) - one.degc), default=None)


def _warmth(drive: str, points: list[Point], period_s: float, now_s: float) -> Iterator[Hottest]:
    own = [point for point in points if point.tags.get("device") == drive]
    try:
        found = from_points(own, [drive])
    except (ValueError, TypeError):  # a limit or a temperature that is a text
        return
    degc = found.hottest_sensor.degC if found.max_degC is None and found.hottest_sensor else found.max_degC
    if degc is None:
        return
    newest = max(own, key=lambda point: point.time_ns)
    period_s = max(DRIVES_OWN_PERIOD_S, period_s) if newest.measurement == DRIVES_OWN else period_s
    yield Hottest(drive, degc, found.warning_degC, max(0.0, now_s - newest.time_ns / 1e9), period_s)
