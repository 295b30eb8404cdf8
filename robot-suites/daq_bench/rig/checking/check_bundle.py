"""`check-bundle`: checks that a bundle is what its run left, who vouches for it, and that all its statements follow from its evidence.

A bundle gives data and nothing else: no file that it names is opened, no text in it is templated or executed, and no key that it brings is
trusted. The checker brings its own allowed signers, scenario, requirements, metrics and challenge."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle import column_file
from daq_bench.bench_model.bundle.dates import date_problems
from daq_bench.bench_model.bundle.files import plain_file, require_sound
from daq_bench.bench_model.bundle.provenance import (
    MANIFEST,
    REPORT_DATA,
    REPORTS_MANIFEST,
    digest_of,
    key_of,
    read_manifest,
)
from daq_bench.bench_model.documents.struct import Document, require_known
from daq_bench.bench_model.evidence import derived
from daq_bench.bench_model.verdict.judging import VERDICT, differences, judge_bundle
from daq_bench.rig.base.bundle import Bundle, to_json
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.checking.agreement import challenge_problems, event_problems, folder_problems, identity_problems
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.checking.own_profiles import DIFFERENT, Own, Profile, altered_parameters, compared, plain_id
from daq_bench.rig.checking.sealing import altered_evidence, altered_reports, unsealed_reports
from daq_bench.rig.checking.signing import Signature, State, verified

RENDER_S_MAX = 1200.0
Made = TypeVar("Made")
UNTRUSTED = (State.UNSIGNED, State.UNKNOWN, State.NOT_VALID)


@dataclass
class Check:
    """`lines` say how each part stands, `problems` name the faults, `notes` name the parts that could not be compared, and why.
    `evidence`: the worth of the evidence's signature."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: State = State.UNSIGNED

    @property
    def conclusion(self) -> str:
        """Returns the conclusion in words that do not suggest trust where nobody vouches."""
        if self.problems:
            return counted(self.problems)
        if self.evidence is State.TRUSTED:
            return "intact, and signed by a trusted key"
        if self.evidence is State.UNSIGNED:
            return "nothing differs from its own seal, but it is UNSIGNED: nobody vouches for it, and anybody can have sealed it"
        return "nothing differs from its own seal, but NOBODY HERE VOUCHES for the key that signed it"

    def part(self, name: str, well: str, problems: list[str]) -> None:
        self.problems += problems
        self.lines.append(f"{name:<10} {well if not problems else counted(problems)}")


def counted(problems: Sequence[str]) -> str:
    return f"{len(problems)} difference{'s' if len(problems) != 1 else ''}"


def check_bundle(
    path: Path, allowed_signers: Path | None = None, own: Own | None = None, challenge: str | None = None
) -> Check:
    """Checks the bundle at `path` against its seals, itself, the checker's `own` profiles, and the `challenge` that its run was given.

    With `allowed_signers` only a bundle that a trusted key signed is well. Raises BenchError for a folder that is no readable bundle."""
    bundle = Bundle.open(path)
    _require_ours(bundle)
    check = check_seals(bundle, allowed_signers)
    require_sound(bundle.path)
    _check_origin(check, bundle, challenge)
    _check_dates(check, bundle)
    _check_events(check, bundle)
    _check_parameters(check, bundle)
    _check_profiles(check, bundle, own or Own())
    _check_results(check, bundle)
    _check_verdict(check, bundle)
    _check_numbers(check, bundle)
    return _shown(check)


def check_evidence(path: Path) -> Check:
    """The same of the evidence alone, whoever signed it and whatever it was asked: without signatures, profiles of the checker and reports.

    Raises BenchError for a folder that is no readable bundle."""
    bundle, check = Bundle.open(path), Check()
    _require_ours(bundle)
    _check_evidence(check, bundle)
    require_sound(bundle.path)
    _check_origin(check, bundle, None)
    _check_dates(check, bundle)
    _check_events(check, bundle)
    _check_parameters(check, bundle)
    _check_results(check, bundle)
    _check_verdict(check, bundle)
    return _shown(check)


def _shown(check: Check) -> Check:
    check.problems, check.notes = ([printable(text) for text in texts] for texts in (check.problems, check.notes))
    check.lines = [printable(text) for text in check.lines]
    return check


