"""Tells what the range of all samples decides, and how often it errs: runs with and without that rule, through the verdict's own functions.

`python inventory/studies/range_rates.py [--runs N] [--write docs/statistics.md]` writes the tables between the markers of that
document. The bound is 100; a run has six repetitions of 360 samples at 4 Hz. The truth is what the process gives in the long run, with its
rare states, and not what one run happened to see."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unittest.mock import patch

import numpy as np
from error_rates import BOUND, OF_SERIES, SEED, Array, Generator, Statistic, autoregressive, publish, rates, requirement

from daq_bench.bench_model.evidence.measured import Measured
from daq_bench.bench_model.statistics.bootstrap import mean_interval
from daq_bench.bench_model.verdict import decision
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED, by_interval, decide, estimate

BEGIN, END = "<!-- range: begin -->", "<!-- range: end -->"
REPETITIONS, SAMPLES, HERTZ = 6, 360, 4.0
STATISTICS: tuple[Statistic, ...] = ("median", "min")
BELOW = (0.1, 1.0)  # percent by which a bad candidate misses the bound
NOISE = 0.005


@dataclass(frozen=True)
class Shape:
    """`make(generator)`: the samples of one run's repetitions, with a long-run mean of 1 where the truth is asked for."""

    name: str
    make: Callable[[Generator], Array]


def noisy(generator: Generator, shape: Array, deviation: float = NOISE) -> Array:
    made: Array = shape * (1 + deviation * generator.standard_normal((REPETITIONS, SAMPLES)))
    return made


def cliff(high: float, low: float) -> Callable[[Generator], Array]:
    """Each repetition begins in the cache, and leaves it at a moment between a fifth and three fifths of its time."""

    def make(generator: Generator) -> Array:
        end = generator.uniform(0.2, 0.6, (REPETITIONS, 1))
        return noisy(generator, np.where(np.arange(SAMPLES) / SAMPLES < end, high, low))

    return make


def fall(first: float, last: float) -> Callable[[Generator], Array]:
    return lambda generator: noisy(generator, np.linspace(first, last, SAMPLES))


def saw_tooth(high: float, low: float, period_s: float = 30.0) -> Callable[[Generator], Array]:
    """Garbage collection: the rate falls over the period and recovers at once."""

    def make(generator: Generator) -> Array:
        phase = (generator.random((REPETITIONS, 1)) + np.arange(SAMPLES) / HERTZ / period_s) % 1
        return noisy(generator, high - (high - low) * phase)

    return make


def remembering(level: float, deviation: float, correlation: float) -> Callable[[Generator], Array]:
    return lambda generator: level + deviation * autoregressive(correlation)(generator, REPETITIONS, SAMPLES)


def one_wandering(deviation: float, correlation: float, noise: float) -> Callable[[Generator], Array]:
    """One process through all repetitions, which therefore are no independent ones; with white noise on it."""
    wander = autoregressive(correlation)

    def make(generator: Generator) -> Array:
        slow = wander(generator, 1, REPETITIONS * SAMPLES).reshape(REPETITIONS, SAMPLES)
        return noisy(generator, 1 + deviation * slow, noise)

    return make


def stall(every_s: float, for_s: float = 5.0) -> Callable[[Generator], Array]:
    """Every `every_s` the drive gives a tenth of its rate for `for_s`."""

    def make(generator: Generator) -> Array:
        phase = (generator.random((REPETITIONS, 1)) * every_s + np.arange(SAMPLES) / HERTZ) % every_s
        level = np.where(phase < for_s, 0.1, 1.0) / (1 - 0.9 * for_s / every_s)
        return noisy(generator, level, 0.0001)

    return make


def good_or_bad(share: float, loss: float = 0.3) -> Callable[[Generator], Array]:
    """A `share` of the repetitions gives less by `loss`."""

    def make(generator: Generator) -> Array:
        bad = generator.random((REPETITIONS, 1)) < share
        return noisy(generator, np.where(bad, 1 - loss, 1.0) / (1 - loss * share), 0.0001)

    return make


def scattering(deviation: float) -> Callable[[Generator], Array]:
    return lambda generator: noisy(generator, 1 + deviation * generator.standard_normal((REPETITIONS, 1)))


