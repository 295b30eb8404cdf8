"""Latency from intended arrival to durable against offered rate: one continuous MiniDAQ record for each rung of a ladder of loads.

Open loop: the source keeps its schedule whatever the drive does, also beyond saturation, where superchunks are lost and counted."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import GB, decimal_label, in_digits
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.statistics import hdr
from daq_bench.bench_model.workloads.latency_under_load import (
    NAME,
    PERCENTILE_RULE,
    LatencyUnderLoad,
    Load,
    percentiles,
    summary,
    why_masked,
)
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step, rings
from daq_bench.rig.workloads.shared.scan import Parameters, ascending
from daq_bench.rig.workloads.shared.site import Site, minidaq_options

RECORD = "latency-under-load.daq"
NS_PER_US = 1000.0


def demand_of(own: Parameters, scale: float, factor: float) -> Demand:
    """A rung of the ladder: a factor on the scaled demand."""
    return Demand.of(own, scale * factor, own["seconds_per_point"])


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Every rung, with its preparation and its draining; beyond saturation no more is written than the drive takes."""
    own, found = scenario.workloads[NAME], []
    for factor in own["load_factors"]:
        demand = demand_of(own, scenario.scale, factor)
        rate, size = demand.offered_bytes_per_s, demand.record_bytes
        room = f"the rung of {in_digits(rate / GB)} GB/s x {in_digits(demand.duration_s, 9)} s = {decimal_label(size)} ({size} B)"
        written = ground.written(demand.duration_s, rate)
        found.append(Step(f"load factor {factor:g}", demand.duration_s + 2.0, written, size, room))
    return found


def _memory(scenario: Scenario) -> Need:
    own = scenario.workloads[NAME]
    return rings("ring_size", own["links"], own["ring_size"])


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    ascending(scenario, NAME, "load_factors", each="each factor")


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/latency_under_load.json of this run."""
    scenario = context.scenario
    return run_ladder(Site.of(context), scenario.workloads[NAME], scenario.scale, scenario.seed, report)


def every_superchunk_should_be_accounted_for(context: RunContext, found: LatencyUnderLoad) -> None:
    """Fails unless offered = stored + lost at every load: a superchunk that nobody counted is the bench's fault."""
    for one in found.points:
        if one.admissible and one.offered != one.stored + one.lost:
            raise AssertionError(
                f"load factor {one.load_factor:g}: offered {one.offered} superchunks, but stored + lost = "
                f"{one.stored + one.lost}"
            )


def at_least_half_of_the_loads_should_have_been_offered(context: RunContext, found: LatencyUnderLoad) -> None:
    """Fails when the source could not offer most of the loads, so that no curve can be drawn."""
    at_least_half("loads", found.points)


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="measure_latency_under_load",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_superchunk_should_be_accounted_for, at_least_half_of_the_loads_should_have_been_offered),
)


def run_ladder(site: Site, own: Parameters, scale: float, seed: int, report: Report) -> dict[str, Any]:
    """Runs every rung, upwards; returns results/latency_under_load.json."""
    points = []
    for step, factor in enumerate(own["load_factors"], start=1):
        demand = demand_of(own, scale, factor)
        text = f"offering {in_digits(demand.offered_bytes_per_s / GB)} GB/s"
        report(text, step, len(own["load_factors"]), demand.duration_s)
        points.append(point(float(factor), demand, _record(site, own, demand, seed, step)))
    return document(own, scale, points)


def _record(site: Site, own: Parameters, demand: Demand, seed: int, step: int) -> Minidaq:
    options = [
        *site.daqwriter_target(RECORD),
        f"--duration={demand.duration_s:g}",
        *minidaq_options(own, demand.scale),
        f"--seed={seed + step - 1}",
    ]
    with site.removed_afterwards(RECORD):
        return site.run_daqwriter(
            "minidaq", options, f"latency-under-load-{step}", Minidaq, 600 + 2 * demand.duration_s
        )


def point(factor: float, demand: Demand, record: Minidaq) -> dict[str, Any]:
    """One rung from daqwriter's answer. Raises BenchError when the exported distribution is not that of the record."""
    counts, source, latency = record.superchunks, record.source, record.latency_us
    try:
        histogram = hdr.decode(latency.hdr)
    except ValueError as error:
        raise BenchError(f"daqwriter's histogram of the latency cannot be decoded: {error}") from None
    if histogram.total != counts.stored:
        raise BenchError(
            f"daqwriter's histogram holds {histogram.total} superchunks, but the record stored {counts.stored}"
        )
    load = Load(counts.offered, counts.lost, source.late_superchunks, source.worst_lateness_us)
    reason = why_masked(record.status, record.error, source.achieved_fraction)
    return {
        "load_factor": factor,
        "asked_bytes_per_s": demand.offered_bytes_per_s,
        "offered_bytes_per_s": record.offered_bytes_per_s,
        "stored_bytes_per_s": record.stored_bytes_per_s,
        "achieved_fraction": source.achieved_fraction,
        "worst_lateness_us": source.worst_lateness_us,
        "late_superchunks": source.late_superchunks,
        "offered": counts.offered,
        "stored": counts.stored,
        "lost": counts.lost,
        "busy_count": record.busy.count,
        "backlog_high_water_bytes": record.backlog.high_water_bytes,
        "percentiles": percentiles(histogram, 1 / NS_PER_US, load),
        "latency_us": as_document(latency),
        "admissible": reason is None,
        "reason": reason,
    }


def document(own: Parameters, scale: float, points: list[dict[str, Any]]) -> dict[str, Any]:
    """results/latency_under_load.json from its points; a value that it does not show is null, and `reasons` says why by metric."""
    found, reasons = summary(points, demand_of(own, scale, 1.0).offered_bytes_per_s)
    return {
        "schema_version": 1,
        "links": own["links"],
        "superchunk_bytes": own["superchunk_bytes"],
        "superchunk_rate_hz": own["superchunk_rate_hz"],
        "scale": scale,
        "seconds_per_point": own["seconds_per_point"],
        "block_bytes": own["block_size"],
        "ring_bytes_per_link": own["ring_size"],
        "points": points,
        "percentile_rule": PERCENTILE_RULE,
        **found,
        "reasons": reasons,
    }
