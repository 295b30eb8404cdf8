"""The command line: what a user types wrong, and what exit statuses say."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from daq_bench.audit.good.small_run import some_run
from msgspec.structs import replace
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.calling import BY_MAKE, variable
from daq_bench.bench_model.base.command_line import NO_READER
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.verdict import Outcome, Verdict
from daq_bench.rig.base import catalogue
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking import reporting
from daq_bench.rig.cli import COMMANDS, PROGRAMS, bundles, main, parser, profiles
from daq_bench.rig.cli.profiles import SHOWN_MAX, Valid, validate_all
from daq_bench.rig.cli.runs import chosen_targets, closing_words, exit_status
from daq_bench.rig.console import commands


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
    assert "daq-bench restore" not in words
    (tmp_path / "telemetry").mkdir()
    bundle.event("error", "clean-up", "tuning: the connection was lost")
    assert f"`daq-bench restore --candidate {bundle.run.candidate.name}` does it" in closing_words(
        bundle, verdict("ERROR")
    )


@pytest.mark.parametrize(
    ("state", "document", "status"),
    [
        ("finished", verdict("INADMISSIBLE", rehearsal=True), 0),
        ("finished", verdict("INADMISSIBLE"), 3),
        ("finished", verdict("FAIL"), 1),
        ("interrupted", verdict("ERROR"), 130),
    ],
)
def test_judge_speaks_in_words_and_ends_as_qualify_did(
    state: str,
    document: Verdict,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bundles, "judge_bundle", lambda _: replace(document, reasons=["a \x1b[31mred\u202e reason"]))
    monkeypatch.setattr(Bundle, "open", lambda path: Bundle(path, some_run(state=state)))
    assert main(["judge", str(tmp_path)]) == status
    said = capsys.readouterr().out
    word = "REHEARSAL" if document.declared_rehearsal else document.outcome
    assert said.startswith(f"{word}: ") and f"\n\nOutcome: {word}" in said
    assert ("(INADMISSIBLE in verdict.json)" in said) == document.declared_rehearsal
    assert "\\x1b[31mred\\u202e reason" in said, "what a bundle holds moves no cursor"
    assert "{" not in said
    assert main(["judge", str(tmp_path), "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["declared_rehearsal"]) == (document.outcome, document.declared_rehearsal)


def test_judge_warns_of_a_bundle_that_is_no_longer_as_its_run_left_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = write_night(tmp_path, NightPlan(1))
    assert main(["judge", str(sound)]) == 0 and capsys.readouterr().err == ""
    added, gone, renamed = (
        shutil.copytree(sound, tmp_path / name / sound.name) for name in ("added", "gone", "renamed")
    )
    (added / "facts" / "more.json").write_text("{}", encoding="utf-8")
    (gone / "results" / "night.json").unlink()
    renamed = renamed.rename(tmp_path / "best")
    unsigned = write_night(tmp_path, NightPlan(2))
    (unsigned / "MANIFEST.sha256").write_text("nonsense\n", encoding="utf-8")
    for bundle, why in (
        (added, "facts/more.json: added since the run"),
        (gone, "results/night.json: missing"),
        (renamed, "the folder is named 'best'"),
        (unsigned, "MANIFEST.sha256"),
    ):
        for more in ([], ["--json"]):
            main(["judge", str(bundle), *more])
            said = capsys.readouterr().err
            assert said.startswith(f"warning: {bundle} was altered since its run (") and why in said
            assert said.endswith("the verdict is of what it holds now. Use a sound copy of it\n")


INVENTORY = """\
all:
  children:
    candidates:
      hosts:
        good:
          ansible_connection: local
          bench_candidate:
            description: Good
            identity: {architectures: [x86_64], cpus_min: 1, memory_min: 1GiB}
            target: {kind: scratch-file, directory: build/scratch}
            transient_buffer: 1GiB
            tuning: {}
        broken: {ansible_connection: local, bench_candidate: {description: Broken}}
