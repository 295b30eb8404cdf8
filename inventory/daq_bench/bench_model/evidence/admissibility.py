"""Does the evidence count? Every reason why not, in plain words.

A *limiting* finding (scaled down, a tuning that the machine cannot do) only forbids a PASS: what fails at a tenth of the
load fails at all of it. An *invalidating* finding (source too slow, telemetry gap, wrong machine) forbids a FAIL too,
since the bench and not the candidate may be the cause. A finding that *fails* is the candidate's own doing, such as a record that its
drive broke off: the run fails whatever its metrics say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.telemetry_files import BMC, OWN, SUMMARY_FILE
from daq_bench.bench_model.documents.facts import Identity, Setting, Tuning
from daq_bench.bench_model.documents.run import FINISHED, Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.documents.telemetry import TelemetrySummary
from daq_bench.bench_model.documents.verdict import Finding
from daq_bench.bench_model.evidence.changed_firmware import AFTER, BEFORE, firmware_findings
from daq_bench.bench_model.evidence.counted_load import miscounted
from daq_bench.bench_model.evidence.coverage import gaps
from daq_bench.bench_model.evidence.demanded_load import contradictions, less_than_demanded, unstated
from daq_bench.bench_model.evidence.soundness import ACCOUNT, SENSORS, Sound
from daq_bench.bench_model.profiles.candidates import RAW_DEVICE
from daq_bench.bench_model.profiles.requirements import Conditions
from daq_bench.bench_model.workloads.plan import FAILS, INVALIDATES

NOT_ITS_STORAGE = "The target is a "  # ... of a kind that the profile takes no evidence from
SOURCE_ACHIEVED_MIN = 0.99  # [P] share of the superchunks that were due which the source must have offered
TELEMETRY_GAP_S_MIN = 1.0  # [P] at ten samples a second five periods are no gap that a dip could hide in
TELEMETRY_GAP_PERIODS_MAX = 5  # [P] a collector silent for longer leaves a dip without an explanation
CLOCK_DIFFERENCE_S_MAX = 1.0  # [P] more, and the candidate's samples no longer lie beside the bench's events

CLOCK_UNCERTAINTY_S_MAX = (
    5.0  # [P] half of the time that an answer took; an SSH session on a loaded machine takes some seconds
)
CLOCK_READ = (BEFORE, AFTER)

NOTHING_ASKED = ("", "keep")
HELD = ("applied", "unchanged", "unsupported")  # the last is a limit of its own
UNSUPPORTED = "unsupported"
SIMULATED = "SIMULATED: no server was measured; a physical model made up all that the tools said"
OWN_SUITE_SAYS = "Own suite: its author chose load and order, so that it qualifies nobody"
ASK_FOR_ALL = "Choose a scenario that asks for all of it, or correct these parameters in a copy"
UNKNOWN_DRIVES = "Which drives carry the target is not known"
IDENTITY = "results/identity.json"
CLOCK = "facts/clock.json"
TUNING, TUNING_VERIFIED, TUNING_AFTER = "facts/tuning.json", "facts/tuning-verified.json", "facts/tuning-after.json"


def findings(sound: Sound, conditions: Conditions) -> list[Finding]:
    """All findings for a run that is judged under a requirement profile's `conditions`. A malformed document is one; the others are
    judged without it."""
    return [
        *(Finding(text, True, (file,)) for file, text in sound.malformed.items()),
        *_scaled_down(sound.run, conditions),
        *_load(sound, conditions),
        *_unrecorded(sound),
        *_identity(sound.identity),
        *firmware_findings(sound),
        *_tuning(sound),
        *_clock(sound),
        *_source(sound.results.get("results/snb_record.json")),
        *_gaps_of_plan(sound),
        *_sensors(sound),
        *_stated(sound.results),
        *_telemetry(sound),
    ]


def scaled_down(run: Run, conditions: Conditions) -> list[str]:
    """The sentences for the report's first page: in what the run was less than the profile asks for."""
    return [shortfall.text for shortfall in shortfalls(run, conditions)]


@dataclass(frozen=True)
class Shortfall:
    """In what a run is less than the profile asks for, and the change by which it would not be."""

    text: str
    remedy: str
    invalidates: bool = False


