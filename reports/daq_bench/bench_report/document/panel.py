"""A panel of a figure: matplotlib's axes with the bench's own ways to draw, to name and to explain.

Promise: a legend hides no data, a title covers no legend, and a mark's kind is explained once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure as Sheet
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, ScalarFormatter
from numpy.typing import ArrayLike, NDArray

from daq_bench.bench_report.base.units import grouped_in
from daq_bench.bench_report.document.direct_labels import label_ends, shortened
from daq_bench.bench_report.document.heat import COLOURS, EMPTY
from daq_bench.bench_report.document.palette import BLUE, INK, ORANGE, Look

LEGEND_PT, TITLE_PT, HANDLE_PT, TITLE_PAD = 7.0, 8.0, 36.0, 4.0
CHARACTER_EM = 0.56  # of a character of the face, on average
ROOM_PT = 452.0  # of the sheet's width, beside the axis' own labels
BAR_WIDTH = 0.38
BEHIND = -1.0  # the place of bands: below fills, lines and the grid
TINT, HATCH_TINT = 0.25, 0.5  # of a band's colour on white, and of its hatch: both lie behind the curves


class Grouped(ScalarFormatter):
    """Writes the numbers of a linear axis as the tables do, in groups."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return grouped_in(super().__call__(x, pos))


