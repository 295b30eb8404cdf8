"""The tables of the storage application's section."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import (
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
from bench_report.document.table import Table

ALONE = ("ceiling", "smt")  # comparisons that do not hold the checksum against the original
HANDING_OUT = {
    "thread-per-chunk": "(i) a thread per chunk",
    "pool-cv": "(ii) pool, condition variables both ways",
    "pool-busy": "(iii) pool, busy-waiting master",
}


def span(ends: tuple[float, ...]) -> str:
    return f"{significant(ends[0], 3)} to {significant(ends[1], 3)}" if ends else NONE


def overhead_table(analysis: Node) -> Table:
    rows, odd = [], set()
    for point in analysis.list("overhead"):
        values = [point.number(key) for key in ("median_us", "least_us", "most_us", "event_us")]
        middle, least, most, event = values
        ends = point.numbers("interval_us")
        rows.append((
            HANDING_OUT[point.at("variant").as_text()], count(point.at("threads").as_integer()),
            count(point.at("n").as_integer()), _us(middle), f"{_us(ends[0])} to {_us(ends[1])}" if ends else NONE,
            f"{_us(least)} to {_us(most)}" if least is not None else NONE, _us(event), point.text("reason") or "",
        ))  # fmt: skip
        if not point.at("admissible").as_flag():
            odd.add(len(rows) - 1)
    heads = ("Way", "Threads", "Turns", "Overhead", "95 % CI", "Least to most", "Whole event", "Why masked")
    caption = "Overhead of handing out chunks per event; the median's interval needs 6 turns."
    return Table(heads, "tnnnnnnt", tuple(rows), caption, "streams-overhead", frozenset(odd))


def _us(value: float | None) -> str:
    return NONE if value is None else latency(value)


def comparison_table(found: Node, analysis: Node) -> Table:
    rows, odd = [], set()
    slower = set(analysis.texts("slower"))
    for one in analysis.list("comparisons"):
        label, ratio = one.at("label").as_text(), one.number("ratio")
        rates = [one.number(key) for key in ("reference_bytes_per_s", "bytes_per_s")]
        reasons = one.texts("masked_reasons")
        parallel = one.number("parallel_share")
        placement = one.at("setup").at("placement").as_text()
        shown = label + (", one CPU per core" if placement == "cores" else "")
        rows.append((
            shown, f"{one.at('n').as_integer()}/{found.at('rounds').as_integer()}",
            *(NONE if rate is None else in_gb_per_s(rate, 3) for rate in rates),
            NONE if ratio is None else f"{TIMES}{significant(ratio, 3)}", span(one.numbers("interval")),
            _decision(one, label in slower),
            NONE if parallel is None else percent(100 * parallel), reasons[0] if reasons else "",
        ))  # fmt: skip
        if reasons or label in slower:
            odd.add(len(rows) - 1)
    heads = ("Setup", "Pairs", "Reference", "Setup's", "Ratio", "95 % CI", "Decision", "Parallel", "Why masked")
    caption = (
        "Each setup against its reference in the same rounds: the original with the same events, and for the siblings the physical "
        "cores alone. Medians of the rates; 1 GB/s = 10\u2079 B/s. Slower: the whole interval lies below 1, at a level that holds for all "
        "setups together. Parallel: the share of the work that the threads spread (Amdahl)."
    )
    return Table(heads, "tnnnnntnt", tuple(rows), caption, "streams-comparisons", frozenset(odd))


def _decision(one: Node, slower: bool) -> str:
    """Returns the decision in words. "Slower than the original" holds at a level for all setups together; others stand for themselves."""
    found = one.text("decision")
    if found == "above":
        return "faster"
    return "slower" if slower or (found == "below" and one.at("kind").as_text() in ALONE) else "not told apart"


def demand_table(found: Node) -> Table:
    rows, odd = [], set()
    for run in found.list("demand"):
        kept, reason = run.number("kept"), run.text("reason")
        rows.append((
            run.at("name").as_text(), decimal_rate(run.at("full_bytes_per_s").as_number()),
            decimal_rate(run.at("asked_bytes_per_s").as_number()), duration(run.at("seconds").as_number()),
            decimal_size(run.at("written_bytes").as_number()), NONE if kept is None else percent(100 * kept, 5),
            duration(run.at("held_s").as_number()), decimal_size(run.at("backlog_high_bytes").as_number()),
            latency(run.at("latency_us_p99").as_number()), reason or run.text("error") or "",
        ))  # fmt: skip
        if reason or run.text("error"):
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


def verification_table(found: Node) -> Table:
    rows, odd = [], set()
    for one in found.list("verification"):
        wrong, faults = one.at("wrong_files").as_integer(), one.at("faults").as_integer()
        events = one.at("events")
        faulty = [f"{each.at('name').as_text()}: {each.at('fault').as_text()}" for each in one.list("wrong")]
        rows.append((
            one.at("name").as_text(), one.at("variant").as_text(), count(one.at("threads").as_integer()),
            count(one.at("files").as_integer()), decimal_size(one.at("bytes").as_number()), count(wrong),
            f"{count(events.at('present').as_integer())}/{count(events.at('expected').as_integer())}", count(faults),
            one.at("status").as_text(), "; ".join(faulty[:2]) or one.text("error") or "",
        ))  # fmt: skip
        if wrong or faults or one.text("error"):
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
