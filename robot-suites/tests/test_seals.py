"""A sealed bundle of the shape that a smoke run leaves: every change of any file is noticed, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import some_run
from test_signing import listed, make_key

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.provenance import NO_EVIDENCE, REPORTS, SEALS
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.check_bundle import check_bundle, check_seals
from daq_bench.rig.checking.sealing import altered_evidence, seal_evidence, seal_reports
from daq_bench.rig.checking.signing import Signer
from daq_bench.rig.cli import main

RUN = as_document(some_run(run_id="run-1", state="finished", finished_utc="2026-01-31T14:00:00.000Z"))
LOGS = ("provision-tuning", "restore-tuning", "verify-tuning-after", "verify-tuning-verified")
EVIDENCE = (
    "run.json", "events.jsonl", "verdict.json", "robot/log.html", "robot/output.xml", "robot/xunit.xml",
    *(f"facts/ansible-{name}{rest}" for name in LOGS for rest in (".log", "-variables.json")),
    *(f"facts/{name}.json" for name in ("clock", "host", "smart-before", "smart-after", "tuning", "tuning-after", "versions")),
    "profiles/lab.yml", "profiles/metrics.yml", "profiles/requirements/dune-snb.yml", "profiles/scenarios/dune-snb.yml",
    *(f"results/{name}.json" for name in ("block_scan", "cost", "dips", "identity", "snb_record", "telemetry_account", "throttling")),
    *(f"results/raw/fio-{2**power}.json" for power in range(12, 26)), "results/raw/minidaq-1.json", "results/raw/verify-1.json",
    "telemetry/agent.log", "telemetry/influx-counts.json", "telemetry/points.lp", "telemetry/summary.json", "telemetry/workload.lp",
)  # fmt: skip
EMPTY = "telemetry/agent.log"  # as the agent leaves it where it has nothing to say


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A sealed and signed bundle, and the file of its trusted key."""
    folder = tmp_path_factory.mktemp("sealed")
    root = folder / "run-1"
    for name in (*EVIDENCE, *REPORTS, *NO_EVIDENCE):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("" if name == EMPTY else f"content of {name}\n", encoding="utf-8")
    (root / "run.json").write_text(json.dumps(RUN), encoding="utf-8")
    key = make_key(folder, "lab")
    signer = Signer.of(key)
    seal_evidence(root, signer)
    seal_reports(root, signer)
    (folder / "allowed").write_text(listed(key), encoding="utf-8")
    return root, folder / "allowed"


@pytest.fixture
def bundle(tmp_path: Path, pattern: tuple[Path, Path]) -> Path:
    return Path(shutil.copytree(pattern[0], tmp_path / "run-1", symlinks=True))


def problems(bundle: Path, pattern: tuple[Path, Path]) -> list[str]:
    return check_seals(Bundle.open(bundle), pattern[1]).problems


