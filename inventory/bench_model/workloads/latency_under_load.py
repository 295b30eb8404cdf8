"""Latency against offered load, open loop: percentiles of all that was offered, and the knee of the curve. Pure.

Time counts from a superchunk's *intended* arrival, so that a stall delays everything that was due meanwhile and not only
the one write that a closed loop would have waited for (coordinated omission). A lost superchunk never arrived at all: it counts as
later than everything that was stored, and a percentile that falls among the lost has no value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bench_model.statistics import hdr

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
