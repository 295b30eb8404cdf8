"""A bundle from somebody who means harm: it gives data, and neither commands, nor files to open, nor anybody to trust."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run
from ruamel.yaml import YAML
from test_bundle_files import within
from test_signing import listed, make_key

from daq_bench.bench_model.bundle.provenance import MANIFEST, REPORTS_MANIFEST, key_of
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.reporting_bench import report_bundle
from daq_bench.rig.base.bundle import Bundle, to_json
from daq_bench.rig.base.settings import Layout, Request
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.checking import reporting
from daq_bench.rig.checking.agreement import challenge, challenge_problems
from daq_bench.rig.checking.check_bundle import Check, check_bundle
from daq_bench.rig.checking.own_profiles import Own
from daq_bench.rig.checking.sealing import seal_evidence, seal_reports
from daq_bench.rig.checking.signing import Signer
from daq_bench.rig.cli import main
from daq_bench.rig.run.record import asked_for

NAME = "20260131T120000Z-synthetic-report"
BOUND_S = 120  # a shared machine needs half a minute for a report
SCENARIO = f"profiles/scenarios/{report_bundle.SCENARIO['id']}.yml"
REQUIREMENT = f"profiles/requirements/{report_bundle.REQUIREMENT}.yml"


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_bundle.make(tmp_path_factory.mktemp("pattern") / NAME, 2000, columns=False)


@pytest.fixture
def bundle(tmp_path: Path, pattern: Path) -> Path:
    return Path(shutil.copytree(pattern, tmp_path / NAME))


@pytest.fixture
def own(tmp_path: Path, pattern: Path) -> Own:
    """The checker's copy of the scenario, which no checkout has."""
    file = tmp_path / "own-scenario.yml"
    shutil.copyfile(pattern / SCENARIO, file)
    return Own(scenario=file)


def document(bundle: Path, name: str) -> Any:
    return json.loads((bundle / name).read_text(encoding="utf-8"))


def store(bundle: Path, name: str, content: object) -> None:
    (bundle / name).write_text(to_json(content), encoding="utf-8")
    seal_evidence(bundle)


def checked(bundle: Path, own: Own, **more: Any) -> Check:
    return check_bundle(bundle, own=own, **more)


def test_an_unaltered_bundle_agrees_with_itself_and_with_the_checkers_profiles(bundle: Path, own: Own) -> None:
    found = checked(bundle, own)
    assert found.problems == []
    assert sum("as yours" in line for line in found.lines) == 2
    assert "UNSIGNED: nobody vouches for it" in found.conclusion and "intact" not in found.conclusion


EVENTS, WORKLOAD = "events.jsonl", "telemetry/workload.lp"


