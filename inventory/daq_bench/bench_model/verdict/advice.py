"""Says why a run probably ended as it did, and what to do next. Every surface that shows a run's conclusion shows these words with it.

Promise: a next step names only a command of this bench that takes the run's own candidate and target. It proposes a run at full load only
where such a run can decide, by the rules by which `daq-bench plan` answers. Nothing here changes an outcome."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import GB, convert, in_digits
from daq_bench.bench_model.behaviour.attribution import UNKNOWN
from daq_bench.bench_model.bundle.evidence import stored_scenario
from daq_bench.bench_model.bundle.files import find_struct, plain_file
from daq_bench.bench_model.documents.derived import HardwareEvents
from daq_bench.bench_model.documents.dips import Dips, Throttling
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Kind
from daq_bench.bench_model.documents.verdict import Judgement, Verdict
from daq_bench.bench_model.evidence.admissibility import ASK_FOR_ALL, IDENTITY, NOT_ITS_STORAGE, shortfalls
from daq_bench.bench_model.evidence.company import NOT_ALONE
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.verdict.conclusion import conclude, of_damage, state
from daq_bench.bench_model.verdict.decision import MISSED
from daq_bench.bench_model.verdict.foresight import Foreseen, undecidable
from daq_bench.bench_model.verdict.judging import profiles_of
from daq_bench.bench_model.verdict.sentences import brief

LARGE_BLOCKS = "block_scan.large_block_throughput"  # judged by the scan's repetitions, not by its points
MOST_NAMED = 4
LEAST_FACTOR = 1.1  # as the verdict's own advice has it
CAUSE_CHARACTERS = 300  # of a line; the report has all
STORAGE_FAILED = "The target failed in "  # how evidence.target_failures begins
DISCOVER = "daq-bench discover --host USER@SERVER"


@dataclass(frozen=True)
class NextStep:
    """A sentence, and the code to type or to write into the scenario; `code` is empty where there is none."""

    text: str
    code: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The sentence with its code, for surfaces of plain text."""
        return " ".join(part for part in (self.text, ", ".join(f"`{one}`" for one in self.code)) if part)


@dataclass(frozen=True)
class Advice:
    """`cause`: what the run's telemetry shows as the likely cause; empty where it shows none, or where the conclusion's line says it."""

    cause: str
    step: NextStep

    @property
    def lines(self) -> tuple[str, ...]:
        """At most two lines, to stand below the conclusion's."""
        return lines_of(self.cause, self.step.line)


def lines_of(cause: str, step: str) -> tuple[str, ...]:
    """The lines of an advice that was stored as two texts. An empty text gives no line: an older bench stored none."""
    return tuple(f"{name}: {text}" for name, text in (("Likely cause", cause), ("Next", step)) if text)


@dataclass(frozen=True)
class Grounds:
    """Facts beside a verdict, read when they are asked for: a site shows thousands of runs. `causes`: sentences on the machine
    under load, its own account first. `left`: what would keep a PASS away from the same scenario at full load, with remedies."""

    causes: Callable[[], Iterable[str]] = tuple
    left: Callable[[], Iterable[Foreseen]] = tuple


def advice_of(bundle: Path, run: Run, verdict: Verdict) -> Advice:
    """The advice on a run whose bundle is at hand."""
    return advise(run, verdict, grounds_of(bundle, run))


def advise(run: Run, verdict: Verdict, grounds: Grounds) -> Advice:
    return Advice(likely_cause(run, verdict, grounds), next_step(run, verdict, grounds))


def likely_cause(run: Run, verdict: Verdict, grounds: Grounds) -> str:
    """One line. A cause is sought only where something mandatory is missed, or where the conclusion has cut its own short."""
    found = conclude(verdict)
    if verdict.declared_rehearsal:  # it missed nothing, and its limits are no cause
        return ""
    counts = verdict.outcome == "FAIL" or (bool(found.missed) and not found.invalid and verdict.outcome != "ERROR")
    causes = [found.cause, *((*grounds.causes(), _pace(run, verdict)) if counts else ())]
    return _one_line(next((text for text in causes if text and text not in found.line), ""))


