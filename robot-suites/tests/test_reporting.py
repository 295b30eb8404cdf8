"""`daq-bench report`: what it renews, what it leaves, and what it says when a signature is lost.

The renderer is replaced: its pages take seconds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_seals import RUN
from test_signing import listed, make_key

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.bundle.files import survey
from daq_bench.bench_model.bundle.provenance import (
    MANIFEST,
    REPORTS,
    REPORTS_MANIFEST,
    key_of,
    manifest_of,
    read_manifest,
)
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking import reporting
from daq_bench.rig.checking.check_bundle import check_seals
from daq_bench.rig.checking.reporting import render_and_seal, report_again
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.rig.checking.signing import Signer

PROFILES = ("scenarios/dune-snb.yml", "requirements/dune-snb.yml", "metrics.yml")


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The options of every rendering, which writes them into the reports."""
    calls: list[list[str]] = []

    def render(bundle: Path, options: list[str]) -> None:
        calls.append(options)
        for name in REPORTS:
            (bundle / name).write_text(f"{name} {options} {len(calls)}", encoding="utf-8")

    monkeypatch.setattr(reporting, "_render", render)
    return calls


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    root = tmp_path / "run-1"
    (root / "results").mkdir(parents=True)
    (root / "results" / "cost.json").write_text("{}", encoding="utf-8")
    named = {part: {**RUN[part], "id": "dune-snb"} for part in ("scenario", "requirement")}
    (root / "run.json").write_text(json.dumps(RUN | named), encoding="utf-8")
    for name in PROFILES:
        (root / "profiles" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Layout().inventory / name, root / "profiles" / name)
    return Bundle.open(root)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path, "lab")


def test_rendered_again_without_the_key_the_reports_say_that_they_are_signed_no_longer(
    bundle: Bundle, key: Path, rendered: list[list[str]]
) -> None:
    signer = Signer.of(key)
    assert signer is not None
    seal_evidence(bundle.path, signer)
    assert render_and_seal(bundle.path, signer) is None
    assert rendered == [["--signer", signer.key.text]]
    assert key_of(bundle.path / REPORTS_MANIFEST) == key_of(bundle.path / MANIFEST) == signer.key
    lines = report_again(bundle, None)
    assert rendered[1] == []
    assert lines == [
        f"the reports were signed by {signer.key.text}; rendered again without a key, they are signed no longer"
    ]
    assert key_of(bundle.path / REPORTS_MANIFEST) is None
    assert key_of(bundle.path / MANIFEST) == signer.key  # the evidence is what it was
    assert check_seals(bundle).problems == []


def test_a_key_that_comes_later_signs_neither_evidence_nor_reports(
    bundle: Bundle, key: Path, rendered: list[list[str]]
) -> None:
    """A forger must not get the laboratory's signature on a bundle by asking for a report."""
    seal_evidence(bundle.path)
    before = (bundle.path / MANIFEST).read_bytes()
    (warning,) = report_again(bundle, key)
    assert "no key that is trusted here vouches for the evidence (unsigned: nobody vouches for it)" in warning
    assert (bundle.path / MANIFEST).read_bytes() == before and rendered == [[]]
    assert key_of(bundle.path / MANIFEST) is None and key_of(bundle.path / REPORTS_MANIFEST) is None
    assert check_seals(bundle).problems == []


@pytest.mark.parametrize("trusted", [True, False])
def test_reports_on_anothers_evidence_are_signed_only_where_that_key_is_trusted(
    bundle: Bundle, key: Path, tmp_path: Path, rendered: list[list[str]], trusted: bool
) -> None:
    other = make_key(tmp_path, "other")
    signers = tmp_path / "allowed"
    signers.write_text(listed(other if trusted else key), encoding="utf-8")
    seal_evidence(bundle.path, Signer.of(other))
    lines = report_again(bundle, key, signers)
    assert (lines == []) is trusted
    assert (key_of(bundle.path / REPORTS_MANIFEST) is not None) is trusted


def test_the_laboratorys_own_key_vouches_for_its_own_evidence(
    bundle: Bundle, key: Path, rendered: list[list[str]]
) -> None:
    seal_evidence(bundle.path, Signer.of(key))
    assert report_again(bundle, key) == []
    assert key_of(bundle.path / REPORTS_MANIFEST) == key_of(bundle.path / MANIFEST) is not None


