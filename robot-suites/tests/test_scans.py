"""Thread scan, MiniDAQ scan and latency under load: each runs for real, short, and refuses what it cannot do in words."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import wait_for
from msgspec import structs
from small_runs import altered
from tool_answers import OF_THE_RIG, RECORDED, answer

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, MinidaqSearch
from daq_bench.bench_model.documents.tools.synthetic import Write, WriteSeries
from daq_bench.bench_model.evidence.measured import found_at
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.workloads.scan import SAMPLE_S
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.host import survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.run.preflight import check_memory, check_space, check_workloads
from daq_bench.rig.workloads import block_scan, latency_under_load, minidaq_scan, thread_scan
from daq_bench.rig.workloads.registry import declared_limits, workloads_of
from daq_bench.rig.workloads.shared import fio, scan, write_point
from daq_bench.rig.workloads.shared.site import Site

MIB = 2**20
INVENTORY = Layout().inventory


def site_in(disk: Path) -> Site:
    """Tools write into `work` and their output is fetched into `raw`, as on a candidate behind SSH."""
    for name in ("work", "raw"):
        (disk / name).mkdir()
    return Site(LocalMachine(), Layout().daqwriter, disk, disk / "work", disk / "raw", None)


def announce(*phase: Any) -> None:
    """No progress display in these tests."""


def left_on(disk: Path) -> list[str]:
    return [path.name for path in disk.iterdir() if path.name not in ("work", "raw")]


def test_an_interval_that_ended_on_time_is_a_sample_of_its_own_rate() -> None:
    on_time = [(1.0, 1.2501, 100), (1.2501, 1.4999, 0), (1.4999, 1.7502, 70), (1.7502, 1.76, 9)]
    assert scan.samples_of(on_time) == [100 / (1.2501 - 1.0), 0.0, 70 / (1.7502 - 1.4999)]
    drained = [*on_time[:3], (1.7502, 1.9, 30)]
    assert scan.samples_of(drained)[3:] == pytest.approx([30 / 0.1498])
    assert scan.samples_of([]) == scan.samples_of([(1.0, 1.1, 5)]) == []


def test_intervals_that_a_busy_machine_ended_late_account_for_every_window() -> None:
    """daqwriter's sampler makes up for what it missed: behind a late look come some of no length (Ticker, run.h)."""
    late = [
        (0.25, 0.5, 100),
        (0.5, 1.1, 240),
        (1.1, 1.1001, 0),
        (1.1001, 1.1001, 0),
        (1.1001, 1.25, 60),
        (1.25, 1.5, 90),
    ]
    samples = scan.samples_of(late)
    assert samples == pytest.approx([400, 400, 400, 400, 360], rel=1e-3)
    assert sum(samples) * SAMPLE_S == pytest.approx(490)
    drifted = [(0.25 + 0.3 * number, 0.55 + 0.3 * number, 30) for number in range(4)]
    assert scan.samples_of(drifted) == pytest.approx([100] * 5)


@pytest.mark.integration  # it measures
def test_block_scan_with_daqwriter_beside_fio(disk: Path) -> None:
    parameters = {
        "tools": ["fio", "daqwriter"],
        "block_sizes": [65536, MIB],
        "seconds_per_point": 1,
        "ramp_s": 0.25,
        "io_depth": 4,
        "file_size": 64 * MIB,
    }
    scan = block_scan.run_tools(site_in(disk), parameters, announce)
    check_document(scan, "block-scan", "block_scan.json")
    (other,) = scan["others"]
    assert (scan["tool"], other["tool"]) == ("fio", "daqwriter")
    assert [point["block_bytes"] for point in other["points"]] == [65536, MIB]
    for point in other["points"]:
        samples = point["throughput_bytes_per_s_samples"]
        assert len(samples) in (3, 4, 5)  # 1 s in windows of 0.25 s, the ramp left out
        assert point["throughput_bytes_per_s"] == pytest.approx(sum(samples) / len(samples), rel=0.3)
    assert any(
        name.startswith("block_scan.daqwriter_") for name in scan["reasons"]
    )  # below 8 MiB there are no large blocks
    assert left_on(disk) == []


