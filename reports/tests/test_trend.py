"""The trend report and a night's page: what they say, draw and refuse."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nights_factory import NightPlan, changed, season, write_night
from pypdf import PdfReader
from tender_factory import seal

from bench_model.baseline import REGRESSED, Comparison
from bench_model.night import read_night
from bench_model.nightly_outcome import Entry, Job, document
from bench_report import nightly, trend
from bench_report.trend_view import letters


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A season with a firmware's step, a sensor lost, a broken bundle and another candidate's run."""
    folder = tmp_path_factory.mktemp("trend")
    plans = changed(season(), 23, rate=8.7, governor="powersave", sensors=("block_device", "smart"))
    for plan in [*plans, NightPlan(40, candidate="server-b")]:
        write_night(folder / "runs", plan)
    (folder / "runs" / "torn").mkdir()
    (folder / "runs" / "torn" / "run.json").write_text("{", encoding="utf-8")
    trend.render([folder / "runs"], "server-a", None, folder / "out")
    return folder


def text_of(html: Path) -> str:
    return re.sub(
        r"\s+",
        " ",
        re.sub(r"<[^>]+>", "", re.sub(r"<svg.*?</svg>|<style.*?</style>", "", html.read_text("utf-8"), flags=re.S)),
    )


def test_it_says_what_changed_and_that_coinciding_is_not_causing(written: Path) -> None:
    said = text_of(written / "out" / "trend.html")
    assert "The newest run misses R-01." in said
    assert f"Last known good: {NightPlan(22).run_id}" in said
    assert "It coincides with: drive firmware of S1: 1.0 → 1.1" in said
    assert "Coinciding is not causing" in said
    assert "R-02 drifts towards its bound" in said
    assert "is of candidate" in said
    assert "torn is damaged" in said


def test_a_run_that_was_altered_is_left_out_and_named(tmp_path: Path) -> None:
    nights = [write_night(tmp_path / "runs", NightPlan(number)) for number in (1, 2, 3)]
    for night in nights:
        seal(night)
    verdict = nights[1] / "verdict.json"
    verdict.write_text(verdict.read_text("utf-8").replace("PASS", "FAIL", 1), encoding="utf-8")
    trend.render([tmp_path / "runs"], "server-a", None, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "trend.json").read_text("utf-8"))
    assert [run["run_id"] for run in found["runs"]] == [nights[0].name, nights[2].name]
    assert found["left_out"] == [{"name": nights[1].name, "reason": "was altered since it was sealed (verdict.json)"}]
    assert re.search(r"evidence of 2 runs [0-9a-f]{64}", (tmp_path / "out" / "trend.html").read_text("utf-8"))


def test_the_numbers_drawn_are_those_of_the_bundles(written: Path) -> None:
    found = json.loads((written / "out" / "trend.json").read_text(encoding="utf-8"))
    rates = {one["id"]: one for one in found["requirements"]}["R-01"]
    for run, value, interval in zip(rates["runs"], rates["values"], rates["intervals"], strict=True):
        row = json.loads((written / "runs" / run / "verdict.json").read_text(encoding="utf-8"))["requirements"][0]
        assert (row["measured"], row["confidence_interval"]) == (value, interval)
    assert [one["coincides_with"][0]["group"] for one in rates["adjusted_steps"]] == ["drive firmware"]
    assert len(found["left_out"]) == 2


def test_the_pdf_is_tagged_and_names_itself_on_each_page(written: Path) -> None:
    reader = PdfReader(io.BytesIO((written / "out" / "trend.pdf").read_bytes()))
    assert reader.trailer["/Root"]["/MarkInfo"]["/Marked"]
    assert 3 <= len(reader.pages) <= 6
    for page in reader.pages:
        assert "Trend report" in page.extract_text()
    assert len(reader.outline) > 0


def test_the_same_runs_give_the_same_page(written: Path) -> None:
    before = (written / "out" / "trend.html").read_bytes()
    trend.render([written / "runs"], "server-a", None, written / "again")
    assert (written / "again" / "trend.html").read_bytes() == before


def test_one_run_is_no_trend_but_a_page(tmp_path: Path) -> None:
    write_night(tmp_path / "runs", NightPlan(1, candidate="測試-" + "x" * 80))
    trend.render([tmp_path / "runs"], "測試-" + "x" * 80, None, tmp_path / "out")
    assert "too few runs" in text_of(tmp_path / "out" / "trend.html")


def test_a_candidate_without_runs_is_one_line_on_stderr(written: Path, tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "bench_report",
        "trend",
        str(written / "runs"),
        "--candidate",
        "nemo",
        "-o",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "bench_report: there is no finished run of candidate 'nemo'. Candidates found: server-a, server-b\n"
    )
    assert not (tmp_path / "o").exists()


def test_letters_go_on_after_z() -> None:
    found = letters(list(range(28)))
    assert (found[0], found[25], found[26], found[27]) == ("A", "Z", "AA", "AB")


def test_a_nights_page_says_what_became_worse(tmp_path: Path) -> None:
    night = read_night(write_night(tmp_path, NightPlan(1)))
    worse = Comparison("R-01", "mandatory", REGRESSED, 10.0, 9.5, -0.5, (-0.7, -0.3), "interval")
    entries = [
        Entry(Job("server-a"), "PASS", "", night, "the-baseline", (worse,), 200.0),
        Entry(Job("server-b"), "skipped", "busy <b>"),
    ]
    found = document(entries, [one.job for one in entries], "finished", "a-nightly", ("2026-03-01", "2026-03-02"), {})
    (tmp_path / "nightly.json").write_text(json.dumps(found), encoding="utf-8")
    nightly.render(tmp_path)
    said = text_of(tmp_path / "nightly.html")
    assert "REGRESSION" in said
    assert "R-01 regressed 10 9.5 \N{MINUS SIGN}0.700 to \N{MINUS SIGN}0.300 interval" in said
    assert "busy &lt;b&gt;" in said
    (tmp_path / "nightly.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Exception, match="schema_version"):
        nightly.render(tmp_path)
