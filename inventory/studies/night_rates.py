"""Tells how many nights of an unchanged machine alarm, and how soon a step or a creep is seen, through the nightly comparison's own rule.

`python inventory/studies/night_rates.py [--runs N] [--write docs/trend.md]` writes the tables between the markers of that document. A
night's value is its level, which scatters from night to night, and the error of its own measurement; both in percent of the level. Red
nights count as they do in `rig.nightly`: out of the level, in spread and rank, for as long as nobody accepts what changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
from error_rates import Array, Generator, heavy, publish
from scipy.stats import beta, norm

from daq_bench.bench_model.nights.baseline import FALSE_ALARM
from daq_bench.bench_model.nights.level import Nights, by_mean, by_rank
from daq_bench.bench_model.nights.steps import autoregressive

SEED = 20211
BEGIN, END = "<!-- nights: begin -->", "<!-- nights: end -->"
NIGHTS = 100
REQUIREMENTS = 7
WITHIN = 0.5
STEP, CREEP, BEFORE = -3.0, -0.1, -3.0
SOON = 3
HISTORIES = (20, 60, 200)
SCATTERS = (0.5, 0.75, 1.0, 1.5, 2.0)
Scatter = Callable[[Generator, int, int], Array]


def normal(generator: Generator, requirements: int, nights: int) -> Array:
    made: Array = generator.standard_normal((requirements, nights))
    return made


def one_for_all(generator: Generator, requirements: int, nights: int) -> Array:
    """A night that is bad for one requirement is bad for all."""
    made: Array = np.repeat(generator.standard_normal((1, nights)), requirements, axis=0)
    return made


def low_tail(generator: Generator, requirements: int, nights: int) -> Array:
    made: Array = (math.exp(0.5) - np.exp(normal(generator, requirements, nights))) / math.sqrt(math.e * (math.e - 1))
    return made


def remembering(correlation: float) -> Scatter:
    return lambda generator, requirements, nights: autoregressive(generator, requirements, nights, correlation)


@dataclass(frozen=True)
class Machine:
    """`between`: scatter from night to night; `within`: error of one night's own measurement. `ranked`: its metrics have no interval."""

    name: str
    requirements: int = REQUIREMENTS
    between: float = 2.0
    within: float = WITHIN
    scatter: Scatter = normal
    ranked: bool = False

    def values(self, generator: Generator, nights: int) -> Array:
        own = self.within * generator.standard_normal((self.requirements, nights))
        return 100 + self.between * self.scatter(generator, self.requirements, nights) + own


UNCHANGED = (
    Machine("one requirement, 2 times a repetition's scatter", 1, 1.0),
    Machine("one requirement, 3 times", 1, 1.5),
    Machine("one requirement, 4 times", 1, 2.0),
    Machine("seven requirements, 2 times", between=1.0),
    Machine("seven requirements, 4 times"),
    Machine("seven requirements, 10 times", between=5.0),
    Machine("seven requirements, 4 times, bad nights common to all", scatter=one_for_all),
    Machine("seven requirements without intervals", ranked=True),
    Machine("seven requirements without intervals, low tail", scatter=low_tail, ranked=True),
    Machine("seven requirements, 4 times, Student's t with 3 degrees", scatter=heavy),
    Machine("seven requirements, 4 times, low tail", scatter=low_tail),
    Machine("seven requirements, 4 times, nights correlate by 0.3", scatter=remembering(0.3)),
    Machine("seven requirements, 4 times, nights correlate by 0.6", scatter=remembering(0.6)),
)


def red_nights(values: Array, machine: Machine, requirements: int = REQUIREMENTS, first: int = 0) -> list[bool]:
    """Which nights alarm, from night `first` on. `requirements`: how many share the chance of a false alarm."""
    test, chance = by_rank if machine.ranked else by_mean, FALSE_ALARM / requirements
    red: list[list[bool]] = [[False] * first for _ in values]
    for night in range(first, values.shape[1]):
        for own, known in zip(red, values, strict=True):
            earlier = Nights(tuple(known[:night].tolist()), tuple(own), error=machine.within)
            found = test(earlier, float(known[night]), -1, chance)
            own.append(found is not None and found.excess > 1)
    return [any(night) for night in zip(*red, strict=True)][first:]


