"""Tells how far samples lie from the grid on which they are due, by their own time stamps. Pure.

The grid's period is known and its phase is not: it is where the samples lie densest, and a deviation to either side counts. A grid
time without a sample counts as a deviation of one period: to miss a sample must not look better than to take it late."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy
import numpy.typing

from daq_bench.bench_model.base.errors import BenchError

NS = 1_000_000_000
SAMPLES_MIN = 20
ARC = 0.2  # of the period


@dataclass(frozen=True)
class Jitter:
    """Deviations in seconds; `expected` grid times, `missed` of them without a sample."""

    expected: int
    missed: int
    p50_s: float
    p99_s: float
    max_s: float


def times_of(lines: Iterable[str], measurement: str) -> list[int]:
    """The distinct time stamps, ns, ascending, of one measurement's line-protocol lines."""
    return sorted(
        {int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{measurement},", f"{measurement} "))}
    )


def jitter(times_ns: Sequence[int], period_s: float) -> Jitter:
    """Raises BenchError for too few samples for a percentile."""
    if len(times_ns) < SAMPLES_MIN:
        raise BenchError(f"{len(times_ns)} samples are too few for their jitter, at least {SAMPLES_MIN} are needed")
    period_ns = period_s * NS
    since = numpy.array([time_ns - times_ns[0] for time_ns in times_ns], dtype=float)
    since -= _phase(since, period_ns)
    numbers = numpy.rint(since / period_ns)
    taken: dict[int, float] = {}  # the nearer one of two samples next to a grid time belongs to it
    for number, deviation in zip(numbers.astype(int), numpy.abs(since - numbers * period_ns) / NS, strict=True):
        taken[int(number)] = min(float(deviation), taken.get(int(number), math.inf))
    expected = max(taken) - min(taken) + 1
    missed = expected - len(taken)
    deviations = [*taken.values(), *[period_s] * missed]
    return Jitter(
        expected=expected,
        missed=missed,
        p50_s=float(numpy.percentile(deviations, 50)),
        p99_s=float(numpy.percentile(deviations, 99, method="higher")),
        max_s=max(deviations),
    )


def _phase(since: numpy.typing.NDArray[numpy.float64], period_ns: float) -> float:
    """Median of the residues in the fifth of the period that holds most of them."""
    residues = numpy.sort(since % period_ns)
    twice = numpy.concatenate([residues, residues + period_ns])
    ends = numpy.searchsorted(twice, residues + ARC * period_ns, side="right")
    counts = ends - numpy.arange(len(residues))
    start = int(numpy.argmax(counts))
    return float(numpy.median(twice[start : ends[start]]))
