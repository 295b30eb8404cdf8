"""Names that a message offers for one that does not exist."""

from __future__ import annotations

import subprocess
import sys

import pytest

from daq_bench.bench_model.base import nearest as module
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.yaml_source import SCHEMAS

SCENARIOS = ["dune-snb", "snb-100s", "snb-100s-nominal", "snb-120s", "read-scan", "block-scan", "thermal", *"abcdefgh"]


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("snb-100", SCENARIOS, "Did you mean snb-100s, snb-120s or snb-100s-nominal?"),
        ("SNB-100S", SCENARIOS, "Did you mean snb-100s, snb-120s or snb-100s-nominal?"),
        ("thremal", SCENARIOS, "Did you mean thermal?"),
        ("ther", SCENARIOS, "Did you mean thermal?"),
        ("xyzzy", ["one", "two"], "Known: one, two"),
        ("", ["one", "two"], "Known: one, two"),
        ("xyzzy", [], "There are none"),
        ("xyzzy", SCENARIOS, "No name is near among the 15 known ones; `daq-bench list scenarios` lists them"),
    ],
)
def test_the_nearest_three_are_offered(name: str, known: list[str], said: str) -> None:
    assert nearest(name, known, "daq-bench list scenarios") == said


def test_a_message_is_short_however_many_names_there_are() -> None:
    metrics = load_metrics(SCHEMAS.parent / "metrics.yml")
    assert len(metrics) > 100
    for name in ("snb_record.lost_superchunk", "xyzzy", ""):
        assert len(nearest(name, metrics, "daq-bench list metrics")) < 200
    assert "snb_record." in nearest("snb_record.lost_superchunk", metrics)


def test_make_asks_the_same_function_as_a_program() -> None:
    words = [sys.executable, "-I", str(module.__file__), "CANIDATE", "=", "CANDIDATE", "SCENARIO", "$(touch x)"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "Did you mean CANDIDATE=?\n"
