"""A test's rounds: the tracking variable, the measurement window with its mean, its ±10 % and its best line."""

from __future__ import annotations

import math

from matplotlib.ticker import MaxNLocator

from daq_bench.bench_model.workloads.steady_state.document import Test
from daq_bench.bench_model.workloads.steady_state.rounds import FIT_SHARE_MAX, RANGE_SHARE_MAX, Window
from daq_bench.bench_report.base.units import GB, percent, quantity
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREEN, GREY, INK, VERMILLION
from daq_bench.bench_report.document.panel import Panel

HEIGHT_MM = 66.0
BAND = RANGE_SHARE_MAX / 2  # share of the mean, above and below it
ROOM = 1.15
NOT_STEADY = "steady state not reached"
SCALES = {"B/s": (GB, "GB/s"), "IOPS": (1e3, "1000 operations/s"), "us": (1.0, "\u00b5s")}


def rounds_figure(test: Test, window: Window | None) -> Figure | None:
    """Draws the test's rounds; None where no round counts. `window`: the steady one, or the last that was tried."""
    values = [one.value for one in test.rounds]  # None where masked
    drawn = [value for value in values if value is not None]
    if not drawn:
        return None
    factor, unit = SCALES.get(test.unit, (1.0, test.unit))
    title = f"{test.title}: rounds to steady state"
    with sheet(f"steady-{test.name}", HEIGHT_MM) as (drawing, (axes,)):
        if window:
            _draw_window(axes, window, test.steady, factor)
        x = range(1, len(values) + 1)
        y = [math.nan if value is None else value / factor for value in values]
        axes.plot(x, y, color=BLUE, marker="o", label="round", zorder=4)
        top = max([*drawn, window.mean * (1 + BAND) if window else 0.0])
        axes.set_ylim(0, top / factor * ROOM)
        axes.set_xlim(0.5, len(values) + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.name_axes("round", unit)
        axes.legend_above(columns=5)
        state = (
            f"steady from round {window.first_round} to {window.last_round}" if test.steady and window else NOT_STEADY
        )
        alt = f"{title}: {len(values)} rounds, {state}."
    see = f"{state[0].upper()}{state[1:]}, of {len(values)} rounds."
    return drawing.figure(title, _caption(test, window), alt, see)


def _draw_window(axes: Panel, window: Window, steady: bool, factor: float) -> None:
    colour = GREEN if steady else GREY
    first, last = window.first_round, window.last_round
    label = f"window: rounds {first} to {last}" if steady else f"last window: rounds {first} to {last}"
    axes.shade([(first - 0.4, last + 0.4)], colour, "", label)
    span = (first - 0.4, last + 0.4)
    axes.hlines(window.mean / factor, *span, color=INK, linewidth=1.0, label="mean", zorder=3)
    for share, name in ((BAND, f"mean \u00b1 {BAND:.0%}"), (-BAND, "_nolegend_")):
        axes.hlines(
            window.mean * (1 + share) / factor,
            *span,
            color=INK,
            linewidth=0.8,
            linestyle=(0, (2, 2)),
            label=name,
            zorder=3,
        )
    ends = [(window.intercept + window.slope_per_round * number) / factor for number in (first, last)]
    axes.plot((first, last), ends, color=VERMILLION, linestyle="--", label="best line", zorder=5)


def _caption(test: Test, window: Window | None) -> str:
    masked = [str(number) for number, one in enumerate(test.rounds, 1) if one.value is None]
    hole = f" Not drawn, since the round does not count: {', '.join(masked)}." if masked else ""
    if window is None:
        return f"Tracking variable: {test.tracking}. Steady state not reached: no five successive rounds count.{hole}"
    which = "Steady" if test.steady else "Steady state not reached; the last window"
    spread, fit = percent(100 * window.range_share), percent(100 * window.fit_share)
    figures = (
        f"mean {quantity(window.mean, test.unit)}, max \u2212 min {spread} of it (at most {RANGE_SHARE_MAX:.0%}), "
        f"excursion of the best line {fit} (at most {FIT_SHARE_MAX:.0%})"
    )
    return f"Tracking variable: {test.tracking}. {which}, rounds {window.first_round} to {window.last_round}: {figures}.{hole}"
