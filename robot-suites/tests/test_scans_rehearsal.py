"""The scenario scans-rehearsal as a user runs it on this machine: every scan, its figures, its verdict, and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from whole_runs import Finished, check_bundle, rehearsed

pytestmark = [pytest.mark.integration, pytest.mark.campaign]

RESULTS = ("block_scan", "thread_scan", "minidaq_scan", "latency_under_load")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    with rehearsed(tmp_path_factory, "scans-rehearsal", "--requirement", "dune-scans") as run:
        yield run


def test_the_run_ends_with_a_verdict_that_is_no_pass(finished: Finished) -> None:
    verdict = finished.verdict()
    assert finished.done.returncode in ((0, 3) if verdict["outcome"] == "INADMISSIBLE" else (1,))
    for words in (
        "thread_scan asks for less than the requirement profile demands: threads is [1, 2, 5, 10]",
        "0.1 of one readout unit",
        "seconds_per_point is 1.2 where at least 30 is demanded",
    ):
        assert any(words in text for text in finished.texts()), words
    judged = {entry["metric"]: entry for entry in verdict["requirements"]}
    for entry in judged.values():
        assert entry["measured"] is not None or entry["reason"].startswith("Not measured: "), entry


@pytest.mark.parametrize("name", RESULTS)
def test_every_scan_left_its_points(finished: Finished, name: str) -> None:
    found = finished.document(f"results/{name}.json")
    points = found["points"] if "points" in found else [p for scan in found["scans"] for p in scan["points"]]
    assert len(points) >= 4
    assert all(point["admissible"] or point["reason"] for point in points)


def test_the_report_has_every_section_and_names_published_figures_as_such(finished: Finished) -> None:
    text = finished.report()
    for words in ("Block-size scan", "Thread scan", "MiniDAQ against request size", "Latency under load"):
        assert words in text, words
    assert "Published, not measured here: Micron X100" in text


def test_the_bundle_gives_the_same_verdict_again(finished: Finished) -> None:
    check_bundle(finished.bundle)
    assert (finished.bundle / "profiles" / "devices" / "published" / "micron-x100.yml").is_file()
