"""Tells how often does the verdict err? Seeded synthetic runs through the verdict's own functions, beside the level claimed.

`python inventory/studies/error_rates.py [--runs N] [--write docs/statistics.md]` writes the tables between the markers of that
document. Candidates lie at the bound itself, where a verdict is wrong most often: just outside of it every `met` is a wrong PASS,
just inside every `missed` a wrong FAIL. The bound is 100, the series' standard deviation 10, as is the run-to-run scatter's unit 1.

A run whose scatter between repetitions alone reaches over the bound, and whose samples lie on both sides, is undecided, since everything
joined to it only widens the interval: it is counted as undecided without computing the intervals of its series (test_error_rates.py
compares)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from daq_bench.audit.good.small_run import scenario, some_run
from scipy.signal import lfilter
from scipy.stats import beta

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.measured import Measured, measure
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import Requirement
from daq_bench.bench_model.statistics.bootstrap import SeriesInterval, mean_interval
from daq_bench.bench_model.statistics.repetitions import repetition_interval, repetitions_for_median
from daq_bench.bench_model.verdict import decision
from daq_bench.bench_model.verdict.decision import MET, MISSED, UNDECIDED, Estimate, by_interval, decide, estimate
from daq_bench.bench_model.verdict.sequential import Looks, look
from daq_bench.bench_model.workloads.steady_state.rounds import steady_window

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
Statistic = Literal["min", "max", "median"]
SEED = 20211
CLAIMED_PERCENT = 2.5  # each kind of wrong verdict on a candidate that lies at the bound
UPPER_PERCENT = 3.5  # the upper end of its own interval, with the runs made
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
BURN_IN = 400
AT_ONCE = 250  # runs whose series are held in memory together
BOUND, DEVIATION = 100.0, 10.0
REPETITIONS = repetitions_for_median()


@dataclass(frozen=True)
class Process:
    """`make(generator, series, samples)`: rows of mean 0 and standard deviation 1, each beginning at a moment of its own."""

    name: str
    make: Callable[[Generator, int, int], Array]


def autoregressive(correlation: float) -> Callable[[Generator, int, int], Array]:
    def make(generator: Generator, series: int, samples: int) -> Array:
        noise = generator.standard_normal((series, samples))
        noise[:, 1:] *= math.sqrt(1 - correlation**2)  # the first sample has the whole variance, as all have
        made: Array = lfilter([1], [1, -correlation], noise)
        return made

    return make


def slow_in_noise(generator: Generator, series: int, samples: int) -> Array:
    """ARMA(0.95, -0.8): neighbouring samples hardly resemble each other, neighbouring minutes do."""
    made: Array = lfilter([1, -0.8], [1, -0.95], generator.standard_normal((series, samples + BURN_IN)))[:, BURN_IN:]
    return made / math.sqrt(1 + 0.15**2 / (1 - 0.95**2))


def drifting(generator: Generator, series: int, samples: int) -> Array:
    """White noise on a straight fall of four standard deviations; the truth is the mean over the measured time."""
    made: Array = generator.standard_normal((series, samples)) + np.linspace(2, -2, samples)
    return made


def heavy(generator: Generator, series: int, samples: int) -> Array:
    """Student's t with three degrees of freedom."""
    made: Array = generator.standard_t(3, (series, samples)) / math.sqrt(3)
    return made


def log_normal(sign: int, correlation: float) -> Callable[[Generator, int, int], Array]:
    """A long tail that is entered and left slowly; `sign` -1: downwards, as a throughput's, which flatters a short measurement."""

    def make(generator: Generator, series: int, samples: int) -> Array:
        made: Array = np.exp(autoregressive(correlation)(generator, series, samples)) - math.exp(0.5)
        return sign * made / math.exp(0.5) / math.sqrt(math.e - 1)

    return make


