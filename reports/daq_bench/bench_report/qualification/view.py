"""The report's finished text: the template only places it.

Promise: every number here went through `units`; words say that a value was not recorded; a run at reduced scale, or whose evidence was
altered, never reads as a plain PASS, and one whose stored verdict does not follow from its evidence is no PASS at all.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from daq_bench.bench_model.verdict.advice import command, limited
from daq_bench.bench_model.verdict.conclusion import REHEARSAL, REHEARSAL_FAILED, conclude
from daq_bench.bench_model.verdict.judging import Again
from daq_bench.bench_report.base.marks import see_table
from daq_bench.bench_report.base.units import (
    THIN,
    TIMES,
    binary_rate,
    count,
    decimal_rate,
    decimal_size,
    duration,
    factor_text,
    grouped_in,
    in_gb_per_s,
    in_gib_per_s,
    latency,
    share_or_count,
    significant,
)
from daq_bench.bench_report.document.outcome import (
    ALTERED_MEANING,
    CONTRADICTORY,
    GLYPHS,
    MEANINGS,
    NO_VERDICT,
    NOT_RECORDED,
    REHEARSED,
    TARGET_FAILED,
    UNDECIDED_MEANING,
    Outcome,
    css_name,
)
from daq_bench.bench_report.document.section import Pair
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

MOST_SOURCES = 3
SIMULATED = "SIMULATED: no server was measured"
OWN_SUITE = "OWN SUITE: not a qualification"
ALTERED = "altered since it was sealed: not a result"


@dataclass(frozen=True)
class DemandCell:
    label: str
    value: str
    binary: str
    note: str


def outcome_of(bundle: Bundle) -> Outcome:
    verdict, run = bundle.verdict, bundle.run
    if bundle.again and bundle.again.contradicts:
        return _contradictory(bundle.again)
    altered, found = bundle.provenance.altered, conclude(verdict) if verdict else None
    word = found.word if found and verdict else NO_VERDICT
    if verdict and altered:
        word = verdict.outcome  # the milder word is for evidence that stands
    reduced = word == "PASS" and bool(run.scaled_down or (run.scenario.scale < 1))
    suffix = ALTERED if altered else "at reduced scale: not a qualification" if reduced else ""
    if run.simulated:
        suffix = f"{SIMULATED}; {suffix}" if suffix else SIMULATED
    if run.own_suite:
        suffix = f"{OWN_SUITE}; {suffix}" if suffix else OWN_SUITE
    css = css_name("ERROR" if altered else word)
    if found is None:
        return Outcome(word, GLYPHS[word], css, suffix, MEANINGS[word], _no_verdict(bundle))
    if altered:
        return Outcome(word, GLYPHS[word], css, suffix, ALTERED_MEANING, ())
    return Outcome(word, GLYPHS[word], css, suffix, grouped_in(found.sentence), (_meaning(bundle, word),))


def _meaning(bundle: Bundle, word: str) -> str:
    """Returns what the word means for whoever buys, in a sentence."""
    if bundle.target_failures:
        return TARGET_FAILED
    if word == REHEARSAL_FAILED:
        return (
            f"It was a rehearsal{f', {load}' if (load := load_words(bundle)) else ''}: it decides nothing about buying."
        )
    if word == REHEARSAL:
        return f"{', '.join(part for part in (REHEARSED, load_words(bundle)) if part)}."
    if word == "PASS" and limited(bundle.run, bundle.verdict):
        return f"It ran {load_words(bundle) or 'at less than the whole load'}: no conclusion about buying."
    return UNDECIDED_MEANING if word == "INADMISSIBLE" and _only_undecided(bundle) else MEANINGS[word]


def load_words(bundle: Bundle) -> str:
    """`at 1/10 load`, `at 0.35 of the load`; empty at full load."""
    scale = bundle.run.scenario.scale
    if scale is None or scale >= 1 or scale <= 0:
        return ""
    parts = 1 / scale
    return (
        f"at 1/{round(parts)} load"
        if math.isclose(parts, round(parts), rel_tol=1e-6)
        else f"at {significant(scale, 3, trim=True)} of the load"
    )


def _contradictory(again: Again) -> Outcome:
    count = len(again.differences)
    told = (f"{count} difference{'s' if count != 1 else ''}: {see_table('contradictions')}.",) if count else ()
    reasons = (f"{again.words[:1].upper()}{again.words[1:].rstrip('.')}.", *told)
    return Outcome(
        CONTRADICTORY, GLYPHS[CONTRADICTORY], css_name("ERROR"), "not a result", MEANINGS[CONTRADICTORY], reasons
    )


def contradictions_table(bundle: Bundle) -> Table | None:
    """Returns a row for each field of the stored verdict that does not follow from the evidence."""
    rows = tuple((one.field, one.stored, one.recomputed) for one in (bundle.again.differences if bundle.again else ()))
    if not rows:
        return None
    caption = (
        "Contradictions. Where the stored verdict.json differs from what this bench judges from the bundle's evidence."
    )
    return Table(("Field", "Stored", "Recomputed"), "ttt", rows, caption, "contradictions")


def _only_undecided(bundle: Bundle) -> bool:
    """Says whether the only fault of the evidence is that there is too little of it."""
    verdict = bundle.verdict
    if verdict is None or verdict.findings:
        return False
    open_ = [row.decision for row in verdict.requirements if row.severity == "mandatory" and row.decision != "met"]
    return bool(open_) and all(decision == "undecided" for decision in open_)


def _no_verdict(bundle: Bundle) -> tuple[str, ...]:
    why = (bundle.run.state_reason,) if bundle.run.state_reason else ()
    return (*why, f"The run's state is \u201c{bundle.run.state}\u201d and its bundle holds no verdict.json.")


def candidate_pairs(bundle: Bundle) -> list[Pair]:
    run, who = bundle.run, bundle.run.candidate
    cpus = f"{count(who.cpus)} CPU{'s' if who.cpus != 1 else ''}" if who.cpus else None
    nodes = f"{who.numa_nodes} NUMA node{'s' if who.numa_nodes != 1 else ''}" if who.numa_nodes else None
    return [
        _pair("Name", who.name),
        *([_pair("Description", who.description)] if who.description else []),
        _pair("Host", who.hostname),
        _pair("Processor", " \u00b7 ".join(part for part in (who.cpu_model, cpus, nodes) if part) or None),
        _pair("Memory", decimal_size(who.memory_bytes) if who.memory_bytes else None),
        *(
            [_pair("Buffer", f"{decimal_size(who.transient_buffer_bytes)} of it for the backlog")]
            if who.transient_buffer_bytes
            else []
        ),
        _pair("System", " \u00b7 ".join(part for part in (who.os, who.kernel) if part) or None),
        _pair("Target", _target_text(bundle)),
        _pair("Scenario", run.scenario.title or run.scenario.id),
        _pair("Requirements", run.requirement.title or run.requirement.id),
    ]


def _target_text(bundle: Bundle) -> str:
    target = bundle.run.target
    on = f" on {target.filesystem}" if target.filesystem else ""
    return f"{target.kind.replace('-', ' ')}{on}" + (f": {target.path}" if target.path else "")


def target_pair(bundle: Bundle) -> Pair:
    return _pair("Target", _target_text(bundle))


def profile_sources(bundle: Bundle) -> str:
    """`Bounds from: section 5; [P] whole record.`: where the profile's requirements say that they come from."""
    rows = bundle.verdict.requirements if bundle.verdict else ()
    found = list(dict.fromkeys(row.source for row in rows if row.source))
    if not found:
        return ""
    rest = f" and {len(found) - MOST_SOURCES} more" if len(found) > MOST_SOURCES else ""
    return f"Bounds from: {', '.join(found[:MOST_SOURCES])}{rest}."


