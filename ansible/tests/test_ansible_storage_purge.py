"""A purge is proved: marks that were written all over the drive before it do not read after it, or the drive is refused."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.bench_storage import marks, memory, nvme
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.nvme import Abilities, LbaFormat, Sanitizing
from loop_drives import LoopDrives, can_use_loop_devices
from test_ansible_storage_loop import Candidate, Interruptible

needs_loop_devices = pytest.mark.skipif(not can_use_loop_devices(), reason="needs root, loop devices and mkfs")


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A drive of 8 MiB and a bit, as a file."""
    path = tmp_path / "drive"
    path.write_bytes(os.urandom(8 * 2**20 + 1000))
    return path


def test_the_marks_lie_from_the_first_block_to_the_last() -> None:
    for size in (4096, 8191, 2**20, 400 * 2**20 + 512, 15 * 10**12):
        found = marks.places(size)
        assert found[0] == 0 and found[-1] == (size // 4096 - 1) * 4096 and len(found) <= marks.MARKS
        assert all(place % 4096 == 0 for place in found)
    assert marks.places(100) == [] and len(marks.places(2**40)) == marks.MARKS


def test_what_is_erased_is_gone_and_what_stays_is_counted(drive: Path) -> None:
    seed, size = marks.plant(str(drive))
    count = len(marks.places(size))
    assert marks.surviving(str(drive), seed, size) == (count, count)
    with drive.open("r+b") as file:
        file.write(bytes(size // 2))
    left, looked = marks.surviving(str(drive), seed, size)
    assert looked == count and 0 < left < count
    drive.write_bytes(bytes(size))
    assert marks.surviving(str(drive), seed, size) == (0, count)
    drive.write_bytes(os.urandom(size))  # after a crypto erase anything may read
    assert marks.surviving(str(drive), seed, size) == (0, count)


def test_a_drive_that_became_smaller_is_looked_at_as_far_as_it_goes(drive: Path) -> None:
    seed, size = marks.plant(str(drive))
    os.truncate(drive, size // 2)
    left, looked = marks.surviving(str(drive), seed, size)
    assert left == looked and 0 < looked < len(marks.places(size))


def test_a_drive_that_keeps_nothing_proves_no_purge() -> None:
    """A mark that does not read back before the purge would not read after it either."""
    with pytest.raises((StorageError, OSError)):
        marks.plant("/dev/null")


@pytest.mark.parametrize(
    ("action", "status", "completed"),
    [(2, 1, True), (4, 1, False), (0, 1, True), (2, 2, False), (2, 0, False), (2, 4, True)],
)
def test_an_older_sanitize_of_another_kind_is_not_the_one_that_was_asked_for(
    action: int, status: int, completed: bool
) -> None:
    log = nvme.parse_sanitize_log(struct.pack("<HHI", 65535, status, action).ljust(512, b"\0"))
    assert (log.completed and log.is_of(2)) == completed


class Nvme(Interruptible):
    """A loop device that plays an NVMe drive: it says that it sanitizes, and does what `honest` says."""

    def __init__(self, path: str, honest: bool) -> None:
        super().__init__()
        self.path, self.honest, self.asked = path, honest, 0

    def is_nvme(self, name: str) -> bool:
        return True

    def nvme_abilities(self, path: str) -> Abilities:
        return Abilities(True, 2, (LbaFormat(0, 512, 0, 0),), 0)

    def run_raw(self, argv: list[str], seconds_max: float = 120.0) -> bytes:
        if argv[0] != "nvme":
            return super().run_raw(argv, seconds_max)
        if self.honest:
            super().run_raw(["blkdiscard", "--zeroout", self.path])
        return b""

    def require(self, commands: list[str]) -> None:
        super().require([command for command in commands if command != "nvme"])

    def sanitize_log(self, path: str) -> Sanitizing:
        self.asked += 1
        return Sanitizing(1, 1.0, 4 if self.asked == 1 else 2)  # first the older one is still there


@pytest.fixture
def candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Candidate]:
    with LoopDrives(tmp_path) as drives:
        for name, value in drives.environment().items():
            monkeypatch.setenv(name, value)
        yield Candidate(tmp_path, drives)


def purged(candidate: Candidate) -> str:
    state: Any = memory.load(str(candidate.state_file))
    return str(state["drives"][0]["purged"])


@needs_loop_devices
def test_a_sanitize_that_erased_is_proved(candidate: Candidate) -> None:
    machine = Nvme(candidate.path, honest=True)
    assert candidate.run(machine=machine, purge="sanitize").changed
    assert purged(candidate).endswith("; 0 of 64 marks written before it still read") and machine.asked >= 2


@needs_loop_devices
def test_a_drive_that_only_says_that_it_sanitized_is_refused(candidate: Candidate) -> None:
    with pytest.raises(
        StorageError, match=r"LOOP1: 64 of 64 marks .* still read after it: the drive did not do what it said"
    ):
        candidate.run(machine=Nvme(candidate.path, honest=False), purge="sanitize")
    assert purged(candidate) == "" and not candidate.directory.exists()


@needs_loop_devices
def test_of_a_discard_what_still_reads_is_told(candidate: Candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    """No device promises what reads after it."""
    candidate.run()
    assert purged(candidate).endswith("; 0 of 64 marks written before it still read")
    candidate.run("undo")
    fake = candidate.drives.bin / "blkdiscard"
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    candidate.run()
    assert purged(candidate).endswith(
        "64 of 64 marks written before it still read: the discard took nothing or not all away"
    )


@needs_loop_devices
def test_without_a_purge_no_mark_is_written(candidate: Candidate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interruptible, "plant_marks", None)
    candidate.run(purge="none")
    assert "mark" not in purged(candidate)