def stalls(every_s: float, for_s: float, hertz: float) -> Callable[[Generator, int, int], Array]:
    """Every `every_s` the rate falls for `for_s`; with a little noise."""

    def make(generator: Generator, series: int, samples: int) -> Array:
        phase = (generator.random((series, 1)) * every_s + np.arange(samples) / hertz) % every_s
        return _two_levels(generator, phase < for_s, for_s / every_s)

    return make


def regimes(stay_high: float, stay_low: float) -> Callable[[Generator, int, int], Array]:
    """Two levels, left at random after so many samples on average."""

    def make(generator: Generator, series: int, samples: int) -> Array:
        share = stay_low / (stay_high + stay_low)
        low = np.empty((series, samples), dtype=bool)
        now = generator.random(series) < share
        for at in range(samples):
            low[:, at] = now
            now ^= generator.random(series) < np.where(now, 1 / stay_low, 1 / stay_high)
        return _two_levels(generator, low, share)

    return make


def _two_levels(generator: Generator, low: npt.NDArray[np.bool_], share: float) -> Array:
    level: Array = (share - low.astype(np.float64)) * math.sqrt(0.99 / (share * (1 - share)))
    return level + 0.1 * generator.standard_normal(low.shape)


PROCESSES = (
    Process("white", autoregressive(0)),
    Process("AR(1), 0.5", autoregressive(0.5)),
    Process("AR(1), 0.9", autoregressive(0.9)),
    Process("AR(1), 0.97", autoregressive(0.97)),
    Process("ARMA(0.95, -0.8)", slow_in_noise),
    Process("drifting", drifting),
    Process("t3", heavy),
    Process("log-normal, low tail 0.5", log_normal(-1, 0.5)),
    Process("log-normal, low tail 0.9", log_normal(-1, 0.9)),
    Process("log-normal, high tail 0.9", log_normal(1, 0.9)),
    Process("stall 4 in 40 s, 1 Hz", stalls(40, 4, 1)),
    Process("stall 4 in 40 s, 4 Hz", stalls(40, 4, 4)),
    Process("regimes, stay 100", regimes(100, 100)),
    Process("regimes, stay 20", regimes(20, 20)),
)
RARE = (
    (Process("low regime of 30, every 300", regimes(270, 30)), (100, 300, 1000)),
    (Process("low regime of 6, every 60", regimes(54, 6)), (100, 300, 1000)),
    (Process("stall 5 in 120 s, 4 Hz", stalls(120, 5, 4)), (80, 240, 360)),
)
LENGTHS = (100, 300, 1000)
SCATTERS = (0.0, 1.0, 3.0)  # between repetitions, percent of the bound
STATISTICS: tuple[Statistic, ...] = ("median", "min")
ABOVE = (1.0, 5.0)  # how far a good candidate lies above the bound, percent

OF_SERIES = ResultMetric("x", "", "1", "results/x.json", "values", "estimated", samples="series")
OF_VALUES = replace(OF_SERIES, samples=None)
OF_WINDOW = replace(OF_SERIES, rule="steady-window")


def requirement(statistic: Statistic) -> Requirement:
    return Requirement("X-1", "", "x", "at_least", BOUND, "1", statistic, "mandatory", False, "")


@dataclass(frozen=True)
class Rates:
    """Percent of the runs. `wrong_pass`: met by a candidate just outside; `wrong_fail`: missed by one just inside."""

    wrong_pass: float
    wrong_fail: float
    undecided: float
    runs: int

    @property
    def upper(self) -> float:
        """Upper end of the 95 % interval of `wrong_pass` (Clopper and Pearson)."""
        hits = round(self.wrong_pass * self.runs / 100)
        return 100 * float(beta.ppf(0.975, hits + 1, self.runs - hits)) if hits < self.runs else 100.0


def rates(decisions: Counter[str]) -> Rates:
    """At the bound itself, the limit of both errors, every `met` and every `missed` counts as wrong."""
    runs = decisions.total()
    met, missed, undecided = (100 * decisions[one] / runs for one in (MET, MISSED, UNDECIDED))
    return Rates(met, missed, undecided, runs)