def contents_pairs(bundle: Bundle) -> list[Pair]:
    """Returns the bundle's files and their contents, for a reader who wants to check."""
    run = bundle.run
    seed = [Pair("Random seed", str(run.scenario.seed))]
    return [
        Pair("Raw output", "of the tools, in results/raw/"),
        Pair("Telemetry", "every point in telemetry/points.lp, the writer's records in telemetry/workload.lp"),
        Pair("Facts", "tuning and drive health in facts/"),
        Pair("Checksums", "of every file in MANIFEST.sha256"),
        Pair("Scenario", "the one used, in run.json"),
        *seed,
    ]


def _pair(label: str, value: str | None) -> Pair:
    return Pair(label, value or NOT_RECORDED, value is not None)


def demand_cells(bundle: Bundle) -> list[DemandCell]:
    demand = bundle.run.demand
    if demand is None:
        return []
    known = demand.links and demand.superchunk_rate_hz and demand.superchunk_bytes
    arithmetic = (
        f"{demand.links} links {TIMES} {factor_text((demand.superchunk_rate_hz or 0) / 1000)}{THIN}kHz {TIMES} "
        f"{count(demand.superchunk_bytes or 0)}{THIN}B" if known else "links \u00d7 rate \u00d7 size"
    )  # fmt: skip
    cells = [
        _cell("Nominal", demand.nominal_bytes_per_s, "what the unit is called"),
        _cell("Real demand", demand.real_bytes_per_s, arithmetic),
    ]
    if demand.offered_bytes_per_s is not None:
        scale = demand.offered_bytes_per_s / demand.real_bytes_per_s
        asked = f"for {duration(demand.duration_s)}" if demand.duration_s else ""
        cells.append(
            _cell(
                "Asked of this run",
                demand.offered_bytes_per_s,
                f"{_share(round(scale, 6))} of the real demand {asked}",
            )
        )
    stored = [rate for item in bundle.repetitions if (rate := item.minidaq.stored_bytes_per_s)]
    if stored:
        many = (
            f"lowest mean of {len(stored)} repetitions, drain included" if len(stored) > 1 else "mean, drain included"
        )
        cells.append(_cell("Stored in this run", min(stored), many))
    return [*cells, *_source_cell(bundle)]


