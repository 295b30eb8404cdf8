"""The tables of the storage application's section."""

from __future__ import annotations

from daq_bench.bench_model.workloads.streams_checksum.document import (
    Compared,
    Demand,
    OverheadPoint,
    StreamsChecksum,
    StreamsChecksumAnalysis,
    Variant,
    Verification,
)
from daq_bench.bench_report.base.units import (
    TIMES,
    count,
    decimal_rate,
    decimal_size,
    duration,
    in_gb_per_s,
    latency,
    percent,
    share,
    span,
    three,
)
from daq_bench.bench_report.document.table import Column, Columns, Table, masked, table

ALONE = ("ceiling", "smt")  # comparisons that do not hold the checksum against the original
HANDING_OUT: dict[Variant, str] = {
    "thread-per-chunk": "(i) a thread per chunk",
    "pool-cv": "(ii) pool, condition variables both ways",
    "pool-busy": "(iii) pool, busy-waiting master",
}


def _of_rate(bytes_per_s: float) -> str:
    return in_gb_per_s(bytes_per_s, 3)


def _of_latency(ends: tuple[float, float]) -> str:
    return span(ends, latency)


OVERHEAD: Columns[OverheadPoint] = (
    Column("Way", lambda one: HANDING_OUT.get(one.variant, one.variant)),
    Column("Threads", lambda one: one.threads, count),
    Column("Turns", lambda one: one.n, count),
    Column("Overhead", lambda one: one.median_us, latency),
    Column("95 % CI", lambda one: one.interval_us, _of_latency),
    Column("Least to most", lambda one: None if one.least_us is None else (one.least_us, one.most_us), _of_latency),
    Column("Whole event", lambda one: one.event_us, latency),
    Column("Why masked", lambda one: one.reason or ""),
)


def overhead_table(analysis: StreamsChecksumAnalysis) -> Table:
    caption = "Overhead of handing out chunks per event; the median's interval needs 6 turns."
    return table(analysis.overhead, OVERHEAD, "streams-overhead", caption, masked)


def comparison_table(found: StreamsChecksum, analysis: StreamsChecksumAnalysis) -> Table:
    columns: Columns[Compared] = (
        Column("Setup", lambda one: one.label + (", one CPU per core" if one.setup.placement == "cores" else "")),
        Column("Pairs", lambda one: f"{one.n}/{found.rounds}", kind="n"),
        Column("Reference", lambda one: one.reference_bytes_per_s, _of_rate),
        Column("Setup's", lambda one: one.bytes_per_s, _of_rate),
        Column("Ratio", lambda one: one.ratio, lambda ratio: TIMES + three(ratio)),
        Column("95 % CI", lambda one: one.interval, span),
        Column("Decision", lambda one: _decision(one, one.label in analysis.slower)),
        Column("Parallel", lambda one: one.parallel_share, share),
        Column("Why masked", lambda one: next(iter(one.masked_reasons), "")),
    )
    caption = (
        "Each setup against its reference in the same rounds: the original with the same events, and for the siblings the physical "
        "cores alone. Medians of the rates; 1 GB/s = 10\u2079 B/s. Slower: the whole interval lies below 1, at a level that holds for all "
        "setups together. Parallel: the share of the work that the threads spread (Amdahl)."
    )
    return table(
        analysis.comparisons, columns, "streams-comparisons", caption,
        lambda one: one.masked_reasons or one.label in analysis.slower,
    )  # fmt: skip


def _decision(one: Compared, slower: bool) -> str:
    """Returns the decision in words. "Slower than the original" holds at a level for all setups together; others stand for themselves."""
    if one.decision == "above":
        return "faster"
    return "slower" if slower or (one.decision == "below" and one.kind in ALONE) else "not told apart"


DEMAND: Columns[Demand] = (
    Column("Run", lambda one: one.name),
    Column("One server's share", lambda one: one.full_bytes_per_s, decimal_rate),
    Column("Asked here", lambda one: one.asked_bytes_per_s, decimal_rate),
    Column("For", lambda one: one.seconds, duration),
    Column("Written", lambda one: one.written_bytes, decimal_size),
    Column("Kept", lambda one: one.kept, lambda kept: percent(100 * kept, 5)),
    Column("Held back", lambda one: one.held_s, duration),
    Column("Most backlog", lambda one: one.backlog_high_bytes, decimal_size),
    Column("p99", lambda one: one.latency_us_p99, latency),
    Column("Why masked", lambda one: one.reason or one.error or ""),
)


def demand_table(found: StreamsChecksum) -> Table:
    caption = (
        "The demand on one server, written to the target by the application as deployed. Kept: written over due. Held back: by full "
        "queues, summed over the streams. p99: of an event's arrival until the blocks that hold it are on the target, so that events "
        "of rare streams wait for their block to fill."
    )
    return table(found.demand, DEMAND, "streams-demand", caption, lambda one: one.reason or one.error)


VERIFICATION: Columns[Verification] = (
    Column("Run", lambda one: one.name),
    Column("Variant", lambda one: one.variant),
    Column("Threads", lambda one: one.threads, count),
    Column("Files", lambda one: one.files, count),
    Column("Read back", lambda one: one.bytes, decimal_size),
    Column("Wrong checksums", lambda one: one.wrong_files, count),
    Column("Events intact", lambda one: f"{count(one.events.present)}/{count(one.events.expected)}", kind="n"),
    Column("Faults", lambda one: one.faults, count),
    Column("daqwriter verify", lambda one: one.status, kind="s"),
    Column(
        "What is wrong",
        lambda one: "; ".join(f"{each.name}: {each.fault}" for each in one.wrong[:2]) or one.error or "",
    ),
)


def verification_table(found: StreamsChecksum) -> Table:
    caption = (
        "Every file read back twice: by daqwriter verify, which knows every byte from the run's seed, and by Python's zlib over the "
        "whole file in one go, held against the adler32 that was recorded when it was written; one small file of each run also by "
        "the checksum's definition (RFC 1950)."
    )
    return table(
        found.verification,
        VERIFICATION,
        "streams-files",
        caption,
        lambda one: one.wrong_files or one.faults or one.error,
    )
