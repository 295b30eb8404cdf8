"""The LAN against message size: bandwidth, latency, CPU use and memory bandwidth.

Figures that the presentation states in words are drawn as references; the points of its figures are not stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from daq_bench.bench_model.workloads.lan.document import Lan, LanAnalysis, MeasuredFlow, MeasuredTransfer
from daq_bench.bench_report.base.units import THIN, duration, significant
from daq_bench.bench_report.document.canvas import SERIES, Figure, label_panel, legend_above, sheet, to_svg
from daq_bench.bench_report.figures.sizes import size_axis
from daq_bench.bench_report.workloads.lan.words import (
    GBIT,
    Value,
    counted,
    gbit,
    levels,
    masked_text,
    references,
    series_of,
    size_text,
    sizes_of,
    source_text,
    where_text,
)

PANEL_MM, SMALL_MM = 66.0, 44.0


def _draw(
    axes: Axes,
    points: Sequence[MeasuredTransfer],
    value: Value,
    factor: float,
    spread: tuple[Value, Value] | None = None,
) -> float:
    """Draws every series, with gaps where a point does not count; returns the highest value."""
    top = 0.0
    for (label, own), (colour, dashes, marker) in zip(series_of(points).items(), SERIES * 2, strict=False):
        x = [one.message_bytes for one in own]
        values = [value(one) if one.admissible else None for one in own]
        heights = [math.nan if one is None else one / factor for one in values]
        if all(math.isnan(one) for one in heights):
            continue
        axes.plot(x, heights, color=colour, linestyle=dashes, marker=marker, label=label, zorder=3)
        top = max([top, *(one for one in heights if not math.isnan(one))])
        for at, point, height in zip(x, own, heights, strict=True):
            ends = [one(point) for one in spread] if spread and not math.isnan(height) else []
            if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
                low, high = ends[0] / factor, ends[1] / factor
                whisker = ((max(0.0, height - low),), (max(0.0, high - height),))
                axes.errorbar(
                    at,
                    height,
                    yerr=whisker,
                    fmt="none",
                    ecolor=colour,
                    elinewidth=0.7,
                    capsize=2,
                    capthick=0.7,
                    zorder=2,
                )
    return top


def _flow_end(end: Callable[[MeasuredFlow], float | None]) -> Value:
    return lambda point: end(point.flows[0]) if len(point.flows) == 1 and not point.bidirectional else None


def bandwidth_figure(found: Lan, analysis: LanAnalysis) -> Figure | None:
    """Goodput, CPU use and, where it was collected, memory bandwidth against message size."""
    points = analysis.bandwidth
    if not counted(points):
        return None
    name, title = "lan-bandwidth", "Network and memory bandwidth and CPU use against message size"
    memory = any(one.memory_bytes_per_s is not None for one in points)
    rows = 3 if memory else 2
    with sheet(PANEL_MM + (rows - 1) * SMALL_MM, rows=rows, ratios=(1.5,) + (1.0,) * (rows - 1)) as (figure, panels):
        top = _draw(
            panels[0], points, _total, GBIT,
            (_flow_end(lambda flow: flow.least_bytes_per_s), _flow_end(lambda flow: flow.most_bytes_per_s)),
        )  # fmt: skip
        published = analysis.published
        stated = [
            ("OFED", published.ofed_bytes_per_s),
            ("both directions", published.bidirectional_bytes_per_s),
            ("needed", published.needed_bytes_per_s),
        ]
        beyond = levels(panels[0], references(found, stated), top)
        panels[0].set_ylabel("goodput (Gbit/s)")
        label_panel(panels[0], "network")
        legend_above(panels[0], columns=3)
        _draw(panels[1], points, _cpu, 0.01)
        panels[1].set_ylim(0, 100)
        panels[1].set_ylabel("CPU use (%)")
        label_panel(panels[1], "all CPUs of the candidate")
        if memory:
            _draw(panels[2], points, lambda one: one.memory_bytes_per_s, 1e9)
            panels[2].set_ylim(bottom=0)
            panels[2].set_ylabel("GB/s")
            label_panel(panels[2], "memory")
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest {significant(top, 3)} Gbit/s."
        svg = to_svg(figure, name, alt)
    caption = (
        f"Mean over {duration(found.seconds_per_size)} of one transfer at each size (n = 1), whiskers: its least and "
        f"most interval; "
        "CPU use over exactly the measured stretch. Both directions: their sum. 1 Gbit/s = 10\u2079 bit/s of payload."
        + ("" if memory else " Memory bandwidth: not measured here (reason below).")
        + where_text(found) + beyond + masked_text(points, "lan-bandwidth-table") + source_text(analysis)
    )  # fmt: skip
    see = f"The highest goodput is {_extreme(points, _total, max, gbit)}."
    return Figure(name, title, caption, alt, svg, see)


def _total(point: MeasuredTransfer) -> float | None:
    return point.total_bytes_per_s


def _extreme(
    points: Sequence[MeasuredTransfer],
    value: Value,
    pick: Callable[..., tuple[float, MeasuredTransfer]],
    text: Callable[[float], str],
) -> str:
    """Names the highest or lowest value of those that count, and its place."""
    known = [(one, point) for point in counted(points) if (one := value(point)) is not None]
    best, where = pick(known, key=lambda one: one[0])
    return f"{text(best)} ({where.operation}, messages of {size_text(where)})"


def _cpu(point: MeasuredTransfer) -> float | None:
    return None if point.cpu is None else point.cpu.mean


def _middle(point: MeasuredTransfer) -> float | None:
    """The median, or the mean where the tool knows no more."""
    found = point.latency_us
    return None if found is None else found.mean if found.p50 is None else found.p50


def _high(point: MeasuredTransfer) -> float | None:
    found = point.latency_us
    return _middle(point) if found is None or found.p99 is None else found.p99


def latency_figure(found: Lan, analysis: LanAnalysis) -> Figure | None:
    """Median (the mean where the tool knows no more) with the 99th percentile, and CPU use, against message size."""
    points = analysis.latency
    if not counted(points):
        return None
    name, title = "lan-latency", "Latency and CPU use against message size"
    with sheet(PANEL_MM + SMALL_MM, rows=2, ratios=(1.5, 1.0)) as (figure, panels):
        top = _draw(panels[0], points, _middle, 1.0, (_middle, _high))
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("latency (\u00b5s)")
        legend_above(panels[0], columns=3)
        label_panel(panels[0], "one message at a time")
        _draw(panels[1], points, _cpu, 0.01)
        panels[1].set_ylim(0, 100)
        panels[1].set_ylabel("CPU use (%)")
        label_panel(panels[1], "all CPUs of the candidate")
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest median {significant(top, 3)} us."
        svg = to_svg(figure, name, alt)
    numbers = sorted(one.n or 0 for one in counted(points))
    caption = (
        "netprobe: half of a round trip; ib_read_lat: a whole read. Median, whisker up to the 99th percentile; with -D perftest tells the "
        f"mean alone. {duration(found.seconds_per_size)} at each size, n = {numbers[0]} to {numbers[-1]} messages. The "
        f"source "
        "states no latency." + where_text(found) + masked_text(points, "lan-latency-table")
    )
    lowest = _extreme(points, _middle, min, lambda us: f"{significant(us, 3)}{THIN}\u00b5s")
    return Figure(name, title, caption, alt, svg, f"The lowest is {lowest}.")
