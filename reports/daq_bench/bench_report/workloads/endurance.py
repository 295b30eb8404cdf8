"""Endurance: the write budget's account, throughput and wear against what was written, and the years that follow."""

from __future__ import annotations

import math

from matplotlib.ticker import MaxNLocator

from daq_bench.bench_model.documents.results import WearEntry
from daq_bench.bench_model.workloads.endurance.document import (
    TOLD,
    Endurance,
    EnduranceProjection,
    Health,
    Interval,
    Step,
    WornDrive,
)
from daq_bench.bench_report.base.units import NONE, THIN, count, decimal_rate, decimal_size, significant, span
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, GREY, INK, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.document.table import Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

HEIGHT_MM = 92.0
TB = 1e12
MOST_ROWS = 40
BY = {"drives": "what was counted", "tool": "what fio wrote", "reservation": "the whole reservation"}
LOADS = {"supernova": "supernova cadence", "continuous": "continuous use", "rating": "the drive's own rating"}
SMALL_YEARS = 0.1


def section(bundle: Bundle) -> Section | None:
    document = bundle.result("endurance", Endurance)
    if document is None:
        lacking = "no result of the wear experiment (results/endurance.json)."
        return unfinished(bundle, "endurance", "Endurance", lacking)
    projection = bundle.result("endurance_projection", EnduranceProjection)
    figure = _figure(document)
    parts: list[Part] = [_words(document), figure or Lacking("no step of the pattern that counts as evidence.")]
    parts.append(_ledger(document))
    if projection is None:
        parts.append(Lacking("the projected years (results/endurance_projection.json)."))
    else:
        parts += [_wear_table(projection), _years_table(projection), *_reasons(projection)]
    return Section("endurance", "Endurance", tuple(parts))


def _words(document: Endurance) -> str:
    pattern, budget = document.pattern, document.write_budget_bytes
    spent, earlier, left = document.spent_bytes, document.spent_before_bytes, document.left_bytes
    random = significant(pattern.random_percent, 3, trim=True)
    text = (
        f"Write budget {decimal_size(budget)}: {decimal_size(spent)} are spent, {decimal_size(left)} left. "
        f"Pattern: a file of {decimal_size(pattern.file_bytes)} is overwritten, {random}{THIN}% of "
        f"the bytes at random places, the rest sequentially and at the same time."
    )
    if earlier:
        text += f" Earlier runs of this experiment wrote {decimal_size(earlier)} of what is spent."
    overrun = document.overrun_bytes
    if overrun:
        text += f" The budget is exceeded by {decimal_size(overrun)}."
    missing, readings = _missing(document)
    if missing:
        text += f" {missing} of {readings} readings of the drives lack a field that the drive told at the start."
    ended = document.ended
    return f"{text} {'It ended since ' + ended + '.' if ended else 'The run did not come to its end.'}"


def _missing(document: Endurance) -> tuple[int, int]:
    """Readings after a step that lack what the drive told at the start, and all readings after a step."""
    told = {one.id: _told(one) for one in document.at_start}
    found = [not told.get(one.id, set()) <= _told(one) for step in document.steps for one in step.health]
    return sum(found), len(found)


def _told(one: Health) -> set[str]:
    """Fields that a reading has, and who counted."""
    return {one.counter, *(name for name in TOLD if getattr(one, name) is not None)}


def _figure(document: Endurance) -> Figure | None:
    steps = [step for step in document.steps if step.kind == "mix"]
    drawn = [step for step in steps if step.admissible]
    if not drawn:
        return None
    charged = {entry.number: entry for entry in document.ledger}
    total, written = 0.0, {}
    for number in sorted(charged):
        total += charged[number].charged_bytes or 0.0
        written[number] = total / TB
    factor, unit = (1.0, "TB") if total >= TB else (1e3, "GB")
    x = [written[step.number] * factor for step in steps]
    # NaN breaks the line: no stroke may suggest the value of a masked step
    line = [step.throughput_bytes_per_s / 1e9 if step in drawn else math.nan for step in steps]
    y = [value for value in line if not math.isnan(value)]
    name, title = "endurance", "Throughput and wear against what was written"
    with sheet(name, HEIGHT_MM, 2, (1.3, 1.0)) as (drawing, (rate, wear)):
        rate.plot(x, line, color=BLUE, marker="o", label="one step of the pattern")
        rate.label_panel("throughput (GB/s)")
        rate.set_ylim(0, max(y) * 1.15)
        rate.legend_above()
        shown = _draw_wear(wear, document, steps, x)
        wear.label_panel("percentage used, by the drives (%)")
        wear.set_xlabel(f"written by all runs of the experiment, by the account ({unit})")
        wear.yaxis.set_major_locator(MaxNLocator(integer=True))
        if not shown:
            wear.text(0.5, 0.5, "no drive reports it", transform=wear.transAxes, ha="center", va="center", color=GREY)
            wear.set_yticks([])
        alt = f"{title}: {len(drawn)} steps, from {decimal_rate(min(y) * 1e9)} to {decimal_rate(max(y) * 1e9)}."
    caption = f"n = {len(drawn)} steps of {decimal_size(drawn[0].asked_bytes)} each; a step's rate is its mean."
    if shown:
        caption += " The band is what a whole percent may stand for: up to one more or one less."
    if len(drawn) < len(steps):
        caption += f" Not drawn, since they do not count as evidence: {len(steps) - len(drawn)} of {len(steps)} steps."
    see = f"The first step that counts ran at {decimal_rate(y[0] * 1e9)}, the last at {decimal_rate(y[-1] * 1e9)}."
    return drawing.figure(title, caption, alt, see)