def test_both_tools_measure_large_blocks_again(disk: Path) -> None:
    parameters = {
        "tools": ["fio", "daqwriter"],
        "block_sizes": [MIB, 8 * MIB],
        "seconds_per_point": 1,
        "ramp_s": 0.25,
        "io_depth": 4,
        "file_size": 64 * MIB,
        "confirm": {"repetitions": 3, "seconds_per_repetition": 2},
    }
    scan = block_scan.run_tools(site_in(disk), parameters, announce)
    check_document(scan, "block-scan", "block_scan.json")
    metrics = load_metrics(INVENTORY / "metrics.yml")
    for name in ("block_scan.large_block_throughput", "block_scan.daqwriter_large_block_throughput"):
        metric = metrics[name]
        assert len(found_at(metric.path, scan) or []) == 3
        series = found_at(metric.samples or "", scan)
        assert series is not None and [5 <= len(one) <= 10 for one in series] == [True] * 3
    assert len(list((disk / "raw").glob("daqwriter-write-8388608-repetition-*.json"))) == 3
    assert left_on(disk) == []


def test_thread_scan(disk: Path) -> None:
    parameters = {
        "tools": ["fio", "daqwriter"],
        "threads": [1, 10],
        "block_sizes": [32768, 4 * MIB],
        "seconds_per_point": 1,
        "ramp_s": 0.25,
        "io_depth": 1,
        "file_size": 80 * MIB,
    }
    scan = thread_scan.run_thread_scan(site_in(disk), parameters, announce)
    check_document(scan, "thread-scan", "thread_scan.json")
    assert [one["tool"] for one in scan["scans"]] == ["fio", "daqwriter"]
    for one in scan["scans"]:
        grid = [(point["block_bytes"], point["threads"]) for point in one["points"]]
        assert grid == [(32768, 1), (32768, 10), (4 * MIB, 1), (4 * MIB, 10)]
        rates = {key: point["throughput_bytes_per_s"] for key, point in zip(grid, one["points"], strict=True)}
        if all(point["admissible"] for point in one["points"]):
            assert one["ratio"]["value"] == pytest.approx(rates[32768, 10] / rates[32768, 1])
            assert 0 < one["system_cpu"]["highest_fraction"] < 1
    assert left_on(disk) == []


def test_fios_threads_share_their_log() -> None:
    log = "250, 100, 1, 0, 0\n500, 200, 1, 0, 0\n249, 10, 1, 0, 0\n501, 20, 1, 0, 0\n751, 30, 1, 0, 0\n"
    assert fio.bandwidth_samples(log, 250, 501, 0.25 * 330 * 1024) == [110 * 1024.0, 220 * 1024.0]


ONE_MIB: dict[str, Any] = {"file_size": 4 * MIB, "io_depth": 4, "ramp_s": 0}


def scan_site(disk: Path) -> Site:
    return Site(LocalMachine(), Path("daqwriter"), disk, disk, disk, None)


def test_fios_json_states_the_number_of_jobs(disk: Path) -> None:
    """fio-plot draws only what does, also for a single job."""
    write_point.measure_write(scan_site(disk), "fio", "f", MIB, {**ONE_MIB, "seconds_per_point": 1}, str(MIB))
    job = json.loads((disk / f"fio-{MIB}.json").read_text(encoding="utf-8"))["jobs"][0]
    assert {key: job["job options"][key] for key in ("numjobs", "iodepth", "bs")} == {
        "numjobs": "1",
        "iodepth": "4",
        "bs": str(MIB),
    }


def test_no_scan_of_a_run_overwrites_what_another_one_kept(disk: Path) -> None:
    """One thread of the thread scan left its output under the name of the block scan's point, whose result then followed from nothing."""
    own = {**ONE_MIB, "seconds_per_point": 0.5, "block_sizes": [MIB], "threads": [1, 2], "tools": ["fio"]}
    kept = []
    for name in ("block", "thread"):
        raw = disk / name
        raw.mkdir()
        site = Site(LocalMachine(), Path("daqwriter"), disk, raw, raw, None)
        run = block_scan.run_tools if name == "block" else thread_scan.run_thread_scan
        run(site, own, lambda *_: None)
        kept.append({file.name for file in raw.iterdir()})
    assert kept[0] & kept[1] == {"block-scan.fio", "layout.fio"}  # which are the same
    assert {"fio-1048576.json", "fio-1048576_bw.1.log"} <= kept[0]
    assert {"fio-1048576-1-threads_bw.1.log", "fio-1048576-2-threads_bw.log"} <= kept[1]


