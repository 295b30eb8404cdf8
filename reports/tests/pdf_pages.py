"""Reads the words on the pages of a PDF with poppler. For tests only."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path

MM = 72 / 25.4
WORD = re.compile(r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>')


@dataclass(frozen=True)
class Word:
    """A word's place in points from the left and from the top of the page."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


def words(pdf: Path) -> list[list[Word]]:
    """The words of each page."""
    made = subprocess.run(
        ["pdftotext", "-bbox", pdf, "-"], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    pages = made.split("<page ")[1:]
    return [[Word(*map(float, found[:4]), unescape(found[4])) for found in WORD.findall(page)] for page in pages]


def text_of(page: list[Word]) -> str:
    return " ".join(word.text for word in page)


def outside_of_margins(pages: list[list[Word]]) -> list[str]:
    """Words that leave the type area of report.css sideways, or that lie across the line between it and a running head or foot."""
    left, right, bottom = 17.5 * MM, (210 - 17.5) * MM, (297 - 15) * MM
    spoiled = []
    for number, page in enumerate(pages, 1):
        top = (13 if number == 1 else 17) * MM  # the first page has no running head
        for word in page:
            height = word.bottom - word.top
            sideways = word.left < left or word.right > right
            across = any(word.top + 0.3 * height < edge < word.bottom - 0.3 * height for edge in (top, bottom))
            if sideways or across:
                spoiled.append(f"page {number}: {word}")
    return spoiled


def overlapping(pages: list[list[Word]]) -> list[str]:
    """Pairs of words of which one covers much of the other: text printed over text."""
    found = []
    for number, page in enumerate(pages, 1):
        ordered = sorted((word for word in page if word.text.strip()), key=lambda word: word.left)
        for index, one in enumerate(ordered):
            for other in ordered[index + 1 :]:
                if other.left >= one.right:
                    break
                across = min(one.right, other.right) - other.left
                down = min(one.bottom, other.bottom) - max(one.top, other.top)
                least = min((w.right - w.left) * (w.bottom - w.top) for w in (one, other))
                if down > 0 and across * down > 0.5 * least:
                    found.append(f"page {number}: {one.text!r} and {other.text!r} at {one.left:.0f}, {one.top:.0f}")
    return found
