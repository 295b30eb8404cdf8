"""What every figure shares: type, palette, axes, and the way to SVG that can stand inside one HTML document.

Promise: the same data give the same bytes; text stays text (searchable, and set in the document's own face); each
figure's identifiers carry its name, so that several figures can share a document; colours are Okabe and Ito's,
and no series is told apart by colour alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib

matplotlib.use("Agg")  # never a display

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Sheet

from . import plotted

MM_PER_INCH = 25.4
WIDTH_MM = 174.0  # the text width of report.css
FONT = "DejaVu Sans"
PLACE_DIGITS = 6  # of the sheet: a ten-thousandth of a millimetre
TINT = 0.25  # of a band's colour on white

INK, GREY, FAINT = "#1a1a1a", "#6b6b6b", "#d9d9d9"
BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY = (
    "#0072B2",
    "#C77F00",
    "#00795A",
    "#C04A00",
    "#9A4F7C",
    "#56B4E9",
)
SERIES = (
    (BLUE, "-", "o"), (VERMILLION, "--", "s"), (GREEN, "-.", "^"), (PURPLE, ":", "D"), (ORANGE, (0, (5, 1, 1, 1)), "v"),
    (GREY, (0, (1, 1)), "x"),
)  # fmt: skip

STYLE: Any = {  # matplotlib types its keys one by one
    "font.family": FONT, "font.size": 7.5, "axes.labelsize": 7.5, "axes.titlesize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.edgecolor": GREY, "axes.linewidth": 0.6,
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
    """A figure ready to be set: `caption` says what to see, `alt` what is drawn, for those who cannot see it."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str


@contextmanager
def sheet(
    height_mm: float, rows: int = 1, ratios: tuple[float, ...] | None = None
) -> Iterator[tuple[Sheet, list[Axes]]]:
    """A sheet of the text width with `rows` panels on one shared horizontal axis; closed on leaving."""
    with matplotlib.rc_context(STYLE):
        size = (WIDTH_MM / MM_PER_INCH, height_mm / MM_PER_INCH)
        figure, grid = pyplot.subplots(
            rows, 1, sharex=True, squeeze=False, figsize=size, layout="constrained",
            gridspec_kw={"height_ratios": ratios or (1.0,) * rows},
        )  # fmt: skip
        try:
            yield figure, list(grid[:, 0])
        finally:
            pyplot.close(figure)


def to_svg(figure: Sheet, name: str, alt: str) -> str:
    """The sheet as an inline <svg>: no prolog, no metadata, no style sheet that would leak into the document."""
    _settle(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
    plotted.note(name, figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    head = f'<svg class="plot" role="img" aria-labelledby="{name}-title" stroke-linejoin="round" stroke-linecap="butt"'
    opening, _, rest = text.partition(">")
    title = f'<title id="{name}-title">{escape(alt)}</title>'
    return opening.replace("<svg", head, 1) + ">" + title + rest


def _settle(figure: Sheet) -> None:
    """Lays the panels out once and rounds their places: the solver's last digits depend on where its variables lie in memory."""
    engine = figure.get_layout_engine()
    if engine is None:
        return
    engine.execute(figure)
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(value, PLACE_DIGITS) for value in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def label_panel(axes: Axes, text: str) -> None:
    """The panel's subject above its left edge: easier to read than a rotated label, and it cannot be clipped."""
    axes.set_title(text, loc="left", pad=4, color=INK)


def legend_above(axes: Axes, columns: int = 4) -> None:
    """A legend outside of the plotting area, where it can hide no data."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, columnspacing=1.2)


def shade(axes: Axes, spans: Iterable[tuple[float, float]], colour: str, hatch: str, label: str = "") -> None:
    """Bands over the full height. The hatch tells them apart without colour."""
    # Opaque tints: in SVG an opacity would cover the hatch and its ground alike, and the hatch would vanish.
    red, green, blue = (1 - TINT * (1 - part) for part in to_rgb(colour))
    for start, end in spans:
        axes.axvspan(
            start,
            end,
            facecolor=(red, green, blue),
            edgecolor=colour if hatch else "none",
            hatch=hatch,
            linewidth=0,
            label=label,
            zorder=0,
        )
        label = "_nolegend_"
