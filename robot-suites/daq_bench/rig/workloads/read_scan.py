"""The read scan: sequential and random O_DIRECT reads by block size, depth and jobs, with fio and with `daqwriter read`.

Each job reads a part of the file of its own. fio's file is written once before the first point, daqwriter's before each."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.tools.synthetic import Read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.read_scan import (
    Key,
    Latency,
    Point,
    Scan,
    chosen,
    grid,
    name_of,
    result,
    why_masked,
)
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.fio_job import Value
from daq_bench.rig.workloads.shared.plan import START_S, Ground, Need, Step
from daq_bench.rig.workloads.shared.site import Site, unless_failed
from daq_bench.rig.workloads.shared.write_point import SAMPLE_S, WRITE_BYTES_PER_S_MIN, version_of

FILE = "workload-read-scan.bin"
FIO_PATTERN = {"sequential": "read", "random": "randread"}


def _parameters(scenario: Scenario) -> dict[str, Any]:
    return scenario.workloads["read_scan"]


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Each point; the file once for fio, and before each point for daqwriter. The first tool's best points are measured again."""
    own, found = _parameters(scenario), list[Step]()
    size, each_s = own["file_size"], own["seconds_per_point"] + own["ramp_s"] + START_S
    room = f"the read scan's file of {decimal_label(size)}"
    for place, tool in enumerate(own["tools"]):
        points = len(grid(own)) + (0 if place else len(own["patterns"]) * scenario.repetitions)
        before = 0 if tool == "fio" else size
        if not before:
            found.append(Step("laying out the read scan's file", ground.seconds(size), size, size, room))
        found.append(
            Step(f"reads with {tool}", each_s + (ground.seconds(before) or 0), before, size, room, times=points)
        )
    return found


