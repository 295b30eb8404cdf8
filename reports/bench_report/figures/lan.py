"""The LAN's figures: bandwidth, latency, CPU and memory bandwidth against message size; event building; what a setting contributes.

What the presentation states in words is drawn as references; the points of its figures are not stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from ..fields import Node
from ..units import THIN, binary_size, decimal_size, duration, percent, significant
from .canvas import BLUE, GREY, INK, SERIES, VERMILLION, Figure, label_panel, legend_above, sheet, to_svg
from .references import COLOUR, DASHES
from .sizes import size_axis

GBIT = 1.25e8  # B/s
FARTHEST = 2.2
PANEL_MM, SMALL_MM, ROW_MM = 66.0, 44.0, 9.0
FINELY = (0, (1, 1.5))
Value = Callable[[Node], float | None]
RATIOS = (
    ("bandwidth", "bandwidth, tuned / untuned (more is better)", BLUE),
    ("latency", "latency, tuned / untuned (less is better)", VERMILLION),
)


def gbit(bytes_per_s: float) -> str:
    return f"{significant(bytes_per_s / GBIT, 3)}{THIN}Gbit/s"


def counted(points: Sequence[Node]) -> list[Node]:
    return [one for one in points if one.at("admissible").as_flag()]


def series_of(points: Sequence[Node]) -> dict[str, list[Node]]:
    """Points by what makes a series of them: the tool, both directions or one, and the topology."""
    found: dict[str, list[Node]] = {}
    for one in points:
        both = ", both directions" if one.at("bidirectional").as_flag() else ""
        found.setdefault(f"{one.at('operation').as_text()}{both}, {one.at('topology').as_text()}", []).append(one)
    return found


def sizes_of(points: Sequence[Node]) -> list[int]:
    return sorted({one.at("message_bytes").as_integer() for one in points})


def _draw(
    axes: Axes, points: Sequence[Node], value: Value, factor: float, spread: tuple[Value, Value] | None = None
) -> float:
    """Every series, gaps where a point does not count; returns the highest value."""
    top = 0.0
    for (label, own), (colour, dashes, marker) in zip(series_of(points).items(), SERIES * 2, strict=False):
        x = [one.at("message_bytes").as_integer() for one in own]
        values = [value(one) if one.at("admissible").as_flag() else None for one in own]
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


def _flow_end(key: str) -> Value:
    def read(point: Node) -> float | None:
        flows = point.list("flows")
        return flows[0].number(key) if len(flows) == 1 and not point.at("bidirectional").as_flag() else None

    return read


def references(analysis: Node, found: Node, keys: Sequence[tuple[str, str]]) -> list[tuple[str, float, bool]]:
    """(label, B/s, published); with the need at the run's scale, where that is not the stated one."""
    published = analysis.at("published")
    made = [
        (f"published: {text} {gbit(published.at(key).as_number())}", published.at(key).as_number(), True)
        for text, key in keys
    ]
    need = found.at("need_bytes_per_s").as_number()
    if found.at("scale").as_number() != 1:
        made.append((f"needed at this scale {gbit(need)}", need, False))
    return made


def _levels(axes: Axes, levels: Sequence[tuple[str, float, bool]], top: float) -> str:
    """Draws those that do not squash the data; names the others."""
    shown = [one for one in levels if one[1] / GBIT <= FARTHEST * top]
    for label, value, published in shown:
        axes.axhline(
            value / GBIT,
            color=COLOUR if published else GREY,
            linewidth=0.9,
            linestyle=DASHES if published else FINELY,
            label=label,
            zorder=1,
        )
    hidden = [label for label, _, _ in levels if label not in [one[0] for one in shown]]
    axes.set_ylim(0, max([top, *(one[1] / GBIT for one in shown)]) * 1.12 or 1.0)
    return f" Beyond the axis: {'; '.join(hidden)}." if hidden else ""


def _masked(points: Sequence[Node]) -> str:
    bad = [one.at("id").as_text() for one in points if not one.at("admissible").as_flag()]
    return f" Not drawn, since the point does not count (reasons in the table): {', '.join(bad)}." if bad else ""


def source_text(analysis: Node) -> str:
    published = analysis.at("published")
    return (
        f" Published, not measured here: {published.at('source').as_text()} ({published.at('conditions').as_text()}); the points of its "
        "figures are not stated and not drawn."
    )