GOOD = (
    Shape("cache cliff, 170 to 120", cliff(170, 120)),
    Shape("cache cliff, 130 to 110", cliff(130, 110)),
    Shape("fall from 130 to 125", fall(130, 125)),
    Shape("saw-tooth, 135 to 118 in 30 s", saw_tooth(135, 118)),
    Shape("AR(1) 0.95 at 130, sd 6", remembering(130, 6, 0.95)),
    Shape("AR(1) 0.95 at 112, sd 6 (some samples below 100)", remembering(112, 6, 0.95)),
    Shape("white at 130, sd 6", remembering(130, 6, 0.0)),
)
BAD = (
    # a cliff's mean time in the cache is 0.4 of a repetition
    Shape("cache cliff by a sixth", cliff(1.2 / (0.4 * 1.2 + 0.6), 1 / (0.4 * 1.2 + 0.6))),
    Shape("fall by 4 %", fall(1.02, 0.98)),
    Shape("saw-tooth, 14 % deep", saw_tooth(1.07, 0.93)),
    Shape("AR(1) 0.95, sd 5 %", remembering(1, 0.05, 0.95)),
    Shape("AR(1) 0.999, sd 5 %, each repetition its own", remembering(1, 0.05, 0.999)),
    Shape("scatter of 1 % between repetitions", scattering(0.01)),
    Shape("scatter of 3 % between repetitions", scattering(0.03)),
    Shape("stall of 5 s every 120 s", stall(120)),
    Shape("stall of 5 s every 600 s", stall(600)),
    Shape("stall of 5 s every 3600 s", stall(3600)),
    Shape("5 % of repetitions 30 % slower", good_or_bad(0.05)),
    Shape("10 % of repetitions 30 % slower", good_or_bad(0.10)),
    Shape("30 % of repetitions 30 % slower", good_or_bad(0.30)),
    Shape("one AR(1) 0.9999 through all repetitions, sd 5 %", one_wandering(0.05, 0.9999, 0.0)),
    Shape("the same, with white noise of 5 %", one_wandering(0.05, 0.9999, 0.05)),
)


@lru_cache(maxsize=REPETITIONS)
def _once(series: tuple[float, ...], confidence: float, seed: int) -> object:
    """One repetition's interval serves each statistic."""
    return mean_interval(series, confidence, seed)


def both(series: Array, statistic: Statistic) -> tuple[str, str]:
    """The decision without the range, and with it."""
    measured = Measured(tuple(series.mean(axis=1).tolist()), series=tuple(map(tuple, series.tolist())))
    asked = requirement(statistic)
    with patch.object(decision, "mean_interval", _once):
        found = estimate(asked, OF_SERIES, measured, SEED)
    return by_interval("at_least", BOUND, 0.0, found).decision, decide("at_least", BOUND, 0.0, found).decision


Seen = dict[Statistic, tuple[Counter[str], Counter[str]]]


def decisions(shape: Shape, factor: float, runs: int) -> Seen:
    """How runs end without and with the range, by statistic; `factor` times what the shape gives."""
    generator = np.random.Generator(np.random.PCG64([SEED, *shape.name.encode()]))
    seen: Seen = {statistic: (Counter(), Counter()) for statistic in STATISTICS}
    for _ in range(runs):
        series = factor * shape.make(generator)
        for statistic in STATISTICS:
            for counter, one in zip(seen[statistic], both(series, statistic), strict=True):
                counter[one] += 1
    return seen


def tables(runs: int) -> Iterator[str]:
    yield f"{REPETITIONS} repetitions of {SAMPLES} samples, bound {BOUND:g}, {runs} runs for each row, seed {SEED}; made by `make study`.\n"
    yield "**Good candidates**: met / undecided / missed, %, by the interval alone and with the range.\n"
    yield "| shape | median, interval alone | median, with the range | min, interval alone | min, with the range |"
    yield "|---|---|---|---|---|"
    for shape in GOOD:
        seen = decisions(shape, 1.0, runs)
        cells = [_three(counter) for statistic in STATISTICS for counter in seen[statistic]]
        yield f"| {shape.name} | {' | '.join(cells)} |"
    yield "\n**Bad candidates**: wrong PASS, % (upper end of its 95 % interval), of a candidate whose long-run mean lies below the bound.\n"
    yield "| shape | below the bound by, % | median, interval alone | median, with the range | min, interval alone | min, with the range |"
    yield "|---|---|---|---|---|---|"
    for shape in BAD:
        for below in BELOW:
            seen = decisions(shape, BOUND * (1 - below / 100), runs)
            found = [rates(counter) for statistic in STATISTICS for counter in seen[statistic]]
            cells = [f"{one.wrong_pass:.1f} ({one.upper:.1f})" for one in found]
            yield f"| {shape.name} | {below:g} | {' | '.join(cells)} |"
    yield "\n**Bad repetitions that six do not show**, (1 - share)^6: no rule on six values can be better.\n"
    yield "| share of bad repetitions, % | 1 | 5 | 10 | 20 | 30 | 39 | 50 |\n|---|---|---|---|---|---|---|---|"
    shares: Sequence[float] = (0.01, 0.05, 0.10, 0.20, 0.30, 0.39, 0.50)
    yield "| none among six, % | " + " | ".join(f"{100 * math.pow(1 - one, REPETITIONS):.1f}" for one in shares) + " |"


def _three(found: Counter[str]) -> str:
    runs = found.total()
    return " / ".join(f"{100 * found[one] / runs:.0f}" for one in (MET, UNDECIDED, MISSED))


if __name__ == "__main__":
    publish(tables, "measured error rates of the range of all samples", marks=(BEGIN, END))
