"""Tells how often does a comparison claim too much? Seeded contenders through its own functions, beside the level claimed.

`python inventory/studies/comparison_errors.py [--runs N] [--write docs/comparison.md]` writes the tables between the markers.

A false decision is likeliest for two contenders that differ by the declared indifference itself: nearer together it is rarer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
from error_rates import SEED, publish
from error_rates import heavy as heavy_series

from daq_bench.bench_model.statistics.paired import Pair
from daq_bench.bench_model.tender.contenders import COUNT_FACTOR
from daq_bench.bench_model.tender.contrasts import (
    EQUIVALENT,
    FIRST,
    RATIO,
    SECOND,
    Sample,
    contrast,
    judge_family,
    paired_contrast,
)

Array = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]
SCATTER = 0.03  # standard deviation of a run's logarithm
CLAIMED_PERCENT = 5.0


def normal(generator: np.random.Generator, count: int) -> Array:
    return generator.standard_normal(count)


def rare_falls(generator: np.random.Generator, count: int) -> Array:
    """One run in five is far slower than the others."""
    made: Array = 0.2 * generator.standard_normal(count) - 5 * (generator.random(count) < 0.2)
    return made


def heavy(generator: np.random.Generator, count: int) -> Array:
    made: Array = heavy_series(generator, 1, count)[0]
    return made


def stalls(generator: np.random.Generator, count: int) -> Array:
    """One run in twenty stalls, deeply: skewed, with a heavy lower tail."""
    depth = np.where(generator.random(count) < 0.05, 10 * generator.random(count), 0.0)
    made: Array = (0.25 - depth + 0.3 * generator.standard_normal(count)) / 1.3
    return made


NOISES: tuple[tuple[str, Noise], ...] = (("normal", normal), ("heavy-tailed (t3)", heavy))
ALL_NOISES = (*NOISES, ("stalls (skewed)", stalls), ("one run in five falls", rare_falls))
INDIFFERENCE = 0.02
NUMBERS = ((3, 3), (3, 6), (6, 6), (6, 12), (3, 12), (3, 30))  # the last two are refused: more than COUNT_FACTOR apart


@dataclass(frozen=True)
class Claims:
    """Percent of the comparisons with one or more false "better": with Holm, and by each pair's own 95 % interval alone."""

    holm: float
    naive: float


verdicts = partial(judge_family, advise=False)


def sample(generator: np.random.Generator, noise: Noise, count: int, level: float = 0.0) -> Sample:
    return Sample(tuple(float(one) for one in 10 * np.exp(level + SCATTER * noise(generator, count))))


def alike(contenders: int, values: int, noise: Noise, runs: int, seed: int = SEED) -> Claims:
    """The claims about contenders that are truly the same."""
    generator = np.random.Generator(np.random.PCG64([seed, contenders, values]))
    holm, naive = 0, 0
    for _ in range(runs):
        samples = [sample(generator, noise, values) for _ in range(contenders)]
        contrasts = [contrast(a, b, RATIO, ranks=False) for a, b in combinations(samples, 2)]
        holm += any(one.verdict in (FIRST, SECOND) for one in verdicts(contrasts, [0.0] * len(contrasts)))
        naive += any(one.p is not None and one.p < 0.05 for one in contrasts)
    return Claims(100 * holm / runs, 100 * naive / runs)


@dataclass(frozen=True)
class Decided:
    """Percent of pairs called decided though they differ by no more than the indifference: as judged, and as if any difference counted."""

    judged: float
    by_chance_alone: float


def inside(numbers: tuple[int, int], truth: float, noise: Noise, runs: int, seed: int = SEED) -> Decided:
    """The decisions about two contenders that truly differ by `truth`, with so many runs of each."""
    generator = np.random.Generator(np.random.PCG64([seed, *numbers]))
    wrong, naive = 0, 0
    for _ in range(runs):
        pair = sample(generator, noise, numbers[0], math.log1p(truth)), sample(generator, noise, numbers[1])
        found = contrast(*pair, RATIO, ranks=False)
        wrong += verdicts([found], [INDIFFERENCE])[0].verdict in (FIRST, SECOND)
        naive += verdicts([found], [0.0])[0].verdict in (FIRST, SECOND)
    return Decided(100 * wrong / runs, 100 * naive / runs)


def family_at_the_margin(contenders: int, values: int, runs: int, seed: int = SEED) -> float:
    """Percent of comparisons with a false "better": the first leads every other by the indifference itself."""
    generator = np.random.Generator(np.random.PCG64([seed, contenders, values, 1]))
    wrong = 0
    for _ in range(runs):
        levels = [math.log1p(INDIFFERENCE), *[0.0] * (contenders - 1)]
        samples = [sample(generator, normal, values, level) for level in levels]
        contrasts = [contrast(a, b, RATIO, ranks=False) for a, b in combinations(samples, 2)]
        judged = verdicts(contrasts, [INDIFFERENCE] * len(contrasts))
        wrong += any(one.verdict in (FIRST, SECOND) for one in judged)
    return 100 * wrong / runs


def of_one_run(interval: float, runs: int, seed: int = SEED) -> Decided:
    """The decisions about two equal contenders with one run of each; `interval`: the runs' own (a share to either side), which does not
    include the scatter between runs."""
    generator = np.random.Generator(np.random.PCG64([seed, 1]))
    wrong, naive = 0, 0
    for _ in range(runs):
        one, other = (sample(generator, normal, 1).values[0] for _ in range(2))
        first, second = (Sample((v,), (v * (1 - interval), v * (1 + interval))) for v in (one, other))
        found = contrast(first, second, RATIO, ranks=False)
        wrong += verdicts([found], [INDIFFERENCE])[0].verdict in (FIRST, SECOND)
        ends = found.interval(0.95)
        naive += ends is not None and not ends[0] <= 0 <= ends[1]
    return Decided(100 * wrong / runs, 100 * naive / runs)


