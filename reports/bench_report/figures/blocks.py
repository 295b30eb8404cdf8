"""Throughput against block size. One axis, one unit: GiB/s of 2**30 bytes, on sizes in powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from bench_report.base.marks import see_table
from bench_report.base.units import GIB, binary_size, duration, factor_text, in_gib_per_s
from bench_report.document.canvas import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILLION,
    Figure,
    legend_above,
    sheet,
    to_svg,
)
from bench_report.figures.references import COLOUR, dashes, measured_references
from bench_report.reading.dataset.block_scan import BlockPoint, BlockScan
from bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 78.0
FARTHEST = 4.0  # a reference line that lies more than this factor above the data would squash them
MOST_LABELS = 16
BESIDE = 1.15  # times the block size: where its repetitions stand


@dataclass(frozen=True)
class Look:
    """How one tool's scan is drawn."""

    colour: str
    dashes: str
    marker: str
    spread: str
    plateau: str


LOOKS = (Look(BLUE, "-", "o", INK, GREEN), Look(ORANGE, "--", "s", SKY, VERMILLION))


def block_figure(bundle: Bundle) -> Figure | None:
    scan = bundle.block_scan
    if scan is None:
        return None
    scans = [scan, *scan.others]
    drawn = [point for point in scan.points if point.admissible]
    counted = [point for one in scans for point in one.points if point.admissible]
    if not drawn:
        return None
    name, title = "blocks", "Sequential write throughput against block size"
    references = _references(bundle)
    with sheet(HEIGHT_MM) as (figure, (axes,)):
        for one, look in zip(scans, LOOKS, strict=False):
            _draw_points(axes, one, look, alone=len(scans) == 1)
            _draw_plateau(axes, one, look, alone=len(scans) == 1)
            _draw_repetitions(axes, one, look, alone=len(scans) == 1)
        again = [rate for one in scans for _, rate in _repeated(one)]
        top = max(
            max(_spread(point)[1] for point in counted), *(point.throughput_bytes_per_s for point in counted), *again
        )
        shown = [reference for reference in references if reference[1] <= FARTHEST * top]
        _draw_references(axes, shown)
        highest = max([top, *(value for _, value, _, _ in shown)])
        _set_axes(axes, scan.points, highest)
        legend_above(axes, columns=3)
        alt = (
            f"{title}: {len(drawn)} block sizes from {binary_size(drawn[0].block_bytes)} to "
            f"{binary_size(drawn[-1].block_bytes)}, highest {in_gib_per_s(top)}."
        )
        svg = to_svg(figure, name, alt)
    hidden = [reference for reference in references if reference not in shown]
    return Figure(name, title, _caption(bundle, scan, drawn, hidden), alt, svg, _see(bundle, drawn))


def _spread(point: BlockPoint) -> tuple[float, float]:
    samples = point.samples_bytes_per_s or (point.throughput_bytes_per_s,)
    return min(samples), max(samples)


def _draw_points(axes: Axes, scan: BlockScan, look: Look, alone: bool) -> None:
    points = scan.points
    line = [point.throughput_bytes_per_s / GIB if point.admissible else math.nan for point in points]
    # NaN breaks the line: no stroke may suggest the value of a masked point
    label = "mean" if alone else f"{scan.tool}, mean"
    axes.plot(
        [point.block_bytes for point in points], line, color=look.colour, linestyle=look.dashes, marker=look.marker,
        label=label, zorder=3,
    )  # fmt: skip
    drawn = [point for point in points if point.admissible]
    x = [point.block_bytes for point in drawn]
    y = [point.throughput_bytes_per_s / GIB for point in drawn]
    spread = [_spread(point) for point in drawn]
    below = [max(0.0, value - low / GIB) for value, (low, _) in zip(y, spread, strict=True)]
    above = [max(0.0, high / GIB - value) for value, (_, high) in zip(y, spread, strict=True)]
    axes.errorbar(
        x, y, yerr=(below, above), fmt="none", ecolor=look.spread, elinewidth=0.8, capsize=2.5, capthick=0.8,
        label="lowest to highest sample" if alone or scan.tool == "fio" else "_nolegend_", zorder=5,
    )  # fmt: skip


