"""The account of every telemetry point: expected, collected, in the bundle, in InfluxDB, and the name of each difference."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.telemetry import TelemetryAccount
from daq_bench.bench_report.base.units import NONE, count, grouped_in, known
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.hardware import SHOWN_REASON


def telemetry_account_section(bundle: Bundle) -> Section | None:
    """Makes the section from results/telemetry_account.json; None in a bundle without it."""
    account = bundle.result("telemetry_account", TelemetryAccount)
    if account is None:
        return None
    parts: list[Part] = [
        f"{grouped_in(account.sentence)}. The bundle is the record; InfluxDB is the live view and the history."
    ]
    parts += [Lacking(text) for text in account.invalid]
    parts += _measurements(account)
    parts += filter(None, (_differences(account), _missed(account), _outages(account)))
    return Section("telemetry-account", "Telemetry account", tuple(parts))


def _measurements(account: TelemetryAccount) -> Iterator[Part]:
    """Yields a row for each measurement that lacks something, one for all together, and a line for those that are complete."""
    collectors = {one.name: one for one in account.collectors}
    rows, complete = [], []
    for name, row in account.measurements.items():
        collector = collectors.get(row.collector or "")
        samples = NONE
        if collector is not None:
            collected, expected = collector.collected_samples, collector.expected_samples
            samples = f"{count(collected)} of {count(expected)}"
            points = [row.collected, row.stored, row.present]
            if collected == expected and None not in points and len(set(points)) == 1 and not row.differences:
                complete.append(name)
                continue
        rows.append((name, samples, *(known(one, count) for one in (row.collected, row.stored, row.present))))
    if complete:
        yield (
            f"Complete, with every sample taken and every point in the bundle and in InfluxDB ({len(complete)} measurements): "
            f"{', '.join(complete)}."
        )
    whole = account.whole
    if complete and not rows and not whole.differences:
        return
    rows.append(("all", NONE, *(known(one, count) for one in (whole.collected, whole.stored, whole.present))))
    yield Table(
        ("Measurement", "Samples taken", "Points collected", "In the bundle", "In InfluxDB"), "tnnnn", tuple(rows),
        name="telemetry-account",
        caption="Samples by the deadlines of the measurement's collector; a sample of several sensors gives several points.",
    )  # fmt: skip


def _differences(account: TelemetryAccount) -> Table | None:
    rows = []
    for name, row in [*account.measurements.items(), ("all", account.whole)]:
        for one in row.differences:
            rows.append((name, one.step, count(one.points), one.name, _short(one.reason)))
    if not rows:
        return None
    heads = ("Measurement", "Between", "Points", "Name", "Reason")
    return Table(heads, "ttntt", tuple(rows), name="telemetry-differences", caption="Every difference, with its name.")


def _missed(account: TelemetryAccount) -> Table | None:
    rows = [
        (
            one.name.replace("_", "_\u200b"),  # a place to break a long name at
            NONE if one.status == "unsupported" else count(one.missed_samples),
            _short(one.reason),
        )
        for one in account.collectors
        if one.reason is not None
    ]
    if not rows:
        return None
    return Table(
        ("Collector", "Missed", "Why"),
        "tnt",
        tuple(rows),
        name="telemetry-missed",
        caption=f"Samples that were not taken. {NONE}: the candidate has nothing for this collector to read.",
    )


def _outages(account: TelemetryAccount) -> Table | None:
    rows = [(one.from_utc, one.to_utc or "until the end", _short(one.error)) for one in account.outages]
    if not rows:
        return None
    caption = "Times in which InfluxDB did not take what the agent sent; the points waited in the spool."
    return Table(("From", "To", "Error"), "ttt", tuple(rows), name="telemetry-outages", caption=caption)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_REASON else text[: SHOWN_REASON - 3] + "..."