def test_a_fio_that_is_killed_writes_no_more(disk: Path) -> None:
    """A job that is a process has a session of its own: it wrote on for the time that it was given, in the next run too."""
    values: dict[str, str | int] = {"BLOCK_BYTES": MIB, "SIZE_BYTES": 4 * MIB, "IO_DEPTH": 4, "RUNTIME": "30s"}
    values |= {"RAMP_TIME": "0s", "WINDOW_MS": 250}
    site = scan_site(disk)
    argv = site.jobs.command("block-scan", "x", site.target("f"), values)
    killed = subprocess.Popen(argv, stdout=subprocess.DEVNULL, start_new_session=True)
    found = str(disk / "block-scan.fio")
    while not (disk / "f").exists() or not (disk / "f").stat().st_size:
        assert killed.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)
    killed.kill()
    killed.wait()

    def left() -> list[str]:
        said = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
        return [line for line in said.splitlines() if found in line]

    wait_for(lambda: left() == [], "the end of its jobs", 60)


def test_daqwriters_ramp_is_left_out_and_its_preparation_expected_of_the_device() -> None:
    recorded = answer(Write, OF_THE_RIG / "write.json")
    said = structs.replace(
        recorded,
        written_bytes=7000,
        parameters=structs.replace(recorded.parameters, span_bytes=4096),
        series=WriteSeries(
            interval_s=0.25, t_s=[0.25, 0.5, 0.75, 1.0, 1.01], written_bytes=[1000, 1500, 2000, 2400, 100]
        ),
        threads=[structs.replace(recorded.threads[0], end_s=1.0, user_s=0.1, system_s=one) for one in (0.2, 0.4)],
    )
    point = write_point.write_point(said, seconds=0.5, ramp_s=0.5, device_bytes=11096)
    assert point.throughput_bytes_per_s == pytest.approx(4500 / 0.51)
    assert point.throughput_bytes_per_s_samples == [8000, 9600]
    assert point.cpu_system_percent == pytest.approx(30)
    assert point.admissible
    masked = write_point.write_point(said, seconds=0.5, ramp_s=0.5, device_bytes=7000)
    assert masked.reason == "the device counted 7000 B of the 11096 B that daqwriter says it wrote"


@pytest.mark.parametrize("trigger", [None, {"rate_hz": None}])
def test_a_record_that_says_of_no_trigger_rate_is_no_point(trigger: Any) -> None:
    whole = {"asked_request_bytes": 1, "request_bytes": 1, "superchunks_per_link": 1, "decisions": 1, "vetoed": 0}
    said = trigger and {**whole, "unbuffered_superchunks": 0, "achieved_rate_hz": 1.0, **trigger}
    run = answer(Minidaq, OF_THE_RIG / "minidaq.json", trigger=said)
    found = answer(MinidaqSearch, RECORDED / "minidaq-search.json")
    with pytest.raises(BenchError, match="says of no trigger rate"):
        minidaq_scan.point(minidaq_scan.Load({}, 1.0), MIB, found, [run], {"reason": None}, True)


