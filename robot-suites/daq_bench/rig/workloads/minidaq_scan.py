"""The MiniDAQ's scan over request sizes beside synthetic writes (DUNE paper, figure 4).

For each request size, daqwriter searches the highest trigger rate without inhibit, then one record at that rate is the point.
When it meets an inhibit in that longer record, the rate is lowered by 2 % and tried again, as often as BACK_OFFS says.
Synthetic writes by two threads with blocks of the same size run in the same round, before or after in turn, so that drift cancels.
The scenario's `repetitions` is the number of whole passes over the sizes: only repetitions show how runs scatter.
Like with like: both write new, preallocated files, and both rates include draining and the final flush."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import GB, binary_label, decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, MinidaqSearch, Trigger
from daq_bench.bench_model.documents.tools.synthetic import Write
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.minidaq_scan import (
    MinidaqScan,
    Run,
    Search,
    inhibits_of,
    limited_by,
    ratio_of,
    summarize,
    why_masked,
)
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.plan import ANYWHERE, Ground, Need, Step, rings
from daq_bench.rig.workloads.shared.scan import after_ramp, samples_of
from daq_bench.rig.workloads.shared.site import Site, minidaq_options, unless_failed

BACK_OFFS = 5
STEP = 0.98
TRIALS_LEAST = 2  # daqwriter tries each rate twice
TRIALS = 10  # expected number of trials of a search on a drive that does not take all
RECORD, SYNTHETIC = "minidaq-scan.daq", "minidaq-scan-synthetic.bin"


@dataclass(frozen=True)
class Load:
    """The load that the links of all applications deliver. `scale` is the scenario's."""

    parameters: dict[str, Any]
    scale: float

    @property
    def link_rate_hz(self) -> float:
        return float(self.parameters["superchunk_rate_hz"]) * self.scale

    @property
    def bytes_per_s(self) -> float:
        parameters = self.parameters
        links = parameters["applications"] * parameters["links"]
        return float(links * parameters["superchunk_bytes"] * self.link_rate_hz)

    def highest_trigger_rate_hz(self, request_bytes: int) -> float:
        """Returns the rate at which requests, rounded up to whole superchunks of every link, ask for all that arrives."""
        parameters = self.parameters
        per_link = math.ceil(request_bytes / (parameters["links"] * parameters["superchunk_bytes"]))
        return float(self.link_rate_hz / per_link) * (1 - 1e-6)  # less than all, also when its digits are rounded


def _load(scenario: Scenario) -> Load:
    return Load(scenario.workloads["minidaq_scan"], scenario.scale)


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """The points: search, record and synthetic writes of each request size. A drive that takes all ends the search at the highest rate."""
    load = _load(scenario)
    parameters, offered = load.parameters, load.bytes_per_s
    trials = TRIALS_LEAST if ground.rate_bytes_per_s >= offered else TRIALS
    trial_s, seconds = parameters["seconds_per_trial"], parameters["seconds_per_point"]
    longest = max(seconds, trial_s)
    size = math.ceil(offered * longest)
    room = f"a record of the MiniDAQ scan, {in_digits(offered / GB)} GB/s x {in_digits(longest, 9)} s = {decimal_label(size)} ({size} B)"
    written = ground.written(trials * trial_s + 2 * seconds, offered)
    length = trials * (trial_s + 0.5) + 2 * (seconds + 1)
    return [Step("points", length, written, size, room, times=len(turns(parameters, scenario.repetitions)))]


def turns(parameters: dict[str, Any], repetitions: int) -> list[tuple[int, int]]:
    """(repetition, request size) in the order of measuring. A size's repetitions lie a whole pass apart, so that one slow spell of
    the drive does not hit all of them."""
    return [(number, size) for number in range(1, repetitions + 1) for size in parameters["request_sizes"]]


