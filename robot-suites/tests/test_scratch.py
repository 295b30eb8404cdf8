"""The scratch folder: the bench removes its own files and nothing else."""

import errno
import os
import re
from pathlib import Path

import pytest

from daq_bench.bench_model.base.calling import BY_MAKE
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.rig.candidate.host import require_target_directory
from daq_bench.rig.on_candidate import scratch
from daq_bench.rig.run.preflight import check_leads_to_drive


def test_own_files_go_with_the_folder(tmp_path: Path) -> None:
    folder = scratch.create(tmp_path, "run-1")
    (folder / "block-scan.bin").write_bytes(b"x" * 8192)
    (folder / "snb-record-1.daq").write_bytes(b"x" * 8192)
    assert scratch.remove(folder) >= 16384
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_file_is_never_removed(tmp_path: Path) -> None:
    folder = scratch.create(tmp_path, "run-1")
    (folder / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(scratch.ForeignFilesError, match=r"holds files that the bench did not make \(thesis\.tex\)"):
        scratch.remove(folder)
    assert (folder / "thesis.tex").exists()


def test_what_a_killed_run_left_is_removed_and_look_alikes_stay(tmp_path: Path) -> None:
    stale = scratch.create(tmp_path, "killed")
    (stale / "snb-record-1.daq").write_bytes(b"x" * 4096)
    look_alike = tmp_path / "daq-bench-photos"
    look_alike.mkdir()
    assert [name for name, _ in scratch.remove_stale(tmp_path)] == ["daq-bench-killed"]
    assert [path.name for path in tmp_path.iterdir()] == ["daq-bench-photos"]
    assert scratch.remove_stale(tmp_path / "absent") == []


def test_the_folder_of_a_peer_is_made_once_and_what_cannot_be_made_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "scratch"
    for _ in range(2):
        assert scratch.main(["folder", str(folder)]) == {"result": str(folder)}
    (tmp_path / "file").touch()
    said = scratch.main(["folder", str(tmp_path / "file" / "scratch")])["error"]
    assert "Correct target.directory in the inventory" in said


@pytest.mark.parametrize(("by_make", "named"), [(False, "--target"), (True, "TARGET=")])
def test_a_folder_that_cannot_be_made_is_corrected_where_it_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_make: bool, named: str
) -> None:
    """Whoever typed it looks in vain for it in the inventory."""
    monkeypatch.delenv(BY_MAKE, raising=False)
    if by_make:
        monkeypatch.setenv(BY_MAKE, "1")
    (tmp_path / "file").touch()
    remedy = re.escape(f"a file is there. Correct {named} or target.directory in the inventory")
    with pytest.raises(BenchError, match=remedy):
        require_target_directory(tmp_path / "file")
    with pytest.raises(RefusedError, match=re.escape(f"Set {named} or target.directory in the inventory to a folder")):
        check_leads_to_drive(tmp_path, "tmpfs")


@pytest.mark.parametrize(("number", "failed"), [(errno.EIO, True), (errno.ENODEV, True), (errno.EACCES, False)])
def test_a_file_system_that_has_failed_is_told_and_keeps_nothing_from_being_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, failed: bool
) -> None:
    """A drive that was pulled in the record: `restore` must go on to the settings. Another fault ends the command as before."""

    def broken(directory: Path) -> list[tuple[str, int]]:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(scratch, "remove_stale", broken)
    said = scratch.main(["remove-stale", str(tmp_path)])
    if failed:
        assert said == {"result": {"removed": [], "failed": f"{tmp_path}: {os.strerror(number)}"}}
    else:
        assert "Correct target.directory" in said["error"]
