"""Tells how `make test` arranges its steps (.ci/checks.py): what waits for what, and what is alone."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

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
        checks, tmp_path, {"name": "build", "status": 1}, {"name": "tested", "after": "build"}, {"name": "third"}
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


def test_no_two_builds_run_beside_each_other(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the one before; every test of a build waits for it; names are each step's own."""
    for variable in (checks.SANITIZERS_VARIABLE, checks.INFLUX2_VARIABLE, checks.CAMPAIGNS_VARIABLE):
        monkeypatch.setenv(variable, "1")
    all_of_them = checks.steps()
    names = [step.name for step in all_of_them]
    assert len(names) == len(set(names))
    builds = [step for step in all_of_them if step.argv[:3] == checks.GIVING_WAY or step.name.endswith("build")]
    assert [step.after for step in builds] == ["", *(step.name for step in builds[:-1])]
    assert all(step.after in names for step in all_of_them if step.after)
    ended: list[str] = []
    pending, until_s = list(all_of_them), time.monotonic() + 10
    while pending and time.monotonic() < until_s:
        step = checks.next_of(pending, set())
        pending.remove(step)
        ended.append(step.name)
    assert sorted(ended) == sorted(names)
    assert [step.name for step in all_of_them if step.alone] == ended[-3:]
