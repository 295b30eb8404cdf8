"""The supernova record on a target that is brought into named conditions: real records, on a file of this machine."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import SkipExecution

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.results import Conditioning
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.verdict.sequential import Looks, Stopping
from daq_bench.bench_model.workloads.snb_record import SnbRecord, target_failures
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.load_target import FileTarget, RawDevice
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.run.preflight import space_needs
from daq_bench.rig.workloads.snb_record import RecordPlan, minidaq_arguments, run_record
from WorkloadKeywords import WorkloadKeywords

MACHINE = LocalMachine()
FULL = load_scenario(Layout().inventory / "scenarios" / "snb-100s.yml")
SHORT = FULL.altered(0.005, 1.0)


def plan_in(disk: Path, raw: Path) -> RecordPlan:
    parameters = {
        **SHORT.workloads["snb_record"],
        "ring_size": 4 * 2**20,
        "block_size": 2**20,
        "conditions": ["fresh", "preconditioned"],
    }
    return RecordPlan(
        daqwriter=Layout().daqwriter,
        parameters=parameters,
        demand=SHORT.demand,
        seed=1,
        load=lambda name: FileTarget(MACHINE, disk / name),
        capacity_bytes=10**12,
        dedicated=False,
        work=raw,
        raw=raw,
        line_protocol=raw / "workload.lp",
        tags={},
    )


def test_every_condition_has_its_record_and_its_evidence(disk: Path, tmp_path: Path) -> None:
    said: list[str] = []
    twice = Stopping(Looks(2, 2, stages=2), [], {"scenario": {"scale": 0.005}}, dict)
    result = run_record(MACHINE, plan_in(disk, tmp_path), twice, lambda text, step, steps, seconds: said.append(text))
    assert [one["condition"] for one in result["repetitions"]] == ["fresh", "fresh", "preconditioned", "preconditioned"]
    assert {one["verify"]["status"] for one in result["repetitions"]} == {"intact"}
    # fresh before each record, preconditioned once
    assert [one["label"] for one in result["conditioning"]] == [
        "record-1-fresh",
        "record-2-fresh",
        "record-3-preconditioned",
    ]
    for evidence in result["conditioning"]:
        read(evidence, Conditioning, evidence["label"])
    span = result["conditioning"][2]["span_bytes"]
    assert span == SHORT.demand.record_bytes
    filled = result["conditioning"][2]["preconditioning"]
    assert (filled["passes"], filled["bytes_written"]) == (1, 440 * 2**17)  # 1.25 x 352 blocks
    assert result["limits"] == []  # the evidence is held against the target's capacity (test_preconditioning.py)
    assert result["conditioning"][0]["remarks"][0].startswith("The fresh condition is a file's, not a drive's: ")
    assert "record 4 of 4 (preconditioned)" in said
    assert list(disk.iterdir()) == []


def test_the_links_rate_and_scale_reach_daqwriter_to_the_last_digit(tmp_path: Path) -> None:
    nominal = load_scenario(Layout().inventory / "scenarios" / "snb-100s-nominal.yml")
    plan = replace(plan_in(tmp_path, tmp_path), demand=nominal.demand)
    drive = RawDevice(MACHINE, "S1", Path("/dev/nvme9n1"), True, None)
    words = minidaq_arguments(plan, drive, 1)
    assert "--scale=1.0819138623459355" in words
    assert [word for word in words if "S1" in word] == ["--allow-serial=S1", "--destroy=S1"]


@pytest.mark.parametrize(("size", "expected"), [(None, 924_288_000_000), (2 * 10**12, 2 * 10**12)])
def test_preconditioning_counts_for_capacity(size: int | None, expected: int) -> None:
    parameters: dict[str, Any] = {**FULL.workloads["snb_record"], **({"precondition_size": size} if size else {})}
    (need,) = space_needs(replace(FULL, workloads={"snb_record": parameters}))
    assert need.size_bytes == expected


class Storage(LocalMachine):
    """Does something to a record when its writer has ended: `strike(file, document)`, whose answer is the writer's exit status."""

    def __init__(self, strike: Callable[[Path, dict[str, Any]], int | None]) -> None:
        super().__init__()
        self._strike = strike
        self.commands: list[list[str]] = []

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(word) for word in argv]
        self.commands.append(words)
        done = super().run(argv, timeout_s, env)
        if words[1] != "minidaq":
            return done
        told = {name: value for name, _, value in (word.partition("=") for word in words)}
        file = Path(told["--json"])
        document = json.loads(file.read_text(encoding="utf-8"))
        status = self._strike(Path(told["--target"]), document)
        file.write_text(json.dumps(document), encoding="utf-8")
        return replace(done, returncode=done.returncode if status is None else status)


class Kept(FileTarget):
    """A file on a drive that is gone cannot be removed."""

    def remove(self) -> None:
        super().remove()
        raise BenchError(f"{self.path}: Input/output error")


def recorded_on(
    disk: Path, raw: Path, strike: Callable[[Path, dict[str, Any]], int | None], target: type[FileTarget] = FileTarget
) -> tuple[dict[str, Any], Storage, list[str]]:
    storage, said = Storage(strike), []  # type: ignore[var-annotated]
    parameters = {name: one for name, one in plan_in(disk, raw).parameters.items() if name != "conditions"}
    plan = replace(plan_in(disk, raw), parameters=parameters, load=lambda name: target(storage, disk / name))
    twice = Stopping(Looks(2, 2, stages=1), [], {"scenario": {"scale": 0.005}}, dict)
    result = run_record(storage, plan, twice, lambda text, step, steps, seconds: said.append(text))
    read(result, SnbRecord, "results/snb_record.json")
    return result, storage, said


