"""The figures of the LAN: bandwidth, latency and CPU use against message size, event building, and what each setting contributes.

Figures that the presentation states in words are drawn as references; the points of its figures are not stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.ticker import NullLocator

from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import THIN, binary_size, decimal_size, duration, percent, significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREY, INK, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.figures.references import COLOUR, DASHES
from daq_bench.bench_report.figures.sizes import size_axis
from daq_bench.workloads.lan.document import (
    Contribution,
    Experiment,
    Lan,
    LanAnalysis,
    MeasuredFlow,
    MeasuredTransfer,
)
from daq_bench.workloads.lan.plan import GBIT

PANEL_MM, SMALL_MM, ROW_MM = 66.0, 44.0, 9.0
FARTHEST = 2.2
FINELY = (0, (1, 1.5))
Value = Callable[[MeasuredTransfer], float | None]
RATIOS: tuple[tuple[Callable[[Experiment], Contribution], str, str], ...] = (
    (lambda one: one.bandwidth, "bandwidth, tuned / untuned (more is better)", BLUE),
    (lambda one: one.latency, "latency, tuned / untuned (less is better)", VERMILLION),
)


def gbit(bytes_per_s: float) -> str:
    return f"{significant(bytes_per_s / GBIT, 3)}{THIN}Gbit/s"


def counted(points: Sequence[MeasuredTransfer]) -> list[MeasuredTransfer]:
    return [one for one in points if one.admissible]


def series_of(points: Sequence[MeasuredTransfer]) -> dict[str, list[MeasuredTransfer]]:
    """Returns the points by series: the tool, both directions or one, and the topology make one."""
    found: dict[str, list[MeasuredTransfer]] = {}
    for one in points:
        both = ", both directions" if one.bidirectional else ""
        found.setdefault(f"{one.operation}{both}, {one.topology}", []).append(one)
    return found


def sizes_of(points: Sequence[MeasuredTransfer]) -> list[int]:
    return sorted({one.message_bytes for one in points})


def references(found: Lan, stated: Sequence[tuple[str, float]]) -> list[tuple[str, float, bool]]:
    """(label, B/s, published) of what the source states; with the need at the run's scale, where that is not the stated one."""
    made = [(f"published: {text} {gbit(value)}", value, True) for text, value in stated]
    if found.scale != 1:
        made.append((f"needed at this scale {gbit(found.need_bytes_per_s)}", found.need_bytes_per_s, False))
    return made


def levels(axes: Panel, wanted: Sequence[tuple[str, float, bool]], top: float) -> str:
    """Draws the references that do not squash the data; returns words that name the others."""
    shown = [one for one in wanted if one[1] / GBIT <= FARTHEST * top]
    for label, value, published in shown:
        axes.axhline(
            value / GBIT,
            color=COLOUR if published else GREY,
            linewidth=0.9,
            linestyle=DASHES if published else FINELY,
            label=label,
            zorder=1,
        )
    hidden = [label for label, _, _ in wanted if label not in [one[0] for one in shown]]
    axes.set_ylim(0, max([top, *(one[1] / GBIT for one in shown)]) * 1.12 or 1.0)
    return f" Beyond the axis: {'; '.join(hidden)}." if hidden else ""


def masked_text(points: Sequence[MeasuredTransfer], table: str) -> str:
    """Says how many points are not drawn; `table` has their reasons."""
    bad = [one.id for one in points if not one.admissible]
    return (
        f" Not drawn, since the point does not count (reasons in {see_table(table)}): {', '.join(bad)}." if bad else ""
    )


def source_text(analysis: LanAnalysis) -> str:
    published = analysis.published
    return (
        f" Published, not measured here: {published.source} ({published.conditions}); the points of its figures are not stated and not "
        "drawn."
    )


def where_text(found: Lan) -> str:
    """Says for every caption where the transfers ran and what was scaled down."""
    network = found.network
    if network.kind != "namespaces":
        return f" {network.nodes} hosts."
    ports = f", ports shaped to {gbit(network.port_bytes_per_s)}" if network.port_bytes_per_s else ""
    return f" Emulated: {network.nodes} network namespaces of one machine{ports}; no card, cable or switch."