def _repeated(scan: BlockScan) -> list[tuple[int, float]]:
    """(block size, throughput in B/s) of the repetitions that count."""
    found = ((one.block_bytes, one.throughput_bytes_per_s) for one in scan.repetitions)
    return [(size, rate) for size, rate in found if rate is not None]


def _draw_repetitions(axes: Axes, scan: BlockScan, look: Look, alone: bool) -> None:
    """Draws the repetitions beside the scan's own point, so that neither hides the other."""
    found = _repeated(scan)
    if not found:
        return
    axes.plot(
        [size * BESIDE for size, _ in found], [rate / GIB for _, rate in found], color=look.plateau, linestyle="none", marker="x",
        markersize=4, label="measured again" if alone else f"{scan.tool}, measured again", zorder=6,
    )  # fmt: skip


def _draw_plateau(axes: Axes, scan: BlockScan, look: Look, alone: bool) -> None:
    if scan.plateau_bytes_per_s is None or scan.plateau_from_bytes is None:
        return
    level, start = scan.plateau_bytes_per_s / GIB, scan.plateau_from_bytes
    end = max(point.block_bytes for point in scan.points if point.admissible)
    of = "plateau" if alone else f"plateau, {scan.tool}"
    axes.hlines(
        level, start, end * 1.25, color=look.plateau, linewidth=1.1, linestyle="--" if look is LOOKS[0] else ":",
        label=f"{of} {in_gib_per_s(scan.plateau_bytes_per_s)} from {binary_size(start)}", zorder=4,
    )  # fmt: skip


Reference = tuple[str, float, str, object]


def _references(bundle: Bundle) -> list[Reference]:
    demand, scale = bundle.run.demand, bundle.run.scale
    found: list[Reference] = []
    if demand:
        if scale is not None and scale < 1:
            found.append(
                (
                    f"demand x {factor_text(scale)}".replace(" x ", " \u00d7 "),
                    demand.real_bytes_per_s * scale,
                    GREY,
                    (0, (1, 1.5)),
                )
            )
        found.append(("real demand", demand.real_bytes_per_s, VERMILLION, (0, (6, 2))))
    for number, one in enumerate(measured_references(bundle, "sequential_write_throughput")):
        found.append((one.label, one.value, COLOUR, dashes(number)))
    return found


def _draw_references(axes: Axes, references: Sequence[Reference]) -> None:
    for label, value, colour, strokes in references:
        text = f"{label} {in_gib_per_s(value)}"
        axes.axhline(value / GIB, color=colour, linewidth=0.9, linestyle=strokes, label=text, zorder=1)


