"""The common base of all figures: type, sheets of panels, and the way to SVG that can stand inside one HTML document.

Promise: the same data give the same bytes; text stays text (searchable, and set in the document's own face); each
figure's identifiers carry its name, so that several figures can share a document.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib

matplotlib.use("Agg")  # never a display

from matplotlib import pyplot
from matplotlib.figure import Figure as Sheet
from matplotlib.font_manager import fontManager

from daq_bench.bench_report.document.palette import GREY, INK
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.document.traces import Trace, spots_of, traces_of

MM_PER_INCH = 25.4
POINTS_PER_INCH = 72.0  # the unit of matplotlib's SVG
MOST_SPOTS = 400
HOVER_BEGIN, HOVER_END = '<g class="hover" fill="transparent">', "</g><!--hover-->"
HOVER = re.compile(f"{re.escape(HOVER_BEGIN)}.*?{re.escape(HOVER_END)}", re.DOTALL)
WIDTH_MM = 174.0  # the text width of report.css
FONTS = (
    "DejaVu Sans",
    "Droid Sans Fallback",
    "WenQuanYi Micro Hei",
)  # the second for Chinese and Japanese names, the third for Korean
INSTALLED = frozenset(font.name for font in fontManager.ttflist)
PLACE_DIGITS = 6  # of the sheet: a ten-thousandth of a millimetre

STYLE: Any = {  # matplotlib types its keys one by one
    "font.family": [font for font in FONTS if font in INSTALLED], "font.size": 7.5, "axes.labelsize": 7.5, "axes.titlesize": 8,
    "legend.fontsize": 7, "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.edgecolor": GREY, "axes.linewidth": 0.6,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": GREY, "ytick.color": GREY,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5, "axes.axisbelow": True, "lines.linewidth": 1.2, "lines.markersize": 4,
    "legend.frameon": False, "legend.handlelength": 2.6, "legend.borderaxespad": 0.2, "hatch.linewidth": 0.5,
    "svg.fonttype": "none", "svg.hashsalt": "bench-report", "axes.unicode_minus": True, "figure.dpi": 100,
    "path.simplify": True, "axes.formatter.useoffset": False, "axes.formatter.limits": (-4, 6),
}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A figure ready to be set.

    `see` says in a sentence what to look for, `caption` how the figure was made and what it omits, `alt` describes it for the blind."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    data: tuple[Trace, ...]  # the plotted numbers, read back from the sheet
    see: str = ""


@dataclass
class Drawing:
    """A sheet, to be drawn on within its context; afterwards it becomes a figure."""

    name: str
    sheet: Sheet
    svg: str = ""
    data: tuple[Trace, ...] = ()

    def figure(self, title: str, caption: str, alt: str, see: str = "") -> Figure:
        if not self.svg:
            self.finish()
        head, _, rest = self.svg.partition(">")
        svg = f'{head}><title id="{self.name}-title">{escape(alt)}</title>{rest}'
        return Figure(self.name, title, caption, alt, svg, self.data, see)

    def finish(self) -> None:
        """The sheet as an inline <svg>: no prolog, no metadata, no style sheet that would leak into the document."""
        _settle(self.sheet)
        buffer, name = io.StringIO(), self.name
        self.sheet.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
        text = buffer.getvalue()
        text = text[text.index("<svg") :].strip()
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
        text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
        text = re.sub(r'\bid="', f'id="{name}-', text)
        text = text.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
        head = (
            f'<svg class="plot" role="img" aria-labelledby="{name}-title" stroke-linejoin="round" stroke-linecap="butt"'
        )
        end = text.rindex("</svg>")
        self.svg = text[:end].replace("<svg", head, 1) + _hover_layer(self.sheet) + text[end:]
        self.data = traces_of(self.sheet)


@contextmanager
def sheet(
    name: str, height_mm: float, rows: int = 1, ratios: tuple[float, ...] | None = None
) -> Iterator[tuple[Drawing, list[Panel]]]:
    """A sheet of the text width with `rows` panels on one shared horizontal axis; finished and closed on leaving."""
    with _drawing(name, height_mm, rows, 1, gridspec_kw={"height_ratios": ratios or (1.0,) * rows}) as found:
        yield found


@contextmanager
def small_multiples(
    name: str, number: int, columns: int, margin_mm: float, each_mm: float, across: str, up: str
) -> Iterator[tuple[Drawing, list[Panel]]]:
    """A sheet with `number` panels, `columns` in a row at most, all on the same two axes, which are named once."""
    columns = min(columns, number)
    rows = -(-number // columns)
    with _drawing(name, margin_mm + rows * each_mm, rows, columns, sharey=True) as (drawing, panels):
        for unused in panels[number:]:
            unused.remove()
        yield drawing, panels[:number]
        drawing.sheet.supxlabel(across, fontsize=7.5)
        drawing.sheet.supylabel(up, fontsize=7.5)


@contextmanager
def _drawing(
    name: str, height_mm: float, rows: int, columns: int, **more: Any
) -> Iterator[tuple[Drawing, list[Panel]]]:
    with matplotlib.rc_context(STYLE):
        figure, grid = pyplot.subplots(
            rows, columns, sharex=True, squeeze=False, figsize=(WIDTH_MM / MM_PER_INCH, height_mm / MM_PER_INCH),
            layout="constrained", subplot_kw={"axes_class": Panel}, **more,
        )  # fmt: skip
        for panel in grid.flat:
            panel.group_numbers()
        drawing = Drawing(name, figure)
        try:
            yield drawing, list(grid.flat)
            if not drawing.svg:
                drawing.finish()
        finally:
            pyplot.close(figure)


def _hover_layer(figure: Sheet) -> str:
    """Invisible discs over plotted points, each with its numbers: a browser shows them under the pointer. Not for the PDF."""
    width, height = (POINTS_PER_INCH * float(inches) for inches in figure.get_size_inches())
    discs = "".join(
        f'<circle cx="{spot.across * width:.1f}" cy="{spot.down * height:.1f}" r="4"><title>{escape(spot.text)}</title></circle>'
        for spot in spots_of(figure, MOST_SPOTS)
    )
    return f"{HOVER_BEGIN}{discs}{HOVER_END}" if discs else ""


def _settle(figure: Sheet) -> None:
    """Lays the panels out once and rounds their places: the solver's last digits depend on where its variables lie in memory."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    engine.execute(figure)
    figure.set_layout_engine(None)  # "none" would leave a place-holder, for which saving draws everything twice
    for axes in figure.axes:
        left, bottom, width, height = (round(value, PLACE_DIGITS) for value in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))