def size_text(one: MeasuredTransfer) -> str:
    return binary_size(one.message_bytes)


def share_text(value: float | None) -> str:
    return "\u2013" if value is None else percent(100 * value)


def _draw(
    axes: Panel,
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
    with sheet(name, PANEL_MM + (rows - 1) * SMALL_MM, rows=rows, ratios=(1.5,) + (1.0,) * (rows - 1)) as (
        drawing,
        panels,
    ):
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
        panels[0].label_panel("network", "goodput (Gbit/s)")
        panels[0].legend_above(columns=3)
        _draw_cpu(panels[1], points)
        if memory:
            _draw(panels[2], points, lambda one: one.memory_bytes_per_s, 1e9)
            panels[2].set_ylim(bottom=0)
            panels[2].label_panel("memory", "GB/s")
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest {significant(top, 3)} Gbit/s."
    caption = (
        f"Mean over {duration(found.seconds_per_size)} of one transfer at each size (n = 1), whiskers: its least and "
        f"most interval; "
        "CPU use over exactly the measured stretch. Both directions: their sum. 1 Gbit/s = 10\u2079 bit/s of payload."
        + ("" if memory else " Memory bandwidth: not measured here (reason below).")
        + where_text(found) + beyond + masked_text(points, "lan-bandwidth-table") + source_text(analysis)
    )  # fmt: skip
    see = f"The highest goodput is {_extreme(points, _total, max, gbit)}."
    return drawing.figure(title, caption, alt, see)


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


def _draw_cpu(axes: Panel, points: Sequence[MeasuredTransfer]) -> None:
    _draw(axes, points, lambda one: None if one.cpu is None else one.cpu.mean, 0.01)
    axes.set_ylim(0, 100)
    axes.label_panel("all CPUs of the candidate", "CPU use (%)")


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
    with sheet(name, PANEL_MM + SMALL_MM, rows=2, ratios=(1.5, 1.0)) as (drawing, panels):
        top = _draw(panels[0], points, _middle, 1.0, (_middle, _high))
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("latency (\u00b5s)")
        panels[0].legend_above(columns=3)
        panels[0].label_panel("one message at a time")
        _draw_cpu(panels[1], points)
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest median {significant(top, 3)} us."
    numbers = sorted(one.n or 0 for one in counted(points))
    caption = (
        "netprobe: half of a round trip; ib_read_lat: a whole read. Median, whisker up to the 99th percentile; with -D perftest tells the "
        f"mean alone. {duration(found.seconds_per_size)} at each size, n = {numbers[0]} to {numbers[-1]} messages. The "
        f"source "
        "states no latency." + where_text(found) + masked_text(points, "lan-latency-table")
    )
    lowest = _extreme(points, _middle, min, lambda us: f"{significant(us, 3)}{THIN}\u00b5s")
    return drawing.figure(title, caption, alt, f"The lowest is {lowest}.")


def building_figure(found: Lan, analysis: LanAnalysis) -> Figure | None:
    """Goodput into each node: streams many to one and all to all, and events built of all nodes' fragments."""
    points = [*analysis.crowd, *analysis.build]
    drawn = counted(points)
    if not drawn:
        return None
    name, title = "lan-building", "Event building: goodput into each node"
    with sheet(name, PANEL_MM) as (drawing, (axes,)):
        nodes = sorted({node for one in drawn for node in one.into})
        width, top = 0.8 / len(drawn), 0.0
        for index, (one, (colour, _, _)) in enumerate(zip(drawn, SERIES * 2, strict=False)):
            into = {node: value / GBIT for node, value in one.into.items()}
            places = [nodes.index(node) - 0.4 + (index + 0.5) * width for node in into]
            axes.bar(places, list(into.values()), 0.9 * width, color=colour, label=crowd_label(one), zorder=2)
            top = max(top, *into.values())
        published = analysis.published
        stated = [("event building", published.event_building_bytes_per_s), ("needed", published.needed_bytes_per_s)]
        beyond = levels(axes, references(found, stated), top)
        axes.set_xticks(range(len(nodes)), nodes)
        axes.grid(False, axis="x")
        axes.name_axes("receiving node", "goodput (Gbit/s)")
        axes.legend_above(columns=2)
        alt = f"{title}: {len(drawn)} loads, highest {significant(top, 3)} Gbit/s into one node."
    caption = (
        "Many to one: every other node streams into node0 (incast); all to all: every node into every other. Builders ask all other "
        "nodes for "
        f"an event's fragments at once, {found.building.in_flight} events at a time. One transfer of "
        f"{duration(found.seconds_per_size)} each (n = 1)."
        + where_text(found)
        + beyond
        + masked_text(points, "lan-crowds")
        + source_text(analysis)
    )
    taken = [(value, node, one) for one in drawn for node, value in one.into.items()]
    rate, node, load = max(taken, key=lambda one: one[0])
    see = f"The most that one node took in is {gbit(rate)} ({node}; {crowd_label(load)})."
    return drawing.figure(title, caption, alt, see)


def crowd_label(one: MeasuredTransfer) -> str:
    if one.kind == "crowd":
        return f"streams, {one.operation}"
    return f"{one.operation}, fragments of {decimal_size(one.message_bytes, 3, trim=True)}"


def settings_figure(found: Lan, analysis: LanAnalysis) -> Figure | None:
    """Tuned over untuned, with its interval: each setting alone, and all together."""
    experiments = [one for one in analysis.settings if one.bandwidth.ratio or one.latency.ratio]
    if not experiments:
        return None
    name, title = "lan-settings", "What each setting contributes"
    with sheet(name, 2 * (16.0 + ROW_MM * len(experiments)), rows=2) as (drawing, panels):
        for axes, (of, text, colour) in zip(
            panels,
            RATIOS,
            strict=True,
        ):  # fmt: skip
            for row, one in enumerate(experiments):
                ratio, ends = of(one).ratio, of(one).interval
                if ratio is None:
                    continue
                bars = ((ratio - ends[0],), (ends[1] - ratio,)) if ends else None
                axes.errorbar(
                    ratio,
                    row,
                    xerr=bars,
                    fmt="o",
                    color=colour,
                    ecolor=colour,
                    elinewidth=0.9,
                    capsize=2.5,
                    capthick=0.9,
                )
                axes.annotate(
                    significant(ratio, 3),
                    (ratio, row),
                    xytext=(0, 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=6.5,
                    color=INK,
                )
            axes.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
            axes.set_yticks(range(len(experiments)), [one.id for one in experiments])
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylim(len(experiments) - 0.4, -0.7)
            axes.label_panel(text)
        panels[-1].set_xlabel("ratio (1: alike)")
        alt = f"{title}: {len(experiments)} experiments."
    numbers = sorted({of(one).n for one in experiments for of, _, _ in RATIOS})
    caption = (
        "Each setting tuned alone where all others are untuned, and all tuned together. Geometric mean over "
        f"n = {' to '.join(map(str, numbers[:: max(1, len(numbers) - 1)]))} pairs of "
        f"{duration(found.settings.seconds)}, "
        "untuned first in one pair and last in the next; bars: 95 % interval (Student t on log ratios). Latency: the median of each "
        "half. The "
        "source states no contribution of a setting."
        + (" Ports are not shaped here, so that the CPUs' work shows." if found.network.kind == "namespaces" else "")
    )  # fmt: skip
    return drawing.figure(title, caption, alt, _settings_words(experiments))


def _settings_words(experiments: Sequence[Experiment]) -> str:
    """Says how many settings change anything for certain: an interval that holds 1 decides nothing."""
    known = [ends for one in experiments for of, _, _ in RATIOS if (ends := of(one).interval) is not None]
    certain = sum(not low <= 1 <= high for low, high in known)
    return f"{certain} of {len(known)} ratios differ{'s' if certain == 1 else ''} significantly from 1."
