"""All drives of a set: rate, write latency and temperature of each against time, one row for a drive, the odd ones named.

Promise: a drive stands out by its row however many there are; what is called slow or hot is so against the median of the set, and the
sentence says by how much, also where all are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_report.base.units import GB, duration, latency, percent
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.heat import in_bins
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.telemetry import HostSeries, Track

FEWEST, MOST_NAMED = 2, 16  # drives; from more on only the odd ones are named on the axis
COLUMNS, FEWEST_COLUMNS = 300, 3
ROW_MM, LEAST_MM, MOST_MM, MARGIN_MM = 4.0, 13.0, 38.0, 14.0
AT_WORK = 0.1  # of the set's highest median rate: below it, nothing is asked of the drives
ALIKE = 0.03  # a drive nearer to the median than that is not called slow
NAME = "drives"
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """A row of values for each drive, a column for each stretch of time; not a number where nothing was read."""

    drives: tuple[str, ...]
    edges: Numbers
    values: Numbers


@dataclass(frozen=True)
class Odd:
    """The drive that is farthest from the median of the set."""

    drive: str
    value: float
    median: float

    @property
    def share(self) -> float:
        return self.value / self.median - 1 if self.median else 0.0


def drives_figure(bundle: Bundle) -> Figure | None:
    """None for a single drive, and where the telemetry lacks the set's drives."""
    host = bundle.host
    if host is None or bundle.run.target is None:
        return None
    names = tuple(one.name for one in bundle.run.target.devices if not one.raid_level)
    grids = _grids(host, names)
    if "rate" not in grids or len(grids["rate"].drives) < FEWEST:
        return None
    work = at_work(grids["rate"])
    odd = {
        "slow": slowest(grids["rate"], work),
        "waits": longest_wait(grids["wait"], work) if "wait" in grids else None,
        "hot": hottest(temperatures(host, names)) if "heat" in grids else None,
    }
    return _figure(grids, odd, len(names))


