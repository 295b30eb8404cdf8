"""Renders a bundle's reports and seals them: at a run's end, and again by `make report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError, RefusedError
from bench_model.provenance import MANIFEST, REPORTS, REPORTS_MANIFEST, key_of
from rig import signing
from rig.bundle import Bundle
from rig.connection import variables_of
from rig.sealing import altered_evidence, break_reports_seal, seal_evidence, seal_reports, sealed
from rig.settings import Layout
from rig.shell import LocalShell
from rig.signing import Signer, Signing

REPORT_S_MAX = 300.0


def signing_for(inventory: Path, candidate: str) -> Signing:
    """Who signs, and who is trusted, by the environment or the candidate's inventory. Raises BenchError."""
    told = variables_of(inventory, candidate, (signing.INVENTORY_KEY,)).get(signing.INVENTORY_KEY)
    return signing.chosen(told, inventory.parent, wanted=("key",))


def signing_of_run(bundle: Bundle, wanted: str) -> Signing:
    """`wanted` of them for a run that is over, perhaps of a candidate that this machine's inventory does not know."""
    request = bundle.run.get("request")
    asked = request.get("inventory") if isinstance(request, dict) else None
    inventory = Path(asked) if asked else Layout().inventory / "lab.yml"
    try:
        told: Any = variables_of(inventory, bundle.run["candidate"]["name"], (signing.INVENTORY_KEY,))
    except (BenchError, KeyError, TypeError):
        told = {}
    return signing.chosen(told.get(signing.INVENTORY_KEY), inventory.parent, wanted=(wanted,))


def render_and_seal(bundle: Path, signer: Signer | None = None) -> str | None:
    """Renders and seals the reports. Returns why they are not signed although a key was given; None otherwise.

    They say themselves by which key they are signed, so that one that fails only then makes them be rendered again."""
    _render(bundle, ["--signer", signer.key.text] if signer else [])
    try:
        seal_reports(bundle, signer)
    except RefusedError as error:
        _render(bundle, [])
        seal_reports(bundle)
        return f"the reports are not signed: {error}"
    return None


def report_again(bundle: Bundle, key: Path | None) -> list[str]:
    """`make report`: what the user is to be told. The evidence stays as the run left it; only the seal of the reports is renewed."""
    signer, path = Signer.of(key), bundle.path
    if not sealed(path):
        _render(path, [])
        return [f"warning: the bundle was never sealed ({MANIFEST} is missing), and neither are its reports"]
    changes = [change for change in altered_evidence(path) if change.name not in REPORTS]
    if changes:
        break_reports_seal(path)
        _render(path, ["--altered", str(len(changes))])
        told = ", ".join(change.text for change in changes)
        return [f"warning: the bundle was altered since its run ({told}); its reports say so and are not sealed"]
    before, evidence = key_of(path / REPORTS_MANIFEST), key_of(path / MANIFEST)
    # A bundle from before the reports had a seal of their own gets the evidence's anew, without them.
    seal_evidence(path, signer if evidence is None else None)
    problem = render_and_seal(path, signer)
    lines = [f"warning: {problem}"] if problem else []
    if before and not key_of(path / REPORTS_MANIFEST):
        lines.append(
            f"the reports were signed by {before.text}; rendered again without a key, they are signed no longer"
        )
    return lines


def _render(bundle: Path, options: list[str]) -> None:
    """The reports of `bundle`, rendered in a process of its own."""
    argv = [sys.executable, "-m", "bench_report", "render", str(bundle), *options]
    LocalShell().run(argv, timeout_s=REPORT_S_MAX).check("rendering the report")
