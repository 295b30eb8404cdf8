"""The appendix: values as the bundle holds them, unrounded, so that a reader can calculate with them.

Promise: numbers are written with all digits that a double holds, in the unit of the head; an absent one is a dash.
"""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.tools.minidaq import Minidaq
from daq_bench.bench_report.base.units import NONE
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.drives import smart_raw_table
from daq_bench.bench_report.tables.measured import PERCENTILES

MOST_ROWS = 400


def raw_tables(bundle: Bundle) -> list[Table]:
    makers = (
        requirements_raw_table, record_raw_table, quantile_table, block_raw_table, large_blocks_raw_table, smart_raw_table,
    )  # fmt: skip
    return [_cut(table) for maker in makers if (table := maker(bundle)) is not None]


def _cut(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    caption = f"{table.caption} The first {MOST_ROWS} of {len(table.rows)} rows; the others are in the bundle."
    return Table(table.heads, table.kinds, table.rows[:MOST_ROWS], caption, table.name, table.marked)


def _number(value: float | str | None) -> str:
    """Returns the fewest digits that give the same double again."""
    if value is None or isinstance(value, str):
        return value or NONE
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def requirements_raw_table(bundle: Bundle) -> Table | None:
    judged = bundle.verdict.requirements if bundle.verdict else ()
    if not judged:
        return None
    rows = tuple(
        (
            one.id, one.metric, one.unit or "1", _number(one.scaled_bound if one.scaled_bound is not None else one.bound),
            _number(one.measured), *(_number(end) for end in one.confidence_interval or (None, None)),
            NONE if one.confidence is None else _number(one.confidence), _number(one.n),
        )
        for one in judged
    )  # fmt: skip
    heads = ("ID", "Metric", "Unit", "Bound", "Measured", "CI from", "CI to", "Level", "n")
    return Table(
        heads, "tctnnnnnn", rows, "Requirements, unrounded; the bound is that of this run's scale.", "requirements-raw"
    )


def record_raw_table(bundle: Bundle) -> Table | None:
    rows = tuple(
        (one.named(number), *cells)
        for number, one in enumerate(bundle.repetitions, 1)
        for cells in _record_rows(one.minidaq)
    )
    heads = ("Rep.", "Quantity", "Value", "Unit")
    return Table(heads, "ttnt", rows, "The record by repetition, unrounded.", "record-raw") if rows else None


def _record_rows(record: Minidaq) -> Iterator[tuple[str, str, str]]:
    values = (
        ("offered", record.offered_bytes_per_s, "B/s"), ("stored", record.stored_bytes_per_s, "B/s"),
        ("written", record.bytes.written, "B"),
        ("record", record.time.record_s, "s"), ("drain", record.time.drain_s, "s"), ("BUSY", record.busy.total_s, "s"),
        ("highest backlog", record.backlog.high_water_bytes, "B"), ("buffer needed", record.transient_buffer.needed_bytes, "B"),
    )  # fmt: skip
    return ((name, _number(value), unit) for name, value, unit in values)


def quantile_table(bundle: Bundle) -> Table | None:
    rows = [
        (
            one.named(number),
            label,
            _number(found.count),
            _number(found.min),
            _number(found.mean),
            *map(_number, found.points_us.values()),
        )
        for number, one in enumerate(bundle.repetitions, 1)
        for label, found in (("arrival to durable", one.minidaq.latency_us), ("write", one.minidaq.write_latency_us))
    ]
    if not rows:
        return None
    heads = ("Rep.", "Latency", "n", "min", "mean", *PERCENTILES)
    return Table(
        heads,
        "ttn" + "n" * (2 + len(PERCENTILES)),
        tuple(rows),
        "Latency quantiles by repetition in \u00b5s, unrounded.",
        "quantiles",
    )


def block_raw_table(bundle: Bundle) -> Table | None:
    scan = bundle.block_scan
    if scan is None or not scan.points:
        return None
    rows = tuple(
        (
            one.tool, _number(point.block_bytes), _number(point.throughput_bytes_per_s), _number(point.iops),
            _number(point.bytes_written), _number(point.device_bytes_written), _number(point.runtime_s),
            "yes" if point.admissible else "no",
        )
        for one in scan.scans
        for point in one.points
    )  # fmt: skip
    heads = ("Tool", "Block (B)", "Mean (B/s)", "IOPS", "Written (B)", "By the device (B)", "Time (s)", "Counts")
    return Table(heads, "tnnnnnnt", rows, "The block-size scan, unrounded.", "blocks-raw")


def large_blocks_raw_table(bundle: Bundle) -> Table | None:
    scan = bundle.block_scan
    rows = tuple(
        (
            one.tool, _number(again.block_bytes), str(again.repetition), _number(again.throughput_bytes_per_s),
            _number(again.bytes_written), _number(again.device_bytes_written), _number(again.runtime_s),
        )
        for one in (scan.scans if scan else ())
        for again in one.measured_again
    )  # fmt: skip
    heads = ("Tool", "Block (B)", "Repetition", "Mean (B/s)", "Written (B)", "By the device (B)", "Time (s)")
    return (
        Table(heads, "tnnnnnn", rows, "Large blocks, measured again, unrounded.", "large-blocks-raw") if rows else None
    )
