"""Latency by percentile on an axis of nines: the tail, which decides about losses, gets the room."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.ticker import FixedLocator, NullLocator

from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_model.statistics import hdr
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.base.units import count, factor_text, latency
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import SERIES
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 52.0
TICK_PERCENTILES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
LONG = 1e4  # nines: see set_percentile_axes
AGREEMENT = 0.02  # the exported distribution and the percentile beside it must agree to two percent
LEAST_SHOWN = 1.0  # percentile: what is faster than that says nothing, and would take a decade of the axis
UNITS_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
KINDS = ("arrival to durable", "write submitted to completed")


@dataclass(frozen=True)
class Curve:
    """Percentile against latency; `whole` when it is the decoded distribution and not the few fields."""

    label: str
    count: int | None
    percentiles: tuple[float, ...]
    us: tuple[float, ...]
    whole: bool
    problem: str | None


def nines(percentile: float) -> float:
    """1 / (1 - share): 90 % stands at 10, 99 % at 100, so that a logarithmic axis gives each nine equal room."""
    return 100.0 / (100.0 - percentile)


def curves_of(minidaq: Minidaq, suffix: str = "") -> list[Curve]:
    pairs = zip(KINDS, (minidaq.latency_us, minidaq.write_latency_us), strict=True)
    return [curve_of(kind + suffix, found) for kind, found in pairs]


def curve_of(label: str, found: Latency) -> Curve:
    try:
        return _decoded(label, found)
    except ValueError as error:
        drawn = {percentile: us for percentile, us in found.points_us.items() if percentile < 100}
        return Curve(label, found.count, tuple(drawn), tuple(drawn.values()), False, str(error))


def _decoded(label: str, found: Latency) -> Curve:
    """The distribution's curve, provided that it agrees with the percentiles that were reported beside it."""
    histogram = hdr.decode(found.hdr)
    total = histogram.total
    if total == 0:
        raise ValueError("the histogram is empty")
    if found.count != total:
        raise ValueError(f"it holds {total} values where the result counts {found.count}")
    unit_us = _unit_us(histogram, found)
    percentiles: list[float] = []
    values: list[float] = []
    seen = 0
    for value, number in zip(histogram.highest, histogram.counts, strict=True):
        # A slot's values lie between the shares below and at it. The last sample has no nines of its own: of n
        # values the plot ends at 1 - 1/(2n), as plotting positions do.
        for share in (seen / total, min((seen + number) / total, 1 - 0.5 / total)):
            percentiles.append(100 * share)
            values.append(max(value, 1) * unit_us)
        seen += number
    return Curve(label, total, tuple(percentiles), tuple(values), True, None)


def _unit_us(histogram: hdr.Histogram, found: Latency) -> float:
    """Returns the unit of the encoded values, in us, tested against the percentiles beside it."""
    unit_us = UNITS_US[found.hdr_unit]
    checks = [(percentile, us) for percentile, us in found.points_us.items() if percentile < 100 and us > 0]
    if not checks:
        raise ValueError("no percentile beside it gives its unit")
    if all(_agrees(histogram, percentile, us / unit_us) for percentile, us in checks):
        return unit_us
    percentile, us = checks[-1]
    raise ValueError(f"its p{percentile:g} is {histogram.value_at(percentile)}, not the {us:g} us reported beside it")


def _agrees(histogram: hdr.Histogram, percentile: float, reported: float) -> bool:
    """Says whether a reported value may be the percentile: one place up or down comes from rounding the rank."""
    rank = histogram.rank_of(percentile)
    low, high = histogram.value_of_rank(rank - 1), histogram.value_of_rank(rank + 1)
    return low * (1 - AGREEMENT) - 1 <= reported <= high * (1 + AGREEMENT) + 1