def flip(file: Path) -> None:
    """One bit of the byte in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))


def test_an_untouched_bundle_is_intact_and_trusted(bundle: Path, pattern: tuple[Path, Path]) -> None:
    found = check_seals(Bundle.open(bundle), pattern[1])
    assert found.problems == []
    assert sum("signed by a trusted key as lab@example.org" in line for line in found.lines) == 2
    assert found.conclusion == "intact, and signed by a trusted key"


@pytest.mark.parametrize("name", [*(name for name in EVIDENCE if name not in (EMPTY, "run.json")), *REPORTS, *SEALS])
def test_one_flipped_bit_in_any_file_is_noticed(bundle: Path, pattern: tuple[Path, Path], name: str) -> None:
    flip(bundle / name)
    try:
        found = problems(bundle, pattern)
    except BenchError as error:  # an invalid manifest
        found = [str(error)]
    assert any(Path(name).name.removesuffix(".sig") in one for one in found), found


def test_a_flipped_bit_in_run_json_is_noticed_where_it_stays_json(bundle: Path, pattern: tuple[Path, Path]) -> None:
    file = bundle / "run.json"
    file.write_text(file.read_text(encoding="utf-8").replace("run-1", "run-0"), encoding="utf-8")
    assert problems(bundle, pattern) == ["run.json: altered since it was sealed"]


@pytest.mark.parametrize("name", sorted(NO_EVIDENCE))
def test_what_delivery_writes_after_the_run_is_no_evidence(bundle: Path, pattern: tuple[Path, Path], name: str) -> None:
    flip(bundle / name)
    assert problems(bundle, pattern) == []


@pytest.mark.parametrize(
    "name", ["results/new.json", "results/cursor.json", "telemetry/bmc/points.lp", "new", "facts/a\nb", "x\\n"]
)
def test_an_added_file_is_noticed_even_under_a_name_that_delivery_uses_elsewhere(
    bundle: Path, pattern: tuple[Path, Path], name: str
) -> None:
    (bundle / name).parent.mkdir(exist_ok=True)
    (bundle / name).write_text("{}", encoding="utf-8")
    assert problems(bundle, pattern) == [f"{name}: added since the run"]


def test_removed_and_renamed_files_are_noticed(bundle: Path, pattern: tuple[Path, Path]) -> None:
    (bundle / "results/dips.json").unlink()
    (bundle / "results/cost.json").rename(bundle / "results/costs.json")
    (bundle / "report.pdf").unlink()
    assert problems(bundle, pattern) == [
        "results/cost.json: missing", "results/costs.json: added since the run", "results/dips.json: missing",
        "report.pdf: missing",
    ]  # fmt: skip


def test_a_link_is_noticed_though_it_leads_to_the_same_content(bundle: Path, pattern: tuple[Path, Path]) -> None:
    moved = bundle.parent / "elsewhere.json"
    (bundle / "results/cost.json").rename(moved)
    (bundle / "results/cost.json").symlink_to(moved)
    (bundle / "facts/folder").symlink_to(bundle.parent, target_is_directory=True)
    found = problems(bundle, pattern)
    assert found == ["facts/folder: a link or special file", "results/cost.json: a link or special file"]


@pytest.mark.parametrize("name", SEALS)
def test_a_seal_or_signature_that_is_taken_away_is_noticed(bundle: Path, pattern: tuple[Path, Path], name: str) -> None:
    (bundle / name).unlink()
    try:
        found = problems(bundle, pattern)
    except BenchError as error:
        found = [str(error)]
    assert any(name.removesuffix(".sig") in one for one in found), found


def test_a_new_seal_over_an_altered_bundle_is_no_longer_signed(bundle: Path, pattern: tuple[Path, Path]) -> None:
    """A forger of the manifest cannot forge the signature."""
    flip(bundle / "results/cost.json")
    seal_evidence(bundle)
    seal_reports(bundle)
    assert altered_evidence(bundle) == []
    found = problems(bundle, pattern)
    assert len(found) == 2 and all(
        "unsigned: nobody vouches for it, and a trusted signature was asked for" in one for one in found
    )
    unasked = check_seals(Bundle.open(bundle))  # without anybody to trust, it is as good as any
    assert unasked.problems == [] and "UNSIGNED: nobody vouches for it" in unasked.conclusion
    assert "intact" not in unasked.conclusion


def test_a_signature_of_another_bundle_does_not_fit(bundle: Path, pattern: tuple[Path, Path]) -> None:
    kept = (bundle / "MANIFEST.sha256.sig").read_bytes()
    flip(bundle / "results/cost.json")
    seal_evidence(bundle)
    (bundle / "MANIFEST.sha256.sig").write_bytes(kept)
    assert any("the signature is bad" in one for one in problems(bundle, pattern))
    assert any("the signature is bad" in one for one in check_seals(Bundle.open(bundle)).problems)


def test_sha256sum_reads_the_manifests(bundle: Path) -> None:
    import subprocess

    for name in ("MANIFEST.sha256", "REPORTS.sha256"):
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", name], cwd=bundle, check=True)


def test_no_key_enters_the_bundle(bundle: Path) -> None:
    content = b"".join(file.read_bytes() for file in bundle.rglob("*") if file.is_file())
    assert b"PRIVATE KEY" not in content and str(bundle.parent).encode() not in content


FOREIGN = {
    "empty": ({}, "is no run bundle (run.json"),
    "cut": ({"run.json": '{"schema_version": 1, "ru'}, "run.json is not valid JSON ("),
    "a list": ({"run.json": "[]"}, "Expected `object`, got `array`"),
    "another schema": (
        {"run.json": json.dumps({**RUN, "schema_version": 7})},
        "a newer bench wrote it (schema_version 7;",
    ),
    "another tool": ({"run.json": '{"jobs": []}', "index.html": ""}, "unknown field `jobs`"),
    "never sealed": ({"run.json": json.dumps(RUN)}, "has no MANIFEST.sha256: the run did not finish"),
    "empty manifest": ({"run.json": json.dumps(RUN), "MANIFEST.sha256": ""}, "is empty or cut short"),
    "foreign manifest": ({"run.json": json.dumps(RUN), "MANIFEST.sha256": "hello\n"}, "is no line of `sha256sum`"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_bundle_of_this_bench_is_refused_with_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    files, message = FOREIGN[name]
    for file, text in files.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    assert main(["check-bundle", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1 and message in said.err
    assert said.out == ""


@pytest.mark.parametrize("name", ["verdict.json", "results/cost.json", "facts/tuning.json"])
def test_a_sealed_bundle_with_a_broken_document_is_named(bundle: Path, name: str) -> None:
    (bundle / "report-data.json").unlink()
    (bundle / name).write_text('{"outcome": ', encoding="utf-8")
    seal_evidence(bundle)
    seal_reports(bundle)
    found = check_bundle(bundle)
    assert found.problems and all("\n" not in one for one in found.problems)
