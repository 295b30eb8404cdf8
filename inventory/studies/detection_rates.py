"""Tells how often the detection of dips, of throttling and of equilibrium is wrong, on seeded series whose truth is known.

    python inventory/studies/detection_rates.py [--hours 40] [--trials 40]     writes the tables of docs/detection.md and docs/thermal.md

Each figure follows from the seeds 0, 1, 2, ...: the same command gives the same tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).parent))
from series_factory import BACKGROUNDS, LEVEL, LOSSES, approach, white, with_dip
from tracks_factory import LOG_PERIOD_S, drive, scenery, track

from daq_bench.bench_model.base.command_line import Parser
from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.behaviour.dip_documents import throttling_document
from daq_bench.bench_model.behaviour.dips import analyse
from daq_bench.bench_model.behaviour.equilibrium import Asymptote, asymptote

PAGE = Path(__file__).resolve().parents[2] / "docs" / "detection.md"
SOAK_PAGE = PAGE.with_name("thermal.md")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
DEPTHS = (0.10, 0.15, 0.20, 0.30, 0.50, 1.00)
LENGTHS = (1, 3, 10, 30, 100)
TIMED = ("white noise, 5 %", "AR(1), 0.8, 5 %")
AT_S, LOAD_S = 450, 900
EARLY_OR_LATE_S = 3
THROTTLED = (5, 10, 30, 100)
CONSTANTS_MIN, SOAKS_MIN = (15, 30, 60), (60, 90, 120, 180, 240)
APPROACHES = tuple(
    (noise, fast) for noise in (0.0, 0.3) for fast in (0.0, 0.4)
)  # K of noise, share that rises within minutes
LOOK_MIN = 10  # between two looks at a soak that goes on
SIGNALS: dict[str, dict[str, bool]] = {
    "temperature over its limit": {"temperature": True},
    "critical warning": {"warning": True},
    "thermal counter": {"counter": True},
    "all three": {"temperature": True, "warning": True, "counter": True},
    "none: no throttling": {},
}


def false_alarms(name: str, hours: int, load_s: int = 3600) -> int:
    """Dips reported in so many seeded hours that hold none, each cut into loads of `load_s`."""
    alarms = 0
    for seed in range(hours):
        series = BACKGROUNDS[name](np.random.default_rng(seed), 3600)
        alarms += sum(len(analyse(part.tolist(), 1.0).dips) for part in np.split(series, 3600 // load_s))
    return alarms


def upper_limit_per_hour(alarms: int, hours: int) -> float:
    """Upper end of the 95 % interval of a Poisson rate (exact)."""
    return float(chi2.ppf(0.95, 2 * alarms + 2) / 2 / hours)


def detected(name: str, depth: float, length: int, trials: int) -> float:
    """Share of dips of a depth and a length that were found where they are."""
    hits = 0
    for seed in range(trials):
        series = with_dip(BACKGROUNDS[name](np.random.default_rng(seed), LOAD_S), AT_S, length, depth)
        hits += any(abs(dip.start_s - AT_S) <= EARLY_OR_LATE_S for dip in analyse(series.tolist(), 1.0).dips)
    return hits / trials


def throttling_found(signals: dict[str, bool], length: int, trials: int) -> float:
    """Share of loads with a dip of half the rate that are called throttling, the drive saying `signals` meanwhile.

    The dip begins at another moment between two readings of the drive's log in each trial."""
    hits = 0
    for seed in range(trials):
        start = AT_S + seed % int(LOG_PERIOD_S)
        series = with_dip(white(np.random.default_rng(seed), LOAD_S), start, length, 0.5)
        hot = (float(start), float(start + length))
        document = throttling_document(scenery(series, drive(LOAD_S, hot, **signals)))
        hits += any(abs(one["start_s"] - start) <= EARLY_OR_LATE_S for one in document["episodes"])
    return hits / trials


def throttling_alarms(hours: int) -> tuple[int, int]:
    """(false alarms, dips that were there) in hours with ten dips for other reasons, the drive warm but below its limit."""
    alarms = dips = 0
    for seed in range(hours):
        rng = np.random.default_rng(seed)
        series = white(rng, 3600)
        for start in range(200, 3500, 330):
            series = with_dip(series, start, int(rng.integers(5, 60)), float(rng.uniform(0.3, 0.9)))
            dips += 1
        warm = {("temperature", "nvme0n1", "temperature_degc"): track(lambda time: 72 + 2 * np.sin(time / 200), 3600)}
        alarms += len(throttling_document(scenery(series, {**drive(3600), **warm}))["episodes"])
    return alarms, dips


def losses_found(name: str, trials: int) -> tuple[float, float]:
    """(share of loads in which the loss is found, mean share of the bytes not written that the findings account for)."""
    hits, shares = 0, []
    for seed in range(trials):
        series = LOSSES[name](np.random.default_rng(seed))
        found = analyse(series.tolist(), 1.0).dips
        hits += bool(found)
        shares.append(sum(dip.lost_bytes for dip in found) / float((LEVEL - series).sum()))
    return hits / trials, float(np.mean(shares))