def where_text(found: Node) -> str:
    """What was scaled down, for every caption."""
    network = found.at("network")
    if network.at("kind").as_text() != "namespaces":
        return f" {network.at('nodes').as_integer()} hosts."
    rate = network.number("port_bytes_per_s")
    ports = f", ports shaped to {gbit(rate)}" if rate else ""
    return f" Emulated: {network.at('nodes').as_integer()} network namespaces of one machine{ports}; no card, cable or switch."


def bandwidth_figure(found: Node, analysis: Node) -> Figure | None:
    """Goodput, CPU use and, where it was collected, memory bandwidth against message size."""
    points = list(analysis.list("bandwidth"))
    if not counted(points):
        return None
    name, title = "lan-bandwidth", "Network and memory bandwidth and CPU use against message size"
    memory = any(one.number("memory_bytes_per_s") is not None for one in points)
    rows = 3 if memory else 2
    with sheet(PANEL_MM + (rows - 1) * SMALL_MM, rows=rows, ratios=(1.5,) + (1.0,) * (rows - 1)) as (figure, panels):
        top = _draw(
            panels[0], points, lambda one: one.number("total_bytes_per_s"), GBIT,
            (_flow_end("least_bytes_per_s"), _flow_end("most_bytes_per_s")),
        )  # fmt: skip
        stated = [
            ("OFED", "ofed_bytes_per_s"),
            ("both directions", "bidirectional_bytes_per_s"),
            ("needed", "needed_bytes_per_s"),
        ]
        beyond = _levels(panels[0], references(analysis, found, stated), top)
        panels[0].set_ylabel("goodput (Gbit/s)")
        label_panel(panels[0], "network")
        legend_above(panels[0], columns=3)
        _draw(panels[1], points, _cpu("mean"), 0.01)
        panels[1].set_ylim(0, 100)
        panels[1].set_ylabel("CPU use (%)")
        label_panel(panels[1], "all CPUs of the candidate")
        if memory:
            _draw(panels[2], points, lambda one: one.number("memory_bytes_per_s"), 1e9)
            panels[2].set_ylim(bottom=0)
            panels[2].set_ylabel("GB/s")
            label_panel(panels[2], "memory")
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest {significant(top, 3)} Gbit/s."
        svg = to_svg(figure, name, alt)
    caption = (
        f"Mean over {duration(found.at('seconds_per_size').as_number())} of one transfer at each size (n = 1), whiskers: its least and "
        f"most interval; "
        " CPU use over exactly the measured stretch. Both directions: their sum. 1 Gbit/s = 10\u2079 bit/s of payload."
        + ("" if memory else " Memory bandwidth: not measured here (reason below).")
        + where_text(found) + beyond + _masked(points) + source_text(analysis)
    )  # fmt: skip
    return Figure(name, title, caption, alt, svg)


def _cpu(key: str) -> Value:
    def read(point: Node) -> float | None:
        cpu = point.find("cpu")
        return None if cpu is None else cpu.number(key)

    return read


def latency_figure(found: Node, analysis: Node) -> Figure | None:
    """Median (the mean where the tool knows no more) with the 99th percentile, and CPU use, against message size."""
    points = list(analysis.list("latency"))
    if not counted(points):
        return None
    name, title = "lan-latency", "Latency and CPU use against message size"

    def read(*keys: str) -> Value:
        def one(point: Node) -> float | None:
            latency = point.find("latency_us")
            values = [] if latency is None else [latency.number(key) for key in keys]
            return next((value for value in values if value is not None), None)

        return one

    with sheet(PANEL_MM + SMALL_MM, rows=2, ratios=(1.5, 1.0)) as (figure, panels):
        top = _draw(panels[0], points, read("p50", "mean"), 1.0, (read("p50", "mean"), read("p99", "p50", "mean")))
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("latency (\u00b5s)")
        legend_above(panels[0], columns=3)
        label_panel(panels[0], "one message at a time")
        _draw(panels[1], points, _cpu("mean"), 0.01)
        panels[1].set_ylim(0, 100)
        panels[1].set_ylabel("CPU use (%)")
        label_panel(panels[1], "all CPUs of the candidate")
        size_axis(panels[-1], sizes_of(points), "message size")
        alt = f"{title}: {len(counted(points))} points, highest median {significant(top, 3)} us."
        svg = to_svg(figure, name, alt)
    numbers = sorted(one.integer("n") or 0 for one in counted(points))
    caption = (
        "netprobe: half of a round trip; ib_read_lat: a whole read. Median, whisker up to the 99th percentile; with -D perftest tells the "
        f"mean alone. {duration(found.at('seconds_per_size').as_number())} at each size, n = {numbers[0]} to {numbers[-1]} messages. The "
        f"source "
        "states no latency." + where_text(found) + _masked(points)
    )
    return Figure(name, title, caption, alt, svg)


