"""The faults of the candidate's hardware while it was watched, from results/hardware_events.json."""

from __future__ import annotations

from collections.abc import Iterator

from bench_report.base.units import NONE, count, significant
from bench_report.document.section import Part
from bench_report.document.table import Table
from bench_report.reading.dataset.bundle import Bundle

MOST_ROWS = 40


def hardware_parts(bundle: Bundle) -> Iterator[Part]:
    """Yields the table of faults, or the sentence that there were none, and what nobody looked at; nothing for an older bundle."""
    node = bundle.results.get("hardware_events")
    if node is None:
        return
    events = node.list("events")
    rows = tuple(
        (
            one.at("device").as_text(),
            one.at("kind").as_text().replace("_", " "),
            count(one.at("count").as_integer()),
            significant(one.at("first_s").as_number(), 6, trim=True),
            one.at("text").as_text() or NONE,
        )
        for one in events[:MOST_ROWS]
    )
    if rows:
        left = len(events) - len(rows) + (node.integer("events_left_out") or 0)
        caption = f"Faults of the hardware while it was watched, the gravest first; times from {node.at('times_from').as_text()}."
        if left:
            caption += f" {left} more are in results/hardware_events.json or the telemetry."
        yield Table(
            ("Device", "Fault", "Count", "First, s", "First message"), "ttnnt", rows, caption, "hardware-events"
        )
    else:
        yield "No fault of the hardware was seen while it was watched."
    reasons = [reason.as_text() for _, reason in node.at("reasons").entries()]
    if reasons:
        yield f"Not looked at, so that nothing is known: {'; '.join(dict.fromkeys(reasons))}."
