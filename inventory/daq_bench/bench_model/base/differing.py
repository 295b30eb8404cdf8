"""In what two documents differ: one rule for whoever recomputes, extracts again or compares with a copy of their own.

Lists and tuples are alike, and so are numbers that only another machine's rounding parts; counts are exact. True is not 1, a key that is
missing is not null, and what is not a number equals nothing, itself included."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

NEAR = 1e-9  # relative: another machine's mathematics may round the last digit otherwise
NEAR_ZERO = 1e-12  # absolute: a rounding may leave that of what is 0; no quantity here is as small
MOST_SHOWN = 120
SCALARS = frozenset((bool, int, float, str, type(None)))


class _Absent:
    """Marks a field that a document does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()
Place = tuple[str, Any, Any]


def differences(one: Any, other: Any, at: str = "", by_id: bool = False, near: float = NEAR) -> Iterator[Place]:
    """(place, value, other value) for each place. `by_id`: the entries of a list that have ids are told by these, not by their order;
    `near`: 0 for what is stated, and so the same to the last digit."""
    if by_id:
        one, other = _keyed(one), _keyed(other)
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys(chain(one, other)):
            mine, its = one.get(key, ABSENT), other.get(key, ABSENT)
            if not _is_plainly_equal(mine, its):
                yield from differences(mine, its, f"{at}.{key}" if at else str(key), by_id, near)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for place, (mine, its) in enumerate(zip(one, other, strict=True)):
            if not _is_plainly_equal(mine, its):
                yield from differences(mine, its, f"{at}[{place}]", by_id, near)
    elif not _equal(one, other, near):
        yield at, one, other


def same(one: Any, other: Any) -> bool:
    """Do the two differ nowhere?"""
    return next(differences(one, other), None) is None


def shown(value: Any, most: int = MOST_SHOWN) -> str:
    """A value in a message: words as they are, everything else as JSON, so that "1" is not taken for 1."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    if isinstance(value, str) and value and not _is_json(value):
        text = value
    if len(text) <= most:
        return text
    return f"a list of {len(value)}" if isinstance(value, list) else f"{text[: most - 3]}..."


def _keyed(node: Any) -> Any:
    """A list of entries that each have an id of their own, as a mapping; two of one id stay a list, which equals no mapping."""
    entries = isinstance(node, list) and bool(node) and all(isinstance(one, dict) and "id" in one for one in node)
    if entries and len(found := {str(one["id"]): one for one in node}) == len(node):
        return found
    return node


def _is_plainly_equal(one: Any, other: Any) -> bool:
    """Nearly all values of two documents that are alike: no place need be put into words for them. NaN equals nothing here either."""
    return type(one) is type(other) and type(one) in SCALARS and bool(one == other)


def _equal(one: Any, other: Any, near: float) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=near, abs_tol=NEAR_ZERO if near else 0)
    return type(one) is type(other) and bool(one == other)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
