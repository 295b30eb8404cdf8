"""The trend report and a night's page: their words, drawings and refusals."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest
from evidence_factory import seal
from nights_factory import NightPlan, changed, season, write_night
from pypdf import PdfReader

from daq_bench.bench_model.documents.nights import Comparison, Job
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.nights.baseline import REGRESSED, compare
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.outcome import Entry, document
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_report import nightly
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.trend import command as trend
from daq_bench.bench_report.trend.view import _left_out, letters


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
    assert "torn cannot be read" in said


def test_a_run_that_was_altered_is_left_out_and_named(tmp_path: Path) -> None:
    nights = [write_night(tmp_path / "runs", NightPlan(number)) for number in (1, 2, 3)]
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


def test_a_candidate_without_runs_is_one_line_on_stderr(
    written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["trend", str(written / "runs"), "--candidate", "nemo", "-o", str(tmp_path / "o")]
    assert main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "error: there is no finished run of candidate 'nemo'. Candidates found: server-a, server-b. 1 left out, the first: torn: "
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
    (tmp_path / "nightly.json").write_text(json.dumps(as_document(found)), encoding="utf-8")
    nightly.render(tmp_path)
    said = text_of(tmp_path / "nightly.html")
    assert "REGRESSION" in said
    assert "R-01 regressed \N{EN DASH} 10 9.5 \N{MINUS SIGN}0.700 to \N{MINUS SIGN}0.300 interval" in said
    assert "busy &lt;b&gt;" in said
    (tmp_path / "nightly.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Exception, match="schema_version"):
        nightly.render(tmp_path)


def test_numbers_of_a_night_have_their_unit_and_the_bound(tmp_path: Path) -> None:
    nights = [read_night(write_night(tmp_path, NightPlan(number, rate=10.0 - number))) for number in (1, 2)]
    compared = tuple(compare(nights[1], nights[0], []))
    job = Job("server-a")
    found = document([Entry(job, "PASS", "", nights[1], nights[0].id, compared, 200.0)], [job], "finished", "a-nightly",
        ("2026-03-01", "2026-03-02"), {})  # fmt: skip
    (tmp_path / "nightly.json").write_text(json.dumps(as_document(found)), encoding="utf-8")
    nightly.render(tmp_path)
    said = text_of(tmp_path / "nightly.html")
    for one, row in zip(compared, nights[1].rows, strict=True):
        assert (one.unit, one.comparison, one.bound) == (row.unit, row.comparison, row.scaled_bound)
    rate = next(row for row in nights[1].rows if row.unit == "GB/s")
    assert f"at least {rate.scaled_bound:g} GB/s" in said.replace("\u202f", " ")
    assert "without units" not in said


def test_steps_say_in_which_values_they_were_found(written: Path) -> None:
    """Their sizes differ: one is of the values as measured, one of those with the temperature taken out."""
    said = text_of(written / "out" / "trend.html")
    assert "temperature taken out)" in said and "as measured)" in said


def test_runs_that_others_may_not_rest_on_are_left_out_and_named(tmp_path: Path) -> None:
    nights = [
        write_night(tmp_path / "runs", NightPlan(number, rate=8.0 if number == 2 else 10.0)) for number in (1, 2, 3)
    ]
    (nights[0] / "MANIFEST.sha256").unlink()
    verdict = nights[1] / "verdict.json"
    verdict.write_text(verdict.read_text("utf-8").replace('"outcome": "FAIL"', '"outcome": "PASS"'), encoding="utf-8")
    seal(nights[1])
    trend.render([tmp_path / "runs"], "server-a", None, tmp_path / "out")
    said = text_of(tmp_path / "out" / "trend.html")
    assert "is not sealed: it has no MANIFEST.sha256" in said
    assert "stored by another version of the bench, or altered; this bench judges: FAIL" in said
    assert [run["run_id"] for run in json.loads((tmp_path / "out" / "trend.json").read_text("utf-8"))["runs"]] == [
        nights[2].name
    ]


def spoiled(bundle: Path, how: str) -> None:
    verdict = bundle / "verdict.json"
    if how == "gone":
        shutil.rmtree(bundle)
    elif how == "unsealed":
        (bundle / "MANIFEST.sha256").unlink()
    elif how == "altered":
        (bundle / "results" / "night.json").write_text("{}", encoding="utf-8")
    else:
        verdict.write_text(verdict.read_text("utf-8").replace('"Met"', '"Fine"'), encoding="utf-8")
        seal(bundle)


@pytest.mark.parametrize(
    ("how", "word", "why"),
    [
        ("gone", "INADMISSIBLE", "its bundle is gone, so that nothing confirms what it ended with"),
        ("unsealed", "ERROR", "the run is not counted: is not sealed"),
        ("altered", "ERROR", "the run is not counted: was altered since it was sealed"),
        ("contradictory", "ERROR", "the run is not counted: contradicts itself"),
    ],
)
def test_a_nights_page_judges_its_runs_again(tmp_path: Path, how: str, word: str, why: str) -> None:
    bundle = write_night(tmp_path, NightPlan(1))
    entries = [Entry(Job("server-a"), "PASS", "", read_night(bundle))]
    found = document(entries, [one.job for one in entries], "finished", "a-nightly", ("2026-03-01", "2026-03-02"), {})
    assert nightly.confirmed(found) == found and found.outcome == "PASS"
    spoiled(bundle, how)
    (tmp_path / "nightly.json").write_text(json.dumps(as_document(found)), encoding="utf-8")
    nightly.render(tmp_path)
    said = text_of(tmp_path / "nightly.html")
    assert why in said and "\u2714" not in said
    assert nightly.confirmed(found).outcome == word


def test_a_nights_page_that_says_better_than_its_runs_is_corrected(tmp_path: Path) -> None:
    failed = read_night(write_night(tmp_path, NightPlan(1, lost=1.0)))
    entries = [Entry(Job("server-a"), "PASS", "", failed)]
    found = document(entries, [one.job for one in entries], "finished", "a-nightly", ("2026-03-01", "2026-03-02"), {})
    corrected = nightly.confirmed(found)
    assert (corrected.outcome, corrected.exit_status) == ("FAIL", 1)
    assert corrected.runs[0].reason == "nightly.json says PASS; judged again it is FAIL"


def test_hundreds_of_other_candidates_runs_are_one_row(tmp_path: Path) -> None:
    for number in range(12):
        write_night(tmp_path, NightPlan(number, candidate="server-b"))
    write_night(tmp_path, NightPlan(20))
    (tmp_path / "torn").mkdir()
    found = trend_of(history_of(*read_all([tmp_path]), "server-a"))
    (table,) = _left_out(found)
    assert [row[0] for row in table.rows] == ["torn", "12 runs or folders"]
    assert table.rows[1][1] == "each is of candidate 'server-b'"
    assert len(found.history.left_out) == 13
