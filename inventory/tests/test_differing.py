from __future__ import annotations

from typing import Any

import pytest

from daq_bench.bench_model.base.differing import differences, same, shown


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": [1.0, 2]}, {"a": (1.0, 2)}, []),
        ({"a": [1, 2.0]}, {"a": [1, 2.0 + 1e-12]}, []),
        ({"a": 2}, {"a": 2.0}, []),
        ({"a": 0.0}, {"a": 1e-17}, []),
        ({"a": 1.0}, {"a": 1.001}, ["a: 1.0, 1.001"]),
        ({"a": 2**60}, {"a": 2**60 + 1}, [f"a: {2**60}, {2**60 + 1}"]),
        ({"a": 1}, {}, ["a: 1, nothing"]),
        ({}, {"a": None}, ["a: nothing, null"]),
        ({"a": None}, {"a": 0}, ["a: null, 0"]),
        ({"a": True}, {"a": 1}, ["a: true, 1"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: [1], [1, 2]"]),
        ({"a": [0] * 100}, {"a": []}, ["a: a list of 100, []"]),
        ({"a": float("nan")}, {"a": 1.0}, ["a: NaN, 1.0"]),
        ({"a": float("nan")}, {"a": float("nan")}, ["a: NaN, NaN"]),
        ({"a": [{"b": "1"}]}, {"a": [{"b": 1}]}, ['a[0].b: "1", 1']),
        ({"a": "PASS"}, {"a": "FAIL"}, ["a: PASS, FAIL"]),
        ([], {}, [": [], {}"]),
    ],
)
def test_two_documents_differ_where_they_do(one: Any, other: Any, said: list[str]) -> None:
    assert [f"{at}: {shown(left)}, {shown(right)}" for at, left, right in differences(one, other)] == said
    assert same(one, other) is (not said)


def test_entries_with_ids_are_told_by_these() -> None:
    one, other = [{"id": "A", "bound": 1}, {"id": "B"}], [{"id": "B"}, {"id": "A", "bound": "1"}]
    assert list(differences(one, other, by_id=True)) == [("A.bound", 1, "1")]
    assert len(list(differences(one, other))) > 1
    twice = [one[0], one[0]]
    assert [at for at, *_ in differences(twice, one[:1], by_id=True)] == [""], "two of one id are no mapping"
