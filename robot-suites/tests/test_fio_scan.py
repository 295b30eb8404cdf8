"""The block scan: fio's figures are read in bytes, masked points carry their reason, and a real scan runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench_model.errors import BenchError
from bench_model.yaml_source import check_document
from rig.machine import LocalMachine
from rig.workloads import fio_scan

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


def test_throughput_is_bytes_per_second_and_latency_microseconds() -> None:
    point = fio_scan.parse_point(fio_output(), 2**20, 3.0, [3e9], 9_100_000_000)
    assert point["throughput_bytes_per_s"] == 3_000_000_000
    assert point["latency_us"] == {"p50": 1000.0, "p99": 3000.0, "p99_9": 5000.0, "max": 9000.0, "mean": 2000.0}
    assert (point["admissible"], point["reason"]) == (True, None)


def test_bytes_that_the_device_never_saw_mask_the_point() -> None:
    point = fio_scan.parse_point(fio_output(), 2**20, 3.0, [], 1_000_000_000)
    assert point["admissible"] is False
    assert point["reason"] == "the device counted 1000000000 B of the 9000000000 B that fio says it wrote"


def test_a_point_that_ran_too_short_is_masked() -> None:
    point = fio_scan.parse_point(fio_output(runtime=2000), 2**20, 3.0, [], None)
    assert point["reason"] == "ran for 2.00 s of 3 s"


@pytest.mark.parametrize("text", ["", "{}", '{"jobs": []}', fio_output(io_bytes=0)])
def test_output_that_holds_no_measurement_is_an_error(text: str) -> None:
    with pytest.raises(BenchError, match="block size 4096 B"):
        fio_scan.parse_point(text, 4096, 3.0, [], None)


def test_the_bandwidth_log_is_kibibytes_per_second() -> None:
    assert fio_scan.parse_bandwidth_log("250, 4128768, 1, 0, 0\n500, 1, 1, 0, 0\n") == [4128768 * 1024.0, 1024.0]


def test_a_scan_without_a_plateau_says_so() -> None:
    points = [
        fio_scan.parse_point(fio_output(bw_bytes=rate), size, 3.0, [], None)
        for size, rate in ((4096, 10**8), (8192, 2 * 10**8))
    ]
    scan = fio_scan.document("fio-3.33", PARAMETERS, points)
    assert scan["plateau"]["throughput_bytes_per_s"] is None
    assert "no plateau" in scan["reasons"]["block_scan.plateau_throughput"]
    assert scan["reasons"]["block_scan.large_block_throughput"].startswith("a block size of at least 8 MiB")


def test_a_real_scan_writes_its_points_and_removes_its_file(disk: Path) -> None:
    raw = disk / "raw"
    raw.mkdir()
    phases: list[tuple[str, int, int, float]] = []
    folders = fio_scan.Folders(raw, raw)
    scan = fio_scan.run_scan(LocalMachine(), PARAMETERS, disk, folders, None, lambda *phase: phases.append(phase))
    check_document(scan, "block-scan", "block_scan.json")
    assert [point["block_bytes"] for point in scan["points"]] == [65536, 1048576]
    for point in scan["points"]:
        # Loosely: fio leaves the last, cut window out, which weighs in a scan of one second.
        mean = sum(point["throughput_bytes_per_s_samples"]) / len(point["throughput_bytes_per_s_samples"])
        assert mean == pytest.approx(point["throughput_bytes_per_s"], rel=0.5)
        assert point["bytes_written"] > 0
    assert [phase[1] for phase in phases] == [0, 1, 2]
    assert not (disk / "block-scan.bin").exists()
    assert (raw / "fio-65536.json").exists()
