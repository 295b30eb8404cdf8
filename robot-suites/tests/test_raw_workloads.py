"""Every workload on a raw drive, for real and small: one that says it can load one does, and one that says it cannot does not begin."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import small_runs

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.workloads.registry import WORKLOADS

SIZE = 512 * 2**20
WITHOUT_TARGET = {"lan"}  # writes nothing: a drive would be emptied for nothing
RAW = sorted(name for name in small_runs.SMALL if WORKLOADS[name].raw)
OTHERS = sorted(small_runs.SMALL.keys() - set(RAW) - WITHOUT_TARGET)
pytestmark = [
    pytest.mark.integration,  # loads this machine
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices"
    ),
]


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
