"""The command line: what a user types wrong, and what exit statuses say."""

from __future__ import annotations

from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import some_run

from daq_bench.bench_model.documents.verdict import Outcome, Verdict
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.cli import COMMANDS, PROGRAMS, main, parser
from daq_bench.rig.cli.runs import chosen_targets, closing_words, exit_status


def verdict(outcome: Outcome, rehearsal: bool = False) -> Verdict:
    return Verdict(1, outcome, ["because"], 1.0, rehearsal, [], [])


def test_every_command_that_is_offered_can_be_run() -> None:
    choices = next(action.choices for action in parser()._actions if action.dest == "command")
    assert choices is not None
    assert set(choices) == set(COMMANDS) | set(PROGRAMS)
    assert not set(COMMANDS) & set(PROGRAMS)


@pytest.mark.parametrize(
    ("state", "document", "status"),
    [
        ("finished", verdict("PASS"), 0),
        ("finished", verdict("FAIL"), 1),
        ("error", verdict("ERROR"), 2),
        ("finished", verdict("INADMISSIBLE"), 3),
        ("finished", verdict("INADMISSIBLE", rehearsal=True), 0),
        ("interrupted", verdict("ERROR"), 130),
    ],
)
def test_each_outcome_has_its_exit_status(tmp_path: Path, state: str, document: Verdict, status: int) -> None:
    bundle = Bundle(tmp_path, some_run(state=state))
    assert exit_status(bundle, document) == status


def test_the_last_words_name_outcome_reasons_and_paths(tmp_path: Path) -> None:
    (tmp_path / "report.pdf").touch()
    bundle = Bundle(tmp_path, some_run(state="finished"))
    words = closing_words(bundle, verdict("FAIL"))
    assert "Outcome: FAIL\n  - because" in words
    assert f"report.pdf      {tmp_path}/report.pdf" in words
    assert "rehearsal" not in words
    assert "make restore" not in words
    (tmp_path / "telemetry").mkdir()
    bundle.event("error", "clean-up", "tuning: the connection was lost")
    assert f"`make restore CANDIDATE={bundle.run.candidate.name}` does it" in closing_words(bundle, verdict("ERROR"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qualify", "--scale", "ten"], "argument --scale (SCALE=): 'ten' is not a number"),
        (["qualify", "--scale", "3"], "argument --scale (SCALE=): 3 is above 1.2; 1 is the whole load"),
        (["qualify", "--candidates", ","], "argument --candidates (CANDIDATES=): ',' has an empty name. Write A,B"),
        (["qualify", "--candidates", "a,b,a"], "argument --candidates (CANDIDATES=): 'a,b,a' names 'a' twice"),
        (
            ["nightly", "--candidates", ","],
            "argument --candidates (CANDIDATES=): ',' has an empty name",
        ),  # not: all of the plan
        (["nightly", "--candidates", " "], "argument --candidates (CANDIDATES=): ' ' has an empty name"),
        (["qualify", "--duration", "-5"], "argument --duration (DURATION=): '-5' is not above zero"),
        (["judge"], "the following arguments are required: run"),
    ],
)
def test_a_wrong_argument_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_misspelt_target_is_refused_and_no_folder_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["qualify", "--target", "nope"]) == 2
    said = capsys.readouterr().err
    assert (
        "candidate 'this-machine' has no target 'nope' (its only target has no name), and there is no folder of that name"
        in said
    )
    assert "write TARGET=./nope for a folder that shall be made" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["./nope", "existing"])
def test_a_folder_is_a_target_where_it_exists_or_is_written_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "existing").mkdir()
    assert chosen_targets(parser().parse_args(["qualify", "--target", name]))[1] == (tmp_path / name).resolve()


def test_a_run_that_is_none_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("judge", "check-bundle", "report", "replay"):
        assert main([command, str(tmp_path)]) == 2
        assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["judge", "{}/a-file"], "a-file is no run bundle (it is a file)"),
        (["check-bundle", "{}/a-file"], "a-file"),
        (["judge", "{}/none"], "none is no run bundle (there is no such folder)"),
        (["judge", "{}/a-loop"], "a-loop is no run bundle"),
        (["check-bundle", "{}/a-loop"], "a-loop"),
        (["baseline", "{}/a-loop"], "a-loop"),
        (["validate", "--inventory={}"], "is not a regular file. Name a YAML file"),
        (["validate", "--inventory={}/none.yml"], "none.yml: there is no such file"),
        (["validate", "--requirement={}/a-loop.yml"], "Too many levels of symbolic links"),
        (["discover", "--host=root@127.0.0.1", "--key={}/none"], "no file: name the private key"),
        (["baseline", "{}/none"], "none"),
        (["gather", "--store={}/store", "--runs={}/none"], "none"),
        (["nightly", "--resume={}/none"], "none"),
        (["resume", "{}/none"], "none is no run bundle (there is no such folder)"),
        (["qualify", "--duration=1e9"], "DURATION=1e+09 was asked for"),
    ],
)
def test_what_cannot_be_read_is_one_message_in_words(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").touch()
    for name in ("a-loop", "a-loop.yml"):
        (tmp_path / name).symlink_to(name)
    before = sorted(tmp_path.iterdir())
    assert main([word.replace("{}", str(tmp_path)) for word in words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1
    assert "Errno" not in said
    assert sorted(tmp_path.iterdir()) == before


def test_validate_lists_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 0
    said = capsys.readouterr().out
    for name in (
        "lab.yml: candidate this-machine",
        "scenarios/dune-snb.yml",
        "scenarios/snb-100s.yml",
        "requirements/dune-snb.yml: 11",
    ):
        assert name in said
