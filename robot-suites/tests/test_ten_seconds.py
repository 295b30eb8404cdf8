"""Whoever looks for ten seconds reads the same word and the same reason of a run everywhere: terminal, mail, page 1, site row, comparison,
trend and dashboard tile; beside them, the same likely cause and next step on terminal, mail, webhook, page 1, site, dashboard and in JSON.
Thirteen runs of simulated servers hold them together: good, each way of bad, rehearsals, loaded machine, undecided.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path

import pytest

from daq_bench.bench_dashboards.boards.fleet import DASHBOARD as FLEET
from daq_bench.bench_dashboards.boards.run_live import DASHBOARD as RUN_LIVE
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.interpolation import Choice, Every, Range, interpolated
from daq_bench.bench_dashboards.trial import Server
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.documents.run import AskedFor
from daq_bench.bench_model.evidence.admissibility import SIMULATED
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.outcome import STATUS, Entry, document, outcome_of, summary
from daq_bench.bench_model.nights.run_history import history_of
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_model.verdict.advice import Advice, advice_of
from daq_bench.bench_model.verdict.conclusion import conclude, state
from daq_bench.bench_report import nightly, site
from daq_bench.bench_report.comparison.bundles import read_source
from daq_bench.bench_report.qualification.render import document_of, load_for, to_html
from daq_bench.bench_report.trend.command import paper_of
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.cli.bundles import judge
from daq_bench.rig.cli.runs import closing_words, exit_status
from daq_bench.rig.nightly.notify import over
from daq_bench.rig.telemetry.history import publish, run_point, verdict_points
from daq_bench.rig.telemetry.influx_server import LocalInflux, create_database
from daq_bench.samples.servers import OPEN, SCENARIO
from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.physics.hazards import Hazard
from daq_bench.simulation.run import simulate
from daq_bench.simulation.sample import finish_sample

GOOD, SLOW, LESS_ASKED, SENSOR_STUCK = 3, 2, 8, 15  # seeds
LESS = spec_of(LESS_ASKED)
OTHERS = Hazard("other_load", 1, 20.0, 60.0, 0.4, 0)
THROTTLED, PULLED, OPEN_RUN = "throttled", "drive pulled", "undecided"
# How the next step begins, by the word.
STEPS = {
    "PASS": "Nothing is open",
    "FAIL": "Do not accept the candidate as it is: ",
    "ERROR": "Mend the bench, then repeat the run: `daq-bench qualify --candidate simulated",
    "REHEARSAL": "Make SNB-06 ",
    "REHEARSAL FAILED": "It fails as far as a rehearsal can: ",
}
INVALID = {
    "clock stepped": "Remove what makes the evidence invalid",
    "another drive": "Bring back the machine and the drives",
    OPEN_RUN: "To decide SNB-07 ",
    "loaded machine": "End what else runs on the machine",
    "bits flip": "Trust no data to this candidate: it misses SNB-04 ",
    "writes are lost": "Trust no data to this candidate: it misses SNB-04 ",
}
CAUSES = {
    THROTTLED: "degC, its warning limit is 75 degC", PULLED: "Input/output error (errno 5). It lies on nvme0n1",
    "loaded machine": "(<b>x</b> 32%)",
}  # fmt: skip
# What the server is, or what befalls it; the word that is right for it.
RUNS = {
    "good": (spec_of(GOOD), "PASS"),
    "too slow": (spec_of(SLOW), "FAIL"),
    "bits flip": (spec_of(326), "FAIL"),
    "writes are lost": (spec_of(395), "FAIL"),
    THROTTLED: (spec_of(60), "FAIL"),
    PULLED: (spec_of(176), "FAIL"),
    "power cut": (spec_of(64), "ERROR"),
    "clock stepped": (spec_of(4), "INADMISSIBLE"),
    "another drive": (spec_of(148), "INADMISSIBLE"),
    "loaded machine": (replace(spec_of(SLOW), hazards=(OTHERS,), others_name="<b>x</b>"), "INADMISSIBLE"),
    OPEN_RUN: (OPEN.spec(1, ""), "INADMISSIBLE"),
    "rehearsal that failed": (
        replace(spec_of(SLOW), hazards=(replace(LESS.hazards[0], strength=0.1),)),  # nine tenths of the load
        "REHEARSAL FAILED",
    ),
    "rehearsal that did not measure all": (
        replace(LESS, hazards=LESS.hazards + spec_of(SENSOR_STUCK).hazards),
        "REHEARSAL",
    ),
}


@dataclass(frozen=True)
class Seen:
    """One run: `line` is its conclusion, `bundle` its sealed evidence, as of a server that was measured."""

    name: str
    bundle: Bundle
    word: str
    reason: str
    advice: Advice

    @property
    def line(self) -> str:
        return f"{self.word}: {self.reason}"


@pytest.fixture(scope="module", params=RUNS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    spec, word = RUNS[request.param]
    run = simulate(spec, tmp_path_factory.mktemp("runs"), SCENARIO if request.param == OPEN_RUN else "record")
    assert run.bundle
    bundle = run.bundle
    (bundle.path.parent / "latest").unlink()
    unmarked = [text for text in bundle.run.scaled_down or [] if text != SIMULATED]
    scale = bundle.run.scenario.scale  # of a rehearsal: what its command line asked for
    bundle.save_run(simulated=False, scaled_down=unmarked, request=AskedFor(scale=scale if scale < 1 else None))
    finish_sample(bundle, rendered=False)
    verdict = read_night(bundle.path, warm=False).verdict
    found = conclude(verdict)
    assert found.word == word, found.line
    yield Seen(request.param, bundle, found.word, found.reason, advice_of(bundle.path, bundle.run, verdict))


def entry_of(seen: Seen, night: Night) -> Entry:
    """The night's entry of the run."""
    advice = {"likely_cause": seen.advice.cause, "next_step": seen.advice.step.line}
    return Entry(Job(night.candidate), outcome_of(night), conclude(night.verdict).reason, night, **advice)


