"""Latency against offered load, open loop: percentiles of all that was offered, and the knee of the curve. Pure.

Time counts from a superchunk's *intended* arrival, so that a stall delays everything that was due meanwhile and not only
the one write that a closed loop would have waited for (coordinated omission). A lost superchunk never arrived at all: it counts as
later than everything that was stored, and a percentile that falls among the lost has no value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from msgspec import Meta

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.struct import Amount, Block, Closed, Document, Ordinal, Positive
from daq_bench.bench_model.documents.struct import Count as Whole
from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.statistics import hdr
from daq_bench.bench_model.workloads.model import Asked, Count, Model, once, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, agreeing, column, counting, follows, rows

NAME = "latency_under_load"
AT_DEMAND = {"p99_9": 99.9, "p99_999": 99.999}  # percentiles that metrics are of
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
BEYOND_MIN = 10  # [P] values that must lie beyond a percentile
KNEE_FACTOR = 3.0  # [P]
KNEE_PERCENTILE = 99.9
SOURCE_ACHIEVED_MIN = 0.999  # as in daqwriter's search for a rate
LATE = "the source itself was late with {late} superchunks, by up to {worst:.3g} ms: this percentile may be its doing and not the drive's"
PERCENTILE_RULE = (
    f"A percentile is given where at least {BEYOND_MIN} of the offered superchunks lie beyond it; lost ones count as later than "
    "all others. It is left out where the source's own lateness may have made it"
)
KNEE_RULE = (
    "The knee is the first offered rate, going up, at which superchunks are lost, the dataflow is BUSY, or the 99.9th "
    f"percentile exceeds {KNEE_FACTOR:g} times its lowest value at the rates below. The sustained rate is the one before it; a point that "
    "does not count ends the search"
)


class Knee(Closed, frozen=True):
    """`sustained_bytes_per_s`: B/s: the highest rate before the knee; a lower bound where the knee was not reached; `knee_bytes_per_s`:
    B/s; null: not reached; `judged_bytes_per_s`: B/s: the sustained rate where a requirement may be held against it; null: only a lower
    bound below the demand is known"""

    sustained_bytes_per_s: float | None
    knee_bytes_per_s: float | None
    judged_bytes_per_s: float | None
    why: str
    rule: str


class AtDemand(Closed, frozen=True):
    """`p99_9_us`: us; `p99_999_us`: us"""

    p99_9_us: float | None
    p99_999_us: float | None
    lost: Whole | None


class Percentile(Closed, frozen=True):
    """`us`: us from intended arrival to durable; `reason`: why there is no value"""

    percentile: Positive
    us: Amount | None
    reason: str | None


class Point(Closed, frozen=True):
    """`load_factor`: on the scaled demand; `asked_bytes_per_s`: B/s that the source was to offer; `offered_bytes_per_s`: B/s that it
    offered; `stored_bytes_per_s`: B/s, draining and final flush included; `achieved_fraction`: offered over due; `worst_lateness_us`:
    us: of the source's own emissions after their intended arrival; `late_superchunks`: that the source emitted late; `offered`:
    superchunks; `stored`: superchunks; `lost`: superchunks that found their ring full; `busy_count`: episodes of "Dataflow is BUSY";
    `backlog_high_water_bytes`: B; `percentiles`: of all that was offered, lost ones counting as later than all others; `latency_us`: of
    the stored superchunks, as daqwriter gives it; `admissible`: false: masked, not drawn; `reason`: why the point is masked"""

    load_factor: Positive
    asked_bytes_per_s: Positive
    offered_bytes_per_s: Amount
    stored_bytes_per_s: Amount
    achieved_fraction: Annotated[float, Meta(ge=0, le=1)]
    worst_lateness_us: Amount
    late_superchunks: Whole
    offered: Whole
    stored: Whole
    lost: Whole
    busy_count: Whole
    backlog_high_water_bytes: Whole
    percentiles: list[Percentile]
    latency_us: Latency
    admissible: bool
    reason: str | None


class LatencyUnderLoad(Closed, frozen=True):
    """results/latency_under_load.json: latency from intended arrival to durable against offered rate. `superchunk_bytes`: B;
    `superchunk_rate_hz`: Hz per link, before scale and load factor; `seconds_per_point`: s; `block_bytes`: B per write;
    `ring_bytes_per_link`: B; `reasons`: why a metric has no value, by metric"""

    schema_version: Literal[1]
    links: Ordinal
    superchunk_bytes: Ordinal
    superchunk_rate_hz: Positive
    scale: Positive
    seconds_per_point: Positive
    block_bytes: Block
    ring_bytes_per_link: Ordinal
    percentile_rule: str
    reasons: dict[str, str]
    knee: Knee
    at_demand: AtDemand
    points: list[Point]


@dataclass(frozen=True)
class Load:
    """The load that one record offered. `worst_lateness_us`: of the source's own emissions after their intended arrival."""

    offered: int
    lost: int
    late: int
    worst_lateness_us: float


