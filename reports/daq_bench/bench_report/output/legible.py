"""No empty boxes on paper: a character that no font of this machine has is printed as its code point, such as [U+1F9EA].

Promise: a text that the report's own faces cover is returned as it is, without a look at other fonts; no character that can be shown is
replaced.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

from matplotlib.font_manager import findSystemFonts, fontManager, get_font

from daq_bench.bench_report.document.canvas import FONTS

PLAIN = 0x250  # Latin, which every face has
INVISIBLE = frozenset({"Cc", "Cf", "Co", "Mn", "Zs", "Zl", "Zp"})  # controls and joiners have no picture of their own


def legible(text: str) -> str:
    found = {
        character
        for character in set(text)
        if ord(character) >= PLAIN and unicodedata.category(character) not in INVISIBLE
    }
    own = [font.fname for font in fontManager.ttflist if font.name in FONTS]
    if found := _without_picture(found, own):
        found = _without_picture(found, _installed())
    if not found:
        return text
    return text.translate({ord(character): f"[U+{ord(character):04X}]" for character in found})


@cache
def _installed() -> tuple[str, ...]:
    """Returns the fonts that the page is set from. Matplotlib's own list does not serve: it is kept from an earlier day, and
    holds a font "Last Resort" that claims to have every character and draws a box for each."""
    return tuple(sorted(findSystemFonts()))


def _without_picture(characters: set[str], paths: Iterable[str]) -> set[str]:
    left = set(characters)
    for path in dict.fromkeys(paths):
        if not left:
            break
        left = {character for character in left if ord(character) not in _covered(path)}
    return left


@cache
def _covered(path: str) -> frozenset[int]:
    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a font that is listed and cannot be read covers nothing
        return frozenset()
