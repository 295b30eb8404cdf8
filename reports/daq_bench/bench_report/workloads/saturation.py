"""The saturation run: the rate against bytes written, where it falls, and the rate afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.workloads.saturation.document import Cliff, Row, Saturation, SaturationAnalysis
from daq_bench.bench_report.base.units import GB, count, decimal_size, duration, percent, share, span, three_of_rate
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import GREY, INK, SERIES, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.document.section import Lacking, Part, Section, Warned, unfinished
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.conditioning import conditioning_table

NAME, TITLE = "saturation", "Saturation: the rate until the target is full"
HEIGHT_MM = 82.0
STRETCHES = 200  # points drawn for a pass at most: each is the mean of several samples
ROOM = 1.12
MOST_SPREAD = 3  # passes whose samples' range is drawn: those of more would cover each other
ALL_OF_IT, SMALL_PART = 1.01, 0.2  # of the capacity
FOUND = {"cliff": "cliff", "none": "no cliff", "unknown": "cannot be told"}


@dataclass(frozen=True)
class Curve:
    """One pass to draw. `written` in GB at the end of each stretch, `rates` in GB/s; cliffs as (place, low end, high end) in GB."""

    number: int
    written: tuple[float, ...]
    rates: tuple[float, ...]
    cliffs: tuple[tuple[float, float, float], ...]
    sustained: float | None  # GB/s after the last cliff
    capacity: float  # GB that the target has room for
    spread: tuple[tuple[float, float], ...]  # lowest and highest sample of each stretch, in GB/s


def section(bundle: Bundle) -> Section | None:
    told = bundle.result(NAME, Saturation)
    analysis = bundle.result(f"{NAME}_analysis", SaturationAnalysis)
    if told is None or analysis is None:
        missing = NAME if told is None else f"{NAME}_analysis"
        return unfinished(bundle, NAME, TITLE, f"the saturation run did not finish (results/{missing}.json).")
    rows = analysis.repetitions
    figure = _figure([curve for row in rows if (curve := _curve(row))], analysis.cliff_free_bytes / GB)
    parts: list[Part] = [
        _words(told, analysis),
        *_part_only(rows),
        figure or Lacking("no pass with an account that adds up."),
    ]
    parts += [_table(rows), *_cliffs(rows)]
    parts += [
        Lacking(f"whether pass {row.number} has a cliff: {row.reason}.") for row in rows if row.finding == "unknown"
    ]
    passes = [(f"pass {one.number}", one.conditioning) for one in told.repetitions]
    parts.append(conditioning_table("saturation-conditions", passes))
    return Section(NAME, TITLE, tuple(parts))


def _words(told: Saturation, analysis: SaturationAnalysis) -> str:
    rows = analysis.repetitions
    block = decimal_size(told.block_bytes)
    text = (
        f"The target is emptied and then written once from its begin to its end, as fast as it takes it, in blocks of {block} with "
        f"{told.io_depth} in flight; {_times(len(rows))}. Flash drives take the first part into a fast cache (a part of "
        "their flash written with one bit in each cell). Once it is full, the rate falls: the cliff. "
    )
    found = [row.finding for row in rows]
    with_cliff, without, unknown = (found.count(kind) for kind in ("cliff", "none", "unknown"))
    text += f"Passes with a cliff: {with_cliff}; without: {without}; that cannot tell: {unknown}. "
    return text + f"By the rule of this bench {analysis.rule}."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times, emptied again before each pass"


def _part_only(rows: Sequence[Row]) -> list[Part]:
    """Warns where a small share of the room was written: it never fills a cache, so that its curve must not be read as the drive's."""
    shares = [row.written_bytes / row.capacity_bytes for row in rows]
    if not shares or min(shares) > 0.99:
        return []
    text = (
        f"only {percent(100 * min(shares))} of what the target has free was written. A cache that is larger than that was never full: "
        "the absence of a cliff says nothing of what comes later."
    )
    return [Warned("Not the whole capacity:", text)]


