"""The thermal soak as a user runs it on a machine without sensors: it ends honestly, and what it could not see is no PASS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from whole_runs import document, rig

from daq_bench.rig.base.settings import Layout

pytestmark = [pytest.mark.integration, pytest.mark.campaign]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("thermal")
    os.environ.setdefault("DAQ_BENCH_LOCK_DIR", str(folder))
    words = ["--scenario", "thermal-rehearsal", "--runs", str(folder / "runs")]
    target = Layout().build / "tests" / "thermal"
    done = rig("qualify", "--yes", *words, "--target", str(target), "--influx-url", "http://127.0.0.1:9")
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert not list(target.glob("*"))
    return (folder / "runs" / "latest").resolve()


def test_it_ends_with_a_verdict_that_counts_for_nothing_more_than_it_saw(bundle: Path) -> None:
    verdict = document(bundle, "verdict.json")
    assert verdict["outcome"] == "INADMISSIBLE"
    rows = {one["id"]: one for one in verdict["requirements"]}
    watched = document(bundle, "results/throttling.json")["watched"]
    if "temperature" not in watched:
        assert (rows["TH-03"]["outcome"], rows["TH-03"]["measured"]) == ("INADMISSIBLE", None)
    if not watched:
        assert (rows["TH-01"]["outcome"], rows["TH-01"]["measured"]) == ("INADMISSIBLE", None)
        assert "cannot be told from throttling" in rows["TH-01"]["reason"]
    assert not [one for one in rows.values() if one["outcome"] == "PASS"]


def test_the_soak_wrote_and_was_watched(bundle: Path) -> None:
    thermal = document(bundle, "results/thermal.json")
    assert thermal["soak"]["end_utc_s"] - thermal["soak"]["start_utc_s"] >= 40
    assert thermal["fan_sweep"]["status"] == "unsupported"
    (window,) = [one for one in document(bundle, "results/dips.json")["windows"] if one["name"] == "soak"]
    assert window["reason"] is None
    # The device also takes what others write on this machine, but no less than fio wrote.
    assert window["mean_bytes_per_s"] >= 0.85 * thermal["soak"]["throughput_bytes_per_s"]


def test_the_analysis_comes_out_again_from_the_bundle(bundle: Path) -> None:
    done = rig("check-bundle", str(bundle))
    assert done.returncode == 0, done.stdout + done.stderr
