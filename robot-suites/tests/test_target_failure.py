"""A drive that fails under any load: what its tools said becomes evidence, once, and nothing else passes for it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import small_runs
from loop_file_system import MIB, LoopDrive, mounted_loop
from robot.api import SkipExecution

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError
from daq_bench.bench_model.evidence.soundness import fault_of
from daq_bench.bench_model.evidence.target_failures import TARGET_FAILURE, failures_of
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.checking.extraction import extract_again
from daq_bench.rig.workloads.shared.fio import ended_well
from daq_bench.rig.workloads.shared.target_failure import TargetFailedError, failure_behind
from WorkloadKeywords import WorkloadKeywords

TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")
REFUSED = "fio: io_u error on file /t/scan.bin: {}: write offset=4194304, buflen=65536"
EIO = REFUSED.format("Input/output error")


def ended(
    said: str = EIO, error: int = 5, status: int = 1, file: str = "/t/scan.bin", stdout: str | None = None
) -> Completed:
    """fio as it ends where a request was answered with an error."""
    job = {"jobname": "x", "error": error, "write": {"bw_bytes": 0, "lat_ns": {}}}
    document = "fio: pid=7, err=5/file:io_u.c:1876, func=io_u error\n" + json.dumps(
        {"fio version": "fio-3.33", "jobs": [job]}
    )
    argv = ("env", f"TARGET={file}", "fio", "layout.fio")
    return Completed(argv, status, document if stdout is None else stdout, said)


def test_what_fio_says_of_a_failed_drive() -> None:
    with pytest.raises(
        TargetFailedError, match=r"^fio at 64 KiB: the target failed \(EIO\): fio: io_u error on file"
    ) as caught:
        ended_well(ended(), "fio at 64 KiB")
    document = caught.value.document("block_scan")
    assert fault_of(TARGET_FAILURE, document) == ""
    assert list(failures_of({TARGET_FAILURE: document})) == [f"The target failed in block_scan, fio at 64 KiB: {EIO}"]
    gone = ended(REFUSED.format("No space left on device").replace("/t/scan.bin", "/dev/loop3"), 28, file="/dev/loop3")
    with pytest.raises(TargetFailedError, match="ENOSPC"):  # a raw drive without a size
        ended_well(gone, "fio")
    with pytest.raises(TargetFailedError, match="EIO"):  # killed behind the answer
        ended_well(ended(status=-9), "fio")
    assert ended_well(ended(status=0, error=0), "fio").returncode == 0


@pytest.mark.parametrize(
    "completed",
    [
        ended(REFUSED.format("No space left on device"), 28),  # somebody filled the file system
        ended(REFUSED.format("Read-only file system"), 30),
        ended("fio: pid=7, err=5/file:ioengines.c:346, func=full resid, error=Input/output error"),  # nothing was transferred
        ended("verify: bad magic header\nfio: pid=7, err=84/file:io_u.c, func=io_u_sync_complete", 84),
        ended(REFUSED.format("Invalid or incomplete multibyte or wide character"), 84),  # EILSEQ: fio's own for verification
        ended(REFUSED.format("Connection timed out"), 110),  # fio's own for a latency
        ended(EIO, 0),  # the job does not say that it ended for that
        ended(EIO, 28),
        ended(stdout=""),
        ended(stdout="{"),
        ended(stdout='{"jobs": 5}'),
        ended(stdout='{"jobs": [{"jobname": "x"}]}'),
        ended(""),
        ended("the user says: " + EIO),
    ],
)  # fmt: skip
def test_what_is_no_answer_of_a_drive_stays_a_broken_bench(completed: Completed) -> None:
    with pytest.raises(BenchError, match="fio failed with exit status") as caught:
        ended_well(completed, "fio")
    assert not isinstance(caught.value, TargetFailedError)


def fails() -> None:
    raise TargetFailedError("fio", "fio", "EIO", False, EIO)


def test_a_clean_up_that_the_failed_target_refuses_does_not_hide_it() -> None:
    """But an interruption stays one."""
    found: list[BenchError] = []
    for kind in (BenchError, InterruptedRunError):
        try:
            try:
                fails()
            finally:
                raise kind("the scratch file stays")
        except BenchError as error:
            found.append(error)
    assert [failure_behind(one) is not None for one in found] == [True, False]
    assert failure_behind(BenchError("another")) is None


def failure() -> dict[str, Any]:
    with pytest.raises(TargetFailedError) as caught:
        ended_well(ended(), "fio")
    return caught.value.document("block_scan")


def test_a_target_that_has_failed_is_loaded_no_more() -> None:
    keywords = WorkloadKeywords("none", "snb_record")
    keywords.__dict__["_context"] = SimpleNamespace(bundle=SimpleNamespace(read={TARGET_FAILURE: failure()}.get))
    with pytest.raises(SkipExecution, match="The target failed in block_scan, fio: "):
        keywords.run_the_workload()


@pytest.fixture
def drive(disk: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopDrive]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists() or not all(shutil.which(name) for name in TOOLS):
        pytest.skip("needs root, loop devices and " + ", ".join(TOOLS))
    (tmp_path / "locks").mkdir()
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path / "locks"))
    with mounted_loop(disk) as found:
        yield found


def while_pulled(drive: LoopDrive, behind_bytes: int, load: Callable[[], Path]) -> Path:
    """Runs `load`, and takes the drive away once so much was written."""
    limit, over = drive.written_bytes() + behind_bytes, threading.Event()
    pulled: list[bool] = []

    def watch() -> None:
        while not over.wait(0.002):
            if drive.written_bytes() >= limit:
                drive.pull()
                pulled.append(True)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        bundle = load()
    finally:
        over.set()
        thread.join()
    assert pulled, "the load wrote too little for the drive to be pulled"
    return bundle


# By workload: bytes behind which the drive is pulled (in the layout, or in a point, of which a busy machine reaches a later one), and what
# its parameters are changed to.
PULLED = [
    (
        "block_scan",
        4,
        {"tools": ["fio"], "file_size": "512MiB"},
        ("laying out block-scan.bin with fio", "fio at block size "),
        "fio",
    ),
    ("block_scan", 40, {"tools": ["fio"], "file_size": "16MiB"}, "fio at block size ", "fio"),
    ("minidaq_scan", 4, {}, "daqwriter ", "daqwriter"),
    ("saturation", 40, {}, "daqwriter write", "daqwriter"),
    ("steady_state", 40, {}, "fio", "fio"),
    ("endurance", 40, {}, "fio in step", "fio"),
    ("streams_checksum", 40, {"identity": {"run_size": "200MB"}}, "daqwriter streams", "daqwriter"),
]


@pytest.mark.parametrize(("workload", "behind_mib", "changes", "during", "tool"), PULLED)
def test_a_drive_that_is_pulled_under_a_load_is_its_evidence(
    drive: LoopDrive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workload: str,
    behind_mib: int,
    changes: dict[str, Any],
    during: str | tuple[str, ...],
    tool: str,
) -> None:
    scenario, more, parameters = small_runs.SMALL[workload]
    monkeypatch.setitem(small_runs.SMALL, workload, (scenario, more, {**parameters, **changes}))
    for part, inner in changes.items():
        if isinstance(inner, dict):
            monkeypatch.setitem(small_runs.WITHIN[workload], part, inner)
    load = lambda: small_runs.small_run(tmp_path, drive.folder, workload)  # noqa: E731
    bundle = while_pulled(drive, behind_mib * MIB, load)
    document = json.loads((bundle / TARGET_FAILURE).read_text(encoding="utf-8"))
    assert (document["workload"], document["tool"], document["errno"]) == (workload, tool, "EIO")
    assert document["during"].startswith(during)
    found = extract_again(bundle)
    assert (found.problems, found.again) == ([], [TARGET_FAILURE])
    # Its words are those that the tool left, and of no other.
    spoilt = {**document, "said": document["said"].replace("Input/output", "Output/input"), "during": "another part"}
    (bundle / TARGET_FAILURE).write_text(json.dumps(spoilt), encoding="utf-8")
    assert any(text.startswith(f"{TARGET_FAILURE}: ") for text in extract_again(bundle).problems)
    (bundle / TARGET_FAILURE).unlink()
    assert extract_again(bundle).problems == [f"{TARGET_FAILURE}: missing"]


def test_a_failure_that_no_tool_told_is_a_problem(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path / "locks"))
    bundle = small_runs.small_run(tmp_path, disk, "block_scan")
    (bundle / TARGET_FAILURE).write_text(json.dumps(failure()), encoding="utf-8")
    (problem,) = extract_again(bundle).problems
    assert problem.startswith(f"{TARGET_FAILURE}: follows from nothing that a workload's tools said")
