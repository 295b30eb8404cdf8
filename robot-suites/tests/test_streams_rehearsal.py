"""The scenario streams-checksum-rehearsal as a user runs it here: comparisons, demand, files, figures, and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from whole_runs import Finished, check_bundle, rehearsed

from daq_bench.bench_model.workloads.streams_checksum.analysis import document as analysis_of

pytestmark = [pytest.mark.integration, pytest.mark.campaign]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    with rehearsed(tmp_path_factory, "streams-checksum-rehearsal") as run:
        yield run


def test_the_verdict_is_no_pass_and_what_does_not_depend_on_speed_is_met(finished: Finished) -> None:
    assert finished.decisions(*(f"SCK-0{number}" for number in range(1, 6))) == ["met"] * 5
    assert any("demand.sustained_s is 10 where at least 600 is demanded" in text for text in finished.texts())


def test_every_comparison_has_its_pairs_and_the_analysis_follows_from_them(finished: Finished) -> None:
    found = finished.document("results/streams_checksum.json")
    assert {len(one["pairs"]) for one in found["comparisons"]} == {6}
    assert {"switched-off", "small-events", "application", "ceiling"} <= {one["kind"] for one in found["comparisons"]}
    assert analysis_of(found) == finished.document("results/streams_checksum_analysis.json")


def test_the_paced_runs_are_in_the_telemetry_too(finished: Finished) -> None:
    lines = (finished.bundle / "telemetry" / "points.lp").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith("daqwriter,command=streams,") and "phase=record" in line for line in lines)


def test_the_report_shows_it_and_the_bundle_is_whole(finished: Finished) -> None:
    text = finished.report()
    for words in ("What handing out an event", "normalised to the original", "What each stream has of the throughput"):
        assert words in text, words
    check_bundle(finished.bundle)