def shortfalls(run: Run, conditions: Conditions) -> Iterator[Shortfall]:
    """All that follows from what was asked for, before anything is measured."""
    scenario, demand, target = run.scenario, run.demand, run.target
    if run.own_suite:  # it speaks neither for a candidate nor against one
        yield Shortfall(OWN_SUITE_SAYS, "Run a scenario of the inventory", True)
    if not scenario.scale >= conditions.scale_min:
        text = f"Bounds that scale with the load are held at {in_digits(scenario.scale, 6)} of one readout unit"
        if demand:
            offered, real = demand.offered_bytes_per_s / 1e9, demand.real_bytes_per_s / 1e9
            asked, demanded = in_digits(offered), in_digits(real)
            text = f"The load is {in_digits(scenario.scale, 6)} of one readout unit: {asked} GB/s offered of {demanded} GB/s"
        yield Shortfall(text, f"--scale {conditions.scale_min:g}")
    if target.kind not in conditions.target_kinds:
        yield Shortfall(
            f"{NOT_ITS_STORAGE}{target.kind.replace('-', ' ')} on {target.filesystem}, not the candidate's "
            "own storage set aside for the record",
            f"Set drives aside, and describe them as a target of kind {' or '.join(conditions.target_kinds)} (docs/own-hardware.md)",
        )
    for text in less_than_demanded(scenario.parameters, conditions.load):
        yield Shortfall(text, ASK_FOR_ALL)
    for text in run.declared_limits:
        yield Shortfall(text, "Choose a scenario that does without, or correct it in a copy")
    # Also where the inventory does not say so: an emulated drive names itself.
    drives = [drive.model or "" for drive in target.drives]
    if run.candidate.virtual or any(model.startswith("QEMU") for model in drives):
        text = "The candidate is a virtual machine with emulated drives: it shows that the bench works"
        yield Shortfall(text, "Qualify the hardware itself")
    if run.simulated:  # it is evidence of nothing: neither for a candidate nor against one
        yield Shortfall(SIMULATED, "Measure a server", True)


def _scaled_down(run: Run, conditions: Conditions) -> Iterator[Finding]:
    for one in shortfalls(run, conditions):
        yield Finding(one.text, one.invalidates, ("run.json",))
    if run.target.kind == RAW_DEVICE and run.target.device is None:
        yield Finding("The raw drive that was loaded is not described", True, ("run.json",))
    elif run.target.drives and run.target.device is None:  # the bench knows the drives of a device alone
        text = "The target's drives are named, and the drive or set that they make up is not described"
        yield Finding(text, True, ("run.json",))
    if run.target.device is not None and run.target.device.size_bytes is None:
        yield Finding("The capacity of the drive or set beneath the target is not known", True, ("run.json",))


def _load(sound: Sound, conditions: Conditions) -> Iterator[Finding]:
    """Against what is demanded stands what the scenario asked for (`_scaled_down`), and against that what was counted."""
    for text in unstated(conditions.metrics, conditions.load, sound.run.scenario.parameters):
        yield Finding(text, False, ("profiles/requirements/",))
    for text in contradictions(sound.run, sound.raw.scenario):
        yield Finding(text, True, ("run.json", "profiles/scenarios/"))
    for file, text, invalidates in miscounted(sound.run.scenario.parameters, sound.raw.results):
        yield Finding(text, invalidates, (file,))


def _unrecorded(sound: Sound) -> Iterator[Finding]:
    """Yields a finding for each check that left no record: its absence must not read as "nothing to complain about"."""
    evidence = sound.raw
    for document, file, what in (
        (evidence.identity, IDENTITY, "whether this is the declared candidate"),
        (evidence.tuning, TUNING, "which tuning was applied"),
        (evidence.tuning_verified, TUNING_VERIFIED, "whether the tuning was in force before the load"),
        (evidence.tuning_after, TUNING_AFTER, "whether the tuning was still in force after the load"),
        (evidence.clock, CLOCK, "whether the candidate's clock agreed with ours"),
        (evidence.results.get(SENSORS), SENSORS, "whether the drives' temperatures were read all the time"),
        (evidence.results.get(ACCOUNT), ACCOUNT, "what became of its telemetry"),
    ):
        if document is None:
            yield Finding(f"The run did not record {what}", True, (file,))
    if sound.run.state == FINISHED and sound.run.finished_utc is None:
        yield Finding("The run did not record when it ended", True, ("run.json",))