def _draw_wear(axes: Panel, document: Endurance, steps: list[Step], x: list[float]) -> bool:
    ids = [drive.id for drive in document.drives]
    shown = False
    for index, drive in enumerate(ids):
        values = [_health(step, drive).percentage_used for step in steps]
        if all(value is None for value in values):
            continue
        known = [math.nan if value is None else float(value) for value in values]  # NaN breaks the line, as above
        colour = (VERMILLION, BLUE, INK, GREY)[index % 4]
        axes.fill_between(
            x,
            [math.nan if math.isnan(v) else max(0.0, v - 1) for v in known],
            [v + 1 for v in known],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        axes.plot(x, known, color=colour, marker="s", label=drive)
        shown = True
    if shown:
        axes.legend_above()
    return shown


def _health(step: Step, drive: str) -> Health:
    return next(one for one in step.health if one.id == drive)


LEDGER: Columns[WearEntry] = (
    Column("Step", lambda entry: entry.number, count),
    Column("Run", lambda entry: entry.run[:16], kind="c"),
    Column("Kind", lambda entry: entry.kind),
    Column("Reserved", lambda entry: entry.reserved_bytes, decimal_size),
    Column("Counted", lambda entry: entry.counted_bytes, decimal_size),
    Column("Charged", lambda entry: entry.charged_bytes, decimal_size),
    Column("Charged by", lambda entry: BY[entry.charged_by] if entry.charged_by else "reserved, not settled"),
)


def _ledger(document: Endurance) -> Table:
    entries = document.ledger
    caption = (
        "The account of the write budget, over all runs. Reserved before a byte is written; charged afterwards by the larger of both "
        "counts, or by the whole reservation where nobody could count."
    )
    if len(entries) > MOST_ROWS:
        caption += f" The last {MOST_ROWS} of {len(entries)}; the others are in results/endurance_ledger.json."
    total = sum(entry.charged_bytes or entry.reserved_bytes for entry in entries)
    last = ("", "", "sum", "", "", decimal_size(total), "")
    odd = ("reservation", None)
    return table(entries[-MOST_ROWS:], LEDGER, "endurance-ledger", caption, lambda entry: entry.charged_by in odd, last)


WEAR: Columns[WornDrive] = (
    Column("Drive", lambda drive: drive.id),
    Column("Written", lambda drive: drive.host_bytes, decimal_size),
    Column("Percentage used", lambda drive: _from_to(drive.percentage_used, f"{THIN}%"), kind="n"),
    Column("Wear (% per TB)", lambda drive: _interval(drive.wear_percent_per_tb, drive.no_wear), kind="t"),
    Column("Write amplification", lambda drive: _interval(drive.write_amplification, drive.no_write_amplification)),
    Column("Spare", lambda drive: _from_to(drive.available_spare, f"{THIN}%"), kind="n"),
    Column("Media errors", lambda drive: _from_to(drive.media_errors, ""), kind="n"),
)


def _wear_table(projection: EnduranceProjection) -> Table:
    caption = "The drives' own readings, from the first to the last; intervals hold the steps that they count in."
    return table(projection.drives, WEAR, "endurance-wear", caption)


def _from_to(values: list[int | None], unit: str) -> str:
    return NONE if None in values else f"{values[0]} to {values[1]}{unit}"


def _interval(found: Interval | None, why: str | None) -> str:
    if found is None:
        return f"{NONE} ({why})" if why else NONE
    low, high, best = found.low, found.high, found.best
    if high is None:
        return f"at least {significant(low, 3)}"
    if low == 0 and best is None:
        return f"below {significant(high, 3)}"
    return span((low, high))


def _years_table(projection: EnduranceProjection) -> Table:
    rows = []
    for drive in projection.drives:
        for one in drive.projections:
            references = "; ".join(
                f"{reference.device}: {_years(reference.years)}" for reference in one.published_years
            )
            rows.append((
                drive.id, LOADS[one.load] + f": {one.text}",
                _years(one.years), _years(one.years_left), _years(one.rated_years), references or NONE,
            ))  # fmt: skip
    heads = ("Drive", "Load", "Life", "Left", "By its rating", "Published, for this capacity")
    caption = (
        "Projected life, from new and from now, by the wear measured here. Unbounded: the wear was below what the drive counts in, so that "
        "only the lower end is known. Ratings and published figures are the makers' and the paper's, not measurements."
    )
    return Table(heads, "ttnnnt", tuple(rows), caption, "endurance-years")


def _years(found: Interval | None) -> str:
    if found is None:
        return NONE
    low, high = found.low, found.high
    if high is None:
        return f"no less than {_span(low)}, unbounded"
    return f"{_span(low)} to {_span(high)}"


def _span(years: float) -> str:
    return f"{significant(years * 365.25, 3)}{THIN}d" if years < SMALL_YEARS else f"{significant(years, 3)}{THIN}a"


def _reasons(projection: EnduranceProjection) -> list[Part]:
    texts = [f"{name}: {reason}." for name, reason in projection.reasons.items()]
    return ["Not decided or not measured: " + " ".join(texts)] if texts else []