def decision_of(measured: Measured, metric: ResultMetric = OF_VALUES, statistic: Statistic = "median") -> str:
    return decide("at_least", BOUND, 0.0, estimate(requirement(statistic), metric, measured, SEED)).decision


def document_decision(document: Document, metric: ResultMetric) -> str:
    asked = requirement("median")
    return decision_of(measure(asked, metric, {metric.file: document}), metric)


@dataclass
class Cell:
    """One process at one length: decisions at the bound by scatter, and how many good candidates of each distance were met."""

    with_interval: float = math.nan
    at_bound: dict[float, Counter[str]] = field(default_factory=dict)
    met_above: dict[tuple[float, float], float] = field(default_factory=dict)


def cell(process: Process, samples: int, runs: int, good: int, seed: int = SEED) -> Cell:
    """Judges `runs` at the bound, `good` of them above it too, by their repetitions' median; without the addition of the worst one."""
    generator = np.random.Generator(np.random.PCG64([seed, samples, *process.name.encode()]))
    found = Cell(at_bound={scatter: Counter() for scatter in SCATTERS})
    above: Counter[tuple[float, float]] = Counter()
    whole = done = 0
    while done < runs:
        number = min(AT_ONCE, runs - done)
        series = BOUND + DEVIATION * process.make(generator, number * REPETITIONS, samples)
        between = generator.standard_normal((number, REPETITIONS))
        for run, (own, shift) in enumerate(
            zip(series.reshape(number, REPETITIONS, samples), between, strict=True), done
        ):
            trial = Trial(own)
            for scatter in SCATTERS:
                found.at_bound[scatter][trial.decision(scatter * shift)] += 1
                for distance in ABOVE if run < good else ():
                    above[scatter, distance] += trial.decision(distance + scatter * shift) == MET
            whole += run < good and trial.decidable()
        done += number
    found.with_interval = 100 * whole / good
    found.met_above = {key: 100 * above[key] / good for key in ((s, d) for s in SCATTERS for d in ABOVE)}
    return found


class Trial:
    """One run of several repetitions. Shifting a repetition as a whole shifts its own interval, so `mean_interval`'s result is kept."""

    def __init__(self, series: Array) -> None:
        self._series, self._means = series, series.mean(axis=1)
        self._known: dict[int, SeriesInterval] = {}

    def decision(self, shift: Array | float) -> str:
        """The decision with every repetition shifted by `shift`."""
        moves: Array = np.zeros(len(self._means)) + shift
        low, high = repetition_interval([(one, one) for one in (self._means + moves).tolist()])
        shifted = self._series + moves[:, None]
        if low < BOUND <= high and shifted.min() < BOUND <= shifted.max():
            return UNDECIDED
        return decide("at_least", BOUND, 0.0, self._estimate(moves)).decision

    def _estimate(self, moves: Array) -> Estimate:
        """The estimate from repetitions each of which is shifted by its own of `moves`."""
        values, series = (self._means + moves).tolist(), (self._series + moves[:, None]).tolist()
        measured = Measured(tuple(values), series=tuple(map(tuple, series)))
        numbers = iter(range(len(moves)))

        def known(series: Sequence[float], confidence: float, seed: int) -> SeriesInterval:
            number = next(numbers)
            if number not in self._known:
                self._known[number] = mean_interval(self._series[number].tolist(), confidence, seed)
            found = self._known[number]
            if found.interval is None:
                return found
            low, high = found.interval
            return replace(found, interval=(low + moves[number], high + moves[number]))

        with patch.object(decision, "mean_interval", known):
            return estimate(requirement("median"), OF_SERIES, measured, SEED)

    def decidable(self) -> bool:
        """Says whether the series are long enough for an interval: it alone meets the bound from far above."""
        far_above = self._estimate(np.full(len(self._means), 10 * BOUND))
        return by_interval("at_least", BOUND, 0.0, far_above).decision == MET


