"""The common parts of throughput figures: an axis of sizes in powers of two, GiB/s upwards, published references, spread of samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.ticker import FixedLocator, NullLocator

from daq_bench.bench_report.base.units import GIB, binary_size, in_gib_per_s
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.figures.references import COLOUR, Reference, dashes

FARTHEST = 2.2  # a reference line that lies more than this factor above the data would squash them
MOST_LABELS = 16


def size_axis(axes: Panel, sizes: Sequence[int], label: str) -> None:
    """Gives every measured size its place, the masked ones too: a gap is then seen as a gap."""
    labelled = sizes[:: max(1, -(-len(sizes) // MOST_LABELS))]
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 1.35, max(sizes) * 1.35)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(labelled, [binary_size(size).replace("\u202f", "\n") for size in labelled])
    axes.set_xlabel(label)


@dataclass(frozen=True)
class Line:
    """A rate, B/s, that a figure draws across its whole width."""

    label: str
    value: float
    colour: str
    strokes: object


def published_lines(references: Sequence[Reference]) -> list[Line]:
    return [Line(one.label, one.value, COLOUR, dashes(number)) for number, one in enumerate(references)]


def rate_axis(axes: Panel, rates: Sequence[float], lines: Sequence[Line]) -> None:
    """Draws the lines, and an axis that has room for them and for the `rates` that are drawn, B/s: from zero, or logarithmic where a line
    lies so far above the rates that it would squash them."""
    for one in lines:
        text = f"{one.label} {in_gib_per_s(one.value)}"
        axes.axhline(one.value / GIB, color=one.colour, linewidth=0.9, linestyle=one.strokes, label=text, zorder=1)
    highest = max([*rates, *(one.value for one in lines)])
    axes.set_ylabel("throughput (GiB/s)")
    if min(rates) <= 0 or highest <= FARTHEST * max(rates):
        axes.set_ylim(0, highest / GIB * 1.1 or 1.0)
        return
    axes.decades("y", 1.0, 2.0, 5.0)
    axes.set_ylim(min(rates) / GIB / 1.3, highest / GIB * 1.4)
    axes.set_ylabel("throughput (GiB/s), logarithmic")


def draw_spread(
    axes: Panel, x: Sequence[float], y: Sequence[float], samples: Sequence[Sequence[float]], colour: str, **more: Any
) -> None:
    """Draws bars from the lowest to the highest sample of each point; all in B/s."""
    ends = [
        (min(found, default=value) / GIB, max(found, default=value) / GIB)
        for value, found in zip(y, samples, strict=True)
    ]
    axes.whiskers(x, [value / GIB for value in y], ends, colour, **more)


def not_drawn(masked: Sequence[str], see: str = "") -> str:
    """The caption's sentence on points that are not drawn. `see`: where the reasons stand."""
    reasons = f" (reasons in {see})" if see else ""
    return f"Not drawn, since the point does not count as evidence: {', '.join(masked)}{reasons}." if masked else ""


def with_gaps(values: Sequence[float | None]) -> list[float]:
    """Returns the values in GiB/s; NaN breaks the line, so that no stroke suggests the value of a masked point."""
    return [math.nan if value is None else value / GIB for value in values]


def samples_text(numbers: Sequence[int]) -> str:
    """Returns the number of samples that the points have: `4` or `3 to 5`."""
    found = sorted({number for number in numbers if number})
    if not found:
        return "no"
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
