"""The tables of what was measured: block sizes, latencies, and the record's integrity.

Promise: a number that the writer or the verifier did not give is a dash, never a zero.
"""

from __future__ import annotations

import statistics

from bench_report.base.units import (
    NONE,
    THIN,
    binary_rate,
    binary_size,
    count,
    decimal_rate,
    decimal_size,
    duration,
    latency,
    percent,
    significant,
)
from bench_report.document.table import Table, pairs_table, plain_words
from bench_report.reading.dataset.block_scan import BlockPoint, LargeRepetition
from bench_report.reading.dataset.bundle import Bundle
from bench_report.reading.dataset.latency import Latency
from bench_report.reading.dataset.record import Minidaq, Verify

MOST_FAULTS = 25
PERCENTILES = ((50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99"), (100.0, "max"))


def block_table(bundle: Bundle) -> Table | None:
    scan = bundle.block_scan
    if scan is None or not scan.points:
        return None
    scans = [scan, *scan.others]
    rows = [(one, point, _block_row(point)) for one in scans for point in one.points]
    several = len(scans) > 1
    return Table(
        heads=(
            *(("Tool",) if several else ()),
            "Block size", "Mean", "Lowest \u2013 highest sample", "n", "p99 latency", "CPU", "In the figure",
        ),
        kinds=("n" if several else "") + "nnnnnnt", name="blocks",
        rows=tuple((one.tool or NONE, *row) if several else row for one, _, row in rows),
        caption="Throughput by block size. In binary units (1 GiB/s = 2\u00b3\u2070 B/s). CPU: user and system time of the load "
        "generator, one whole CPU being 100 %.",
        marked=frozenset(index for index, (_, point, _) in enumerate(rows) if not point.admissible),
    )  # fmt: skip


def _block_row(point: BlockPoint) -> tuple[str, ...]:
    samples = point.samples_bytes_per_s
    tail = dict(point.latency.points_us) if point.latency else {}
    return (
        binary_size(point.block_bytes),
        binary_rate(point.throughput_bytes_per_s),
        f"{binary_rate(min(samples), 3)} \u2013 {binary_rate(max(samples), 3)}" if samples else NONE,
        count(len(samples)) if samples else NONE,
        latency(tail[99.0]) if 99.0 in tail else NONE,
        percent(point.cpu_percent) if point.cpu_percent is not None else NONE,
        "drawn" if point.admissible else f"not drawn: {point.reason or 'no reason recorded'}",
    )


def large_blocks_table(bundle: Bundle) -> Table | None:
    """The repetitions that requirements on large blocks are judged by, one row for each tool and size."""
    scan = bundle.block_scan
    if scan is None:
        return None
    groups: dict[tuple[str, int], list[LargeRepetition]] = {}
    for one in (scan, *scan.others):
        for again in one.repetitions:
            groups.setdefault((one.tool or NONE, again.block_bytes), []).append(again)
    if not groups:
        return None
    return Table(
        heads=("Tool", "Block size", "n", "Mean", "Lowest \u2013 highest repetition", "Time each", "Samples each", "Not counted"),
        kinds="tnnnnnnt", name="large-blocks",
        rows=tuple((tool, binary_size(size), *_large_blocks_row(found)) for (tool, size), found in groups.items()),
        caption="Large blocks, measured again: what requirements on them are judged by. n: repetitions that count. Each is a fresh start "
        "of the tool; the sizes take turns.",
        marked=frozenset(
            row for row, found in enumerate(groups.values()) if any(one.throughput_bytes_per_s is None for one in found)
        ),
    )  # fmt: skip


def _large_blocks_row(found: list[LargeRepetition]) -> tuple[str, ...]:
    rates = [one.throughput_bytes_per_s for one in found if one.throughput_bytes_per_s is not None]
    times = [one.runtime_s for one in found if one.runtime_s is not None]
    left_out = [
        f"{one.repetition}: {one.reason or 'no reason recorded'}" for one in found if one.throughput_bytes_per_s is None
    ]
    return (
        f"{len(rates)} of {len(found)}",
        binary_rate(statistics.fmean(rates)) if rates else NONE,
        f"{binary_rate(min(rates))} \u2013 {binary_rate(max(rates))}" if rates else NONE,
        duration(min(times)) if times else NONE,
        count(min(one.samples for one in found)),
        "\n".join(left_out) or NONE,
    )


def latency_table(bundle: Bundle) -> Table | None:
    rows = []
    for number, repetition in enumerate(bundle.repetitions, 1):
        if repetition.minidaq:
            for label, found in (
                ("arrival to durable", repetition.minidaq.arrival),
                ("write", repetition.minidaq.write),
            ):
                if found:
                    rows.append(
                        (
                            repetition.named(number),
                            label,
                            count(found.count) if found.count is not None else NONE,
                            *_percentile_cells(found),
                        )
                    )
    if not rows:
        return None
    return Table(
        heads=("Rep.", "Latency", "n", *(label for _, label in PERCENTILES)), kinds="ntn" + "n" * len(PERCENTILES),
        rows=tuple(rows), caption=_definitions(bundle), name="latency",
    )  # fmt: skip


def _percentile_cells(found: Latency) -> tuple[str, ...]:
    values = dict(found.points_us)
    return tuple(latency(values[percentile]) if percentile in values else NONE for percentile, _ in PERCENTILES)


def _definitions(bundle: Bundle) -> str:
    minidaq = next((repetition.minidaq for repetition in bundle.repetitions if repetition.minidaq), None)
    pairs = (("Arrival to durable", minidaq.arrival), ("Write", minidaq.write)) if minidaq else ()
    return "Latency by percentile. " + " ".join(
        f"{label}: {found.definition.rstrip('.')}." for label, found in pairs if found and found.definition
    )


def written_table(bundle: Bundle) -> Table | None:
    rows = [
        _written_row(repetition.named(number), repetition.minidaq)
        for number, repetition in enumerate(bundle.repetitions, 1)
        if repetition.minidaq
    ]
    if not rows:
        return None
    return Table(
        heads=("Rep.", "Status", "Intended", "Offered", "Stored", "Lost", "Abandoned", "BUSY", "Buffer", "Drain"), kinds="nsnnnnnnnn",
        rows=tuple(rows), name="written",
        caption="Superchunks of the record, written. Abandoned: taken from the source, but the record ended before they were stored. "
        "Buffer: the transient buffer that the record needed.",
    )  # fmt: skip


def _written_row(name: str, minidaq: Minidaq) -> tuple[str, ...]:
    chunks = dict(minidaq.superchunks)
    cells = (
        count(chunks[key]) if key in chunks else NONE for key in ("intended", "offered", "stored", "lost", "abandoned")
    )
    return (
        name, minidaq.status + (f": {minidaq.error}" if minidaq.error else ""), *cells,
        count(minidaq.busy_count) if minidaq.busy_count is not None else NONE,
        decimal_size(minidaq.buffer_needed_bytes) if minidaq.buffer_needed_bytes is not None else NONE,
        duration(minidaq.drain_s) if minidaq.drain_s is not None else NONE,
    )  # fmt: skip


def verified_table(bundle: Bundle) -> Table | None:
    rows = [
        _verified_row(repetition.named(number), repetition.verify)
        for number, repetition in enumerate(bundle.repetitions, 1)
        if repetition.verify
    ]
    if not rows:
        return None
    heads = (
        "Rep.",
        "Status",
        "Expected",
        "Present",
        "Missing",
        "Twice",
        "Order",
        "Corrupt",
        "Torn",
        "Stale",
        "Read at",
    )
    return Table(
        heads=heads, kinds="ns" + "n" * 9, rows=tuple(rows), name="verified",
        caption="Superchunks of the record, read back. Each was read from the target and checked. "
        "Twice: present more than once; order: out of sequence; torn: cut short; stale: left by an earlier record.",
    )  # fmt: skip


def _verified_row(name: str, verify: Verify) -> tuple[str, ...]:
    chunks = dict(verify.superchunks)
    keys = ("expected", "present", "missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
    trailer = "" if verify.complete_trailer is not False else ": trailer missing"
    rate = decimal_rate(verify.read_bytes_per_s) if verify.read_bytes_per_s is not None else NONE
    return (
        name,
        verify.status + trailer,
        *(count(chunks[key]) if key in chunks else NONE for key in keys),
        rate,
    )


def fault_table(bundle: Bundle) -> Table | None:
    found = [
        (number, fault)
        for number, repetition in enumerate(bundle.repetitions, 1)
        for fault in (repetition.verify.faults if repetition.verify else ())
    ]
    if not found:
        return None
    rows = tuple(
        (
            str(number),
            fault.kind,
            *(
                count(value) if value is not None else NONE
                for value in (fault.offset_bytes, fault.link, fault.sequence)
            ),
            fault.detail or NONE,
        )
        for number, fault in found[:MOST_FAULTS]
    )
    left = (
        f" The first {MOST_FAULTS} of {len(found)}; the others are in results/snb_record.json."
        if len(found) > MOST_FAULTS
        else ""
    )
    return Table(
        ("Rep.", "Fault", "Offset (B)", "Link", "Sequence", "Detail"),
        "ntnnnt",
        rows,
        f"Faults found on reading back.{left}",
        "faults",
    )


def parameter_table(bundle: Bundle) -> Table | None:
    minidaq = next((repetition.minidaq for repetition in bundle.repetitions if repetition.minidaq), None)
    if minidaq is None or not minidaq.parameters:
        return None
    extra = [
        (
            "source achieved",
            percent(100 * minidaq.source_achieved, 4) if minidaq.source_achieved is not None else None,
        ),
        (
            "superchunks offered late",
            count(minidaq.source_late_superchunks) if minidaq.source_late_superchunks is not None else None,
        ),
        (
            "worst lateness of the source",
            latency(minidaq.source_worst_lateness_us) if minidaq.source_worst_lateness_us is not None else None,
        ),
        (
            "CPU time per GB",
            f"{significant(minidaq.cpu_s_per_gb, 3)}{THIN}s" if minidaq.cpu_s_per_gb is not None else None,
        ),
        (
            "share of it copying and checksumming",
            percent(100 * minidaq.copy_share) if minidaq.copy_share is not None else None,
        ),
    ]
    rows = [(plain_words(key), value) for key, value in (*minidaq.parameters, *extra) if value]
    method = f" Transient buffer: {minidaq.buffer_method.rstrip('.')}." if minidaq.buffer_method else ""
    caption = f"Parameters and side results of the first repetition.{method}"
    return pairs_table(("Record", "Value"), rows, caption, "parameters")
