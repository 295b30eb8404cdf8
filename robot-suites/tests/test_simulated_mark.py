"""Wherever a simulated run is shown, it says so, and nobody may rest on it: report, site, trend, comparison, night."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daq_bench.bench_model.evidence.admissibility import SIMULATED
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.outcome import outcome_of
from daq_bench.bench_model.nights.run_history import history_of, read_all
from daq_bench.bench_model.nights.trend import trend_of
from daq_bench.bench_model.verdict.judging import SEALED, standing_of
from daq_bench.bench_report import site
from daq_bench.bench_report.comparison.bundles import read_source
from daq_bench.bench_report.qualification.render import document_of, load_for
from daq_bench.bench_report.trend.command import paper_of
from daq_bench.rig.checking.sealing import seal_evidence
from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.run import simulate
from daq_bench.simulation.sample import finish_sample

GOOD, SLOW = 3, 2  # seeds: one would pass, one would fail


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("simulated")
    outcomes = []
    for seed in (GOOD, SLOW):
        run = simulate(spec_of(seed), folder)
        assert run.bundle
        finish_sample(run.bundle, rendered=False)
        outcomes.append(run.outcome)
    (folder / "latest").unlink()
    assert outcomes == ["PASS", "FAIL"]
    yield folder


def test_its_verdict_is_sealed_and_is_evidence_of_nothing(runs: Path) -> None:
    for bundle in runs.glob("20*"):
        standing = standing_of(bundle)
        assert standing.state == SEALED
        assert standing.verdict
        assert standing.verdict.outcome == "INADMISSIBLE"
        assert standing.verdict.reasons[0] == SIMULATED


def test_every_page_of_its_report_says_so(runs: Path) -> None:
    """The head and the foot of a page are these two texts."""
    for bundle in runs.glob("20*"):
        document = document_of(load_for(bundle))
        assert "SIMULATED" in document.running_right
        assert document.seal.startswith("SIMULATED, ")


def test_a_night_never_takes_it_for_a_good_run(runs: Path) -> None:
    for bundle in runs.glob("20*"):
        night = read_night(bundle, warm=False)
        assert night.simulated
        assert not night.good
        assert outcome_of(night) == "INADMISSIBLE"


def test_a_trend_of_simulated_runs_says_so(runs: Path) -> None:
    nights, broken = read_all([runs])
    paper = paper_of(trend_of(history_of(nights, broken, "simulated")))
    assert paper.running.startswith("SIMULATED")
    assert "SIMULATED" in str(paper.badge)


def test_a_comparison_does_not_count_it_and_gives_the_reason(runs: Path) -> None:
    for bundle in runs.glob("20*"):
        source = read_source(bundle)
        assert not source.counts
        assert SIMULATED in source.reason


def test_a_site_gives_the_reason_beside_each_run(runs: Path, tmp_path: Path) -> None:
    site.build([runs], tmp_path / "none", tmp_path / "site")
    assert (tmp_path / "site" / "index.html").read_text(encoding="utf-8").count("SIMULATED") == len(
        list(runs.glob("20*"))
    )


def test_who_seals_a_forged_bundle_anew_is_no_better_off_unsigned(runs: Path, tmp_path: Path) -> None:
    """The seal shows the change; a new seal over the change is the forger's own, and no trusted key's."""
    run = simulate(spec_of(GOOD), tmp_path)
    assert run.bundle
    finish_sample(run.bundle, rendered=False)
    before = (run.bundle.path / "MANIFEST.sha256").read_bytes()
    file = run.bundle.path / "run.json"
    file.write_text(file.read_text().replace('"simulated": true', '"simulated": false'))
    assert standing_of(run.bundle.path).state != SEALED
    seal_evidence(run.bundle.path)
    assert (run.bundle.path / "MANIFEST.sha256").read_bytes() != before
