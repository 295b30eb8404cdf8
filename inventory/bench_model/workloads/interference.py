"""How much one activity suffers from another: ratios of paired runs, and the proof that the two really ran together. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Any

from scipy.stats import t as student_t

CONFIDENCE = 0.95
PAIRS_FOR_INTERVAL = 3  # Student's interval of two values spans decades and says nothing
WINDOW_S, WINDOWS_MAX = 1.0, 20  # [P] a disturber must get on within each second, of long runs within each twentieth

Sample = Sequence[float]  # (time s, CPU s, bytes read, bytes written), the last three since its start
COLUMNS = {"cpu": 1, "read": 2, "write": 3}


@dataclass(frozen=True)
class Slowdown:
    """Over n pairs; 1 is no slowdown, 2 is half as fast or twice as late.

    `low` and `high`: interval of the mean, null below 3 pairs."""

    n: int
    mean: float
    median: float
    least: float
    most: float
    low: float | None
    high: float | None

    def as_document(self) -> dict[str, Any]:
        return asdict(self)


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
        half = float(student_t.ppf((1 + CONFIDENCE) / 2, n - 1)) * stdev(logs) / math.sqrt(n)
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
    """How much worse `disturbed` is. Both must be above zero."""
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
