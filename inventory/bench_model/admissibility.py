"""Does the evidence count? Every reason why not, in plain words.

A *limiting* finding (scaled down, a tuning that the machine cannot do) only forbids a PASS: what fails at a tenth of the
load fails at all of it. An *invalidating* finding (source too slow, telemetry gap, wrong machine) forbids a FAIL too,
since the bench and not the candidate may be the cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench_model.evidence import Document, Evidence
from bench_model.telemetry_files import BMC, OWN, SUMMARY_FILE

SOURCE_ACHIEVED_MIN = 0.99  # [P] share of the superchunks that were due which the source must have offered
TELEMETRY_GAP_S_MIN = 1.0  # [P] at ten samples a second five periods are no gap that a dip could hide in
TELEMETRY_GAP_PERIODS_MAX = 5  # [P] a collector silent for longer leaves a dip without an explanation
CLOCK_DIFFERENCE_S_MAX = 1.0  # [P] more, and the candidate's samples no longer lie beside the bench's events

NOTHING_ASKED = ("", "keep")
IDENTITY = "results/identity.json"
CLOCK = "facts/clock.json"
TUNING, TUNING_VERIFIED, TUNING_AFTER = "facts/tuning.json", "facts/tuning-verified.json", "facts/tuning-after.json"


@dataclass(frozen=True)
class Finding:
    """One reason why evidence counts less; `evidence` names files of the bundle."""

    text: str
    invalidates: bool
    evidence: tuple[str, ...]


def findings(evidence: Evidence, conditions: Document) -> list[Finding]:
    """All findings for a run that is judged under a requirement profile's `conditions`."""
    return [
        *_scaled_down(evidence.run, conditions),
        *_unrecorded(evidence),
        *_identity(evidence.identity),
        *_tuning(evidence),
        *_clock(evidence),
        *_source(evidence.results.get("results/snb_record.json")),
        *_stated(evidence.results),
        *_telemetry(evidence),
    ]


def scaled_down(run: Document, conditions: Document) -> list[str]:
    """The sentences for the report's first page: in what the run was less than the profile asks for."""
    return [finding.text for finding in _scaled_down(run, conditions)]


def _scaled_down(run: Document, conditions: Document) -> Iterator[Finding]:
    scenario, demand, target = run["scenario"], run["demand"], run["target"]
    proof = ("run.json",)
    if demand and scenario["scale"] < conditions["scale_min"]:
        offered, real = demand["offered_bytes_per_s"] / 1e9, demand["real_bytes_per_s"] / 1e9
        yield Finding(
            f"The load is {scenario['scale']:g} of one readout unit: {offered:.4g} GB/s offered of {real:.4g} GB/s",
            False,
            proof,
        )
    if not demand and scenario["scale"] < conditions["scale_min"]:
        yield Finding(
            f"Bounds that scale with the load are held at {scenario['scale']:g} of one readout unit", False, proof
        )
    least_s = conditions["record_duration_s_min"]
    if demand and least_s is not None and demand["duration_s"] < least_s:
        yield Finding(
            f"The record lasts {demand['duration_s']:g} s instead of {least_s:g} s",
            False,
            proof,
        )
    if target["kind"] not in conditions["target_kinds"]:
        yield Finding(
            f"The target is a {target['kind'].replace('-', ' ')} on {target['filesystem']}, not the candidate's "
            "own storage set aside for the record",
            False,
            proof,
        )
    for text in run.get("declared_limits", []):
        yield Finding(text, False, proof)
    # Also where the inventory does not say so: an emulated drive names itself.
    drives = [drive["model"] or "" for drive in target.get("drives", [])]
    if run["candidate"].get("virtual") or any(model.startswith("QEMU") for model in drives):
        yield Finding(
            "The candidate is a virtual machine with emulated drives: it shows that the bench works", False, proof
        )


def _unrecorded(evidence: Evidence) -> Iterator[Finding]:
    """What was never written down was never checked: its absence must not read as "nothing to complain about"."""
    for document, file, what in (
        (evidence.identity, IDENTITY, "whether this is the declared candidate"),
        (evidence.tuning, TUNING, "which tuning was applied"),
        (evidence.tuning_verified, TUNING_VERIFIED, "whether the tuning was in force before the load"),
        (evidence.tuning_after, TUNING_AFTER, "whether the tuning was still in force after the load"),
    ):
        if document is None:
            yield Finding(f"The run did not record {what}", True, (file,))


