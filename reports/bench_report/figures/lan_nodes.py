"""The LAN between nodes: event building with its incast, and the contribution of each setting."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import NullLocator

from bench_report.base.fields import Node
from bench_report.base.units import decimal_size, duration, significant
from bench_report.document.canvas import (
    BLUE,
    GREY,
    INK,
    SERIES,
    VERMILLION,
    Figure,
    label_panel,
    legend_above,
    sheet,
    to_svg,
)
from bench_report.figures.lan_words import GBIT, counted, gbit, levels, masked_text, references, source_text, where_text

PANEL_MM, ROW_MM = 66.0, 9.0
RATIOS = (
    ("bandwidth", "bandwidth, tuned / untuned (more is better)", BLUE),
    ("latency", "latency, tuned / untuned (less is better)", VERMILLION),
)


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
        beyond = levels(axes, references(analysis, found, stated), top)
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
        + masked_text(points, "lan-crowds")
        + source_text(analysis)
    )
    taken = [(value.as_number(), node, one) for one in drawn for node, value in one.at("into").entries()]
    rate, node, load = max(taken, key=lambda one: one[0])
    see = f"The most that one node took in is {gbit(rate)} ({node}; {crowd_label(load)})."
    return Figure(name, title, caption, alt, svg, see)


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
    return Figure(name, title, caption, alt, svg, _settings_words(experiments))


def _settings_words(experiments: Sequence[Node]) -> str:
    """Says how many settings change anything for certain: an interval that holds 1 decides nothing."""
    ends = [one.at(key).numbers("interval") for one in experiments for key in ("bandwidth", "latency")]
    known = [pair for pair in ends if len(pair) == 2]
    certain = sum(not low <= 1 <= high for low, high in known)
    return f"Of {len(known)} ratios {certain} differ{'s' if certain == 1 else ''} from 1 for certain."
