"""Interference: which load slows down which other one, and the cost to the burst."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.colors import LogNorm

from daq_bench.bench_model.workloads.interference import Burst, Cell, Interference, Pair
from daq_bench.bench_report.base.units import (
    NONE,
    TIMES,
    count,
    decimal_rate,
    decimal_size,
    duration,
    latency,
    significant,
    span,
    three,
    three_of_rate,
)
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import INK
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

CELL_MM, HEAD_MM = 12.0, 26.0
MOST_COLOUR = 8.0  # slowdowns above are drawn in the darkest colour; the number says how much
ALL = "all"


def section(bundle: Bundle) -> Section | None:
    document = bundle.result("interference", Interference)
    title = "Interference"
    if document is None:
        return unfinished(bundle, "interference", title, "no result of the DAQ day (results/interference.json).")
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
        f"alternates; the burst at {decimal_rate(document.burst_bytes_per_s)}. A slowdown of 1 means no effect. Measured by: "
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
    name, title = "interference", "Which load slows which down"
    grid = np.full((len(victims), len(disturbers)), math.nan)
    for (victim, other), mean in known.items():
        grid[victims.index(victim), disturbers.index(other)] = mean
    with sheet(name, HEAD_MM + CELL_MM * len(victims)) as (drawing, (axes,)):
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
        axes.name_axes("beside", "who suffers")
        axes.grid(False)
        bar = drawing.sheet.colorbar(image, ax=axes, ticks=[1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8], shrink=0.9)
        bar.ax.set_yticklabels(["\u215b", "\u00bc", "\u00bd", "1", "2", "4", "8"])
        bar.ax.minorticks_off()
        bar.set_label("slowdown (1: none)")
        worst = max(known, key=lambda at: known[at])
        alt = f"{title}: {len(known)} of {len(cells)} cells; the worst is {worst[0]} beside {worst[1]}, {significant(known[worst], 3)}."
    rounds = count(document.rounds)
    caption = (
        f"Mean slowdown over up to n = {rounds} pairs (geometric), below it the least and the most of the pairs. "
        f"The burst suffers in latency, the others in rate. Dash: the activity itself; masked: no pair counts (reasons in the table)."
    )
    see = f"{worst[0][0].upper()}{worst[0][1:]} suffers most, beside {worst[1]}: slowed down {significant(known[worst], 3)} times."
    return drawing.figure(title, caption, alt, see)


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


BURST: Columns[Burst] = (
    Column("Burst beside", lambda row: {"none": "nothing", ALL: "all together"}.get(row.disturber, row.disturber)),
    Column("Runs", lambda row: row.n, count),
    Column("Masked", lambda row: row.masked, count),
    Column("Superchunks offered", lambda row: row.offered_superchunks, count),
    Column("Lost", lambda row: row.lost_superchunks, count),
    Column("BUSY", lambda row: row.busy_count, count),
    Column("Most buffer needed", lambda row: row.buffer_needed_bytes, decimal_size),
)


def _burst_table(document: Interference) -> Table | None:
    caption = "The burst's losses, over all of its runs that count."
    if not document.burst:
        return None
    return table(
        document.burst, BURST, "interference-burst", caption, lambda row: row.lost_superchunks or row.busy_count
    )


def _why_masked(cell: Cell) -> str:
    return next((pair.reason for pair in cell.pairs if pair.reason), "")


def _cell_table(document: Interference) -> Table:
    units = {one.name: one.unit for one in document.activities}

    def counted(cell: Cell) -> list[Pair]:
        return [pair for pair in cell.pairs if pair.slowdown is not None]

    columns: Columns[Cell] = (
        Column("Cell", lambda cell: f"{cell.victim} beside {cell.disturber}"),
        Column("Pairs", lambda cell: f"{len(counted(cell))}/{len(cell.pairs)}", kind="n"),
        Column("Alone", lambda cell: _range([pair.solo.value for pair in counted(cell)], units[cell.victim]), kind="n"),
        Column(
            "Disturbed",
            lambda cell: _range([pair.disturbed.value for pair in counted(cell)], units[cell.victim]),
            kind="n",
        ),
        Column("Slowdown", _mean, lambda mean: TIMES + three(mean)),
        Column("95 % CI", _interval, kind="n"),
        Column("Why masked", _why_masked),
    )
    caption = "Every cell; lowest to highest value of the pairs that count. An interval of the mean needs three pairs."
    return table(document.cells, columns, "interference-cells", caption, _why_masked)


def _interval(cell: Cell) -> str | None:
    found = cell.slowdown
    return None if found is None or found.low is None or found.high is None else span((found.low, found.high))


def _range(found: list[float | None], unit: str) -> str | None:
    values = [value for value in found if value is not None]
    form = latency if unit == "us" else three_of_rate
    return (form(values[0]) if len(values) == 1 else span((min(values), max(values)), form)) if values else None
