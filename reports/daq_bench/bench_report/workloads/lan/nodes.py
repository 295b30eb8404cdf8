"""The LAN between nodes: event building with its incast, and the contribution of each setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.ticker import NullLocator

from daq_bench.bench_model.workloads.lan.document import Contribution, Experiment, Lan, LanAnalysis, MeasuredTransfer
from daq_bench.bench_report.base.units import decimal_size, duration, significant
from daq_bench.bench_report.document.canvas import (
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
from daq_bench.bench_report.workloads.lan.words import (
    GBIT,
    counted,
    gbit,
    levels,
    masked_text,
    references,
    source_text,
    where_text,
)

PANEL_MM, ROW_MM = 66.0, 9.0
RATIOS: tuple[tuple[Callable[[Experiment], Contribution], str, str], ...] = (
    (lambda one: one.bandwidth, "bandwidth, tuned / untuned (more is better)", BLUE),
    (lambda one: one.latency, "latency, tuned / untuned (less is better)", VERMILLION),
)


def building_figure(found: Lan, analysis: LanAnalysis) -> Figure | None:
    """Goodput into each node: streams many to one and all to all, and events built of all nodes' fragments."""
    points = [*analysis.crowd, *analysis.build]
    drawn = counted(points)
    if not drawn:
        return None
    name, title = "lan-building", "Event building: goodput into each node"
    with sheet(PANEL_MM) as (figure, (axes,)):
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
        axes.set_ylabel("goodput (Gbit/s)")
        axes.set_xlabel("receiving node", color=INK)
        legend_above(axes, columns=2)
        alt = f"{title}: {len(drawn)} loads, highest {significant(top, 3)} Gbit/s into one node."
        svg = to_svg(figure, name, alt)
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
    return Figure(name, title, caption, alt, svg, see)


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
    with sheet(2 * (16.0 + ROW_MM * len(experiments)), rows=2) as (figure, panels):
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
            label_panel(axes, text)
        panels[-1].set_xlabel("ratio (1: alike)", color=INK)
        alt = f"{title}: {len(experiments)} experiments."
        svg = to_svg(figure, name, alt)
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
    return Figure(name, title, caption, alt, svg, _settings_words(experiments))


def _settings_words(experiments: Sequence[Experiment]) -> str:
    """Says how many settings change anything for certain: an interval that holds 1 decides nothing."""
    known = [ends for one in experiments for of, _, _ in RATIOS if (ends := of(one).interval) is not None]
    certain = sum(not low <= 1 <= high for low, high in known)
    return f"Of {len(known)} ratios {certain} differ{'s' if certain == 1 else ''} from 1 for certain."
