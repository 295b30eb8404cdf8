"""The tables of a run's tuning, events and telemetry, cell by cell as finished text.

Promise: a cell that has no value says so with a dash; a text that is cut for length says how much is left and where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.facts import Setting
from daq_bench.bench_model.documents.telemetry import TelemetryAccount
from daq_bench.bench_report.base.units import (
    NONE,
    THIN,
    count,
    decimal_size,
    duration,
    grouped_in,
    percent,
    significant,
    utc,
)
from daq_bench.bench_report.document.table import WELL, Column, Columns, Table, table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.telemetry import Collector

MOST_EVENTS = 200
GAP_PERIODS = 2.0
ORDINARY_EVENTS = frozenset({"phase", "test", "verdict"})


def tuning_table(bundle: Bundle) -> Table | None:
    """A row for each setting that was asked for, or that is not what it was before; None where there is none."""
    shown = [one for one in bundle.tuning or () if not _left_alone(one, bundle)]
    if not shown or bundle.tuning is None:
        return None
    after = _after(bundle)
    rows = []
    for setting in shown:
        later = after.get((setting.id, setting.subject))
        changed = later is not None and later.read_back != setting.read_back
        read_back = _value(setting.read_back)
        if changed and later:
            read_back += f"; after the run: {_value(later.read_back)}"
        rows.append((
            setting.id + (f" ({setting.subject})" if setting.subject else ""), _value(setting.asked), _value(setting.before),
            _value(setting.applied), read_back, _status_text(setting, changed),
        ))  # fmt: skip
    return Table(
        heads=("Setting", "Asked", "Before", "Applied", "Read back", "Status"), kinds="tccccs", rows=tuple(rows), name="tuning",
        caption=_tuning_note(bundle.tuning, bundle.tuning_after),
        marked=frozenset(
            index for index, (row, setting) in enumerate(zip(rows, shown, strict=True))
            if not setting.as_wanted or row[-1].startswith("changed")
        ),
    )  # fmt: skip


def _value(text: str | None) -> str:
    return grouped_in(text.replace(">= ", f"\N{GREATER-THAN OR EQUAL TO}{THIN}")) if text else NONE


def _after(bundle: Bundle) -> dict[tuple[str, str | None], Setting]:
    return {(setting.id, setting.subject): setting for setting in bundle.tuning_after or ()}


def _left_alone(setting: Setting, bundle: Bundle) -> bool:
    """Says whether nothing was asked of the setting, and nothing moved it."""
    later = _after(bundle).get((setting.id, setting.subject))
    asked = setting.asked not in (None, "", "keep")
    moved = (later is not None and later.read_back != setting.read_back) or (
        setting.applied or setting.before
    ) != setting.before
    return not asked and not moved and setting.as_wanted


def tuning_left_alone(bundle: Bundle) -> str | None:
    """The settings that nobody asked for, in one line; their values are in facts/tuning.json."""
    names = list(dict.fromkeys(one.id for one in bundle.tuning or () if _left_alone(one, bundle)))
    if not names:
        return None
    return f"Left unchanged, since nothing was asked of them ({len(names)}): {', '.join(names)}. Their values are in facts/tuning.json."


def _status_text(setting: Setting, changed: bool) -> str:
    status = "changed during the run" if changed and setting.status in WELL else setting.status
    return status + (f": {setting.detail}" if setting.detail else "")


def _tuning_note(before: Sequence[Setting], after: Sequence[Setting] | None) -> str:
    odd = sum(not setting.as_wanted for setting in before)
    text = (
        f"Tuning of the candidate. {len(before)} settings, {odd} not as asked (marked)."
        if odd
        else f"Tuning of the candidate. All {len(before)} settings are as asked."
    )
    if after is None:
        return text + " They were not read back after the run."
    return text + " Read back again after the run."


def _worth_a_row(events: Sequence[Event]) -> list[Event]:
    """Returns all events but the beginnings of tests that ended: their ends have rows."""
    ended = {one.text.partition(": ")[2] for one in events if one.kind == "test" and not one.text.startswith("begin: ")}
    return [
        one
        for one in events
        if one.kind != "test" or one.text.removeprefix("begin: ") not in ended or not one.text.startswith("begin: ")
    ]


def event_table(bundle: Bundle) -> Table | None:
    """Returns the events by time; the steps of one phase share a row, and unusual ones are marked."""
    if not bundle.events:
        return None
    start = bundle.run.started
    groups = _steps_together(_worth_a_row(bundle.events))
    rows = tuple(
        (_since((group[0].time - start).total_seconds()), group[0].kind, group[0].source or NONE, _told(group))
        for group in groups[:MOST_EVENTS]
    )
    caption = f"Events. Times count from the start of the run, {utc(start)}."
    if len(groups) > len(rows):
        caption += f" The first {MOST_EVENTS} of {len(groups)}; the others are in events.jsonl."
    odd = frozenset(index for index, row in enumerate(rows) if row[1] not in ORDINARY_EVENTS)
    return Table(("Time", "Kind", "Source", "What happened"), "nttt", rows, caption, "events", odd)


def _steps_together(events: Sequence[Event]) -> list[list[Event]]:
    groups: list[list[Event]] = []
    for event in events:
        if groups and event.kind == "phase" == groups[-1][-1].kind and event.source == groups[-1][-1].source:
            groups[-1].append(event)
        else:
            groups.append([event])
    return groups


def _told(group: Sequence[Event]) -> str:
    first = group[0].text or NONE
    if len(group) == 1:
        return first
    more = len(group) - 1
    return f"{first}; then {more} more step{'s' if more > 1 else ''}, the last: {group[-1].text}"


def _since(seconds: float) -> str:
    """Returns the time to the hundredth, or to four digits: nobody needs more of an hour."""
    if abs(seconds) >= 100:
        return f"{significant(seconds)}{THIN}s"
    return f"{seconds:.2f}{THIN}s" if abs(seconds) >= 0.005 else f"0{THIN}s"


def accounting_words(bundle: Bundle) -> str | None:
    if bundle.accounting is None or not bundle.accounting.counts:
        return None
    told = [f"{label} {_count_text(name, value)}" for label, name, value in bundle.accounting.counts if value]
    rest = "; every other count of telemetry/summary.json is 0" if len(told) < len(bundle.accounting.counts) else ""
    return f"Where every telemetry point went: {', '.join(told)}{rest}."


def _count_text(name: str, value: float) -> str:
    if "bytes" in name:
        return decimal_size(value)
    return percent(value) if "percent" in name else count(value)


def collector_table(bundle: Bundle) -> Table | None:
    if bundle.accounting is None or not bundle.accounting.collectors:
        return None
    told = _told_by_account(bundle)
    found = [one for one in bundle.accounting.collectors if not _quiet(one) and one.name not in told]
    if not found:
        return None
    caption = "Collectors of the telemetry that gave no samples or were silent for longer than two periods."
    return table(found, COLLECTORS, "collectors", caption, lambda item: item.status not in WELL)


COLLECTORS: Columns[Collector] = (
    Column("Collector", lambda item: item.name),
    Column("Status", lambda item: item.status + (f": {item.detail}" if item.detail else ""), kind="s"),
    Column("Period", lambda item: item.period_s or None, duration),
    Column("Points", lambda item: item.points, count),
    Column("Longest gap", lambda item: item.longest_gap_s or None, duration),
)


def _told_by_account(bundle: Bundle) -> frozenset[str]:
    """Returns collectors without a sample whose reason the telemetry account already gives."""
    account = bundle.result("telemetry_account", TelemetryAccount)
    rows = account.collectors if account else ()
    return frozenset(row.name for row in rows if row.status == "unsupported" and row.reason is not None)


def _quiet(one: Collector) -> bool:
    """Says whether a collector worked and was never silent for longer than two of its periods, so that it needs no row."""
    return (
        one.status in WELL
        and not one.detail
        and bool(one.period_s)
        and (one.longest_gap_s or 0.0) <= GAP_PERIODS * (one.period_s or 0.0)
    )


def collectors_without_gap(bundle: Bundle) -> str | None:
    names = [one.name for one in (bundle.accounting.collectors if bundle.accounting else ()) if _quiet(one)]
    if not names:
        return None
    return f"Collectors that were never silent for longer than two of their periods ({len(names)}): {', '.join(names)}."
