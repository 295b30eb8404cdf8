"""How make treats variables: a slip of the pen stops it before anything happens, and a value is text.

The Makefile runs as in a checkout where nothing is set up yet, with programs of ours in the place of the set-up and of the bench."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from daq_bench.rig.base.settings import Layout

ROOT = Layout().repository
# What make hands to its children when a make is our caller.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON_GROUP", "WERROR")  # of `make test`
}
HANG_S = 300.0
PARTS = (
    "Makefile",
    "ansible/bootstrap/variables.mk",
    "ansible/bootstrap/help.awk",
    "inventory/daq_bench/bench_model/base/nearest.py",
    "native-writer/CMakeLists.txt",
    "native-writer/portable.cmake",
    "agents/hot_store/CMakeLists.txt",
    "agents/network_probe/CMakeLists.txt",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The Makefile with its parts, and programs that write down their words and their variables in a file for each call."""
    folder = tmp_path / "check out"
    for name in PARTS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in (
        "agents/daq_bench/telemetry_agent",
        "agents/daq_bench/candidate_kit",
        "agents/daq_bench/analysis_reader",
        "build/native-writer",
        "inventory/scenarios",
        ".venv/bin",
    ):
        (folder / name).mkdir(parents=True)
    for name in ("packages.sh", "python.sh", "generated.sh", "influxd.sh", "native.sh", "writable.sh"):
        _program(folder / "ansible/bootstrap" / name, name)
    for name in ("daq-bench", "python", "ansible-playbook"):
        _program(folder / ".venv/bin" / name, name)
    _program(folder / "bin/cmake", "cmake")
    return folder


def _program(file: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = f'call="$CALLS/{name}-$$"; printf "%s\\0" "$@" > "$call.words"; env -0 > "$call.environment"'
    file.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def _parts(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="surrogateescape").split("\0")[:-1]


@dataclass(frozen=True)
class Call:
    words: list[str]
    environment: dict[str, str]


class Made:
    """A make that has ended, and the calls that it made, by program."""

    def __init__(self, folder: Path, words: tuple[str, ...], environment: dict[str, str]) -> None:
        calls = folder / "calls"
        shutil.rmtree(calls, ignore_errors=True)
        calls.mkdir()
        path = f"{folder / 'bin'}:{environment.get('PATH', CLEAN['PATH'])}"
        self.done = subprocess.run(
            ["make", *words], cwd=folder, env={**CLEAN, **environment, "PATH": path, "CALLS": str(calls)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S, check=False,
        )  # fmt: skip
        self.calls: dict[str, list[Call]] = {}
        for file in sorted(calls.glob("*.words")):
            variables = dict(one.split("=", 1) for one in _parts(file.with_suffix(".environment")))
            self.calls.setdefault(file.name.rpartition("-")[0], []).append(Call(_parts(file), variables))

    @property
    def bench(self) -> list[str]:
        """The words of its only call of daq-bench."""
        assert self.done.returncode == 0, self.done.stderr
        (call,) = self.calls["daq-bench"]
        return call.words

    def refused(self) -> str:
        """Its words when it did nothing at all."""
        assert (self.done.returncode, self.done.stdout, self.calls) == (2, "", {}), self.done
        assert "Nothing was done" in self.done.stderr
        return self.done.stderr


def make(folder: Path, *words: str, **environment: str) -> Made:
    return Made(folder, words, environment)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qualify", "CANIDATE=x"], "the bench has no variable CANIDATE=. Did you mean CANDIDATE="),
        (["qualify", "SCENARI=read-scan"], "no variable SCENARI=. Did you mean SCENARIO="),
        (["qualify", "candidate=x"], "no variable candidate=. Did you mean CANDIDATE="),
        (["qualify", "CANDIDATE=a", "CANIDATE=b"], "no variable CANIDATE="),
        (["-j4", "qualify", "CANIDATE=x"], "no variable CANIDATE="),
        (["-n", "qualify", "CANIDATE=x"], "no variable CANIDATE="),
        (["-k", "-i", "qualify", "CANIDATE=x"], "no variable CANIDATE="),
        (["validate", "qualify", "CANIDATE=x"], "no variable CANIDATE="),
        (["CANIDATE=x"], "no variable CANIDATE="),
        (["qualify", "CANIDATE="], "no variable CANIDATE="),
        (["qualify", "MAKE=x"], "no variable MAKE="),
        (["qualify", "SHELL=/bin/sh"], "no variable SHELL="),
        (["qualify", ".DEFAULT_GOAL=test"], "no variable .DEFAULT_GOAL="),
        (["qualify", "RIG=echo"], "no variable RIG="),
        (["validate", "DURATION=5"], "`make validate` does not read DURATION=. These targets do: plan qualify"),
        (["judge", "CANDIDATE=x"], "`make judge` does not read CANDIDATE=. These targets do: "),
        (["CANDIDATE=x"], "`make help` does not read CANDIDATE=."),
        (["qualfy"], "there is no target qualfy. Did you mean qualify"),
        (["qualify", "A B=1"], "there is no target A."),
        (["qualify", "CANDIDATE="], "CANDIDATE= is empty"),
        (["qualify", "CANDIDATE= "], "CANDIDATE= is empty"),
        (["qualify", "CANDIDATE=a\nvalidate"], "CANDIDATE= has a line break"),
        (["qualify", "KEEP_TUNING=yes"], "KEEP_TUNING=yes is neither 1 (yes) nor 0 (no)"),
        (["virtual-up", "VIRTUAL_OPTIONS=--vendor 'dell'"], "VIRTUAL_OPTIONS= has a quote or a backslash"),
        (["discover"], "`make discover` needs HOST=. Write for example: make discover HOST=user@server"),
        (["compare"], "`make compare` needs RUNS="),
    ],
)
def test_a_slip_stops_make_before_anything_is_done(checkout: Path, words: list[str], said: str) -> None:
    before = sorted(checkout.rglob("*"))
    assert said in make(checkout, *words).refused()
    assert [file for file in sorted(checkout.rglob("*")) if file.name != "calls"] == before


