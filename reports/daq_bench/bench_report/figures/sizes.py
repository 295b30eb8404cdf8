"""The common parts of throughput figures: an axis of sizes in powers of two, GiB/s upwards, published references, spread of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from daq_bench.bench_report.base.units import GIB, binary_size, in_gib_per_s
from daq_bench.bench_report.document.canvas import INK
from daq_bench.bench_report.figures.references import COLOUR, Reference, dashes

FARTHEST = 2.2  # a reference line that lies more than this factor above the data would squash them
MOST_LABELS = 16


def size_axis(axes: Axes, sizes: Sequence[int], label: str) -> None:
    """Gives every measured size its place, the masked ones too: a gap is then seen as a gap."""
    labelled = sizes[:: max(1, -(-len(sizes) // MOST_LABELS))]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 1.35, max(sizes) * 1.35)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(labelled, [binary_size(size).replace("\u202f", "\n") for size in labelled])
    axes.set_xlabel(label, color=INK)


def squeezed(references: Sequence[float], top: float) -> bool:
    """Says whether a reference lies so far above the data that a linear axis would squash them."""
    return any(value > FARTHEST * top for value in references)


def rate_axis(axes: Axes, highest_bytes_per_s: float, lowest_bytes_per_s: float | None = None) -> None:
    """From zero, or with the lowest value on a logarithmic axis, where data and references have equal room."""
    axes.set_ylabel("throughput (GiB/s)")
    if lowest_bytes_per_s is None or lowest_bytes_per_s <= 0:
        axes.set_ylim(0, highest_bytes_per_s / GIB * 1.1 or 1.0)
        return
    axes.set_yscale("log")
    axes.set_ylim(lowest_bytes_per_s / GIB / 1.3, highest_bytes_per_s / GIB * 1.4)
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("throughput (GiB/s), logarithmic")


def draw_references(axes: Axes, references: Sequence[Reference]) -> None:
    for number, one in enumerate(references):
        label = f"{one.label} {in_gib_per_s(one.value)}"
        axes.axhline(one.value / GIB, color=COLOUR, linewidth=0.9, linestyle=dashes(number), label=label, zorder=1)


def draw_spread(
    axes: Axes, x: Sequence[float], y: Sequence[float], samples: Sequence[Sequence[float]], colour: str
) -> None:
    """Draws bars from the lowest to the highest sample of each point; all in B/s."""
    below = [max(0.0, (value - min(found, default=value)) / GIB) for value, found in zip(y, samples, strict=True)]
    above = [max(0.0, (max(found, default=value) - value) / GIB) for value, found in zip(y, samples, strict=True)]
    axes.errorbar(
        x, [value / GIB for value in y], yerr=(below, above), fmt="none", ecolor=colour, elinewidth=0.7, capsize=2,
        capthick=0.7, zorder=2,
    )  # fmt: skip


def with_gaps(values: Sequence[float | None]) -> list[float]:
    """Returns the values in GiB/s; NaN breaks the line, so that no stroke suggests the value of a masked point."""
    return [math.nan if value is None else value / GIB for value in values]


def samples_text(numbers: Sequence[int]) -> str:
    """Returns the number of samples that the points have: `4` or `3 to 5`."""
    found = sorted({number for number in numbers if number})
    if not found:
        return "no"
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
