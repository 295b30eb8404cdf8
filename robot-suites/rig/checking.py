"""`make check-bundle`: is a bundle what its run left, who vouches for it, and does everything that it states follow from its evidence?

Nothing outside the bundle is asked but the renderer of this checkout and the file of trusted keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bench_model import column_file, derived
from bench_model.errors import BenchError
from bench_model.provenance import MANIFEST, REPORT_DATA, REPORTS_MANIFEST, digest_of, key_of, read_manifest
from rig.bundle import Bundle, to_json
from rig.judging import judge_bundle
from rig.sealing import altered_evidence, altered_reports, unsealed_reports
from rig.shell import LocalShell
from rig.signing import Signature, State, verified

MOST_FIELDS = 4  # of one requirement in a complaint
RENDER_S_MAX = 1200.0
SCHEMA_VERSION = 1  # of run.json
NAMED = (("candidate", "name"), ("scenario", "id"), ("requirement", "id"))
UNTRUSTED = (State.UNSIGNED, State.UNKNOWN, State.NOT_VALID)


@dataclass
class Check:
    """`lines` say how each part stands, `problems` what is wrong, `notes` what could not be compared, and why."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def part(self, name: str, well: str, problems: list[str]) -> None:
        self.problems += problems
        count = f"{len(problems)} difference{'s' if len(problems) != 1 else ''}"
        self.lines.append(f"{name:<10} {well if not problems else count}")


def check_bundle(path: Path, allowed_signers: Path | None = None) -> Check:
    """Checks the bundle at `path`. With `allowed_signers` only what a trusted key signed is well. Raises BenchError for what is none."""
    bundle = Bundle.open(path)
    _require_ours(bundle)
    check = check_seals(bundle, allowed_signers)
    _check_verdict(check, bundle)
    _check_numbers(check, bundle)
    return check


def check_seals(bundle: Bundle, allowed_signers: Path | None = None) -> Check:
    """Both manifests and their signatures, without computing anything again."""
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
        check.part("reports", "as they were rendered", [change.text for change in changes])
        _check_signature(check, bundle, REPORTS_MANIFEST, "signature", allowed_signers)
    return check


def _require_ours(bundle: Bundle) -> None:
    """Another tool's folder may hold a run.json, too. Raises BenchError that names what is wrong with it."""
    version = bundle.run.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise BenchError(
            f"{bundle.path}/run.json: schema_version is {version!r}; this bench knows {SCHEMA_VERSION}. Use the bench that made it"
        )
    for name, key in NAMED:
        if not isinstance(part := bundle.run.get(name), dict) or not isinstance(part.get(key), str):
            raise BenchError(
                f"{bundle.path}/run.json has no {name}.{key}, so that it is no run of this bench. Name one with RUN=runs/<run-id>"
            )


def _check_evidence(check: Check, bundle: Bundle) -> None:
    changes = [change.text for change in altered_evidence(bundle.path)]
    file = bundle.path / MANIFEST
    check.part(
        "evidence", f"intact: {len(read_manifest(file))} files, {MANIFEST} has SHA-256 {digest_of(file)}", changes
    )


def _check_signature(check: Check, bundle: Bundle, manifest: str, name: str, allowed_signers: Path | None) -> None:
    finished = bundle.run.get("finished_utc")
    when = datetime.fromisoformat(finished) if finished else None
    found = verified(bundle.path / manifest, allowed_signers, when)
    check.lines.append(f"{name:<10} {found.text}")
    if found.state is State.BAD or (allowed_signers is not None and found.state in UNTRUSTED):
        check.problems.append(f"{manifest}: {_complaint(found)}")


def _complaint(found: Signature) -> str:
    asked = ", and a trusted signature was asked for" if found.state is State.UNSIGNED else ""
    return f"{found.text}{asked}"


def _check_verdict(check: Check, bundle: Bundle) -> None:
    stored = _told(check, "verdict.json", lambda: bundle.read("verdict.json"))
    if stored is None:
        check.problems.append(f"{bundle.path} has no verdict.json: the run did not finish")
        return
    problems = _derived_problems(bundle) + _column_problems(bundle)
    recomputed = _told(check, "verdict.json", lambda: judge_bundle(bundle.path))
    if recomputed is not None:
        check.part(
            "verdict",
            f"recomputed: {recomputed['outcome']}, as stored",
            problems + _verdict_problems(stored, recomputed),
        )


def _told(check: Check, what: str, make: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """What `make` gives; a document that cannot be read or judged is a problem of the bundle, whatever it trips over."""
    try:
        return make()
    except BenchError as error:
        check.problems.append(str(error))
    except Exception as error:
        check.problems.append(f"{what}: cannot be computed from this bundle ({type(error).__name__}: {error})")
    return None


def _derived_problems(bundle: Bundle) -> list[str]:
    """Documents that do not follow from the bundle's telemetry and results."""
    made, faults = derived.documents(bundle.path)
    problems = [
        f"{name}: differs from what the bundle's telemetry and results give"
        for name, document in made.items()
        if (bundle.path / name).exists() and _read(bundle, name) != json.loads(to_json(document))
    ]
    return problems + [
        f"{fault.name}: cannot be computed again ({fault.reason})"
        for fault in faults
        if (bundle.path / fault.name).exists()
    ]


def _column_problems(bundle: Bundle) -> list[str]:
    try:
        found = column_file.difference(bundle.path)
    except (BenchError, ValueError) as error:
        found = str(error)
    return [found] if found else []


def _read(bundle: Bundle, name: str) -> object:
    """A document that is no JSON equals nothing."""
    try:
        return bundle.read(name)
    except ValueError:
        return None


def _check_numbers(check: Check, bundle: Bundle) -> None:
    """Does every number of the reports follow from the evidence?"""
    if not (bundle.path / REPORT_DATA).exists():
        check.lines.append(f"numbers    not compared: there is no {REPORT_DATA}")
        return
    key = key_of(bundle.path / REPORTS_MANIFEST)
    argv = [sys.executable, "-m", "bench_report", "check", str(bundle.path), *(("--signer", key.text) if key else ())]
    done = LocalShell().run(argv, RENDER_S_MAX)
    if done.returncode != 0:
        said = done.stderr.strip() or "the renderer said nothing"
        check.part("numbers", "", [f"the report cannot be rendered again: {said[-500:]}"])
        return
    found = json.loads(done.stdout)
    check.part("numbers", f"recomputed: {found['summary']}", found["problems"])
    check.notes += found["notes"]


def _verdict_problems(stored: dict[str, Any], recomputed: dict[str, Any]) -> list[str]:
    """One line per field that differs; of the requirements one per requirement, with the fields that do."""
    problems = [
        f"verdict.json: {key} is {stored.get(key)!r}, recomputed {value!r}"
        for key, value in recomputed.items()
        if key != "requirements" and stored.get(key) != value
    ]
    before = {one["id"]: one for one in stored.get("requirements", [])}
    for one in recomputed["requirements"]:
        was = before.get(one["id"], {})
        changed = [f"{key} was {was.get(key)!r}, now {value!r}" for key, value in one.items() if was.get(key) != value]
        if changed:
            problems.append(f"verdict.json: {one['id']}: {'; '.join(changed[:MOST_FIELDS])}")
    gone = before.keys() - {one["id"] for one in recomputed["requirements"]}
    return problems + [f"verdict.json: {name} is no requirement of the bundle's profile" for name in sorted(gone)]
