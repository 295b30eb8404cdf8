"""The findings that matter most, in plain words, by a rule that anybody can follow.

Promise: the order depends on the bundle alone and is stated in the report: (1) the bench failed or nothing was judged, (2) the candidate
failed apart from any requirement: its target under the load, or a demand that no bound states; then evidence that does not count, and
faults of the hardware while it was watched, (3) requirements missed, undecided, not measured, in this order, mandatory before advisory,
the worst relative margin first, (4) the smallest relative margin among the requirements that are met, (5) conditions that cast doubt:
dips without a known cause, silent collectors, tuning not as asked or not read back, drives whose own records got worse, files that are
missing, (6) the other margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from daq_bench.bench_model.documents.derived import HardwareEvents
from daq_bench.bench_model.documents.dips import Dips
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.evidence.target_failures import PurgeFailure, sentence
from daq_bench.bench_model.verdict.conclusion import state, weight
from daq_bench.bench_model.verdict.sentences import brief
from daq_bench.bench_report.base.marks import see_section, see_table
from daq_bench.bench_report.base.units import duration
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.tables.drives import got_worse
from daq_bench.bench_report.tables.requirements import beside_bound

MOST = 3
MOST_IN_TABLE = 40
FAULTS_NAMED, FAULT_CHARACTERS = 3, 160
GAP_PERIODS = 10.0  # a collector has a gap when it was silent for this many of its periods, and for a second at least
GAP_S_MIN = 1.0
ASKS_LESS = " asks for less than the requirement profile demands: "
RULE = (
    "Order of the findings: the bench failed or nothing was judged; a target that failed; evidence that does not count; faults of the "
    "hardware; "
    "requirements missed, then undecided, then not measured, mandatory before advisory, the worst relative margin first; the smallest "
    "relative margin among those met; conditions that cast doubt on the measurement; the other margins. Scaled-down sizes stand in a "
    "box of its own on the first page."
)


@dataclass(frozen=True)
class Remark:
    """`kind` in two or three words, `text` in a sentence, `why` in another one, which the first page leaves out. `of`: the id of the
    requirement that it is about."""

    kind: str
    text: str
    why: str = ""
    of: str = ""


def findings(bundle: Bundle) -> list[Remark]:
    return [*_broken(bundle), *_failed(bundle), *_invalid(bundle), *_hardware(bundle), *_requirements(bundle)]


def findings_table(bundle: Bundle) -> Table | None:
    found = findings(bundle)
    if not found:
        return None
    rows = tuple(
        (str(number), one.kind, " ".join(part for part in (one.text, one.why) if part))
        for number, one in enumerate(found[:MOST_IN_TABLE], 1)
    )
    caption = (
        "Findings in their order. The first ones stand on the first page too."
        if len(found) > MOST
        else "Findings in their order."
    )
    if len(found) > MOST_IN_TABLE:
        caption += (
            f" The first {MOST_IN_TABLE} of {len(found)}; the margins that follow are in {see_table('requirements')}."
        )
    return Table(("No.", "Kind", "Finding"), "ntt", rows, caption, "findings")


def _broken(bundle: Bundle) -> Iterator[Remark]:
    verdict = bundle.verdict
    if bundle.again and bundle.again.contradicts:
        yield Remark("Contradictory", f"{bundle.again.words[:1].upper()}{bundle.again.words[1:].rstrip('.')}.")
    elif verdict is None:
        yield Remark(
            "Not judged",
            f"The run\u2019s state is \u201c{bundle.run.state}\u201d, and no requirement was judged: nothing is said about the candidate.",
        )
    if verdict and verdict.outcome == "ERROR":
        for reason in verdict.reasons:
            yield Remark("The bench failed", f"{reason.rstrip('.')}.")


def _failed(bundle: Bundle) -> Iterator[Remark]:
    for told in bundle.target_failures:
        yield Remark("Target failed", f"{told.rstrip('.')}.")
    verdict = bundle.verdict
    # A requirement that is missed says the same with its numbers.
    if verdict and verdict.outcome == "FAIL" and not any(state(one) == "missed" for one in verdict.requirements):
        for found in verdict.findings:
            if found.fails:
                yield Remark("Candidate failed", f"{found.text.rstrip('.')}.")


def _invalid(bundle: Bundle) -> Iterator[Remark]:
    if unpurged := bundle.result("purge_failure", PurgeFailure):
        yield Remark("Drive not emptied", f"{sentence(unpurged)}.")
    for found in bundle.verdict.findings if bundle.verdict else ():
        if found.invalidates:
            yield Remark("Evidence does not count", f"{found.text.rstrip('.')}.")


def _hardware(bundle: Bundle) -> Iterator[Remark]:
    """One remark for all faults of the hardware, the gravest by name: a cause stands before what it caused."""
    found = bundle.result("hardware_events", HardwareEvents)
    told = found.sentences if found else []
    if told:
        more = f"; {len(told) - FAULTS_NAMED} more" if len(told) > FAULTS_NAMED else ""
        named = "; ".join(
            one if len(one) <= FAULT_CHARACTERS else f"{one[:FAULT_CHARACTERS]}..." for one in told[:FAULTS_NAMED]
        )
        yield Remark("Hardware fault", f"{named}{more}; see {see_table('hardware-events')}.")


def _requirements(bundle: Bundle) -> Iterator[Remark]:
    judged = sorted(bundle.verdict.requirements if bundle.verdict else (), key=weight)
    open_ = [one for one in judged if state(one) != "met"]
    met = [one for one in judged if state(one) == "met" and weight(one)[1] < math.inf]
    yield from (_requirement(one) for one in open_)
    yield from (_margin(one, smallest=True) for one in met[:1])
    yield from _conditions(bundle)
    yield from (_margin(one, smallest=False) for one in met[1:])


def _requirement(judged: Judgement) -> Remark:
    at = state(judged)
    advisory = ", advisory" if judged.severity == "advisory" else ""
    name = f"{judged.id} {brief(judged)}:"
    if at == "not measured":
        why = (judged.reason or "no reason recorded").removeprefix("Not measured: ")
        return Remark(f"Not measured{advisory}", f"{name} {why.rstrip('.')}.")
    text = f"{name} {beside_bound(judged)}."
    why = _sentence(judged.reason.removeprefix("Undecided: ")) if at == "undecided" and judged.reason else ""
    return Remark(f"{at.capitalize()}{advisory}", text, why, judged.id)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _margin(judged: Judgement, *, smallest: bool) -> Remark:
    kind = "Smallest margin" if smallest else "Met"
    if judged.severity == "advisory":
        kind += ", advisory"
    text = f"{judged.id} {brief(judged)}: {beside_bound(judged)}."
    return Remark(kind, text)


def _conditions(bundle: Bundle) -> Iterator[Remark]:
    yield from _dips(bundle)
    yield from _gaps(bundle)
    yield from _tuning(bundle)
    for text in got_worse(bundle):
        yield Remark("Drive got worse", f"{text}; see {see_table('smart')}.")
    if bundle.missing:
        names = ", ".join(name for name, _ in bundle.missing)
        yield Remark("Missing evidence", f"The bundle lacks {names}; see {see_section('events')}.")


def _dips(bundle: Bundle) -> Iterator[Remark]:
    found = bundle.result("dips", Dips)
    unexplained = found.summary.unexplained if found else None
    if unexplained:
        plural = "s" if unexplained != 1 else ""
        yield Remark(
            "Dip without cause",
            f"{unexplained} dip{plural} of the rate without a known cause; see {see_section('dips')}.",
        )


def _gaps(bundle: Bundle) -> Iterator[Remark]:
    collectors = bundle.accounting.collectors if bundle.accounting else ()
    silent = [
        (one.longest_gap_s, one.name)
        for one in collectors
        if one.period_s and one.longest_gap_s and one.longest_gap_s > max(GAP_PERIODS * one.period_s, GAP_S_MIN)
    ]
    if silent:
        gap, name = max(silent)
        others = f", and {len(silent) - 1} more were silent too" if len(silent) > 1 else ""
        yield Remark(
            "Telemetry gap",
            f"The collector {name} was silent for {duration(gap)}{others}; see {see_table('collectors')}.",
        )


def _tuning(bundle: Bundle) -> Iterator[Remark]:
    if bundle.tuning is None:
        return
    odd = [one.id for one in bundle.tuning if not one.as_wanted]
    if odd:
        yield Remark("Tuning not as asked", f"{', '.join(odd)}; see {see_table('tuning')}.")
    if bundle.tuning_after is None:
        yield Remark("Tuning not read back", f"It was not read back after the run; see {see_table('tuning')}.")
    else:
        after = {(one.id, one.subject): one.read_back for one in bundle.tuning_after}
        changed = [one.id for one in bundle.tuning if after.get((one.id, one.subject), one.read_back) != one.read_back]
        if changed:
            yield Remark(
                "Tuning changed",
                f"Another value after the run than before: {', '.join(changed)}; see {see_table('tuning')}.",
            )


def reasons_of_verdict(bundle: Bundle) -> tuple[str, ...]:
    """Returns the verdict's reasons and further findings, without those that the findings' table or the box on scale already states."""
    verdict = bundle.verdict
    if verdict is None:
        return ()
    said = {text.rstrip(".") for text in bundle.run.scaled_down} & {text.rstrip(".") for text in limits(bundle)}
    rows = tuple(f"{one.id} {one.text}" for one in verdict.requirements)
    told = [one for one in verdict.reasons if one.rstrip(".") not in said and not (rows and one.startswith(rows))]
    more = (
        one.text + (" (the evidence does not count)" if one.invalidates else "")
        for one in verdict.findings
        if one.text not in verdict.reasons
    )
    return (*told, *more)


def limits(bundle: Bundle) -> list[str]:
    """Returns the limits of scale for the first page: parameters that ask for too little share one line, which names the first; all stand
    among the findings."""
    whole = [text for text in bundle.run.scaled_down if ASKS_LESS not in text]
    less = [text for text in bundle.run.scaled_down if ASKS_LESS in text]
    if not less:
        return whole
    number = sum(len(text.partition(ASKS_LESS)[2].split("; ")) for text in less)
    if number == 1:
        return [*whole, *less]
    first = less[0].partition(ASKS_LESS)[2].split("; ")[0]
    return [
        *whole,
        f"{number} parameters ask for less than the requirement profile demands: {first}; {number - 1} more ({see_section('findings')})",
    ]