def of_values(repetitions: int, scatter: Process, statistic: Statistic, runs: int, seed: int = SEED) -> Rates:
    """The decision from repetitions without series, whose population's median lies at the bound."""
    generator = np.random.Generator(np.random.PCG64([seed, repetitions]))
    centre = float(np.median(scatter.make(generator, 200_000, 1)))
    values = BOUND + scatter.make(generator, runs * repetitions, 1).reshape(runs, repetitions) - centre
    return rates(Counter(decision_of(Measured(tuple(row.tolist())), statistic=statistic) for row in values))


def of_window(correlation: float, deviation: float, scatter: float, runs: int, seed: int = SEED) -> Rates:
    """The standard's steady window over rounds of one run, `deviation` and `scatter` in percent; without a window undecided."""
    generator = np.random.Generator(np.random.PCG64([seed, int(100 * correlation), int(deviation), int(scatter)]))
    rounds = (
        BOUND
        + deviation * autoregressive(correlation)(generator, runs, 25)
        + scatter * generator.standard_normal((runs, 1))
    )
    decisions: Counter[str] = Counter()
    for row in rounds:
        window = steady_window(row.tolist())
        measured = Measured((window.mean,), series=(window.values,)) if window else None
        decisions[decision_of(measured, OF_WINDOW) if measured else UNDECIDED] += 1
    return rates(decisions)


@dataclass(frozen=True)
class SequentialRates:
    rates: Rates
    mean_repetitions: float
    naive: Rates  # what the same looks would have given at 95 % each


def sequential(plan: Looks, samples: int | None, runs: int, distance: float = 0.0, seed: int = SEED) -> SequentialRates:
    """Rates of stopping when certain, `distance` standard deviations of a repetition inside the bound. `samples`: of its series, if any."""
    generator = np.random.Generator(np.random.PCG64([seed, plan.most, samples or 0]))
    metric = OF_SERIES if samples else OF_VALUES
    asked = [(requirement("median"), metric)]
    done: Counter[str] = Counter()
    naive: Counter[str] = Counter()
    used = 0
    for _ in range(runs):
        document: Document = {"values": [], "series": []}
        found, careless = UNDECIDED, UNDECIDED
        for number in range(1, plan.most + 1):
            series = BOUND + distance + autoregressive(0)(generator, 1, samples or 1)[0]
            document["values"].append(float(series.mean()))
            document["series"].append(series.tolist())
            seen = look(number, document, asked, some_run(scenario=scenario(seed=number)), plan)
            found = seen.decisions.get("X-1", found)
            if careless == UNDECIDED and number >= plan.least:
                careless = document_decision(document, metric)
            if seen.stop:
                break
        used += number
        done[found] += 1
        naive[careless] += 1
    return SequentialRates(rates(done), used / runs, rates(naive))