def _identity(identity: Identity | None) -> Iterator[Finding]:
    if identity is None:
        return
    if not identity.checks:
        yield Finding("Identity: nothing of the candidate was checked", True, (IDENTITY,))
    found = Counter(check.subject for check in identity.checks)
    odd = (Counter(identity.planned) - found) + (found - Counter(identity.planned))
    if odd:
        yield Finding(
            f"Identity: planned checks and those that were made differ: {', '.join(sorted(odd))}", True, (IDENTITY,)
        )
    for check in identity.checks:
        if not check.ok:
            yield Finding(
                f"Identity: {check.subject} should be {check.declared} but is {check.found}",
                True,
                (IDENTITY,),
            )


def _sensors(sound: Sound) -> Iterator[Finding]:
    """The drives whose sensors were watched are those of the target, each once. A reading that cannot have stood still and did is no
    evidence of any drive: it hides how near the load came to its limits, also where no requirement asks for that."""
    drives = sound.run.target.names
    if not drives:
        yield Finding(UNKNOWN_DRIVES, False, ("run.json",))
    watched = sound.sensors
    if len(set(drives)) < len(drives) or (watched is not None and set(watched.longest_silence_s) != set(drives)):
        yield Finding("The target's drives and those whose temperature was watched differ", True, (SENSORS,))
    for text in watched.unmoved if watched is not None else ():
        yield Finding(text, False, (SENSORS,))


def _gaps_of_plan(sound: Sound) -> Iterator[Finding]:
    for gap in gaps(sound.run, sound.results):
        yield Finding(gap.text, gap.effect == INVALIDATES, (gap.file,), gap.effect == FAILS)


def _tuning(evidence: Sound) -> Iterator[Finding]:
    asked = [setting for setting in _settings(evidence.tuning) if setting.status == "unsupported"]
    if asked:
        names = ", ".join(f"{setting.id} {setting.asked}" for setting in asked)
        yield Finding(f"Tuning that was asked for and that this machine does not support: {names}", False, (TUNING,))
    for document, file, when in (
        (evidence.tuning, TUNING, "after provisioning"),
        (evidence.tuning_verified, TUNING_VERIFIED, "before the load"),
        (evidence.tuning_after, TUNING_AFTER, "after the run"),
    ):
        for setting in _settings(document):
            if setting.status not in HELD:
                name = f"{setting.id} ({setting.subject})"
                read_back = setting.read_back or "nothing"
                yield Finding(
                    f"Tuning {name} asked for {setting.asked} but reads back {read_back} {when}", True, (file,)
                )
    yield from _not_read_back(evidence)


def _not_read_back(evidence: Sound) -> Iterator[Finding]:
    """A setting that nobody looked at again may have been lost: each that was asked for stands in all three documents, once."""
    if evidence.tuning is not None and not evidence.tuning.settings:
        yield Finding("Not one tuning setting was recorded", True, (TUNING,))
    asked = _names(evidence.tuning)
    for document, file, when in (
        (evidence.tuning_verified, TUNING_VERIFIED, "before the load"),
        (evidence.tuning_after, TUNING_AFTER, "after the run"),
    ):
        odd = sorted((asked - _names(document)) + (_names(document) - asked)) if document and evidence.tuning else []
        if odd:
            names = ", ".join(f"{name} ({subject})" for name, subject in odd)
            yield Finding(f"Tuning that was asked for and what was read back {when} differ: {names}", True, (file,))


def _names(document: Tuning | None) -> Counter[tuple[str, str]]:
    return Counter((one.id, one.subject) for one in _settings(document))


def _settings(document: Tuning | None) -> list[Setting]:
    """The settings of which something was asked; the others are only recorded."""
    return [setting for setting in document.settings if setting.asked not in NOTHING_ASKED] if document else []


