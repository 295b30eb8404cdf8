"""The kit of the scans over one file: a grid of points with fio, with `daqwriter`, or with both.

fio's file is written once before the first point, so that every point finds allocated blocks and none pays for the file system's
allocation; daqwriter writes its own before each point. Evidence that a point's bytes reached the device is the device's own counter.
daqwriter has no ramp of its own: the first `ramp_s` are left out of throughput and samples, and are part of latency and CPU time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.tools.synthetic import Read, Write
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_model.workloads.read_scan import ReadScan
from daq_bench.bench_model.workloads.scan import SAMPLE_S, Tool
from daq_bench.bench_model.workloads.thread_scan import ThreadScan
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.base import Report, at_least_half
from daq_bench.rig.workloads.shared.fio_job import Value
from daq_bench.rig.workloads.shared.plan import START_S, UNIT_BYTES_PER_S, WRITE_BYTES_PER_S_MIN, Ground, Step
from daq_bench.rig.workloads.shared.site import Site, unless_failed

FIO = "fio"
Parameters = dict[str, Any]
Interval = tuple[float, float, int]  # begin and end in s, bytes
Key = TypeVar("Key")
Row = TypeVar("Row")
Said = TypeVar("Said", Read, Write)


@dataclass(frozen=True)
class Scanned(Generic[Row]):
    """One tool's points. `again`: (number, point) of the repetitions."""

    tool: Tool
    version: str
    points: list[Row]
    again: list[tuple[int, Row]]

    @property
    def condition(self) -> str:
        return f"overwrite of a file that was written once before {'the scan' if self.tool == FIO else 'each point'}"


@dataclass(frozen=True)
class FileScan(Generic[Key, Row]):
    """One workload's scan. `file`: on the target. `measure(site, tool, point, parameters, suffix)` measures a point; the suffix tells its
    output from that of another repetition. `label`: a point in words."""

    name: str
    file: str
    measure: Callable[[Site, str, Key, Parameters, str], Row]
    label: Callable[[Key], str]

    def steps(
        self, tool: str, size: int, ground: Ground, asked: Iterable[tuple[str, float, int]], writing: bool = True
    ) -> Iterator[Step]:
        """Its plan with one tool. `asked`: (name, s of one point, number of points)."""
        room = f"the {self.name}'s file of {decimal_label(size)}"
        before = 0 if tool == FIO else size
        if not before:
            yield Step(f"laying out the {self.name}'s file", ground.seconds(size), size, size, room)
        for name, seconds, times in asked:
            written = (ground.written(seconds) if writing else 0) + before
            length = seconds + START_S + (ground.seconds(before) or 0)
            yield Step(f"{name} with {tool}", length, written, size, room, times=times)

    def run(
        self,
        site: Site,
        own: Parameters,
        report: Report,
        keys: Sequence[Key],
        again: Callable[[str, Sequence[Row]], Sequence[tuple[int, Key]]] = lambda *_: (),
        repetitions: int = 0,
        longer: Parameters | None = None,
    ) -> list[Scanned[Row]]:
        """Measures the points of each tool. `again`: (number, point) of those that a tool measures again, by its points; `repetitions`: how
        many they are with all tools; `longer`: the parameters of a repetition."""
        tools, done, found = tools_of(own), 0, list[Scanned[Row]]()
        steps = len(tools) * len(keys) + repetitions

        def measured(tool: str, key: Key, number: int = 0, of: int = 0) -> Row:
            nonlocal done
            done += 1
            asked, more = (longer or own, f", repetition {number} of {of}") if number else (own, "")
            report(f"{self.label(key)}, {tool}{more}", done, steps, point_s(asked))
            return self.measure(site, tool, key, asked, f"-repetition-{number}" if number else "")

        for tool in tools:
            with site.removed_afterwards(self.file):
                if tool == FIO:
                    text, size = f"laying out the {self.name}'s file", own["file_size"]
                    report(text, done, steps, size / UNIT_BYTES_PER_S)
                    fio.lay_out(site.jobs, self.name.replace(" ", "-"), site.target(self.file), size)
                points = [measured(tool, key) for key in keys]
                turns = again(tool, points)
                repeated = [(number, measured(tool, key, number, turns[-1][0])) for number, key in turns]
            found.append(Scanned(tool, version_of(site, tool), points, repeated))
        return found


def tools_of(own: Parameters) -> list[Tool]:
    return list(own.get("tools", [FIO]))


def point_s(own: Parameters) -> float:
    return float(own["seconds_per_point"] + own["ramp_s"])


def version_of(site: Site, tool: str) -> str:
    program = FIO if tool == FIO else site.daqwriter
    return site.machine.run([program, "--version"], timeout_s=20).check(tool).stdout.strip()


