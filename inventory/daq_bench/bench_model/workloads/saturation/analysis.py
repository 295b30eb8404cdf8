"""results/saturation_analysis.json: where the rate of one sequential pass over a fresh target falls, and what it is before and after.

A pure function of results/saturation.json. A *cliff* is a fall of the rate by a fifth or more that is abrupt and lasts. No cliff is a
result; a pass that cannot tell (too few samples, too much scatter, a fall at its very edge, a slow decline) says so and has no figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.statistics.change_points import PENALTY, Noise, noise_of, segments
from daq_bench.bench_model.workloads.saturation import passes
from daq_bench.bench_model.workloads.saturation.passes import Trace

NAME, FILE = "results/saturation_analysis.json", "results/saturation.json"
CLIFF, NONE, UNKNOWN = "cliff", "none", "unknown"
SAMPLES_MIN = 50  # [P] as for the interval of a series (docs/statistics.md)
FALL_MIN = 0.2  # [P] of the rate: what a buyer would call a cliff
EDGE_SHARE = (
    0.01  # [P] of the bytes: a fall so near to the begin or the end cannot be told from a start, a drain or a dip
)
EDGE_SAMPLES = 8  # [P] and at least so many samples
NEAR_SHARE = 0.05  # [P] of the bytes on either side, between which an abrupt fall shows and a slow decline does not
SLOWEST_SHARE = 0.01  # of the bytes: the stretch of which the slowest is named
SLOWEST_SAMPLES = 3  # [P] that such a stretch must last for
# The 95 % quantile of the likelihood ratio of a place of change (Hansen, Sample Splitting and Threshold Estimation, Econometrica 68, 2000).
PLACE_95 = 7.35
METRICS = (
    "bytes_before_cliff",
    "rate_before_cliff",
    "sustained_rate",
    "slowest_rate",
    "early_cliffs",
    "cliffs",
    "duration",
)
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Cliff:
    """The rate falls after sample `at` - 1; by 95 % the place lies between the samples `first` and `last`."""

    at: int
    first: int
    last: int


@dataclass(frozen=True)
class Found:
    """The finding of a pass. `reason`: why it says nothing; empty where `finding` is cliff or none."""

    finding: str
    cliffs: tuple[Cliff, ...] = ()
    reason: str = ""


def document(saturation: dict[str, Any]) -> dict[str, Any]:
    """results/saturation_analysis.json."""
    rows = [_row(saturation, one) for one in saturation["repetitions"]]
    reasons: dict[str, str] = {}
    for row in rows:
        for name in METRICS:
            if row[name] is None:
                reasons.setdefault(f"saturation.{name}", f"pass {row['number']}: {_why(name, row)}")
    return {
        "schema_version": 1,
        "rule": rule(),
        "cliff_free_bytes": saturation["cliff_free_bytes"],
        "repetitions": rows,
        "reasons": reasons,
    }


def rule() -> str:
    fall, near = f"{100 * FALL_MIN:g} %", f"{100 * NEAR_SHARE:g} %"
    return (
        f"a cliff is a fall of the rate by {fall} or more that lasts to the end of the pass, or to the next cliff, and that shows between "
        f"the {near} of the bytes before it and the {near} after it; its place is known to within the interval that is named (95 %)"
    )


def _row(saturation: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "number": one["number"],
        "finding": UNKNOWN,
        "reason": None,
        "asked_bytes": one["asked_bytes"],
        "written_bytes": one["written_bytes"],
        "unwritten_bytes": one["asked_bytes"] - one["written_bytes"],
        "capacity_bytes": one["capacity_bytes"],
        "step_s": None,
        "throughput_bytes_per_s_samples": [],
        "cliff_list": [],
        "before": None,
        "sustained": None,
        "slowest": None,
        **dict.fromkeys(METRICS),
    }
    unusable = passes.unusable(one)
    if unusable:
        return row | {"reason": unusable}
    trace = passes.trace_of(one)
    row |= {
        "duration": one["write_s"],
        "step_s": trace.step_s,
        "throughput_bytes_per_s_samples": trace.rates.tolist(),
        "slowest": slowest(trace),
    }
    row["slowest_rate"] = row["slowest"]["bytes_per_s"] if row["slowest"] else None
    floor = saturation["io_depth"] * saturation["block_bytes"] / trace.step_s / 2
    found = find(trace, floor)
    if found.finding == UNKNOWN:
        return row | {"reason": found.reason}
    cliffs = [_cliff(trace, one, found.cliffs, number) for number in range(len(found.cliffs))]
    # A sample in the interval of a cliff's place may belong to either side, and counts for neither.
    first = max(1, found.cliffs[0].first - 1) if found.cliffs else len(trace.rates)
    last = min(found.cliffs[-1].last + 1, len(trace.rates) - 1) if found.cliffs else 0
    # A record is written once: what a larger drive takes after it makes up for no slow second of it.
    first = min(first, max(1, int(np.searchsorted(trace.bytes, saturation["cliff_free_bytes"]))))
    before, sustained = _level(trace, 0, first), _level(trace, last, len(trace.rates))
    return row | {
        "finding": found.finding,
        "cliff_list": cliffs,
        "cliffs": len(cliffs),
        "bytes_before_cliff": cliffs[0]["interval_bytes"][0] if cliffs else None,
        "before": before,
        "rate_before_cliff": before["bytes_per_s"],
        "sustained": sustained,
        "sustained_rate": sustained["bytes_per_s"],
        "early_cliffs": _early(cliffs, saturation["cliff_free_bytes"], one["written_bytes"]),
    }


def _why(name: str, row: dict[str, Any]) -> str:
    """Why one figure of a pass has no value."""
    if name == "slowest_rate" and row["step_s"] is not None:
        return f"{100 * SLOWEST_SHARE:g} % of the bytes took less than {SLOWEST_SAMPLES} samples of {row['step_s']:.3g} s. Lower sample_s"
    if row["reason"]:
        return str(row["reason"])
    if name == "bytes_before_cliff":
        return f"no cliff was found in {decimal_label(row['written_bytes'])}"
    if row["cliff_list"]:
        low, high = row["cliff_list"][0]["interval_bytes"]
        return (
            f"the first cliff lies between {decimal_label(low)} and {decimal_label(high)}, which does not decide about cliff_free_size. "
            "More samples (a lower sample_s) narrow it"
        )
    return f"no cliff was found, but only {decimal_label(row['written_bytes'])} were written, which is less than cliff_free_size"


def _early(cliffs: Sequence[dict[str, Any]], free_bytes: int, written: int) -> int | None:
    """1 where the first cliff surely lies before `free_bytes`, 0 where it surely does not, None where neither is sure."""
    if not cliffs:
        return 0 if written >= free_bytes else None
    low, high = cliffs[0]["interval_bytes"]
    if low >= free_bytes:
        return 0
    return 1 if high < free_bytes else None


def _level(trace: Trace, start: int, end: int) -> dict[str, Any]:
    return {"bytes_per_s": trace.rate(start, end), "samples": trace.rates[start:end].tolist()}


def _cliff(trace: Trace, one: dict[str, Any], cliffs: Sequence[Cliff], number: int) -> dict[str, Any]:
    """One cliff with the levels between its neighbours."""
    found = cliffs[number]
    start = cliffs[number - 1].at if number else 0
    end = cliffs[number + 1].at if number + 1 < len(cliffs) else len(trace.rates)
    before, after = trace.rate(start, found.at), trace.rate(found.at, end)
    return {
        "at_bytes": round(float(trace.bytes[found.at])),
        "interval_bytes": [
            math.floor(trace.bytes[max(0, found.first - 1)]),
            math.ceil(trace.bytes[min(len(trace.rates), found.last + 1)]),
        ],
        "share_of_capacity": float(trace.bytes[found.at]) / one["capacity_bytes"],
        "at_s": float(trace.times[found.at]),
        "before_bytes_per_s": before,
        "after_bytes_per_s": after,
        "fall_fraction": 1 - after / before,
    }


def find(trace: Trace, floor: float) -> Found:
    """The cliffs of a pass. `floor`: the least standard deviation of a sample that is believed, B/s."""
    count = len(trace.rates)
    if count < SAMPLES_MIN:
        return Found(
            UNKNOWN, reason=f"{count} samples are fewer than the {SAMPLES_MIN} that show a cliff. Lower sample_s"
        )
    noise = noise_of(trace.rates, floor)
    cuts = [one.start for one in segments(trace.rates, noise)[1:]]
    edge = next((at for at in cuts if _at_edge(trace, at, 0, count) and _falls(trace, at, 0, count)), None)
    places = _search(trace, cuts, 0, count)
    if edge is not None and (edge < count / 2 or not places):
        where = decimal_label(round(float(trace.bytes[edge])))
        text = f"the rate falls at {where}, so near to the {'begin' if edge < count / 2 else 'end'} of the pass that it may be no cliff"
        return Found(UNKNOWN, reason=text)
    if places:
        ends = [0, *places, count]
        return Found(CLIFF, tuple(_placed(trace, noise, *ends[at : at + 3]) for at in range(len(places))))
    if any(_lasts(trace, at, 0, count) for at in cuts if not _at_edge(trace, at, 0, count)):
        return Found(
            UNKNOWN,
            reason=f"the rate falls by {100 * FALL_MIN:g} % or more, but slowly: no place is a cliff, and no level lasts",
        )
    return Found(NONE) if not (blind := _blind(trace, noise)) else Found(UNKNOWN, reason=blind)


def _blind(trace: Trace, noise: Noise) -> str:
    """Why a cliff might have been there unseen; empty where it would have been seen wherever it has `NEAR_SHARE` on either side."""
    count = len(trace.rates)
    part = max(EDGE_SAMPLES, NEAR_SHARE * count)
    gain = (FALL_MIN * trace.rate(0, count)) ** 2 * part * (count - part) / count
    if gain > PENALTY * noise.long_run_variance * math.log(count):
        return ""
    text = f"the rate scatters so much that a fall by {100 * FALL_MIN:g} % could have stayed unseen"
    return f"{text}. A longer pass shows more"


def _search(trace: Trace, cuts: Sequence[int], start: int, end: int) -> list[int]:
    """The places of cliffs between two samples: the clearest, then those on either side of it."""
    inside = [at for at in cuts if start < at < end and not _at_edge(trace, at, start, end)]
    falls = [at for at in inside if _falls(trace, at, start, end)]
    if not falls:
        return []

    def gain(at: int) -> float:
        return float((trace.rate(start, at) - trace.rate(at, end)) ** 2 * (at - start) * (end - at))

    best = max(falls, key=gain)
    return [*_search(trace, cuts, start, best), best, *_search(trace, cuts, best, end)]


def _at_edge(trace: Trace, at: int, start: int, end: int) -> bool:
    few = EDGE_SHARE * trace.bytes[-1]
    sides = (trace.bytes[at] - trace.bytes[start], trace.bytes[end] - trace.bytes[at])
    return bool(min(sides) < few or min(at - start, end - at) < EDGE_SAMPLES)


def _falls(trace: Trace, at: int, start: int, end: int) -> bool:
    """It lasts, and it is abrupt."""
    near = NEAR_SHARE * trace.bytes[-1]
    low = max(start, int(np.searchsorted(trace.bytes, trace.bytes[at] - near)))
    high = min(end, int(np.searchsorted(trace.bytes, trace.bytes[at] + near, side="right")))
    return _lasts(trace, at, start, end) and _lasts(trace, at, min(low, at - 1), max(high, at + 1))


def _lasts(trace: Trace, at: int, start: int, end: int) -> bool:
    before = trace.rate(start, at)
    return before > 0 and trace.rate(at, end) <= (1 - FALL_MIN) * before


def _placed(trace: Trace, noise: Noise, start: int, at: int, end: int) -> Cliff:
    """The places that the samples between two neighbours do not refute: a likelihood ratio of two levels."""
    values = trace.rates[start:end] - trace.rates[start:end].mean()
    sums, n = np.cumsum(values)[:-1], len(values)
    number = np.arange(1, n)
    explained = sums**2 / number + sums**2 / (
        n - number
    )  # the sum of squares that a step there explains; the total is 0 by centring
    kept = np.flatnonzero(explained[at - start - 1] - explained <= PLACE_95 * noise.long_run_variance) + 1 + start
    return Cliff(at, int(min(kept.min(), at)), int(max(kept.max(), at)))


def slowest(trace: Trace) -> dict[str, Any] | None:
    """The slowest stretch of `SLOWEST_SHARE` of the bytes; None where it lasts for too few samples to be known.

    Bytes are taken to come evenly within a sample, so that the slowest stretch begins or ends where a sample does."""
    length = SLOWEST_SHARE * float(trace.bytes[-1])
    starts = [one for one in trace.bytes if one + length <= trace.bytes[-1]]
    ends = [one - length for one in trace.bytes if one >= length]
    places = np.unique(np.asarray([*starts, *ends]))
    took = trace.reached(places + length, last=True) - trace.reached(places, last=False)
    worst = int(np.argmax(took))
    if length / trace.rate(0, len(trace.rates)) < SLOWEST_SAMPLES * trace.step_s:
        return None
    begin = float(places[worst])
    return {
        "bytes_per_s": length / float(took[worst]),
        "from_bytes": round(begin),
        "to_bytes": round(begin + length),
    }
