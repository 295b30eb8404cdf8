"""How often does the verdict err? Seeded synthetic runs through the verdict's own functions, beside the level claimed.

`python inventory/studies/error_rates.py [--runs N] [--write docs/statistics.md]` writes the tables between the markers of that
document. Candidates lie at the bound itself, where a verdict is wrong most often: just outside of it every `met` is a wrong PASS,
just inside every `missed` a wrong FAIL."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from bench_model.decision import MET, MISSED, decide, estimate, measure
from bench_model.evidence import Document
from bench_model.profiles import Requirement, ResultMetric
from bench_model.sequential import Looks, look

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
SEED = 20211
CLAIMED_PERCENT = 2.5  # each kind of wrong verdict on a candidate that lies at the bound
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
BURN_IN = 400


@dataclass(frozen=True)
class Process:
    """A series of mean 0 and standard deviation about 1. `stationary`: what the interval assumes holds."""

    name: str
    make: Callable[[Generator, int], Array]


def autoregressive(correlation: float) -> Callable[[Generator, int], Array]:
    def make(generator: Generator, count: int) -> Array:
        noise = generator.standard_normal(count + BURN_IN)
        made: Array = lfilter([1], [1, -correlation], noise)[BURN_IN:] * math.sqrt(1 - correlation**2)
        return made

    return make


def drifting(generator: Generator, count: int) -> Array:
    """White noise on a straight fall of four standard deviations; the truth is the mean over the measured time."""
    return generator.standard_normal(count) + np.linspace(2, -2, count)


def slow_and_white(generator: Generator, count: int) -> Array:
    """Half of the variance hidden in a slow wave: neighbours hardly resemble each other, minutes do."""
    return math.sqrt(0.5) * (autoregressive(0.95)(generator, count) + generator.standard_normal(count))


def stalls(generator: Generator, count: int) -> Array:
    """One window in twenty stalls, deeply: a skewed series with a heavy lower tail."""
    depth = np.where(generator.random(count) < 0.05, 10 * generator.random(count), 0.0)
    made: Array = (0.25 - depth + 0.3 * generator.standard_normal(count)) / 1.3
    return made


def heavy(generator: Generator, count: int) -> Array:
    """Student's t with three degrees of freedom."""
    made: Array = generator.standard_t(3, count) / math.sqrt(3)
    return made


PROCESSES = (
    Process("independent", autoregressive(0)),
    Process("AR(1), 0.5", autoregressive(0.5)),
    Process("AR(1), 0.8", autoregressive(0.8)),
    Process("AR(1), 0.95", autoregressive(0.95)),
    Process("drifting", drifting),
    Process("heavy-tailed (t3)", heavy),
    Process("stalls (skewed)", stalls),
    Process("slow wave in noise", slow_and_white),
)
LENGTHS = (50, 80, 200, 400, 1000)

METRIC = ResultMetric("x", "", "1", "results/x.json", "values", "estimated", samples="series")
BOUND = 100.0


def requirement(statistic: str) -> Requirement:
    return Requirement("X-1", "", "x", "at_least", BOUND, "1", statistic, "mandatory", False, "")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Rates:
    """Percent of the runs. `wrong_pass`: met by a candidate just outside; `wrong_fail`: missed by one just inside.
    `with_interval`: runs whose data gave an interval; `holding`: of these, whose interval holds the truth."""

    wrong_pass: float
    wrong_fail: float
    undecided: float
    with_interval: float = math.nan
    holding: float = math.nan


def rates(decisions: list[str], intervals: int = 0) -> Rates:
    """At the bound itself, the limit of both errors, every `met` and every `missed` counts as wrong."""
    counts, runs = Counter(decisions), len(decisions)
    wrong = counts[MET] + counts[MISSED]
    met, missed, undecided, given = (100 * one / runs for one in (counts[MET], counts[MISSED], runs - wrong, intervals))
    return Rates(met, missed, undecided, given, 100 * (intervals - wrong) / intervals if intervals else math.nan)


def decision_of(document: Document, asked: Requirement, seed: int) -> tuple[str, bool]:
    """The decision, and whether there was an interval."""
    found = estimate(asked, METRIC, measure(asked, METRIC, {METRIC.file: document}), seed)
    return decide("at_least", BOUND, 0.0, found).decision, found.interval is not None


def of_series(process: Process, length: int, repetitions: int, runs: int, seed: int = SEED) -> Rates:
    """The fixed-n decision from series at the bound; several repetitions are judged by their worst."""
    generator = np.random.Generator(np.random.PCG64([seed, length, repetitions]))
    asked = requirement("min")
    done = []
    for number in range(runs):
        series = [BOUND + process.make(generator, length) for _ in range(repetitions)]
        document = {"values": [float(one.mean()) for one in series], "series": [one.tolist() for one in series]}
        done.append(decision_of(document, asked, number))
    return rates([decision for decision, _ in done], sum(given for _, given in done))


def of_values(repetitions: int, scatter: Process, statistic: str, runs: int, seed: int = SEED) -> Rates:
    """The fixed-n decision from repetitions without series, whose population's median lies at the bound."""
    generator = np.random.Generator(np.random.PCG64([seed, repetitions]))
    centre = float(np.median(scatter.make(generator, 200_000)))
    asked = requirement(statistic)
    done = []
    for number in range(runs):
        values = BOUND + scatter.make(generator, repetitions) - centre
        done.append(decision_of({"values": values.tolist()}, asked, number)[0])
    return rates(done)