def test_minidaq_scan(disk: Path) -> None:
    parameters = {
        "applications": 2,
        "links": 5,
        "superchunk_bytes": 5568,
        "superchunk_rate_hz": 166000,
        "ring_size": 16 * MIB,
        "block_size": 4 * MIB,
        "io_depth": 4,
        "checksum": "off",
        "request_sizes": [MIB, 4 * MIB],
        "seconds_per_trial": 0.2,
        "search_resolution": 0.5,
        "seconds_per_point": 0.5,
        "synthetic_threads": 2,
    }
    steps: list[tuple[Any, ...]] = []
    load = minidaq_scan.Load(parameters, 0.02)
    scan = minidaq_scan.run_minidaq_scan(site_in(disk), load, 2, 7, lambda *step: steps.append(step))
    check_document(scan, "minidaq-scan", "minidaq_scan.json")
    assert scan["demand_bytes_per_s"] == pytest.approx(0.02 * 9.24288e9)
    found = [(one["repetition"], one["asked_request_bytes"], one["synthetic"]["first"]) for one in scan["points"]]
    # In turn, of each size and within each pass, so that drift cancels.
    assert found == [(1, MIB, True), (1, 4 * MIB, False), (2, MIB, False), (2, 4 * MIB, True)]
    assert [(step, steps_of) for _, step, steps_of, _ in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    for kind in ("minidaq-search", "minidaq-scan-synthetic"):  # each with an output of its own
        assert len(list((disk / "raw").glob(f"{kind}-*-repetition-[12].json"))) == 4
    for point in scan["points"]:
        assert point["request_bytes"] % (5 * 5568) == 0
        assert point["admissible"] or point["reason"]
        if point["limited_by"] == "all asked" and point["admissible"]:
            assert point["runs"][-1]["stored_bytes_per_s"] <= scan["demand_bytes_per_s"]
    assert left_on(disk) == []


def test_latency_under_load(disk: Path) -> None:
    parameters = {
        "links": 10,
        "superchunk_bytes": 5568,
        "superchunk_rate_hz": 166000,
        "ring_size": 2 * MIB,
        "block_size": MIB,
        "io_depth": 4,
        "checksum": "crc32",
        "load_factors": [0.5, 1.0],
        "seconds_per_point": 1,
    }
    found = latency_under_load.run_ladder(site_in(disk), parameters, 0.01, 7, announce)
    check_document(found, "latency-under-load", "latency_under_load.json")
    for point, factor in zip(found["points"], (0.5, 1.0), strict=True):
        assert point["asked_bytes_per_s"] == pytest.approx(factor * 92.4288e6)
        assert point["offered"] == point["stored"] + point["lost"]
        given = [one["percentile"] for one in point["percentiles"] if one["us"] is not None]
        assert 99.999 not in given  # 16 600 superchunks leave none beyond it
    assert "latency_under_load.p99_999_at_demand" in found["reasons"]
    assert left_on(disk) == []


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (
            "block-scan",
            {"file_size": 16 * MIB},
            "file_size: 16777216 B hold no block of 33554432 B. Make it 33554432 B or more",
        ),
        ("block-scan", {"tools": ["fio"]}, "yields: block_scan.daqwriter_large_block_throughput needs daqwriter"),
        ("block-scan", {"block_sizes": [4096, MIB]}, "confirm: no entry of block_sizes is 8 MiB or more"),
        ("thread-scan", {"file_size": 8 * MIB}, "8388608 B shared out among 10 threads hold no block of 4194304 B"),
        ("thread-scan", {"threads": [10, 1]}, "threads: is not ascending"),
        ("minidaq-scan", {"ring_size": 8 * MIB}, "hold fewer than four requests of 64 MiB"),
        ("latency-under-load", {"load_factors": [1.0, 0.5]}, "load_factors: is not ascending"),
    ],
)
def test_what_cannot_work_is_refused(name: str, changes: dict[str, Any], words: str) -> None:
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    with pytest.raises(RefusedError, match="(?s)" + name) as caught:
        check_workloads(altered(name, **changes), candidate, survey(LocalMachine()))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("block-scan", "the block scan's file of 34.36 GB"),
        ("thread-scan", "the thread scan's file of 42.95 GB"),
        ("minidaq-scan", "9.243 GB/s x 15 s = 138.6 GB"),
        ("latency-under-load", "11.55 GB/s x 30 s = 346.6 GB"),
    ],
)
def test_a_drive_that_is_too_small_is_refused_with_the_arithmetic(name: str, words: str) -> None:
    with pytest.raises(RefusedError, match="is too small") as caught:
        check_space(altered(name), Path("/mnt/drive"), 20 * 10**9)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["minidaq-scan", "latency-under-load"])
def test_rings_that_the_server_has_no_memory_for_are_refused(name: str) -> None:
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    with pytest.raises(RefusedError, match="ring_size: 10 rings of"):
        check_memory(candidate, altered(name), 64 * 2**30)


@pytest.mark.parametrize("name", ["block-scan", "thread-scan", "minidaq-scan", "latency-under-load"])
def test_the_full_scenarios_have_no_limits_of_their_own(name: str) -> None:
    assert declared_limits(altered(name)) == []
    assert all((workload.seconds(altered(name)) or 0) > 300 for workload in workloads_of(altered(name)))


def test_the_minidaq_scan_takes_as_long_as_its_repetitions() -> None:
    loaded = altered("minidaq-scan")
    once = replace(loaded, repetitions=1)
    longer_s, once_s = (minidaq_scan.WORKLOAD.seconds(one) or 0.0 for one in (loaded, once))
    assert longer_s == pytest.approx(loaded.repetitions * once_s) and once_s > 60


@pytest.mark.parametrize("name", ["snb-100s", "snb-100s-nominal", "snb-120s"])
def test_the_qualifying_bursts_repeat(name: str) -> None:
    assert load_scenario(INVENTORY / "scenarios" / f"{name}.yml").repetitions >= 3


def test_a_scan_with_repetitions_says_how_long_it_takes() -> None:
    loaded = altered("block-scan")
    again_s, own = block_scan.WORKLOAD.seconds(loaded) or 0.0, loaded.workloads["block_scan"]
    lasting_s = len(own["tools"]) * len(block_scan.turns(own)) * own["confirm"]["seconds_per_repetition"]
    del loaded.workloads["block_scan"]["confirm"]
    assert again_s - (block_scan.WORKLOAD.seconds(loaded) or 0.0) > lasting_s > 300
