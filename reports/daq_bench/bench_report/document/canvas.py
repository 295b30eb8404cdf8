"""The common base of all figures: type, palette, axes, and the way to SVG that can stand inside one HTML document.

Promise: the same data give the same bytes; text stays text (searchable, and set in the document's own face); each
figure's identifiers carry its name, so that several figures can share a document; the palette is made for the colour-blind,
and no series is told apart by colour alone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
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
from matplotlib.font_manager import fontManager

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
LEGEND_PT, TITLE_PT, HANDLE_PT, TITLE_PAD = 7.0, 8.0, 36.0, 4.0
CHARACTER_EM = 0.56  # of a character of the face, on average
ROOM_PT = 452.0  # of the sheet's width, beside the axis' own labels
MOST_CHARACTERS = 80
BEHIND = -1.0  # the place of bands: below fills, lines and the grid
PLACE_DIGITS = 6  # of the sheet: a ten-thousandth of a millimetre
TINT, HATCH_TINT = 0.25, 0.5  # of a band's colour on white, and of its hatch: both lie behind the curves

INK, GREY, FAINT = "#1a1a1a", "#6b6b6b", "#d9d9d9"
# Each pair is at least 20 apart (CIELAB) for normal sight and for all three kinds of colour-blindness, and each is at least 5 lighter or
# darker than the next, so that a grey copy keeps them apart; test_palette.py measures it.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, ASH = "#165EC6", "#A12417", "#133A28", "#A7539F", "#D57C09", "#838383"
SKY = "#56B4E9"
Look = tuple[str, Any, str]  # colour, dashes, marker
SERIES: tuple[Look, ...] = (
    (BLUE, "-", "o"), (VERMILLION, "--", "s"), (GREEN, "-.", "^"), (PURPLE, ":", "D"), (ORANGE, (0, (5, 1, 1, 1)), "v"),
    (ASH, (0, (1, 1)), "x"),
)  # fmt: skip

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
class Drawn:
    """An <svg> and the numbers in it."""

    svg: str
    traces: tuple[Trace, ...]


@dataclass(frozen=True)
class Figure:
    """A figure ready to be set.

    `see` says in a sentence what to look for, `caption` how the figure was made and what it omits, `alt` describes it for the blind."""

    name: str
    title: str
    caption: str
    alt: str
    drawn: Drawn
    see: str = ""

    @property
    def svg(self) -> str:
        return self.drawn.svg

    @property
    def data(self) -> tuple[Trace, ...]:
        """The plotted numbers, read back from the sheet."""
        return self.drawn.traces


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


@contextmanager
def small_multiples(height_mm: float, number: int, columns: int) -> Iterator[tuple[Sheet, list[Axes]]]:
    """A sheet of the text width with `number` panels in rows of `columns`, all on the same two axes; closed on leaving."""
    with matplotlib.rc_context(STYLE):
        size = (WIDTH_MM / MM_PER_INCH, height_mm / MM_PER_INCH)
        rows = -(-number // columns)
        figure, grid = pyplot.subplots(
            rows, columns, sharex=True, sharey=True, squeeze=False, figsize=size, layout="constrained"
        )
        try:
            for unused in grid.flat[number:]:
                unused.remove()
            yield figure, list(grid.flat[:number])
        finally:
            pyplot.close(figure)


def draw(axes: Axes, x: Sequence[float], y: Sequence[float], look: Look, label: str, **more: Any) -> None:
    """Draws a curve: in its colour, dashes and marks, which tell it apart together."""
    colour, dashes, marker = look
    axes.plot(x, y, color=colour, linestyle=dashes, marker=marker, label=label, **more)


def whiskers(
    axes: Axes, x: Sequence[float], y: Sequence[float], ends: Sequence[tuple[float, float]], colour: str, **more: Any
) -> None:
    """Draws a thin bar at each point from the lower to the higher end of what was seen there."""
    below = [max(0.0, value - low) for value, (low, _) in zip(y, ends, strict=True)]
    above = [max(0.0, high - value) for value, (_, high) in zip(y, ends, strict=True)]
    look = {"elinewidth": 0.7, "capsize": 2, "capthick": 0.7, "zorder": 2} | more
    axes.errorbar(x, y, yerr=(below, above), fmt="none", ecolor=colour, **look)


def once(seen: set[str], label: str) -> str:
    """Returns the label for the first mark of its kind; the legend names the others no more."""
    new = label not in seen
    seen.add(label)
    return label if new else "_nolegend_"


def name_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Rows from above, the first on top, each under its name."""
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), list(labels))


def to_svg(figure: Sheet, name: str, alt: str) -> Drawn:
    """The sheet as an inline <svg>: no prolog, no metadata, no style sheet that would leak into the document."""
    _settle(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Type": None, "Format": None})
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
    end = rest.rindex("</svg>")
    svg = opening.replace("<svg", head, 1) + ">" + title + rest[:end] + _hover_layer(figure) + rest[end:]
    return Drawn(svg, traces_of(figure))


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


def label_panel(axes: Axes, text: str) -> None:
    """The panel's subject above its left edge: easier to read than a rotated label, and it cannot be clipped."""
    axes.set_title(text, loc="left", pad=TITLE_PAD, color=INK)
    _part_title_and_legend(axes)


def legend_above(axes: Axes, columns: int = 4) -> None:
    """Draws a legend outside of the plotting area, where it can hide no data; long names are cut in the middle."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    names = [shortened(label) for label in labels]
    while columns > 1 and _legend_size(names, columns)[0] > ROOM_PT:
        columns -= 1
    axes.legend(handles, names, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, columnspacing=1.2)
    _part_title_and_legend(axes)


def shortened(name: str, most: int = MOST_CHARACTERS) -> str:
    """Returns both ends of a name that is too long for a legend or an axis: names of one kind differ at their ends."""
    return name if len(name) <= most else f"{name[: most // 2]}\u2026{name[-(most // 2 - 1) :]}"


def _legend_size(names: Sequence[str], columns: int) -> tuple[float, float]:
    """Width and height in points, estimated from the number of characters."""
    rows = -(-len(names) // columns)
    widths = (max(map(len, names[at : at + rows])) for at in range(0, len(names), rows))
    return sum(LEGEND_PT * CHARACTER_EM * width + HANDLE_PT for width in widths), rows * LEGEND_PT * 1.5


def _part_title_and_legend(axes: Axes) -> None:
    """The title goes above the legend where both do not fit beside each other."""
    legend, title = axes.get_legend(), axes.get_title(loc="left")
    if legend is None or not title:
        return
    width, height = _legend_size([text.get_text() for text in legend.get_texts()], legend._ncols)  # type: ignore[attr-defined]
    if width + len(title) * TITLE_PT * CHARACTER_EM > ROOM_PT:
        axes.set_title(title, loc="left", pad=TITLE_PAD + height, color=INK)


def shade(axes: Axes, spans: Iterable[tuple[float, float]], colour: str, hatch: str, label: str = "") -> None:
    """Draws bands over the full height, behind everything else. The hatch tells them apart without colour."""
    # Opaque tints: in SVG an opacity would cover the hatch and its ground alike, and the hatch would vanish.
    ground, strokes = _tinted(colour, TINT), _tinted(colour, HATCH_TINT)
    edge = strokes if hatch else "none"
    for start, end in spans:
        axes.axvspan(start, end, facecolor=ground, edgecolor=edge, hatch=hatch, linewidth=0, label=label, zorder=BEHIND)
        label = "_nolegend_"


def _tinted(colour: str, share: float) -> tuple[float, float, float]:
    """The opaque colour that `share` of it gives on white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue
