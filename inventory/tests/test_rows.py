"""Rows of a campaign: one that was cut off in its line is made again, and spoils no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.bench_model.base.rows import add_rows, rows_in


def test_rows_come_back_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "of a campaign" / "rows.jsonl"
    assert rows_in(file) == []
    add_rows(file, [{"seed": 1, "why": "two\nlines, µ"}])
    add_rows(file, [])
    add_rows(file, [{"seed": 2}, {"seed": 3}])
    assert rows_in(file) == [{"seed": 1, "why": "two\nlines, µ"}, {"seed": 2}, {"seed": 3}]


@pytest.mark.parametrize(
    "torn", ['{"seed": 2', '{"seed": 2}', "{", '{"µ'.encode()[:-1].decode("utf-8", "surrogateescape")]
)
def test_a_torn_row_is_none_and_the_next_stands_alone(tmp_path: Path, torn: str) -> None:
    file = tmp_path / "rows.jsonl"
    add_rows(file, [{"seed": 1}])
    whole = file.read_bytes()
    file.write_bytes(whole + torn.encode("utf-8", "surrogateescape"))
    add_rows(file, [{"seed": 3}])
    assert rows_in(file) == [{"seed": 1}, {"seed": 3}]
    assert file.read_bytes().startswith(whole)


def test_a_torn_first_row_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"seed": 1', encoding="utf-8")
    assert rows_in(file) == []
    add_rows(file, [{"seed": 1}])
    assert rows_in(file) == [{"seed": 1}]


def test_a_line_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"seed": 1}\nnonsense\n', encoding="utf-8")
    with pytest.raises(ValueError, match="Expecting value"):
        rows_in(file)
