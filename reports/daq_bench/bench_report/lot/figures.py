"""Figure of a lot: every drive's values in order, by firmware, with the bound and the tolerance bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_report.base.units import significant
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import GREY, INK, SERIES, VERMILLION


@dataclass(frozen=True)
class DriveRow:
    label: str
    values: tuple[float, ...]
    mean: float
    group: str  # the drive's firmware


@dataclass(frozen=True)
class Line:
    value: float
    text: str
    style: str


def lot_figure(
    name: str, title: str, caption: str, rows: Sequence[DriveRow], lines: Sequence[Line], axis: str
) -> Figure:
    """Rows from the lowest to the highest; one shape per firmware, open from the second on."""
    height = 3.1 if len(rows) > 24 else 5.2
    with sheet(name, 26 + len(rows) * height) as (drawing, (axes,)):
        groups = list(dict.fromkeys(row.group for row in rows))
        for place, row in enumerate(rows):
            colour, _, marker = SERIES[groups.index(row.group) % len(SERIES)]
            if len(row.values) > 1:
                axes.mark(row.values, place, "|", GREY, "each repetition", 2)
            hollow = row.group != groups[0] and marker != "x"
            axes.mark(row.mean, place, marker, colour, f"firmware {row.group}", 4, hollow=hollow)
        for line in lines:
            colour = VERMILLION if line.style == "--" else INK
            axes.axvline(line.value, color=colour, linestyle=line.style, linewidth=1.0, label=line.text)
        axes.name_rows([row.label for row in rows])
        if len(rows) > 24:
            axes.tick_params(axis="y", labelsize=5.2)
        axes.margins(x=0.05)
        axes.set_xlabel(axis)
        axes.legend_above(columns=3)
        ends = (f"{significant(row.mean, 4)} ({row.label})" for row in (rows[0], rows[-1]))
        alt = f"{title}. {len(rows)} drives from {' to '.join(ends)}."
        return drawing.figure(title, caption, alt)
