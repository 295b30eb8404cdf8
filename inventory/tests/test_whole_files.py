"""Files that appear whole or not at all, with the mode asked for and no rest beside them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from daq_bench.bench_model.base.whole_files import OWN, READABLE, replace_file, written_beside


@pytest.mark.parametrize(("mode", "durable"), [(READABLE, False), (OWN, True)])
def test_a_file_is_replaced_whole(tmp_path: Path, mode: int, durable: bool) -> None:
    file = tmp_path / "document.json"
    file.write_text("old")
    replace_file(file, "new \N{RIGHTWARDS ARROW}", mode, durable=durable)
    assert file.read_text(encoding="utf-8") == "new \N{RIGHTWARDS ARROW}"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert [one.name for one in tmp_path.iterdir()] == ["document.json"]


def test_a_file_that_must_not_be_there_yet_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first")
    with pytest.raises(FileExistsError):
        replace_file(file, b"second", OWN, put=os.link)
    assert file.read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["key"]


def test_what_cannot_be_written_leaves_no_rest(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        written_beside(tmp_path / "page", "\ud800")
    assert list(tmp_path.iterdir()) == []