def percentiles(histogram: hdr.Histogram, unit_us: float, load: Load) -> list[dict[str, Any]]:
    """One {percentile, us, reason} for each of PERCENTILES; `us` None with the reason why it has no value."""
    return [_percentile(histogram, unit_us, load, percentile) for percentile in PERCENTILES]


def _percentile(histogram: hdr.Histogram, unit_us: float, load: Load, percentile: float) -> dict[str, Any]:
    share = Fraction(str(percentile)) / 100
    beyond = load.offered * (1 - share)
    rank = -(-(load.offered * share).numerator // (load.offered * share).denominator)
    value_us, reason = None, None
    if beyond < BEYOND_MIN:
        reason = f"{load.offered} superchunks leave {float(beyond):.3g} beyond it, fewer than {BEYOND_MIN}"
    elif rank > histogram.total:
        reason = f"{load.offered - histogram.total} of {load.offered} superchunks never became durable"
    else:
        value_us = histogram.value_of_rank(rank) * unit_us
        if load.late > beyond / 2 and load.worst_lateness_us > value_us / 2:
            value_us, reason = None, LATE.format(late=load.late, worst=load.worst_lateness_us / 1000)
    return {"percentile": percentile, "us": value_us, "reason": reason}


def value_of(point: dict[str, Any], percentile: float) -> float | None:
    """The percentile of a point of results/latency_under_load.json in us."""
    return next((one["us"] for one in point["percentiles"] if one["percentile"] == percentile), None)


def why_masked(status: str, error: str | None, achieved_fraction: float) -> str | None:
    """Why a point does not count; None when it does. A drive that fails or loses is a result, a slow source is not."""
    if status != "complete":
        return f"the record ended as {status}: {error or 'no reason given'}"
    if achieved_fraction < SOURCE_ACHIEVED_MIN:
        return f"the source offered only {achieved_fraction:.2%} of what was due"
    return None


def judged_rate(knee: dict[str, Any], demand_bytes_per_s: float) -> float | None:
    """The sustained rate as far as a requirement may be held against it. Without a knee it is only a lower bound: below the
    demand it must not be held against the candidate, which may well do more."""
    sustained: float | None = knee["sustained_bytes_per_s"]
    if sustained is None or (knee["knee_bytes_per_s"] is None and sustained < demand_bytes_per_s * (1 - 1e-9)):
        return None
    return sustained


def find_knee(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """{sustained_bytes_per_s, knee_bytes_per_s, why, rule} of points ascending in their offered rate.

    Both rates are what was asked for. `knee_bytes_per_s` None: not reached; the sustained rate then is a lower bound."""
    lowest_us: float | None = None
    sustained: float | None = None
    for point in points:
        asked = point["asked_bytes_per_s"]
        if not point["admissible"]:
            return _knee(sustained, None, f"not looked for beyond a point that does not count: {point['reason']}")
        tail_us = value_of(point, KNEE_PERCENTILE)
        why = _beyond(point, tail_us, lowest_us)
        if why:
            return _knee(sustained, asked, why)
        if tail_us is None:
            return _knee(sustained, None, f"not looked for beyond a point without a p{KNEE_PERCENTILE:g}")
        lowest_us = tail_us if lowest_us is None else min(lowest_us, tail_us)
        sustained = asked
    return _knee(sustained, None, "not reached: the highest rate of the ladder is still below it")


def _beyond(point: dict[str, Any], tail_us: float | None, lowest_us: float | None) -> str | None:
    if point["lost"]:
        return f"{point['lost']} superchunks are lost"
    if point["busy_count"]:
        return f"the dataflow is BUSY {point['busy_count']} time{'s' if point['busy_count'] != 1 else ''}"
    if tail_us is not None and lowest_us is not None and tail_us > KNEE_FACTOR * lowest_us:
        return f"p{KNEE_PERCENTILE:g} is {tail_us / 1000:.3g} ms, {tail_us / lowest_us:.3g} times its lowest below"
    return None


def _knee(sustained: float | None, knee: float | None, why: str) -> dict[str, Any]:
    return {"sustained_bytes_per_s": sustained, "knee_bytes_per_s": knee, "why": why, "rule": KNEE_RULE}


def summary(points: Sequence[Document], demand_bytes_per_s: float) -> tuple[Document, dict[str, str]]:
    """(what results/latency_under_load.json says beside its points, why a metric has no value by metric)."""
    knee = find_knee(points)
    judged, reasons = judged_rate(knee, demand_bytes_per_s), dict[str, str]()
    if judged is None and knee["knee_bytes_per_s"] is None:
        reasons[f"{NAME}.sustained_rate"] = f"no rate that can be judged: the knee was {knee['why']}"
    elif judged is None:
        reasons[f"{NAME}.sustained_rate"] = f"even at the lowest rate of the ladder {knee['why']}"
    at = next((one for one in points if one["load_factor"] == 1), None)
    why = at["reason"] if at else "the ladder has no rung at the demand (load factor 1)"
    counted = at if at and at["admissible"] else {"lost": None, "percentiles": []}
    given, row = {one["percentile"]: one for one in counted["percentiles"]}, dict[str, Any]()
    for name, percentile in AT_DEMAND.items():
        one = given.get(percentile, {"us": None, "reason": why})
        row[f"{name}_us"] = one["us"]
        if one["us"] is None:
            reasons[f"{NAME}.{name}_at_demand"] = str(one["reason"])
    row["lost"] = counted["lost"]
    if row["lost"] is None:
        reasons[f"{NAME}.lost_at_demand"] = str(why)
    return {"knee": {**knee, "judged_bytes_per_s": judged}, "at_demand": row}, reasons


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """A rung beyond the demand may be more than the source can offer: no requirement rests on it."""
    points = document["points"]
    yield from rows("load factor", plan.parameters["load_factors"], column(points, "load_factor"), "{:g}".format)
    needed = [one for one in points if one["load_factor"] <= 1]
    yield from agreeing("load factor", ((f"{one['load_factor']:g}", one) for one in points))
    yield from counting("load factor", ((f"{one['load_factor']:g}", one) for one in needed))
    demand = Demand.of(document, plan.scale, plan.parameters["seconds_per_point"]).offered_bytes_per_s
    made, _ = summary(points, demand)
    yield from follows("the knee", document["knee"], made["knee"])
    yield from follows("the row at the demand", document["at_demand"], made["at_demand"])
    for one in points:
        name = f"load factor {one['load_factor']:g}"
        yield from rows(f"{name}: percentile", PERCENTILES, column(one["percentiles"], "percentile"), "{:g}".format)
        odd = [
            each["percentile"] for each in one["percentiles"] if (each["us"] is None) != (each["reason"] is not None)
        ]
        if odd:
            yield f"{name}: percentile {odd[0]:g} has neither a value nor a reason, or both", INVALIDATES
        yield from follows(f"{name}: what was offered", one["offered"], one["stored"] + one["lost"])
        if not math.isclose(one["asked_bytes_per_s"], one["load_factor"] * demand, rel_tol=1e-9):
            yield (
                f"{name}: {in_digits(one['asked_bytes_per_s'], 9)} B/s were asked for instead of "
                f"{in_digits(one['load_factor'] * demand, 9)} B/s",
                INVALIDATES,
            )


def _rung(asked: Asked, point: Document) -> float | None:
    """Superchunks of one offered load; a masked one was not offered in full, and says so."""
    if point.get("admissible") is False:
        return None
    each = asked.rate() * asked.scale / float(asked.own["superchunk_bytes"])
    return each * float(point["load_factor"]) * float(asked.own["seconds_per_point"])


MODEL = Model(
    coverage,
    (
        Count("links", stated("links")),
        Count("superchunk_bytes", stated("superchunk_bytes")),
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("points[].offered", _rung),
    ),
    times=once,
    result=LatencyUnderLoad,
)
