"""Line protocol: one line per point, lossless, and refusing what it cannot carry."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daq_bench.telemetry_agent.base.line_parser import parse_line
from daq_bench.telemetry_agent.base.point import INT64_MAX, INT64_MIN, Encoder, FieldValue, Point, PointError

# Everything but what is refused: line breaks anywhere, a trailing backslash in names and tags.
TEXT = st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=12)
NAME = TEXT.filter(lambda text: text != "" and not text.endswith("\\") and text != "time")
PLAIN = NAME.filter(lambda text: not any("\\" + separator in text for separator in ",= "))
MEASUREMENT = PLAIN.filter(lambda text: not text.startswith("#"))
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.one_of(st.booleans(), st.integers(INT64_MIN, INT64_MAX), FLOAT, TEXT)
TAGS = st.dictionaries(NAME, NAME, max_size=4).map(lambda tags: tuple(sorted(tags.items())))
TIME = st.integers(0, INT64_MAX)
POINT = st.builds(Point, MEASUREMENT, TAGS, st.dictionaries(PLAIN, VALUE, min_size=1, max_size=4), TIME)


@given(POINT)
def test_encoding_and_parsing_back_gives_the_same_point(point: Point) -> None:
    """Names, tags, values, and the values' types survive; the line is one line."""
    line = Encoder({}).encode(point)
    assert line.count("\n") == 1
    assert line.endswith("\n")
    parsed = parse_line(line[:-1])
    assert parsed == point
    assert {key: type(value) for key, value in parsed.fields.items()} == {
        key: type(value) for key, value in point.fields.items()
    }


def test_the_text_is_what_the_line_protocol_reference_shows() -> None:
    """Escapes: comma and space in measurements, also '=' in tags; quote and backslash in strings."""
    fields: dict[str, FieldValue] = {"i": 3, "f": 1.0, "b": True, "s": 'say "hi" \\ there', "a b": 1}
    point = Point("my, place", (("room no", "a=b,c d"),), fields, 7)
    expected = r'my\,\ place,room\ no=a\=b\,c\ d i=3i,f=1.0,b=true,s="say \"hi\" \\ there",a\ b=1i 7' + "\n"
    assert Encoder({}).encode(point) == expected


def test_common_tags_are_added_sorted_and_the_points_own_win() -> None:
    """Every point carries host and run unless it brought its own."""
    encoder = Encoder({"run": "r1", "host": "h1"})
    assert encoder.encode(Point("m", (("device", "sda"),), {"x": 1}, 1)) == "m,device=sda,host=h1,run=r1 x=1i 1\n"
    assert encoder.encode(Point("m", (("run", "own"),), {"x": 1}, 1)) == "m,host=h1,run=own x=1i 1\n"


@pytest.mark.parametrize(
    ("point", "named"),
    [
        (Point("m", (), {"x": math.nan}, 1), "nan"),
        (Point("m", (), {"x": math.inf}, 1), "inf"),
        (Point("m", (), {"x": 2**63}, 1), "64 bits"),
        (Point("m", (), {"x": "a\nb"}, 1), "line break"),
        (Point("m", (("t", "a\nb"),), {"x": 1}, 1), "line break"),
        (Point("m", (("t", "C:\\"),), {"x": 1}, 1), "backslash"),
        (Point("m", (("t", ""),), {"x": 1}, 1), "empty value of tag 't'"),
        (Point("m", (("time", "1"),), {"x": 1}, 1), "time"),
        (Point("m", (), {"time": 1}, 1), "time"),
        (Point("m\\,n", (), {"x": 1}, 1), "backslash before"),
        (Point("m", (), {"x\\ y": 1}, 1), "backslash before"),
        (Point("m", (), {}, 1), "no fields"),
        (Point("", (), {"x": 1}, 1), "measurement"),
        (Point("#m", (), {"x": 1}, 1), "comment"),
        (Point("m", (), {"x": None}, 1), "NoneType"),  # type: ignore[dict-item]  # the mistake under test
    ],
)
def test_what_line_protocol_cannot_carry_is_refused_by_name(point: Point, named: str) -> None:
    """Nothing is altered to make it fit."""
    with pytest.raises(PointError, match=named):
        Encoder({}).encode(point)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "m",
        "m x=1i",
        "m x=1i soon",
        "m x=1i 1.5",
        "m x= 1",
        "m x=nan 1",
        "m x=1_0 1",
        "m x=1e999 1",
        "m x=1u 1",
        'm x="open 1',
        "m =1 1",
        "m x=1,x=2 1",
        "m,t= x=1 1",
        "m,t=a,t=b x=1 1",
        "m,t x=1 1",
        ",t=a x=1 1",
        "#m x=1 1",
        "m x=9223372036854775808i 1",
        "m x=1i 1 2",
    ],
)
def test_a_malformed_line_is_refused(line: str) -> None:
    """The parser guesses nothing."""
    with pytest.raises(PointError):
        parse_line(line)
