"""The scenario concurrent-analysis-rehearsal as a user runs it here: cold points, right physics, a slow disk, a farm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest
from whole_runs import Finished, check_bundle, rehearsed

from daq_bench.bench_model.workloads.concurrent_analysis.analysis import document as rates_of

pytestmark = [pytest.mark.integration, pytest.mark.campaign]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    with rehearsed(tmp_path_factory, "concurrent-analysis-rehearsal") as run:
        loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
        assert str(run.disk) not in loops, "a loop device was left behind"
        yield run


def test_what_does_not_depend_on_speed_is_met_and_the_run_is_no_pass(finished: Finished) -> None:
    assert finished.decisions("ANA-02", "ANA-03") == ["met"] * 2
    assert "sets.sparse.events is 40000 where at least 10000000 is demanded" in " ".join(finished.texts())


def test_every_point_was_read_from_the_device(finished: Finished) -> None:
    rates = finished.document("results/concurrent_analysis_rates.json")
    assert rates["judged"]["coldness_min"] >= 1, rates["invalid"]
    assert {one["n"] for one in rates["series"][0]["points"]} == {6}


def test_the_slow_disk_is_slower_than_the_target(finished: Finished) -> None:
    found = finished.document("results/concurrent_analysis.json")
    rates = finished.document("results/concurrent_analysis_rates.json")
    slow = next(one for one in found["storages"] if one["kind"] == "slow-disk")
    if os.geteuid() != 0:
        assert "could not be measured" in slow["reason"]
        return
    assert slow["reason"] is None, slow["reason"]
    peaks = {
        (one["storage"], one["analysis"]): one["peak_bytes_per_s"]
        for one in rates["series"]
        if one["layout"] == "ttree"
    }
    own = found["storages"][0]["name"]
    assert peaks["slow-disk", "full"] < peaks[own, "full"]


def test_what_follows_is_recomputed_and_the_bundle_is_whole(finished: Finished) -> None:
    found = finished.document("results/concurrent_analysis.json")
    assert rates_of(found) == finished.document("results/concurrent_analysis_rates.json")
    check_bundle(finished.bundle)
    text = finished.report()
    for words in ("Analysis rate against workers: full", "Farm: aggregate rate", "Mass spectrum"):
        assert words in text, words