def _curve(row: Row) -> Curve | None:
    rates, step = row.throughput_bytes_per_s_samples, row.step_s
    if not rates or step is None:
        return None
    group = -(-len(rates) // STRETCHES)
    parts = [rates[at : at + group] for at in range(0, len(rates), group)]
    written, total = [], 0.0
    for part in parts:
        total += sum(part) * step
        written.append(total / GB)
    cliffs = tuple((one.at_bytes / GB, *(end / GB for end in one.interval_bytes)) for one in row.cliff_list)
    means = tuple(sum(part) / len(part) / GB for part in parts)
    spread = tuple((min(part) / GB, max(part) / GB) for part in parts)
    sustained = _in_gb(row.sustained_rate)
    return Curve(row.number, tuple(written), means, cliffs, sustained, row.capacity_bytes / GB, spread)  # type: ignore[arg-type]


def _in_gb(value: float | None) -> float | None:
    return None if value is None else value / GB


def _figure(curves: Sequence[Curve], free_gb: float) -> Figure | None:
    if not curves:
        return None
    with sheet("saturation-curve", HEIGHT_MM) as (drawing, (axes,)):
        for index, curve in enumerate(curves):
            colour, dashes, _ = SERIES[index % len(SERIES)]
            look = {"color": colour, "linestyle": dashes, "linewidth": 1.0, "zorder": 3}
            axes.plot(curve.written, curve.rates, label=f"pass {curve.number}", **look)
            if len(curves) <= MOST_SPREAD:
                low, high = zip(*curve.spread, strict=True)
                axes.fill_between(curve.written, low, high, color=colour, alpha=0.18, linewidth=0, zorder=2)
        _draw_cliffs(axes, curves)
        end = max(curve.written[-1] for curve in curves)
        _set_capacity(axes, curves, end)
        if free_gb <= axes.get_xlim()[1]:
            axes.axvline(free_gb, color=GREY, linestyle=(0, (1, 2)), label="required: no cliff before", zorder=2)
        top = (
            max(high for curve in curves for _, high in curve.spread)
            if len(curves) <= MOST_SPREAD
            else max(max(curve.rates) for curve in curves)
        )
        axes.set_ylim(0, top * ROOM)
        axes.set_ylabel("rate (GB/s)")
        axes.legend_above(columns=5)
        alt = f"Rate against bytes written, {len(curves)} passes over {in_digits(end)} GB; {_seen(curves)}"
    band = "The tinted band: the lowest and the highest sample in it. " if len(curves) <= MOST_SPREAD else ""
    caption = (
        f"Each point is the mean over one of {STRETCHES} stretches of equal time. {band}A dashed vertical line marks a cliff, and the band "
        "around it the 95 % interval of its place, which may be narrower than the line."
    )
    return drawing.figure("Rate against bytes written", caption, alt, _seen(curves))


def _set_capacity(axes: Panel, curves: Sequence[Curve], end: float) -> None:
    """The axis reaches to the target's capacity; a small part of it that was written has a logarithmic one, else it would be a stroke."""
    capacity = max(curve.capacity for curve in curves)
    if capacity <= end * ALL_OF_IT:
        axes.set_xlim(0, end)
        axes.set_xlabel("written since the target was empty (GB), to its whole capacity")
        return
    axes.shade([(end, capacity)], GREY, "....", "not written")
    if end < SMALL_PART * capacity:
        axes.set_xscale("log")
        axes.set_xlim(min(curve.written[0] for curve in curves), capacity)
    else:
        axes.set_xlim(0, capacity)
    axes.set_xlabel(
        f"written since the target was empty (GB{', logarithmic' if end < SMALL_PART * capacity else ''}); its capacity is "
        f"{decimal_size(capacity * GB)}"
    )


def _draw_cliffs(axes: Panel, curves: Sequence[Curve]) -> None:
    label = "cliff"
    for place, low, high in (one for curve in curves for one in curve.cliffs):
        axes.shade([(low, high)], VERMILLION, "")
        axes.axvline(place, color=INK, linestyle="--", linewidth=0.9, label=label, zorder=4)
        label = "_nolegend_"
    after = [
        (curve.cliffs[-1][0], curve.written[-1], curve.sustained)
        for curve in curves
        if curve.cliffs and curve.sustained
    ]
    if after:
        starts, ends, rates = zip(*after, strict=True)
        mean = sum(rates) / len(rates)
        label = f"mean after it: {in_digits(mean, 3)} GB/s"
        axes.hlines(mean, min(starts), max(ends), color=VERMILLION, linewidth=1.0, label=label, zorder=5)


def _seen(curves: Sequence[Curve]) -> str:
    firsts = [curve.cliffs[0][0] for curve in curves if curve.cliffs]
    if not firsts:
        return "No cliff is marked."
    span = (
        f"{in_digits(min(firsts))} GB"
        if len(firsts) == 1
        else f"{in_digits(min(firsts))} to {in_digits(max(firsts))} GB"
    )
    return f"The rate falls after {span}, in {len(firsts)} of {len(curves)} passes."


PASSES: Columns[Row] = (
    Column("Pass", lambda row: row.number, count),
    Column("Written", lambda row: f"{decimal_size(row.written_bytes)} of {decimal_size(row.asked_bytes)}", kind="n"),
    Column("Time", lambda row: row.duration, duration),
    Column("Finding", lambda row: FOUND[row.finding], kind="s"),
    Column("Before the cliff", lambda row: row.rate_before_cliff, three_of_rate),
    Column("After it", lambda row: row.sustained_rate, three_of_rate),
    Column("Slowest 1 %", lambda row: row.slowest_rate, three_of_rate),
    Column("from", lambda row: row.slowest and decimal_size(row.slowest.from_bytes, 3), kind="n"),
)


def _table(rows: Sequence[Row]) -> Table:
    caption = (
        "The passes. Before the cliff: over the first bytes that must be free of one, or up to the cliff where it comes earlier. After it: "
        "the mean of the whole pass where there is no cliff. Slowest 1 %: the mean "
        "rate over the slowest hundredth of the bytes, and where it begins. A dash: not known."
    )
    return table(rows, PASSES, "saturation-passes", caption, lambda row: row.finding == "unknown")


CLIFFS: Columns[tuple[Row, Cliff]] = (
    Column("Pass", lambda one: one[0].number, count),
    Column("Written before it", lambda one: one[1].at_bytes, decimal_size),
    Column("95 % interval", lambda one: span(one[1].interval_bytes, decimal_size), kind="n"),
    Column("Share of the capacity", lambda one: one[1].share_of_capacity, share),
    Column("After", lambda one: one[1].at_s, duration),
    Column("Rate before", lambda one: one[1].before_bytes_per_s, three_of_rate),
    Column("Rate after", lambda one: one[1].after_bytes_per_s, three_of_rate),
    Column("Fall", lambda one: one[1].fall_fraction, share),
)


def _cliffs(rows: Sequence[Row]) -> list[Part]:
    found = [(row, one) for row in rows for one in row.cliff_list]
    caption = "Cliffs. The rates are means back to the cliff before, or the begin, and on to the next one, or the end."
    return [table(found, CLIFFS, "saturation-cliffs", caption)] if found else []
