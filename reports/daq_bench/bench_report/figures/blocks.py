"""Throughput against block size. One axis, one unit: GiB/s of 2**30 bytes, on sizes in powers of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import GIB, TIMES, binary_size, duration, factor_text, in_gib_per_s
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREEN, GREY, INK, ORANGE, SKY, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.figures.references import measured_references
from daq_bench.bench_report.figures.sizes import (
    Line,
    draw_spread,
    not_drawn,
    published_lines,
    rate_axis,
    samples_text,
    size_axis,
    with_gaps,
)
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 78.0
BESIDE = 1.15  # times the block size: where its repetitions stand


@dataclass(frozen=True)
class Look:
    """Describes how one tool's scan is drawn."""

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
    scans = scan.scans
    drawn = [point for point in scan.points if point.admissible]
    counted = [point for one in scans for point in one.points if point.admissible]
    if not drawn:
        return None
    name, title = "blocks", "Sequential write throughput against block size"
    with sheet(name, HEIGHT_MM) as (drawing, (axes,)):
        for one, look in zip(scans, LOOKS, strict=False):
            _draw_points(axes, one, look, alone=len(scans) == 1)
            _draw_plateau(axes, one, look, alone=len(scans) == 1)
            _draw_repetitions(axes, one, look, alone=len(scans) == 1)
        again = [rate for one in scans for _, rate in _repeated(one)]
        seen = [
            rate for point in counted for rate in (point.throughput_bytes_per_s, *point.throughput_bytes_per_s_samples)
        ]
        top = max(*seen, *again)
        size_axis(axes, [point.block_bytes for point in scan.points], "block size (bytes, powers of two)")
        rate_axis(axes, [*seen, top], _lines(bundle))
        axes.legend_above(columns=3)
        alt = (
            f"{title}: {len(drawn)} block sizes from {binary_size(drawn[0].block_bytes)} to "
            f"{binary_size(drawn[-1].block_bytes)}, highest {in_gib_per_s(top)}."
        )
    return drawing.figure(title, _caption(bundle, scan, drawn), alt, _see(bundle, drawn))


def _draw_points(axes: Panel, scan: BlockScan, look: Look, alone: bool) -> None:
    points = scan.points
    line = with_gaps([point.throughput_bytes_per_s if point.admissible else None for point in points])
    label = "mean" if alone else f"{scan.tool}, mean"
    axes.curve([point.block_bytes for point in points], line, (look.colour, look.dashes, look.marker), label, zorder=3)
    drawn = [point for point in points if point.admissible]
    x, y = [point.block_bytes for point in drawn], [point.throughput_bytes_per_s for point in drawn]
    samples = [point.throughput_bytes_per_s_samples for point in drawn]
    label = "lowest to highest sample" if alone or scan.tool == "fio" else "_nolegend_"
    draw_spread(axes, x, y, samples, look.spread, elinewidth=0.8, capsize=2.5, capthick=0.8, label=label, zorder=5)


def _repeated(scan: BlockScan) -> list[tuple[int, float]]:
    """(block size, throughput in B/s) of the repetitions that count."""
    found = ((one.block_bytes, one.throughput_bytes_per_s) for one in scan.measured_again)
    return [(size, rate) for size, rate in found if rate is not None]


def _draw_repetitions(axes: Panel, scan: BlockScan, look: Look, alone: bool) -> None:
    """Draws the repetitions beside the scan's own point, so that neither hides the other."""
    found = _repeated(scan)
    if not found:
        return
    x, y = [size * BESIDE for size, _ in found], [rate / GIB for _, rate in found]
    axes.mark(x, y, "x", look.plateau, "measured again" if alone else f"{scan.tool}, measured again", 6, size=4)


def _draw_plateau(axes: Panel, scan: BlockScan, look: Look, alone: bool) -> None:
    rate, start = scan.plateau.throughput_bytes_per_s, scan.plateau.from_block_bytes
    if rate is None or start is None:
        return
    end = max(point.block_bytes for point in scan.points if point.admissible)
    of = "plateau" if alone else f"plateau, {scan.tool}"
    axes.hlines(
        rate / GIB, start, end * 1.25, color=look.plateau, linewidth=1.1, linestyle="--" if look is LOOKS[0] else ":",
        label=f"{of} {in_gib_per_s(rate)} from {binary_size(start)}", zorder=4,
    )  # fmt: skip