def test_the_terminals_first_line(seen: Seen) -> None:
    verdict = read_night(seen.bundle.path, warm=False).verdict
    lines = closing_words(seen.bundle, verdict).split("\n")
    blank = lines.index("", 1)
    assert lines[1:blank] == [seen.line, *seen.advice.lines] and len(seen.advice.lines) <= 2
    assert lines[blank + 1].removeprefix("Outcome: ").partition(" (")[0] == seen.word
    assert (exit_status(seen.bundle, verdict) == 0) is (seen.word in ("PASS", "REHEARSAL"))


def ungrouped(text: str) -> str:
    """Pages set thin spaces between groups of three digits; a terminal and a mail do not."""
    return text.replace("\N{NARROW NO-BREAK SPACE}", "")


def test_the_mail_and_the_nights_page(seen: Seen) -> None:
    night = read_night(seen.bundle.path, warm=False)
    entry = entry_of(seen, night)
    lines = summary([entry], "today", "nightly/1").split("\n")
    assert lines[0].startswith(f"{seen.word}: 1 run on 1 candidate (1 {seen.word})")
    at = next(n for n, line in enumerate(lines) if line.startswith("["))
    assert lines[at].endswith(f" {night.candidate}: {seen.word}")
    assert lines[at + 1].strip() == seen.reason
    told = [line.strip() for line in lines[at + 2 :]]
    if seen.word != "PASS":
        assert told[: len(seen.advice.lines)] == list(seen.advice.lines)
    versions = {"daq-bench": "1"}
    made = document([entry], [entry.job], "finished", "1", ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"), versions)
    paper = nightly.paper_of(made)
    assert (paper.badge.word, paper.summary.rows[0][1].split(" ", 1)[1]) == (seen.word, seen.word)
    why = ungrouped(paper.summary.rows[0][-1]).split("\n")
    assert seen.reason in why[0] and why[1:] == (list(seen.advice.lines) if seen.word != "PASS" else [])
    text = over("n", made.runs, made.headline, made.exit_status, Path("nightly/1")).text
    assert set(seen.advice.lines) <= set(text.split("\n")) or STATUS[entry.worst] == 0


def test_page_one_begins_with_it(seen: Seen) -> None:
    """The stamp, the title, the head of every page, and the first sentence beside the stamp."""
    bundle = load_for(seen.bundle.path)
    page, html = document_of(bundle), to_html(bundle)
    assert f": {seen.word} (" in page.title and f"<title>{page.title}</title>" in unescape(html)
    assert page.running_right.split(" ", 1)[1] == seen.word
    stamp = re.search(r'class="word">.*?</span><br>(.*?)</p>.*?class="meaning">(.*?)</p>', html, re.DOTALL)
    assert stamp and stamp[1] == seen.word
    box = re.search(r'<section class="next".*?</section>', html, re.DOTALL)
    assert box
    told = ungrouped(unescape(re.sub("<.*?>", "", box[0])))
    cause = re.search(r"Likely cause: (.*)", told)
    assert (cause[1] if cause else "") == seen.advice.cause
    step = seen.advice.step
    assert f"What to do next: {' '.join((step.text, ', '.join(step.code))).strip()}" in told
    sentence = ungrouped(unescape(re.sub("<.*?>", "", stamp[2])))
    assert sentence[1:].rstrip(".") == seen.reason[1:].rstrip(".")
    assert sentence[0].lower() == seen.reason[0].lower()


def test_the_row_of_the_site(seen: Seen, tmp_path: Path) -> None:
    site.build([seen.bundle.path.parent], tmp_path / "nights", tmp_path / "site")
    html = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    row = re.search(
        r'<tr data-candidate=.*?data-word="(.*?)".*?class="word .*?">. (.*?)</span>(.*?)</tr>', html, re.DOTALL
    )
    if not row:  # on another drive: the door keeps it out, and the site gives it no word
        assert seen.word == "INADMISSIBLE" and f"<bdi>{seen.bundle.id}</bdi>" in html.split("Not counted")[1]
        return
    assert (row[1], row[2]) == (seen.word, seen.word)
    assert row[3].count("unsigned") == 1, "beside the outcome, and not in the reason again"
    if seen.word != "PASS":
        told = ungrouped(unescape(re.sub("<.*?>", "", row[3])))
        assert seen.reason in told and "".join(seen.advice.lines) in told


def test_the_column_of_a_comparison_and_the_stamp_of_a_trend(seen: Seen) -> None:
    source, night = read_source(seen.bundle.path), read_night(seen.bundle.path)
    assert source.word == seen.word
    if seen.word not in ("PASS", "FAIL"):  # which count
        assert source.reason == seen.reason
    if night.state == "finished":
        paper = paper_of(trend_of(history_of([night], [], night.candidate)))
        assert (paper.badge.word, paper.meaning) == (seen.word, f"The newest run, {night.id}, ended {seen.word}.")


def test_the_cause_and_the_step_are_those_of_what_befell_the_run(seen: Seen) -> None:
    """A cause is named where the telemetry shows one, and nowhere else; the step fits the outcome."""
    cause, step = seen.advice.cause, seen.advice.step.line
    assert CAUSES.get(seen.name, "") in cause
    if seen.name not in CAUSES and seen.word not in ("FAIL", "ERROR"):
        assert cause == ""
    assert step.startswith(INVALID.get(seen.name) or STEPS[seen.word]), step
    assert ("its storage failed" in step) is (seen.name == PULLED)


def test_programs_read_the_same(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    judge(argparse.Namespace(run=seen.bundle.path, json=True))
    told = json.loads(capsys.readouterr().out)
    assert told["conclusion"] == seen.line and told["next_step"] == seen.advice.step.line
    assert told["likely_cause"] == (seen.advice.cause or None)


def test_the_dashboards_tile(seen: Seen) -> None:
    """It shows the field `word`; `outcome` stays that of verdict.json."""
    run, overall = run_point(seen.bundle), verdict_points(seen.bundle)[0]
    assert run
    stored = seen.bundle.read("verdict.json")
    assert stored
    for point in (run, overall):
        line = point.to_line_protocol()
        assert f'word="{seen.word}"' in line and f'outcome="{stored["outcome"]}"' in line


@pytest.mark.parametrize(
    ("board", "title", "word"),
    [(FLEET, "Newest run of each candidate", "last_result"), (RUN_LIVE, "Why, and what to do next", "result")],
)
def test_the_dashboards_row(seen: Seen, influx: LocalInflux, board: Dashboard, title: str, word: str) -> None:
    """What InfluxDB answers to the panel, once the run was delivered; delivered twice, it is there once. `word`: the column of its outcome,
    of a run of any age, beside which the panel asks for cause and next step."""
    url, run = influx.running_url(), seen.bundle.run
    assert url and run.finished
    database = f"ten_seconds_{list(RUNS).index(seen.name)}"
    create_database(url, database)
    panel = next(one for one in board.panels() if one.title == title)
    end_ms = int(run.finished.timestamp() * 1000)
    choices: dict[str, Choice] = {"host": run.candidate.name, "run": seen.bundle.id, "scenario": Every.VALUE}
    (asked,) = (text for one in panel.targets if f'"{word}", "likely_cause"' in (text := one.query.render()))
    query = interpolated(asked, choices, Range(end_ms - 60_000, end_ms + 60_000))
    for _ in range(2):
        assert publish(seen.bundle.path, Influx(url, database)) is None
        ((columns, (row,)),) = Server(url, database).tables(query)
        shown = dict(zip(columns, row, strict=True))
        assert (shown["time"], shown[word]) == (end_ms, seen.word)
        assert (shown["likely_cause"], shown["next_step"]) == (seen.advice.cause, seen.advice.step.line)


def test_nobody_is_told_that_nothing_was_missed_where_something_was_not_measured_or_is_undecided(seen: Seen) -> None:
    night = read_night(seen.bundle.path, warm=False)
    entry = Entry(Job(night.candidate), outcome_of(night), conclude(night.verdict).reason, night)
    told = [
        closing_words(seen.bundle, night.verdict),
        summary([entry], "today", "nightly/1"),
        to_html(load_for(night.path)),
    ]
    open_ = [one for one in night.rows if one.severity == "mandatory" and state(one) in ("undecided", "not measured")]
    for text in told:
        assert not re.search(r"(missed|misses) nothing|nothing (mandatory )?(was |is )?missed", text, re.IGNORECASE)
        assert not open_ or "Every mandatory requirement is met" not in text