def check_seals(bundle: Bundle, allowed_signers: Path | None = None) -> Check:
    """Checks both manifests and their signatures, without computing anything again."""
    check = Check()
    _check_evidence(check, bundle)
    _check_signature(check, bundle, MANIFEST, "signature", allowed_signers)
    changes = altered_reports(bundle.path)
    if changes is None:
        check.lines.append(
            "reports    not sealed by themselves: none was rendered, or by a bench that did not do so yet"
        )
        if unsealed := unsealed_reports(bundle.path):
            check.problems.append(f"{REPORTS_MANIFEST}: missing, so that nothing seals {', '.join(unsealed)}")
    else:
        check.part("reports", "as rendered", [change.text for change in changes])
        _check_signature(check, bundle, REPORTS_MANIFEST, "signature", allowed_signers)
    return check


def _require_ours(bundle: Bundle) -> None:
    """Raises BenchError for an id that would lead a reader to another file."""
    run = bundle.run
    for name, told in (
        ("candidate.name", run.candidate.name),
        ("scenario.id", run.scenario.id),
        ("requirement.id", run.requirement.id),
    ):
        plain_id(told, f"{bundle.path}/run.json: {name}")


def _check_evidence(check: Check, bundle: Bundle) -> None:
    changes = [change.text for change in altered_evidence(bundle.path)]
    file = bundle.path / MANIFEST
    check.part(
        "evidence",
        f"{len(read_manifest(file))} files as {MANIFEST} lists them, its SHA-256 is {digest_of(file)}",
        changes,
    )


def _check_origin(check: Check, bundle: Bundle, challenge: str | None) -> None:
    """Checks folder, candidate and challenge: they must be those of the run that the bundle claims to be."""
    problems = folder_problems(bundle.path, bundle.run) + challenge_problems(bundle.run, challenge)
    try:
        problems += identity_problems(bundle.path, bundle.run)
    except BenchError as error:
        problems.append(str(error))
    except Exception as error:  # a forged document may raise any exception
        problems.append(f"the candidate's identity: cannot be compared ({type(error).__name__}: {error})")
    answered = bundle.run.challenge
    well = f"{bundle.run.run_id} of {bundle.run.candidate.name}, "
    check.part("run", well + (f"challenge {answered}" if answered else "without a challenge"), problems)


def _check_dates(check: Check, bundle: Bundle) -> None:
    problems = _told(check, "the dates", lambda: date_problems(bundle.path, bundle.run))
    if problems is not None:
        check.part("dates", "tools, drives, events and telemetry are of the run's time", problems)


def _check_events(check: Check, bundle: Bundle) -> None:
    problems = _told(check, "the events", lambda: event_problems(bundle.path, bundle.run))
    if problems is not None:
        check.part("events", "each is in the telemetry, too, and the verdict ends them", problems)


def _check_parameters(check: Check, bundle: Bundle) -> None:
    check.problems += (
        _told(check, "run.json: scenario.parameters", lambda: altered_parameters(bundle.path, bundle.run)) or []
    )


def _check_profiles(check: Check, bundle: Bundle, own: Own) -> None:
    try:
        profiles = compared(bundle.path, bundle.run, own)
    except BenchError as error:
        check.problems.append(str(error))
        return
    except Exception as error:
        check.problems.append(f"the profiles: cannot be compared with yours ({type(error).__name__}: {error})")
        return
    for profile in profiles:
        _check_profile(check, profile, own_suite=profile.kind == "scenario" and bundle.run.own_suite)


def _check_profile(check: Check, profile: Profile, own_suite: bool) -> None:
    check.problems += [f"{DIFFERENT}: {one.text}" for one in profile.differences]
    said = (
        f"{DIFFERENT} in {len(profile.differences)} field{'s' * (len(profile.differences) != 1)}"
        if profile.differences
        else "as yours"
    )
    if own_suite:
        said = "OWN SUITE, whose author chose the load: this run qualifies nobody"
    kind = "scenario" if profile.kind == "scenario" else "demands"
    check.lines.append(f"{kind:<10} {said}: {profile.kind} {profile.id}, SHA-256 {profile.sha256}")


