"""Refusals before anything is written: space, O_DIRECT, memory."""

import shutil
from pathlib import Path

import pytest

from bench_model.errors import RefusedError
from bench_model.profiles import load_candidate, load_scenario
from rig import preflight
from rig.host import filesystem_of
from rig.settings import Layout
from rig.shell import LocalShell

INVENTORY = Layout().inventory
SCENARIO = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml")
FULL = load_scenario(INVENTORY / "scenarios" / "snb-100s.yml")


class Usage:
    """What shutil.disk_usage returns."""

    def __init__(self, free: int) -> None:
        self.free = free


def test_a_target_that_is_too_small_is_refused_with_the_arithmetic(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(80_100_000_000))
    with pytest.raises(RefusedError) as caught:
        preflight.check_space(FULL, disk)
    text = str(caught.value)
    assert "9.243 GB/s (10 links x 166000 Hz x 5568 B x scale 1) x 100 s = 924.3 GB (924288000000 B)" in text
    assert "against 80.1 GB (80100000000 B) free" in text
    assert "DURATION=8.56 or SCALE=0.0856" in text
    assert list(disk.iterdir()) == []


def test_what_the_refusal_proposes_is_then_accepted(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(80_100_000_000))
    preflight.check_space(FULL.altered(None, 8.55), disk)
    preflight.check_space(FULL.altered(0.0855, None), disk)


def test_a_file_system_in_memory_is_refused() -> None:
    memory = Path("/dev/shm")
    filesystem = filesystem_of(memory, LocalShell())
    assert filesystem == "tmpfs"
    with pytest.raises(RefusedError, match="is on tmpfs, which does not lead to a drive"):
        preflight.check_direct_io(memory, filesystem)


def test_a_file_system_without_o_direct_is_refused_and_left_clean(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = preflight.os.open

    def refuse_direct(path: str, flags: int, *more: int) -> int:
        if flags & preflight.os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return real_open(path, flags, *more)

    monkeypatch.setattr(preflight.os, "open", refuse_direct)
    with pytest.raises(RefusedError, match="is on zfs, which does not support O_DIRECT"):
        preflight.check_direct_io(disk, "zfs")
    assert list(disk.iterdir()) == []


def test_the_real_disk_takes_o_direct_and_is_left_clean(disk: Path) -> None:
    preflight.check_direct_io(disk, filesystem_of(disk, LocalShell()))
    assert list(disk.iterdir()) == []


def test_rings_that_exceed_the_declared_buffer_are_refused() -> None:
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    preflight.check_memory(candidate, SCENARIO, 24 * 2**30)
    with pytest.raises(RefusedError, match=r"ring_size: 10 rings of 536870912 B need 5368709120 B"):
        preflight.check_memory(candidate, FULL, 24 * 2**30)
    with pytest.raises(RefusedError, match="half of its RAM"):
        preflight.check_memory(candidate, SCENARIO, 2**30)
