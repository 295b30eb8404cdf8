"""Tells how often the search over few nights finds false steps, and how often a true one, in seeded synthetic series.

`python inventory/studies/trend_rates.py [--runs N] [--write docs/trend.md]` writes the table between the markers of that document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from error_rates import publish

from daq_bench.bench_model.nights import steps as night_steps
from daq_bench.bench_model.nights.steps import Values
from daq_bench.bench_model.statistics import change_points

SEED = 20211
COUNTS, MEMORIES = (10, 20, 40), (0.0, 0.3, 0.6)
STEP_SD = 3.0  # of the spread between nights
WIDE, NARROW, SHARE_WIDE = 1.5, 0.3, 0.3  # standard errors of single runs, in the same unit


def series_of(random: np.random.Generator, count: int, phi: float) -> tuple[Values, Values]:
    """Nights of spread 1 that resemble each other, three in ten of them measured badly; and their standard errors."""
    errors = np.where(random.random(count) < SHARE_WIDE, WIDE, NARROW)
    nights = night_steps.autoregressive(random, 1, count, phi)[0]
    return nights + errors * random.standard_normal(count), errors


def rates(count: int, phi: float, series: int) -> tuple[float, float, float]:
    """Shares of series: with a step though there is none; the same by `change_points`; with the true step within a night of its place."""
    random = np.random.default_rng([SEED, count, int(10 * phi)])
    alarms = others = found = 0
    half = count // 2
    for seed in range(series):
        values, errors = series_of(random, count, phi)
        alarms += bool(night_steps.steps(values, errors, seed))
        others += len(change_points.segments(values, change_points.noise_of(values, 1e-9))) > 1
        stepped = values + STEP_SD * (np.arange(count) >= half)
        found += any(abs(step.index - half) <= 1 for step in night_steps.steps(stepped, errors, seed))
    return alarms / series, others / series, found / series


def table(series: int) -> Iterator[str]:
    yield ""
    yield "| nights | lag-1 correlation | false alarms | the same by PELT (`change_points`) | step of 3 sd found within a night |"
    yield "|---|---|---|---|---|"
    for count in COUNTS:
        for phi in MEMORIES:
            shares = rates(count, phi, series)
            yield f"| {count} | {phi:g} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + " |"
    error = 100 * 1.96 * np.sqrt(0.25 / series)
    yield ""
    yield f"{series} series for each row, seed {SEED}; a share is known to at most {error:.0f} points (95 %).\n"


if __name__ == "__main__":
    publish(table, "false and true steps over few nights", runs=200)