def latency_figure(bundle: Bundle) -> Figure | None:
    measured = [(number, repetition.minidaq) for number, repetition in enumerate(bundle.repetitions, 1)]
    if not measured:
        return None
    number, worst = max(measured, key=lambda item: (_tail(item[1]), -item[0]))
    curves = curves_of(worst)
    if not curves:
        return None
    name, title = "latency", "Latency by percentile"
    if len(measured) > 1:
        title += f", repetition {bundle.repetitions[number - 1].named(number)} (the longest tail)"
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        for curve, (colour, dashes, marker) in zip(curves, SERIES, strict=False):
            draw_curve(axes, curve, colour, dashes, marker)
        set_percentile_axes(axes, curves)
        axes.label_ends()
        alt = (
            f"{title}: " + "; ".join(f"{curve.label}, highest drawn {latency(max(curve.us))}" for curve in curves) + "."
        )
    return drawing.figure(title, _caption(bundle, curves, worst), alt, _see(worst))


def _tail(minidaq: Minidaq) -> float:
    return minidaq.latency_us.max


def draw_curve(axes: Panel, curve: Curve, colour: str, dashes: object, marker: str) -> None:
    x = [nines(percentile) for percentile in curve.percentiles]
    if curve.whole:
        drawn_x, drawn_y = thinned(x, curve.us, limit=1000)
        axes.plot(drawn_x, drawn_y, color=colour, linestyle=dashes, label=curve.label)
    else:
        axes.plot(x, curve.us, color=colour, linestyle=dashes, marker=marker, label=curve.label)


def set_percentile_axes(axes: Panel, curves: list[Curve]) -> None:
    end = max(nines(max(curve.percentiles)) for curve in curves) * 1.15
    # On a long axis 0 % and 50 % lie so near each other that their texts would touch.
    ticks = [percentile for percentile in TICK_PERCENTILES[end > LONG :] if nines(percentile) <= end]
    axes.set_xscale("log")
    axes.set_xlim(1, max(end, 2))
    axes.xaxis.set_major_locator(FixedLocator([nines(percentile) for percentile in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([nines(percentile) for percentile in ticks], [f"{percentile:g}\u202f%" for percentile in ticks])
    set_latency_axis(axes, [us for curve in curves for us in curve.us if us > 0])
    axes.set_ylim(bottom=_floor(curves))
    axes.name_axes("percentile (each nine has equal room)", "latency")
    axes.name_data(x="1 / (1 - share)", y="latency (us)")


def _floor(curves: list[Curve]) -> float:
    """Returns where the vertical axis begins: a single quick write of a million must not squeeze all others."""
    shown = [
        us
        for one in curves
        for share, us in zip(one.percentiles, one.us, strict=True)
        if share >= LEAST_SHOWN and us > 0
    ]
    return 0.9 * min(shown, default=1.0)


def set_latency_axis(axes: Panel, us: list[float]) -> None:
    """A logarithmic vertical axis in us, ms and s; few decades have room for 1, 2 and 5 of each."""
    subdivisions = (1.0, 2.0, 5.0) if us and max(us) < 2000 * min(us) else (1.0,)
    axes.decades("y", *subdivisions, form=lambda us: latency(us, 1))


def _caption(bundle: Bundle, curves: list[Curve], shown: Minidaq) -> str:
    parts = [
        "The share of superchunks (or writes) that took no longer than the value on the vertical axis; the far right is the tail."
    ]
    parts.append(
        "; ".join(f"{curve.label}: n = {count(curve.count)}" for curve in curves if curve.count is not None) + "."
    )
    for curve in curves:
        if curve.problem:
            parts.append(
                f"{curve.label}: the exported distribution was not used ({curve.problem}); the marked percentiles are."
            )
        elif not curve.whole:
            parts.append(f"{curve.label}: no distribution was exported, only the marked percentiles.")
    if lost := shown.superchunks.lost:
        parts.append(f"{count(lost)} superchunks were lost: they never arrived on the drive and have no latency here.")
    if bundle.run.scenario.scale is not None and bundle.run.scenario.scale < 1:
        parts.append(f"Scaled down: at {factor_text(bundle.run.scenario.scale)} of the load; latency rises with it.")
    return " ".join(part for part in parts if part != ".")


def _see(worst: Minidaq) -> str:
    points = worst.latency_us.points_us
    names = {50.0: "half of them", 99.0: "99 %", 99.9: "99.9 %", 100.0: "all"}
    told = [f"{words} within {latency(points[share])}" for share, words in names.items()]
    return f"Superchunks were durable: {', '.join(told)}."