@dataclass(frozen=True)
class SequentialRates:
    rates: Rates
    mean_repetitions: float
    naive: Rates  # what the same looks would have given at 95 % each


def sequential(
    plan: Looks, length: int | None, runs: int, distance: float = 0.0, seed: int = SEED, process: Process = PROCESSES[0]
) -> SequentialRates:
    """Stopping when certain, `distance` standard deviations of a repetition inside the bound.

    With `length`, every repetition has a series of it and repetitions are judged by their median; without, order statistics
    of their values decide."""
    generator = np.random.Generator(np.random.PCG64([seed, plan.most, length or 0]))
    asked = [(requirement("median"), METRIC)]
    done, naive, used = [], [], 0
    for _ in range(runs):
        document: Document = {"values": [], "series": []}
        found, careless = "undecided", "undecided"
        for number in range(1, plan.most + 1):
            series = BOUND + distance + process.make(generator, length or 1)
            document["values"].append(float(series.mean()))
            if length:
                document["series"].append(series.tolist())
            run = {"scenario": {"seed": number, "scale": 1.0}}
            seen = look(number, document, asked, run, plan)
            found = seen.decisions.get("X-1", found)
            if careless == "undecided" and number >= plan.least:
                careless = decision_of(document, asked[0][0], number)[0]
            if seen.stop:
                break
        used += number
        done.append(found)
        naive.append(careless)
    return SequentialRates(rates(done), used / runs, rates(naive))


def tables(runs: int) -> Iterator[str]:
    yield f"{runs} runs per line, seed {SEED}; made by `make study`.\n"
    yield "**One repetition with a series, fixed length.**\n"
    yield "| process | samples | wrong PASS, % | wrong FAIL, % | undecided, % | given an interval, % | of these it holds, % |"
    yield "|---|---|---|---|---|---|---|"
    for process in PROCESSES:
        for length in LENGTHS:
            found = of_series(process, length, 1, runs)
            shown = f"{found.holding:.1f}" if found.with_interval * runs >= 3000 else "(few)"
            yield f"| {process.name} | {length} | {_rate(found)} | {found.with_interval:.0f} | {shown} |"
    yield "\n**Several repetitions with series of 80 independent samples, judged by the worst.**\n"
    yield "| repetitions | wrong PASS, % | wrong FAIL, % | undecided, % |\n|---|---|---|---|"
    for repetitions in (2, 3, 5, 10):
        yield f"| {repetitions} | {_rate(of_series(PROCESSES[0], 80, repetitions, runs))} |"
    yield "\n**Repetitions without series.**\n"
    yield "| repetitions | scatter | statistic | wrong PASS, % | wrong FAIL, % | undecided, % |\n|---|---|---|---|---|---|"
    for name, scatter in (("normal", PROCESSES[0]), ("t3", PROCESSES[5]), ("stalls", PROCESSES[6])):
        for statistic in ("median", "min"):
            for repetitions in (1, 2, 3, 5, 6, 7, 8, 9, 10):
                found = of_values(repetitions, scatter, statistic, 4 * runs)
                if repetitions > 5 or (name, statistic) == ("normal", "median"):
                    yield f"| {repetitions} | {name} | {statistic} | {_rate(found)} |"
    yield "\n**Sequential stopping**, and what the same looks would give at 95 % each (naive).\n"
    yield "| repetitions | series | wrong PASS, % | wrong FAIL, % | undecided, % | naive wrong PASS, % | naive wrong FAIL, % |"
    yield "|---|---|---|---|---|---|---|"
    plans: tuple[tuple[Looks, int | None], ...]
    plans = ((Looks(6, 20), None), (Looks(9, 30), None), (Looks(1, 5), 80), (Looks(1, 10), 80))
    for plan, samples in plans:
        seen = sequential(plan, samples, runs)
        of = f"{samples} samples" if samples else "none"
        yield f"| {plan.least} to {plan.most} | {of} | {_rate(seen.rates)} | {seen.naive.wrong_pass:.1f} | {seen.naive.wrong_fail:.1f} |"
    yield "\n**What stopping saves**: 9 to 30 repetitions without series, at a distance from the bound.\n"
    yield "| distance, sd of a repetition | met, % | undecided, % | repetitions used, mean |\n|---|---|---|---|"
    for distance in (0.0, 0.5, 1.0, 2.0, 4.0):
        seen = sequential(Looks(9, 30), None, runs, distance)
        yield f"| {distance:g} | {seen.rates.wrong_pass:.1f} | {seen.rates.undecided:.1f} | {seen.mean_repetitions:.1f} |"


def _rate(found: Rates) -> str:
    return f"{_marked(found.wrong_pass)} | {_marked(found.wrong_fail)} | {found.undecided:.1f}"


def _marked(percent: float) -> str:
    """Bold where the error is over what is claimed by more than the simulation's own scatter."""
    return f"**{percent:.1f}**" if percent > CLAIMED_PERCENT + 1.0 else f"{percent:.1f}"


def publish(made: Callable[[int], Iterator[str]], about: str) -> None:
    """Prints what `made` yields for the number of runs asked, and writes it between the markers of the document asked."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--write", type=Path, help="document whose part between the markers is renewed")
    options = parser.parse_args()
    lines = []
    for line in made(options.runs):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        body = "\n".join(lines)
        options.write.write_text(f"{before}{BEGIN}\n{body}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    publish(tables, "measured error rates of the verdict")
