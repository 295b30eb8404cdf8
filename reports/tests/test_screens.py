"""The report on a phone and in the dark, in a real Chromium: nothing is wider than the screen, and every kind of text can be read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from axe import findings
from comparison_runs import Roots, html_of, several

from daq_bench.bench_report.qualification.render import HTML_NAME

CHROMIUM = shutil.which("chromium")
NARROW_PX, WIDE_PX = 390, 1200
CONTRAST_MIN = 4.5  # WCAG 2.1, 1.4.3
LEAST_CELL_PX = 10.5  # of a table's text; paper has smaller ones
LEAST_FIGURE_PX = 500  # the words of a figure of 174 mm are legible down to this width
ASKED = (  # runs beside the report, not in it: its own policy forbids scripts
    "<iframe id=f src={address!r} width={width} height=3000></iframe><pre id=told></pre><script>"
    "document.getElementById('f').onload = () => {{"
    " const page = document.getElementById('f').contentDocument, view = page.defaultView;"
    " const ground = one => {{ for (; one; one = one.parentElement) {{ const c = view.getComputedStyle(one).backgroundColor;"
    "   if (!/^rgba.*, 0\\)$/.test(c)) return c; }} return 'rgb(255, 255, 255)'; }};"
    " const texts = [...page.querySelectorAll('main *')].filter(one => !one.closest('svg, .zoom') && one.getClientRects().length &&"
    "   [...one.childNodes].some(child => child.nodeType === 3 && child.data.trim()))"
    "   .map(one => [one.tagName + '.' + one.className, view.getComputedStyle(one).color, ground(one)]);"
    " document.getElementById('told').textContent = JSON.stringify({{width: page.documentElement.scrollWidth, texts,"
    "   results: [...page.querySelectorAll('.data td, .data tbody th')].map(one => one.getBoundingClientRect().right),"
    "   covered: [...page.querySelectorAll('figure')].filter(one => one.querySelector('label.zoom').getBoundingClientRect().top <"
    "     one.querySelector('svg.plot').getBoundingClientRect().bottom).length,"
    "   broken: [...page.querySelectorAll('.data th, .data td, main p, main li')]"
    "     .filter(one => one.getClientRects().length && !one.closest('.cards thead'))"
    "     .flatMap(one => {{ const walk = page.createTreeWalker(one, 4), cut = []; for (let text; (text = walk.nextNode());)"
    "       for (const word of text.data.matchAll(/\\d+(?:\\.\\d+)+|[A-Za-z0-9]+/g)) {{ const range = page.createRange();"
    "         range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);"
    "         if (word[0].length <= {longest} && new Set([...range.getClientRects()].map(rect => Math.round(rect.top))).size > 1)"
    "           cut.push(word[0]); }} return cut; }}),"
    "   smallest: Math.min(...[...page.querySelectorAll('.data td:not(.c)')].map(one => parseFloat(view.getComputedStyle(one).fontSize))),"
    "   paper: view.getComputedStyle(page.body).backgroundColor,"
    "   figures: [...page.querySelectorAll('svg.plot')].map(one => one.getBoundingClientRect().right),"
    "   enlarged: (page.querySelector('input.zoom').click(), page.querySelector('svg.plot').getBoundingClientRect().width)}}); }};</script>"
)


LONGEST = 24  # characters of a word that fits beside others; a sum of SHA-256 may be cut anywhere


def seen(report: Path, folder: Path, width: int, dark: bool) -> dict[str, Any]:
    assert CHROMIUM is not None, (
        "no chromium on PATH: `make packages-test`; on Ubuntu, which has none: `snap install chromium`"
    )
    harness = folder / "harness.html"
    harness.write_text(ASKED.format(address=report.as_uri(), width=width, longest=LONGEST), encoding="utf-8")
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=20000",
        f"--user-data-dir={folder / 'chromium'}", f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom",
        harness.as_uri()]  # fmt: skip
    dom = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True).stdout
    told = re.search(r'<pre id="told">(.*?)</pre>', dom, flags=re.DOTALL)
    assert told is not None and told[1]
    found: dict[str, Any] = json.loads(unescape(told[1]))
    return found


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("width", "dark"), [(NARROW_PX, True), (NARROW_PX, False), (WIDE_PX, True)])
def test_every_text_can_be_read_and_nothing_is_wider_than_the_screen(
    rendered: Path, tmp_path: Path, width: int, dark: bool
) -> None:
    found = seen(rendered / HTML_NAME, tmp_path, width, dark)
    assert (luminance(found["paper"]) < 0.1) is dark
    assert found["width"] <= width
    assert len(found["texts"]) > 300 and len(found["figures"]) >= 8
    faint = {
        (name, colour, ground) for name, colour, ground in found["texts"] if contrast(colour, ground) < CONTRAST_MIN
    }
    assert not faint and not found["broken"]
    assert max(found["figures"]) <= width and found["enlarged"] >= LEAST_FIGURE_PX and not found["covered"]
    assert found["results"] and max(found["results"]) <= width, "every value is seen without a finger"


@pytest.mark.parametrize(("width", "dark"), [(NARROW_PX, True), (WIDE_PX, False)])
def test_axe_finds_nothing(rendered: Path, tmp_path: Path, width: int, dark: bool) -> None:
    assert not findings(rendered / HTML_NAME, width, dark)
    spoilt = tmp_path / "spoilt.html"
    faint = '<p style="color: #999; background: #888">faint</p>'
    spoilt.write_text(f'<html lang="en"><title>t</title><main><h1>t</h1>{faint}</main></html>')
    assert ["color-contrast" in one for one in findings(spoilt, width, dark)] == [True]


def test_a_comparison_of_six_decides_on_a_phone(runs_of: Roots, tmp_path: Path) -> None:
    page = tmp_path / "comparison.html"
    names = [f"server-with-a-long-name-{letter}" for letter in "uvwxyz"]
    page.write_text(html_of(runs_of(*(run for name in names for run in several(name, (11.9, 12.0), price=900.0)))))
    found = seen(page, tmp_path, NARROW_PX, False)
    assert found["width"] <= NARROW_PX and max(found["figures"]) <= NARROW_PX and not found["covered"]
    assert not found["broken"], "no head and no number is cut"
    assert len(found["results"]) >= 6 * 7 and max(found["results"]) <= NARROW_PX
    assert not findings(page, NARROW_PX, True)
    assert seen(page, tmp_path, WIDE_PX, False)["smallest"] >= LEAST_CELL_PX
