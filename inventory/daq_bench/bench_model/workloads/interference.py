"""Tells how much one activity suffers from another: ratios of paired runs, and the proof that the two really ran together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any, Literal

import scipy

from daq_bench.bench_model.documents.struct import Closed, Document, Ordinal, Positive, as_document
from daq_bench.bench_model.documents.struct import Count as Whole
from daq_bench.bench_model.workloads.model import Count, Model
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, column, counting, follows, rows

CONFIDENCE = 0.95
PAIRS_FOR_INTERVAL = 3  # Student's interval of two values spans decades and says nothing
WINDOW_S, WINDOWS_MAX = 1.0, 20  # [P] a disturber must get on within each second, of long runs within each twentieth

Sample = Sequence[float]  # (time s, CPU s, bytes read, bytes written), the last three since its start
COLUMNS = {"cpu": 1, "read": 2, "write": 3}


class Slowdown(Closed, frozen=True):
    """Over n pairs; 1 is no slowdown, 2 is half as fast or twice as late.

    `low` and `high`: 95 % interval of the mean, null below 3 pairs."""

    n: Ordinal
    mean: float
    median: float
    least: float
    most: float
    low: float | None
    high: float | None


class Activity(Closed, frozen=True):
    name: str
    measure: str
    unit: str
    larger_is_better: bool
    command: list[str]


class Run(Closed, frozen=True):
    """`value`: in the victim's unit; null when the run does not count; `started_s`: s since the epoch, the candidate's clock"""

    value: float | None
    reason: str | None
    started_s: float
    ended_s: float
    more: dict[str, Any]


class Pair(Closed, frozen=True):
    round: Ordinal
    alone_first: bool
    solo: Run
    disturbed: Run
    slowdown: float | None
    reason: str | None


class Cell(Closed, frozen=True):
    """`slowdown`: 1: none; over the pairs that count, with the 95 % interval of the geometric mean"""

    victim: str
    disturber: str
    pairs: list[Pair]
    slowdown: Slowdown | None
    reason: str | None


class Burst(Closed, frozen=True):
    disturber: str
    n: Whole
    masked: Whole
    offered_superchunks: Whole
    lost_superchunks: int | None
    busy_count: int | None
    buffer_needed_bytes: int | None


class Interference(Closed, frozen=True):
    """results/interference.json: how much activities of a DAQ day slow each other down. `seconds`: length of a run, s"""

    schema_version: Literal[1]
    seconds: Positive
    rounds: Ordinal
    lead_s: float
    sample_s: float
    burst_bytes_per_s: float
    activities: list[Activity]
    cells: list[Cell]
    burst: list[Burst]
    reasons: dict[str, str]


def slowdown_of(ratios: Sequence[float]) -> Slowdown | None:
    """Geometric mean of the pairs' ratios with Student's interval on their logarithms; None without a pair.

    Each ratio is of two runs that follow one another, their order alternating from pair to pair: what drifts slowly
    speeds one pair up and the next down, and cancels in the mean."""
    if not ratios:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    mean, n = fmean(logs), len(logs)
    half = None
    if n >= PAIRS_FOR_INTERVAL:
        half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * stdev(logs) / math.sqrt(n)
    return Slowdown(
        n=n,
        mean=math.exp(mean),
        median=median(ratios),
        least=min(ratios),
        most=max(ratios),
        low=math.exp(mean - half) if half is not None else None,
        high=math.exp(mean + half) if half is not None else None,
    )


def ratio(solo: float, disturbed: float, larger_is_better: bool) -> float:
    """Says how much worse `disturbed` is. Both must be above zero."""
    return solo / disturbed if larger_is_better else disturbed / solo


def overlap_problem(
    name: str, samples: Sequence[Sample], work: str, start_s: float, end_s: float, alive_at_end: bool
) -> str | None:
    """Why it is not proven that the disturber was at work during all of the victim's time; None when it is."""
    if not alive_at_end:
        return f"{name} had ended before the measurement was over"
    if not samples or samples[0][0] > start_s:
        return f"{name} had not begun when the measurement did"
    windows = max(1, min(WINDOWS_MAX, int((end_s - start_s) / WINDOW_S)))
    edges = [start_s + (end_s - start_s) * index / windows for index in range(windows + 1)]
    counts = [_count_at(samples, COLUMNS[work], edge) for edge in edges]
    idle = sum(1 for before, after in pairwise(counts) if after <= before)
    if idle:
        return f"{name} did nothing in {idle} of {windows} parts of the measurement"
    return None