def _clock(evidence: Sound) -> Iterator[Finding]:
    """Yields the findings on a candidate that has a clock of its own."""
    if evidence.clock is None:
        return
    if evidence.clock.same_clock and evidence.run.candidate.connection != "local":
        yield Finding("A candidate behind a connection has a clock of its own, and nobody compared it", True, (CLOCK,))
    if not evidence.clock.same_clock and not evidence.clock.readings:
        yield Finding("Nobody compared the candidate's clock with ours", True, (CLOCK,))
    if not evidence.clock.same_clock and evidence.clock.readings and evidence.run.state == FINISHED:
        times = [reading.when for reading in evidence.clock.readings]
        if missing := [when for when in CLOCK_READ if when not in times]:
            yield Finding(f"Nobody compared the candidate's clock with ours {' or '.join(missing)}", True, (CLOCK,))
    for reading in evidence.clock.readings:
        difference = reading.difference_s
        if not reading.uncertainty_s <= CLOCK_UNCERTAINTY_S_MAX:
            yield Finding(
                f"The candidate's clock was compared with ours only to within "
                f"{in_digits(reading.uncertainty_s, 6)} s {reading.when}: that shows no difference below {CLOCK_UNCERTAINTY_S_MAX:g} s",
                True,
                (CLOCK,),
            )
        elif not abs(difference) <= CLOCK_DIFFERENCE_S_MAX + reading.uncertainty_s:
            yield Finding(
                f"The candidate's clock was {difference:+.1f} s off the control node's {reading.when}, so that its telemetry "
                "does not lie beside the bench's events",
                True,
                (CLOCK,),
            )


def _source(record: Document | None) -> Iterator[Finding]:
    for number, repetition in enumerate((record or {}).get("repetitions", []), start=1):
        minidaq: dict[str, Any] = repetition["minidaq"]
        achieved = minidaq["source"]["achieved_fraction"]
        # A record that a drive's I/O error ended early was cut short by the candidate, not by the source.
        if minidaq["status"] == "complete" and not achieved >= SOURCE_ACHIEVED_MIN:
            yield Finding(
                f"The source offered only {achieved:.1%} of the superchunks that were due in repetition {number}",
                True,
                ("results/snb_record.json",),
            )


def _stated(results: dict[str, Document]) -> Iterator[Finding]:
    """Yields what each workload states of its own evidence: `limits` forbid a PASS, `invalid` a FAIL too."""
    for file, document in sorted(results.items()):
        for key, invalidates in (("limits", False), ("invalid", True)):
            for text in document.get(key, []):
                yield Finding(text, invalidates, (file,))


def _telemetry(evidence: Sound) -> Iterator[Finding]:
    if evidence.telemetry is None:
        yield Finding("The run has no telemetry summary, so no dip can be explained", True, ("telemetry/",))
        return
    file = f"{OWN}/{SUMMARY_FILE}"
    if all(collector.status == UNSUPPORTED for collector in evidence.telemetry.collectors):
        yield Finding("Not one telemetry collector was at work, so no dip can be explained", True, (file,))
    found: Counter[tuple[str, str]] = Counter()
    for summary, spool in ((evidence.telemetry, OWN), (evidence.bmc_telemetry, BMC)):
        if summary is None:
            continue
        file = f"{spool}/{SUMMARY_FILE}"
        if summary.state != FINISHED:
            yield Finding(
                f"The telemetry agent ended in state {summary.state!r}, not by the bench's word", True, (file,)
            )
        found += Counter((one.name, one.status) for one in summary.collectors)
        yield from telemetry_gaps(summary, file)
    account = evidence.account
    if account is not None:
        told: Counter[tuple[str, str]] = Counter((one.name, one.status) for one in account.collectors)
        odd = sorted({name for name, _ in (told - found) + (found - told)})
        if odd:
            yield Finding(f"The telemetry's account and its summaries differ on {', '.join(odd)}", True, (ACCOUNT,))


def telemetry_gaps(summary: TelemetrySummary, file: str) -> Iterator[Finding]:
    """Each collector that was silent for so long that a dip could hide."""
    for collector in summary.collectors:
        # A source that takes longer to read than its period (a BMC) has the reading time as its pace.
        pace_s = max(collector.period_s, collector.duration_s_mean)
        limit_s = max(TELEMETRY_GAP_S_MIN, TELEMETRY_GAP_PERIODS_MAX * pace_s)
        if collector.status != UNSUPPORTED and not collector.longest_gap_s <= limit_s:
            yield Finding(
                f"Telemetry of {collector.name} has a gap of {collector.longest_gap_s:.1f} s (limit {limit_s:.1f} s)",
                True,
                (file,),
            )