def _pace(run: Run, verdict: Verdict) -> str:
    """Says that the target takes less than was offered to it, where the scan has shown so: what exceeds its pace is lost, not damaged."""
    if any(one.severity == "mandatory" and state(one) == MISSED and of_damage(one) for one in verdict.requirements):
        return ""
    offered = run.demand.offered_bytes_per_s if run.demand else 0.0
    for row in verdict.requirements:
        if row.metric == LARGE_BLOCKS and row.measured is not None:
            pace = convert(row.measured, row.unit, "B/s")
            if pace < offered:
                takes, asked = (in_digits(rate / GB) for rate in (pace, offered))
                return f"the target takes {takes} GB/s in large blocks ({row.id}), and {asked} GB/s were offered"
    return ""


def _one_line(text: str) -> str:
    """Tools and drives say it: no word of it moves a cursor or ends the line. A long one ends after its last whole word."""
    shown = "".join(one if one.isprintable() else " " for one in text)
    shown = " ".join(shown.split()).rstrip(".")
    if len(shown) <= CAUSE_CHARACTERS:
        return shown
    whole = (
        shown[: CAUSE_CHARACTERS + 1].rpartition(" ")[0] or shown[:CAUSE_CHARACTERS]
    )  # one word without an end is cut
    return f"{whole.rstrip(' .')}..."


def next_step(run: Run, verdict: Verdict | None, grounds: Grounds) -> NextStep:
    if run.simulated:
        return NextStep("Nothing follows for any server: a model made up this run.")
    if run.own_suite:
        return NextStep(
            "An own suite qualifies nobody. For a decision about buying, run a scenario of the inventory:",
            ("daq-bench list scenarios",),
        )
    again = (command(run),)
    if verdict is None:
        return NextStep("Repeat the run; it ended before it could be judged:", again)
    if verdict.outcome == "ERROR":
        return NextStep("Mend the bench, then repeat the run:", again)
    if verdict.outcome == "FAIL":  # also where the failure took a sensor along
        return _of_judged(run, verdict, grounds)
    if any(one.invalidates and IDENTITY in one.evidence for one in verdict.findings):
        return NextStep(
            "Bring back the machine and the drives that the inventory describes, or correct its entry:", again
        )
    if any(one.invalidates for one in verdict.findings):
        return NextStep("Remove what makes the evidence invalid, then repeat the run:", again)
    if any(text.startswith(NOT_ALONE) for text in verdict.reasons):
        return NextStep("End what else runs on the machine, then repeat the run:", again)
    return _of_judged(run, verdict, grounds)


def _of_judged(run: Run, verdict: Verdict, grounds: Grounds) -> NextStep:
    """The step after a run whose evidence counts, at least within its limits."""
    again, short = (command(run),), limited(run, verdict)
    rows = [one for one in verdict.requirements if one.severity == "mandatory"]
    missed, undecided, lacking = (
        [one for one in rows if state(one) == word] for word in ("missed", "undecided", "not measured")
    )
    if damaged := [one for one in missed if of_damage(one)]:  # no limit of a run makes it harmless
        return NextStep(
            f"Trust no data to this candidate: it misses {_listed(damaged)}. Find out what damages them, then repeat the run:",
            again,
        )
    if verdict.outcome == "FAIL":
        what = f"it misses {_listed(missed)}" if missed else "it failed under the load"
        if any(text.startswith(STORAGE_FAILED) for text in verdict.reasons):
            what = "its storage failed"
        if short:
            here = _not_here(run)
            fails = f"It fails as far as a rehearsal can: {what}."
            return (
                NextStep(f"{fails} {here.text}", here.code)
                if here
                else NextStep(f"{fails} Find out why, then repeat it:", again)
            )
        return NextStep(f"Do not accept the candidate as it is: {what}. After a change, qualify it again:", again)
    if missed:
        return NextStep(f"Look into {_listed(missed)} first, which this run misses; then repeat it:", again)
    here = _not_here(run)
    if here:
        return here
    if undecided:
        return _decide(run, verdict, undecided)
    if lacking:
        return NextStep(
            f"Make {_listed(lacking)} measurable on this candidate (the reasons say what is missing), then repeat the run:",
            again,
        )
    if short:
        return _whole(run, grounds)
    if verdict.outcome == "PASS":
        return NextStep("Nothing is open. Keep the sealed bundle: it is the evidence for this decision.")
    return NextStep("Remove what limits the evidence (the reasons name it), then repeat the run:", again)