def _memory(scenario: Scenario) -> Need:
    own = _parameters(scenario)
    size = max(own["jobs"]) * max(own["io_depths"]) * max(own["block_sizes"])
    return Need(size, f"the read scan: jobs x io_depth x block size is {size} B at most")


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    own = _parameters(scenario)
    for name in ("io_depths", "jobs"):
        if own[name] != sorted(set(own[name])):
            raise RefusedError(
                f"{scenario.file}: workloads.read_scan.{name}: is not ascending. Sort it, each number once"
            )
    least = max(own["block_sizes"]) * max(own["jobs"])
    if own["file_size"] < least:
        raise RefusedError(
            f"{scenario.file}: workloads.read_scan.file_size: {own['file_size']} B hold no block for each job. Make it {least} B or more"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/read_scan.json of this run."""
    site, own = Site.of(context), _parameters(context.scenario)
    keys, repetitions = grid(own), context.scenario.repetitions
    steps = len(own["tools"]) * len(keys) + len(own["patterns"]) * repetitions
    scans: list[Scan] = []
    again: list[Point] = []
    done = 0

    def measured(tool: str, key: Key, suffix: str = "") -> Point:
        nonlocal done
        done += 1
        report(f"{name_of(key)}, {tool}{suffix}", done, steps, own["seconds_per_point"] + own["ramp_s"])
        return (_with_fio if tool == "fio" else _with_daqwriter)(site, own, key, suffix)

    for tool in own["tools"]:
        with site.removed_afterwards(FILE):
            if tool == "fio":
                report("laying out the read scan's file", done, steps, own["file_size"] / WRITE_BYTES_PER_S_MIN)
                fio.lay_out(site.jobs, "read-scan", site.target(FILE), own["file_size"])
            points = [measured(tool, key) for key in keys]
            if not scans:
                turns = [(key, number) for key in chosen(points) for number in range(1, repetitions + 1)]
                again = [measured(tool, key, f"-repetition-{number}") for key, number in turns]
        scans.append(Scan(tool, _version(site, tool), points))
    return result(own, SAMPLE_S, scans, again)


def _version(site: Site, tool: str) -> str:
    return version_of(site) if tool == "daqwriter" else fio.version_on(site.machine)


def _with_fio(site: Site, own: dict[str, Any], key: Key, suffix: str) -> Point:
    pattern, block, depth, jobs = key
    name = f"fio-{pattern}-read-{block}-{depth}-{jobs}{suffix}"
    values: dict[str, Value] = {
        "NAME": name,
        "PATTERN": FIO_PATTERN[pattern],
        "BLOCK_BYTES": block,
        "SIZE_BYTES": own["file_size"] // jobs // block * block,
        "IO_DEPTH": depth,
        "JOBS": jobs,
        "RUNTIME": fio.time_of(own["seconds_per_point"]),
        "RAMP_TIME": fio.time_of(own["ramp_s"]),
        "WINDOW_MS": f"{SAMPLE_S * 1000:g}",
    }
    before = site.device_read_bytes()
    timeout_s = 60 + 5 * (own["seconds_per_point"] + own["ramp_s"])
    completed = site.jobs.run("read-scan", name, site.target(FILE), values, timeout_s)
    fio.ended_well(completed, f"fio, {name_of(key)}")
    device_bytes = site.device_read_bytes(since=before)
    (site.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
    log = site.raw / f"{name}_bw.log"
    site.machine.fetch(site.work / log.name, log)
    side = fio.direction(fio.jobs_of(completed.stdout, name_of(key))[0], "read")
    if side["latency_us"] is None:
        raise BenchError(f"fio read nothing at {name_of(key)}; its output is kept in results/raw")
    samples = fio.bandwidth_samples(
        log.read_text(encoding="ascii"), SAMPLE_S * 1000, side["runtime_s"] * 1000, side["bytes"], jobs
    )
    latency = Latency(*(float(side["latency_us"][name]) for name in Latency.__struct_fields__))
    return _point(own, key, side["bytes"], side["runtime_s"], samples, latency, device_bytes)


def _with_daqwriter(site: Site, own: dict[str, Any], key: Key, suffix: str) -> Point:
    pattern, block, depth, jobs = key
    span, ramp_s = own["file_size"] // (block * jobs) * block * jobs, own["ramp_s"]
    options = [
        *(*site.daqwriter_target(FILE), f"--pattern={pattern}", f"--block-size={block}", f"--io-depth={depth}"),
        *(f"--threads={jobs}", f"--duration={own['seconds_per_point'] + ramp_s:g}", f"--span={span}"),
        f"--interval={SAMPLE_S:g}",
    ]
    timeout_s = 60 + 5 * (own["seconds_per_point"] + ramp_s) + span / WRITE_BYTES_PER_S_MIN
    before = site.device_read_bytes()
    name = f"daqwriter-{pattern}-read-{block}-{depth}-{jobs}{suffix}"
    said = site.run_daqwriter("read", options, name, Read, timeout_s)
    device_bytes = site.device_read_bytes(since=before)
    unless_failed(said, f"daqwriter read, {name_of(key)}")
    samples, bytes_read, runtime_s, since = [], 0, 0.0, 0.0
    for end, count in zip(said.series.t_s, said.series.read_bytes, strict=True):
        seconds, since = end - since, end
        if end - seconds < ramp_s - SAMPLE_S / 2:  # the clock trembles
            continue
        bytes_read, runtime_s = bytes_read + count, runtime_s + seconds
        if seconds >= SAMPLE_S / 2:  # a shorter last interval is the drain
            samples.append(count / seconds)
    us = said.latency_us
    latency = Latency(us.mean, us.p50, us.p99, us.p99_9, us.max)
    return _point(own, key, bytes_read, runtime_s, samples, latency, device_bytes)


def _point(
    own: dict[str, Any],
    key: Key,
    bytes_read: int,
    runtime_s: float,
    samples: list[float],
    latency: Latency,
    device_bytes: int | None,
) -> Point:
    rate = bytes_read / runtime_s if runtime_s else 0.0
    return Point(
        *key,
        throughput_bytes_per_s=rate,
        iops=rate / key[1],
        bytes_read=bytes_read,
        runtime_s=runtime_s,
        samples_bytes_per_s=samples,
        latency_us=latency,
        device_bytes_read=device_bytes,
        reason=why_masked(runtime_s, own["seconds_per_point"], bytes_read, device_bytes),
    )


def every_point_should_have_been_measured(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when a point of a tool's grid is missing; a masked point is there, with its reason."""
    for one in scan["scans"]:
        found = {tuple(point[key] for key in ("pattern", "block_bytes", "io_depth", "jobs")) for point in one["points"]}
        missing = [name_of(key) for key in grid(_parameters(context.scenario)) if key not in found]
        if missing:
            raise AssertionError(f"{one['tool']} did not measure {'; '.join(missing)}")


def at_least_half_of_the_points_should_count(context: RunContext, scan: dict[str, Any]) -> None:
    """Fails when the device or a tool let most points down."""
    for one in scan["scans"]:
        at_least_half(f"points of {one['tool']}", one["points"])


WORKLOAD = Workload(
    "read_scan",
    plan,
    run,
    action="scan_reads",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_point_should_have_been_measured, at_least_half_of_the_points_should_count),
)
