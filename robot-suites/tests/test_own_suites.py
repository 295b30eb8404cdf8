"""Suites of one's own: the library's arguments, checks, order and documentation; that its bundle never qualifies anybody."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import robot
from robot import running
from robot.errors import DataError
from robot.libdocpkg import LibraryDocumentation

sys.path.append(str(Path(__file__).resolve().parents[2] / "reports" / "tests"))
from bundle_factory import make

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.run import OWN_SUITE
from daq_bench.bench_model.evidence.admissibility import OWN_SUITE_SAYS
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking.own_profiles import Own, compared
from daq_bench.rig.suite import checks
from daq_bench.rig.suite.arguments import Duration, Size, duration, size, temperature
from daq_bench.rig.suite.library import DaqBench
from daq_bench.rig.suite.scenario import OwnScenario

KEYWORDS = [
    "Drive Temperature Should Stay Below",
    "No Superchunk Should Be Lost",
    "Provision Candidate",
    "Read Back",
    "Record Burst",
    "Requirement Should Be Met",
    "Restore Candidate",
    "Scan Block Sizes",
    "Telemetry Should Have No Gap",
    "Write",
]


def record(offered: int = 100, stored: int = 100, lost: int = 0, present: int = 100, **minidaq: Any) -> dict[str, Any]:
    counts = {"offered": offered, "stored": stored, "lost": lost}
    verify = {"status": "intact", "error": None, "superchunks": {"present": present}}
    told = {"status": "complete", "error": None, "superchunks": counts, **minidaq}
    return {"repetitions": [{"minidaq": told, "verify": verify}]}


def altered(bundle: Path, name: str, **changes: Any) -> None:
    document = json.loads((bundle / name).read_text(encoding="utf-8"))
    (bundle / name).write_text(json.dumps({**document, **changes}), encoding="utf-8")


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle as a run leaves it."""
    folder = tmp_path_factory.mktemp("runs") / "20260101T000000Z-snb-01"
    folder.mkdir()
    return make(folder)


@pytest.fixture
def bundle(rehearsed: Path, tmp_path: Path) -> Path:
    """A copy that a test may alter."""
    return Path(shutil.copytree(rehearsed, tmp_path / "run"))


def own_suite(bundle: Path) -> None:
    """The same run, whose load somebody's own suite chose."""
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    parameters = {**run["scenario"]["parameters"], "id": OWN_SUITE}
    altered(bundle, "run.json", scenario={**run["scenario"], "id": OWN_SUITE, "parameters": parameters})
    (bundle / "profiles" / "scenarios" / f"{OWN_SUITE}.yml").write_text(json.dumps(parameters), encoding="utf-8")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (size, "4 KiB", 4096),
        (size, "1.5GB", 1_500_000_000),
        (size, "512 B", 512),
        (duration, "500 ms", 0.5),
        (duration, "2 s", 2.0),
        (duration, "1.5 min", 90.0),
        (temperature, "70 degC", 70.0),
        (temperature, "-5degC", -5.0),
    ],
)
def test_an_argument_is_read_with_its_unit(read: Any, text: str, value: float) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (size, "4k", "has unit 'k'; use one of B, KiB"),
        (size, "many", "is not a size"),
        (size, "512", "is no number with a unit; write for example 4 KiB"),
        (duration, "2", "is no number with a unit; write for example 2 s"),
        (duration, "2 GB", "has unit 'GB'; use one of "),
        (duration, "0 s", "is not above zero"),
        (duration, "-1 s", "is not above zero"),
        (duration, "nan s", "is no number with a unit"),
        (temperature, "70", "write for example 70 degC"),
        (temperature, "70 K", "has unit 'K'; use one of degC"),
    ],
)
def test_a_wrong_unit_is_refused_with_those_that_there_are(read: Any, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        read(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Record Burst    2", "write for example 2 s"),
        ("Write    2", "write for example 4 KiB"),
        ("Write    1 GB    block_size=${4096}", "write for example 4 KiB"),
        ("Record Burst    2 s    block_size=8 MBB", "has unit 'MBB'; use one of B, KiB"),
        ("Record Burst    2 s    ring_size=64M", "has unit 'M'; use one of B, KiB"),
        ("Record Burst    2 s    ring_size=${None}", "Call Provision Candidate first"),
        ("Record Burst    2 s    links=ten", "Argument 'links' got value 'ten' that cannot be converted to integer"),
        ("Drive Temperature Should Stay Below    ${70}", "write for example 70 degC"),
        ("Scan Block Sizes    4 KiB    8", "write for example 4 KiB"),
        ("Drive Temperature Should Stay Below    70", "write for example 70 degC"),
        ("Drive Temperature Should Stay Below", "Call Provision Candidate first"),
        ("Record Burst    2 s", "Call Provision Candidate first"),
    ],
)
def test_robot_framework_takes_no_number_without_a_unit(tmp_path: Path, line: str, said: str) -> None:
    suite = tmp_path / "own.robot"
    suite.write_text(
        f"*** Settings ***\nLibrary    DaqBench\n\n*** Test Cases ***\nMine\n    {line}\n", encoding="utf-8"
    )
    console = StringIO()
    assert robot.run(str(suite), outputdir=str(tmp_path), stdout=console, stderr=console) == 1
    assert said in " ".join(console.getvalue().split())


