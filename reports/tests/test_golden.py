"""The report of one bundle against the report that a person looked at: its words exactly, its pages as pictures within a tolerance.

`make golden` renews what is stored; look at the difference before committing it. The pictures are compared coarsely on purpose: another
release of FreeType or fontconfig moves edges by a pixel, which no reader sees. A line that is missing or a block that moves by 3 mm changes
far more, and a test below shows that this is noticed.
"""

from __future__ import annotations

import os
import re
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from daq_bench.bench_report.qualification.render import HTML_NAME, PDF_NAME

GOLDEN = Path(__file__).parent / "golden"
RENEW = os.environ.get("GOLDEN") == "renew"
DPI = 36  # the smallest at which figures and tables still have their shape
GREYS = 16
BLUR = 5  # pixels, 3.5 mm: a glyph's edge vanishes in it, a line of text does not
TOLERANCE = 18.0  # of 255: above edges that move by a third of a pixel (14), below one missing line of text (25)
BLOCK = re.compile(r"</(?:p|h1|h2|h3|li|tr|figcaption|caption|title|pre|summary)>|<br>")
Picture = NDArray[np.float64]


def words_of(html: str) -> str:
    """The text of the document, a line for each block; pictures and data links are left to other tests."""
    text = re.sub(r"<style.*?</style>|<svg.*?</svg>", "", html, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", "", BLOCK.sub("\n", re.sub(r"</t[hd]>", " | ", text)))
    lines = (
        re.sub(r"\s+", " ", unescape(line)).strip(" |") for line in re.sub(r"[ \n]*\n[ \n]*", "\n", text).split("\n")
    )
    return "\n".join(line for line in lines if line) + "\n"


def test_the_words_are_those_that_were_approved(rendered: Path) -> None:
    found = words_of((rendered / HTML_NAME).read_text(encoding="utf-8"))
    stored = GOLDEN / "report.txt"
    if RENEW:
        GOLDEN.mkdir(exist_ok=True)
        stored.write_text(found, encoding="utf-8")
    assert found == stored.read_text(encoding="utf-8"), "the report's words changed: look at them, then `make golden`"


def pictures(root: Path, folder: Path) -> list[Path]:
    subprocess.run(
        ["pdftoppm", "-r", str(DPI), "-gray", "-png", root / PDF_NAME, folder / "page"], check=True, timeout=120
    )
    return sorted(folder.glob("page-*.png"))


def blurred(path: Path) -> Picture:
    grey = np.asarray(Image.open(path).convert("L"), dtype=np.float64)
    return blur(grey)


def blur(grey: Picture) -> Picture:
    """The mean over a square of BLUR pixels."""
    sums = np.pad(grey, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    return (sums[BLUR:, BLUR:] - sums[:-BLUR, BLUR:] - sums[BLUR:, :-BLUR] + sums[:-BLUR, :-BLUR]) / BLUR**2


def difference(one: Picture, other: Picture) -> float:
    """Returns the difference of the worst 0.3 % of the page, about a sixth of a line of text."""
    return float(np.quantile(np.abs(one - other), 0.997)) if one.shape == other.shape else 255.0


def test_the_pages_look_as_they_were_approved(rendered: Path, tmp_path: Path) -> None:
    found = pictures(rendered, tmp_path)
    if RENEW:
        for old in GOLDEN.glob("page-*.png"):
            old.unlink()
        for page in found:
            Image.open(page).convert("L").quantize(GREYS).save(GOLDEN / page.name, optimize=True)
    stored = sorted(GOLDEN.glob("page-*.png"))
    assert [page.name for page in found] == [page.name for page in stored], "the number of pages changed: `make golden`"
    apart = {page.name: difference(blurred(page), blurred(GOLDEN / page.name)) for page in found}
    assert max(apart.values()) <= TOLERANCE, f"look at these pages, then `make golden`: {apart}"


@pytest.mark.parametrize("change", ["moved by 3 mm", "a line of text is missing"])
def test_the_tolerance_notices_what_a_reader_would(change: str) -> None:
    for path in sorted(GOLDEN.glob("page-*.png"))[:3]:
        grey = np.asarray(Image.open(path).convert("L"), dtype=np.float64)
        other = np.roll(grey, round(3 / 25.4 * DPI), axis=0)
        if change == "a line of text is missing":
            other = grey.copy()
            rows = np.argsort(grey[:, 40:-40].mean(axis=1))[:1]
            other[max(0, rows[0] - 4) : rows[0] + 5] = 255
        assert difference(blur(grey), blur(other)) > TOLERANCE, path.name


def test_the_tolerance_lets_edges_move_by_a_third_of_a_pixel() -> None:
    for path in sorted(GOLDEN.glob("page-*.png")):
        grey = np.asarray(Image.open(path).convert("L"), dtype=np.float64)
        moved = 2 / 3 * grey + 1 / 3 * np.roll(grey, 1, axis=0)
        assert difference(blur(grey), blur(moved)) <= TOLERANCE, path.name