def _check_signature(check: Check, bundle: Bundle, manifest: str, name: str, allowed_signers: Path | None) -> None:
    found = verified(bundle.path / manifest, allowed_signers, bundle.run.finished)
    check.lines.append(f"{name:<10} {found.text}")
    if manifest == MANIFEST:
        check.evidence = found.state
    if found.state is State.BAD or (allowed_signers is not None and found.state in UNTRUSTED):
        check.problems.append(f"{manifest}: {_complaint(found)}")


def _complaint(found: Signature) -> str:
    asked = ", and a trusted signature was asked for" if found.state is State.UNSIGNED else ""
    return f"{found.text}{asked}"


def _check_results(check: Check, bundle: Bundle) -> None:
    """Checks that the results follow from the output of the run's tools."""
    found = extract_again(bundle.path)
    check.part("results", f"extracted again: {', '.join(found.again) or 'none'}, as stored", found.problems)
    check.notes += found.notes


def _check_verdict(check: Check, bundle: Bundle) -> None:
    stored = _told(check, VERDICT, lambda: _stored_verdict(bundle))
    if stored is None:
        if plain_file(bundle.path, VERDICT) is None:
            check.problems.append(f"{bundle.path} has no verdict.json: the run did not finish")
        return
    problems = _derived_problems(bundle) + _column_problems(bundle)
    recomputed = _told(check, "verdict.json", lambda: judge_bundle(bundle.path))
    if recomputed is not None:
        check.part(
            "verdict",
            f"recomputed: {recomputed.outcome}, as stored",
            problems + [f"{VERDICT}: {one.text}" for one in differences(stored, recomputed)],
        )


def _stored_verdict(bundle: Bundle) -> Document | None:
    found = bundle.read(VERDICT)
    require_known(found, VERDICT)
    return found


def _told(check: Check, what: str, make: Callable[[], Made | None]) -> Made | None:
    """Returns the value of `make`; a document that cannot be read or judged is a problem of the bundle, whatever the exception."""
    try:
        return make()
    except BenchError as error:
        check.problems.append(str(error))
    except Exception as error:
        check.problems.append(f"{what}: cannot be computed from this bundle ({type(error).__name__}: {error})")
    return None


def _derived_problems(bundle: Bundle) -> list[str]:
    """Returns the documents that do not follow from the bundle's telemetry and results."""
    made, faults = derived.documents(bundle.path)
    problems = [
        f"{name}: differs from what the bundle's telemetry and results give"
        for name, document in made.items()
        if plain_file(bundle.path, name) and _read(bundle, name) != json.loads(to_json(document))
    ]
    return problems + [
        f"{fault.name}: cannot be computed again ({fault.reason})"
        for fault in faults
        if plain_file(bundle.path, fault.name)
    ]


def _column_problems(bundle: Bundle) -> list[str]:
    try:
        found = column_file.difference(bundle.path)
    except (BenchError, ValueError) as error:
        found = str(error)
    return [found] if found else []


def _read(bundle: Bundle, name: str) -> object:
    """Returns the document; None where it is missing or no JSON."""
    try:
        return bundle.read(name)
    except BenchError:
        return None


def _check_numbers(check: Check, bundle: Bundle) -> None:
    """Checks that every number of the reports follows from the evidence."""
    if plain_file(bundle.path, REPORT_DATA) is None:
        check.lines.append(f"numbers    not compared: there is no {REPORT_DATA}")
        return
    key = key_of(bundle.path / REPORTS_MANIFEST)
    argv = [
        sys.executable,
        "-m",
        "daq_bench.bench_report",
        "check",
        str(bundle.path),
        *(("--signer", key.text) if key else ()),
    ]
    done = LocalShell().run(argv, RENDER_S_MAX)
    if done.returncode != 0:
        said = done.stderr.strip() or "the renderer said nothing"
        check.part("numbers", "", [f"the report cannot be rendered again: {said[-500:]}"])
        return
    found = json.loads(done.stdout)
    check.part("numbers", f"recomputed: {found['summary']}", found["problems"])
    check.notes += found["notes"]