def building_figure(found: Node, analysis: Node) -> Figure | None:
    """Goodput into each node: streams many to one and all to all, and events built of all nodes' fragments."""
    points = [*analysis.list("crowd"), *analysis.list("build")]
    drawn = counted(points)
    if not drawn:
        return None
    name, title = "lan-building", "Event building: goodput into each node"
    with sheet(PANEL_MM) as (figure, (axes,)):
        nodes = sorted({node for one in drawn for node, _ in one.at("into").entries()})
        width, top = 0.8 / len(drawn), 0.0
        for index, (one, (colour, _, _)) in enumerate(zip(drawn, SERIES * 2, strict=False)):
            into = {node: value.as_number() / GBIT for node, value in one.at("into").entries()}
            places = [nodes.index(node) - 0.4 + (index + 0.5) * width for node in into]
            axes.bar(places, list(into.values()), 0.9 * width, color=colour, label=crowd_label(one), zorder=2)
            top = max(top, *into.values())
        stated = [("event building", "event_building_bytes_per_s"), ("needed", "needed_bytes_per_s")]
        beyond = _levels(axes, references(analysis, found, stated), top)
        axes.set_xticks(range(len(nodes)), nodes)
        axes.grid(False, axis="x")
        axes.set_ylabel("goodput (Gbit/s)")
        axes.set_xlabel("receiving node", color=INK)
        legend_above(axes, columns=2)
        alt = f"{title}: {len(drawn)} loads, highest {significant(top, 3)} Gbit/s into one node."
        svg = to_svg(figure, name, alt)
    caption = (
        "Many to one: every other node streams into node0 (incast); all to all: every node into every other. Builders ask all other "
        "nodes for "
        f"an event's fragments at once, {found.at('building').at('in_flight').as_integer()} events at a time. One transfer of "
        f"{duration(found.at('seconds_per_size').as_number())} each (n = 1)."
        + where_text(found)
        + beyond
        + _masked(points)
        + source_text(analysis)
    )
    return Figure(name, title, caption, alt, svg)


def crowd_label(one: Node) -> str:
    if one.at("kind").as_text() == "crowd":
        return f"streams, {one.at('operation').as_text()}"
    return f"{one.at('operation').as_text()}, fragments of {decimal_size(one.at('message_bytes').as_number(), 3, trim=True)}"


def settings_figure(found: Node, analysis: Node) -> Figure | None:
    """Tuned over untuned, with its interval: each setting alone, and all together."""
    experiments = [
        one
        for one in analysis.list("settings")
        if one.at("bandwidth").number("ratio") or one.at("latency").number("ratio")
    ]
    if not experiments:
        return None
    name, title = "lan-settings", "What each setting contributes"
    with sheet(2 * (16.0 + ROW_MM * len(experiments)), rows=2) as (figure, panels):
        for axes, (key, text, colour) in zip(
            panels,
            RATIOS,
            strict=True,
        ):  # fmt: skip
            for row, one in enumerate(experiments):
                ratio, ends = one.at(key).number("ratio"), one.at(key).numbers("interval")
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
            axes.set_yticks(range(len(experiments)), [one.at("id").as_text() for one in experiments])
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylim(len(experiments) - 0.4, -0.7)
            label_panel(axes, text)
        panels[-1].set_xlabel("ratio (1: alike)", color=INK)
        alt = f"{title}: {len(experiments)} experiments."
        svg = to_svg(figure, name, alt)
    numbers = sorted({one.at(key).at("n").as_integer() for one in experiments for key in ("bandwidth", "latency")})
    caption = (
        "Each setting tuned alone where all others are untuned, and all tuned together. Geometric mean over "
        f"n = {' to '.join(map(str, numbers[:: max(1, len(numbers) - 1)]))} pairs of "
        f"{duration(found.at('settings').at('seconds').as_number())}, "
        "untuned first in one pair and last in the next; bars: 95 % interval (Student t on log ratios). Latency: the median of each "
        "half. The "
        "source states no contribution of a setting."
        + (" Ports are not shaped here, so that the CPUs' work shows." if found.at("network").at("kind").as_text() == "namespaces" else "")
    )  # fmt: skip
    return Figure(name, title, caption, alt, svg)


def size_text(one: Node) -> str:
    return binary_size(one.at("message_bytes").as_number())


def share_text(value: float | None) -> str:
    return "\u2013" if value is None else percent(100 * value)
