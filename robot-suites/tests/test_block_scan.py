"""The block scan: fio's figures are read in bytes, masked points carry their reason, and a real scan runs."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.results import WriteLatency, WritePoint
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads import block_scan
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.scan import FileScan
from daq_bench.rig.workloads.shared.site import Site
from daq_bench.rig.workloads.shared.write_point import parse_point

PARAMETERS: dict[str, Any] = {
    "block_sizes": [65536, 1048576],
    "seconds_per_point": 1,
    "ramp_s": 0.25,
    "io_depth": 4,
    "file_size": 64 * 2**20,
}


def fio_output(**changes: Any) -> str:
    write = {
        "bw_bytes": 3_000_000_000,
        "bw": 2_929_687,  # KiB/s: never to be used
        "iops": 2861.0,
        "io_bytes": 9_000_000_000,
        "runtime": 3000,
        "lat_ns": {"mean": 2e6, "max": 9_000_000, "percentile": {"50.000000": 1e6, "99.000000": 3e6, "99.900000": 5e6}},
        **changes,
    }
    return json.dumps({"jobs": [{"error": 0, "usr_cpu": 5.0, "sys_cpu": 7.0, "write": write}]})


OF_3_S = "".join(f"{end}, 2929687, 1, 0, 0\n" for end in range(250, 3001, 250))  # at that rate


def test_throughput_is_bytes_per_second_and_latency_microseconds() -> None:
    point = parse_point(fio_output(), 2**20, 3.0, OF_3_S, 9_100_000_000)
    assert point.throughput_bytes_per_s == 3_000_000_000
    assert point.latency_us == WriteLatency(p50=1000.0, p99=3000.0, p99_9=5000.0, max=9000.0, mean=2000.0)
    assert (point.admissible, point.reason) == (True, None)


def test_bytes_that_the_device_never_saw_mask_the_point() -> None:
    point = parse_point(fio_output(), 2**20, 3.0, "", 1_000_000_000)
    assert point.admissible is False
    assert point.reason == "the device counted 1000000000 B of the 9000000000 B that fio says it wrote"


def test_a_point_that_ran_too_short_is_masked() -> None:
    point = parse_point(fio_output(runtime=2000), 2**20, 3.0, "", None)
    assert point.reason == "ran for 2.00 s of 3 s"


def test_a_point_without_samples_is_masked_and_asks_for_more_time() -> None:
    """A throttled cloud drive paused for 0.5 s: fio 3.33's first block of 32 MiB ended after 0.68 s, when the point was over, and its log
    stayed empty."""
    output = fio_output(io_bytes=8 * 2**25, runtime=680, bw_bytes=394_758_000)
    point = parse_point(output, 2**25, 0.5, "", None)
    assert (point.admissible, point.throughput_bytes_per_s_samples) == (False, [])
    assert (
        point.reason
        == "has 0 of 3 samples in 0.68 s: give it more seconds (seconds_per_point, of a repetition seconds_per_repetition)"
    )
    assert parse_point(output, 2**25, 0.5, "250, 385506, 1, 0, 0\n", None).admissible


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": []}', fio_output(io_bytes=0), fio_output(io_bytes=9e9 + 0.5)])
def test_output_that_holds_no_measurement_is_an_error(text: str) -> None:
    with pytest.raises(BenchError, match="block size 4096 B"):
        parse_point(text, 4096, 3.0, "", None)


@pytest.mark.parametrize("lacking", [["bw_bytes"], ["lat_ns"], ["bw_bytes", "lat_ns"]])
def test_an_old_fio_is_one_error_that_names_its_version_and_what_it_lacks(lacking: list[str]) -> None:
    """fio 3.1 and older write bw in KiB/s alone, or latency in us."""
    document = json.loads(fio_output()) | {"fio version": "fio-3.1"}
    for key in lacking:
        del document["jobs"][0]["write"][key]
    for reader in (
        lambda text: parse_point(text, 4096, 3.0, "", None),
        lambda text: fio.jobs_of(text, "a round"),
    ):
        with pytest.raises(
            BenchError, match=f"^fio-3.1 .* reports no {' and no '.join(lacking)}: .*from 3.2 on. Install"
        ):
            reader(json.dumps(document))


def test_the_bandwidth_log_is_kibibytes_per_second() -> None:
    log = "250, 4128768, 1, 0, 0\n500, 1, 1, 0, 0\n"
    assert fio.bandwidth_samples(log, 250, 501, 1e9) == [4128768 * 1024.0, 1024.0]


# 8 MiB in each of five windows of thirteen: fio 3.33 leaves the others out of its log.
SLOW = "".join(f"{end}, 32768, 1, 0, 0\n" for end in (250, 751, 1250, 2000, 3251))


def test_a_window_without_a_completion_counts_as_nothing_written() -> None:
    """fio writes no row for it: left out, the mean of the samples would be above the rate, and a stall would not be seen."""
    samples = fio.bandwidth_samples(SLOW, 250, 3251, 5 * 2**23)
    assert samples == [2**25 if number in (0, 2, 4, 7, 12) else 0 for number in range(13)]
    assert sum(samples) * 0.25 == 5 * 2**23


def test_a_row_that_came_late_is_the_mean_of_its_windows() -> None:
    """fio's helper came late on a busy machine: its row then speaks of all the time since the one before."""
    assert fio.bandwidth_samples(SLOW, 250, 3251, 13 * 2**23) == [2**25] * 13


