"""The documents of the samples. Each is what its command makes of such runs, with the mark on every page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from daq_bench.bench_dashboards.preview import write_preview
from daq_bench.bench_model.documents.nights import Job, NightDocument, NightRun
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.nights.night import read_night, read_run
from daq_bench.bench_model.nights.outcome import outcome_of
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_model.verdict.advice import advice_of
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_report import nightly, site
from daq_bench.bench_report.comparison import analysis as comparison
from daq_bench.bench_report.comparison.document import paper_of as comparison_paper
from daq_bench.bench_report.lot import analysis as lot
from daq_bench.bench_report.lot.document import paper_of as lot_paper
from daq_bench.bench_report.output.paper import Paper, to_html, write
from daq_bench.bench_report.output.publishing import files_of, replace_all
from daq_bench.bench_report.qualification import first_page
from daq_bench.bench_report.qualification.render import NAMES, TEMPLATE, document_of
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.trend import command as trend
from daq_bench.samples.servers import (
    ALPHA,
    BETA,
    DELTA,
    GAMMA,
    MARK,
    OPEN,
    PRICES,
    REHEARSED,
    Laboratory,
    Order,
    serials,
)

COMMAND = "make samples"
EACH, NIGHTS, DRIVES, LOT = 3, 8, 8, 40  # runs of a candidate, nights of alpha, drives that were tested, and of the lot
MOMENT = datetime(2026, 11, 1, 6, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Sample:
    """One document. `shown`: the file whose first page is pictured; `of`: what it is made of."""

    name: str
    title: str
    of: str
    shown: Path


def orders() -> list[Order]:
    of_each = [Order(server, number) for number in range(1, EACH + 1) for server in (ALPHA, BETA, GAMMA, DELTA)]
    nights = [Order(ALPHA, number) for number in range(EACH + 1, NIGHTS + 1)]
    drives = [Order(BETA, number, serial) for number, serial in enumerate(serials(DRIVES), EACH + 1)]
    return [*of_each, *nights, *drives, Order(OPEN, 1), Order(REHEARSED, 1)]


def make(laboratory: Laboratory, out: Path) -> Iterator[Sample]:
    """Makes everything in `out`; its readers trust the laboratory's key."""
    made = laboratory.runs(orders())
    os.environ["ALLOWED_SIGNERS"] = str(laboratory.signers)  # for the door, which is a program of its own
    for name, server, title in (
        ("qualification-pass", ALPHA, "Qualification: PASS"),
        ("qualification-fail", DELTA, "Qualification: FAIL"),
        ("qualification-undecided", OPEN, "Qualification: undecided"),
        ("qualification-rehearsal", REHEARSED, "Qualification: REHEARSAL FAILED"),
    ):
        yield Sample(name, title, "one run of snb-100s", _qualification(made[Order(server, 1)], out / name))
    compared = [
        root for order, root in made.items() if not order.drive and order.number <= EACH and order.server in PRICES
    ]
    yield Sample(
        "comparison", "Comparison", "four candidates, three runs of each", _comparison(compared, laboratory, out)
    )
    tested = [root for order, root in made.items() if order.drive]
    yield Sample("lot", "Lot", f"{DRIVES} of {LOT} drives of one model", _lot(tested, out))
    own = [root for order, root in made.items() if order.server == ALPHA]
    yield Sample("trend", "Trend", f"{NIGHTS} nights of one candidate", _trend(own, out))
    last = [root for order, root in made.items() if not order.drive and order.number == EACH]
    yield Sample(
        "nightly", "Night", "one night of five candidates", _night([*last, made[Order(OPEN, 1)]], laboratory, out)
    )
    every = [*compared, made[Order(OPEN, 1)]]
    yield Sample(
        "site",
        "Site",
        "the index of these runs and of the night (a picture: its links lead to bundles)",
        _site(every, laboratory),
    )
    yield Sample("dashboards", "Dashboards", "the layout of the Grafana dashboards; no run", _dashboards(out))


