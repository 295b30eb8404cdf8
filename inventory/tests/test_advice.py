"""The likely cause and the next step of a run: only commands that this bench has and that can decide, and words that harm no surface."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from evidence_factory import evidence
from msgspec import structs
from test_conclusion import DEAD, SCALED, row

from daq_bench.bench_model.documents.run import AskedFor, Run
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.documents.verdict import Finding, Judgement, Verdict
from daq_bench.bench_model.evidence.admissibility import IDENTITY, NOT_ITS_STORAGE
from daq_bench.bench_model.evidence.company import NOT_ALONE
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.composed import read_requirements, read_scenario
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.verdict.advice import (
    CAUSE_CHARACTERS,
    LARGE_BLOCKS,
    Advice,
    Grounds,
    advise,
    command,
    grounds_of,
)
from daq_bench.bench_model.verdict.conclusion import DAMAGE, conclude

INVENTORY = Path(__file__).resolve().parents[1]
HOT = "nvme0n1 at 77 degC, its warning limit is 75 degC"
LESS = "The load is 0.1 of one readout unit: 0.9243 GB/s offered of 9.243 GB/s"


def the_run(**changes: Any) -> Run:
    return structs.replace(read(evidence().run, Run, "run.json"), **changes)


def judged(outcome: Any, *rows: Judgement, found: tuple[Finding, ...] = (), reasons: tuple[str, ...] = ()) -> Verdict:
    """`reasons` stand first, as those of a target that failed do."""
    told = [*reasons, *(one.text for one in found)]
    return Verdict(1, outcome, told, 1.0, False, list(found), list(rows))


def advice(verdict: Verdict, *causes: str, run: Run | None = None, left: tuple[tuple[str, str], ...] = ()) -> Advice:
    return advise(run or the_run(), verdict, Grounds(lambda: causes, lambda: left))


def bundle_of(folder: Path, scenario: str, requirement: str) -> Path:
    """A folder with the profiles that a run takes along, each put together from the files that it extends."""
    for kind, source in (
        ("scenarios", read_scenario(INVENTORY / "scenarios" / f"{scenario}.yml")),
        ("requirements", read_requirements(INVENTORY / "requirements" / f"{requirement}.yml")),
    ):
        file = folder / "profiles" / kind / source.file.name
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(plain(source.data)), encoding="utf-8")  # JSON is YAML too
    shutil.copyfile(INVENTORY / "metrics.yml", folder / "profiles" / "metrics.yml")
    return folder


def rehearsal(scenario: str, requirement: str) -> Run:
    """A run of the scenario at a tenth of its load, for a tenth of its time."""
    whole = the_run()
    document = plain(read_scenario(INVENTORY / "scenarios" / f"{scenario}.yml").data)
    asked = structs.replace(
        whole.scenario, id=scenario, scale=0.1, parameters={**document, "scale": 0.1, "duration_s": 10}
    )
    assert whole.demand
    return structs.replace(
        whole, scenario=asked, scaled_down=[LESS], demand=structs.replace(whole.demand, scale=0.1, duration_s=10.0),
        requirement=structs.replace(whole.requirement, id=requirement),
    )  # fmt: skip


def test_a_cause_is_told_of_a_miss_and_of_nothing_else() -> None:
    missed = judged("FAIL", row(3, "missed"))
    assert advice(missed, HOT).lines == (f"Likely cause: {HOT}", f"Next: {advice(missed).step.line}")
    assert advice(missed).cause == "" and len(advice(missed).lines) == 1
    for verdict in (
        judged("PASS", row(1, "met")),
        judged("INADMISSIBLE", row(1, "undecided")),
        judged("ERROR", row(3, "missed"), reasons=("playbook provision failed",)),
        judged("INADMISSIBLE", row(3, "missed"), found=(DEAD,)),
    ):
        assert advice(verdict, HOT).cause == "", "the telemetry of a run that says nothing accuses nobody"


def test_what_limits_a_rehearsal_is_not_told_as_a_cause() -> None:
    """Its mandatory requirements are all met; that its load was small is what somebody asked for."""
    verdict = Verdict(1, "INADMISSIBLE", [SCALED.text], 0.1, True, [SCALED], [row(1, "met")])
    assert advice(verdict, HOT, run=the_run(scaled_down=[LESS])).cause == ""


def test_the_first_line_is_not_said_twice_and_what_it_cut_short_is_said_whole() -> None:
    told = judged("FAIL", row(3, "missed"), reasons=("daqwriter: Input/output error",))
    assert advice(told, HOT).cause == HOT
    long = "The target failed in record 3: /srv/daq/run/snb-record-3.daq: write at 4066570: Input/output error. It lies on nvme0n1"
    assert advice(judged("FAIL", row(3, "missed"), reasons=(long,)), HOT).cause == long


def scanned(measured: float | None, unit: str = "GB/s") -> Judgement:
    missed = None if measured is None else "missed"
    return row(
        7,
        missed,
        metric=LARGE_BLOCKS,
        unit=unit,
        comparison="at_least",
        bound=9.24288,
        scaled_bound=9.24288,
        measured=measured,
    )


def test_a_target_that_takes_less_than_was_offered_is_the_cause_where_nothing_else_is_known() -> None:
    lost = row(1, "missed")
    slow = judged("FAIL", lost, scanned(7.3))
    assert advice(slow).cause == "the target takes 7.3 GB/s in large blocks (SNB-07), and 9.243 GB/s were offered"
    assert advice(judged("FAIL", lost, scanned(6.7987, "GiB/s"))).cause.startswith("the target takes 7.3 GB/s ")
    assert advice(slow, HOT).cause == HOT, "heat explains the pace too"
    for silent in (scanned(9.3), scanned(None), row(7, "met")):
        assert advice(judged("FAIL", lost, silent)).cause == "", "a target that keeps pace lost nothing by its pace"
    assert advice(slow, run=the_run(demand=None)).cause == "", "nothing says what was offered"
    advisory = structs.replace(scanned(7.3), severity="advisory")
    assert advice(judged("PASS", row(1, "met"), advisory)).cause == "", "nothing that counts is missed"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a \x1b[31mred\u202e\nlog  line.", "a [31mred log line"),
        ("<script>alert(1)</script> [bold]x[/]", "<script>alert(1)</script> [bold]x[/]"),  # each surface escapes markup
        ("x" * 1000, "x" * CAUSE_CHARACTERS + "..."),
        ("Größe, " * 100, "Größe, " * 42 + "Größe,..."),  # 43 words of 6 characters and 42 spaces are 300
        ("Größen, " * 100, "Größen, " * 36 + "Größen,..."),  # 37 words end at 295; 5 letters of the next are no word
        ("y" * 299 + " zz", "y" * 299 + "..."),
        ("y" * 297 + " zz and more", "y" * 297 + " zz..."),  # 300 characters end with a word
        ("y" * 300, "y" * 300),
        ("y" * 290 + ". And so on " * 9, "y" * 290 + ". And so..."),
    ],
)
def test_a_cause_is_one_line_and_moves_no_cursor(said: str, shown: str) -> None:
    assert advice(judged("FAIL", row(3, "missed")), said).cause == shown


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (judged("PASS", row(1, "met")), "Nothing is open"),
        (judged("FAIL", row(3, "missed")), "Do not accept the candidate as it is: it misses SNB-03"),
        (judged("FAIL", row(3, "missed"), found=(DEAD,), reasons=("The target failed in record 1: EIO",)), "its storage failed"),
        (judged("FAIL", found=(Finding("The read-back is damaged", False, (), True),)), "it failed under the load"),
        (judged("ERROR", reasons=("ssh: lost",)), "Mend the bench"),
        (judged("INADMISSIBLE", row(3, "missed"), found=(DEAD,)), "Remove what makes the evidence invalid"),
        (judged("INADMISSIBLE", found=(Finding("Identity: x", True, (IDENTITY,)),)), "Bring back the machine and the drives"),
        (judged("INADMISSIBLE", row(3, "missed"), reasons=(f"{NOT_ALONE}: fio",)), "End what else runs on the machine"),
        (judged("INADMISSIBLE", row(3, "missed")), "Look into SNB-03"),
        (judged("INADMISSIBLE", row(3, None), found=(SCALED,)), "Make SNB-03"),
        (judged("INADMISSIBLE", row(1, "met"), found=(SCALED,)), "Remove what limits the evidence"),
    ],
)  # fmt: skip
def test_each_end_has_its_step(verdict: Verdict, words: str) -> None:
    step = advice(verdict).step
    assert words in step.line and len(advice(verdict).lines) <= 2
    assert all(shlex.split(one)[:2] == ["daq-bench", "qualify"] for one in step.code)


def test_a_rehearsal_is_never_told_not_to_accept_and_one_on_a_file_leads_to_a_server() -> None:
    short = the_run(scaled_down=[LESS])
    assert advice(judged("FAIL", row(3, "missed"), found=(SCALED,)), run=short).step.text.startswith(
        "It fails as far as a reh"
    )
    met = judged("INADMISSIBLE", row(1, "met"), found=(SCALED,))
    on_file = the_run(scaled_down=[LESS, f"{NOT_ITS_STORAGE}scratch file on ext4"])
    virtual = structs.replace(short, candidate=structs.replace(short.candidate, virtual=True))
    for run in (on_file, virtual):
        for verdict in (met, judged("INADMISSIBLE", row(1, "undecided"), found=(SCALED,))):
            step = advice(verdict, run=run).step
            assert step.code == ("daq-bench discover --host USER@SERVER",), "no load on it could decide"
        failed = advice(judged("FAIL", row(3, "missed"), found=(SCALED,)), run=run).step
        assert (
            failed.text.startswith("It fails as far as a rehearsal can: it misses SNB-03") and failed.code == step.code
        )
    assert advice(met, run=short).step.code[0].endswith("--scale 1")


DAMAGED = [
    "snb_record.damaged_superchunks",
    "streams_checksum.wrong_checksums",
    "streams_checksum.wrong_files",
    "concurrent_analysis.wrong_results",
    "hot_store.lost_events",
]


@pytest.mark.parametrize("metric", DAMAGED)
def test_damage_heads_and_nothing_softens_it(metric: str) -> None:
    """Neither a file that decides nothing, nor a rehearsal, nor a target that is slow, too, makes it harmless."""
    lost, damaged = row(1, "missed"), structs.replace(row(4, "missed"), metric=metric)
    on_file = the_run(scaled_down=[LESS, f"{NOT_ITS_STORAGE}scratch file on ext4"])
    virtual = structs.replace(on_file, candidate=structs.replace(on_file.candidate, virtual=True))
    for run in (None, on_file, virtual):
        verdict = judged("FAIL", lost, damaged, scanned(7.3), found=(SCALED,))
        found = advice(verdict, run=run)
        assert found.step.text.startswith("Trust no data to this candidate: it misses SNB-04")
        assert "works here" not in found.step.line and found.step.code == (command(run or the_run()),)
        assert found.cause == "", "a slow target damages nothing"
        assert conclude(verdict).missed[0].startswith("SNB-04") and conclude(verdict).line.startswith(
            "FAIL: missed SNB-04"
        )
    met = structs.replace(damaged, decision="met", outcome="PASS")
    step = advice(judged("FAIL", lost, met, found=(SCALED,)), run=on_file).step
    assert "Trust" not in step.text and "works here" in step.text


def test_every_metric_of_damage_is_one_that_the_bench_measures() -> None:
    known = load_metrics(INVENTORY / "metrics.yml")
    assert {name.rpartition(".")[2] for name in DAMAGED} == set(DAMAGE)
    assert set(DAMAGED) <= set(known)


def test_a_step_at_full_load_is_what_the_plan_calls_able_to_pass(tmp_path: Path) -> None:
    """By the profiles that the run took along: the same scenario where it asks for all, else the plan, which names one that does."""
    met = judged("INADMISSIBLE", row(1, "met"), found=(SCALED,))
    run = rehearsal("snb-100s", "dune-snb")
    whole = grounds_of(bundle_of(tmp_path / "whole", "snb-100s", "dune-snb"), run)
    assert tuple(whole.left()) == ()
    assert advise(run, met, whole).step.code == (command(run, full=True),)
    run = rehearsal("dune-snb", "dune-snb")
    less = grounds_of(bundle_of(tmp_path / "less", "dune-snb", "dune-snb"), run)
    assert tuple(less.left()), "dune-snb is short on purpose"
    (code,) = advise(run, met, less).step.code
    assert code.startswith("daq-bench plan ") and "--scenario dune-snb" in code


def test_a_scenario_that_cannot_decide_for_another_reason_says_which_and_what_to_change() -> None:
    met, short = judged("INADMISSIBLE", row(1, "met"), found=(SCALED,)), the_run(scaled_down=[LESS])
    step = advice(met, run=short, left=(("It injects faults", "Choose a scenario that does without"),)).step
    assert step.code == () and step.text.endswith(
        "It injects faults. To change that: Choose a scenario that does without."
    )


def test_the_command_is_the_one_that_was_given() -> None:
    """A folder that was named, and a name that a shell would take apart."""
    run = the_run(request=AskedFor(target_directory="/srv/my data"))
    run = structs.replace(run, candidate=structs.replace(run.candidate, name='it\'s "b" $(id)'))
    words = shlex.split(command(run))
    assert words[words.index("--candidate") + 1] == 'it\'s "b" $(id)'
    assert words[words.index("--target") + 1] == "/srv/my data"
    assert "--duration" in words and "--duration" not in command(run, full=True)


@pytest.mark.parametrize(
    "content",
    [None, "", "null", "{", '{"schema_version": 1}', '{"schema_version": 1, "sentences": [3]}'],
)
def test_a_bundle_without_sound_telemetry_has_a_step_and_no_cause(tmp_path: Path, content: str | None) -> None:
    (tmp_path / "results").mkdir()
    if content is not None:
        for name in ("hardware_events", "throttling", "dips"):
            (tmp_path / "results" / f"{name}.json").write_text(content, encoding="utf-8")
    found = grounds_of(tmp_path, the_run())
    assert (tuple(found.causes()), tuple(found.left())) == ((), ())
    assert advise(the_run(), judged("FAIL", row(3, "missed")), found).step.text.startswith("Do not accept")