def test_the_last_window_has_the_bytes_that_no_row_accounts_for() -> None:
    """fio ends before it writes the row of its last window."""
    log = "".join(f"{end}, 32768, 1, 0, 0\n" for end in range(250, 2751, 250))
    assert fio.bandwidth_samples(log, 250, 3000, 12 * 2**23) == [2**25] * 12
    assert fio.bandwidth_samples(log, 250, 3002, 11.5 * 2**23) == [2**25] * 11 + [2**24]
    assert fio.bandwidth_samples(log, 250, 2990, 12 * 2**23) == [2**25] * 12
    assert fio.bandwidth_samples(log, 250, 2900, 11 * 2**23) == [2**25] * 11


def test_idle_windows_and_a_last_one_without_a_row_are_told_apart() -> None:
    rows = "250, 32768, 1, 0, 0\n1000, 32768, 1, 0, 0\n"
    assert fio.bandwidth_samples(rows, 250, 1250, 3 * 2**23) == [2**25, 0, 0, 2**25, 2**25]
    assert fio.bandwidth_samples(rows, 250, 1250, 5 * 2**23) == [2**25] * 5  # more than the last window can have held


def test_a_run_without_a_log_has_no_samples() -> None:
    """Zeros would say that the drive was idle; nobody knows."""
    assert fio.bandwidth_samples("", 250, 1000, 1e9) == []


@pytest.mark.parametrize(
    ("log", "runtime_ms"),
    [("1e15, 1, 1, 0, 0\n", 1000), ("nan, 1, 1, 0, 0\n", 1000), ("inf, 1, 1, 0, 0\n", 1000), ("-5, 1, 1, 0, 0\n", 1000),
     ("250, 1, 1, 0, 0\n", 1e15), ("250, 1, 1, 0, 0\n", math.nan), ("250, 1, 1, 0, 0\n", -1)],
)  # fmt: skip
def test_a_log_that_fio_cannot_have_written_is_refused_at_once(log: str, runtime_ms: float) -> None:
    """Out of a forged bundle it would fill the memory with windows."""
    with pytest.raises(BenchError, match="fio's"):
        fio.bandwidth_samples(log, 250, runtime_ms, 1e6)


def test_a_drive_that_is_silent_at_the_end_has_no_shorter_record() -> None:
    assert fio.bandwidth_samples("250, 32768, 1, 0, 0\n", 250, 1500, 2**23) == [2**25, 0, 0, 0, 0, 0]


def looked_at(looks_ms: list[int], written: Callable[[float], float]) -> str:
    """fio's log where its helper looked at these times: the mean since the last look, and no row where nothing was completed since."""
    rows = []
    for before, now in pairwise([0, *looks_ms]):
        if done := written(now) - written(before):
            rows.append(f"{now}, {int(done * 1000 / (now - before) / 1024)}, 1, 0, 0\n")
    return "".join(rows)


def steady(moment_ms: float) -> float:
    return 2e6 * moment_ms  # 2 GB/s