def _qualification(root: Path, folder: Path) -> Path:
    """As `daq-bench report`, of a run that is marked as simulated on each page."""
    bundle = load(root)
    bundle = replace(bundle, run=structs.replace(bundle.run, simulated=True))
    folder.mkdir(parents=True)
    replace_all({
        folder / name: content
        for name, content in files_of(document_of(bundle), TEMPLATE, first_page.content(bundle), NAMES).items()
    })  # fmt: skip
    return folder / "report.pdf"


def _marked(paper: Paper) -> Paper:
    return replace(
        paper, mark=MARK, running=f"{MARK}: {paper.running}", seal=", ".join(filter(None, (MARK, paper.seal)))
    )


def _written(paper: Paper, document: object, out: Path, stem: str) -> Path:
    write(_marked(paper), out / stem, stem, json.dumps(document, indent=1) + "\n")
    return out / stem / f"{stem}.pdf"


def _comparison(roots: Sequence[Path], laboratory: Laboratory, out: Path) -> Path:
    prices, weights = laboratory.folder / "prices.yml", laboratory.folder / "weights.yml"
    lines = [f"- {{contender: {MARK}-{one.name}, amount: {amount}, source: made up}}" for one, amount in PRICES.items()]
    prices.write_text("\n".join(['currency: EUR\ndate: "2026-11-01"\nprices:', *lines, ""]), encoding="utf-8")
    weights.write_text("weights: {SNB-07: 3, cost: 2}\n", encoding="utf-8")
    found, sources = comparison.compare(comparison.Asked(tuple(roots), prices, weights))
    return _written(comparison_paper(found, COMMAND, sources[-1].moment), as_document(found), out, "comparison")


def _lot(roots: Sequence[Path], out: Path) -> Path:
    found, told = lot.lot(lot.Asked(tuple(roots), lot_size=LOT))
    return _written(lot_paper(found, COMMAND, max(one.moment for one in told)), as_document(found), out, "lot")


def _trend(roots: Sequence[Path], out: Path) -> Path:
    nights, broken = read_all(roots)
    found = trend_of(history_of(nights, broken, nights[0].candidate, None))
    return _written(trend.paper_of(found), trend.document(found), out, "trend")


def _night(roots: Sequence[Path], laboratory: Laboratory, out: Path) -> Path:
    """The page of a night in which these were the runs."""
    runs = [_of_night(root) for root in roots]
    stamp = f"{MOMENT:%Y-%m-%dT%H:%M:%SZ}"
    found = NightDocument(
        schema_version=1, nightly=f"{MARK}-night", state="finished", started_utc=stamp, finished_utc=stamp, outcome="FAIL",
        exit_status=1, headline=f"{MARK}: {len(runs)} runs", versions={}, plan=[run.job for run in runs], runs=runs, deleted=[],
    )  # fmt: skip
    folder = laboratory.folder / "nightly" / found.nightly
    folder.mkdir(parents=True)
    (folder / nightly.SOURCE).write_text(json.dumps(as_document(found), indent=1), encoding="utf-8")
    nightly.render(folder)  # for the site
    page = out / nightly.NAME
    page.write_text(to_html(_marked(nightly.paper_of(nightly.confirmed(found)))), encoding="utf-8")
    return page


def _of_night(root: Path) -> NightRun:
    night = read_night(root, warm=False)
    word, advice = outcome_of(night), advice_of(root, read_run(root), night.verdict)
    return NightRun(
        job=Job(night.candidate), target="", scenario=night.scenario, outcome=word, worst=word, reason=conclude(night.verdict).reason,
        run_id=night.id, run=str(root), verdict=night.outcome, declared_rehearsal=night.rehearsal,
        seconds=8000.0, baseline=None, comparisons=[],
        likely_cause=advice.cause, next_step=advice.step.line,
    )  # fmt: skip


def _site(roots: Sequence[Path], laboratory: Laboratory) -> Path:
    site.build(roots, laboratory.folder / "nightly", laboratory.folder / "site")
    return laboratory.folder / "site" / "index.html"


def _dashboards(out: Path) -> Path:
    return write_preview(out / "dashboards.html")
