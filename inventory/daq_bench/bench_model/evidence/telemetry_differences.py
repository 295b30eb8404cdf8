"""The account of one measurement's points, step by step, and the name of every difference between two steps.

A name never explains more points than its cause accounts for; what is left is `unnamed`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import convert

from daq_bench.bench_model.bundle.spool_content import Content
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import Document, moment
from daq_bench.bench_model.documents.telemetry import AccountRow, Difference, InfluxCounts, Name, Step

# Steps of a point's way, each with what may be lost on it.
COLLECTING: Final = "expected to collected"
SPOOLING: Final = "collected to bundle"
DELIVERING: Final = "bundle to InfluxDB"
UNNAMED: Final = "unnamed"
WORKLOAD_COLLECTOR = "workload"


@dataclass
class Row:
    """The account of one measurement, in points. None: not known."""

    measurement: str
    collector: str | None = None
    expected: int | None = None
    collected: int | None = None
    stored: int = 0
    present: int | None = None
    differences: list[Difference] = field(default_factory=list)

    def name(self, step: Step, name: Name, points: int, reason: str) -> None:
        """A difference of `points`, if not 0."""
        if points:
            self.differences.append(Difference(step, name, points, reason))

    def told(self) -> AccountRow:
        return convert(self, AccountRow, from_attributes=True)


def expect(rows: dict[str, Row], summary: Document, workload: tuple[Counter[str], int]) -> None:
    """Expected and collected points; a sensor's number of points a sample may vary, so that only records are expected one by one."""
    for name, counted in summary.get("measurements", {}).items():
        rows[name].collected = counted["collected"]
    if summary.get("workload"):
        for name, row in rows.items():
            if row.collector == WORKLOAD_COLLECTOR or name in workload[0]:
                row.expected = workload[0][name]


def account_spool(rows: dict[str, Row], summary: Document, content: Content) -> None:
    """Collected against the lines in the bundle."""
    lines = content.lines()
    for name, row in rows.items():
        row.stored = lines[name]
        counted = summary.get("measurements", {}).get(name)
        if counted is not None:
            thinned, spooled = counted.get("thinned", 0), counted["spooled"]
            row.name(SPOOLING, "thinned", thinned, thinning_reason(summary))
            row.name(SPOOLING, "unspooled", counted["collected"] - spooled - thinned, unspooled_reason(summary))
            _lines_against_count(row, SPOOLING, spooled, row.stored, summary)


def _lines_against_count(row: Row, step: Step, counted: int, lines: int, summary: Document) -> None:
    """Compares the points that the agent says it wrote with those in the file; a killed agent's last count may lag behind."""
    if summary["state"] != FINISHED and lines > counted:
        row.name(step, "agent killed", counted - lines, "the agent was killed after its last account of the spool")
    else:
        text = f"the agent wrote {counted} points into its spool, in which there are {lines}"
        row.name(step, UNNAMED, counted - lines, text)


def thinning_reason(summary: Document) -> str:
    reasons = [one["reason"] for one in summary["spool"].get("thinnings", [])]
    return "; ".join(dict.fromkeys(reasons)) or "left out by the agent"


def unspooled_reason(summary: Document) -> str:
    return (
        f"telemetry lost because the spool's disk failed: {summary['spool'].get('last_error') or 'no reason recorded'}"
    )


def account_delivery(rows: dict[str, Row], summary: Document, content: Content, counts: InfluxCounts) -> None:
    """The bundle's lines against the points in InfluxDB."""
    present = counts.points
    if present is None:
        return
    points, before = content.points(), content.points_before()
    expired = _expired(content, counts)
    for name, row in rows.items():
        row.present = present.get(name, 0)
        row.name(
            DELIVERING,
            "overwritten",
            row.stored - points[name],
            "of equal series and time, of which InfluxDB keeps one",
        )
        lacking = points[name] - row.present
        refused = counts.rejected.get(name, {})
        causes: list[tuple[Name, int, str]] = [
            ("rejected", sum(refused.values()), "; ".join(refused)),
            ("undelivered", points[name] - before[name], undelivered_reason(summary)),
            (
                "expired",
                expired[name],
                f"older than the {(counts.retention_s or 0) / 86400:g} d that InfluxDB keeps",
            ),
        ]
        for cause, at_most, reason in causes:
            part = max(0, min(at_most, lacking))
            row.name(DELIVERING, cause, part, reason)
            lacking -= part
        # Thinned out of the spool when InfluxDB had them already: it holds more than the bundle.
        gone = summary.get("measurements", {}).get(name, {}).get("thinned_delivered", 0)
        kept = max(0, min(gone, -lacking))
        row.name(DELIVERING, "thinned after delivery", -kept, thinning_reason(summary))
        lacking += kept
        held = f"InfluxDB holds {row.present} points of {name} of this run, the bundle {points[name]}"
        row.name(DELIVERING, UNNAMED, lacking, held)


def _expired(content: Content, counts: InfluxCounts) -> Counter[str]:
    if not counts.retention_s:
        return Counter()
    counted_s = moment(counts.counted_utc).timestamp()
    return content.points_older_than(int((counted_s - counts.retention_s) * 1e9))


def undelivered_reason(summary: Document) -> str:
    outages = summary["influx"].get("outages", [])
    if outages and outages[-1]["to_utc"] is None:
        return f"wait for replay since the outage of {outages[-1]['from_utc']}: {outages[-1]['error']}"
    return "wait for replay: the run ended before delivery had come to them"


def account_whole(summary: Document, rows: dict[str, Row], workload: tuple[Counter[str], int]) -> Row:
    """Returns the row of all measurements together: the agent's sums, the collectors' own counts, the workload's records."""
    points, whole = summary["points"], Row("all")
    whole.collected, whole.stored = points["collected"], sum(row.stored for row in rows.values())
    if all(row.present is not None for row in rows.values()):
        whole.present = sum(row.present or 0 for row in rows.values())
    if "measurements" not in summary:
        thinned = points.get("thinned", 0)
        whole.name(SPOOLING, "thinned", thinned, thinning_reason(summary))
        whole.name(SPOOLING, "unspooled", points["collected"] - points["spooled"] - thinned, unspooled_reason(summary))
        _lines_against_count(whole, SPOOLING, points["spooled"], whole.stored, summary)
    else:
        by_measurement = sum(one["collected"] for one in summary["measurements"].values())
        text = f"the agent collected {points['collected']} points, by measurement {by_measurement}"
        whole.name(SPOOLING, UNNAMED, points["collected"] - by_measurement, text)
    _records(whole, summary.get("workload"), workload)
    return whole


def _records(whole: Row, seen: Document | None, workload: tuple[Counter[str], int]) -> None:
    """Records that the workload and the bench wrote against those that the agent saw and passed on."""
    if seen is None:
        return
    written, late = sum(workload[0].values()), workload[1]
    unseen = written - seen["lines_seen"]
    ending = max(0, min(unseen, late))
    whole.name(COLLECTING, "late", ending, "records written while the agent was ending")
    text = f"{written} records were written for the agent to pass on, of which it saw {seen['lines_seen']}"
    whole.name(COLLECTING, UNNAMED, unseen - ending, text)
    whole.name(COLLECTING, "refused", seen["lines_rejected"], "; ".join(seen.get("reasons", [])))


def unnamed(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        for one in row.differences:
            if one.name == UNNAMED:
                yield f"Telemetry of {row.measurement}, {one.step}: {one.points:+d} points that nothing explains ({one.reason})"
