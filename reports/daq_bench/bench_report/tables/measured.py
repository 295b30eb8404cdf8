"""The tables of what was measured: block sizes, latencies, and the record's integrity.

Promise: a number that the writer or the verifier did not give is a dash, never a zero.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from daq_bench.bench_model.documents.results import WritePoint
from daq_bench.bench_model.documents.tools.daqwriter import Fault
from daq_bench.bench_model.documents.tools.minidaq import Parameters
from daq_bench.bench_model.workloads.block_scan import BlockScan, LargeRepetition
from daq_bench.bench_model.workloads.snb_record import Repetition
from daq_bench.bench_report.base.units import (
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
from daq_bench.bench_report.document.table import (
    IN_FIGURE,
    Column,
    Columns,
    Table,
    masked,
    pairs_table,
    plain_words,
    table,
)
from daq_bench.bench_report.reading.dataset.bundle import Bundle

MOST_FAULTS = 25
PERCENTILES = ("p50", "p90", "p99", "p99.9", "p99.99", "max")


def _lowest_to_highest(rates: Sequence[float], digits: int = 4) -> str | None:
    return " \u2013 ".join(in_gib_per_s(one, digits, trim=False) for one in (min(rates), max(rates))) if rates else None


def _mean_rate(bytes_per_s: float) -> str:
    return in_gib_per_s(bytes_per_s, trim=False)


TOOL: Column[tuple[BlockScan, WritePoint]] = Column("Tool", lambda row: row[0].tool, kind="n")
BLOCKS: Columns[tuple[BlockScan, WritePoint]] = (
    Column("Block size", lambda row: row[1].block_bytes, binary_size),
    Column("Mean", lambda row: row[1].throughput_bytes_per_s, _mean_rate),
    Column(
        "Lowest \u2013 highest sample",
        lambda row: _lowest_to_highest(row[1].throughput_bytes_per_s_samples, 3),
        kind="n",
    ),
    Column("n", lambda row: len(row[1].throughput_bytes_per_s_samples) or None, count),
    Column("p99 latency", lambda row: row[1].latency_us.p99, latency),
    Column("CPU", lambda row: row[1].cpu_user_percent + row[1].cpu_system_percent, percent),
    Column("In the figure", lambda row: IN_FIGURE.cell(row[1])),
)


def block_table(bundle: Bundle) -> Table | None:
    scan = bundle.block_scan
    if scan is None or not scan.points:
        return None
    rows = [(one, point) for one in scan.scans for point in one.points]
    columns = (TOOL, *BLOCKS) if len(scan.scans) > 1 else BLOCKS
    caption = (
        "Throughput by block size. In binary units (1 GiB/s = 2\u00b3\u2070 B/s). CPU: user and system time of the load "
        "generator, one whole CPU being 100 %."
    )
    return table(rows, columns, "blocks", caption, lambda row: masked(row[1]))


def large_blocks_table(bundle: Bundle) -> Table | None:
    """The repetitions that requirements on large blocks are judged by, one row for each tool and size."""
    scan = bundle.block_scan
    if scan is None:
        return None
    groups: dict[tuple[str, int], list[Again]] = {}
    for one in scan.scans:
        for again in one.measured_again:
            groups.setdefault((one.tool, again.block_bytes), []).append((one.tool, again))
    if not groups:
        return None
    caption = (
        "Large blocks, measured again: what requirements on them are judged by. n: repetitions that count. Each is a fresh start "
        "of the tool; the sizes take turns."
    )
    return table(groups.values(), LARGE_BLOCKS, "large-blocks", caption, lambda found: len(_rates(found)) < len(found))


def _rates(found: list[Again]) -> list[float]:
    return [one.throughput_bytes_per_s for _, one in found if one.throughput_bytes_per_s is not None]


def _not_counted(found: list[Again]) -> str | None:
    left_out = (one for _, one in found if one.throughput_bytes_per_s is None)
    return "\n".join(f"{one.repetition}: {one.reason or 'no reason recorded'}" for one in left_out) or None


Again = tuple[str, LargeRepetition]  # the tool, and what it measured
LARGE_BLOCKS: Columns[list[Again]] = (
    Column("Tool", lambda found: found[0][0]),
    Column("Block size", lambda found: found[0][1].block_bytes, binary_size),
    Column("n", lambda found: f"{len(_rates(found))} of {len(found)}", kind="n"),
    Column("Mean", lambda found: statistics.fmean(_rates(found)) if _rates(found) else None, _mean_rate),
    Column("Lowest \u2013 highest repetition", lambda found: _lowest_to_highest(_rates(found)), kind="n"),
    Column("Time each", lambda found: min(one.runtime_s for _, one in found), duration),
    Column("Samples each", lambda found: min(len(one.throughput_bytes_per_s_samples) for _, one in found), count),
    Column("Not counted", _not_counted),
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


Repeated = tuple[str, Repetition]  # its name, and what it measured
WRITTEN: Columns[Repeated] = (
    Column("Rep.", lambda one: one[0], kind="n"),
    Column(
        "Status",
        lambda one: one[1].minidaq.status + (f": {one[1].minidaq.error}" if one[1].minidaq.error else ""),
        kind="s",
    ),
    Column("Intended", lambda one: one[1].minidaq.superchunks.intended, count),
    Column("Offered", lambda one: one[1].minidaq.superchunks.offered, count),
    Column("Stored", lambda one: one[1].minidaq.superchunks.stored, count),
    Column("Lost", lambda one: one[1].minidaq.superchunks.lost, count),
    Column("Abandoned", lambda one: one[1].minidaq.superchunks.abandoned, count),
    Column("BUSY", lambda one: one[1].minidaq.busy.count, count),
    Column("Buffer", lambda one: one[1].minidaq.transient_buffer.needed_bytes, decimal_size),
    Column("Drain", lambda one: one[1].minidaq.time.drain_s, duration),
)
VERIFIED: Columns[Repeated] = (
    Column("Rep.", lambda one: one[0], kind="n"),
    Column(
        "Status",
        lambda one: one[1].verify.status + ("" if one[1].verify.complete_trailer else ": trailer missing"),
        kind="s",
    ),
    Column("Expected", lambda one: one[1].verify.superchunks.expected, count),
    Column("Present", lambda one: one[1].verify.superchunks.present, count),
    Column("Missing", lambda one: one[1].verify.superchunks.missing, count),
    Column("Twice", lambda one: one[1].verify.superchunks.duplicated, count),
    Column("Order", lambda one: one[1].verify.superchunks.out_of_order, count),
    Column("Corrupt", lambda one: one[1].verify.superchunks.corrupt, count),
    Column("Torn", lambda one: one[1].verify.superchunks.torn, count),
    Column("Stale", lambda one: one[1].verify.superchunks.stale, count),
    Column("Read at", lambda one: one[1].verify.read_bytes_per_s, decimal_rate),
)


def _repetitions(bundle: Bundle) -> list[Repeated]:
    return [(one.named(number), one) for number, one in enumerate(bundle.repetitions, 1)]


def written_table(bundle: Bundle) -> Table | None:
    caption = (
        "Superchunks of the record, written. Abandoned: taken from the source, but the record ended before they were stored. "
        "Buffer: the transient buffer that the record needed."
    )
    return table(_repetitions(bundle), WRITTEN, "written", caption) if bundle.repetitions else None


def verified_table(bundle: Bundle) -> Table | None:
    caption = (
        "Superchunks of the record, read back. Each was read from the target and checked. "
        "Twice: present more than once; order: out of sequence; torn: cut short; stale: left by an earlier record."
    )
    return table(_repetitions(bundle), VERIFIED, "verified", caption) if bundle.repetitions else None


def fault_table(bundle: Bundle) -> Table | None:
    found = [
        (number, fault) for number, repetition in enumerate(bundle.repetitions, 1) for fault in repetition.verify.faults
    ]
    if not found:
        return None
    left = (
        f" The first {MOST_FAULTS} of {len(found)}; the others are in results/snb_record.json."
        if len(found) > MOST_FAULTS
        else ""
    )
    return table(found[:MOST_FAULTS], FAULTS, "faults", f"Faults found on reading back.{left}")


FAULTS: Columns[tuple[int, Fault]] = (
    Column("Rep.", lambda one: one[0], count),
    Column("Fault", lambda one: one[1].kind),
    Column("Offset (B)", lambda one: one[1].offset_bytes, count),
    Column("Link", lambda one: one[1].link, count),
    Column("Sequence", lambda one: one[1].sequence, count),
    Column("Detail", lambda one: one[1].detail or None),
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
