"""The name that somebody meant who wrote one that does not exist: the nearest three, or all where none is near and they are few.

Also a program, for make, which knows the names of its variables and targets: `nearest.py NAME ENDING KNOWN...`. Keeps to Python 3.9,
because it runs before anything is installed."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable

MOST = 3
FEW = 12  # names that a message lists


def nearest(name: str, known: Iterable[str], listing: str = "", ending: str = "") -> str:
    """`Did you mean snb-100s?`, the nearest first; without a near one the names that are known.

    `listing`: the command that lists them, where they are too many for a message. `ending` stands behind each name: `CANDIDATE=`."""
    names = list(dict.fromkeys(map(str, known)))
    near = [f"{one}{ending}" for one in _near(name.casefold(), names)] if name else []
    if near:
        *others, last = near
        return f"Did you mean {' or '.join([', '.join(others), last] if others else [last])}?"
    if not names:
        return "There are none"
    if len(names) <= FEW:
        return f"Known: {', '.join(f'{one}{ending}' for one in names)}"
    where = f"`{listing}` lists them" if listing else f"they begin with {', '.join(sorted(names)[:MOST])}"
    return f"No name is near among the {len(names)} known ones; {where}"


def _near(name: str, names: list[str]) -> list[str]:
    """Names that are spelt nearly so, then such as begin so; letters' case does not count."""
    by_folded = {one.casefold(): one for one in reversed(names)}
    near = [by_folded[one] for one in difflib.get_close_matches(name, by_folded, n=MOST)]
    return [*near, *(one for one in names if one not in near and one.casefold().startswith(name))][:MOST]


if __name__ == "__main__":
    print(nearest(sys.argv[1], sys.argv[3:], ending=sys.argv[2]))
