"""Rate against bytes written as fast as the target takes them: the scan's repetitions of its largest block, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.base.units import GB, binary_size, count, decimal_size, duration, in_gb_per_s, percent
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, FAINT, GREY
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM, ROOM, NAME = 44.0, 1.12, "written"
Series = list[tuple[float, float]]  # B written and B/s after each sample


def written_of(scan: BlockScan) -> tuple[Series, list[float], int]:
    """All bytes written and the rate after each sample, where each repetition ends, B, and the block size; empty without repetitions."""
    again = [one for one in scan.large_blocks.repetitions if one.admissible]
    largest = max((one.block_bytes for one in again), default=0)
    parts = [one.throughput_bytes_per_s_samples for one in again if one.block_bytes == largest]
    series = summed([rate for part in parts for rate in part], scan.sample_s)
    ends = list(accumulate(sum(part) * scan.sample_s for part in parts))
    return series, ends, largest


def summed(rates: Sequence[float], step_s: float) -> Series:
    """All bytes written and the rate after each of the samples."""
    return list(zip(accumulate(rate * step_s for rate in rates), rates, strict=True))


def written_figure(bundle: Bundle) -> Figure | None:
    """None where the scan repeated no block size."""
    scan = bundle.block_scan
    series, ends, block = written_of(scan) if scan else ([], [], 0)
    if scan is None or len(series) < 2:
        return None
    title = "Rate against bytes written"
    x, y = [written / GB for written, _ in series], [rate / GB for _, rate in series]
    with sheet(NAME, HEIGHT_MM) as (drawing, (axes,)):
        for number, end in enumerate(ends[:-1]):
            axes.axvline(
                end / GB, color=FAINT, linewidth=0.8, label="_nolegend_" if number else "a repetition ends", zorder=1
            )
        axes.plot(*thinned(x, y), color=BLUE, linewidth=0.9, label="each sample", zorder=3)
        mean = ends[-1] / (len(series) * scan.sample_s) / GB
        axes.axhline(mean, color=GREY, linewidth=0.9, linestyle="--", label=f"mean {in_gb_per_s(mean * GB)}", zorder=2)
        axes.set_ylim(0, ROOM * max(y))
        axes.set_xlim(0, x[-1])
        axes.name_axes(f"written in blocks of {binary_size(block)} (GB)", "GB/s")
        axes.legend_above()
        alt = f"{title}: {count(len(series))} samples over {decimal_size(ends[-1])}."
    caption = (
        f"The scan's {len(ends)} repetitions with {binary_size(block)} that count, one after the other, as fast as the target takes "
        f"them; n = {count(len(series))} samples of {duration(scan.sample_s)}. Between two of them other work may have been done."
    )
    return drawing.figure(title, caption, alt, _see(y))


def _see(rates: Sequence[float]) -> str:
    """The last tenth against the first: whether the rate falls while the target is written."""
    part = max(1, len(rates) // 10)
    first, last = sum(rates[:part]) / part, sum(rates[-part:]) / part
    change = (
        f"{percent(100 * abs(last / first - 1), 2)} {'above' if last >= first else 'below'} the first"
        if first
        else "above none"
    )
    return f"The last tenth of the samples ({in_gb_per_s(last * GB)}) lies {change} ({in_gb_per_s(first * GB)})."