def slowing(moment_ms: float) -> float:
    """3 GB/s for 1.5 s, then 1 GB/s."""
    return 3e6 * min(moment_ms, 1500) + 1e6 * max(0.0, moment_ms - 1500)


# A helper that comes later each time: two looks fall into one window, and some window has none. The last look is behind the run's end.
LATE = [300, 560, 830, 1120, 1370, 1660, 1920, 2210, 2480, 2790]
LATER = [250, 640, 900, 1290, 1560, 1990, 2290, 2730, 3160]


@pytest.mark.parametrize("looks_ms", [LATE, LATER, [250, 560, 830, 1450, 1700, 2990]])
def test_each_row_has_the_weight_of_the_time_since_the_last_look(looks_ms: list[int]) -> None:
    """Counted as one window each, rows of 260 ms to 440 ms lost 11 % of a busy disk's bytes, and their mean was not the rate."""
    ended = 3000
    log = looked_at(looks_ms, lambda moment: steady(min(moment, ended)))
    samples = fio.bandwidth_samples(log, 250, ended, steady(ended))
    assert samples == pytest.approx([2e9] * 12, rel=1e-3)


def test_a_change_of_the_rate_stays_where_it_was() -> None:
    samples = fio.bandwidth_samples(looked_at(LATE, slowing), 250, 3000, slowing(3000))
    assert samples[:5] == pytest.approx([3e9] * 5, rel=1e-3) and samples[7:] == pytest.approx([1e9] * 5, rel=1e-3)
    assert math.fsum(samples) / 12 == pytest.approx(slowing(3000) / 3.0, rel=1e-3)


PUNCTUAL = [f"{end}, 2000000, 1, 0, 0\n" for end in range(250, 2751, 250)]
RATE = 2000000 * 1024.0


@pytest.mark.parametrize(
    ("rows", "off_by"),
    [
        (PUNCTUAL, 0.0),
        ([*PUNCTUAL[:4], *PUNCTUAL[8:]], 0.0),  # rows were lost: those behind speak for them, or nothing does
        ([*PUNCTUAL, "9000, 2000000, 1, 0, 0\n"], 24 / 12),  # from the future: it claims 6.25 s more
        (PUNCTUAL[:4], -8 / 12),  # the last 2 s lack: nobody knows in which of them how much was written
        ([row.replace("2000000", "1000000") for row in PUNCTUAL], -5.4 / 12),  # halved: behind 5.5, room for 0.5 and for 5 % of 12
    ],
)  # fmt: skip
def test_a_log_that_was_tampered_with_never_agrees_with_more_than_fio_counted(rows: list[str], off_by: float) -> None:
    """A sum that does not add up contradicts the rate, and decides nothing: see `_agree` in the verdict."""
    samples = fio.bandwidth_samples("".join(rows), 250, 3000, RATE * 3)
    assert math.fsum(samples) / 12 / RATE - 1 == pytest.approx(off_by, abs=0.002)


def test_a_row_that_stands_twice_leaves_nothing_known() -> None:
    """In a log of several threads time starts again with each; in that of one it never does."""
    doubled = "".join([*PUNCTUAL[:4], PUNCTUAL[3], *PUNCTUAL[4:]])
    assert fio.bandwidth_samples(doubled, 250, 3000, RATE * 3, threads=1) == []
    assert len(fio.bandwidth_samples("".join(PUNCTUAL * 2), 250, 3000, RATE * 6, threads=2)) == 12
    document = json.loads(fio_output(io_bytes=int(RATE * 3)))
    document["jobs"][0]["job options"] = {"numjobs": "1"}
    found = [
        parse_point(json.dumps(document), 2**20, 3.0, log, None).throughput_bytes_per_s_samples
        for log in ("".join(PUNCTUAL), doubled)
    ]
    assert found == [pytest.approx([RATE] * 12), []]