def of_head(change: Callable[[bytearray], None]) -> Callable[[Path, dict[str, Any]], None]:
    def strike(file: Path, _: dict[str, Any]) -> None:
        with file.open("r+b") as stream:
            block = bytearray(stream.read(4096))
            change(block)
            stream.seek(0)
            stream.write(block)

    return strike


def zeroed(block: bytearray) -> None:
    block[:] = bytes(4096)


def torn(block: bytearray) -> None:
    block[512:] = bytes(4096 - 512)
    block[60] ^= 1


def foreign(block: bytearray) -> None:
    block[:] = b"x" * 4096


def begun(by_ns: int) -> Callable[[bytearray], None]:
    """The head of another record that was begun by so much later than the one that was written."""

    def change(block: bytearray) -> None:
        block[24] ^= 1
        block[48:56] = (int.from_bytes(block[48:56], "little", signed=True) + by_ns).to_bytes(8, "little", signed=True)
        block[20:24] = bytes(4)
        block[20:24] = zlib.crc32(block).to_bytes(4, "little")

    return change


HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    "strike",
    [
        of_head(zeroed),
        of_head(torn),
        of_head(foreign),
        of_head(begun(-HOUR_NS)),
        lambda file, _: file.write_bytes(b""),
        lambda file, _: os.truncate(file, 4000),
    ],
    ids=["zeroed", "torn", "foreign", "of an older record", "emptied", "cut"],
)
def test_a_record_whose_head_is_lost_is_all_lost(
    disk: Path, tmp_path: Path, strike: Callable[[Path, dict[str, Any]], None]
) -> None:
    result, storage, _ = recorded_on(disk, tmp_path, strike)
    assert len(result["repetitions"]) == 2  # the drive goes on: so does the bench
    for one in result["repetitions"]:
        stored = one["minidaq"]["superchunks"]["stored"]
        assert (one["verify"]["status"], one["verify"]["superchunks"]["missing"]) == ("damaged", stored)
        assert (one["damaged_superchunks"], one["verified_fraction"]) == (stored, 0.0)
        assert one["verify"]["record_id"] == one["minidaq"]["parameters"]["record_id"]
    assert sum(f"--superchunks={stored}" in words for words in storage.commands) >= 1
    assert list(disk.iterdir()) == []


def test_a_record_that_was_begun_later_is_somebody_elses(disk: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="somebody else writes to this target"):
        recorded_on(disk, tmp_path, of_head(begun(HOUR_NS)))


def test_an_absent_record_accuses_nobody(disk: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="No such file"):
        recorded_on(disk, tmp_path, lambda file, _: file.unlink())


def failing(
    errno: str | None, then: Callable[[Path], None] = lambda file: None
) -> Callable[[Path, dict[str, Any]], int]:
    """The writer's answer where the target answered so, and what is left of its file."""

    def strike(file: Path, document: dict[str, Any]) -> int:
        for said in (document, *document["applications"], *document["targets"]):
            said.update(status="failed", error=f"{file}: write failed: {errno}", errno=errno)
        then(file)
        return 1

    return strike


@pytest.mark.parametrize("then", [lambda file: None, Path.unlink, lambda file: os.truncate(file, 0)])
def test_a_drive_that_fails_ends_the_workload_with_its_result(
    disk: Path, tmp_path: Path, then: Callable[[Path], None]
) -> None:
    """Whatever can be read of the target afterwards, and although nothing can be removed from it."""
    result, storage, said = recorded_on(disk, tmp_path, failing("EIO", then), Kept)
    (failure, *_) = target_failures(result)
    assert failure.startswith("The target failed in record 1: ")
    assert len(result["repetitions"]) == 1
    assert [words[1] for words in storage.commands] == ["minidaq", "verify"]
    assert any(text.startswith("record 1 stays on the target that failed: ") for text in said)


def test_a_target_that_has_failed_is_loaded_no_more(disk: Path, tmp_path: Path) -> None:
    """By no workload that comes after: its test is skipped, and skipped tests end no run."""
    result, _, _ = recorded_on(disk, tmp_path, failing("EIO"))
    keywords = WorkloadKeywords(str(tmp_path), "block_scan")
    keywords.__dict__["_context"] = SimpleNamespace(
        bundle=SimpleNamespace(read={"results/snb_record.json": result}.get)
    )
    with pytest.raises(SkipExecution, match="The target failed in record 1"):
        keywords.run_the_workload()


@pytest.mark.parametrize("errno", ["ENOSPC", "EDQUOT", "EROFS", "EINVAL", "EACCES"])
def test_a_record_that_others_broke_is_no_evidence(disk: Path, tmp_path: Path, errno: str) -> None:
    with pytest.raises(BenchError, match=f"record 1 failed, and not by a drive: .*{errno}"):
        recorded_on(disk, tmp_path, failing(errno))


def test_a_writer_that_failed_without_an_answer_is_read_back_as_before(disk: Path, tmp_path: Path) -> None:
    result, _, _ = recorded_on(disk, tmp_path, failing(None))
    assert len(result["repetitions"]) == 2
    assert list(target_failures(result)) == []


def test_a_record_that_stays_where_nothing_failed_is_the_benchs_error(disk: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="Input/output error"):
        recorded_on(disk, tmp_path, lambda file, _: None, Kept)
