"""The faults of the candidate's hardware while it was watched, from results/hardware_events.json."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.derived import HardwareEvents
from daq_bench.bench_model.documents.telemetry import TelemetryAccount
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import NONE, count, significant
from daq_bench.bench_report.document.section import Part
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

MOST_ROWS = 40
SHOWN_REASON = 300  # characters of the reason for a sample that was not taken; the whole text is in the file


def hardware_parts(bundle: Bundle) -> Iterator[Part]:
    """Yields the table of faults, or the sentence that there were none, and what nobody looked at; nothing for an older bundle."""
    found = bundle.result("hardware_events", HardwareEvents)
    if found is None:
        return
    rows = tuple(
        (
            one.device, one.kind.replace("_", " "), count(one.count), significant(one.first_s, 6, trim=True), one.text or NONE,
        )
        for one in found.events[:MOST_ROWS]
    )  # fmt: skip
    if rows:
        left = len(found.events) - len(rows) + found.events_left_out
        caption = f"Faults of the hardware while it was watched, the gravest first; times from {found.times_from}."
        if left:
            caption += f" {left} more are in results/hardware_events.json or the telemetry."
        yield Table(
            ("Device", "Fault", "Count", "First, s", "First message"), "ttnnt", rows, caption, "hardware-events"
        )
    else:
        yield "No fault of the hardware was seen while it was watched."
    if found.reasons:
        yield f"Not monitored: {_unseen(found, bundle)}."


def _unseen(found: HardwareEvents, bundle: Bundle) -> str:
    """Returns each reason once; those that the table of samples not taken gives word for word, by the collector's name alone."""
    account = bundle.result("telemetry_account", TelemetryAccount)
    whole = [one for one in account.collectors if len(one.reason or "") <= SHOWN_REASON] if account else []
    given = {f"{one.name}: {one.reason}": one.name for one in whole}
    reasons = dict.fromkeys(found.reasons.values())
    names = [given[reason] for reason in reasons if reason in given]
    return "; ".join(
        [
            *([f"{', '.join(names)} (why: {see_table('telemetry-missed')})"] if names else []),
            *(reason for reason in reasons if reason not in given),
        ]
    )
