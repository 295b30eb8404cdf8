"""Text that may not be broken fits into its column of the printed requirement tables, in the longest unit of all requirements."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import ImageFont

from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_report.base.units import quantity
from daq_bench.bench_report.document.outcome import STATES

ROOT = Path(__file__).resolve().parents[2]
CSS = (ROOT / "reports" / "templates" / "report.css").read_text(encoding="utf-8").partition("@media")[0]
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
BOLD = "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"
PAGE_MM = 210 - 2 * 17.5  # the type area, as in pdf_pages.outside_of_margins
MM = 72 / 25.4
PADDING_MM = 2.0  # on the right of each cell, and on the left of a number beside a number
BEFORE_RESULT_MM = 3.0
FRAME_MM = 2.4  # of a result's frame, both sides
UNBROKEN = 0.1234  # four digits, as `quantity` gives a value below 1


def units() -> set[str]:
    """Returns the unit of every requirement that the inventory ships."""
    inventory = ROOT / "inventory"
    metrics = load_metrics(inventory / "metrics.yml")
    profiles = [load_requirements(file, metrics) for file in sorted((inventory / "requirements").glob("*.yml"))]
    return {one.unit for profile in profiles for one in profile.requirements}


def column_mm(table: str, column: int) -> float:
    (share,) = re.findall(rf"^\.t-{table} th:nth-child\({column}\) {{ width: ([\d.]+)%; }}", CSS, re.MULTILINE)
    return PAGE_MM * float(share) / 100


def size_pt(table: str) -> float:
    own = re.findall(rf"^\.t-{table} {{ font-size: ([\d.]+)pt", CSS, re.MULTILINE)
    (common,) = re.findall(r"^\.data {.*font-size: ([\d.]+)pt", CSS, re.MULTILINE)
    return float((own or [common])[0])


def width_mm(text: str, points: float, font: str = FONT) -> float:
    return float(ImageFont.truetype(font, 1000).getlength(text)) * points / 1000 / MM


@pytest.mark.parametrize(("table", "measured", "margin"), [("summary", 4, 6), ("requirements", 4, 5)])
def test_a_value_and_a_margin_in_any_unit_stay_in_their_columns(table: str, measured: int, margin: int) -> None:
    texts = {unit: quantity(-UNBROKEN, unit) for unit in units()}
    assert "W/(GB/s)" in texts and len(texts) > 5
    for unit, text in texts.items():
        for column, shown in ((measured, text[1:]), (margin, text)):
            needed = width_mm(shown, size_pt(table)) + 2 * PADDING_MM
            assert needed <= column_mm(table, column), f"{table}, column {column}: {unit} needs {needed:.1f} mm"


@pytest.mark.parametrize(("table", "result"), [("summary", 7), ("requirements", 6)])
def test_each_result_stays_in_its_column(table: str, result: int) -> None:
    """Each with its sign, as `parts.html.j2` sets it."""
    for word, sign in STATES.items():
        needed = width_mm(f"{sign}\u00a0{word}", 0.92 * size_pt(table), BOLD) + BEFORE_RESULT_MM + FRAME_MM
        assert needed <= column_mm(table, result), f"{table}: {word} needs {needed:.1f} mm"


@pytest.mark.parametrize("table", ["summary", "requirements"])
def test_the_columns_fill_the_page(table: str) -> None:
    shares = re.findall(rf"^\.t-{table} th:nth-child\(\d\) {{ width: ([\d.]+)%; }}", CSS, re.MULTILINE)
    assert sum(map(float, shares)) == pytest.approx(100)