def _memory(scenario: Scenario) -> Need:
    parameters = scenario.workloads["minidaq_scan"]
    return rings("ring_size", parameters["applications"] * parameters["links"], parameters["ring_size"])


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    parameters = scenario.workloads["minidaq_scan"]
    largest = max(parameters["request_sizes"])
    room = parameters["links"] * parameters["ring_size"]
    if 4 * largest > room:  # BUSY at 80 % of a ring: several requests must fit, or every one would be vetoed
        raise RefusedError(
            f"{scenario.file}: workloads.minidaq_scan.ring_size: {parameters['links']} rings of {binary_label(parameters['ring_size'])} "
            f"hold fewer than four requests of {binary_label(largest)}, so trigger decisions would be vetoed whatever the drive does. "
            f"Make it {-(-4 * largest // parameters['links'])} B or more, or leave the largest requests out"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/minidaq_scan.json of this run."""
    scenario = context.scenario
    (each,) = plan(scenario, ANYWHERE)
    load, each_s = _load(scenario), each.duration_s or 0.0
    return run_minidaq_scan(Site.of(context), load, scenario.repetitions, scenario.seed, report, each_s)


def every_request_size_should_have_been_measured(context: RunContext, scan: MinidaqScan) -> None:
    """Fails when a point of a repetition is missing; a masked point is there, with its reason."""
    asked = turns(context.scenario.workloads["minidaq_scan"], context.scenario.repetitions)
    measured = [(point.repetition, point.asked_request_bytes) for point in scan.points]
    if measured != asked:
        raise AssertionError(f"asked for (repetition, request size in B) {asked}, measured {measured}")


def at_least_half_of_the_points_should_be_admissible(context: RunContext, scan: MinidaqScan) -> None:
    """Fails when so many points are masked that no curve can be drawn."""
    at_least_half("points", scan.points)


WORKLOAD = Workload(
    "minidaq_scan",
    plan,
    run,
    action="scan_request_sizes_of_minidaq",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_request_size_should_have_been_measured, at_least_half_of_the_points_should_be_admissible),
)


def run_minidaq_scan(
    site: Site, load: Load, repetitions: int, seed: int, report: Report, each_s: float = 0.0
) -> dict[str, Any]:
    """Runs every request size, `repetitions` times; returns results/minidaq_scan.json."""
    sizes, asked, points = load.parameters["request_sizes"], turns(load.parameters, repetitions), []
    for step, (repetition, request_bytes) in enumerate(asked, start=1):
        text = f"request size {binary_label(request_bytes)}, repetition {repetition} of {repetitions}"
        report(text, step, len(asked), each_s)
        name = f"{request_bytes}-repetition-{repetition}"
        first = (sizes.index(request_bytes) + repetition) % 2 == 1  # alternates for and between sizes
        synthetic = _synthetic(site, load, request_bytes, name) if first else None
        search, runs = _minidaq(site, load, request_bytes, seed, name)
        synthetic = synthetic or _synthetic(site, load, request_bytes, name)
        points.append({"repetition": repetition, **point(load, request_bytes, search, runs, synthetic, first)})
    return document(load, points)


def document(load: Load, points: list[dict[str, Any]]) -> dict[str, Any]:
    """results/minidaq_scan.json from its points."""
    parameters = load.parameters
    found, reasons = summarize(points)
    return {
        "schema_version": 1,
        "applications": parameters["applications"],
        "links": parameters["links"],
        "superchunk_bytes": parameters["superchunk_bytes"],
        "superchunk_rate_hz": load.link_rate_hz,
        "demand_bytes_per_s": load.bytes_per_s,
        "synthetic_threads": parameters["synthetic_threads"],
        "seconds_per_point": parameters["seconds_per_point"],
        "seconds_per_trial": parameters["seconds_per_trial"],
        "condition": "new, preallocated files; rates include draining and the final flush",
        "points": points,
        **found,
        "reasons": reasons,
    }


def point(
    load: Load,
    request_bytes: int,
    search: MinidaqSearch,
    runs: list[Minidaq],
    synthetic: dict[str, Any],
    synthetic_first: bool,
) -> dict[str, Any]:
    """One request size of one repetition. `runs`: records at the rate found and at lower ones; the last is the point."""
    last = _run_document(runs[-1]) if runs else None
    limit = limited_by(search)
    found = Search(
        search.highest_bytes_per_s,
        search.highest_trigger_rate_hz,
        search.lowest_refused_bytes_per_s,
        len(search.trials),
    )
    made: dict[str, Any] = {
        "asked_request_bytes": request_bytes,
        "request_bytes": search.request_bytes,
        "search": as_document(found),
        "limited_by": limit,
        "runs": [_run_document(run) for run in runs],
        "synthetic": {**synthetic, "first": synthetic_first},
        "throughput_bytes_per_s": last["stored_bytes_per_s"] if last else None,
        "throughput_bytes_per_s_samples": samples_of(after_ramp(runs[-1].series.t_s, runs[-1].series.stored_bytes))
        if runs
        else [],
        "inhibits": inhibits_of(last) if last else None,
        "copy_share": copy_share(runs[-1]) if runs else None,
        "cpu_seconds_per_gb": runs[-1].cpu.seconds_per_gb if runs else None,
    }
    made["reason"] = why_masked(limit, last, synthetic["reason"])
    made["admissible"] = made["reason"] is None
    made["ratio_to_synthetic"] = ratio_of(made, load.bytes_per_s) if made["admissible"] else None
    return made


def copy_share(run: Minidaq) -> float | None:
    """Time spent copying over the process' CPU time; None where it exceeds it: copying is timed by the clock, and a writer that
    other work kept from its CPU meanwhile then shows more than there was."""
    share = run.cpu.copy_share
    return share if share <= 1 else None


def _run_document(run: Minidaq) -> dict[str, Any]:
    asked = run.trigger
    if not isinstance(asked, Trigger) or asked.rate_hz is None:
        raise BenchError(
            "daqwriter minidaq --mode=triggered says of no trigger rate. Build daqwriter of this version: `make build`"
        )
    stored, achieved = run.stored_bytes_per_s, run.source.achieved_fraction
    return as_document(Run(asked.rate_hz, stored, achieved, asked.vetoed, run.busy.count, run.superchunks.lost))


def _minidaq(site: Site, load: Load, request_bytes: int, seed: int, name: str) -> tuple[MinidaqSearch, list[Minidaq]]:
    """(the search's answer, records at the rate found and, while they met an inhibit, at lower ones). `name`: of their output."""
    parameters = load.parameters
    rate, names = load.highest_trigger_rate_hz(request_bytes), _record_names(parameters["applications"])
    common = [
        *site.daqwriter_target(RECORD),
        "--mode=triggered",
        f"--request-size={request_bytes}",
        f"--applications={parameters['applications']}",
        *minidaq_options({**parameters, "block_size": _block_bytes(parameters, request_bytes)}, load.scale),
        f"--seed={seed}",
    ]
    trial_s, seconds = parameters["seconds_per_trial"], parameters["seconds_per_point"]
    what = f"the MiniDAQ at request size {binary_label(request_bytes)}"
    with site.removed_afterwards(*names):
        options = [
            *common,
            f"--trigger-rate={rate:.9g}",
            f"--duration={trial_s:g}",
            "--search",
            f"--search-resolution={parameters['search_resolution']:g}",
        ]
        limit_s = 120 + 40 * (trial_s + 60)
        search = site.run_daqwriter("minidaq", options, f"minidaq-search-{name}", MinidaqSearch, limit_s)
        unless_failed(search, f"the search for the highest rate of {what}")
    found, runs = search.highest_trigger_rate_hz or 0.0, []
    for number in range(BACK_OFFS + 1 if found else 0):
        options = [*common, f"--trigger-rate={found * STEP**number:.9g}", f"--duration={seconds:g}"]
        options.append(f"--interval={SAMPLE_S:g}")
        with site.removed_afterwards(*names):
            record = f"minidaq-scan-{name}-{number + 1}"
            run = site.run_daqwriter("minidaq", options, record, Minidaq, 120 + 5 * seconds)
        runs.append(unless_failed(run, what))
        if not inhibits_of(_run_document(run)):
            break
    return search, runs


def _record_names(applications: int) -> list[str]:
    return [RECORD] if applications == 1 else [f"{RECORD}.{number}" for number in range(applications)]


def _block_bytes(parameters: dict[str, Any], request_bytes: int) -> int:
    """Returns the block size: a request is written with blocks of its own size, up to the largest write that the scenario allows."""
    return min(-(-request_bytes // 4096) * 4096, int(parameters["block_size"]))


def _synthetic(site: Site, load: Load, request_bytes: int, name: str) -> dict[str, Any]:
    parameters = load.parameters
    threads, seconds = parameters["synthetic_threads"], parameters["seconds_per_point"]
    block_bytes = -(-request_bytes // 4096) * 4096
    span = max(int(load.bytes_per_s * seconds) // (block_bytes * threads), 1) * block_bytes * threads
    options = [
        *site.daqwriter_target(SYNTHETIC),
        f"--block-size={block_bytes}",
        f"--threads={threads}",
        f"--io-depth={parameters['io_depth']}",
        f"--duration={seconds:g}",
        f"--span={span}",
        "--condition=fresh",
        f"--interval={SAMPLE_S:g}",
    ]
    with site.removed_afterwards(SYNTHETIC):
        output = f"minidaq-scan-synthetic-{name}"
        written = site.run_daqwriter("write", options, output, Write, 120 + 10 * seconds)
    unless_failed(written, f"synthetic writes with blocks of {binary_label(block_bytes)}")
    # A drive that is faster than the links fills the span, which is what they would have delivered, in less time.
    ended = written.ended_by
    return {
        "block_bytes": block_bytes,
        "threads": threads,
        "throughput_bytes_per_s": written.bytes_per_s_with_flush,
        "throughput_bytes_per_s_samples": samples_of(after_ramp(written.series.t_s, written.series.written_bytes)),
        "reason": None if ended in ("duration", "span") else f"daqwriter write ended by {ended}",
    }
