"""Tells which tests `make check` chooses (.ci/check.py), and that it is honest about what it did not run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from daq_bench.rig.base.settings import Layout


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_command", Layout().repository / ".ci" / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("import a.b, c as d\n", {"a.b", "c"}),
        ("from a import b as x, c  # and d\n", {"a", "a.b", "a.c"}),
        ("    from a.b import (\n    c,\n    d as e,\n)\n", {"a.b", "a.b.c", "a.b.d"}),
        ("'''Words that import nothing.'''\nimportant = 1\n", set()),
    ],
)
def test_imports_are_read_as_they_are_written(check: ModuleType, text: str, modules: set[str]) -> None:
    assert check.imported(text) >= modules
    assert check.imported(text) <= modules | {""}


def test_a_test_that_reaches_the_change_by_others_is_chosen_after_the_nearer(check: ModuleType) -> None:
    """It was left out: direct imports alone were looked at."""
    room = check.PACKAGES[0]
    sources = {
        f"{room}/low.py": "",
        f"{room}/middle.py": "from low import thing\n",
        f"{room}/round.py": "import middle, round\n",  # a circle ends
        "x/tests/helpers.py": "import round\n",
        "x/tests/test_a_far.py": "from helpers import something\n",
        "x/tests/test_b_near.py": "import low\n",
        "x/tests/test_c_other.py": "import other\n",
    }
    assert check.tests_of([f"{room}/low.py"], sources) == ["x/tests/test_b_near.py", "x/tests/test_a_far.py"]
    assert check.tests_of(["x/tests/test_c_other.py", "gone.py"], sources) == ["x/tests/test_c_other.py"]


def test_what_did_not_run_is_named_and_fails(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said "not finished" and was a success."""
    hang = (
        "import os, time\nopen(os.environ['TEST_PROGRESS'], 'w').write("
        "'chosen a::1\\nchosen a::2\\nchosen b::1\\nbegins a::1\\nends a::1\\nbegins a::2\\n')\ntime.sleep(600)"
    )
    monkeypatch.setattr(check, "STEP_S_MAX", 3.0)
    monkeypatch.setattr(check, "changed_files", lambda: ["some.py"])
    monkeypatch.setattr(
        check, "steps", lambda _changed: iter([("tests (2 files)", [sys.executable, "-S", "-c", hang])])
    )
    assert check.main() == 1
    said = capsys.readouterr().out
    assert "not run to their end, `make test` does: a b\n" in said
    assert said.splitlines()[-1].startswith("check: not finished: tests (2 files), ")


def test_progress_of_nothing_names_nothing(check: ModuleType) -> None:
    assert check.not_ended("") == []
    assert check.not_ended("chosen a::x[1 2]\nbegins a::x[1 2]\nends a::x[1 2]\nchosen c::y\n") == ["c"]
    assert Path(check.ROOT, ".ci", "check.py").is_file()
