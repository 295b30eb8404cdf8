"""The table of parts: every entry leads to the part of its name, and an entry that does not stops the command with the entry named."""

from __future__ import annotations

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds import cli, parts


def test_every_entry_leads_to_the_part_of_its_name() -> None:
    assert [part.name for part in parts.known_parts().values()] == list(parts.TABLE)
    along = {part.along for part in parts.known_parts().values()} - {""}
    assert along <= parts.TABLE.keys()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("daq_bench.writer_bench.absent:PART", "No module named"),
        ("daq_bench.writer_bench.write:ABSENT", "no attribute 'ABSENT'"),
        ("daq_bench.writer_bench.write", "cannot be loaded"),
        ("", "cannot be loaded"),
        ("daq_bench.writer_bench.write:DEPTH", "is of type int"),
        ("daq_bench.writer_bench.minidaq:PART", "is the part minidaq"),
    ],
)
def test_an_entry_that_leads_elsewhere_is_named(place: str, said: str) -> None:
    with pytest.raises(BenchError, match=f"part write: {place} .*{said}.*parts.py"):
        parts.load({"write": place})


def test_a_wrong_table_is_one_line_and_exit_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(parts.TABLE, "streams", "daq_bench.writer_bench.gone:PART")
    parts.known_parts.cache_clear()
    try:
        assert cli.main(["--parts=write"]) == cli.USAGE
    finally:
        monkeypatch.undo()
        parts.known_parts.cache_clear()
    said = capsys.readouterr().err
    assert (
        said.startswith("bench: part streams: daq_bench.writer_bench.gone:PART cannot be loaded")
        and said.count("\n") == 1
    )
