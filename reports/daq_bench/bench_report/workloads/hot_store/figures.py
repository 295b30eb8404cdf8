"""The hot store's figures: KOPS against value size (figures 5 and 6 of the DAQDB paper), KOPS against time, scale out.

KOPS is thousands of operations per second. Figures that the paper states in words are drawn as references; its points are not stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.ticker import FixedLocator, NullLocator

from daq_bench.bench_model.workloads.hot_store.document import HotStore, Point, Rate, ScalePoint
from daq_bench.bench_model.workloads.hot_store.figures import BACKLOG_PARTS
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import THIN, binary_size, count, duration, significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREEN, GREY, ORANGE, VERMILLION, Look
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.figures.references import COLOUR, DASHES

KOPS = 1e3
PANEL_MM = 62.0
SERIES_MM = 46.0
SCALE_MM = 40.0
REFERENCE_FARTHEST = 2.5  # a reference that lies more than this factor above the data is named and not drawn
SIDES = {
    "put": "put thread in process; redis-benchmark SET over TCP",
    "consume": "get-and-remove thread in process; redis-benchmark GET over TCP",
}


@dataclass(frozen=True)
class Line:
    """One series of a panel: how its rates of putting and of consuming are found in a point, and how it is drawn."""

    label: str
    of: Callable[[Point], tuple[Rate, Rate] | None]
    look: Look

    def rate(self, point: Point, side: str) -> Rate | None:
        found = self.of(point)
        return None if found is None else found[list(SIDES).index(side)]


LINES = (
    Line("LMDB in process, memory", lambda point: (point.embedded.put, point.embedded.consume), (BLUE, "-", "o")),
    Line(
        "LMDB in process, target",
        lambda point: (point.drive.put, point.drive.consume) if point.drive else None,
        (GREEN, "-.", "^"),
    ),
    Line("Redis, loopback TCP", lambda point: (point.redis.set, point.redis.get), (VERMILLION, "--", "s")),
)


def kops(value: float) -> str:
    return f"{significant(value / KOPS, 3)}{THIN}KOPS"


def backlog_of(document: HotStore) -> str:
    """Returns the backlog in words: the amount that may be put and not yet removed."""
    size = document.capacity_bytes // BACKLOG_PARTS
    return f"{binary_size(size)} ({count(size)}{THIN}B)"


def middle_points(document: HotStore) -> list[Point]:
    """Returns for each value size the middle repetition of those that count, by its puts over Redis (the lower one of two); where none
    counts, one that does not."""
    by_size: dict[int, list[Point]] = {}
    for point in document.points:
        by_size.setdefault(point.value_bytes, []).append(point)
    return [_middle(own) for own in by_size.values()]


def _middle(repetitions: list[Point]) -> Point:
    counted = [one for one in repetitions if one.admissible]
    ordered = sorted(counted, key=lambda one: one.ratios.put.value or 0.0)
    return ordered[(len(ordered) - 1) // 2] if ordered else repetitions[0]


def size_figure(document: HotStore) -> Figure | None:
    """Draws mean KOPS by value size, with whiskers to the least sample and of one standard deviation."""
    points = middle_points(document)
    drawn = [point for point in points if point.admissible]
    if not drawn:
        return None
    name = "hot-store-sizes"
    title = "Operations per second against value size: a library call in process, and Redis over loopback TCP"
    sizes = [point.value_bytes for point in points]
    published = document.published
    top = max(_mean(line.rate(point, side)) or 0.0 for point in drawn for line in LINES for side in SIDES)
    values = [("just below", published.just_below_ops_per_s), ("least", published.min_ops_per_s)]
    references = [(f"published: {text} {kops(value)}", value) for text, value in values]
    shown = [one for one in references if one[1] <= REFERENCE_FARTHEST * top]
    with sheet(name, 2 * PANEL_MM, rows=2) as (drawing, panels):
        for axes, (side, text) in zip(panels, SIDES.items(), strict=True):
            for line in LINES:
                _draw_sizes(axes, points, sizes, line, side)
            for (label, value), style in zip(references, (DASHES, (0, (1, 1.5))), strict=True):
                if (label, value) in shown:
                    axes.axhline(value / KOPS, color=COLOUR, linewidth=0.9, linestyle=style, label=label, zorder=1)
            axes.set_ylim(0, max([top, *(value for _, value in shown)]) / KOPS * 1.12)
            axes.label_panel(text, "KOPS")
        panels[0].legend_above(columns=3)
        panels[-1].set_xlim(min(sizes) - 0.06 * max(sizes), max(sizes) * 1.06)
        panels[-1].xaxis.set_major_locator(FixedLocator(sizes))
        panels[-1].xaxis.set_minor_locator(NullLocator())
        panels[-1].set_xlabel("value size (B)")
        alt = f"{title}: {len(drawn)} sizes from {sizes[0]} to {sizes[-1]} B, highest {kops(top)}."
    caption = _size_caption(document, drawn, [one for one in references if one not in shown])
    return drawing.figure(title, caption, alt, _size_words(drawn))


def _mean(rate: Rate | None) -> float | None:
    return None if rate is None else rate.mean_ops_per_s


def _draw_sizes(axes: Panel, points: Sequence[Point], sizes: Sequence[int], line: Line, side: str) -> None:
    rates = [line.rate(point, side) if point.admissible else None for point in points]
    means = [_mean(rate) for rate in rates]
    if all(mean is None for mean in means):
        return
    heights = [math.nan if mean is None else mean / KOPS for mean in means]
    axes.curve(sizes, heights, line.look, line.label, zorder=3)
    known = [
        (s, mean, rate)
        for s, mean, rate in zip(sizes, means, rates, strict=True)
        if mean is not None and rate is not None
    ]
    least = [mean - (rate.min_ops_per_s or mean) for _, mean, rate in known]
    deviation = [rate.stdev_ops_per_s or 0.0 for _, _, rate in known]
    x, y = [s for s, _, _ in known], [mean / KOPS for _, mean, _ in known]
    for below, above, width, cap in ((least, [0.0] * len(known), 0.7, 3.0), (deviation, deviation, 1.4, 0.0)):
        spread = ([value / KOPS for value in below], [value / KOPS for value in above])
        axes.errorbar(
            x, y, yerr=spread, fmt="none", ecolor=line.look[0], elinewidth=width, capsize=cap, capthick=0.7, zorder=2
        )


def _size_caption(document: HotStore, drawn: Sequence[Point], beyond: Sequence[tuple[str, float]]) -> str:
    points = document.points
    repetitions = max(point.repetition for point in points)
    numbers = sorted({point.embedded.put.n for point in drawn})
    published, masked = document.published, [one for one in points if not one.admissible]
    promise = document.promises.get("lmdb", "not recorded")
    samples = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    just_below, least, deviation = (
        kops(value)
        for value in (published.just_below_ops_per_s, published.min_ops_per_s, published.stdev_at_most_ops_per_s)
    )
    which = {one: f" (repetition {one})" if repetitions > 1 else "" for one in range(1, repetitions + 1)}
    left_out = ", ".join(f"{one.value_bytes} B{which[one.repetition]}" for one in masked)
    middle = f"the middle one of {repetitions} repetitions by its puts over Redis; " if repetitions > 1 else ""
    parts = [
        f"One put thread beside one get-and-remove thread for {duration(document.seconds_per_point)} at each "
        f"size; {middle}n = {len(drawn)} sizes, each with {samples} samples of {duration(document.sample_s)}. "
        "Thin whisker: down to the least sample; thick: one standard deviation.",
        f"Persistence: the embedded store (LMDB; memory: a file in {document.memory_folder}, which stands for "
        f"persistent memory) keeps its promise, {promise}. Redis is volatile here, and is reached over TCP on loopback by "
        f"redis-benchmark with {document.redis_clients} connections for SET and as many for GET, one request at "
        "a time on each, while the embedded store is called in its own process: the figure compares two ways of building a store, as "
        "the paper does, not two stores of one kind.",
        f"Backlog: put threads wait while {backlog_of(document)} are put and not yet removed; redis-benchmark writes the same 10000 keys "
        "over and over, and removes none.",
        f"Published, not measured here: {published.source} ({published.conditions}): just below "
        f"{just_below}, least {least}, standard deviation at most {deviation}, around "
        f"{published.times_redis} times Redis; the points of its figures are not stated and not drawn.",
        f"Beyond the axis: {' and '.join(label for label, _ in beyond)}." if beyond else "",
        f"Not drawn, since the point does not count as evidence: {left_out} (reasons in {see_table('hot-store-sizes-table')})."
        if masked
        else "",
    ]
    return " ".join(part for part in parts if part)


def series_figure(document: HotStore) -> Figure | None:
    """KOPS of the embedded store in each sample, at the smallest and at the largest value size that counts."""
    drawn = [point for point in middle_points(document) if point.admissible]
    if not drawn:
        return None
    name, title = "hot-store-series", "Operations per second against time"
    chosen = drawn[:1] if len(drawn) == 1 else [drawn[0], drawn[-1]]
    sample_s = document.sample_s
    with sheet(name, SERIES_MM * len(chosen), rows=len(chosen)) as (drawing, panels):
        for axes, point in zip(panels, chosen, strict=True):
            top = 0.0
            own, redis = point.embedded, point.redis
            for rate_of, label, colour, dashes in (
                (own.put, "put", BLUE, "-"),
                (own.consume, "get and remove", ORANGE, "--"),
                (redis.set, "Redis SET over TCP", VERMILLION, "-."),
                (redis.get, "Redis GET over TCP", GREY, ":"),
            ):
                rates = rate_of.samples_ops_per_s
                at = [(index + 1) * sample_s for index in range(len(rates))]
                axes.plot(at, [rate / KOPS for rate in rates], color=colour, linestyle=dashes, label=label)
                top = max([top, *rates])
            axes.set_ylim(0, top / KOPS * 1.15 or 1.0)
            axes.label_panel(f"values of {count(point.value_bytes)}{THIN}B", "KOPS")
        panels[0].legend_above()
        panels[-1].set_xlabel("time since the end of the warm-up (s)")
        alt = f"{title}: values of {' and '.join(str(one.value_bytes) for one in chosen)} B."
    puts = [rate for point in chosen for rate in point.embedded.put.samples_ops_per_s]
    see = (
        f"The embedded store's put lies between {kops(min(puts))} and {kops(max(puts))} in all samples drawn."
        if rates
        else ""
    )
    caption = (
        f"LMDB called in process (a file in memory, survives kill -9) and Redis over loopback TCP (volatile), each alone on the machine, "
        f"one after the other; samples of {duration(sample_s)}. "
        "Put and get-and-remove run at the same time."
    )
    return drawing.figure(title, caption, alt, see)


def scale_figure(document: HotStore) -> Figure | None:
    """KOPS, p99 and network bytes against nodes, base against detached."""
    scale = document.scale_out
    points = [point for point in scale.points if point.admissible]
    if not points:
        return None
    name, title = "hot-store-scale", "Scale out, base and detached deployment"
    panels_of: tuple[tuple[Callable[[ScalePoint], float | None], str, str, float], ...] = (
        (lambda one: one.put_ops_per_s, "put, all producers together", "KOPS", KOPS),
        (lambda one: one.consume_ops_per_s, "claim, get and remove, all consumers together", "KOPS", KOPS),
        (lambda one: one.put_p99_us, "put, 99th percentile of the latency", "us", 1.0),
        (lambda one: one.network_bytes_per_event, "network bytes for each event, put and consumed", "kB (1000 B)", 1e3),
    )
    looks = {"base": (BLUE, "-", "o"), "detached": (VERMILLION, "--", "s")}
    with sheet(name, SCALE_MM * len(panels_of), rows=len(panels_of)) as (drawing, panels):
        for axes, (value_of, text, unit, factor) in zip(panels, panels_of, strict=True):
            for kind, look in looks.items():
                found = [(one.nodes, value_of(one)) for one in points if one.deployment == kind]
                known = sorted((nodes, value / factor) for nodes, value in found if value is not None)
                if known:
                    x, y = zip(*known, strict=True)
                    axes.curve(x, y, look, kind)
            axes.set_ylim(bottom=0)
            axes.label_panel(text, unit)
        panels[0].legend_above()
        nodes = sorted({one.nodes for one in points})
        panels[-1].xaxis.set_major_locator(FixedLocator(nodes))
        panels[-1].set_xlabel("storage nodes")
        alt = f"{title}: {len(points)} points on {', '.join(map(str, nodes))} nodes."
    replicas, consumers = scale.replicas, scale.consumers_per_node
    caption = (
        f"Redis (one node) and Redis Cluster (three and more), values of {count(scale.value_bytes)}{THIN}B; for "
        f"each node a producer and {consumers} consumer{'s' if consumers != 1 else ''}; {replicas} "
        f"replica{'s' if replicas != 1 else ''} must have an event before it is acknowledged (none on one node). Network: "
        f"{scale.network} on one machine, whose CPUs all nodes and clients share, so that more nodes are not more "
        "hardware. base: producers run where their events are kept; detached: all are clients of storage nodes. "
        f"n = {len(points)} points, one run each."
    )
    return drawing.figure(title, caption, alt, _scale_words(points))


def _size_words(drawn: Sequence[Point]) -> str:
    best = [
        (line.label, point, rate)
        for point in drawn
        for line in LINES
        if (rate := _mean(line.rate(point, "put"))) is not None
    ]
    if not best:
        return ""
    label, point, rate = max(best, key=lambda one: one[2])
    return f"The fastest put is {kops(rate)} ({label}, values of {count(point.value_bytes)}{THIN}B)."


def _scale_words(points: Sequence[ScalePoint]) -> str:
    known = [(one.nodes, one.deployment, one.put_ops_per_s) for one in points]
    if not known:
        return ""
    few, many = min(known), max(known)
    return f"Put goes from {kops(few[2])} on {few[0]} ({few[1]}) to {kops(many[2])} on {many[0]} nodes ({many[1]})."