def _grids(host: HostSeries, names: tuple[str, ...]) -> dict[str, Grid]:
    sources: dict[str, dict[str, Track]] = {
        "rate": {name: host.disk_write_bytes_per_s[name] for name in names if name in host.disk_write_bytes_per_s},
        "wait": {name: host.disk_write_latency_s[name] for name in names if name in host.disk_write_latency_s},
        "heat": temperatures(host, names),
    }
    spans = [(track[0][0], track[0][-1]) for track in sources["rate"].values() if len(track[0])]
    if not spans:
        return {}
    start, end = min(low for low, _ in spans), max(high for _, high in spans)
    most = max(len(track[0]) for track in sources["rate"].values())
    columns = max(1, min(COLUMNS, most // 2))
    if end <= start or columns < FEWEST_COLUMNS:
        return {}
    edges = np.linspace(start, np.nextafter(end, np.inf), columns + 1)
    return {kind: _grid(tracks, edges) for kind, tracks in sources.items() if len(tracks) >= FEWEST}


def temperatures(host: HostSeries, names: tuple[str, ...]) -> dict[str, Track]:
    """Returns the drives' own temperatures: of several sensors that called Composite, which its limits are about."""
    found: dict[str, Track] = {}
    for sensor, track in host.temperature_celsius.items():
        drive, _, label = sensor.partition(" ")
        if drive in names and (drive not in found or label == "Composite"):
            found[drive] = track
    return found


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _grid(tracks: Mapping[str, Track], edges: Numbers) -> Grid:
    drives = tuple(sorted(tracks, key=_natural))
    return Grid(drives, edges, np.array([in_bins(*tracks[name], edges) for name in drives]))


def _median(values: Numbers) -> Numbers:
    """Returns the median of the drives in each column; not a number where none was read."""
    known = np.isfinite(values).any(axis=0)
    found = np.full(values.shape[1], np.nan)
    found[known] = np.nanmedian(values[:, known], axis=0)
    return found


def at_work(rate: Grid) -> NDArray[np.bool_]:
    """Says in which columns the set was at work."""
    middle = np.nan_to_num(_median(rate.values))
    return np.asarray(middle > AT_WORK * middle.max(initial=0.0))


def _means(grid: Grid, work: NDArray[np.bool_]) -> dict[str, float]:
    """Returns each drive's mean while the set was at work, over the columns that all drives have."""
    whole = work & np.isfinite(grid.values).all(axis=0)
    return (
        {drive: float(row[whole].mean()) for drive, row in zip(grid.drives, grid.values, strict=True)}
        if whole.any()
        else {}
    )


def slowest(rate: Grid, work: NDArray[np.bool_]) -> Odd | None:
    means = _means(rate, work)
    return _odd(means, min(means, key=lambda name: means[name])) if means else None


def longest_wait(wait: Grid, work: NDArray[np.bool_]) -> Odd | None:
    means = _means(wait, work)
    return _odd(means, max(means, key=lambda name: means[name])) if means else None


def hottest(heat: Mapping[str, Track]) -> Odd:
    """By the samples themselves: the mean of a cell is lower than its peak."""
    tops = {name: float(np.max(values)) for name, (_, values) in heat.items()}
    return _odd(tops, max(tops, key=lambda name: tops[name]))


def _odd(values: Mapping[str, float], drive: str) -> Odd:
    return Odd(drive, values[drive], float(np.median(list(values.values()))))


PANELS = (
    ("rate", "Written to each drive, by the kernel's counters", "GB/s", 1 / GB),
    ("wait", "Mean time of a write", "ms", 1e3),
    ("heat", "Temperature", "\u00b0C", 1.0),
)


def _figure(grids: dict[str, Grid], odd: Mapping[str, Odd | None], asked: int) -> Figure:
    shown = [one for one in PANELS if one[0] in grids]
    each = min(max(ROW_MM * len(grids["rate"].drives), LEAST_MM), MOST_MM)
    title = f"All {len(grids['rate'].drives)} drives of the set"
    marked = {one.drive for one in odd.values() if one is not None}
    with sheet(NAME, MARGIN_MM + (each + 5) * len(shown), rows=len(shown)) as (drawing, panels):
        for panel, (kind, words, unit, factor) in zip(panels, shown, strict=True):
            _draw(panel, grids[kind], factor, unit, marked)
            panel.label_panel(words)
        panels[-1].set_xlabel("time since the start of the run (s)")
        alt = (
            f"{title}: {len(shown)} heat maps, a row for each drive, {len(grids['rate'].edges) - 1} stretches of time."
        )
    width = float(grids["rate"].edges[1] - grids["rate"].edges[0])
    caption = (
        f"A row for each drive, in the order of their names; each cell is the mean over {duration(width)}. Slow and "
        f"hot are against the set's median, while the median drive wrote at more than {AT_WORK:.0%} of its highest rate. In a stripe a "
        "slow drive makes all others wait: it shows in the time of its writes before it shows in its rate."
    )
    missing = asked - len(grids["rate"].drives)
    if missing:
        caption += f" The telemetry has no rate of {missing} more drives."
    return drawing.figure(title, caption, alt, _see(odd))


def _draw(axes: Panel, grid: Grid, factor: float, unit: str, marked: set[str]) -> None:
    rows = len(grid.drives)
    low = 0.0 if unit != "\u00b0C" else float(np.nanmin(grid.values)) * factor
    high = float(np.nanmax(grid.values)) * factor
    extent = (float(grid.edges[0]), float(grid.edges[-1]), -0.5, rows - 0.5)
    axes.heat(grid.values * factor, extent, unit, limits=(low, high))
    named = [place for place, name in enumerate(grid.drives) if rows <= MOST_NAMED or name in marked]
    axes.set_yticks(named, [grid.drives[place] for place in named], fontsize=6.2)
    axes.set_ylim(rows - 0.5, -0.5)


def _see(odd: Mapping[str, Odd | None]) -> str:
    slow, waits, hot = odd["slow"], odd["waits"], odd["hot"]
    parts = []
    if slow is None:
        parts.append("The drives' rates cannot be compared: none was at work while all were read")
    elif slow.share < -ALIKE:
        parts.append(f"Slowest: {slow.drive}, {percent(-100 * slow.share)} below the median")
    else:
        parts.append(f"No drive is more than {percent(100 * ALIKE)} slower than the median")
    if waits is not None and waits.share > ALIKE:
        parts.append(
            f"longest writes: {waits.drive}, {latency(1e6 * waits.value)} where the median drive takes {latency(1e6 * waits.median)}"
        )
    if hot is not None:
        degrees = f"{hot.value:.1f}\u202f\u00b0C, {hot.value - hot.median:.1f}\u202fK above the median drive"
        parts.append(f"hottest: {hot.drive}, {degrees}")
    return f"{'; '.join(parts)}."