"""


def test_list_shows_the_rest_where_one_entry_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lab.yml").write_text(INVENTORY, encoding="utf-8")
    inventory = f"--inventory={tmp_path / 'lab.yml'}"
    assert main(["list", "candidates", inventory, "--json"]) == 2
    said = capsys.readouterr()
    assert [row["candidate"] for row in json.loads(said.out)] == ["good"]
    assert said.err.startswith("error: ") and "broken" in said.err
    assert main(["list", "candidates", inventory, "--names"]) == 0
    assert capsys.readouterr().out.split() == ["good", "broken"]
    assert main(["list", "targets", "--candidate=goood", inventory]) == 2
    assert "has no candidate 'goood'. Did you mean good?" in capsys.readouterr().err
    assert main(["list", "candidates", f"--inventory={tmp_path}/none.yml", "--json"]) == 2
    assert "there is no such file" in json.loads(capsys.readouterr().out)["error"]


def test_the_link_to_the_newest_run_is_no_run_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "REPOSITORY", tmp_path)
    made = [Bundle.create(tmp_path / "runs", name, "", "s") for name in ("a", "b")]
    for one in made:
        one.begin(some_run())
    (tmp_path / "runs" / "of-another-folder").symlink_to(made[0].path)
    assert (tmp_path / "runs" / "latest" / "run.json").is_file()
    assert main(["list", "runs", "--names"]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(f"runs/{one.id}" for one in made)


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("candidates", {"candidate": "virtual", "connection": "ssh", "scenario": "snb-emulated", "targets": 5}),
        (
            "targets",
            {
                "candidate": "virtual",
                "target": "nand-raid1",
                "run of its own": False,
                "erased": ["VCNA0001", "VCNA0002"],
            },
        ),
        ("scenarios", {"scenario": "snb-100s", "scale": 1.0, "duration_s": 100.0}),
        ("requirements", {"requirement": "dune-snb", "bounds": 11}),
        ("metrics", {"metric": "snb_record.lost_superchunks", "unit": "count", "nature": "observed"}),
    ],
)
def test_list_has_a_document_and_a_table(kind: str, row: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", kind, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert any(row.items() <= one.items() for one in rows)
    assert main(["list", kind]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(rows)


def test_the_version_names_release_and_commit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["daq-bench", "--version"])
    assert commands() == 0
    head = subprocess.run(
        ["git", "-C", str(Layout().repository), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    said = capsys.readouterr().out
    assert said.startswith(f"daq-bench {metadata.version('daq-storage-bench')} (")
    assert head in said and str(Layout().repository) in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qualify", "--scale", "ten"], "argument --scale: 'ten' is not a number. Write one such as 0.5"),
        (["plan", "--scale", "10%"], "argument --scale: '10%' is not a number. Write one such as 0.5"),
        (["qualify", "--scale", "3"], "argument --scale: 3 is above 1.2; 1 is the whole load"),
        (["qualify", "--candidates", ","], "argument --candidates: ',' has an empty name. Write A,B"),
        (["qualify", "--candidates", "a,b,a"], "argument --candidates: 'a,b,a' names 'a' twice"),
        (
            ["nightly", "--candidates", ","],
            "argument --candidates: ',' has an empty name",
        ),  # not: all of the plan
        (["nightly", "--candidates", " "], "argument --candidates: ' ' has an empty name"),
        (["qualify", "--duration", "-5"], "argument --duration: '-5' is not above zero"),
        (["plan", "--scale", "inf"], "argument --scale: 'inf' is no finite number"),
        (["plan", "--scale", "nan"], "argument --scale: 'nan' is no finite number"),
        (["nightly", "--overdue-h", "inf"], "argument --overdue-h: 'inf' is no finite number"),
        (["nightly", "--time-limit-h", "x"], "argument --time-limit-h: 'x' is not a number"),
        (["qualify", "--repetitions", "2"], "no option --repetitions. No name is near among the 1"),
        (["judge"], "the following arguments are required: run"),
        (["judge", "--jsn"], "there is no option --jsn. Did you mean --json?"),  # not: run is missing
        (["judge", "--json", "--", "--jsn", "x"], "'x' is too much"),  # behind -- no word is an option
        (["influx"], "are required: action. action is one of: start, stop, status"),
        ([], "error: no command is named. `"),
        (["--verion"], "there is no option --verion. Did you mean --version?"),
    ],
)
def test_a_wrong_argument_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "by_hand", "by_make"),
    [
        (["plan", "--scale", "0"], "argument --scale: '0' is", "argument --scale (SCALE=): '0' is"),
        (["nightly", "--time-limit-h", "0"], "--time-limit-h: '0' is", "--time-limit-h (TIME_LIMIT_H=): '0' is"),
        (["judge", "none"], "Name one: runs/<run-id>", "Name one: RUN=runs/<run-id>"),
        (["plan", "--target", "nope"], "write --target ./nope for", "write TARGET=./nope for"),
        (["qualify", "--together"], "--candidates a,b --together", "CANDIDATES=a,b TOGETHER=1"),
        (["gather", "--store="], "argument --store: the name is empty", "argument --store (STORE=): the name is empty"),
        (["discover", "--host=a b"], "--host 'a b' is no user@server", "HOST='a b' is no user@server"),
        (["tables", "none", "--output={}"], "--output {} is there already", "OUT={} is there already"),
    ],
)
def test_a_remedy_names_what_the_caller_can_type(
    words: list[str], by_hand: str, by_make: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "a-file").touch()
    for text, wrong in ((by_hand, by_make), (by_make, by_hand)):
        try:
            assert main([word.replace("{}", str(tmp_path)) for word in words]) == 2
        except SystemExit as ended:
            assert ended.code == 2
        said = capsys.readouterr().err
        assert text.replace("{}", str(tmp_path)) in said
        assert wrong.replace("{}", str(tmp_path)) not in said or wrong in text
        monkeypatch.setenv(BY_MAKE, "1")


def test_every_option_that_a_remedy_names_has_a_variable_of_make() -> None:
    """`typed("--scale")` in the sources: an option of a command, and a variable that the Makefile reads."""
    commands = next(action.choices for action in parser()._actions if action.dest == "command")
    options = {option for one in dict(commands or {}).values() for option in one._option_string_actions}
    makefile = (Layout().repository / "Makefile").read_text(encoding="utf-8")
    read = set(re.findall(r"\b(?:option|switch),--[\w-]+,(\w+)\)|\bdefault,(\w+),", makefile))
    named = set()
    for folder in ("inventory", "robot-suites", "reports"):
        for file in (Layout().repository / folder / "daq_bench").rglob("*.py"):
            named |= set(re.findall(r"\btyped\(\s*['\"](--[\w-]+)", file.read_text(encoding="utf-8")))
    assert len(named) > 10, "no longer finds them"
    assert named - options - {"--nights", "--output"} == set()  # the two are the reports' own
    assert {variable(one) for one in named} - {name for pair in read for name in pair} == set()


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
    assert "write --target ./nope for a folder that shall be made" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["./nope", "existing"])
def test_a_folder_is_a_target_where_it_exists_or_is_written_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "existing").mkdir()
    assert chosen_targets(parser().parse_args(["qualify", "--target", name]))[1] == (tmp_path / name).resolve()


def takes_runs() -> list[str]:
    """The commands of the rig with an argument that names runs."""
    choices = next(action.choices for action in parser()._actions if action.dest == "command")
    assert isinstance(choices, dict)
    found = {name: {one.dest for one in command._actions} for name, command in choices.items()}
    return [name for name in COMMANDS if found[name] & {"run", "bundles"}]


def test_every_command_that_reads_runs_is_known() -> None:
    known = {"admit", "baseline", "check-bundle", "judge", "replay", "report", "resume", "tables"}
    assert set(takes_runs()) == known


@pytest.mark.parametrize("name", ["", " "])
@pytest.mark.parametrize("command", takes_runs())
def test_an_empty_name_is_no_run(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the user stands in a bundle, which an empty path would be."""
    here = Bundle.create(tmp_path, "c", "", "s")
    here.begin(some_run())
    monkeypatch.chdir(here.path)
    with pytest.raises(SystemExit) as ended:
        main([command, *(["--output", str(tmp_path / "out")] if command == "tables" else []), name])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert re.search(r"argument (run|RUN): the name is empty\. Write RUN: runs?[/ ]", said.err), said.err
    assert not said.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--candidate", "--scenario", "--requirement", "--inventory", "--target"])
