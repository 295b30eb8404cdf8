"""`make mutants` (.ci/mutants.py): which changes it makes, and that a test which asserts the value notices one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from daq_bench.rig.base.settings import Layout

CI = Layout().repository / ".ci"


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(CI))  # it imports its neighbour
    spec = importlib.util.spec_from_file_location("mutants", CI / "mutants.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants", module)
    spec.loader.exec_module(module)
    return module


SOURCE = """
def worst(values: list[float] | None, low: bool) -> float:
    if values and low and numpy.min(values) <= 3:
        return min(values) - 1
    return 0.5
"""


def test_each_place_is_changed_once_and_annotations_are_left_alone(
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "worst.py").write_text(SOURCE, encoding="utf-8")
    changed = {
        mutants.mutate_code(SOURCE, mutants.operator(one.operator), one.occurrence)
        .strip()
        .splitlines()[one.line - 2]
        .strip()
        for one in mutants.mutants("worst.py")
    }
    assert changed == {
        "if not values and low and numpy.min(values) <= 3:",
        "if values or low and numpy.min(values) <= 3:",
        "if values and low or numpy.min(values) <= 3:",
        "if values and low and numpy.min(values) < 3:",
        "if values and low and numpy.min(values) <= 4:",
        "if values and low and numpy.min(values) <= 2:",
        "return max(values) - 1",
        "return min(values) + 1",
        "return min(values) - 2",
        "return min(values) - 0",
        "return 1.5",
        "return -0.5",
    }


def test_the_nearest_tests_come_first(mutants: ModuleType) -> None:
    found = mutants.tests_beside(f"{mutants.MODEL}/verdict/decision.py", mutants.python_sources())
    assert found[0] == "inventory/tests/test_decision.py"
    assert all(name.startswith("inventory/tests/test_") for name in found)


def test_a_mutant_is_killed_and_its_row_kept(tmp_path: Path) -> None:
    """Mutates the acceptance plans of a lot; the second run finds its row and runs nothing."""
    asked = [
        sys.executable,
        CI / "mutants.py",
        "--files",
        "lot/sampling.py",
        "--sample",
        "1",
        "--seed",
        "3",
        "--folder",
        tmp_path,
    ]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = (json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines())
    assert (row["file"].rpartition("/")[2], row["outcome"]) == ("sampling.py", "killed")
    assert "| lot | 1 | 1 | 0 | 0 | 100.0% |" in done.stdout
    again = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert "mutants: 1, 1 of them known, 0 to run" in again.stdout


def test_a_room_that_is_none_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, CI / "mutants.py", "--rooms", "verdict attic"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "no such room: attic; there are verdict evidence" in done.stderr