def _set_axes(axes: Axes, points: Sequence[BlockPoint], highest: float) -> None:
    """Gives every measured size its place on the axis, the masked ones too: a gap is then seen as a gap."""
    sizes = [point.block_bytes for point in points]
    labelled = sizes[:: max(1, -(-len(sizes) // MOST_LABELS))]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 1.35, max(sizes) * 1.35)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(labelled, [binary_size(size).replace("\u202f", "\n") for size in labelled])
    axes.set_ylim(0, highest / GIB * 1.1 or 1.0)
    axes.set_xlabel("block size (bytes, powers of two)", color=INK)
    axes.set_ylabel("throughput (GiB/s)")


def _caption(bundle: Bundle, scan: BlockScan, drawn: Sequence[BlockPoint], hidden: Sequence[Reference]) -> str:
    parts = [_how_measured(scan, drawn), _plateau_text(scan), _large_blocks_text(scan)]
    for other in scan.others:
        parts.append(_how_measured(other, [point for point in other.points if point.admissible]))
        if other.plateau_bytes_per_s is None:
            parts.append(f"With {other.tool} the scan has no plateau.")
        if other.repetitions:
            parts.append(_repetitions_text(other))
    masked = [
        binary_size(point.block_bytes) + (f" with {one.tool}" if scan.others else "")
        for one in (scan, *scan.others)
        for point in one.points
        if not point.admissible
    ]
    if masked:
        parts.append(
            f"Not drawn, since the point does not count as evidence: {', '.join(masked)} (reasons in {see_table('blocks')})."
        )
    if hidden:
        lines = " and ".join(f"{label} ({in_gib_per_s(value)})" for label, value, _, _ in hidden)
        parts.append(f"Beyond the axis: {lines}.")
    parts += [one.attribution for one in measured_references(bundle, "sequential_write_throughput")]
    if bundle.run.scaled_down:
        kind = bundle.run.target.kind.replace("-", " ") if bundle.run.target else "target"
        parts.append(f"The scan is not paced, so no scale applies to it: it shows this {kind}'s own speed.")
    return " ".join(part for part in parts if part)


def _plateau_text(scan: BlockScan) -> str:
    rule = f"{scan.plateau_rule.rstrip('.')}." if scan.plateau_rule else ""
    if scan.plateau_bytes_per_s is not None:
        return rule
    why = f": {scan.reason.rstrip('.')}" if scan.reason else ""
    return f"The scan has no plateau{why}. {rule}".rstrip()


def _large_blocks_text(scan: BlockScan) -> str:
    if scan.repetitions:
        return _repetitions_text(scan)
    if scan.large_blocks_bytes_per_s is None or scan.large_blocks_from_bytes is None:
        return ""
    rate, start = in_gib_per_s(scan.large_blocks_bytes_per_s), binary_size(scan.large_blocks_from_bytes)
    return f"The lowest point from {start} on is {rate}. Large blocks were not measured again, and one short point decides nothing."


def _repetitions_text(scan: BlockScan) -> str:
    """Says how many repetitions judge the requirements on large blocks, and their range."""
    rates = [rate for _, rate in _repeated(scan)]
    sizes = sorted({one.block_bytes for one in scan.repetitions})
    each = sorted({sum(one.block_bytes == size for one in scan.repetitions) for size in sizes})
    times = str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}"
    of = f"With {scan.tool}, blocks" if scan.tool else "Blocks"
    text = f"{of} of {', '.join(binary_size(size) for size in sizes)} were measured again {times} times each, in turns"
    if not rates:
        return f"{text}; none of these repetitions counts."
    missing = len(scan.repetitions) - len(rates)
    text += f" (crosses, n = {len(rates)}, {in_gib_per_s(min(rates))} to {in_gib_per_s(max(rates))}"
    text += f"; {missing} more do not count)" if missing else ")"
    return f"{text}: requirements on large blocks are judged by these."


def _how_measured(scan: BlockScan, drawn: Sequence[BlockPoint]) -> str:
    shape = [
        f"{scan.threads} thread{'s' if scan.threads != 1 else ''}" if scan.threads else "",
        f"queue depth {scan.io_depth}" if scan.io_depth else "",
        scan.condition or "",
    ]
    how = ", ".join(part for part in shape if part)
    numbers = sorted({len(point.samples_bytes_per_s) for point in drawn if point.samples_bytes_per_s})
    n = f"n = {len(drawn)} block sizes"
    if numbers:
        each = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        n += f", each with {each} samples" + (f" of {duration(scan.sample_s)}" if scan.sample_s else "")
    return f"Sequential writing with {scan.tool or 'the load generator'}{f' ({how})' if how else ''}; {n}."


def _see(bundle: Bundle, drawn: Sequence[BlockPoint]) -> str:
    best, worst = (pick(drawn, key=lambda point: point.throughput_bytes_per_s) for pick in (max, min))
    text = f"The mean is highest at {binary_size(best.block_bytes)} ({in_gib_per_s(best.throughput_bytes_per_s)})"
    if worst is not best:
        text += f" and lowest at {binary_size(worst.block_bytes)} ({in_gib_per_s(worst.throughput_bytes_per_s)})"
    demand = bundle.run.demand
    if demand is None:
        return f"{text}."
    over = [point for point in drawn if point.throughput_bytes_per_s >= demand.real_bytes_per_s]
    return f"{text}; at {len(over)} of {len(drawn)} sizes it reaches one unit's real demand."