def tables(runs: int) -> Iterator[str]:
    yield f"{runs} runs per cell at the bound, {runs // 20} above it, seed {SEED}; made by `make study`.\n"
    yield f"**{REPETITIONS} repetitions with series**, by their median; the three figures stand for a run-to-run scatter of 0, 1 and 3 %.\n"
    yield from _cells([(process, LENGTHS) for process in PROCESSES], runs)
    yield "\n**Named exceptions**: states so rare that all repetitions together may miss them (the same columns).\n"
    yield from _cells(RARE, runs)
    yield "\n**The steady window** of one run, judged by the standard's rule and named so: no level is claimed.\n"
    yield "| rounds | scatter of rounds, % | run-to-run scatter, % | met at the bound, % | missed, % | undecided, % |"
    yield "|---|---|---|---|---|---|"
    for correlation, deviation in ((0.0, 2.0), (0.0, 8.0), (0.8, 5.0)):
        for scatter in SCATTERS:
            found = of_window(correlation, deviation, scatter, runs)
            name = f"AR(1), {correlation}" if correlation else "independent"
            yield f"| {name} | {deviation:g} | {scatter:g} | {found.wrong_pass:.1f} | {found.wrong_fail:.1f} | {found.undecided:.1f} |"
    yield "\n**Repetitions without series**; the median of such repetitions lies at the bound.\n"
    yield "| repetitions | scatter | statistic | wrong PASS, % | wrong FAIL, % | undecided, % |\n|---|---|---|---|---|---|"
    for name, process in (("normal", PROCESSES[0]), ("t3", PROCESSES[6]), ("low tail", PROCESSES[7])):
        for statistic in STATISTICS:
            for repetitions in (5, 6, 8, 10, 20):
                yield f"| {repetitions} | {name} | {statistic} | {_rate(of_values(repetitions, process, statistic, runs))} |"
    yield "\n**Sequential stopping**, and what the same looks would give at 95 % each (naive).\n"
    yield "| repetitions | series | wrong PASS, % | wrong FAIL, % | undecided, % | naive wrong PASS, % | naive wrong FAIL, % |"
    yield "|---|---|---|---|---|---|---|"
    for plan, samples in ((Looks(6, 20), None), (Looks(9, 30), None), (Looks(6, 12), 100)):
        seen = sequential(plan, samples, runs // (5 if samples else 2))
        of = f"{samples} samples" if samples else "none"
        yield f"| {plan.least} to {plan.most} | {of} | {_rate(seen.rates)} | {seen.naive.wrong_pass:.1f} | {seen.naive.wrong_fail:.1f} |"
    yield "\n**What stopping saves**: 9 to 30 repetitions without series, at a distance from the bound.\n"
    yield "| distance, sd of a repetition | met, % | undecided, % | repetitions used, mean |\n|---|---|---|---|"
    for distance in (0.0, 0.5, 1.0, 2.0, 4.0):
        seen = sequential(Looks(9, 30), None, runs // 20, distance)
        yield f"| {distance:g} | {seen.rates.wrong_pass:.1f} | {seen.rates.undecided:.1f} | {seen.mean_repetitions:.1f} |"


def _cells(asked: Iterable[tuple[Process, tuple[int, ...]]], runs: int) -> Iterator[str]:
    yield "| process | samples | interval, % | wrong PASS, % (upper end) | wrong FAIL, % | met 1 % above, % | met 5 % above, % |"
    yield "|---|---|---|---|---|---|---|"
    for process, lengths in asked:
        for samples in lengths:
            found = cell(process, samples, runs, runs // 20)
            seen = [rates(found.at_bound[scatter]) for scatter in SCATTERS]
            met = ["/".join(f"{found.met_above[scatter, far]:.0f}" for scatter in SCATTERS) for far in ABOVE]
            passes = " / ".join(f"{_marked(one)} ({one.upper:.1f})" for one in seen)
            fails = " / ".join(f"{one.wrong_fail:.1f}" for one in seen)
            yield f"| {process.name} | {samples} | {found.with_interval:.0f} | {passes} | {fails} | {met[0]} | {met[1]} |"


def _rate(found: Rates) -> str:
    return f"{_marked(found)} | {found.wrong_fail:.1f} | {found.undecided:.1f}"


def _marked(found: Rates) -> str:
    """The rates as text, bold where the error exceeds the claim."""
    over = found.wrong_pass > CLAIMED_PERCENT or found.upper > UPPER_PERCENT
    return f"**{found.wrong_pass:.1f}**" if over else f"{found.wrong_pass:.1f}"


def publish(
    made: Callable[[int], Iterator[str]], about: str, runs: int = 500, marks: tuple[str, str] = (BEGIN, END)
) -> None:
    """Prints what `made` yields for the number of runs asked, and writes it between the markers of the document asked."""
    parser = Parser(description=about)
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--write", type=Path, help="document whose part between the markers is renewed")
    options = parser.parse_args()
    lines = []
    for line in made(options.runs):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        renew(options.write, *marks, "\n".join(lines))


if __name__ == "__main__":
    publish(tables, "measured error rates of the verdict", runs=1000)