def _source_cell(bundle: Bundle) -> Iterator[DemandCell]:
    """Yields the source's punctuality in its worst repetition."""
    found = [
        (one.minidaq.source.late_superchunks / offered, one.minidaq)
        for one in bundle.repetitions
        if (offered := one.minidaq.superchunks.offered)
    ]
    if not found:
        return
    share, worst = max(found, key=lambda pair: (pair[0], pair[1].source.worst_lateness_us))
    offered, limit = worst.superchunks.offered, worst.source.late_threshold_us
    late = f"late: more than {latency(limit)} after its time"
    behind = latency(worst.source.worst_lateness_us)
    most = f"by up to {behind}" if share else f"at most {behind} after its time"
    number, of, offered_text = share_or_count(worst.source.late_superchunks, offered).partition(" of ")
    value = f"{number} late" if share else "never late"
    most = f"of {offered_text}, {most}" if of else most  # the cell is narrow
    many = "; worst repetition" if len(found) > 1 else ""
    yield DemandCell("Source", value, most, late + many)


def _share(scale: float) -> str:
    return "all" if scale == 1 else factor_text(scale)


def _cell(label: str, bytes_per_s: float, note: str) -> DemandCell:
    binary = in_gib_per_s(bytes_per_s) if bytes_per_s >= 2**24 else binary_rate(bytes_per_s)
    decimal = in_gb_per_s(bytes_per_s) if bytes_per_s >= 1e7 else decimal_rate(bytes_per_s)
    return DemandCell(label, decimal, f"= {binary}", note.strip())


def commands(bundle: Bundle) -> list[str]:
    """Returns the commands that repeat the run."""
    run = bundle.run
    checkout = [f"git checkout {run.git.commit}", "make setup"] if run.git and run.git.commit else []
    return [*checkout, command(run)]


def by_hand(bundle: Bundle) -> tuple[list[str], int]:
    """Returns a command for each kind of measurement with fio, by the scripts that the run left (results/raw/NAME.sh), and their number.
    Measurements that differ in numbers alone are of one kind."""
    scripts = sorted(
        (name for name in bundle.files if name.startswith("results/raw/") and name.endswith(".sh")),
        key=lambda name: [(len(part), part) for part in re.split(r"\D+", name)],
    )
    kinds: dict[str, str] = {}
    for name in scripts:
        kinds.setdefault(re.sub(r"\d+", "", name), name)
    return [f"sh {shlex.quote(f'runs/{bundle.run.run_id}/{name}')}" for name in sorted(kinds.values())], len(scripts)
