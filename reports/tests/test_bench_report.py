"""Part `report`: reports can read the bundles that it makes, and its criteria agree with the measurement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.column_file import FILE, difference
from daq_bench.bench_report.reading.telemetry import columns_of
from daq_bench.bench_report.trend.command import render
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.reporting_bench import history, history_trial, report, report_bundle, report_trial
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.checking.sealing import altered_evidence, altered_reports


def test_a_synthetic_bundle_is_sealed_and_holds_so_many_points(tmp_path: Path) -> None:
    root = report_bundle.make(tmp_path / "bundle", 5000, columns=True)
    assert altered_evidence(root) == [] and difference(root) is None
    found = columns_of(root)
    assert found is not None and found.lines == 5000
    bare = tmp_path / "bare"
    report.linked(root, bare)
    (bare / FILE).unlink()
    other = columns_of(bare)
    assert other is not None and found.found.keys() == other.found.keys()
    assert {name for name, _, _ in found.found} >= {"block_device", "cpu", "temperature"}


def test_a_bundle_whose_report_a_trial_rendered_is_checked(tmp_path: Path) -> None:
    root = report_bundle.make(tmp_path / report_bundle.RUN, 5000, columns=True)
    assert report_trial.report([root])
    assert report_trial.check([root])
    assert altered_reports(root) == []


def test_the_nights_of_a_trend_are_several_runs_of_one_candidate(tmp_path: Path) -> None:
    first = report_bundle.make(tmp_path / "bundle", 5000, columns=True)
    kept = (first / "run.json").read_bytes()
    nights = [tmp_path / f"night-{number}" for number in range(3)]
    for number, night in enumerate(nights):
        report.linked(first, night)
        report_bundle.make_another_night(night, number)
    assert (first / "run.json").read_bytes() == kept
    render(nights, report_bundle.CANDIDATE, None, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "trend.json").read_text(encoding="utf-8"))
    assert len(found["runs"]) == 3 and found["left_out"] == []
    assert all(run["temperatures_degC"].get("inlet air") for run in found["runs"])
    assert any(len(set(one["values"])) == 3 for one in found["requirements"])


def point(size: int, **medians: float) -> dict[str, Any]:
    contenders = {
        name: {"seconds": {"median": seconds}, "max_rss_bytes": {"median": 1e9}} for name, seconds in medians.items()
    }
    return {"key": {"points": size}, "contenders": contenders, "errors": {}}


def scan(exponent: float) -> list[dict[str, Any]]:
    sizes = (10**4, 10**5, 10**6, 10**7)
    return [
        point(size, **{report.COLUMNS: 20 * (size / 1e7) ** exponent, report.REPORT: 6.0, report.TREND: 30.0})
        for size in sizes
    ]


@pytest.mark.parametrize(("slope", "met"), [(1.0, True), (1.3, False)])
def test_the_exponent_tells_linear_from_steeper(slope: float, met: bool) -> None:
    judged = {one.id: one for one in report.judge(scan(slope))}
    assert judged["report.linear"].value == pytest.approx(slope)
    assert judged["report.linear"].met is met
    assert judged["report.ten"].met and judged["report.smoke"].met and judged["report.memory"].met


def test_a_trial_that_failed_is_no_success() -> None:
    failed = scan(1.0)
    failed[-1]["errors"] = {report.TREND: "out of memory"}
    judged = {one.id: one for one in report.judge(failed)}
    assert not judged["report.ten"].met and not judged["report.memory"].met


def test_the_memory_of_a_reader_is_its_own_and_its_helpers_at_one_moment() -> None:
    """A helper's peak as the kernel tells it behind its end holds its parent's, from before it became another program."""
    words = [sys.executable, "-c", "held = bytearray(100 * 2**20); import time; print(flush=True); time.sleep(0.5)"]
    before = history_trial.resident_bytes()
    with history_trial.watched() as alone:
        pass
    with history_trial.watched() as seen:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert len(alone) >= 1 and max(alone) < before + 50 * 2**20
    assert before + 90 * 2**20 < max(seen) < before + 200 * 2**20


def test_the_index_made_anew_is_held_to_the_bounds_of_its_readers() -> None:
    def point(seconds: float, **errors: str) -> dict[str, Any]:
        found = {"seconds": {"median": 1.0}, "max_rss_bytes": {"median": 5e8}}
        contenders = dict.fromkeys((*history.FIRST, *history.READERS), found)
        contenders["lot_rows"] = found | {"seconds": {"median": seconds}}
        return {"key": {"runs": 10_000}, "contenders": contenders, "errors": errors}

    def held(*points: dict[str, Any]) -> list[bool]:
        return [one.met for one in history.judge(list(points))]

    assert held(point(59.0)) == [True, True]
    assert held(point(61.0)) == [False, True]
    assert held(point(59.0, lot_rows="ended with 1")) == held() == [False, False]


def test_a_trial_states_what_its_own_process_took(tmp_path: Path) -> None:
    root = report_bundle.make(tmp_path / "bundle", 5000, columns=True)
    tools = Tools(LocalShell(), Path("daqwriter"), tmp_path)
    found = tools.trial("judge", 120, "daq_bench.reporting_bench.report_trial", "judge", root)
    assert found.argv[1:] == ("-m", "daq_bench.reporting_bench.report_trial", "judge", str(root))
    assert found.more.keys() == {"seconds", "cpu_s"}
    assert found.max_rss_bytes is not None and found.max_rss_bytes > 2**20
    with pytest.raises(BenchError, match="judge"):
        tools.trial("judge", 120, "daq_bench.reporting_bench.report_trial", "judge", tmp_path / "no bundle")