def _not_here(run: Run) -> NextStep | None:
    """The step after a run on what can decide nothing, however it is loaded."""
    if any(text.startswith(NOT_ITS_STORAGE) for text in run.scaled_down or ()):
        where = "on a file"
    elif run.candidate.virtual:
        where = "on an emulated server"
    else:
        return None
    return NextStep(
        f"The bench works here, {where} that can decide nothing about buying. Describe a server with drives set aside "
        "(docs/own-hardware.md):",
        (DISCOVER,),
    )


def _whole(run: Run, grounds: Grounds) -> NextStep:
    """A run at full load, if it could decide; else what has to change first."""
    left = tuple(grounds.left())
    if not left:
        return NextStep(
            "For a decision about buying, run the whole job at full load on the storage that it is for:",
            (command(run, full=True),),
        )
    reason, remedy = left[0]
    if remedy == ASK_FOR_ALL:
        return NextStep(
            "For a decision about buying, choose a scenario that asks for all that the requirements demand; the plan names it:",
            (command(run, full=True, verb="plan"),),
        )
    return NextStep(
        f"This scenario cannot decide at full load either: {reason.rstrip('.')}. To change that: {remedy.rstrip('.')}."
    )


def _listed(rows: list[Judgement]) -> str:
    names = [one.id for one in rows]
    if len(names) == 1:
        return f"{names[0]} ({brief(rows[0])})"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _decide(run: Run, verdict: Verdict, rows: list[Judgement]) -> NextStep:
    found: dict[str, float] = {}
    for row in rows:
        for key, value in parameters(run, row):
            found[key] = max(value, found.get(key, 0.0))
    rehearsal = limited(run, verdict)
    if found:
        code = tuple(f"{key}: {value:.10g}" for key, value in found.items())
        stays = ", which stays a rehearsal and decides nothing about buying" if rehearsal else ""
        return NextStep(
            f"To decide {_listed(rows)}, set this in the scenario {run.scenario.id} and repeat the run{stays}:", code
        )
    after = " It stays a rehearsal: it decides nothing about buying." if rehearsal else ""
    why = rows[0].reason.rpartition("; ")[2].rstrip(".")
    return NextStep(f"To decide {_listed(rows)}: {why}.{after}")


def parameters(run: Run, row: Judgement) -> Iterator[tuple[str, float]]:
    """Yields the scenario's parameters that decide a row, with the values that they would need."""
    if row.length_factor:
        key = _place(run, row, "seconds_per_", "duration_s")
        if key:
            yield key, math.ceil(run.scenario.lengths[key] * max(row.length_factor, LEAST_FACTOR))
    if row.more_repetitions:
        key = _place(run, row, "repetitions", "rounds")
        if key:
            yield key, run.scenario.lengths[key] + row.more_repetitions


def _place(run: Run, row: Judgement, *starts: str) -> str | None:
    """Returns the first place of such a number in the scenario: in the part of the row's workload, then for the whole run."""
    workload = f"workloads.{row.metric.partition('.')[0]}."
    part = workload + "confirm." if row.metric == LARGE_BLOCKS else workload
    known = run.scenario.lengths
    for place in (part, ""):
        for start in starts:
            found = [key for key in known if key.startswith(place + start) and "." not in key[len(place) :]]
            if found:
                return found[0]
    return None


