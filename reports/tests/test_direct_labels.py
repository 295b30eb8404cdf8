"""Names at the ends of curves: none covers another, none is lost, and a light colour does not make a name unreadable."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Annotation, Text

from daq_bench.bench_report.document.canvas import sheet
from daq_bench.bench_report.document.direct_labels import spread
from daq_bench.bench_report.document.palette import INK

PLACES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(PLACES, st.floats(0.001, 0.2))
def test_names_keep_their_distance_and_their_order(places: list[float], step: float) -> None:
    found = spread(places, step)
    pairs = sorted(zip(places, found, strict=True))
    moved = sorted(found)
    assert all(after - before >= step - 1e-9 for before, after in pairwise(moved))
    for (one, its), (other, others) in pairwise(pairs):
        assert one == other or its < others
    if (len(places) - 1) * step <= 1:
        assert min(found) >= 0 and max(found) <= 1 + 1e-9


def test_names_with_room_stay_where_their_curves_end() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert spread([0.5, 0.5], 0.1) == pytest.approx([0.45, 0.55])


def test_every_labelled_line_is_named_once_and_others_are_not() -> None:
    with sheet("labels", 60) as (drawing, (axes,)):
        axes.plot([0, 1, 2], [1, 2, 3], label="rising", color="#165EC6")
        axes.plot([0, 1, 2], [1, 2, math.nan], label="ends early", color="#A12417")
        axes.plot([0, 1], [math.nan, math.nan], label="no value")
        axes.plot([0, 1], [1, 1], label="_silent")
        axes.axhline(2, label="level", color="#ffff00")
        axes.axvline(1, label="upright")
        axes.label_ends()
    drawn = drawing.figure("", "", "a trial")
    texts = [
        re.sub(r"<[^>]+>", "", text).strip() for text in re.findall(r"<text.*?</text>", drawn.svg, flags=re.DOTALL)
    ]
    assert [texts.count(name) for name in ("rising", "ends early", "level")] == [1, 1, 1]
    assert not {"no value", "_silent", "upright"} & set(texts)
    light = re.search(r"<text[^>]*>level", drawn.svg)
    assert light is not None and INK in light[0] and "#ffff00" not in light[0]
    assert {trace.series for trace in drawn.data} >= {"rising", "ends early", "level", "upright"}


def test_a_line_to_a_name_ends_where_the_name_begins_and_crosses_no_other() -> None:
    """Three curves end at one place before the edge."""
    with sheet("labels", 48) as (_, (axes,)):
        for number in (1, 2, 3):
            axes.plot([0, 0.9], [0, 1], label=f"a name of some length {number}")
        axes.set_xlim(0, 1)
        axes.label_ends()
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.canvas.draw()
        names = [text for text in axes.texts if isinstance(text, Annotation)]
        assert len(names) == 3
        for one in names:
            assert one.arrow_patch is not None
            line = one.arrow_patch.get_transform().transform_path(one.arrow_patch.get_path())
            assert line.get_extents().x1 <= Text.get_window_extent(one).x0 + 1


def test_long_numbers_of_a_linear_axis_stand_in_groups() -> None:
    with sheet("prices", 60) as (drawing, (axes,)):
        axes.plot([15_400, 31_800], [-20_000, 20], color=INK)
    assert "20\u202f000" in drawing.svg and "20000" not in re.sub(
        r"<title>.*?</title>|<defs>.*?</defs>", "", drawing.svg
    )
