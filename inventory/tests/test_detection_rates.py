"""The study behind docs/detection.md, small enough to run each time, and the page as its full version wrote it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "studies"))
import detection_rates as study
from series_factory import BACKGROUNDS


def test_no_throttling_is_found_where_no_drive_says_so() -> None:
    assert study.throttling_found({}, 100, 5) == 0.0
    alarms, dips = study.throttling_alarms(1)
    assert (alarms, dips) == (0, 10)


@pytest.mark.parametrize("words", [words for words in study.SIGNALS if not words.startswith("none")])
def test_throttling_of_half_a_minute_is_always_found(words: str) -> None:
    assert study.throttling_found(study.SIGNALS[words], 30, 5) == 1.0


def test_the_limit_of_a_rate_that_was_never_seen_is_three_over_the_time() -> None:
    assert study.upper_limit_per_hour(0, 40) == pytest.approx(3.0 / 40, rel=0.01)


def test_the_page_holds_the_figures_of_every_background_and_claims_no_alarm_that_it_hides() -> None:
    page = study.PAGE.read_text(encoding="utf-8")
    assert "<!-- tables: begin -->\n<!-- tables: end -->" not in page
    for name in BACKGROUNDS:
        row = re.search(rf"\| {re.escape(name)} \| (\d+) \| ([\d.]+) \|", page)
        assert row is not None, name
        hours = int(re.search(r"\((\d+) seeded hours each", page).group(1))  # type: ignore[union-attr]
        assert float(row[2]) == pytest.approx(int(row[1]) / hours, abs=6e-4)


def test_one_cell_of_the_page_comes_out_again() -> None:
    page = study.PAGE.read_text(encoding="utf-8")
    trials = int(re.search(r"\((\d+) trials each; found means", page).group(1))  # type: ignore[union-attr]
    row = re.search(r"\| 20% \| ([^\n]+) \|", page)
    assert row is not None
    stated = row[1].split(" | ")[study.LENGTHS.index(10)]
    assert f"{study.detected('white noise, 5 %', 0.2, 10, trials):.0%}" == stated
