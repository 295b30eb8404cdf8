"""The line protocol of a bundle's telemetry reads back as what it says."""

from pathlib import Path

import pytest

from bench_model.bundle.line_protocol import parse_line, points_of


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