def at_the_margin(values: int, margin: float, noise: Noise, runs: int, seed: int = SEED) -> float:
    """Percent of pairs that are called equivalent although they differ by the margin itself."""
    generator = np.random.Generator(np.random.PCG64([seed, values]))
    wrong = 0
    for _ in range(runs):
        pair = sample(generator, noise, values, math.log1p(margin)), sample(generator, noise, values)
        wrong += verdicts([contrast(*pair, RATIO, ranks=False)], [margin])[0].verdict == EQUIVALENT
    return 100 * wrong / runs


def drifting(rounds: int, drift: float, paired: bool, runs: int, seed: int = SEED) -> float:
    """Percent of false "better" between two that are the same, in alternating rounds over which everything speeds up by `drift` each."""
    generator = np.random.Generator(np.random.PCG64([seed, rounds]))
    wrong = 0
    for _ in range(runs):
        first, second, pairs = [], [], []
        for number in range(rounds):
            second_first = number % 2 == 1
            noise = np.exp(
                SCATTER * generator.standard_normal(2)
                + drift * (2 * number + np.array([second_first, not second_first]))
            )
            first.append(float(noise[0]))
            second.append(float(noise[1]))
            pairs.append(Pair(number + 1, second_first, first[-1] / second[-1]))
        one = (
            paired_contrast(pairs)
            if paired
            else contrast(Sample(tuple(first)), Sample(tuple(second)), RATIO, ranks=False)
        )
        wrong += verdicts([one], [0.0])[0].verdict in (FIRST, SECOND)
    return 100 * wrong / runs


def tables(runs: int) -> Iterator[str]:
    yield f"{runs} comparisons per line, seed {SEED}, {100 * SCATTER:g} % scatter from run to run; made by `make study`.\n"
    yield f'**Contenders that are the same**: comparisons with one or more false "better"; claimed: at most {CLAIMED_PERCENT:g} %.\n'
    yield "| contenders | runs of each | scatter | false, % | without Holm, % |\n|---|---|---|---|---|"
    for name, noise in NOISES:
        for contenders in (2, 4, 8):
            for values in (3, 6):
                found = alike(contenders, values, noise, runs)
                yield f"| {contenders} | {values} | {name} | {_marked(found.holm)} | {found.naive:.1f} |"
    yield "\n**Two that differ by the indifference itself, 2 %**: decided; claimed: at most 2.5 %, on the better one's side.\n"
    yield "| runs of each | scatter | decided, % | as if any difference counted, % |\n|---|---|---|---|"
    for name, noise in ALL_NOISES:
        for numbers in NUMBERS:
            held = inside(numbers, INDIFFERENCE, noise, runs)
            refused = " (not compared)" if numbers[1] > COUNT_FACTOR * numbers[0] else ""
            yield f"| {numbers[0]}, {numbers[1]}{refused} | {name} | {held.judged:.1f} | {held.by_chance_alone:.1f} |"
    yield "\n**Half of the indifference apart, 1 %**: decided.\n"
    yield "| runs of each | scatter | decided, % | as if any difference counted, % |\n|---|---|---|---|"
    for name, noise in ALL_NOISES:
        held = inside((6, 6), INDIFFERENCE / 2, noise, runs)
        yield f"| 6, 6 | {name} | {held.judged:.1f} | {held.by_chance_alone:.1f} |"
    yield '\n**One leads all others by the indifference itself**: comparisons with a false "better"; claimed: at most 5 %.\n'
    yield "| contenders | runs of each | false, % |\n|---|---|---|"
    for contenders in (4, 8):
        yield f"| {contenders} | 6 | {_marked(family_at_the_margin(contenders, 6, runs))} |"
    yield "\n**Two that are the same, one run of each**: decided.\n"
    yield "| the runs' own intervals, % | decided, % | if these intervals decided, % |\n|---|---|---|"
    for width in (0.01, 0.03):
        one_run = of_one_run(width, runs)
        yield f"| {100 * width:g} to either side | {one_run.judged:.1f} | {one_run.by_chance_alone:.1f} |"
    yield "\n**Two that differ by the margin itself**: called equivalent; claimed: at most 2.5 %.\n"
    yield "| runs of each | margin, % | false, % |\n|---|---|---|"
    for values, margin in ((6, 0.02), (6, 0.1), (20, 0.05)):
        yield f"| {values} | {100 * margin:g} | {at_the_margin(values, margin, normal, runs):.1f} |"
    yield "\n**Two that are the same, 8 alternating rounds, everything speeding up by so much from visit to visit.**\n"
    yield "| drift, % | paired: false, % | unpaired: false, % |\n|---|---|---|"
    for drift in (0.0, 0.01, 0.05):
        paired, unpaired = (drifting(8, drift, one, runs) for one in (True, False))
        yield f"| {100 * drift:g} | {_marked(paired)} | {_marked(unpaired)} |"


def _marked(percent: float) -> str:
    """The percentage, bold where it exceeds the claim by more than the simulation's own scatter."""
    return f"**{percent:.1f}**" if percent > CLAIMED_PERCENT + 3.0 else f"{percent:.1f}"


if __name__ == "__main__":
    publish(tables, "measured error rates of a comparison")
