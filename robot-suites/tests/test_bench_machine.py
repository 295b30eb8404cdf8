"""Space, huge pages, scratch folder: the bench refuses too little of them, and gives everything back."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_rounds.measuring import machine
from daq_bench.bench_rounds.measuring.progress import TimeLeft


def test_too_little_space_shows_the_arithmetic() -> None:
    with pytest.raises(RefusedError, match=r"5 GB free; part write needs 7 GB .* 1 GB are left over: 3 GB too little"):
        machine.require_space(Path("drive"), {"write": 7 * 10**9, "streams": 0}, 5 * 10**9)
    machine.require_space(Path("drive"), {"write": 7 * 10**9}, 8 * 10**9)
    machine.require_space(Path("drive"), {"streams": 0}, 0)


def test_huge_pages_are_given_back_even_after_a_failure(tmp_path: Path) -> None:
    setting = tmp_path / "nr_hugepages"
    setting.write_text("7")
    with pytest.raises(KeyboardInterrupt), machine.reserved_huge_pages(5 << 20, setting) as refusal:
        assert refusal is None
        assert setting.read_text() == "10"  # 5 MiB are three pages of 2 MiB
        raise KeyboardInterrupt
    assert setting.read_text() == "7"


def test_huge_pages_that_cannot_be_had_are_explained(tmp_path: Path) -> None:
    with machine.reserved_huge_pages(1, tmp_path / "absent") as refusal:
        assert refusal is not None and "cannot be set" in refusal


def test_scratch_folder_is_emptied_removed_and_held_by_one(tmp_path: Path) -> None:
    left = tmp_path / machine.FOLDER / "by-a-killed-run.bin"
    left.parent.mkdir()
    left.touch()
    foreign = tmp_path / "somebody-else.bin"
    foreign.touch()
    with machine.scratch_folder(tmp_path) as folder:
        assert list(folder.iterdir()) == []
        with pytest.raises(RefusedError, match="another bench"), machine.scratch_folder(tmp_path):
            pass
    assert list(tmp_path.iterdir()) == [foreign]


def test_a_loaded_machine_is_warned_of() -> None:
    assert machine.busy_warning(0.05) is None
    warning = machine.busy_warning(0.31)
    assert warning is not None and "31 % busy" in warning


def test_time_left_follows_the_pace(tmp_path: Path) -> None:
    seconds = [0.0]
    with (tmp_path / "log").open("w") as log:
        progress = TimeLeft(100.0, log, now=lambda: seconds[0])
        progress.begin("first", 40.0)
        seconds[0] = 60.0
        progress.begin("second", 10.0)
        assert progress.left_s() == pytest.approx(90.0)  # 60 are left at 1.5 times the planned time
    assert "about 1:30 left | second" in (tmp_path / "log").read_text()
