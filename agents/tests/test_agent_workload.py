"""Tailing daqwriter's records: whole lines only, each accounted for, nothing undeclared let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from daq_bench.telemetry_agent.base.point import Point, PointError
from daq_bench.telemetry_agent.collectors.workload import LINE_CHARACTERS_MAX, Workload, check_record


def record(number: int) -> str:
    """A record as daqwriter writes it."""
    return f"daqwriter,command=minidaq,phase=record offered_bytes={number}i,elapsed_s=0.5 {number}\n"


def take(collector: Workload) -> list[int]:
    """The times of the points that appear now."""
    return [point.time_ns for point in collector.parse(collector.read(), None)]


def test_the_file_may_appear_late_and_grows(tmp_path: Path) -> None:
    """Absent is neither unsupported nor failing."""
    path = tmp_path / "workload.lp"
    collector = Workload(1.0, path)
    assert take(collector) == []
    assert collector.summary()["present"] is False
    path.write_text(record(1) + record(2))
    assert take(collector) == [1, 2]
    with path.open("a") as stream:
        stream.write(record(3))
    assert take(collector) == [3]
    assert take(collector) == []


def test_a_partial_last_line_waits_for_its_rest(tmp_path: Path) -> None:
    """Half a number is never taken for a number."""
    path = tmp_path / "workload.lp"
    whole = record(12345)
    for cut in range(1, len(whole)):
        path.unlink(missing_ok=True)
        path.write_text(record(1) + whole[:cut])
        collector = Workload(1.0, path)
        assert take(collector) == [1]
        assert collector.summary()["unfinished_line_bytes"] == cut
        with path.open("a") as stream:
            stream.write(whole[cut:])
        assert take(collector) == [12345]
        assert collector.summary()["lines_rejected"] == 0


def test_bad_lines_are_counted_with_their_reason_and_the_good_ones_pass(tmp_path: Path) -> None:
    """lines_seen is the sum of what became of them."""
    path = tmp_path / "workload.lp"
    path.write_text(record(1) + "daqwriter offered_bytes=1.5 2\n" + "nonsense\n" + "\n# comment\n" + record(3))
    collector = Workload(1.0, path)
    assert take(collector) == [1, 3]
    summary = collector.summary()
    assert (summary["lines_seen"], summary["lines_passed"], summary["lines_rejected"]) == (4, 2, 2)
    assert "offered_bytes" in summary["reasons"][0]
    assert "nonsense" in summary["reasons"][1]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("cpu busy=1.0 1", "measurement 'cpu'"),
        ("daqwriter offered_bytes=1.0 1", "float, declared int"),
        ("daqwriter elapsed_s=1i 1", "int, declared float"),
        ("daqwriter busy_count=true 1", "bool, declared int"),
        ("daqwriter surprise=1i 1", "'surprise' is not declared"),
        ("daqwriter offered_bytes=1i", "timestamp"),
        ("daqwriter offered_bytes=1i " + "1" * LINE_CHARACTERS_MAX, "characters"),
    ],
)
def test_only_declared_records_pass(line: str, complaint: str) -> None:
    """InfluxDB would fix a wrong type for ever."""
    with pytest.raises(PointError, match=complaint):
        check_record(line)


def test_a_record_keeps_its_tags_and_time() -> None:
    """Tags are the workload's own."""
    expected = Point("daqwriter", (("phase", "drain"), ("run", "r 1")), {"stored_bytes": 7}, 99)
    assert check_record(r"daqwriter,run=r\ 1,phase=drain stored_bytes=7i 99") == expected


def test_a_replaced_file_is_read_from_its_start_and_said_so(tmp_path: Path) -> None:
    """A second daqwriter that truncates the file must not be read from the old offset."""
    path = tmp_path / "workload.lp"
    path.write_text(record(1) + record(2))
    collector = Workload(1.0, path)
    assert take(collector) == [1, 2]
    path.write_text(record(3))
    reading = collector.read()
    assert "replaced or truncated" in reading.faults[0]
    assert [point.time_ns for point in collector.parse(reading, None)] == [3]


def test_after_a_restart_spooled_records_are_not_taken_twice(tmp_path: Path) -> None:
    """The spool's last record says where to go on."""
    path = tmp_path / "workload.lp"
    path.write_text(record(1) + record(2) + record(3))
    collector = Workload(1.0, path, after_ns=2)
    assert take(collector) == [3]
    assert collector.summary()["lines_skipped_as_spooled"] == 2
    assert collector.summary()["lines_seen"] == 3
