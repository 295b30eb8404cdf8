"""Every workload on a raw drive, for real and small: one that says it can load one does, and one that says it cannot does not begin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import small_runs

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.workloads.registry import WORKLOADS

SIZE = 512 * 2**20
# The purge's discard becomes a flush (BLKFLSBUF): a drive that takes it and keeps its data.
KEEPS_DATA = """
import os, sys
argv = [word.replace("BLKGETSIZE64 = 0x1277", "BLKGETSIZE64 = 0x1261") for word in sys.argv[1:]]
os.execvp(argv[0], argv)
"""
WITHOUT_TARGET = {"lan"}  # writes nothing: a drive would be emptied for nothing
RAW = sorted(name for name in small_runs.SMALL if WORKLOADS[name].raw)
OTHERS = sorted(small_runs.SMALL.keys() - set(RAW) - WITHOUT_TARGET)
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices"
)


@pytest.fixture
def drive(disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[small_runs.RawDrive]:
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path / "locks"))
    file = disk / "drive"
    file.touch()
    os.truncate(file, SIZE)
    words = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    path = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    number = Path(f"/sys/class/block/{Path(path).name}/dev").read_text(encoding="ascii").strip()
    udev = (
        f"mount -t tmpfs none /run && mkdir -p /run/udev/data && echo E:ID_SERIAL_SHORT=L1 > /run/udev/data/b{number}"
    )
    prefix = ("unshare", "--mount", "--", "sh", "-c", f'{udev} && exec "$@"', "sh")
    try:
        yield small_runs.RawDrive(Path(path), "L1", SIZE, prefix)
    finally:
        subprocess.run(["losetup", "--detach", path], check=True)


def sectors_written(drive: small_runs.RawDrive) -> int:
    """By the kernel's counter."""
    return int(Path(f"/sys/block/{drive.path.name}/stat").read_text(encoding="ascii").split()[6])


def test_all_workloads_are_here() -> None:
    assert {*RAW, *OTHERS, *WITHOUT_TARGET} == small_runs.SMALL.keys()
    assert {"thermal", "endurance", "saturation"} < set(RAW) and OTHERS


@pytest.mark.parametrize("workload", RAW)
def test_a_workload_loads_a_raw_drive(drive: small_runs.RawDrive, disk: Path, tmp_path: Path, workload: str) -> None:
    before = sectors_written(drive)
    bundle = small_runs.small_run(tmp_path, disk, workload, drive)
    assert Bundle.open(bundle).run.target.kind == "raw-device"
    assert sectors_written(drive) > before
    shutil.rmtree(tmp_path / "programs")
    found = extract_again(bundle)
    assert (found.problems, found.notes, found.again) == ([], [], [WORKLOADS[workload].result])


@pytest.mark.parametrize("workload", OTHERS)
def test_a_workload_that_needs_a_folder_writes_nothing_to_a_raw_drive(
    drive: small_runs.RawDrive, disk: Path, tmp_path: Path, workload: str
) -> None:
    """Preflight refuses it with its remedy; here it is begun all the same."""
    before = sectors_written(drive)
    with pytest.raises(BenchError):
        small_runs.small_run(tmp_path, disk, workload, drive)
    assert sectors_written(drive) == before


@pytest.mark.parametrize(("workload", "label"), [("saturation", "saturation-1"), ("steady_state", "steady-iops")])
def test_a_purge_that_leaves_data_is_evidence_in_place_of_a_result(
    drive: small_runs.RawDrive, disk: Path, tmp_path: Path, workload: str, label: str
) -> None:
    before = sectors_written(drive)
    keeps_data = replace(drive, prefix=(*drive.prefix, sys.executable, "-c", KEEPS_DATA))
    bundle = small_runs.small_run(tmp_path, disk, workload, keeps_data)
    assert sectors_written(drive) - before <= 2**20 // 512, "no more than a mark in each sampled place"
    told = json.loads((bundle / PURGE_FAILURE).read_text(encoding="utf-8"))
    assert (told["workload"], told["label"], told["serial"], told["zero_share"]) == (workload, label, "L1", 0.0)
    assert not (bundle / WORKLOADS[workload].result).exists()
    found = extract_again(bundle)
    assert (found.problems, found.again) == ([], [PURGE_FAILURE])
    (bundle / PURGE_FAILURE).write_text(json.dumps({**told, "serial": "L2"}), encoding="utf-8")
    assert any(text.startswith(f"{PURGE_FAILURE}: serial is ") for text in extract_again(bundle).problems)
    (bundle / PURGE_FAILURE).unlink()
    assert extract_again(bundle).problems == [f"{PURGE_FAILURE}: missing"]