def _count_at(samples: Sequence[Sample], column: int, moment_s: float) -> float:
    """The disturber's count as last sampled by then; the first sample is not later than any moment asked for."""
    return max((sample for sample in samples if sample[0] <= moment_s), key=lambda sample: sample[0])[column]


BURST = "burst"
ALL = "all"  # every disturber together


def disturbers_of(victim: str, asked: Sequence[str]) -> list[str]:
    """Each other activity alone, and all of them where that is more than one."""
    others = [name for name in asked if name != victim]
    return [*others, ALL] if len(others) > 1 else others


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    parameters, cells = plan.parameters, document["cells"]
    planned = [(one, other) for one in parameters["victims"] for other in disturbers_of(one, parameters["disturbers"])]
    yield from rows("cell", planned, [(one["victim"], one["disturber"]) for one in cells], " beside ".join)
    better = {one["name"]: one["larger_is_better"] for one in document["activities"]}
    for cell in cells:
        what, pairs = f"{cell['victim']} beside {cell['disturber']}: pair", cell["pairs"]
        yield from rows(what, range(1, plan.repetitions + 1), column(pairs, "round"))
        yield from counting(what, ((str(pair["round"]), pair) for pair in pairs))
        for pair in pairs:
            whole = "; ".join(
                f"{kind}: {pair[kind]['reason']}" for kind in ("solo", "disturbed") if pair[kind]["reason"] is not None
            )
            yield from follows(f"{what} {pair['round']}: the reason", pair["reason"] or "", whole)
            yield from _slowdown(f"{what} {pair['round']}", pair, better[cell["victim"]])
        found = slowdown_of([pair["slowdown"] for pair in pairs if pair["slowdown"] is not None])
        yield from follows(f"{what}: the slowdown", cell["slowdown"], as_document(found) if found else None)
        if (cell["reason"] is None) is not (cell["slowdown"] is not None):
            yield f"{what}: a slowdown and a reason why there is none contradict each other", INVALIDATES
    if BURST in parameters["victims"]:
        yield from _bursts(plan, document)


def _slowdown(what: str, pair: Document, larger_is_better: bool) -> Iterator[Problem]:
    """A run that counts has a value, and the slowdown is that of the two."""
    values = [pair[kind]["value"] for kind in ("solo", "disturbed")]
    for kind, value in zip(("solo", "disturbed"), values, strict=True):
        if (value is None) is (pair[kind]["reason"] is None):
            yield f"{what}: the {kind} run has the value {value} and the reason {pair[kind]['reason']!r}", INVALIDATES
    made = None if None in values else ratio(values[0], values[1], larger_is_better)
    yield from follows(f"{what}: its slowdown", pair["slowdown"], made)


def losses_of(bursts: Sequence[Document]) -> Document:
    """The losses of all bursts together; None where there is none."""
    return {
        "offered_superchunks": sum(one["offered_superchunks"] for one in bursts),
        "lost_superchunks": sum(one["lost_superchunks"] for one in bursts) if bursts else None,
        "busy_count": sum(one["busy_count"] for one in bursts) if bursts else None,
        "buffer_needed_bytes": max((one["buffer_needed_bytes"] for one in bursts), default=None),
    }


def _bursts(plan: Plan, document: Document) -> Iterator[Problem]:
    """The burst's losses, alone and beside each disturber, over the runs of its cells."""
    mine = [cell for cell in document["cells"] if cell["victim"] == BURST]
    planned = {"none": ("solo", mine), **{cell["disturber"]: ("disturbed", [cell]) for cell in mine}}
    yield from rows("the burst beside", list(planned), column(document["burst"], "disturber"))
    for row in document["burst"]:
        kind, cells = planned.get(row["disturber"], ("solo", []))
        runs = [pair[kind] for cell in cells for pair in cell["pairs"]]
        told = [run["more"] for run in runs if run["reason"] is None]
        counts = ("offered_superchunks", "lost_superchunks", "busy_count", "buffer_needed_bytes")
        if any(type(one[key]) is not int for one in told for key in counts):
            yield f"a burst beside {row['disturber']} has a count that is no whole number", INVALIDATES
        if row["n"] != plan.repetitions * len(cells):
            yield f"{row['n']} of {plan.repetitions * len(cells)} bursts beside {row['disturber']} count"
        made = losses_of(told)
        yield from follows(f"the burst beside {row['disturber']}", {key: row[key] for key in made}, made)


MODEL = Model(
    coverage,
    (
        Count("seconds", lambda asked, _: asked.duration_s),
        Count("rounds", lambda asked, _: asked.repetitions),
        Count("burst_bytes_per_s", lambda asked, _: asked.rate(BURST) * asked.scale),
    ),
    result=Interference,
)