@pytest.mark.integration  # at a pace
def test_fio_itself_accounts_for_every_window(tmp_path: Path) -> None:
    """A rate below a block for each window: each second row is missing from fio's log, and its bytes still add up."""
    window_ms = 250
    argv = [
        "fio",
        f"--filename={tmp_path / 'file'}",
        "--rw=write",
        "--direct=1",
        "--ioengine=libaio",
        "--output-format=json",
    ]
    argv += ["--fallocate=none", "--thread", "--name=slow", "--bs=8m", "--size=32m", "--rate=16m", "--time_based"]
    for attempt in range(10):  # until fio's helper, which writes the rows, was never late
        log = tmp_path / f"bw{attempt}"
        logged = ["--runtime=2s", f"--write_bw_log={log}", f"--log_avg_msec={window_ms}"]
        output = LocalMachine().run([*argv, *logged], timeout_s=60).check("fio").stdout
        write = fio.jobs_of(output, "a slow writer")[0]["write"]
        text = Path(f"{log}_bw.1.log").read_text(encoding="ascii")
        ends_ms = [int(row.partition(",")[0]) for row in text.splitlines()]
        if all(end_ms % window_ms < 50 for end_ms in ends_ms):
            break
    samples = fio.bandwidth_samples(text, window_ms, write["runtime"], write["io_bytes"])
    assert len(samples) == (write["runtime"] + fio.LATE_ROW_MS) // window_ms
    assert len(ends_ms) < len(samples) and 0 in samples
    assert sum(samples) * 0.25 == pytest.approx(write["io_bytes"], rel=0.02)


def test_a_scan_without_a_plateau_says_so() -> None:
    points = [
        parse_point(fio_output(bw_bytes=rate), size, 3.0, "", None) for size, rate in ((4096, 10**8), (8192, 2 * 10**8))
    ]
    scan = block_scan.document("fio-3.33", PARAMETERS, points)
    assert scan["plateau"]["throughput_bytes_per_s"] is None
    assert "no plateau" in scan["reasons"]["block_scan.plateau_throughput"]
    assert scan["reasons"]["block_scan.large_block_throughput"] == "no block size of at least 8 MiB was measured"
    assert scan["large_blocks"]["repetitions"] == []


def point(size: int, rate: int, **changes: Any) -> WritePoint:
    log = "".join(f"{end}, {rate // 1024}, 1, 0, 0\n" for end in range(250, 3001, 250))
    return parse_point(fio_output(bw_bytes=rate, **changes), size, 3.0, log, None)


def test_without_confirmation_the_lowest_large_point_stands_alone() -> None:
    points = [point(2**22, 10**9), point(2**23, 3 * 10**9), point(2**24, 2 * 10**9)]
    large = block_scan.document("fio-3.33", PARAMETERS, points)["large_blocks"]
    assert [(one["repetition"], one["block_bytes"]) for one in large["repetitions"]] == [(1, 2**24)]
    assert large["repetitions"][0]["throughput_bytes_per_s"] == large["throughput_bytes_per_s"] == 2 * 10**9
    assert large["repetitions"][0]["throughput_bytes_per_s_samples"] == [2e9 // 1024 * 1024] * 12


def test_a_masked_large_point_is_a_hole_and_not_left_out() -> None:
    points = [point(2**23, 3 * 10**9), point(2**24, 9 * 10**9, runtime=2000)]
    scan = block_scan.document("fio-3.33", PARAMETERS, points)
    check_document(scan, "block-scan", "block_scan.json")
    (hole,) = scan["large_blocks"]["repetitions"]
    assert (hole["block_bytes"], hole["throughput_bytes_per_s"], hole["admissible"]) == (2**24, None, False)
    assert scan["large_blocks"]["throughput_bytes_per_s"] is None
    assert "16 MiB, repetition 1, ran for 2.00 s of 3 s" in scan["reasons"][block_scan.LARGE_BLOCK_METRIC]


CONFIRMED: dict[str, Any] = {
    **PARAMETERS,
    "block_sizes": [1048576, 8388608, 16777216],
    "confirm": {"repetitions": 3, "seconds_per_repetition": 2},
}
TURNS = [(number, size) for number in (1, 2, 3) for size in (8388608, 16777216)]


def test_every_large_size_is_measured_again_in_turns_and_for_longer(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, float, str]] = []

    def measure_one(site: Site, tool: str, size: int, parameters: dict[str, Any], suffix: str) -> WritePoint:
        asked.append((size, parameters["seconds_per_point"], suffix))
        short = len(asked) == 6  # the second repetition of 8 MiB
        return point(size, 10**9, runtime=100 if short else 3000)

    steps: list[tuple[str, int, int, float]] = []
    monkeypatch.setattr(block_scan, "SCAN", FileScan("block scan", "block-scan.bin", measure_one, str))
    site = Site(LocalMachine(), Path("daqwriter"), disk, disk, disk, None)
    scan = block_scan.run_tools(site, CONFIRMED, lambda *phase: steps.append(phase))
    assert asked[3:] == [(size, 2, f"-repetition-{number}") for number, size in TURNS]
    again = scan["large_blocks"]["repetitions"]
    assert [(one["repetition"], one["block_bytes"]) for one in again] == TURNS
    assert [one["throughput_bytes_per_s"] for one in again] == [10**9, 10**9, None, 10**9, 10**9, 10**9]
    assert steps[-1] == ("16777216, fio, repetition 3 of 3", 9, 9, 2.25)
    check_document(scan, "block-scan", "block_scan.json")
    assert "8 MiB, repetition 2, ran for 0.10 s" in scan["reasons"][block_scan.LARGE_BLOCK_METRIC]


