"""The reader's next step: one line, with the parameter that would decide.

Promise: it follows from the verdict and the scenario alone. A length or a number is printed only where the verdict computed how far the
run was too short; where the scenario has no such parameter, the verdict's own words stand in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.evidence.admissibility import NOT_ITS_STORAGE
from daq_bench.bench_model.verdict.conclusion import state
from daq_bench.bench_report.base.units import factor_text
from daq_bench.bench_report.qualification import view
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.requirements import brief

LARGE_BLOCKS = "block_scan.large_block_throughput"  # judged by the scan's repetitions, not by its points
MOST_NAMED = 4
LEAST_FACTOR = 1.1  # as the verdict's own advice has it


@dataclass(frozen=True)
class NextStep:
    """A sentence, and the code to type or to write into the scenario; `code` is empty where there is none."""

    text: str
    code: tuple[str, ...] = ()


def next_step(bundle: Bundle) -> NextStep:
    verdict, run = bundle.verdict, bundle.run
    if bundle.provenance.altered or (bundle.again and bundle.again.contradicts):
        return NextStep(
            "Rest nothing on this bundle. Ask for the sealed original, and check it:",
            (f"daq-bench check-bundle runs/{run.run_id}",),
        )
    if run.simulated:
        return NextStep("Nothing follows for any server: a model made up this run.")
    if run.own_suite:
        return NextStep(
            "An own suite qualifies nobody. For a decision about buying, run a scenario of the inventory:",
            ("daq-bench list scenarios",),
        )
    if verdict is None:
        return NextStep("Repeat the run; it ended before it could be judged:", _again(bundle))
    if verdict.outcome == "ERROR":
        return NextStep("Mend the bench (finding 1), then repeat the run:", _again(bundle))
    if bundle.target_failures:
        return NextStep(
            "Do not accept the candidate as it is: its storage failed (finding 1). After a repair, qualify it again:",
            _again(bundle),
        )
    if any(one.invalidates for one in verdict.findings):
        return NextStep("Remove what makes the evidence invalid (finding 1), then repeat the run:", _again(bundle))
    rows = [one for one in verdict.requirements if one.severity == "mandatory"]
    missed, undecided, lacking = (
        [one for one in rows if state(one) == word] for word in ("missed", "undecided", "not measured")
    )
    if missed:
        what = _listed(missed)
        if view.limited(bundle):
            return NextStep(
                f"It fails as far as a rehearsal can: it misses {what}. Find out why, then repeat it:", _again(bundle)
            )
        if verdict.outcome == "FAIL":
            return NextStep(
                f"Do not accept the candidate as it is: it misses {what}. After a change, qualify it again:",
                _again(bundle),
            )
        return NextStep(f"Look into {what} first, which this run misses; then repeat it:", _again(bundle))
    if verdict.outcome == "FAIL" and view.limited(bundle):
        return NextStep("It fails as far as a rehearsal can (finding 1). Find out why, then repeat it:", _again(bundle))
    if verdict.outcome == "FAIL":
        return NextStep(
            "Do not accept the candidate as it is (finding 1). After a change, qualify it again:", _again(bundle)
        )
    if any(text.startswith(NOT_ITS_STORAGE) for text in run.scaled_down or ()):
        return NextStep(
            "The bench works here, on a file that can decide nothing about buying. Describe a server with drives set aside "
            "(docs/own-hardware.md):",
            ("daq-bench discover --host USER@SERVER",),
        )
    if undecided:
        return _decide(bundle, undecided)
    if lacking:
        return NextStep(
            f"Make {_listed(lacking)} measurable on this candidate (the findings say what is missing), then repeat the run:",
            _again(bundle),
        )
    if view.limited(bundle):
        return NextStep(
            "For a decision about buying, run the whole job at full load on the storage that it is for:", _full(bundle)
        )
    if verdict.outcome == "PASS":
        return NextStep("Nothing is open. Keep the sealed bundle: it is the evidence for this decision.")
    return NextStep("Remove what limits the evidence (the findings name it), then repeat the run:", _again(bundle))


def _listed(rows: list[Judgement]) -> str:
    names = [one.id for one in rows]
    if len(names) == 1:
        return f"{names[0]} ({brief(rows[0])})"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _decide(bundle: Bundle, rows: list[Judgement]) -> NextStep:
    found: dict[str, float] = {}
    for row in rows:
        for key, value in parameters(bundle, row):
            found[key] = max(value, found.get(key, 0.0))
    after = " It stays a rehearsal: it decides nothing about buying." if view.limited(bundle) else ""
    if found:
        code = tuple(f"{key}: {factor_text(value)}" for key, value in found.items())
        return NextStep(
            f"To decide {_listed(rows)}, set in the scenario {bundle.run.scenario.id}, and repeat the run.{after}", code
        )
    why = rows[0].reason.rpartition("; ")[2].rstrip(".")
    return NextStep(f"To decide {_listed(rows)}: {why}.{after}")


def parameters(bundle: Bundle, row: Judgement) -> Iterator[tuple[str, float]]:
    """Yields the scenario's parameters that decide a row, with the values that they would need."""
    if row.length_factor:
        key = _place(bundle, row, "seconds_per_", "duration_s")
        if key:
            yield key, math.ceil(bundle.run.scenario.lengths[key] * max(row.length_factor, LEAST_FACTOR))
    if row.more_repetitions:
        key = _place(bundle, row, "repetitions", "rounds")
        if key:
            yield key, bundle.run.scenario.lengths[key] + row.more_repetitions


def _place(bundle: Bundle, row: Judgement, *starts: str) -> str | None:
    """Returns the first place of such a number in the scenario: in the part of the row's workload, then for the whole run."""
    workload = f"workloads.{row.metric.partition('.')[0]}."
    part = workload + "confirm." if row.metric == LARGE_BLOCKS else workload
    known = bundle.run.scenario.lengths
    for place in (part, ""):
        for start in starts:
            found = [key for key in known if key.startswith(place + start) and "." not in key[len(place) :]]
            if found:
                return found[0]
    return None


def _again(bundle: Bundle) -> tuple[str, ...]:
    return (view.commands(bundle)[-1],)


def _full(bundle: Bundle) -> tuple[str, ...]:
    """Returns the same job at full load, with the times of the scenario's full form."""
    return (view.commands(bundle, full=True)[-1],)