@dataclass(frozen=True)
class At:
    """A point to measure. `file`: on the target; `name`: of its output, which no other point of the run has; `what`: it is, in errors.
    `counted`: what the site's device has counted, B, since a count."""

    site: Site
    own: Parameters
    file: str
    name: str
    what: str
    counted: Callable[..., int | None]

    def with_fio(self, job: str, values: Mapping[str, Value], log: str = "_bw.log") -> tuple[str, str, int | None]:
        """Runs a job file. Returns fio's JSON, its log of bandwidth, and what the device counted, B. Raises BenchError."""
        site, own = self.site, self.own
        times = {
            name: fio.time_of(own[key]) for name, key in (("RUNTIME", "seconds_per_point"), ("RAMP_TIME", "ramp_s"))
        }
        asked = {**values, **times, "WINDOW_MS": f"{SAMPLE_S * 1000:g}"}
        before = self.counted()
        completed = site.jobs.run(job, self.name, site.target(self.file), asked, 60 + 5 * point_s(own))
        fio.ended_well(completed, self.what)
        device_bytes = self.counted(since=before)
        (site.raw / f"{self.name}.json").write_text(completed.stdout, encoding="utf-8")
        kept = site.raw / f"{self.name}{log}"
        site.machine.fetch(site.work / kept.name, kept)
        return completed.stdout, kept.read_text(encoding="ascii"), device_bytes

    def with_daqwriter(
        self, command: str, kind: type[Said], options: Sequence[str], parts: int, more: Sequence[str] = ()
    ) -> tuple[Said, int | None]:
        """Runs `daqwriter` for ramp and point. Returns its answer, and what the device counted, B. `parts`: the span is a whole multiple of
        it, B. Raises BenchError when daqwriter itself breaks."""
        seconds, span = point_s(self.own), self.own["file_size"] // parts * parts
        argv: list[str] = [
            *self.site.daqwriter_target(self.file),
            *options,
            f"--duration={seconds:g}",
            f"--span={span}",
            *more,
        ]
        before, limit_s = self.counted(), 60 + 5 * seconds + span / WRITE_BYTES_PER_S_MIN
        said = self.site.run_daqwriter(command, [*argv, f"--interval={SAMPLE_S:g}"], self.name, kind, limit_s)
        return unless_failed(said, self.what), self.counted(since=before)


def after_ramp(t_s: Sequence[float], counts: Sequence[int], ramp_s: float = 0.0) -> list[Interval]:
    """The intervals of daqwriter's series that begin after the ramp. One that begins a little before its end, since the clock trembles, is
    taken whole."""
    return [one for one in zip([0.0, *t_s], t_s, counts, strict=False) if one[0] >= ramp_s - SAMPLE_S / 2]


def samples_of(intervals: Sequence[Interval]) -> list[float]:
    """Returns B/s of each window of SAMPLE_S. An interval that a busy machine ended late is spread over the windows that it covers. A last
    window of under half the length is the drain: it counts for the mean and is no sample."""
    edges = _edges(intervals)
    return [
        math.fsum(
            count * ((min(end, after) - max(begin, before)) / (end - begin))
            for begin, end, count in intervals
            if begin < after and before < end and begin < end
        )
        / (after - before)
        for before, after in pairwise(edges)
    ]


def _edges(intervals: Sequence[Interval]) -> list[float]:
    """The windows' ends, and the first one's begin. A window ends with the interval that ends on time: its rate is then that interval's."""
    if not intervals:
        return []
    begin, ends = intervals[0][0], [end for _, end, _ in intervals]
    edges = [begin]
    for number in range(1, round((ends[-1] - begin) / SAMPLE_S) + 1):
        due = min(begin + number * SAMPLE_S, ends[-1])
        off, nearest = min((abs(end - due), end) for end in ends)
        edges.append(nearest if off <= fio.LATE_ROW_MS / 1000 else due)
    return edges


def ascending(scenario: Scenario, workload: str, *names: str, each: str = "each number") -> None:
    """Raises RefusedError for a list of the workload's parameters that is not ascending."""
    for name in names:
        asked = scenario.workloads[workload][name]
        if asked != sorted(set(asked)):
            raise RefusedError(f"{scenario.file}: workloads.{workload}.{name}: is not ascending. Sort it, {each} once")


def check_sizes(scenario: Scenario, workload: str, threads: int = 1) -> None:
    """Raises RefusedError when a thread's part of the file cannot hold a block of the largest size."""
    own = scenario.workloads[workload]
    largest, part = max(own["block_sizes"]), own["file_size"] // threads
    if largest > part:
        parts = f" shared out among {threads} threads" if threads > 1 else ""
        raise RefusedError(
            f"{scenario.file}: workloads.{workload}.file_size: {own['file_size']} B{parts} hold no block of {largest} B. "
            f"Make it {largest * threads} B or more, or leave the largest block sizes out"
        )


def at_least_half_of_the_points_should_be_admissible(
    context: RunContext, scan: BlockScan | ReadScan | ThreadScan
) -> None:
    """Fails when the device or a tool let most points down, so that no curves can be drawn."""
    for one in scan.scans:
        at_least_half(f"points of {one.tool}", one.points)