@pytest.mark.parametrize("name", [EVENTS, WORKLOAD])
@pytest.mark.parametrize(
    "altered",
    [
        lambda lines: [b"".join(lines)[: sum(map(len, lines)) * 8 // 10]],
        lambda lines: lines[: len(lines) * 8 // 10],
        lambda lines: lines[:-1],
        lambda lines: lines[1:],
        lambda lines: [*lines[:2], *lines[1:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [b"".join(lines)[:-1]],
        lambda lines: [],
    ],
    ids=[
        "80 % of the bytes", "80 % of the lines", "without the last", "without the first", "one twice", "one less", "no line end", "empty",
    ],
)  # fmt: skip
def test_events_that_break_off_or_lack_a_line_are_named_though_sealed_anew(
    bundle: Path, own: Own, name: str, altered: Callable[[list[bytes]], list[bytes]]
) -> None:
    file, seal = bundle / name, bundle / MANIFEST
    file.write_bytes(b"".join(altered(file.read_bytes().splitlines(keepends=True))))
    seal.unlink()
    seal_evidence(bundle)
    told = "\n".join(checked(bundle, own).problems)
    assert f"{EVENTS}: does not hold the same events as {WORKLOAD}, such as bench_event,kind=" in told, told


def test_events_that_lack_their_end_in_both_accounts_are_named(bundle: Path, own: Own) -> None:
    for name in (EVENTS, WORKLOAD):
        lines = (bundle / name).read_bytes().splitlines(keepends=True)
        (bundle / name).write_bytes(b"".join(lines[:-1]))
    (bundle / MANIFEST).unlink()
    seal_evidence(bundle)
    assert checked(bundle, own).problems == [
        "events.jsonl: its last event is not the verdict of verdict.json, but busy: 'made of nothing': it breaks off"
    ]


def planted(node: Any, text: str, spared: tuple[str, ...] = ()) -> Any:
    """The same document with `text` behind or instead of every string, but below the keys that are `spared`."""
    if isinstance(node, dict):
        return {key: one if key in spared else planted(one, text, spared) for key, one in node.items()}
    if isinstance(node, list):
        return [planted(one, text, spared) for one in node]
    return text if isinstance(node, str) or node is None else node


# Fields that a reader needs to go on: with all strings replaced, it stops at the first.
NEEDED = (
    "id", "run_id", "name", "state", "started_utc", "finished_utc", "kind", "scenario", "requirement", "ansible_connection", "size_bytes",
    "transient_buffer", "tuning", "demand", "telemetry", "git", "schema_version", "scaled_down", "state_reason", "directory",
)  # fmt: skip


@pytest.mark.parametrize("signers", [False, True])
@pytest.mark.parametrize("spared", [(), NEEDED], ids=["every string", "all but what a reader needs"])
def test_no_string_of_a_bundle_is_ever_a_command(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spared: tuple[str, ...], signers: bool
) -> None:
    witness = tmp_path / "executed"
    text = f"{{{{ lookup('pipe', 'touch {witness}') }}}}"
    lab = YAML(typ="safe").load((bundle / "profiles/lab.yml").read_text(encoding="utf-8"))
    host = lab["all"]["children"]["candidates"]["hosts"][report_bundle.CANDIDATE]
    host["bench_signing"] = {"key": text, "allowed_signers": text}
    host |= {"ansible_host": text, "ansible_connection": "local"}
    planted_lab = json.dumps(planted(lab, text, spared))
    (bundle / "profiles/lab.yml").write_text(planted_lab, encoding="utf-8")
    run = planted(document(bundle, "run.json"), text, spared)
    asked = planted(as_document(asked_for(Request())), text) | {"inventory": str(bundle / "profiles/lab.yml")}
    store(bundle, "run.json", run | {"request": asked})
    if signers:
        (tmp_path / "allowed").write_text(listed(make_key(tmp_path, "lab")), encoding="utf-8")
        monkeypatch.setenv("ALLOWED_SIGNERS", str(tmp_path / "allowed"))
    for command in ("check-bundle", "judge", "report") if spared and not signers else ("check-bundle", "judge"):
        main([command, str(bundle)])
        assert not witness.exists(), command
    subprocess.run(["touch", str(witness)], check=True)  # the test looks for a file that the command would have made
    assert witness.exists()


def test_a_bundle_names_neither_its_own_signers_nor_the_checkers_key(
    bundle: Path, own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forger, lab = make_key(tmp_path, "forger"), make_key(tmp_path, "lab")
    (tmp_path / "allowed").write_text(listed(forger), encoding="utf-8")
    signing = {"key": str(lab), "allowed_signers": str(tmp_path / "allowed")}
    entry = {"ansible_connection": "local", "bench_signing": signing}
    inventory = {"all": {"hosts": {report_bundle.CANDIDATE: entry}, "vars": {"bench_signing": signing}}}
    (tmp_path / "lab.yml").write_text(json.dumps(inventory), encoding="utf-8")
    shutil.copyfile(tmp_path / "lab.yml", bundle / "lab.yml")
    store(bundle, "run.json", document(bundle, "run.json") | {"request": {"inventory": str(tmp_path / "lab.yml")}})
    seal_evidence(bundle, Signer.of(forger))
    assert main(["check-bundle", str(bundle), "--scenario", str(own.scenario)]) == 0
    said = capsys.readouterr().out
    assert "by a key that nobody here vouches for" in said and "NOBODY HERE VOUCHES" in said and "intact" not in said
    monkeypatch.setattr(reporting, "_render", lambda *_: None)
    main(["report", str(bundle)])
    assert key_of(bundle / REPORTS_MANIFEST) is None
    # The same file, named by the checker, does count: then only the reports, which nobody signed, are amiss.
    words = ["check-bundle", str(bundle), "--scenario", str(own.scenario), "--inventory", str(tmp_path / "lab.yml")]
    assert main(words) == 1
    assert "signed by a trusted key" in capsys.readouterr().out


ODD: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a link to a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to itself": lambda file: file.symlink_to(file.name),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "name", ["MANIFEST.sha256.sig", "telemetry/points.lp", "verdict.json", "profiles/metrics.yml", "run.json"]
)
def test_pipes_devices_and_links_end_every_command_with_a_message(
    bundle: Path, odd: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle / name).unlink(missing_ok=True)
    ODD[odd](bundle / name)
    for command in ("check-bundle", "judge", "report"):
        with within(BOUND_S):
            assert main([command, str(bundle)]) == 2
        said = capsys.readouterr()
        assert said.err.startswith("error: ") and Path(name).name in said.err, (command, said.err)


@pytest.mark.parametrize("name", ["results/x.json", "facts/tuning.json", "run.json", "verdict.json"])
@pytest.mark.parametrize("text", ['{"x": NaN}', '{"x": 1e400}', "[" * 100_000, '{"x": 1, "x": 2}', "\ufeff{}"])
def test_a_document_that_is_no_json_helps_nobody(
    bundle: Path, own: Own, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle / name).write_text(text, encoding="utf-8")
    seal_evidence(bundle)
    assert main(["check-bundle", str(bundle), "--scenario", str(own.scenario)]) != 0
    assert Path(name).name in capsys.readouterr().err
    if name != "verdict.json":
        assert main(["judge", str(bundle)]) == 2
        assert Path(name).name in capsys.readouterr().err


LOOSENED: dict[str, tuple[str, Callable[[str], str], str]] = {
    "a bound": (REQUIREMENT, lambda text: text.replace("bound: 0", "bound: 7", 1), "requirements.SNB-"),
    "a severity": (REQUIREMENT, lambda text: text.replace("mandatory", "desirable", 1), ".severity is desirable"),
    "a condition": (
        REQUIREMENT,
        lambda text: text.replace("target_kinds: [", "target_kinds: [scratch-file, "),
        "conditions",
    ),
    "a shorter scenario": (
        SCENARIO,
        lambda text: text.replace('"scale": 1', '"scale": 0.1'),
        "scenario synthetic: scale is 0.1",
    ),
    "a metric": (
        "profiles/metrics.yml",
        lambda text: text.replace("minidaq.superchunks.lost", "minidaq.superchunks.none"),
        "metric: ",
    ),
    "which values are better": (
        "profiles/metrics.yml",
        lambda text: text.replace("better: less", "better: more"),
        ".better is more, yours less",
    ),
    "an id that leads elsewhere": (
        REQUIREMENT,
        lambda text: text.replace("id: dune-snb", "id: ../x", 1),
        "id is ../x",
    ),
}


@pytest.mark.parametrize("what", LOOSENED)
def test_a_loosened_profile_is_different_from_yours_however_it_is_sealed(bundle: Path, own: Own, what: str) -> None:
    name, loosen, told = LOOSENED[what]
    before = (bundle / name).read_text(encoding="utf-8")
    (bundle / name).write_text(loosen(before), encoding="utf-8")
    if (bundle / name).read_text(encoding="utf-8") == before:
        pytest.fail(f"{what}: nothing was loosened")
    seal_evidence(bundle)
    problems = checked(bundle, own).problems
    assert any(told in one and one.startswith("DIFFERENT FROM YOURS") for one in problems), problems


def test_comments_and_order_are_no_difference(bundle: Path, own: Own) -> None:
    file = bundle / REQUIREMENT
    file.write_text(f"# a remark\n{file.read_text(encoding='utf-8')}\n# another\n", encoding="utf-8")
    store(bundle, SCENARIO, dict(reversed(report_bundle.SCENARIO.items())))
    assert checked(bundle, own).problems == []


def test_who_has_no_copy_of_a_profile_is_told_to_name_one(bundle: Path) -> None:
    (problem,) = check_bundle(bundle).problems
    assert problem.startswith("DIFFERENT FROM YOURS: scenario synthetic: you have none (")
    assert problem.endswith("name your own with --scenario FILE")


def test_the_parameters_that_count_are_the_scenarios(bundle: Path, own: Own) -> None:
    run = document(bundle, "run.json")
    run["scenario"]["parameters"] |= {"workloads": {"snb_record": {"links": 1}}}
    store(bundle, "run.json", run)
    assert any(one.startswith("run.json: scenario.parameters: workloads") for one in checked(bundle, own).problems)


def test_ids_lead_to_no_other_file(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store(bundle, "run.json", document(bundle, "run.json") | {"requirement": {"id": "../../../../etc/x"}})
    refusals = {"check-bundle": " is '../../../../etc/x', which is no id", "judge": ": '../../../../etc/x' is no name"}
    for command, words in refusals.items():
        assert main([command, str(bundle)]) == 2
        assert f"run.json: requirement.id{words}. The bundle is damaged" in capsys.readouterr().err


def test_a_renamed_folder_is_named_with_both_names(bundle: Path, own: Own) -> None:
    renamed = bundle.rename(bundle.parent / "20260202T120000Z-better-report")
    (problem,) = checked(renamed, own).problems
    assert "'20260202T120000Z-better-report'" in problem and NAME in problem


IDENTITY = {"subject": "CPUs", "declared": "at least 4", "found": "4", "ok": True}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("results/identity.json", {"schema_version": 1, "planned": ["CPUs"], "checks": [IDENTITY]}, None),
        (
            "results/identity.json",
            {"schema_version": 1, "planned": ["CPUs"], "checks": [IDENTITY | {"found": "64"}]},
            "CPUs was declared",
        ),
        (
            "results/identity.json",
            {"schema_version": 1, "planned": ["CPUs"], "checks": [IDENTITY | {"ok": False}]},
            "CPUs was declared",
        ),
        ("results/identity.json", {"schema_version": 1, "planned": ["CPUs"], "checks": []}, "has no check of the CPUs"),
        (
            "results/identity.json",
            {"schema_version": 1, "planned": ["CPUs"], "checks": [IDENTITY, IDENTITY]},
            "stands twice",
        ),
        ("results/identity.json", {"checks": None}, "results/identity.json: "),
        ("results/identity.json", {}, "results/identity.json: "),
        ("facts/host.json", {"hostname": "another"}, "hostname is 'another', but run.json: candidate.hostname is None"),
    ],
)
def test_candidate_and_identity_are_one_machine(
    bundle: Path, own: Own, name: str, content: object, told: str | None
) -> None:
    store(bundle, name, content)
    problems = [one for one in checked(bundle, own).problems if not one.startswith("verdict.json")]
    assert (problems == []) if told is None else any(told in one for one in problems), problems


@pytest.mark.parametrize(
    ("facts", "run_says", "agrees"),
    [
        (None, "unknown", True),  # an ARM server names no model: null to provisioning, "unknown" to the survey
        (None, "AMD EPYC 7302", False),
        ("AMD EPYC 7302", "unknown", False),
        ("unknown", "unknown", True),
    ],
)
def test_a_processor_without_a_name_is_no_difference(
    bundle: Path, own: Own, facts: str | None, run_says: str, agrees: bool
) -> None:
    run = document(bundle, "run.json")
    run["candidate"]["cpu_model"] = run_says
    store(bundle, "run.json", run)
    store(bundle, "facts/host.json", {"cpu_model": facts})
    found = [one for one in checked(bundle, own).problems if one.startswith("facts/host.json: cpu_model")]
    assert (found == []) is agrees, found


def test_a_candidate_of_another_name_is_noticed(bundle: Path, own: Own) -> None:
    run = document(bundle, "run.json")
    run["candidate"]["name"] = "another"
    store(bundle, "run.json", run)
    assert any("another" in one and "lab.yml" in one for one in checked(bundle, own).problems)


def test_a_challenge_is_sealed_with_the_run_and_demanded(bundle: Path, own: Own) -> None:
    assert any("answers no challenge" in one for one in checked(bundle, own, challenge="n0nce").problems)
    run = document(bundle, "run.json")
    store(bundle, "run.json", run | {"challenge": "n0nce"})
    found = checked(bundle, own, challenge="n0nce")
    assert found.problems == [] and any("challenge n0nce" in line for line in found.lines)
    assert checked(bundle, own).problems == []
    (problem,) = checked(bundle, own, challenge="other").problems
    assert "'n0nce'" in problem and "'other'" in problem


@pytest.mark.parametrize("text", ["", "x" * 129, "a b", "a\nb", "\x1b[2J", "{{ x }}", "a'b", "\u00e9"])
def test_a_challenge_is_a_short_word(text: str) -> None:
    with pytest.raises(ValueError, match="is no challenge"):
        challenge(text)
    assert challenge_problems(some_run(challenge=text), None) == [
        "run.json: challenge is no nonce that `daq-bench qualify --challenge` takes"
    ]


@pytest.mark.parametrize("value", [5, [], {}, True])
def test_a_challenge_in_a_bundle_is_text(bundle: Path, value: object, capsys: pytest.CaptureFixture[str]) -> None:
    store(bundle, "run.json", document(bundle, "run.json") | {"challenge": value})
    assert main(["check-bundle", str(bundle)]) == 2
    assert "run.json: challenge: Expected `str" in capsys.readouterr().err


@pytest.mark.parametrize("moment", ["yesterday", 5, [], "9999-12-31T23:59:59-23:59"])
def test_an_end_that_is_no_time_is_named(bundle: Path, moment: object, capsys: pytest.CaptureFixture[str]) -> None:
    store(bundle, "run.json", document(bundle, "run.json") | {"finished_utc": moment})
    assert main(["check-bundle", str(bundle)]) == 2
    assert "finished_utc" in capsys.readouterr().err


def test_a_bundles_text_moves_no_cursor(bundle: Path, own: Own) -> None:
    (bundle / "results" / "\x1b[2J\u202e\nPASS").write_text("", encoding="utf-8")
    (problem,) = checked(bundle, own).problems
    assert problem.isprintable() and "x1b" in problem
    assert printable("a\u00e9 b") == "a\u00e9 b"


def test_a_report_on_loosened_profiles_says_so_on_every_page_and_is_checked_so(bundle: Path, own: Own) -> None:
    from pypdf import PdfReader

    file = bundle / REQUIREMENT
    file.write_text(file.read_text(encoding="utf-8").replace("bound: 0", "bound: 7", 1), encoding="utf-8")
    store(bundle, "verdict.json", as_document(judge_bundle(bundle)))
    store(bundle, "run.json", document(bundle, "run.json") | {"challenge": "n0nce"})
    lines = reporting.report_again(Bundle.open(bundle), None, None, own)
    assert all("DIFFERENT FROM YOURS" in line for line in lines) and lines
    pages = [page.extract_text() for page in PdfReader(bundle / "report.pdf").pages]
    assert ["DIFFERENT FROM YOURS in 1 field" in page for page in pages] == [True] * len(pages)
    html = (bundle / "report.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert "n0nce" in html and "nobody vouches for it" in html and "requirements.SNB-01.bound" in html
    found = checked(bundle, own)
    assert [one.partition(":")[0] for one in found.problems] == ["DIFFERENT FROM YOURS"], found.problems


def test_the_checkers_configuration_is_read_as_data(tmp_path: Path) -> None:
    """`bench_signing` of all hosts; a candidate that the inventory does not know needs no entry."""
    from daq_bench.bench_model.base.errors import RefusedError
    from daq_bench.rig.checking.signing import of_checker

    file = tmp_path / "lab.yml"
    assert of_checker(file, ("allowed_signers",)).allowed_signers is None
    (tmp_path / "allowed").write_text("", encoding="utf-8")
    file.write_text("all: {vars: {bench_signing: {allowed_signers: allowed}}}\n", encoding="utf-8")
    assert of_checker(file, ("allowed_signers",)).allowed_signers == (tmp_path / "allowed").resolve()
    witness = tmp_path / "executed"
    file.write_text(
        f"all: {{vars: {{bench_signing: {{allowed_signers: \"{{{{ lookup('pipe', 'touch {witness}') }}}}\"}}}}}}\n",
        encoding="utf-8",
    )
    with pytest.raises(RefusedError, match="is no file"):
        of_checker(file, ("allowed_signers",))
    assert not witness.exists()


def test_the_shipped_inventory_trusts_nobody() -> None:
    from daq_bench.rig.checking.signing import INVENTORY_KEYS, of_checker

    assert of_checker(Layout().inventory / "lab.yml", INVENTORY_KEYS) == of_checker(Path("/nowhere"), INVENTORY_KEYS)


def test_reports_of_a_signed_run_stay_signed_by_its_own_laboratory(
    bundle: Path, own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(tmp_path, "lab")
    seal_evidence(bundle, Signer.of(key))
    seal_reports(bundle, Signer.of(key))
    monkeypatch.setattr(reporting, "_render", lambda *_: None)
    assert reporting.report_again(Bundle.open(bundle), key, None, own) == []
    assert key_of(bundle / MANIFEST) == key_of(bundle / REPORTS_MANIFEST) is not None