def test_make_decides_at_once(checkout: Path) -> None:
    """In CPU time, of which a loaded machine takes no more."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    make(checkout, "qualify", "CANIDATE=x").refused()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0


def test_a_machine_without_python_gets_the_names_without_a_guess(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for tool in ("bash", "find", "grep", "printf", "awk"):
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool) or "/bin/false")
    make_program = shutil.which("make")
    assert make_program
    (tmp_path / "tools" / "make").symlink_to(make_program)
    said = make(checkout, "qualify", "CANIDATE=x", PATH=str(tmp_path / "tools")).refused()
    assert "no variable CANIDATE=. Known: " in said
    assert " CANDIDATE= " in said


@pytest.mark.parametrize(
    "value",
    [
        "my server",
        "a'b",
        'a"b',
        "$(shell touch pwned)",
        "$(touch pwned)",
        "${HOME}",
        "$$HOME",
        "`touch pwned`",
        "; touch pwned",
        "' ; touch pwned ; '",
        "a && touch pwned",
        "*",
        "~",
        "--json",
        "a\\",
        "#x",
        "a,b",
        "a=b",
        "é",
        "(",
    ],
)
def test_a_value_reaches_the_bench_as_it_was_written(checkout: Path, value: str) -> None:
    assert make(checkout, "judge", f"RUN={value}").bench == ["judge", value]
    # Through a make within make, and through what the Makefile itself asks of a scenario.
    made = make(checkout, "qualify", f"SCENARIO={value}", f"CANDIDATE={value}")
    assert made.bench == ["qualify", f"--candidate={value}", f"--scenario={value}"]
    assert not list(checkout.rglob("pwned"))


def test_a_value_given_twice_counts_as_given_last(checkout: Path) -> None:
    """As make and every command of the bench have it; both never count."""
    assert make(checkout, "validate", "CANDIDATE=a", "CANDIDATE=b").bench == ["validate", "--candidate=b"]


def test_lists_are_words_and_patterns_stand_for_files(checkout: Path) -> None:
    for name in ("one", "two"):
        (checkout / "runs" / name).mkdir(parents=True)
    made = make(checkout, "compare", "RUNS=runs/* other;x", "OUT=a b")
    assert made.bench == ["compare", "runs/one", "runs/two", "other;x", "--output=a b"]
    made = make(checkout, "virtual-up", "VIRTUAL_OPTIONS=--vendor dell;touch pwned")
    assert made.bench == ["virtual", "up", "--vendor", "dell;touch", "pwned"]
    assert not list(checkout.rglob("pwned"))


def test_variables_of_the_environment_are_no_variables_of_the_bench(checkout: Path) -> None:
    names = re.findall(r"[A-Z][A-Z0-9_]+", " ".join(re.findall(r"^reads\.\S+ := (.*)$", _variables(), re.MULTILINE)))
    assert {"HOST", "OUT", "JOBS", "RUN", "RUNS", "TARGET", "SCALE", "CANDIDATE"} <= set(names)
    poisoned = dict.fromkeys(names, "$(shell touch pwned)")
    made = make(checkout, "qualify", **poisoned)
    assert made.bench == ["qualify"]
    (call,) = made.calls["daq-bench"]
    assert {name: call.environment[name] for name in names} == poisoned  # nor changed
    assert not list(checkout.rglob("pwned"))
    assert make(checkout, "doctor", **poisoned).bench == ["doctor"]
    assert make(checkout, "judge", **poisoned).bench == ["judge", "runs/latest"]
    assert "needs HOST=" in make(checkout, "discover", **poisoned).refused()


def _variables() -> str:
    return (ROOT / "ansible/bootstrap/variables.mk").read_text(encoding="utf-8")


def test_a_parents_flags_count_as_given(checkout: Path) -> None:
    """Whoever calls make from a make of his own has the same protection, and the bench's own makes keep what they were given."""
    assert "no variable CANIDATE=" in make(checkout, "qualify", MAKEFLAGS="-- CANIDATE=x").refused()
    assert (
        "no variable CANIDATE="
        in make(checkout, "qualify", MAKEFLAGS="--no-print-directory -- CANIDATE=x", MAKELEVEL="1").refused()
    )
    assert make(checkout, "validate", MAKEFLAGS="-k -- CANDIDATE=x").bench == ["validate", "--candidate=x"]
    # .ci/checks.py calls make for each lint, below `make test SANITIZERS=1 INFLUX2=1`.
    assert make(checkout, "validate", MAKEFLAGS="-- SANITIZERS=1 INFLUX2=1", MAKELEVEL="1").bench == ["validate"]