def test_an_empty_name_is_no_profile(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--scenario "$SCENARIO"` with an unset variable would load the candidate with another scenario than was meant."""
    with pytest.raises(SystemExit) as ended:
        main(["plan", f"{option}="])
    assert ended.value.code == 2
    assert f"argument {option}: the name is empty. Write {option} " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["doctor", ""], "argument candidate: the name is empty. Write CANDIDATE: host of the inventory"),
        (["discover", "--host="], "argument --host: the name is empty. Write --host USER@SERVER: the server, by SSH"),
        (
            ["discover", "--host=local", "--bmc="],
            "argument --bmc: the name is empty. Write --bmc USER@ADDRESS: its BMC",
        ),
        (["discover", "--host=local", "--name= "], "argument --name: the name is empty. Write --name NAME"),
        (["nightly", "--resume="], "Write --resume NIGHT: go on with an interrupted night"),
        (["completion", ""], "argument shell: there is no ''. Known: bash, zsh, fish"),
        (["influx", ""], "argument action: there is no ''. Known: start, stop, status"),
    ],
)
def test_an_empty_name_is_not_one_that_was_left_out(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`doctor "$SERVER"` with an unset variable would say that all is well, of another machine than was meant."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert says in said.err and not said.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["plan", "--rate=5"], "'5' has no unit. Write for example 5GB"),
        (["plan", "--rate=9.5/s"], "'9.5/s' has no unit. Write for example 5GB"),
    ],
)
def test_a_rate_needs_a_unit(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """5 would be 5 B/s, and the plan one of 65 years."""
    with pytest.raises(SystemExit):
        main(words)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["scenario", "requirement"])
def test_a_file_that_is_named_like_no_profile_is_named_itself(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("id: mine\n", encoding="utf-8")
    assert main(["plan", f"--{kind}=mine.txt"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "error: mine.txt: is a file whose name does not end with .yml. Name a YAML file, or an id of "
    )
    assert said.rstrip().endswith(f"inventory/{kind}s")


@pytest.mark.parametrize(("made", "says"), [(True, "is a folder"), (False, "is not there")])
def test_a_page_for_the_table_that_is_none_is_told_at_once(
    made: bool, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    if made:
        page.mkdir()
    assert main(["plan", f"--table={page}"]) == 2
    assert f"--table {page}: {says}. Name the page that has the table" in capsys.readouterr().err


@pytest.mark.parametrize("text", ['[""]', "{", "3", '["a", 1]', '{"a": 1}'])
def test_admit_refuses_what_is_no_list_of_runs(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["admit"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: standard input is no") and said.count("\n") == 1


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
        (["report", "{}/a-file"], "a-file is no run bundle (it is a file). Name one: runs/<run-id>"),
        (["check-bundle", "{}/a-file"], "a-file is no run bundle (it is a file). Name one: runs/<run-id>"),
        (
            ["plan", "--scenario={}/empty.yml"],
            "empty.yml: is empty. Write a scenario (inventory/schemas/scenario.schema.json) into it",
        ),
        (
            ["plan", "--requirement={}/empty.yml"],
            "empty.yml: is empty. Write a requirement (inventory/schemas/requirement.schema.json)",
        ),
        (
            ["plan", "--inventory={}/empty.yml"],
            "empty.yml: is empty. Add a candidate (docs/own-hardware.md), or name another file",
        ),
        (
            ["plan", "--scenario={}/binary.yml"],
            "binary.yml: cannot be read: byte 3 (0x89) is no UTF-8. Make it a readable UTF-8 file",
        ),
        (["validate", "--inventory={}"], "is not a regular file. Name a YAML file"),
        (["validate", "--inventory={}/none.yml"], "none.yml: there is no such file"),
        (["validate", "--inventory={}/bare/none.yml"], "there is no such file. Name a YAML file that is there;"),
        (["validate", "--requirement={}/a-loop.yml"], "Too many levels of symbolic links"),
        (["discover", "--host=root@127.0.0.1", "--key={}/none"], "no file: name the private key"),
        (["baseline", "{}/none"], "none"),
        (["gather", "--store={}/store", "--runs={}/none"], "none"),
        (["nightly", "--resume={}/none"], "none"),
        (["resume", "{}/none"], "none is no run bundle (there is no such folder)"),
        (["qualify", "--duration=1e9"], "--duration 1000000000 was asked for"),
    ],
)
def test_what_cannot_be_read_is_one_message_in_words(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").touch()
    (tmp_path / "empty.yml").write_text("# nothing yet\n", encoding="utf-8")
    (tmp_path / "binary.yml").write_bytes(b"a:\x89PNG")
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


def test_a_home_that_nobody_may_write_to_ends_no_command_in_a_traceback(tmp_path: Path) -> None:
    """As of a service's account: Ansible makes a folder in it as soon as it is imported. Nobody, root included, makes one in /proc."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"HOME": "/proc/none"}
    judged = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "judge", tmp_path],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (judged.returncode, judged.stderr.count("\n")) == (2, 1), judged.stderr
    assert judged.stderr.startswith(f"error: {tmp_path} is no run bundle (run.json is missing)")
    program = f"from daq_bench.rig.candidate.connection import variables_of; variables_of({str(tmp_path)!r}, 'one', ())"
    asked = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    last = asked.stderr.splitlines()[-1]
    assert "BenchError: the library of Ansible cannot begin: Unable to create local directories '/proc/none/" in last
    assert last.endswith("Set ANSIBLE_HOME to a folder that may be written")


def test_ctrl_c_before_the_modules_are_there_is_one_word() -> None:
    program = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "daq_bench.rig.cli.runs":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
sys.argv[1:] = ["plan"]
from daq_bench.rig.console import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_no_part_of_a_proposal_stays_where_there_is_no_room_for_all_of_it(tmp_path: Path) -> None:
    """The kernel lets the process write no byte into a file, as on a full disk."""
    program = f"""
import resource
from pathlib import Path
from daq_bench.rig.discovery.discover import written
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
written("all: {{}}", Path({str(tmp_path / "lab.yml")!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("lab.yml cannot be written: File too large. Choose another --out")
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_rendered_says_why_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as refused:
        reporting._render(tmp_path, [])
    assert str(refused.value).startswith("no report was rendered: ") and "Command:" not in str(refused.value)


def test_admit_gives_a_reason_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admit", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.count("run.json is missing") == 1
    assert said.startswith(f"{tmp_path}: does not pass check-bundle ({tmp_path.name} is no run bundle")


def test_validate_names_what_is_missing_and_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = INVENTORY.split("        broken:")[0]
    text += (
        text[text.index("        good:") :]
        .replace("good:", "far:")
        .replace("connection: local", f"private_key_file: {tmp_path}/key")
    )
    (tmp_path / "lab.yml").write_text(text, encoding="utf-8")
    words = ["validate", f"--inventory={tmp_path}/lab.yml", "--candidate=good"]
    entries = [Valid("candidate", "good", "candidate good")]
    monkeypatch.setattr(profiles, "validate_all", lambda *_: iter(entries))  # it reads every profile
    missing = f"{tmp_path}/lab.yml:14: all.children.candidates.hosts.far.ansible_private_key_file: there is no file {tmp_path}/key. Name a"
    assert main(words) == 0
    *_, last_but_one, last = capsys.readouterr().out.splitlines()
    assert last_but_one.startswith(f"MISSING  {missing}") and last.startswith("OK: ")
    assert main([*words, "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["missing"]
    assert said.startswith(missing)
    (tmp_path / "key").touch()
    assert main(words) == 0
    assert "MISSING" not in capsys.readouterr().out


def test_validate_lists_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--verbose"]) == 0
    said = capsys.readouterr().out
    for name in (
        "lab.yml: candidate this-machine: The machine that the bench itself runs on; erases nothing",
        "four emulated NVMe drives and a BMC; its figures say nothing of any hardware; ERASES ",
        "OK: ",
        "scenarios/dune-snb.yml",
        "scenarios/snb-100s.yml",
        "requirements/dune-snb.yml: 11",
    ):
        assert name in said


def test_validate_says_the_danger_first_and_all_of_it_in_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """The names and RAID levels are those of inventory/lab.yml."""
    assert main(["validate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    sets = "VCNA0001, VCNA0002, VCNA0003"
    assert lines[0] == f"virtual ERASES VCXP0001; {sets} (RAID 0); {sets} (RAID 5); VCNA0001, VCNA0002 (RAID 1)"
    assert lines[1] == "this-machine, this-machine-twice: erase nothing"
    assert lines[-1].startswith("OK: ") and lines[-1].endswith("; this run erases nothing")
    assert "erases   nothing; only files of its own are written" in lines
    assert [line for line in lines if line.startswith("PASS     NOT possible: `daq-bench plan` with the same options")]
    assert 8 <= len(lines) <= 15


def test_validate_says_how_many_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A laboratory has many candidates; the run's own danger and missing files are said in any case."""
    entries = [Valid("candidate", f"server-{n}", "", f"ERASES S{n}") for n in range(SHOWN_MAX + 3)]
    lines = list(profiles._in_short(entries))
    assert lines[:SHOWN_MAX] == [f"server-{n} ERASES S{n}" for n in range(SHOWN_MAX)]
    assert lines[SHOWN_MAX] == "and 3 more candidates ERASE drives (--verbose names them)"
    assert list(profiles._in_short(entries[:SHOWN_MAX]))[SHOWN_MAX].startswith(f"valid    {SHOWN_MAX} candidates, 0 ")
    missing = {"server-1": ["a", "b", "c"], "server-2": ["d", "e"], "server-3": ["f"], "server-4": []}
    assert list(profiles._missing_in_short(missing, "server-2")) == [
        *("a", "2 more files that server-1 names (--verbose lists them)"),
        *("d", "e", "f"),
    ]


LAB = """
all:
  vars: {bench_nightly: {runs: [{candidate: CANDIDATE, scenario: NIGHTLY}]}}
  children: {candidates: {hosts: {one: {ansible_connection: local, bench_candidate: {
    description: x, identity: {cpus_min: 1}, transient_buffer: 1GiB, tuning: {aio_max_nr: 1048576}, scenario: SCENARIO,
    target: {kind: filesystem, directory: DIRECTORY, storage: {drives: [S1, S2], raid: {level: 0, chunk: CHUNK}, filesystem: xfs}}}}}}}
"""
RIGHT = {"CANDIDATE": "one", "NIGHTLY": "dune-snb", "SCENARIO": "snb-100s", "DIRECTORY": "/srv/daq", "CHUNK": "128KiB"}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("SCENARIO", "snb-100", "snb-100s"),
        ("CANDIDATE", "tow", "has no candidate 'tow'"),
        ("NIGHTLY", "dune-snbb", "dune-snb"),
        ("CHUNK", "100KiB", "md takes powers of two"),
        ("CHUNK", "128", "write a whole number and a unit"),
        ("DIRECTORY", "/", "a mount point is an absolute path below /"),
        ("DIRECTORY", "/etc", "whose own content a file system would hide"),
        ("DIRECTORY", "/srv/../etc", "write it as /etc"),
        ("CHUNK", "128KiB", ""),
    ],
)
def test_validate_finds_what_would_only_show_at_night_or_while_a_target_is_built(
    tmp_path: Path, key: str, value: str, said: str
) -> None:
    text = LAB
    for name, right in RIGHT.items():
        text = text.replace(name, value if name == key else right)
    (tmp_path / "lab.yml").write_text(text, encoding="utf-8")
    lines = validate_all(Layout(), tmp_path / "lab.yml")
    if not said:
        assert [(one.name, one.danger) for one in lines if one.kind == "candidate"] == [
            ("one", "")
        ]  # no `destroy: true`
        return
    with pytest.raises(BenchError) as refused:
        list(lines)
    assert said in str(refused.value)


COMMAND = [sys.executable, "-m", "daq_bench.rig"]


@pytest.mark.parametrize("words", [["list", "metrics"], ["completion", "bash"]])
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    """As `| head -1` leaves: nobody reads the rest."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (NO_READER, b"")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "metrics"], "No space left on device"),
        (["completion", "bash"], "No space left on device"),
        (["judge", "none", "--json"], "none is no run bundle"),  # its own error comes first, and its document is lost
    ],
)
def test_what_cannot_be_printed_is_one_error(words: list[str], told: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 2
    assert told in done.stderr
    assert all(line.startswith("error: ") for line in done.stderr.splitlines())


@pytest.mark.parametrize("words", [["list", "scenarios"], ["judge", "x"], ["site"]])
def test_a_folder_that_was_removed_under_the_user_is_one_error(tmp_path: Path, words: list[str]) -> None:
    line = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    argv = ["/bin/sh", "-c", line, "sh", *COMMAND, *words]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the folder that you stand in was removed. Change to one that is there\n"


@pytest.mark.parametrize("command", ["judge", "compare", "site", "trend"])
def test_a_name_that_no_document_can_hold_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, os.fsdecode(b"runs\xff")]) == 2
    assert capsys.readouterr().err.startswith("error: runs\\udcff: the name is no UTF-8")


@pytest.mark.parametrize("command", ["tables", "gather"])
def test_a_link_to_itself_is_told_with_a_remedy(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    loop, out = str(tmp_path / "loop"), str(tmp_path / "out")
    words = [command, loop, "--output", out] if command == "tables" else [command, "--runs", loop, "--store", out]
    assert main(words) == 2
    assert "the link leads back to itself. Name the folder itself" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
