"""Renders a bundle's reports and seals them: at a run's end, and again by `daq-bench report`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.bundle.files import require_sound
from daq_bench.bench_model.bundle.provenance import MANIFEST, REPORTS, REPORTS_MANIFEST, key_of, read_manifest
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.candidate.connection import variables_of
from daq_bench.rig.checking import signing
from daq_bench.rig.checking.agreement import folder_problems
from daq_bench.rig.checking.own_profiles import DIFFERENT, Own, compared
from daq_bench.rig.checking.sealing import altered_evidence, break_reports_seal, seal_evidence, seal_reports, sealed
from daq_bench.rig.checking.signing import Signature, Signer, Signing, State, verified

REPORT_S_MAX = 300.0


def signing_for(inventory: Path, candidate: str) -> Signing:
    """Returns the signing key and the trusted keys, from the environment or the candidate's inventory. Raises BenchError."""
    told = variables_of(inventory, candidate, (signing.INVENTORY_KEY,)).get(signing.INVENTORY_KEY)
    return signing.chosen(told, inventory.parent, wanted=("key",))


def render_and_seal(bundle: Path, signer: Signer | None = None, different: Sequence[str] = ()) -> str | None:
    """Renders and seals the reports. Returns why they are not signed although a key was given; None otherwise.

    The reports name the key that signs them, so that a key that fails afterwards causes a second rendering. `different`: the
    fields of the bundle's profiles that are not those of the renderer, for every page."""
    said = [word for one in different for word in ("--different", one)]
    _render(bundle, [*(("--signer", signer.key.text) if signer else ()), *said])
    try:
        seal_reports(bundle, signer)
    except RefusedError as error:
        _render(bundle, said)
        seal_reports(bundle)
        return f"the reports are not signed: {error}"
    return None


def report_again(
    bundle: Bundle, key: Path | None, allowed_signers: Path | None = None, own: Own | None = None
) -> list[str]:
    """`daq-bench report`: returns the message for the user. The evidence stays as the run left it; only the reports' seal is renewed.

    `key` signs reports only where the evidence verified: unaltered, and signed by a trusted key or by `key` itself. The evidence is
    never signed here, and a report by a laboratory's key on evidence that nobody vouches for would vouch for it."""
    signer, path = Signer.of(key), bundle.path
    require_sound(path)
    if not sealed(path):
        _render(path, [])
        return [f"warning: the bundle was never sealed ({MANIFEST} is missing), and neither are its reports"]
    changes = [change for change in altered_evidence(path) if change.name not in REPORTS]
    if changes:
        break_reports_seal(path)
        _render(path, ["--altered", str(len(changes))])
        told = ", ".join(change.text for change in changes)
        return [f"warning: the bundle was altered since its run ({told}); its reports say so and are not sealed"]
    evidence = verified(path / MANIFEST, allowed_signers, bundle.run.finished)
    if evidence.state is State.BAD:
        raise RefusedError(
            f"{path / MANIFEST}: {evidence.text}. No report is rendered on it; use a sound copy of the bundle"
        )
    lines = [] if signer is None or _vouched(evidence, signer) else [_unsigned(evidence)]
    return [*lines, *_renewed(bundle, None if lines else signer, evidence, own or Own())]


def _renewed(bundle: Bundle, signer: Signer | None, evidence: Signature, own: Own) -> list[str]:
    path, before = bundle.path, key_of(bundle.path / REPORTS_MANIFEST)
    _split_seal(path, evidence)
    different, lines = _different(bundle, own)
    lines += [f"warning: {one}" for one in folder_problems(path, bundle.run)]
    if problem := render_and_seal(path, signer, different):
        lines.append(f"warning: {problem}")
    if before and not key_of(path / REPORTS_MANIFEST):
        lines.append(
            f"the reports were signed by {before.text}; rendered again without a key, they are signed no longer"
        )
    return lines


def _vouched(evidence: Signature, signer: Signer) -> bool:
    return evidence.state is State.TRUSTED or (evidence.state is State.UNKNOWN and evidence.key == signer.key)


def _unsigned(evidence: Signature) -> str:
    return (
        f"warning: the reports are not signed, because no key that is trusted here vouches for the evidence ({evidence.text}). "
        "docs/provenance.md says how a laboratory signs a run afterwards"
    )


def _split_seal(path: Path, evidence: Signature) -> None:
    """Renews the evidence's seal, without the reports, in a bundle from before the reports had a seal of their own."""
    if set(read_manifest(path / MANIFEST)).isdisjoint(REPORTS):
        return
    if evidence.state is not State.UNSIGNED:
        raise RefusedError(
            f"{path / MANIFEST}: was signed with its reports, which cannot be rendered again without breaking it"
        )
    seal_evidence(path)


def _different(bundle: Bundle, own: Own) -> tuple[list[str], list[str]]:
    """Returns the fields of the bundle's profiles that are not the checker's, and the lines that say so."""
    try:
        found = [one for profile in compared(bundle.path, bundle.run, own) for one in profile.differences]
    except BenchError as error:
        return ["profiles: cannot be read"], [f"warning: the profiles cannot be compared with yours: {error}"]
    return [one.where for one in found], [f"warning: {DIFFERENT}: {one.text}" for one in found]


def _render(bundle: Path, options: list[str]) -> None:
    """Renders the reports of `bundle` in a process of its own. Raises BenchError with its words."""
    argv = [sys.executable, "-m", "daq_bench.bench_report", "render", str(bundle), *options]
    done = LocalShell().run(argv, timeout_s=REPORT_S_MAX)
    *_, last = ["", *done.stderr.strip().splitlines()]
    if done.returncode == 2 and last.startswith("error: "):  # in words for people already
        raise BenchError(f"no report was rendered: {last.removeprefix('error: ')}")
    done.check("rendering the report")