def test_libdoc_shows_every_keyword_and_argument_type_with_words() -> None:
    found = LibraryDocumentation("DaqBench")
    assert [one.name for one in found.keywords] == KEYWORDS
    examples = {one.name: [line for line in one.doc.splitlines() if line.startswith("| ")] for one in found.keywords}
    assert [name for name, lines in examples.items() if not any(name in line for line in lines)] == []
    assert [one.name for one in found.keywords if len(one.doc.split()) < 20] == []
    assert [f"{one.name}: {each.name}" for one in found.keywords for each in one.args if each.type is None] == []
    types = {one.name: one.doc for one in found.type_docs}
    assert {"Size", "Duration", "Temperature", "WithoutSensor"} <= set(types)
    assert [name for name, doc in types.items() if not doc.strip()] == []
    assert "``4 KiB``" in types["Size"] and "``2 s``" in types["Duration"]
    assert len(found.doc.split()) > 100


def test_a_default_is_shown_with_its_unit() -> None:
    assert (str(Duration(0.5)), str(Size(1 << 20)), str(Size(1000))) == ("0.5 s", "1 MiB", "1000 B")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda own: own.read_back(), "Call Provision Candidate first"),
        (lambda own: own.record_burst(), "Call Provision Candidate first"),
        (lambda own: own.no_superchunk_should_be_lost(), "Call Provision Candidate first"),
        (lambda own: own.requirement_should_be_met("SNB-01"), "Call Provision Candidate first"),
        (lambda own: own.telemetry_should_have_no_gap(), "Call Provision Candidate first"),
    ],
)
def test_a_keyword_before_its_time_says_which_comes_first(call: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        call(DaqBench())


class NoLoad:
    """A session of which nothing was asked yet."""

    said, final = "", None

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.asked: list[str] = []

    def ask(self, do: str, **what: Any) -> dict[str, Any]:
        self.asked.append(do)
        return {}


def test_the_order_of_the_keywords_within_a_run(rehearsed: Path) -> None:
    own, session = DaqBench(), NoLoad(rehearsed)
    own._session = session  # type: ignore[assignment]
    with pytest.raises(
        AssertionError, match=r"nothing was written that could be read back\. Call Record Burst or Write"
    ):
        own.read_back()
    with pytest.raises(AssertionError, match="is provisioned already"):
        own.provision_candidate()
    assert session.asked == []
    own.restore_candidate()
    own.restore_candidate()
    assert session.asked == ["restore"]
    with pytest.raises(AssertionError, match="given back already"):
        own.write()


def test_restoring_what_was_never_provisioned_fails_and_after_a_refusal_it_passes() -> None:
    """A suite without `Provision Candidate` measured nothing; one whose candidate was refused has told so already."""
    own = DaqBench()
    with pytest.raises(AssertionError, match="there is nothing to give back: no candidate is provisioned"):
        own.restore_candidate()
    suite = running.TestSuite("Refused")
    own.start_suite(suite, None)  # type: ignore[arg-type]  # the listener looks at the data alone
    with pytest.raises(AssertionError, match="has no candidate 'nobody'"):
        own.provision_candidate("nobody")
    own.restore_candidate()
    own.end_suite(running.TestSuite("A child"), None)  # type: ignore[arg-type]
    own.restore_candidate()
    own.start_suite(suite, None)  # type: ignore[arg-type]
    own.end_suite(suite, None)
    with pytest.raises(AssertionError, match="there is nothing to give back"):
        own.restore_candidate()  # of the next suite, in the same process


@pytest.mark.parametrize(
    ("given", "named", "words"),
    [
        (["candidate=smc-01"], {}, "was given 'candidate'. Name the candidate in the keyword: Provision Candidate    candidate=..."),
        ([], {"scale": "0.1"}, "was given 'scale'. Name the candidate in the keyword: Provision Candidate    scale=..."),
        (
            ["candidat=smc-01"], {},
            "was given 'candidat'. Arguments of a run are for the keyword Provision Candidate. Did you mean candidate?",
        ),
        (["smc-01"], {}, "was given some. Name the candidate in the keyword: Provision Candidate    candidate=..."),
    ],
)  # fmt: skip
def test_an_argument_of_the_library_is_refused_with_the_keyword_that_takes_it(
    given: list[str], named: dict[str, str], words: str
) -> None:
    with pytest.raises(DataError) as refused:
        DaqBench(*given, **named)
    assert str(refused.value) == f"Library DaqBench takes no arguments, and {words}"


def test_a_lost_superchunk_fails_with_its_count() -> None:
    assert checks.no_superchunk_lost(record()) == 100
    with pytest.raises(AssertionError, match=r"record 1 lost 3 of 100 superchunks \(97 were stored\)"):
        checks.no_superchunk_lost(record(stored=97, lost=3))
    with pytest.raises(AssertionError, match="lost 0 of 100"):  # nobody counted it
        checks.no_superchunk_lost(record(stored=99))
    with pytest.raises(AssertionError, match="offered no superchunk"):
        checks.no_superchunk_lost(record(offered=0, stored=0))
    with pytest.raises(AssertionError, match="ended as failed: EIO"):
        checks.no_superchunk_lost(record(status="failed", error="EIO"))


def test_what_does_not_read_back_fails() -> None:
    assert checks.read_back_whole(record()) == 100
    with pytest.raises(AssertionError, match="record 1: 99 of 100 superchunks read back intact"):
        checks.read_back_whole(record(present=99))


def heated(bundle: Path, *degrees: float, warning: str = ",warning_degc=80") -> None:
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    name = run["target"]["drives"][0]["name"]
    lines = [
        f"temperature,device={name} temperature_degc={one}{warning} {10**9 * (at + 1)}\n"
        for at, one in enumerate(degrees)
    ]
    (bundle / "telemetry" / "points.lp").write_text("".join(lines), encoding="utf-8")


def test_a_temperature_is_held_against_a_limit_or_the_drives_own(bundle: Path) -> None:
    heated(bundle, 40, 65.5, 41)
    assert checks.temperature_below(bundle, 70) == 65.5
    assert checks.temperature_below(bundle, None) == 65.5
    for limit in (65.5, 60):  # at the limit is not below it
        with pytest.raises(AssertionError, match=f"reached 65.5 degC, which is not below {limit:g} degC"):
            checks.temperature_below(bundle, limit)
    heated(bundle, 40, 81)
    with pytest.raises(AssertionError, match="reached 81 degC; its own warning temperature is 80 degC"):
        checks.temperature_below(bundle, None)
    heated(bundle, 40, warning="")
    with pytest.raises(checks.NoReadingError, match="Name a limit, such as 70 degC"):
        checks.temperature_below(bundle, None)
    heated(bundle)
    with pytest.raises(checks.NoReadingError, match="no temperature was read"):
        checks.temperature_below(bundle, 70)


def summary(bundle: Path, state: str, gap_s: float) -> None:
    collector = {"name": "cpu", "status": "ok", "period_s": 1.0, "longest_gap_s": gap_s, "duration_s_mean": 0.01}
    document = {"schema_version": 1, "state": state, "collectors": [collector]}
    (bundle / "telemetry").mkdir(exist_ok=True)
    (bundle / "telemetry" / "summary.json").write_text(json.dumps(document), encoding="utf-8")


def test_a_gap_in_the_telemetry_fails_with_its_length(tmp_path: Path) -> None:
    summary(tmp_path, "finished", 1.2)
    checks.no_telemetry_gap(tmp_path, is_local=True)
    summary(tmp_path, "finished", 12.0)
    with pytest.raises(AssertionError, match=r"Telemetry of cpu has a gap of 12\.0 s \(limit 5\.0 s\)"):
        checks.no_telemetry_gap(tmp_path, is_local=True)


def test_an_account_from_before_the_question_does_not_answer_it(tmp_path: Path) -> None:
    summary(tmp_path, "running", 1.0)
    os.utime(tmp_path / "telemetry" / "summary.json", (1, 1))
    moments = iter([100.0, 100.1, 100.0 + checks.ACCOUNT_S_MAX + 1])
    with pytest.raises(checks.NoReadingError, match="gave no account for 60 s"):
        checks.no_telemetry_gap(tmp_path, is_local=True, now=lambda: next(moments))
    with pytest.raises(checks.NoReadingError, match="Call this after Restore Candidate"):
        checks.no_telemetry_gap(tmp_path, is_local=False)
    os.utime(tmp_path / "telemetry" / "summary.json", (time.time() + 60, time.time() + 60))
    checks.no_telemetry_gap(tmp_path, is_local=True)


def test_a_requirement_is_judged_from_the_evidence_so_far_and_the_run_is_not_touched(
    bundle: Path, tmp_path: Path
) -> None:
    before = {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()}
    rows = {one.id: one for one in judge_bundle(bundle).requirements}
    met = next(name for name, one in rows.items() if one.metric == "snb_record.verified_fraction")
    assert checks.requirement(bundle, met).startswith(f"{met} ")
    with pytest.raises(AssertionError, match=r"has no 'SNB-99'\. It has: "):
        checks.requirement(bundle, "SNB-99")
    (bundle / "results" / "snb_record.json").unlink()
    with pytest.raises(AssertionError, match=f"not measured: {met}"):
        checks.requirement(bundle, met)
    (bundle / "results" / "snb_record.json").write_bytes(before[bundle / "results" / "snb_record.json"])
    assert {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file()} == before
    assert [one.name for one in tmp_path.iterdir()] == ["run"]


def test_no_own_suite_passes_nor_fails_a_candidate(bundle: Path) -> None:
    good = bundle
    assert OWN_SUITE_SAYS not in [one.text for one in judge_bundle(good).findings]
    own_suite(good)
    verdict = judge_bundle(good)
    assert verdict.outcome == "INADMISSIBLE" and not verdict.declared_rehearsal
    assert conclude(verdict).line == f"INADMISSIBLE: {OWN_SUITE_SAYS}"
    assert {one.outcome for one in verdict.requirements} == {"INADMISSIBLE"}
    assert Evidence.load(good).run["scenario"]["id"] == OWN_SUITE


def test_a_suite_that_forges_its_outcome_is_contradicted(bundle: Path) -> None:
    own_suite(bundle)
    forged = judge_bundle(bundle)
    altered(bundle, "verdict.json", outcome="PASS", reasons=["trust me"])
    assert judge_bundle(bundle).outcome == forged.outcome == "INADMISSIBLE"
    altered(bundle, "run.json", scaled_down=[], declared_limits=[])
    assert OWN_SUITE_SAYS in [one.text for one in judge_bundle(bundle).findings]


def test_a_checker_needs_no_copy_of_an_own_suites_scenario(bundle: Path) -> None:
    own_suite(bundle)
    scenario = next(one for one in compared(bundle, Bundle.open(bundle).run, Own()) if one.kind == "scenario")
    assert (scenario.id, scenario.differences) == (OWN_SUITE, ())


def test_the_scenario_grows_with_each_load_and_forgets_a_refused_one(tmp_path: Path) -> None:
    own = OwnScenario(tmp_path, Layout(), "Own suite A", 0.02)
    assert (own.empty().workloads, own.empty().scale, own.workloads) == ({}, 0.02, ())
    grown = own.with_load("snb_record", {"links": None, "block_size": 1 << 20}, {"duration_s": 2.0, "repetitions": 3})
    record = grown.workloads["snb_record"]
    assert (record["block_size"], record["links"], record["superchunk_rate_hz"]) == (1 << 20, 10, 166000)
    assert (grown.duration_s, grown.repetitions, grown.scale, grown.id) == (2.0, 3, 0.02, OWN_SUITE)
    own.forget()
    assert own.workloads == ()
    with pytest.raises(BenchError, match="is no multiple of 4 KiB"):
        own.with_load("snb_record", {"block_size": 1000}, {"duration_s": 2.0})
    assert "workloads: {}" in own.file.read_text(encoding="utf-8")
    own.adopt(own.with_load("snb_record", {}, {"duration_s": 2.0}))
    both = own.with_load("block_scan", {"block_sizes": [4096, 1 << 23]}, {})
    assert list(both.workloads) == ["snb_record", "block_scan"] and both.duration_s == 2.0