def false_alarms(machine: Machine, machines: int, seed: int = SEED) -> list[list[bool]]:
    generator = np.random.default_rng([seed, *machine.name.encode()])
    return [red_nights(machine.values(generator, NIGHTS), machine, machine.requirements) for _ in range(machines)]


def first_alarms(scatter: float, history: int, change: Array, machines: int, seed: int = SEED) -> list[int | None]:
    """The first red night of one of seven requirements, counted from the change; None where none is. No earlier night was red."""
    generator = np.random.default_rng([seed, int(100 * scatter), history, len(change)])
    machine = Machine("", 1, math.sqrt(max(0.0, scatter**2 - WITHIN**2)))
    found: list[int | None] = []
    for _ in range(machines):
        values = machine.values(generator, history + len(change))
        values[:, history:] += change
        red = red_nights(values, machine, first=history)
        found.append(red.index(True) + 1 if any(red) else None)
    return found


def best_possible(scatter: float) -> float:
    """How often the best test sees the step in the mean of three nights, if level and spread were known: Neyman and Pearson's."""
    return float(norm.cdf(abs(STEP) * math.sqrt(SOON) / scatter - norm.isf(FALSE_ALARM / REQUIREMENTS)))


def tables(runs: int) -> Iterator[str]:
    machines = max(20, runs // 5)
    yield f"**Red nights of an unchanged machine**, of {NIGHTS}, from its first night on; seed {SEED}, made by `make study`.\n"
    yield "| machine, between nights | machines | red nights of 100 | in the first 20 | more than 1 of 100, % |\n|---|---|---|---|---|"
    for machine in UNCHANGED:
        seen = false_alarms(machine, machines)
        sums = [sum(red) for red in seen]
        early = 100 * sum(sum(red[:20]) for red in seen) / (20 * machines)
        error = 1.96 * float(np.std(sums)) / math.sqrt(machines)
        several = 100 * sum(one > 1 for one in sums) / machines
        yield f"| {machine.name} | {machines} | {np.mean(sums):.2f} ± {error:.2f} | {early:.2f} | {several:.0f} |"
    yield f"\n**A step of {STEP:g} %** in one of {REQUIREMENTS} requirements: within {SOON} nights, {runs} machines, % (lower end).\n"
    yield from _by_history(
        lambda scatter, history: _share(first_alarms(scatter, history, np.full(SOON, STEP), runs)),
        "the best possible test",
        lambda scatter: f"{100 * best_possible(scatter):.0f}",
    )
    nights = round(BEFORE / CREEP)
    yield f"\n**A creep of {CREEP:g} % a night** in one of {REQUIREMENTS} requirements: before {BEFORE:g} %, {runs // 2} machines.\n"
    creep = CREEP * np.arange(1, nights)
    yield from _by_history(lambda scatter, history: _share(first_alarms(scatter, history, creep, runs // 2)))
    yield f"\n**A creep from the first night on**, to -10 %: {runs // 4} machines for each row.\n"
    yield "| scatter of a night, % | alarmed, % | depth at the first alarm, %: median |\n|---|---|---|"
    whole = CREEP * np.arange(1, 101)
    for scatter in SCATTERS:
        seen_creep = first_alarms(scatter, 0, whole, runs // 4)
        known = [night for night in seen_creep if night is not None]
        depth = f"{CREEP * median(known):.1f}" if known else "-"
        yield f"| {scatter:g} | {100 * len(known) / len(seen_creep):.0f} | {depth} |"


def _by_history(
    cell: Callable[[float, int], str], last: str = "", of_last: Callable[[float], str] | None = None
) -> Iterator[str]:
    heads = ["scatter of a night, %", *(f"after {history} nights" for history in HISTORIES), *([last] if last else [])]
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    for scatter in SCATTERS:
        cells = [cell(scatter, history) for history in HISTORIES]
        yield f"| {scatter:g} | {' | '.join(cells)}{f' | {of_last(scatter)}' if of_last else ''} |"


def _share(found: list[int | None]) -> str:
    """Percent of the machines that alarm, and the lower end of its interval."""
    hits, count = sum(night is not None for night in found), len(found)
    lower = float(beta.ppf(0.025, hits, count - hits + 1)) if hits else 0.0
    return f"{100 * hits / count:.1f} ({100 * lower:.1f})"


if __name__ == "__main__":
    publish(tables, "measured rates of the nightly comparison", marks=(BEGIN, END))