def _identity(identity: Document | None) -> Iterator[Finding]:
    for check in (identity or {}).get("checks", []):
        if not check["ok"]:
            yield Finding(
                f"Identity: {check['subject']} should be {check['declared']} but is {check['found']}",
                True,
                (IDENTITY,),
            )


def _tuning(evidence: Evidence) -> Iterator[Finding]:
    asked = [setting for setting in _settings(evidence.tuning) if setting["status"] == "unsupported"]
    if asked:
        names = ", ".join(f"{setting['id']} {setting['asked']}" for setting in asked)
        yield Finding(f"Tuning that was asked for and that this machine does not support: {names}", False, (TUNING,))
    for document, file, when in (
        (evidence.tuning, TUNING, "after provisioning"),
        (evidence.tuning_verified, TUNING_VERIFIED, "before the load"),
        (evidence.tuning_after, TUNING_AFTER, "after the run"),
    ):
        for setting in _settings(document):
            if setting["status"] in ("mismatch", "refused"):
                name = f"{setting['id']} ({setting['subject']})"
                read_back = setting["read_back"] or "nothing"
                yield Finding(
                    f"Tuning {name} asked for {setting['asked']} but reads back {read_back} {when}", True, (file,)
                )


def _settings(document: Document | None) -> list[Document]:
    """The settings of which something was asked; the others are only recorded."""
    return [setting for setting in (document or {}).get("settings", []) if setting["asked"] not in NOTHING_ASKED]


def _clock(evidence: Evidence) -> Iterator[Finding]:
    """Of a candidate with a clock of its own. Runs from before clocks were recorded do not say how it was connected."""
    if evidence.clock is None:
        if evidence.run["candidate"].get("connection", "local") != "local":
            yield Finding("The run did not record whether the candidate's clock agreed with ours", True, (CLOCK,))
        return
    for reading in evidence.clock["readings"]:
        difference = reading["difference_s"]
        if abs(difference) > CLOCK_DIFFERENCE_S_MAX + reading["uncertainty_s"]:
            yield Finding(
                f"The candidate's clock was {difference:+.1f} s off the control node's {reading['when']}, so that its telemetry "
                "does not lie beside the bench's events",
                True,
                (CLOCK,),
            )


def _source(record: Document | None) -> Iterator[Finding]:
    for number, repetition in enumerate((record or {}).get("repetitions", []), start=1):
        minidaq: dict[str, Any] = repetition["minidaq"]
        achieved = minidaq["source"]["achieved_fraction"]
        # A record that a drive's I/O error ended early was cut short by the candidate, not by the source.
        if minidaq["status"] == "complete" and achieved < SOURCE_ACHIEVED_MIN:
            yield Finding(
                f"The source offered only {achieved:.1%} of the superchunks that were due in repetition {number}",
                True,
                ("results/snb_record.json",),
            )


def _stated(results: dict[str, Document]) -> Iterator[Finding]:
    """What a workload itself says of its evidence: `limits` forbid a PASS, `invalid` a FAIL too."""
    for file, document in sorted(results.items()):
        for key, invalidates in (("limits", False), ("invalid", True)):
            for text in document.get(key, []):
                yield Finding(text, invalidates, (file,))


def _telemetry(evidence: Evidence) -> Iterator[Finding]:
    if evidence.telemetry is None:
        yield Finding("The run has no telemetry summary, so no dip can be explained", True, ("telemetry/",))
        return
    for summary, spool in ((evidence.telemetry, OWN), (evidence.bmc_telemetry, BMC)):
        yield from _gaps((summary or {"collectors": []})["collectors"], f"{spool}/{SUMMARY_FILE}")


def _gaps(collectors: list[Document], file: str) -> Iterator[Finding]:
    for collector in collectors:
        # What takes longer to read than its period (a BMC) has that as its pace.
        pace_s = max(collector["period_s"], collector.get("duration_s_mean", 0.0))
        limit_s = max(TELEMETRY_GAP_S_MIN, TELEMETRY_GAP_PERIODS_MAX * pace_s)
        if collector["status"] != "unsupported" and collector["longest_gap_s"] > limit_s:
            yield Finding(
                f"Telemetry of {collector['name']} has a gap of {collector['longest_gap_s']:.1f} s (limit {limit_s:.1f} s)",
                True,
                (file,),
            )
