"""Interference: which load slows down which other one, and the cost to the burst."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.colors import LogNorm

from daq_bench.bench_model.workloads.interference import Cell, Interference
from daq_bench.bench_report.base.units import (
    NONE,
    TIMES,
    count,
    decimal_rate,
    decimal_size,
    duration,
    latency,
    significant,
)
from daq_bench.bench_report.document.canvas import INK, Figure, sheet, to_svg
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

CELL_MM, HEAD_MM = 12.0, 26.0
MOST_COLOUR = 8.0  # slowdowns above are drawn in the darkest colour; the number says how much
ALL = "all"


def section(bundle: Bundle) -> Section | None:
    if "interference" not in bundle.run.scenario.workloads and "interference" not in bundle.results:
        return None
    document = bundle.result("interference", Interference)
    title = "Interference"
    if document is None:
        return Section("interference", title, (Lacking("no result of the DAQ day (results/interference.json)."),))
    parts: list[Part] = [
        _words(document),
        _matrix(document) or Lacking("no cell of the matrix that counts as evidence."),
    ]
    parts.append(_burst_table(document) or Lacking("the burst was not a victim in this run."))
    parts.append(_cell_table(document))
    return Section("interference", title, tuple(parts))


def _words(document: Interference) -> str:
    measures = "; ".join(f"{one.name}: {one.measure}" for one in document.activities)
    return (
        f"Each activity ran for {duration(document.seconds)} alone and beside each other one, in pairs whose order "
        f"alternates; the burst at {decimal_rate(document.burst_bytes_per_s)}. A slowdown of 1 is none. Measured by: "
        f"{measures}. Disturbers began {duration(document.lead_s)} before and ended after their victim, and a run in "
        "which one of them is not proven to have worked throughout does not count."
    )


def _matrix(document: Interference) -> Figure | None:
    cells = {(cell.victim, cell.disturber): cell for cell in document.cells}
    means = {at: _mean(cell) for at, cell in cells.items()}
    known = {at: mean for at, mean in means.items() if mean is not None}
    if not known:
        return None
    victims = list(dict.fromkeys(victim for victim, _ in cells))
    order = [*(one.name for one in document.activities), ALL]
    disturbers = sorted({other for _, other in cells}, key=order.index)
    name, title = "interference", "Who suffers from whom"
    grid = np.full((len(victims), len(disturbers)), math.nan)
    for (victim, other), mean in known.items():
        grid[victims.index(victim), disturbers.index(other)] = mean
    with sheet(HEAD_MM + CELL_MM * len(victims)) as (figure, (axes,)):
        norm = LogNorm(1 / MOST_COLOUR, MOST_COLOUR)
        image = axes.imshow(np.clip(grid, 1 / MOST_COLOUR, MOST_COLOUR), cmap="PuOr_r", norm=norm, aspect="auto")
        for row, victim in enumerate(victims):
            for column, other in enumerate(disturbers):
                text = _cell_text(cells.get((victim, other)))
                strong = (
                    not math.isnan(grid[row, column]) and abs(math.log(grid[row, column])) > math.log(MOST_COLOUR) * 0.6
                )
                axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if strong else INK)
        axes.set_xticks(range(len(disturbers)), disturbers)
        axes.set_yticks(range(len(victims)), victims)
        axes.set_xlabel("beside", color=INK)
        axes.set_ylabel("who suffers")
        axes.grid(False)
        bar = figure.colorbar(image, ax=axes, ticks=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8], shrink=0.9)
        bar.ax.set_yticklabels(["\u215b", "\u00bc", "\u00bd", "1", "2", "4", "8"])
        bar.ax.minorticks_off()
        bar.set_label("slowdown (1: none)")
        worst = max(known, key=lambda at: known[at])
        alt = f"{title}: {len(known)} of {len(cells)} cells; the worst is {worst[0]} beside {worst[1]}, {significant(known[worst], 3)}."
        svg = to_svg(figure, name, alt)
    rounds = count(document.rounds)
    caption = (
        f"Mean slowdown over up to n = {rounds} pairs (geometric), below it the least and the most of the pairs. "
        f"The burst suffers in latency, the others in rate. Dash: the activity itself; masked: no pair counts (reasons in the table)."
    )
    see = f"{worst[0][0].upper()}{worst[0][1:]} suffers most, beside {worst[1]}: slowed down {significant(known[worst], 3)} times."
    return Figure(name, title, caption, alt, svg, see)


def _mean(cell: Cell) -> float | None:
    found = cell.slowdown
    return None if found is None else found.mean


def _cell_text(cell: Cell | None) -> str:
    if cell is None:
        return NONE
    found = cell.slowdown
    if found is None:
        return "masked"
    least, most = found.least, found.most
    return f"{significant(found.mean, 3)}\n{significant(least, 2)} \u2026 {significant(most, 2)}"


def _burst_table(document: Interference) -> Table | None:
    rows = []
    for row in document.burst:
        lost, busy, needed = row.lost_superchunks, row.busy_count, row.buffer_needed_bytes
        name = row.disturber
        rows.append((
            {"none": "nothing", ALL: "all together"}.get(name, name), count(row.n), count(row.masked),
            count(row.offered_superchunks), NONE if lost is None else count(lost),
            NONE if busy is None else count(busy), NONE if needed is None else decimal_size(needed),
        ))  # fmt: skip
    if not rows:
        return None
    heads = ("Burst beside", "Runs", "Masked", "Superchunks offered", "Lost", "BUSY", "Most buffer needed")
    odd = frozenset(index for index, row in enumerate(rows) if row[4] not in ("0", NONE) or row[5] not in ("0", NONE))
    return Table(
        heads,
        "tnnnnnn",
        tuple(rows),
        "The burst's losses, over all of its runs that count.",
        "interference-burst",
        odd,
    )


def _cell_table(document: Interference) -> Table:
    units = {one.name: one.unit for one in document.activities}
    rows, odd = [], set()
    for cell in document.cells:
        victim, found = cell.victim, cell.slowdown
        pairs = cell.pairs
        reasons = [reason for pair in pairs if (reason := pair.reason)]
        good = [pair for pair in pairs if pair.slowdown is not None]
        alone = _range([pair.solo.value for pair in good], units[victim])
        beside = _range([pair.disturbed.value for pair in good], units[victim])
        low, high = (None, None) if found is None else (found.low, found.high)
        rows.append((
            f"{victim} beside {cell.disturber}", f"{len(good)}/{len(pairs)}", alone, beside,
            NONE if found is None else f"{TIMES}{significant(found.mean, 3)}",
            NONE if low is None or high is None else f"{significant(low, 3)} to {significant(high, 3)}",
            reasons[0] if reasons else "",
        ))  # fmt: skip
        if reasons:
            odd.add(len(rows) - 1)
    heads = ("Cell", "Pairs", "Alone", "Disturbed", "Slowdown", "95 % CI", "Why masked")
    caption = "Every cell; lowest to highest value of the pairs that count. An interval of the mean needs three pairs."
    return Table(heads, "tnnnnnt", tuple(rows), caption, "interference-cells", frozenset(odd))


def _range(found: list[float | None], unit: str) -> str:
    values = [value for value in found if value is not None]
    if not values:
        return NONE
    low, high = min(values), max(values)
    shown = [latency(value) if unit == "us" else decimal_rate(value, 3) for value in (low, high)]
    return shown[0] if len(values) == 1 else f"{shown[0]} to {shown[1]}"
