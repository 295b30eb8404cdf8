"""Whatever a tool, a drive, a BMC, a kernel or a user writes, its reader gives values or one error of its own: no other exception, no hang,
no NaN. `foreign_parsers` is the table of the readers."""

from __future__ import annotations

import json
import math
import random
import time
from typing import Any

import pytest
from foreign_parsers import PARSERS, Parser
from foreign_text import harmed_json, harmed_text, hostile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CPU_S_MAX = 2.0  # of one text of some 200 kB: a reader takes milliseconds, one that backtracks takes minutes
ERROR_CHARACTERS_MAX = 2000  # an error is read by a person
SOME = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
TEXTS = [one for one in PARSERS if isinstance(one.seeds[0], str)]
PAGES = [one for one in PARSERS if isinstance(one.seeds[0], bytes)]


def named(parsers: list[Parser]) -> Any:
    return pytest.mark.parametrize("parser", parsers, ids=[one.name for one in parsers])


def finite(found: Any) -> bool:
    """No number of an accepted answer is NaN or infinite."""
    if isinstance(found, float):
        return math.isfinite(found)
    if isinstance(found, dict):
        return all(finite(value) for value in found.values())
    if isinstance(found, list | tuple):
        return all(finite(value) for value in found)
    return not hasattr(found, "__dict__") or finite(vars(found))


def held(parser: Parser, text: Any) -> None:
    """Read, or refused in a few words, in bounded time."""
    began = time.process_time()
    try:
        assert finite(parser.read(text)), "it gives a number that is not finite"
    except parser.errors as error:
        assert len(str(error)) < ERROR_CHARACTERS_MAX, f"{len(str(error))} characters"
    assert time.process_time() - began < CPU_S_MAX


@named(list(PARSERS))
def test_what_is_not_harmed_is_read(parser: Parser) -> None:
    """A reader that refuses everything would pass the tests below."""
    for seed in parser.seeds:
        assert parser.shows(parser.read(seed)), seed[:200]


@named(TEXTS)
def test_harmed(parser: Parser) -> None:
    """The seeds with places changed, dropped, doubled and cut off."""
    texts = [text for text in parser.seeds if isinstance(text, str)]
    documents = [
        json.loads(text) for text in texts if text.lstrip().startswith("{")
    ]  # a tool may say a word before its JSON
    harm = harmed_json(tuple(documents)) if documents else harmed_text(tuple(texts))

    @settings(SOME, max_examples=parser.examples)
    @given(harm)
    def harmed(changed: str) -> None:
        held(parser, changed)

    harmed()


@named(TEXTS)
def test_hostile(parser: Parser) -> None:
    """Endless nesting, numbers and lines, halves of characters, NaN, keys that stand twice."""
    for text in hostile(str(parser.seeds[0]), parser.long):
        held(parser, text)


@named(PAGES)
def test_pages(parser: Parser) -> None:
    """Pages of a drive of any length and content."""
    seed = bytes(parser.seeds[0])  # type: ignore[arg-type]

    @SOME
    @given(
        size=st.sampled_from([0, 1, 15, 511, 512, len(seed) - 1, len(seed), 4096, 2 * len(seed)]),
        fill=st.sampled_from([0x00, 0xFF, None, -1]),
        number=st.integers(0, 2**32),
    )
    def filled(size: int, fill: int | None, number: int) -> None:
        if fill == -1:  # the seed with some bytes changed
            page = bytearray(seed)
            for at in random.Random(number).sample(range(len(page)), 8):
                page[at] = number >> (at % 24) & 0xFF
            held(parser, bytes(page))
        else:
            held(parser, random.Random(number).randbytes(size) if fill is None else bytes([fill]) * size)

    filled()
