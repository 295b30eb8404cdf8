"""Tells how `make test` arranges its steps (.ci/checks.py): what waits for what, and what is alone."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from agent_helpers import wait_for

from daq_bench.rig.base.settings import Layout

SLEEPS = """
import sys, time
begin = time.monotonic()
time.sleep(0.2)
with open(sys.argv[1], "w") as file:
    print(begin, time.monotonic(), file=file)
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module, with its results in the test's folder."""
    monkeypatch.syspath_prepend(str(Layout().repository / ".ci"))  # it imports its neighbour
    spec = importlib.util.spec_from_file_location("checks", Layout().repository / ".ci" / "checks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "checks", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    return module


def steps(checks: ModuleType, folder: Path, *wanted: dict[str, object]) -> list[object]:
    """Steps that write down when they begin and end; `status` is their exit status."""
    made = []
    for one in wanted:
        status, name = one.pop("status", 0), str(one["name"])
        argv = [sys.executable, "-S", "-c", SLEEPS, str(folder / name), str(status)]
        made.append(checks.Step(argv=argv, **one))
    return made


def span(folder: Path, name: str) -> tuple[float, float]:
    begin, end = (folder / name).read_text().split()
    return float(begin), float(end)


def test_a_step_waits_for_the_one_that_it_needs_even_when_that_fails(checks: ModuleType, tmp_path: Path) -> None:
    """Tests of a build that broke fail too, and are counted: nothing is left out in silence."""
    made = steps(
        checks, tmp_path, {"name": "build", "status": 1}, {"name": "tested", "after": ("build",)}, {"name": "third"}
    )
    counted = {took.name: this.failed for took, this in checks.run_all(made)}
    assert counted == {"build": 1, "tested": 0, "third": 0}
    assert span(tmp_path, "tested")[0] >= span(tmp_path, "build")[1]


def test_what_measures_is_alone(checks: ModuleType, tmp_path: Path) -> None:
    """A step of `alone` begins after all before it and ends before all after it."""
    made = steps(
        checks,
        tmp_path,
        *({"name": name} for name in ("a", "b")),
        {"name": "m", "alone": True},
        {"name": "n", "alone": True},
    )
    assert [took.name for took, _ in checks.run_all(made)][2:] == ["m", "n"]
    begin, end = span(tmp_path, "m")
    assert max(span(tmp_path, name)[1] for name in "ab") <= begin
    assert span(tmp_path, "n")[0] >= end


def test_only_what_gives_way_runs_beside_what_measures(checks: ModuleType) -> None:
    """It takes what a test that waits leaves; a step that does not give way waits, and so does the next that is to be alone."""
    quiet = checks.Step("quiet", [*checks.GIVING_WAY, "true"])
    loud, alone, next_alone = (
        checks.Step(name, ["true"], alone="alone" in name) for name in ("loud", "alone", "next alone")
    )
    assert checks.next_of([alone, next_alone], [loud]) is None
    assert checks.next_of([quiet, alone, next_alone], [loud]) is quiet
    assert checks.next_of([alone, next_alone], [quiet]) is alone
    assert checks.next_of([loud, alone], []) is loud
    waits = checks.Step("waits", ["true"], after=("quiet",))
    assert checks.next_of([waits, alone], [quiet]) is None, "what is before it in the list comes first"
    assert checks.next_of([next_alone, loud], [alone]) is None
    assert checks.next_of([quiet, next_alone], [alone]) is quiet


def test_no_two_builds_run_beside_each_other(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the one before; every test of a build waits for it; names are each step's own."""
    for variable in (
        checks.SANITIZERS_VARIABLE,
        checks.INFLUX2_VARIABLE,
        checks.CAMPAIGNS_VARIABLE,
        checks.FULL_VARIABLE,
    ):
        monkeypatch.setenv(variable, "1")
    all_of_them = checks.steps()
    names = [step.name for step in all_of_them]
    assert len(names) == len(set(names))
    native = [step for step in all_of_them if step.name.startswith("native-writer")]
    builds = [step for step in native if not step.name.endswith("ctest")]
    assert [step.after for step in builds] == [(), *((step.name,) for step in builds[:-1])]
    assert all(name in names for step in all_of_them for name in step.after)
    ended: list[str] = []
    pending = list(all_of_them)
    for _ in all_of_them:
        step = checks.next_of(pending, set())
        pending.remove(step)
        ended.append(step.name)
    assert sorted(ended) == sorted(names)
    assert [step.name for step in all_of_them if step.alone] == ended[-3:]


def test_only_what_gives_way_runs_beside_native_tests(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their pace is measured: while one of them is left, each step that may begin has a low priority. A sanitizer's tests come later."""
    monkeypatch.setenv(checks.SANITIZERS_VARIABLE, "1")
    all_of_them = checks.steps()
    native = [step for step in all_of_them if step.name in ("native-writer: build", "native-writer: ctest")]
    loud = {step.name for step in all_of_them if step.name.startswith("native-writer") and not step.gives_way}
    assert loud == {native[-1].name, "native-writer-asan: ctest", "native-writer-tsan: ctest"}
    for last in native:
        others = [step for step in all_of_them if not step.name.startswith("native-writer")]
        while step := checks.next_of(others, [last]):
            others.remove(step)
            assert step.argv[:3] == checks.GIVING_WAY, step.name
        assert {"pytest: robot-suites", "pytest: agents"} <= {step.name for step in others}


def test_only_full_runs_what_boots_machines(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("pytest: virtual candidate", "pytest: virtual storage", "lint: collection")
    monkeypatch.delenv(checks.FULL_VARIABLE, raising=False)
    assert not {*asked} & {step.name for step in checks.steps()}
    monkeypatch.setenv(checks.FULL_VARIABLE, "1")
    assert {*asked} <= {step.name for step in checks.steps()}


def test_ci_asks_in_turn_for_all_that_make_test_leaves_out(tmp_path: Path) -> None:
    """By the number of the commit: nothing is left out for good, and no turn asks for nothing."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(Layout().repository / ".ci" / "run", tmp_path / ".ci" / "run")
    for name, said in (("git", "echo $COMMITS"), ("make", 'echo "$*"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{said}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    asked = [
        subprocess.check_output(
            ["bash", tmp_path / ".ci" / "run"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "COMMITS": str(number)},
            text=True,
        ).split()
        for number in range(1394, 1398)
    ]
    assert asked == [
        ["test", "SANITIZERS=thread"],
        ["test", "FULL=1", "INFLUX2=1"],
        ["test", "SANITIZERS=address"],
        ["test", "FULL=1"],
    ]


def test_each_sanitizer_can_be_asked_for_alone(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, built in (("address", {"asan"}), ("thread", {"tsan"}), ("1", {"asan", "tsan"}), ("", set())):
        monkeypatch.setenv(checks.SANITIZERS_VARIABLE, asked)
        names = {step.name for step in checks.steps()}
        assert {one for one in ("asan", "tsan") if f"native-writer-{one}: ctest" in names} == built
    monkeypatch.setenv(checks.SANITIZERS_VARIABLE, "adress")
    with pytest.raises(SystemExit, match="SANITIZERS=adress: no such sanitizer"):
        checks.steps()


HANGS = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)  # what hangs may hear nothing
with open(os.environ["TEST_PROGRESS"], "w") as file:
    file.write("chosen a::b\\nchosen c::d e\\nbegins a::b\\nends a::b\\nbegins c::d e\\n")
child = os.fork()
if child:
    open(sys.argv[1], "w").write(f"{os.getpid()} {child}")
time.sleep(600)
"""


def test_a_step_that_hangs_is_ended_with_whom_it_started_and_names_the_test(
    checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It counts as failed, although what it wrote before was sound."""
    monkeypatch.setattr(checks, "CLEANING_UP_S_MAX", 0.2)
    argv = [sys.executable, "-S", "-c", HANGS, str(tmp_path / "pids")]
    junit = tmp_path / "sound.xml"
    step = checks.Step(
        "slow one", ["sh", "-c", 'echo "<t><testcase/></t>" > "$0"; exec "$@"', str(junit), *argv], junit
    )
    ((took, this),) = checks.run_all([replace(step, limit_s=2.0)])
    assert (took.name, this.failed) == ("slow one", 2)
    assert "slow one did not end within 2 s and was ended; the test that was running: c::d e" in capsys.readouterr().out
    for pid in (tmp_path / "pids").read_text().split():
        stat = Path(f"/proc/{pid}/stat")
        wait_for(lambda stat=stat: not stat.exists() or " Z " in stat.read_text(), f"the end of {pid}", 60)


def test_a_steps_limit_leaves_one_that_ends_alone(checks: ModuleType, tmp_path: Path) -> None:
    (made,) = steps(checks, tmp_path, {"name": "quick"})
    ((_, this),) = checks.run_all([made])
    assert (this.passed, this.failed) == (1, 0)


def test_when_the_time_for_all_is_over_what_runs_ends_and_nothing_more_begins(
    checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CI would end us without a name; each step that did not end counts as failed."""
    monkeypatch.setenv(checks.END_VARIABLE, str(time.time() + 2))
    hangs = checks.Step("hangs", [sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    (late,) = steps(checks, tmp_path, {"name": "late", "after": ("hangs",)})
    counted = {took.name: this.failed for took, this in checks.run_all([hangs, late])}
    assert min(counted.values()) >= 1
    assert not (tmp_path / "late").exists()
    said = capsys.readouterr().out
    assert "hangs did not end within" in said
    assert "late was not begun: the time for all steps was over" in said


def junit_of(folder: Path, **cpu_s: float) -> None:
    cases = "".join(
        f'<testcase classname="robot-suites.tests.test_checks" name="{name}"><properties>'
        f'<property name="cpu_s" value="{used}"/></properties></testcase>'
        for name, used in cpu_s.items()
    )
    (folder / "some.xml").write_text(
        f'<t>{cases}<testcase classname="native" name="Units.Reads"/></t>', encoding="utf-8"
    )


def test_the_list_of_slow_tests_follows_what_was_measured(checks: ModuleType, tmp_path: Path) -> None:
    """A test near the bound neither comes nor goes; one that was not measured stays while its file is there."""
    here = "robot-suites/tests/test_checks.py"
    junit_of(tmp_path, new=0.51, below=0.5, near=0.3, cheap=0.1)
    # As pytest writes a file whose import failed: it has no class.
    case = '<testcase classname="" name="tests.test_x"><properties><property name="cpu_s" value="9"/></properties></testcase>'
    (tmp_path / "broken.xml").write_text(f"<testsuites>{case}</testsuites>", encoding="utf-8")
    cpu_s = checks.slow.measured(tmp_path)
    assert cpu_s == {f"{here}::new": 0.51, f"{here}::below": 0.5, f"{here}::near": 0.3, f"{here}::cheap": 0.1}
    before = frozenset({f"{here}::near", f"{here}::cheap", f"{here}::unmeasured", "gone/tests/test_gone.py::x"})
    assert checks.slow.missing(before, cpu_s) == [f"{here}::new"]
    assert checks.slow.missing(frozenset({here}), cpu_s) == []
    assert checks.slow.renewed(before, cpu_s) == [f"{here}::{name}" for name in ("near", "new", "unmeasured")]


def test_the_list_names_tests_that_are_there(checks: ModuleType) -> None:
    """A name that nothing bears any more leaves its test unmarked."""
    for name in checks.slow.listed(checks.slow.LIST.read_text(encoding="utf-8")):
        file, _, test = name.partition("::")
        text = (Layout().repository / file).read_text(encoding="utf-8")
        assert not test or f"def {test.rpartition('::')[2]}(" in text, name
