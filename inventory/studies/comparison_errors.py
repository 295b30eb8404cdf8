"""How often does a comparison claim too much? Seeded contenders through its own functions, beside the level claimed.

`python inventory/studies/comparison_errors.py [--runs N] [--write docs/comparison.md]` writes the tables between the markers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from error_rates import SEED, heavy, publish

from bench_model.contrasts import EQUIVALENT, FIRST, RATIO, SECOND, Sample, contrast, judge_family, paired_contrast
from bench_model.paired import Pair

Array = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Array]
SCATTER = 0.03  # standard deviation of a run's logarithm
CLAIMED_PERCENT = 5.0


def normal(generator: np.random.Generator, count: int) -> Array:
    return generator.standard_normal(count)


NOISES: tuple[tuple[str, Noise], ...] = (("normal", normal), ("heavy-tailed (t3)", heavy))


@dataclass(frozen=True)
class Claims:
    """Percent of the comparisons with one or more false "better": with Holm, and by each pair's own 95 % interval alone."""

    holm: float
    naive: float


def sample(generator: np.random.Generator, noise: Noise, count: int, level: float = 0.0) -> Sample:
    return Sample(tuple(float(one) for one in 10 * np.exp(level + SCATTER * noise(generator, count))))


def alike(contenders: int, values: int, noise: Noise, runs: int, seed: int = SEED) -> Claims:
    """Contenders that are truly the same."""
    generator = np.random.Generator(np.random.PCG64([seed, contenders, values]))
    holm, naive = 0, 0
    for _ in range(runs):
        samples = [sample(generator, noise, values) for _ in range(contenders)]
        contrasts = [contrast(a, b, RATIO, ranks=False) for a, b in combinations(samples, 2)]
        holm += any(one.verdict in (FIRST, SECOND) for one in judge_family(contrasts, [0.0] * len(contrasts)))
        naive += any(one.p is not None and one.p < 0.05 for one in contrasts)
    return Claims(100 * holm / runs, 100 * naive / runs)


def at_the_margin(values: int, margin: float, noise: Noise, runs: int, seed: int = SEED) -> float:
    """Percent of pairs that are called equivalent although they differ by the margin itself."""
    generator = np.random.Generator(np.random.PCG64([seed, values]))
    wrong = 0
    for _ in range(runs):
        pair = sample(generator, noise, values, math.log1p(margin)), sample(generator, noise, values)
        wrong += judge_family([contrast(*pair, RATIO, ranks=False)], [margin])[0].verdict == EQUIVALENT
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
        wrong += judge_family([one], [0.0])[0].verdict in (FIRST, SECOND)
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
    """Bold where the error is over what is claimed by more than the simulation's own scatter."""
    return f"**{percent:.1f}**" if percent > CLAIMED_PERCENT + 3.0 else f"{percent:.1f}"


if __name__ == "__main__":
    publish(tables, "measured error rates of a comparison")