def test_no_report_is_rendered_under_a_bad_signature(bundle: Bundle, key: Path, rendered: list[list[str]]) -> None:
    seal_evidence(bundle.path, Signer.of(key))
    kept = (bundle.path / f"{MANIFEST}.sig").read_bytes()
    (bundle.path / "results" / "cost.json").write_text("[]", encoding="utf-8")
    seal_evidence(bundle.path)
    (bundle.path / f"{MANIFEST}.sig").write_bytes(kept)
    with pytest.raises(RefusedError, match="the signature is bad"):
        report_again(bundle, key)
    assert rendered == []


def test_a_report_on_loosened_profiles_says_so_in_every_field(bundle: Bundle, rendered: list[list[str]]) -> None:
    file = bundle.path / "profiles/requirements/dune-snb.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("severity: mandatory", "severity: desirable", 1), encoding="utf-8")
    seal_evidence(bundle.path)
    (line,) = report_again(bundle, None)
    assert line.startswith("warning: DIFFERENT FROM YOURS: requirement dune-snb: requirements.SNB-")
    assert rendered[0][0] == "--different" and rendered[0][1].endswith(".severity")


def test_an_altered_bundle_is_never_sealed_or_signed_again(
    bundle: Bundle, key: Path, rendered: list[list[str]]
) -> None:
    seal_evidence(bundle.path)
    report_again(bundle, key)
    (bundle.path / "results" / "cost.json").write_text("[]", encoding="utf-8")
    (warning,) = report_again(bundle, key)
    assert "results/cost.json: altered since it was sealed" in warning
    assert rendered[-1] == ["--altered", "1"]
    assert not (bundle.path / REPORTS_MANIFEST).exists() and not (bundle.path / f"{REPORTS_MANIFEST}.sig").exists()
    assert check_seals(bundle).problems == [
        "results/cost.json: altered since it was sealed",
        f"{REPORTS_MANIFEST}: missing, so that nothing seals {', '.join(REPORTS)}",
    ]


def test_a_bundle_that_was_never_sealed_is_not_sealed_by_a_report(bundle: Bundle, rendered: list[list[str]]) -> None:
    (warning,) = report_again(bundle, None)
    assert "never sealed" in warning and not (bundle.path / MANIFEST).exists()


def test_a_bundle_with_one_seal_gets_two(bundle: Bundle, rendered: list[list[str]]) -> None:
    for name in REPORTS[:2]:
        (bundle.path / name).write_text("old", encoding="utf-8")
    (bundle.path / MANIFEST).write_bytes(manifest_of(bundle.path, list(survey(bundle.path).files)))
    assert check_seals(bundle).problems == []
    (bundle.path / "report.pdf").write_text("other", encoding="utf-8")
    assert check_seals(bundle).problems == ["report.pdf: altered since it was sealed"]
    assert report_again(bundle, None) == []
    evidence = {"run.json", "results/cost.json", *(f"profiles/{name}" for name in PROFILES)}
    assert set(read_manifest(bundle.path / MANIFEST)) == evidence
    assert set(read_manifest(bundle.path / REPORTS_MANIFEST)) == {*REPORTS, MANIFEST}


def test_a_key_that_fails_at_the_end_leaves_reports_that_say_unsigned(
    bundle: Bundle, key: Path, rendered: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = Signer.of(key)
    seal_evidence(bundle.path)
    key.unlink()
    Path(f"{key}.pub").unlink()
    problem = render_and_seal(bundle.path, signer)
    assert problem is not None and problem.startswith("the reports are not signed: SIGN_KEY: ssh-keygen cannot sign")
    assert rendered[-1] == [] and key_of(bundle.path / REPORTS_MANIFEST) is None
    assert check_seals(bundle).problems == []


def test_a_key_that_cannot_sign_stops_before_anything_is_rendered(
    bundle: Bundle, tmp_path: Path, rendered: list[list[str]]
) -> None:
    seal_evidence(bundle.path)
    broken = tmp_path / "no-key"
    broken.write_text("not a key", encoding="utf-8")
    with pytest.raises(RefusedError, match="cannot sign with"):
        report_again(bundle, broken)
    assert rendered == []
