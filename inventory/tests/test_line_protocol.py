"""The line protocol of a bundle's telemetry reads back as what it says."""

from pathlib import Path

import pytest

from daq_bench.bench_model.bundle import line_protocol
from daq_bench.bench_model.bundle.files import LINE_MAX
from daq_bench.bench_model.bundle.line_protocol import AlikeLines, parse_line, points_of


def test_types_tags_and_escapes_are_read() -> None:
    point = parse_line(r'a\ b,host=x\,y,run=r i=5i,f=2.5,b=true,s="say \"hi\", friend" 12')
    assert (point.measurement, point.tags, point.time_ns) == ("a b", {"host": "x,y", "run": "r"}, 12)
    assert point.fields == {"i": 5, "f": 2.5, "b": True, "s": 'say "hi", friend'}
    assert isinstance(point.fields["i"], int)


@pytest.mark.parametrize(
    "line", ["m", "m f=1", "m 12", "m,t f=1 12", "m f 12", "m,=a f=1 12", "m f=x 12", 'm s="open 12']
)
def test_broken_lines_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_line(line)


def test_every_escape_is_undone() -> None:
    line = r'my\ disk,model=A\,B\=C\ D count=3i,rate=2.5e9,ok=t,note="a, b = \"c\" \\ d" 1700000000000000000'
    point = parse_line(line)
    assert point.measurement == "my disk"
    assert point.tags == {"model": "A,B=C D"}
    assert point.fields == {"count": 3, "rate": 2.5e9, "ok": True, "note": 'a, b = "c" \\ d'}
    assert point.time_ns == 1_700_000_000_000_000_000


def test_only_wanted_points_are_decoded_and_a_torn_end_is_left_out(tmp_path: Path) -> None:
    spool = tmp_path / "points.lp"
    spool.write_text("cpu,core=0 busy=0.5 1\nother broken\ncpu,core=0 busy=0.6 2\ncpu,core=0 busy=0.", encoding="utf-8")
    assert [point.fields["busy"] for point in points_of(spool, {"cpu"})] == [0.5, 0.6]


def test_a_broken_wanted_line_is_named(tmp_path: Path) -> None:
    spool = tmp_path / "points.lp"
    spool.write_text("cpu,core=0 busy=0.5 1\ncpu broken\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"points\.lp:2: "):
        list(points_of(spool, {"cpu"}))


@pytest.mark.parametrize("name", ['5" Bay', '"', 'a "b" c', 'x"=1,"', 'Temp "1', 'back\\slash "q"'])
def test_a_quote_in_a_tag_is_a_character_like_another(name: str) -> None:
    """A BMC names its sensors as it likes; one such name must not cost the run its telemetry."""
    escaped = name.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")
    point = parse_line(f'ipmi_sensor,kind=fan,sensor={escaped} state="lower, \\"critical\\"",speed_rpm=5.0 7')
    assert point.tags == {"kind": "fan", "sensor": name}
    assert point.fields == {"state": 'lower, "critical"', "speed_rpm": 5.0}
    assert point.time_ns == 7


ODD_LINES = [
    "cpu,core=0 busy=0.5,n=5i,ok=t 1",
    "cpu,core=0 busy=1e300,n=5i,ok=t 2",
    "cpu,core=0 busy=.5,n=-5i,ok=FALSE 3",
    "cpu,core=0 n=5i,busy=0.5 4",
    "cpu,core=0 n=5i,n=6i 5",
    "cpu,core=0 n=5u,busy=+1 6",
    "cpu,core=0 n=9223372036854775807i 9223372036854775807",
    'cpu,core=0 text="a, b = c",n=1i 7',
    'cpu,core=0 text="say \\"hi\\"",n=1i 8',
    'cpu,core=0 text="",n=1i 9',
    "cpu,sensor=CPU1\\ Temp busy=0.5 10",
    "cpu,sensor=CPU1\\\\ busy=0.5 11",
    'cpu,sensor=5"\\ Bay busy=0.5 12',
    "cpu,core=0 a\\ b=0.5 13",
    "cpu,core=0 busy=0.5,n=5i,ok=t -14",
    "cpu busy=0.5 15",
]
BROKEN_LINES = [
    "cpu,core=0 busy=0.5,n=5i,ok=t",
    "cpu,core=0 busy=0.5,n=5i,ok=t 1 2",
    "cpu,core=0 busy=0.5,n=5i,ok=t 9999999999999999999",
    "cpu,core=0 busy=0.5,n=5i,ok=t 1_0",
    "cpu,core=0 busy=nan,n=5i,ok=t 1",
    "cpu,core=0 busy=1e999,n=5i,ok=t 1",
    "cpu,core=0 busy=0.5,n=9223372036854775808i,ok=t 1",
    "cpu,core=0 busy=0.5,n=\u0661i,ok=t 1",
    'cpu,core=0 text="open,n=1i 7',
    "cpu,core=0  busy=0.5,n=5i,ok=t 1",
    " busy=0.5,n=5i,ok=t",
]


def test_lines_that_are_alike_read_as_each_alone_does() -> None:
    """Whatever line came before: what is known of a series never changes what a line says."""
    for first in ODD_LINES:
        for line in (*ODD_LINES, *BROKEN_LINES):
            read = AlikeLines()
            read.point(first)
            for _ in range(2):
                if line in BROKEN_LINES:
                    with pytest.raises(ValueError, match=r"."):
                        read.point(line)
                else:
                    assert read.point(line) == parse_line(line)
                    assert list(map(type, read.point(line).fields.values())) == list(
                        map(type, parse_line(line).fields.values())
                    )


def test_only_the_wanted_fields_are_kept_and_the_others_are_checked_all_the_same() -> None:
    read = AlikeLines(frozenset({"n"}))
    for line in ODD_LINES:
        expected = {name: value for name, value in parse_line(line).fields.items() if name == "n"}
        assert (read.point(line).fields, read.point(line).fields) == (expected, expected)
    for line in BROKEN_LINES:
        with pytest.raises(ValueError, match=r"."):
            read.point(line)


def test_a_spool_of_as_many_series_as_lines_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_protocol, "SERIES_MAX", 3)
    read = AlikeLines()
    for number in range(20):
        assert read.point(f"cpu,core={number} n=1i 1").tags == {"core": str(number)}
        assert len(read._known) <= 3


def test_a_point_may_be_altered_without_harm_to_the_next() -> None:
    read = AlikeLines()
    read.point("cpu,core=0 n=1i 1").tags["core"] = "9"
    read.point("cpu,core=0 n=1i 2").tags["core"] = "9"
    assert read.point("cpu,core=0 n=1i 3").tags == {"core": "0"}


def test_a_line_without_end_is_refused_before_it_is_taken_apart() -> None:
    """One of 100 MB with a quote in it took more than 6 GB."""
    with pytest.raises(ValueError, match=r"a line of \d+ characters"):
        parse_line('a b="' + "x" * LINE_MAX + '" 1')
