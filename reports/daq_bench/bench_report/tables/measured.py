"""The tables of what was measured: block sizes, latencies, and the record's integrity.

Promise: a number that the writer or the verifier did not give is a dash, never a zero.
"""

from __future__ import annotations

import statistics

from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.tools.daqwriter import Verify
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, Parameters
from daq_bench.bench_model.workloads.block_scan import LargeRepetition
from daq_bench.bench_report.base.units import (
    NONE,
    THIN,
    binary_size,
    count,
    decimal_rate,
    decimal_size,
    duration,
    in_gib_per_s,
    latency,
    percent,
    significant,
)
from daq_bench.bench_report.document.table import Table, pairs_table, plain_words
from daq_bench.bench_report.reading.dataset.bundle import Bundle

MOST_FAULTS = 25
PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99", "max")


def block_table(bundle: Bundle) -> Table | None:
    scan = bundle.block_scan
    if scan is None or not scan.points:
        return None
    scans = scan.scans
    rows = [(one, point, _block_row(point)) for one in scans for point in one.points]
    several = len(scans) > 1
    return Table(
        heads=(
            *(("Tool",) if several else ()),
            "Block size", "Mean", "Lowest \u2013 highest sample", "n", "p99 latency", "CPU", "In the figure",
        ),
        kinds=("n" if several else "") + "nnnnnnt", name="blocks",
        rows=tuple((one.tool, *row) if several else row for one, _, row in rows),
        caption="Throughput by block size. In binary units (1 GiB/s = 2\u00b3\u2070 B/s). CPU: user and system time of the load "
        "generator, one whole CPU being 100 %.",
        marked=frozenset(index for index, (_, point, _) in enumerate(rows) if not point.admissible),
    )  # fmt: skip


def _block_row(point: WritePoint) -> tuple[str, ...]:
    samples = point.throughput_bytes_per_s_samples
    return (
        binary_size(point.block_bytes),
        in_gib_per_s(point.throughput_bytes_per_s, trim=False),
        f"{in_gib_per_s(min(samples), 3, trim=False)} \u2013 {in_gib_per_s(max(samples), 3, trim=False)}"
        if samples
        else NONE,
        count(len(samples)) if samples else NONE,
        latency(point.latency_us.p99),
        percent(point.cpu_user_percent + point.cpu_system_percent),
        "drawn" if point.admissible else f"not drawn: {point.reason or 'no reason recorded'}",
    )


def large_blocks_table(bundle: Bundle) -> Table | None:
    """The repetitions that requirements on large blocks are judged by, one row for each tool and size."""
    scan = bundle.block_scan
    if scan is None:
        return None
    groups: dict[tuple[str, int], list[LargeRepetition]] = {}
    for one in scan.scans:
        for again in one.measured_again:
            groups.setdefault((one.tool, again.block_bytes), []).append(again)
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
    times = [one.runtime_s for one in found]
    left_out = [
        f"{one.repetition}: {one.reason or 'no reason recorded'}" for one in found if one.throughput_bytes_per_s is None
    ]
    return (
        f"{len(rates)} of {len(found)}",
        in_gib_per_s(statistics.fmean(rates), trim=False) if rates else NONE,
        f"{in_gib_per_s(min(rates), trim=False)} \u2013 {in_gib_per_s(max(rates), trim=False)}" if rates else NONE,
        duration(min(times)),
        count(min(len(one.throughput_bytes_per_s_samples) for one in found)),
        "\n".join(left_out) or NONE,
    )


def latency_table(bundle: Bundle) -> Table | None:
    rows = [
        (one.named(number), label, count(found.count), *map(latency, found.points_us.values()))
        for number, one in enumerate(bundle.repetitions, 1)
        for label, found in (("arrival to durable", one.minidaq.latency_us), ("write", one.minidaq.write_latency_us))
    ]
    if not rows:
        return None
    return Table(
        heads=("Rep.", "Latency", "n", *PERCENTILES), kinds="ntn" + "n" * len(PERCENTILES),
        rows=tuple(rows), caption=_definitions(bundle), name="latency",
    )  # fmt: skip


def _definitions(bundle: Bundle) -> str:
    minidaq = bundle.repetitions[0].minidaq
    pairs = (("Arrival to durable", minidaq.latency_us), ("Write", minidaq.write_latency_us))
    return "Latency by percentile. " + " ".join(f"{label}: {found.definition.rstrip('.')}." for label, found in pairs)


def written_table(bundle: Bundle) -> Table | None:
    rows = [
        _written_row(repetition.named(number), repetition.minidaq)
        for number, repetition in enumerate(bundle.repetitions, 1)
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
    chunks, needed = minidaq.superchunks, minidaq.transient_buffer.needed_bytes
    cells = map(count, (chunks.intended, chunks.offered, chunks.stored, chunks.lost, chunks.abandoned))
    return (
        name, minidaq.status + (f": {minidaq.error}" if minidaq.error else ""), *cells,
        count(minidaq.busy.count),
        decimal_size(needed) if needed is not None else NONE,
        duration(minidaq.time.drain_s),
    )  # fmt: skip


def verified_table(bundle: Bundle) -> Table | None:
    rows = [
        _verified_row(repetition.named(number), repetition.verify)
        for number, repetition in enumerate(bundle.repetitions, 1)
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
    found = verify.superchunks
    counts = (found.expected, found.present, found.missing, found.duplicated, found.out_of_order)
    trailer = "" if verify.complete_trailer else ": trailer missing"
    return (
        name,
        verify.status + trailer,
        *map(count, (*counts, found.corrupt, found.torn, found.stale)),
        decimal_rate(verify.read_bytes_per_s),
    )


def fault_table(bundle: Bundle) -> Table | None:
    found = [
        (number, fault) for number, repetition in enumerate(bundle.repetitions, 1) for fault in repetition.verify.faults
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
    if not bundle.repetitions:
        return None
    minidaq = bundle.repetitions[0].minidaq
    extra = [
        ("source achieved", percent(100 * minidaq.source.achieved_fraction, 4)),
        ("offered late", count(minidaq.source.late_superchunks)),
        ("latest by", latency(minidaq.source.worst_lateness_us)),
        ("CPU time per GB", f"{significant(minidaq.cpu.seconds_per_gb, 3)}{THIN}s"),
        ("copy and checksum", percent(100 * minidaq.cpu.copy_share)),
    ]
    rows = [(plain_words(key), value) for key, value in (*_parameters(minidaq.parameters), *extra)]
    caption = f"Parameters of the first repetition. Transient buffer: {minidaq.transient_buffer.method.rstrip('.')}."
    return pairs_table(("Record", "Value"), rows, caption, "parameters")


def _parameters(asked: Parameters) -> list[tuple[str, str]]:
    placed = asked.placement
    cpus = {
        "writer cpu": placed.writer_cpu,
        "source cpu": placed.source_cpu,
        "numa node": placed.numa_node,
        "note": placed.note,
    }
    return [
        ("links", str(asked.links)),
        ("scale", str(asked.scale)),
        ("block_bytes", binary_size(asked.block_bytes)),
        ("alignment_bytes", binary_size(asked.alignment_bytes)),
        ("io_depth", str(asked.io_depth)),
        ("ring_bytes_per_link", binary_size(asked.ring_bytes_per_link)),
        ("checksum", asked.checksum),
        ("preallocate", "yes" if asked.preallocate else "no"),
        ("memory_locked", "yes" if asked.memory_locked else "no"),
        ("seed", str(asked.seed)),
        ("record_id", asked.record_id),
        ("placement", ", ".join(f"{name} {value}" for name, value in cpus.items() if value is not None)),
    ]
