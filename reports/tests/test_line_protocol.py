"""The line protocol: every escape, torn ends, and errors that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench_report.errors import BundleError
from bench_report.line_protocol import parse_line, read_spool


def test_types_tags_and_escapes() -> None:
    line = r'my\ disk,model=A\,B\=C\ D count=3i,rate=2.5e9,ok=t,note="a, b = \"c\" \\ d" 1700000000000000000'
    point = parse_line(line)
    assert point.measurement == "my disk"
    assert point.tags == {"model": "A,B=C D"}
    assert point.fields == {"count": 3, "rate": 2.5e9, "ok": True, "note": 'a, b = "c" \\ d'}
    assert point.time_ns == 1_700_000_000_000_000_000


@pytest.mark.parametrize(
    "line", ["cpu", "cpu value=1", "cpu value=x 5", 'cpu value="open 5', "cpu value 5", "cpu,=a value=1 5"]
)
def test_what_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_line(line)


def test_only_wanted_measurements_are_decoded_and_a_torn_end_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text("cpu v=1 1\ncpu_frequency v=2 2\ncpu,core=0 v=3 3\ncpu v=4", encoding="utf-8")
    spool = read_spool(tmp_path, "p.lp", ["cpu"])
    assert spool is not None
    assert [point.fields["v"] for point in spool.points] == [1.0, 3.0]
    assert (spool.lines, spool.torn) == (3, True)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text("cpu v=1 1\ncpu v=oops 2\n", encoding="utf-8")
    with pytest.raises(BundleError, match=r"p\.lp: line 2: .*oops"):
        read_spool(tmp_path, "p.lp", ["cpu"])