def asymptotes(minutes: int, trials: int) -> Iterator[tuple[float, list[Asymptote], Asymptote | None]]:
    """(truth, the statement for each length of a soak, the first statement of a look that makes one) of seeded soaks."""
    for noise, fast in APPROACHES:
        for seed in range(trials):
            truth, track = approach(np.random.default_rng(seed), 60 * minutes, 60 * SOAKS_MIN[-1], noise, fast)
            looks = (asymptote(track, 0.0, 60 * at) for at in range(30, SOAKS_MIN[-1] + 1, LOOK_MIN))
            first = next((one for one in looks if one.interval is not None), None)
            yield truth, [asymptote(track, 0.0, 60 * length) for length in SOAKS_MIN], first


def covered(cases: list[tuple[float, Asymptote | None]]) -> str:
    """`given, of these right, mean width` of stated intervals."""
    stated = [(truth, one.interval) for truth, one in cases if one is not None and one.interval is not None]
    if not stated:
        return "0 %"
    right = sum(low <= truth <= high for truth, (low, high) in stated)
    width = np.mean([high - low for _, (low, high) in stated])
    return f"{len(stated) / len(cases):.0%}, {right / len(stated):.1%}, {width:.1f} K"


def soak_tables(trials: int) -> Iterator[str]:
    yield f"**Equilibrium: how often stated, how often the interval holds the truth, its mean width** ({trials} soaks each of four kinds:"
    yield "without noise and with 0.3 K; a rise of 40 K with one time constant, and with 40 % of it in minutes; readings of 1 K)"
    yield ""
    heads = [f"soak of {length} min" for length in SOAKS_MIN]
    yield f"| time constant | {' | '.join(heads)} | ended by the first statement, looked for every {LOOK_MIN} min |"
    yield "|---|" + "---|" * (len(SOAKS_MIN) + 1)
    for minutes in CONSTANTS_MIN:
        cases = list(asymptotes(minutes, trials))
        cells = [covered([(truth, found[at]) for truth, found, _ in cases]) for at in range(len(SOAKS_MIN))]
        cells.append(covered([(truth, first) for truth, _, first in cases]))
        yield f"| {minutes} min | {' | '.join(cells)} |"


def tables(hours: int, trials: int) -> Iterator[str]:
    yield f"**False alarms per hour of a load without a dip** ({hours} seeded hours each, one sample per second)"
    yield ""
    yield "| the load's own behaviour | dips reported | per hour | at most, with 95 % confidence | per hour in loads of 100 s |"
    yield "|---|---|---|---|---|"
    for name in BACKGROUNDS:
        alarms, short = false_alarms(name, hours), false_alarms(name, hours, 100)
        limit = upper_limit_per_hour(alarms, hours)
        yield f"| {name} | {alarms} | {alarms / hours:.3f} | {limit:.3f} | {short / hours:.3f} |"
    yield ""
    yield f"**Losses that no single change of level shows** ({trials} loads each, noise of 5 %)"
    yield ""
    yield "| loss | found | of the bytes not written |"
    yield "|---|---|---|"
    for name in LOSSES:
        found, share = losses_found(name, trials)
        yield f"| {name} | {found:.0%} | {share:.0%} |"
    for name in TIMED:
        yield ""
        yield (
            f"**Detection of one dip in {LOAD_S} s of {name}** ({trials} trials each; found means: begin within "
            f"{EARLY_OR_LATE_S} s of the truth)"
        )
        yield ""
        yield "| depth | " + " | ".join(f"{length} s" for length in LENGTHS) + " |"
        yield "|---|" + "---|" * len(LENGTHS)
        for depth in DEPTHS:
            rates = (f"{detected(name, depth, length, trials):.0%}" for length in LENGTHS)
            yield f"| {depth:.0%} | " + " | ".join(rates) + " |"
    yield ""
    yield f"**Called throttling, where the rate falls to half** ({trials} trials each)"
    yield ""
    yield "| the drive says meanwhile | " + " | ".join(f"for {length} s" for length in THROTTLED) + " |"
    yield "|---|" + "---|" * len(THROTTLED)
    for words, signals in SIGNALS.items():
        rates = (f"{throttling_found(signals, length, trials):.0%}" for length in THROTTLED)
        yield f"| {words} | " + " | ".join(rates) + " |"
    alarms, dips = throttling_alarms(max(1, hours // 4))
    yield ""
    yield (
        f"In {max(1, hours // 4)} further hours with {dips} dips of 30 to 90 % for other reasons, and a drive that came within 1 K of "
        f"its warning temperature, {alarms} were called throttling."
    )


def main() -> None:
    parser = Parser(description="Write the tables of docs/detection.md and docs/thermal.md.")
    parser.add_argument("--hours", type=int, default=40, help="seeded hours per background")
    parser.add_argument("--trials", type=int, default=40, help="trials per cell of the other tables")
    arguments = parser.parse_args()
    renew(SOAK_PAGE, BEGIN, END, "\n".join(soak_tables(arguments.trials // 2)))
    renew(PAGE, BEGIN, END, "\n".join(tables(arguments.hours, arguments.trials)))


if __name__ == "__main__":
    main()