def limited(run: Run, verdict: Verdict | None) -> bool:
    """Says whether the run was scaled down, or declared beforehand as a rehearsal."""
    return bool(run.scaled_down or (run.scenario.scale < 1) or (verdict and verdict.declared_rehearsal))


def command(run: Run, full: bool = False, verb: str = "qualify") -> str:
    """The command that repeats the run; `full`: at the whole load and for the scenario's own time."""
    asked = run.request
    # A folder that was named takes the place of the entry's target.
    target = (asked.target_directory if asked else None) or run.target.name
    words = [
        f"daq-bench {verb}", _option("candidate", run.candidate.name), _option("scenario", run.scenario.id),
        _option("requirement", run.requirement.id),
    ]  # fmt: skip
    if target:
        words.append(_option("target", target))
    scale = 1.0 if full else run.scenario.scale
    words.append(f"--scale {scale:.17g}" if scale > 1 else f"--scale {scale:g}")
    if run.demand and not full:
        words.append(f"--duration {run.demand.duration_s:g}")
    return " ".join(words)


def _option(name: str, value: str) -> str:
    return f"--{name} {shlex.quote(value)}"


def grounds_of(bundle: Path, run: Run) -> Grounds:
    """The grounds of the advice. A document that is missing, or that the verdict calls malformed, gives no cause."""
    return Grounds(partial(_causes, bundle), partial(_left, bundle, run))


def _causes(bundle: Path) -> Iterator[str]:
    if hardware := _sound(bundle, "results/hardware_events.json", HardwareEvents):
        yield from hardware.sentences
    if throttling := _sound(bundle, "results/throttling.json", Throttling):
        for episode in throttling.episodes:
            if episode.workload is not None:
                yield from (signal.text for signal in episode.signals)
        yield from throttling.processors
    if dips := _sound(bundle, "results/dips.json", Dips):
        known = [dip for load in dips.windows for dip in load.dips if dip.cause != UNKNOWN and dip.evidence]
        for dip in sorted(known, key=lambda one: -one.lost_bytes):
            yield f"the rate fell by {dip.depth_fraction:.0%} for {in_digits(dip.duration_s, 3)} s: {dip.evidence[0].text}"


def _sound(bundle: Path, name: str, kind: type[Kind]) -> Kind | None:
    try:
        return find_struct(bundle, name, kind)
    except (BenchError, OSError):
        return None


def _left(bundle: Path, run: Run) -> Iterator[Foreseen]:
    """Asks the plan's rules about the same scenario at full load, by the profiles that the run took along."""
    try:
        document = stored_scenario(bundle, run.scenario.id)
        file = plain_file(bundle, f"profiles/scenarios/{run.scenario.id}.yml")
        if document is None or file is None:
            return
        profile, metrics = profiles_of(bundle, run.requirement.id)
        whole = at_full_load(run, document)
        for one in shortfalls(whole, profile.conditions):
            yield one.text, one.remedy
        yield from undecidable(whole, load_scenario(file, stored=True), profile, metrics)
    except (BenchError, OSError):  # an older bench's profiles: nobody can ask them
        return


def at_full_load(run: Run, scenario: Mapping[str, Any]) -> Run:
    """run.json of the run that `command(run, full=True)` would begin."""
    whole = structs.replace(
        run.scenario, scale=1.0, parameters={**scenario, "scale": 1.0} if "scale" in scenario else dict(scenario)
    )
    demand = run.demand
    if demand:
        lasts = scenario.get("duration_s")
        seconds = float(lasts) if isinstance(lasts, int | float) else demand.duration_s
        demand = structs.replace(demand, scale=1.0, duration_s=seconds, offered_bytes_per_s=demand.real_bytes_per_s)
    return structs.replace(run, scenario=whole, demand=demand)
