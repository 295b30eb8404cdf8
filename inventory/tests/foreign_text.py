"""Makes outputs that tools might give, for tests of their readers: documents and texts that were really printed, with harm done to them.

The same seed gives the same harm. Nothing here was measured."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

HUGE, DEEP = "@huge@", "@deep@"  # what Python itself would not write
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 0.5, 1e308, -1e308, math.nan, math.inf, 2**63, 2**64, 10**30, "", "0", "-", "1e999", "x" * 5000,
    "a\x00b\x1b[2J", "\u202e", "\ud800", [], {}, [None], {"": None}, HUGE, DEEP,
)  # fmt: skip


@st.composite
def harmed_json(draw: st.DrawFn, documents: tuple[Any, ...]) -> str:
    """One of `documents` as text, with one to four places changed, dropped or doubled, and now and then cut off."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 4))):
        document = _harmed(draw, document)
    text = json.dumps(document).replace(f'"{HUGE}"', "9" * 5000).replace(f'"{DEEP}"', "[" * 100_000 + "]" * 100_000)
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def _harmed(draw: st.DrawFn, node: Any) -> Any:
    """Goes down at random, and harms the place where it ends."""
    if isinstance(node, dict) and node and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(node)))
        if draw(st.integers(0, 5)) == 0:
            del node[key]
        else:
            node[key] = _harmed(draw, node[key])
        return node
    if isinstance(node, list) and node and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(node) - 1))
        if draw(st.integers(0, 5)) == 0:
            node.insert(at, copy.deepcopy(node[at]))
        else:
            node[at] = _harmed(draw, node[at])
        return node
    return copy.deepcopy(draw(st.sampled_from(ODD)))


@st.composite
def harmed_text(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    """One of `texts` with lines dropped, doubled, swapped or joined, words replaced, and now and then cut off."""
    lines = draw(st.sampled_from(texts)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at, other = (draw(st.integers(0, max(0, len(lines) - 1))) for _ in range(2))
        if not lines:
            break
        what = draw(st.integers(0, 5))
        if what == 0:
            del lines[at]
        elif what == 1:
            lines.insert(other, lines[at])
        elif what == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif what == 3:
            lines[at] += lines[other]
        else:
            words = lines[at].split(" ")
            words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(WORDS))
            lines[at] = " ".join(words)
    text = "\n".join(lines)
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


WORDS = (
    "", "0", "-1", "-0.0", "nan", "inf", "1e999", "9" * 5000, "0x", "na", "|", ",", "=", "\x00", "\ud800", "\u0663", "\u00b2", "1_0", "--",
    "x" * 5000,
)  # fmt: skip


def hostile(sound: str, long: int) -> Iterator[str]:
    """Texts of some `long` characters that are made to break a reader; `sound` is one that it reads."""
    yield from (
        "",
        "\n",
        "\x00",
        "\ud800",
        "\ufeff" + sound,
        sound + "\x00",
        sound.replace("\n", "\r\n"),
        sound.replace("\n", "\u2028"),
    )
    for opened, closed in (("[", "]"), ('{"a":', "}"), ("(", ")"), ("- ", "")):
        yield opened * (long // len(opened))
        yield opened * (long // 2) + "1" + closed * (long // 2)
    for number in ("9" * long, "0." + "9" * long, "1e999", "-1e999", "NaN", "Infinity", "0x" + "f" * long, "-0"):
        yield number
        yield f'{{"a": {number}}}'
        yield _with_numbers(sound, number)
    for mark in (" ", "\t", "\n", ",", "=", ":", '"', "\\", "|", "-", "#", "a", "0", "<", "&", "*", "é", "\x1b"):
        yield mark * long
        yield sound + mark * long
        yield sound.rstrip("\n") + mark * long + "\n"
        yield (sound.partition("\n")[0] + mark) * (long // (len(sound.partition("\n")[0]) + 1) + 1)
    yield '{"a": 1, "a": 2}'
    yield '{"a": "\\ud800"}'
    yield from ("null", "true", "1", '"text"', "[]", "{}", "[null]", '[{"a": null}]')


def _with_numbers(sound: str, number: str) -> str:
    """The sound text with one of its numbers replaced."""
    found = list(re.finditer(r"(?<![\w.])\d+(?![\w.])", sound))
    return sound[: found[-1].start()] + number + sound[found[-1].end() :] if found else number