class Panel(Axes):
    """`data_names`: quantity and unit of x and y where the axis labels do not state them (a latency axis that writes us, ms and s)."""

    data_names = ("", "")
    _explained: frozenset[str] = frozenset()

    def group_numbers(self) -> None:
        for axis in (self.xaxis, self.yaxis):
            axis.set_major_formatter(Grouped())

    @property
    def sheet(self) -> Sheet:
        found = self.get_figure(root=True)
        assert found is not None  # a panel that was removed is not drawn on
        return found

    def curve(self, x: Sequence[float], y: Sequence[float], look: Look, label: str, **more: Any) -> None:
        """Draws a curve: in its colour, dashes and marks, which tell it apart together."""
        colour, dashes, marker = look
        self.plot(x, y, color=colour, linestyle=dashes, marker=marker, label=label, **more)

    def whiskers(
        self, x: Sequence[float], y: Sequence[float], ends: Sequence[tuple[float, float]], colour: str, **more: Any
    ) -> None:
        """Draws a thin bar at each point from the lower to the higher end of what was seen there."""
        below = [max(0.0, value - low) for value, (low, _) in zip(y, ends, strict=True)]
        above = [max(0.0, high - value) for value, (_, high) in zip(y, ends, strict=True)]
        look = {"elinewidth": 0.7, "capsize": 2, "capthick": 0.7, "zorder": 2} | more
        self.errorbar(x, y, yerr=(below, above), fmt="none", ecolor=colour, **look)

    def mark(
        self, x: ArrayLike, y: ArrayLike, marker: str, colour: str, label: str, zorder: int,
        *, size: float | None = None, hollow: bool = False,
    ) -> None:  # fmt: skip
        """Draws marks that no line joins, one or several; their label is explained once."""
        across, up = np.broadcast_arrays(np.atleast_1d(x), np.atleast_1d(y))
        self.plot(
            across, up, linestyle="none", marker=marker, markersize=size, color=colour, markerfacecolor="white" if hollow else colour,
            label=self.once(label), zorder=zorder,
        )  # fmt: skip

    def paired_bars(
        self,
        places: Sequence[float],
        apart: float,
        first: tuple[Sequence[float], str],
        second: tuple[Sequence[float], str],
    ) -> None:
        """Draws two bars beside each other at each place, hollow and hatched, then full: (values, label) of both."""
        for shift, (values, label), colour, edge, hatch in (
            (-apart, first, "white", ORANGE, "////"), (apart, second, BLUE, BLUE, ""),
        ):  # fmt: skip
            self.bar(
                [place + shift for place in places], values, BAR_WIDTH, color=colour, edgecolor=edge, hatch=hatch, linewidth=0.7,
                label=label, zorder=2,
            )  # fmt: skip

    def once(self, label: str) -> str:
        """Returns the label for the first mark of its kind; the legend names the others no more."""
        new = label not in self._explained
        self._explained |= {label}
        return label if new else "_nolegend_"

    def decades(self, which: str, *steps: float, form: Callable[[float], str] = "{:g}".format) -> None:
        """A logarithmic axis, x or y, with ticks at these steps of each decade, written by `form`; matplotlib's own where none is given."""
        axis = self.xaxis if which == "x" else self.yaxis
        self.set(**{f"{which}scale": "log"})
        if steps:
            axis.set_major_locator(LogLocator(base=10, subs=steps, numticks=12 if which == "y" else None))
        axis.set_major_formatter(FuncFormatter(lambda value, _: form(value)))
        axis.set_minor_formatter(NullFormatter())

    def name_rows(self, labels: Sequence[str]) -> None:
        """Rows from above, the first on top, each under its name."""
        self.set_ylim(len(labels) - 0.4, -0.6)
        self.set_yticks(range(len(labels)), list(labels))

    def name_data(self, *, x: str = "", y: str = "") -> None:
        self.data_names = (x, y)

    def label_ends(self) -> None:
        """Names curves where they end, instead of a legend: call it when limits and scales are final."""
        label_ends(self)

    def name_axes(self, x: str, y: str) -> None:
        """The quantities and units of both axes."""
        self.set_xlabel(x)
        self.set_ylabel(y)

    def label_panel(self, text: str, unit: str = "") -> None:
        """The panel's subject above its left edge: easier to read than a rotated label, which is left to the unit, and never clipped."""
        self.set_title(text, loc="left", pad=TITLE_PAD, color=INK)
        self._part_title_and_legend()
        if unit:
            self.set_ylabel(unit)

    def legend_above(self, columns: int = 4) -> None:
        """Draws a legend outside of the plotting area, where it can hide no data; long names are cut in the middle."""
        handles, labels = self.get_legend_handles_labels()
        if not handles:
            return
        names = [shortened(label) for label in labels]
        while columns > 1 and _legend_size(names, columns)[0] > ROOM_PT:
            columns -= 1
        self.legend(handles, names, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=columns, columnspacing=1.2)
        self._part_title_and_legend()

    def _part_title_and_legend(self) -> None:
        """The title goes above the legend where both do not fit beside each other."""
        legend, title = self.get_legend(), self.get_title(loc="left")
        if legend is None or not title:
            return
        width, height = _legend_size([text.get_text() for text in legend.get_texts()], legend._ncols)  # type: ignore[attr-defined]
        if width + len(title) * TITLE_PT * CHARACTER_EM > ROOM_PT:
            self.set_title(title, loc="left", pad=TITLE_PAD + height, color=INK)

    def shade(self, spans: Iterable[tuple[float, float]], colour: str, hatch: str, label: str = "") -> None:
        """Draws bands over the full height, behind everything else. The hatch tells them apart without colour."""
        # Opaque tints: in SVG an opacity would cover the hatch and its ground alike, and the hatch would vanish.
        ground, strokes = _tinted(colour, TINT), _tinted(colour, HATCH_TINT)
        edge = strokes if hatch else "none"
        for start, end in spans:
            self.axvspan(
                start, end, facecolor=ground, edgecolor=edge, hatch=hatch, linewidth=0, label=label, zorder=BEHIND
            )
            label = "_nolegend_"

    def heat(
        self,
        values: NDArray[np.float64],
        extent: tuple[float, float, float, float],
        unit: str,
        *,
        logarithmic: bool = False,
        limits: tuple[float, float] | None = None,
    ) -> None:
        """Draws rows from the bottom up over `extent` (left, right, bottom, top); a value that is not a number leaves its cell empty."""
        shown = np.ma.masked_invalid(values)
        low, high = limits or (float(shown.min()), float(shown.max()))
        norm = LogNorm(low, max(high, low * 1.01)) if logarithmic else Normalize(low, high if high > low else low + 1.0)
        image = self.imshow(
            shown,
            aspect="auto",
            origin="lower",
            interpolation="nearest",
            cmap=COLOURS,
            norm=norm,
            extent=extent,
            zorder=3,
        )
        self.set_facecolor(EMPTY)
        self.grid(visible=False)
        self.sheet.colorbar(image, ax=self, label=unit, pad=0.01, aspect=12)


def _legend_size(names: Sequence[str], columns: int) -> tuple[float, float]:
    """Width and height in points, estimated from the number of characters."""
    rows = -(-len(names) // columns)
    widths = (max(map(len, names[at : at + rows])) for at in range(0, len(names), rows))
    return sum(LEGEND_PT * CHARACTER_EM * width + HANDLE_PT for width in widths), rows * LEGEND_PT * 1.5


def _tinted(colour: str, share: float) -> tuple[float, float, float]:
    """The opaque colour that `share` of it gives on white."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return red, green, blue