@pytest.mark.parametrize("given", ["environment", "command line"])
def test_settings_of_scripts_and_tools_are_passed_on(checkout: Path, given: str) -> None:
    settings = {
        "PYTHON": "/opt/python3.12",
        "BENCH_SKIP_PACKAGES": "1",
        "PIP_INDEX_URL": "http://mirror/$(x)",
        "SIGN_KEY": "my key",
    }
    words = [f"{name}={value}" for name, value in settings.items()] if given == "command line" else []
    made = make(checkout, "qualify", *words, **({} if words else settings))
    assert made.bench == ["qualify"]
    for program in ("python.sh", "daq-bench"):
        (call,) = made.calls[program]
        assert {name: call.environment.get(name) for name in settings} == settings, program


def test_the_group_of_python_packages_follows_from_the_environment_or_the_scenario(checkout: Path) -> None:
    (checkout / "inventory/scenarios/ana.yml").write_text("workloads:\n  concurrent_analysis: {}\n", encoding="utf-8")
    for words, environment, group in (
        (["qualify"], {}, "qualify"),
        (["qualify", "SCENARIO=ana"], {}, "analysis"),
        (["qualify", "SCENARIO=inventory/scenarios/ana.yml"], {}, "analysis"),
        (["validate"], {"PYTHON_GROUP": "test"}, "test"),
        (["trend"], {}, "fleet"),
    ):
        made = make(checkout, *words, **environment)
        assert [call.words for call in made.calls["python.sh"]] == [[group]], (words, made.done.stderr)


