"""Latency from intended arrival to durable against offered rate: one continuous MiniDAQ record for each rung of a ladder of loads.

Open loop: the source keeps its schedule whatever the drive does, also beyond saturation, where superchunks are lost and counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import GB, decimal_label
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.statistics import hdr
from daq_bench.bench_model.workloads.latency_under_load import (
    PERCENTILE_RULE,
    Load,
    find_knee,
    judged_rate,
    percentiles,
    value_of,
    why_masked,
)
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.workloads.shared.base import Report, Workload, at_least_half
from daq_bench.rig.workloads.shared.plan import Ground, Need, Step
from daq_bench.rig.workloads.shared.site import Site

RECORD = "latency-under-load.daq"
NS_PER_US = 1000.0
SUSTAINED = "latency_under_load.sustained_rate"
AT_DEMAND = {"latency_under_load.p99_9_at_demand": 99.9, "latency_under_load.p99_999_at_demand": 99.999}
LOST = "latency_under_load.lost_at_demand"


@dataclass(frozen=True)
class Ladder:
    """The scenario's parameters; a rung is a factor on the scaled demand."""

    parameters: dict[str, Any]
    scale: float
    seed: int

    def demand(self, factor: float) -> Demand:
        parameters = self.parameters
        return Demand(
            parameters["links"],
            parameters["superchunk_bytes"],
            float(parameters["superchunk_rate_hz"]),
            self.scale * factor,
            float(parameters["seconds_per_point"]),
        )

    @property
    def factors(self) -> list[float]:
        return [float(factor) for factor in self.parameters["load_factors"]]


def _ladder(scenario: Scenario) -> Ladder:
    return Ladder(scenario.workloads["latency_under_load"], scenario.scale, scenario.seed)


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """Every rung, with its preparation and its draining; beyond saturation no more is written than the drive takes."""
    ladder = _ladder(scenario)
    found = []
    for factor in ladder.factors:
        demand = ladder.demand(factor)
        rate, size = demand.offered_bytes_per_s, demand.record_bytes
        room = f"the rung of {rate / GB:.4g} GB/s x {demand.duration_s:g} s = {decimal_label(size)} ({size} B)"
        written = ground.written(demand.duration_s, rate)
        found.append(Step(f"load factor {factor:g}", demand.duration_s + 2.0, written, size, room))
    return found


def _memory(scenario: Scenario) -> Need:
    links, each = (scenario.workloads["latency_under_load"][key] for key in ("links", "ring_size"))
    return Need(links * each, f"ring_size: {links} rings of {each} B need {links * each} B")


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    factors = scenario.workloads["latency_under_load"]["load_factors"]
    if factors != sorted(set(factors)):
        raise RefusedError(
            f"{scenario.file}: workloads.latency_under_load.load_factors: is not ascending. Sort it, each factor once"
        )


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/latency_under_load.json of this run."""
    scenario = context.scenario
    ladder = Ladder(scenario.workloads["latency_under_load"], scenario.scale, scenario.seed)
    return run_ladder(Site.of(context), ladder, report)


def every_superchunk_should_be_accounted_for(context: RunContext, found: dict[str, Any]) -> None:
    """Fails unless offered = stored + lost at every load: a superchunk that nobody counted is the bench's fault."""
    for one in found["points"]:
        if one["admissible"] and one["offered"] != one["stored"] + one["lost"]:
            raise AssertionError(
                f"load factor {one['load_factor']:g}: offered {one['offered']} superchunks, but stored + lost = "
                f"{one['stored'] + one['lost']}"
            )


def at_least_half_of_the_loads_should_have_been_offered(context: RunContext, found: dict[str, Any]) -> None:
    """Fails when the source could not offer most of the loads, so that no curve can be drawn."""
    at_least_half("loads", found["points"])


WORKLOAD = Workload(
    "latency_under_load",
    plan,
    run,
    action="measure_latency_under_load",
    memory=_memory,
    check=_check,
    raw=True,
    checks=(every_superchunk_should_be_accounted_for, at_least_half_of_the_loads_should_have_been_offered),
)


def run_ladder(site: Site, ladder: Ladder, report: Report) -> dict[str, Any]:
    """Runs every rung, upwards; returns results/latency_under_load.json."""
    points = []
    for step, factor in enumerate(ladder.factors, start=1):
        demand = ladder.demand(factor)
        text = f"offering {demand.offered_bytes_per_s / GB:.4g} GB/s"
        report(text, step, len(ladder.factors), demand.duration_s)
        points.append(point(factor, demand, _record(site, ladder, demand, step)))
    return document(ladder, points)


def _record(site: Site, ladder: Ladder, demand: Demand, step: int) -> Minidaq:
    parameters = ladder.parameters
    options = [
        *site.daqwriter_target(RECORD),
        f"--duration={demand.duration_s:g}",
        f"--links={demand.links}",
        f"--superchunk-bytes={demand.superchunk_bytes}",
        f"--superchunk-rate={demand.superchunk_rate_hz:g}",
        f"--scale={demand.scale:.9g}",
        f"--ring-size={parameters['ring_size']}",
        f"--block-size={parameters['block_size']}",
        f"--io-depth={parameters['io_depth']}",
        f"--checksum={parameters['checksum']}",
        f"--seed={ladder.seed + step - 1}",
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


def document(ladder: Ladder, points: list[dict[str, Any]]) -> dict[str, Any]:
    """results/latency_under_load.json from its points; a value that it does not show is null, and `reasons` says why by metric."""
    parameters, knee = ladder.parameters, find_knee(points)
    judged = judged_rate(knee, ladder.demand(1.0).offered_bytes_per_s)
    reasons = {} if judged is not None else {SUSTAINED: f"no rate that can be judged: the knee was {knee['why']}"}
    if knee["knee_bytes_per_s"] is not None and judged is None:
        reasons[SUSTAINED] = f"even at the lowest rate of the ladder {knee['why']}"
    at_demand = next((one for one in points if one["load_factor"] == 1.0), None)
    counted = at_demand if at_demand and at_demand["admissible"] else None
    why = "the ladder has no rung at the demand (load factor 1)" if at_demand is None else at_demand["reason"]
    values = {}
    for name, percentile in AT_DEMAND.items():
        values[name] = value_of(counted, percentile) if counted else None
        if values[name] is None:
            reasons[name] = _why_no_percentile(counted, percentile) if counted else str(why)
    if counted is None:
        reasons[LOST] = str(why)
    return {
        "schema_version": 1,
        "links": parameters["links"],
        "superchunk_bytes": parameters["superchunk_bytes"],
        "superchunk_rate_hz": parameters["superchunk_rate_hz"],
        "scale": ladder.scale,
        "seconds_per_point": parameters["seconds_per_point"],
        "block_bytes": parameters["block_size"],
        "ring_bytes_per_link": parameters["ring_size"],
        "points": points,
        "percentile_rule": PERCENTILE_RULE,
        "knee": {**knee, "judged_bytes_per_s": judged},
        "at_demand": {
            "p99_9_us": values["latency_under_load.p99_9_at_demand"],
            "p99_999_us": values["latency_under_load.p99_999_at_demand"],
            "lost": counted["lost"] if counted else None,
        },
        "reasons": reasons,
    }


def _why_no_percentile(counted: dict[str, Any], percentile: float) -> str:
    return next(str(one["reason"]) for one in counted["percentiles"] if one["percentile"] == percentile)
