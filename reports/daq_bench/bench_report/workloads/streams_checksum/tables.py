"""The tables of the storage application's section."""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.workloads.streams_checksum.document import (
    Compared,
    StreamsChecksum,
    StreamsChecksumAnalysis,
    Variant,
)
from daq_bench.bench_report.base.units import (
    NONE,
    TIMES,
    count,
    decimal_rate,
    decimal_size,
    duration,
    in_gb_per_s,
    latency,
    percent,
    significant,
)
from daq_bench.bench_report.document.table import Table

ALONE = ("ceiling", "smt")  # comparisons that do not hold the checksum against the original
HANDING_OUT: dict[Variant, str] = {
    "thread-per-chunk": "(i) a thread per chunk",
    "pool-cv": "(ii) pool, condition variables both ways",
    "pool-busy": "(iii) pool, busy-waiting master",
}


def span(ends: Sequence[float] | None) -> str:
    return f"{significant(ends[0], 3)} to {significant(ends[1], 3)}" if ends else NONE


def overhead_table(analysis: StreamsChecksumAnalysis) -> Table:
    rows, odd = [], set()
    for point in analysis.overhead:
        ends, least = point.interval_us, point.least_us
        rows.append((
            HANDING_OUT.get(point.variant, point.variant), count(point.threads), count(point.n), _us(point.median_us),
            f"{_us(ends[0])} to {_us(ends[1])}" if ends else NONE,
            f"{_us(least)} to {_us(point.most_us)}" if least is not None else NONE, _us(point.event_us), point.reason or "",
        ))  # fmt: skip
        if not point.admissible:
            odd.add(len(rows) - 1)
    heads = ("Way", "Threads", "Turns", "Overhead", "95 % CI", "Least to most", "Whole event", "Why masked")
    caption = "Overhead of handing out chunks per event; the median's interval needs 6 turns."
    return Table(heads, "tnnnnnnt", tuple(rows), caption, "streams-overhead", frozenset(odd))


def _us(value: float | None) -> str:
    return NONE if value is None else latency(value)


def comparison_table(found: StreamsChecksum, analysis: StreamsChecksumAnalysis) -> Table:
    rows, odd = [], set()
    for one in analysis.comparisons:
        slower = one.label in analysis.slower
        rates = (one.reference_bytes_per_s, one.bytes_per_s)
        rows.append((
            one.label + (", one CPU per core" if one.setup.placement == "cores" else ""), f"{one.n}/{found.rounds}",
            *(NONE if rate is None else in_gb_per_s(rate, 3) for rate in rates),
            NONE if one.ratio is None else f"{TIMES}{significant(one.ratio, 3)}", span(one.interval), _decision(one, slower),
            NONE if one.parallel_share is None else percent(100 * one.parallel_share), next(iter(one.masked_reasons), ""),
        ))  # fmt: skip
        if one.masked_reasons or slower:
            odd.add(len(rows) - 1)
    heads = ("Setup", "Pairs", "Reference", "Setup's", "Ratio", "95 % CI", "Decision", "Parallel", "Why masked")
    caption = (
        "Each setup against its reference in the same rounds: the original with the same events, and for the siblings the physical "
        "cores alone. Medians of the rates; 1 GB/s = 10\u2079 B/s. Slower: the whole interval lies below 1, at a level that holds for all "
        "setups together. Parallel: the share of the work that the threads spread (Amdahl)."
    )
    return Table(heads, "tnnnnntnt", tuple(rows), caption, "streams-comparisons", frozenset(odd))


def _decision(one: Compared, slower: bool) -> str:
    """Returns the decision in words. "Slower than the original" holds at a level for all setups together; others stand for themselves."""
    if one.decision == "above":
        return "faster"
    return "slower" if slower or (one.decision == "below" and one.kind in ALONE) else "not told apart"


def demand_table(found: StreamsChecksum) -> Table:
    rows, odd = [], set()
    for run in found.demand:
        rows.append((
            run.name, decimal_rate(run.full_bytes_per_s), decimal_rate(run.asked_bytes_per_s), duration(run.seconds),
            decimal_size(run.written_bytes), NONE if run.kept is None else percent(100 * run.kept, 5), duration(run.held_s),
            decimal_size(run.backlog_high_bytes), latency(run.latency_us_p99), run.reason or run.error or "",
        ))  # fmt: skip
        if run.reason or run.error:
            odd.add(len(rows) - 1)
    heads = (
        "Run",
        "One server's share",
        "Asked here",
        "For",
        "Written",
        "Kept",
        "Held back",
        "Most backlog",
        "p99",
        "Why masked",
    )
    caption = (
        "The demand on one server, written to the target by the application as deployed. Kept: written over due. Held back: by full "
        "queues, summed over the streams. p99: of an event's arrival until the blocks that hold it are on the target, so that events "
        "of rare streams wait for their block to fill."
    )
    return Table(heads, "tnnnnnnnnt", tuple(rows), caption, "streams-demand", frozenset(odd))


def verification_table(found: StreamsChecksum) -> Table:
    rows, odd = [], set()
    for one in found.verification:
        faulty = [f"{each.name}: {each.fault}" for each in one.wrong]
        rows.append((
            one.name, one.variant, count(one.threads), count(one.files), decimal_size(one.bytes), count(one.wrong_files),
            f"{count(one.events.present)}/{count(one.events.expected)}", count(one.faults), one.status,
            "; ".join(faulty[:2]) or one.error or "",
        ))  # fmt: skip
        if one.wrong_files or one.faults or one.error:
            odd.add(len(rows) - 1)
    heads = (
        "Run",
        "Variant",
        "Threads",
        "Files",
        "Read back",
        "Wrong checksums",
        "Events intact",
        "Faults",
        "daqwriter verify",
        "What is wrong",
    )
    caption = (
        "Every file read back twice: by daqwriter verify, which knows every byte from the run's seed, and by Python's zlib over the "
        "whole file in one go, held against the adler32 that was recorded when it was written; one small file of each run also by "
        "the checksum's definition (RFC 1950)."
    )
    return Table(heads, "ttnnnnnnst", tuple(rows), caption, "streams-files", frozenset(odd))