def _lines(bundle: Bundle) -> list[Line]:
    demand, scale = bundle.run.demand, bundle.run.scenario.scale
    found: list[Line] = []
    if demand:
        if scale is not None and scale < 1:
            label = f"demand {TIMES} {factor_text(scale)}"
            found.append(Line(label, demand.real_bytes_per_s * scale, GREY, (0, (1, 1.5))))
        found.append(Line("real demand", demand.real_bytes_per_s, VERMILLION, (0, (6, 2))))
    return [*found, *published_lines(measured_references(bundle, "sequential_write_throughput"))]


def _caption(bundle: Bundle, scan: BlockScan, drawn: Sequence[WritePoint]) -> str:
    parts = [_how_measured(scan, drawn), _plateau_text(scan), _large_blocks_text(scan)]
    for other in scan.scans[1:]:
        parts.append(_how_measured(other, [point for point in other.points if point.admissible]))
        if other.plateau.throughput_bytes_per_s is None:
            parts.append(f"With {other.tool} the scan has no plateau.")
        if other.measured_again:
            parts.append(_repetitions_text(other))
    masked = [
        binary_size(point.block_bytes) + (f" with {one.tool}" if scan.others else "")
        for one in scan.scans
        for point in one.points
        if not point.admissible
    ]
    parts.append(not_drawn(masked, see_table("blocks")))
    parts += [one.attribution for one in measured_references(bundle, "sequential_write_throughput")]
    if bundle.run.scaled_down:
        kind = bundle.run.target.kind.replace("-", " ") if bundle.run.target else "target"
        parts.append(f"The scan is not paced, so no scale applies to it: it shows this {kind}'s own speed.")
    return " ".join(part for part in parts if part)


def _plateau_text(scan: BlockScan) -> str:
    rule, reason = f"{scan.plateau.rule.rstrip('.')}.", scan.reasons.get("block_scan.plateau_throughput")
    if scan.plateau.throughput_bytes_per_s is not None:
        return rule
    why = f"{reason[0].upper()}{reason[1:].rstrip('.')}" if reason else "The scan has no plateau"
    return f"{why}. {rule}".rstrip()


def _large_blocks_text(scan: BlockScan) -> str:
    if scan.measured_again:
        return _repetitions_text(scan)
    large = scan.large_blocks
    if large.throughput_bytes_per_s is None:
        return ""
    rate, start = in_gib_per_s(large.throughput_bytes_per_s), binary_size(large.from_block_bytes)
    return f"The lowest point from {start} on is {rate}. Large blocks were not measured again, and one short point decides nothing."


def _repetitions_text(scan: BlockScan) -> str:
    """Says how many repetitions judge the requirements on large blocks, and their range."""
    rates = [rate for _, rate in _repeated(scan)]
    sizes = sorted({one.block_bytes for one in scan.measured_again})
    each = sorted({sum(one.block_bytes == size for one in scan.measured_again) for size in sizes})
    times = str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}"
    text = f"With {scan.tool}, blocks of {', '.join(binary_size(size) for size in sizes)} were measured again {times} times each, in turns"
    if not rates:
        return f"{text}; these repetitions do not count."
    missing = len(scan.measured_again) - len(rates)
    text += f" (crosses, n = {len(rates)}, {in_gib_per_s(min(rates))} to {in_gib_per_s(max(rates))}"
    text += f"; {missing} more do not count)" if missing else ")"
    return f"{text}: requirements on large blocks are judged by these."


def _how_measured(scan: BlockScan, drawn: Sequence[WritePoint]) -> str:
    shape = [
        f"{scan.threads} thread{'s' if scan.threads != 1 else ''}",
        f"queue depth {scan.io_depth}",
        scan.condition,
    ]
    how = ", ".join(part for part in shape if part)
    n = f"n = {len(drawn)} block sizes"
    numbers = [len(point.throughput_bytes_per_s_samples) for point in drawn]
    if any(numbers):
        n += f", each with {samples_text(numbers)} samples of {duration(scan.sample_s)}"
    return f"Sequential writing with {scan.tool} ({how}); {n}."


def _see(bundle: Bundle, drawn: Sequence[WritePoint]) -> str:
    best, worst = (pick(drawn, key=lambda point: point.throughput_bytes_per_s) for pick in (max, min))
    text = f"The mean is highest at {binary_size(best.block_bytes)} ({in_gib_per_s(best.throughput_bytes_per_s)})"
    if worst is not best:
        text += f" and lowest at {binary_size(worst.block_bytes)} ({in_gib_per_s(worst.throughput_bytes_per_s)})"
    demand = bundle.run.demand
    if demand is None:
        return f"{text}."
    over = [point for point in drawn if point.throughput_bytes_per_s >= demand.real_bytes_per_s]
    return f"{text}; at {len(over)} of {len(drawn)} sizes it reaches one unit's real demand."
