"""Latency by percentile on an axis of nines: the tail, which decides about losses, gets the room."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from bench_model.statistics import hdr
from bench_report.base.envelope import thinned
from bench_report.base.units import count, factor_text, latency
from bench_report.document.canvas import SERIES, Figure, legend_above, sheet, to_svg
from bench_report.document.traces import name_data
from bench_report.reading.dataset.bundle import Bundle
from bench_report.reading.dataset.latency import Latency
from bench_report.reading.dataset.record import Minidaq

HEIGHT_MM = 64.0
TICK_PERCENTILES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
AGREEMENT = 0.02  # the exported distribution and the percentile beside it must agree to two percent
MOST_CURVES = 3
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
    pairs = zip(KINDS, (minidaq.arrival, minidaq.write), strict=True)
    return [curve_of(kind + suffix, found) for kind, found in pairs if found and (found.points_us or found.hdr)]


def curve_of(label: str, found: Latency) -> Curve:
    problem = None
    if found.hdr:
        try:
            return _decoded(label, found)
        except ValueError as error:
            problem = str(error)
    percentiles = tuple(percentile for percentile, _ in found.points_us if percentile < 100)
    return Curve(
        label,
        found.count,
        percentiles,
        tuple(us for percentile, us in found.points_us if percentile < 100),
        False,
        problem,
    )


def _decoded(label: str, found: Latency) -> Curve:
    """The distribution's curve, provided that it agrees with the percentiles that were reported beside it."""
    histogram = hdr.decode(found.hdr or "")
    total = histogram.total
    if total == 0:
        raise ValueError("the histogram is empty")
    if found.count is not None and found.count != total:
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
    """Returns the unit of the encoded values, in us: tested against the percentiles beside it, and found by them if it is not stated."""
    units = (UNITS_US[found.hdr_unit],) if found.hdr_unit in UNITS_US else tuple(UNITS_US.values())
    checks = [(percentile, us) for percentile, us in found.points_us if percentile < 100 and us > 0]
    if not checks:
        raise ValueError("no percentile beside it gives its unit")
    for unit_us in units:
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
    measured = [
        (number, repetition.minidaq) for number, repetition in enumerate(bundle.repetitions, 1) if repetition.minidaq
    ]
    many = len(measured) > 1
    worst_first = sorted(measured, key=lambda item: _tail(item[1]), reverse=True)[:MOST_CURVES]
    curves = [
        curve
        for number, minidaq in sorted(worst_first, key=lambda item: item[0])
        for curve in curves_of(minidaq, f", repetition {bundle.repetitions[number - 1].named(number)}" if many else "")
    ]
    if not curves:
        return None
    name, title = "latency", "Latency by percentile"
    with sheet(HEIGHT_MM) as (figure, (axes,)):
        for curve, (colour, dashes, marker) in zip(curves, SERIES, strict=False):
            draw_curve(axes, curve, colour, dashes, marker)
        set_percentile_axes(axes, curves)
        legend_above(axes, columns=2)
        alt = (
            f"{title}: " + "; ".join(f"{curve.label}, highest drawn {latency(max(curve.us))}" for curve in curves) + "."
        )
        svg = to_svg(figure, name, alt)
    return Figure(name, title, _caption(bundle, curves, len(measured)), alt, svg, _see(worst_first[0][1]))


def _tail(minidaq: Minidaq) -> float:
    points = minidaq.arrival.points_us if minidaq.arrival else ()
    return points[-1][1] if points else 0.0


def draw_curve(axes: Axes, curve: Curve, colour: str, dashes: object, marker: str) -> None:
    x = [nines(percentile) for percentile in curve.percentiles]
    if curve.whole:
        drawn_x, drawn_y = thinned(x, curve.us, limit=1000)
        axes.plot(drawn_x, drawn_y, color=colour, linestyle=dashes, label=curve.label)
    else:
        axes.plot(x, curve.us, color=colour, linestyle=dashes, marker=marker, label=curve.label)


def set_percentile_axes(axes: Axes, curves: list[Curve]) -> None:
    end = max(nines(max(curve.percentiles)) for curve in curves) * 1.15
    ticks = [percentile for percentile in TICK_PERCENTILES if nines(percentile) <= end]
    axes.set_xscale("log")
    axes.set_xlim(1, max(end, 2))
    axes.xaxis.set_major_locator(FixedLocator([nines(percentile) for percentile in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([nines(percentile) for percentile in ticks], [f"{percentile:g}\u202f%" for percentile in ticks])
    set_latency_axis(axes, [us for curve in curves for us in curve.us if us > 0])
    axes.set_xlabel("percentile (each nine has equal room)")
    axes.set_ylabel("latency")
    name_data(axes, x="1 / (1 - share)", y="latency (us)")


def set_latency_axis(axes: Axes, us: list[float]) -> None:
    """A logarithmic vertical axis in us, ms and s; few decades have room for 1, 2 and 5 of each."""
    subdivisions = (1.0, 2.0, 5.0) if us and max(us) < 2000 * min(us) else (1.0,)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=subdivisions, numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: latency(value, 1)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _caption(bundle: Bundle, curves: list[Curve], repetitions: int) -> str:
    parts = [
        "The share of superchunks (or writes) that took no longer than the value on the vertical axis; the far right is the tail."
    ]
    parts.append(
        "; ".join(f"{curve.label}: n = {count(curve.count)}" for curve in curves if curve.count is not None) + "."
    )
    if repetitions > MOST_CURVES:
        parts.append(f"Of {repetitions} repetitions the {MOST_CURVES} with the highest latency are drawn.")
    for curve in curves:
        if curve.problem:
            parts.append(
                f"{curve.label}: the exported distribution was not used ({curve.problem}); the marked percentiles are."
            )
        elif not curve.whole:
            parts.append(f"{curve.label}: no distribution was exported, only the marked percentiles.")
    lost = sum(dict(item.minidaq.superchunks).get("lost", 0) for item in bundle.repetitions if item.minidaq)
    if lost:
        parts.append(f"{count(lost)} superchunks were lost: they never arrived on the drive and have no latency here.")
    if bundle.run.scale is not None and bundle.run.scale < 1:
        parts.append(f"Scaled down: at {factor_text(bundle.run.scale)} of the load; latency rises with it.")
    return " ".join(part for part in parts if part != ".")


def _see(worst: Minidaq) -> str:
    found = worst.arrival or worst.write
    points = dict(found.points_us) if found else {}
    names = {50.0: "half of them", 99.0: "99 %", 99.9: "99.9 %", 100.0: "all"}
    told = [f"{words} within {latency(points[share])}" for share, words in names.items() if share in points]
    what = "Superchunks were durable" if worst.arrival else "Writes were completed"
    return f"{what}: {', '.join(told)}." if told else ""