def test_switches_are_1_and_choose_nothing_when_they_are_0(checkout: Path) -> None:
    assert make(checkout, "qualify", "KEEP_TUNING=1", "TOGETHER=0").bench == ["qualify", "--keep-tuning"]
    assert make(checkout, "provision", "CHECK=1").bench == ["provision", "--check"]


def test_every_variable_that_a_recipe_reads_is_in_the_table_of_its_target() -> None:
    """Both ways: a variable that nobody declared would be refused, and one that nobody reads would be taken and ignored."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    shared = {"RUN_OR_LATEST": {"RUN"}, "ASKS": {"SCENARIO"}}
    for name, body in re.findall(r"^(\w+) :?= (.*(?:\\\n.*)*)$", text, re.MULTILINE):
        shared.setdefault(name, _read(body, shared))
    passed = {"SIGN_KEY", "ALLOWED_SIGNERS"}  # read in the environment
    table = _variables()
    profiles = re.findall(r"^profiles := (.*)$", table, re.MULTILINE)[0]
    declared = {
        target: set(names.replace("$(profiles)", profiles).split()) - passed
        for target, names in re.findall(r"^reads\.(\S+) := (.*)$", table, re.MULTILINE)
    }
    rules = re.findall(r"^([a-z][a-z0-9-]*):((?!=).*\n(?:\t.*\n|\t?\n(?=\t))*)", text, re.MULTILINE)
    read = {target: names for target, rule in rules if (names := _read(rule, shared) - {"PYTHON_GROUP"})}
    # The set-up of a qualification, and the group of Python packages, ask the scenario; test's prerequisites ask INFLUX2.
    for target in ("native-qualify",):
        read.pop(target, None)
    assert read == declared


def _read(text: str, shared: dict[str, set[str]]) -> set[str]:
    names = set(re.findall(r"\$\(call (?:given|default|several),(\w+)", text))
    names |= set(re.findall(r"\$\(call (?:option|switch),--[a-z-]+,(\w+)\)", text))
    names |= {name for some in re.findall(r"\$\(foreach name,([A-Z0-9_ ]+),", text) for name in some.split()}
    for name, of_it in shared.items():
        if f"$({name})" in text or f"call {name}," in text:
            names |= of_it
    return names - {"name"}


def test_help_fits_the_screen_and_puts_users_commands_first(checkout: Path) -> None:
    text = make(checkout, "help").done.stdout
    assert max(map(len, text.splitlines())) <= 100
    listed = re.findall(r"^  make (\S+)", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    targets = re.findall(r"^([a-z][a-z0-9-]*):.*## ?\d ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(
        re.findall(r"^([a-z][a-z0-9-]*):.*##\d ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    ), targets
    users, _, rest = text.partition("\nSet up:\n")
    assert "make qualify " in users and "make judge " in users and "make audit" not in users
    assert "make setup " in rest and "make audit" in rest.partition("\nMaintain the bench:\n")[2]


def test_each_command_of_the_bench_has_its_alias() -> None:
    """Nobody who knows make has to learn a name: what daq-bench does, make does under the same name."""
    from daq_bench.rig.cli import COMMANDS, PROGRAMS

    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    aliases = {"influx": "influx-start", "virtual": "virtual-up", "clean": "clean-allowed"}
    for command in (*COMMANDS, *PROGRAMS):
        if command in ("admit", "completion", "list"):  # for reports, for a shell, and for whoever types
            continue
        target = aliases.get(command, command)
        assert re.search(rf"^{target}:[^\n]*\n(?:\t[^\n]*\n)*?\t@\$\(RIG\) {command}\b", text, re.MULTILINE), command