@pytest.mark.parametrize(
    "forged",
    [
        {"throughput_bytes_per_s": None},
        {"admissible": False},
        {"admissible": False, "reason": "ran for 1 s"},
        {"reason": "ran for 1 s"},
        {"throughput_bytes_per_s": "9.9e9"},
        {"repetition": 0},
    ],
)
def test_a_repetition_that_contradicts_itself_is_no_document(forged: dict[str, Any]) -> None:
    scan = block_scan.document("fio-3.33", PARAMETERS, [point(2**23, 10**9)])
    read(scan, BlockScan, "block_scan.json")
    scan["large_blocks"]["repetitions"][0].update(forged)
    with pytest.raises(BenchError, match=r"large_blocks\.repetitions\[0\]"):
        read(scan, BlockScan, "block_scan.json")


def test_a_real_confirmation_leaves_a_series_and_an_output_of_each_repetition(disk: Path) -> None:
    raw = disk / "raw"
    raw.mkdir()
    site = Site(LocalMachine(), Path("daqwriter"), disk, raw, raw, None)
    scan = block_scan.run_tools(site, CONFIRMED, lambda *_: None)
    check_document(scan, "block-scan", "block_scan.json")
    found = scan["large_blocks"]["repetitions"]
    assert [(one["repetition"], one["block_bytes"]) for one in found] == TURNS
    for one in found:
        assert 5 <= len(one["throughput_bytes_per_s_samples"]) <= 8  # 2 s in windows of 0.25 s
        assert (raw / f"fio-{one['block_bytes']}-repetition-{one['repetition']}.json").exists()
        assert one["admissible"] or one["throughput_bytes_per_s"] is None
    assert len({one["bytes_written"] for one in found}) > 1  # each was measured by itself
    assert not (disk / "block-scan.bin").exists()


def test_a_real_scan_writes_its_points_and_removes_its_file(disk: Path) -> None:
    raw = disk / "raw"
    raw.mkdir()
    phases: list[tuple[str, int, int, float]] = []
    site = Site(LocalMachine(), Path("daqwriter"), disk, raw, raw, None)
    scan = block_scan.run_tools(site, PARAMETERS, lambda *phase: phases.append(phase))
    check_document(scan, "block-scan", "block_scan.json")
    assert [point["block_bytes"] for point in scan["points"]] == [65536, 1048576]
    for point in scan["points"]:
        said = json.loads((raw / f"fio-{point['block_bytes']}.json").read_text(encoding="utf-8"))["jobs"][0]["write"]
        assert (point["throughput_bytes_per_s"], point["bytes_written"]) == (said["bw_bytes"], said["io_bytes"])
        # Whole windows of 0.25 s hold no more than was written; the last, cut one is left out.
        assert 0.25 * sum(point["throughput_bytes_per_s_samples"]) <= 1.05 * said["io_bytes"]
        assert point["bytes_written"] > 0
    assert [phase[1] for phase in phases] == [0, 1, 2]
    assert not (disk / "block-scan.bin").exists()
    assert (raw / "fio-65536.json").exists()
