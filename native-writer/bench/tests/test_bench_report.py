"""Part `report`: the bundles that it makes are ones that reports read, and its criteria say what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench_model.column_file import FILE, difference
from bench_report.summary import load_summary
from rig.sealing import altered_evidence
from writer_bench import report_bundle
from writer_bench.parts import report


def test_a_synthetic_bundle_is_sealed_and_holds_so_many_points(tmp_path: Path) -> None:
    root = report_bundle.make(tmp_path / "bundle", 5000, columns=True)
    assert altered_evidence(root) == [] and difference(root) is None
    found = load_summary(root)
    assert found.points == 5000
    assert set(found.of("cpu", "user_fraction")) == {
        f"{core} synthetic 20260131T120000Z-synthetic-report" for core in range(report_bundle.CORES)
    }
    bare = tmp_path / "bare"
    report.linked(root, bare)
    (bare / FILE).unlink()
    other = load_summary(bare)
    assert {key: one.high for key, one in found.envelopes.items()} == {
        key: one.high for key, one in other.envelopes.items()
    }


def point(size: int, **medians: float) -> dict[str, Any]:
    contenders = {
        name: {"seconds": {"median": seconds}, "max_rss_bytes": {"median": 1e9}} for name, seconds in medians.items()
    }
    return {"key": {"points": size}, "contenders": contenders, "errors": {}}


def scan(exponent: float) -> list[dict[str, Any]]:
    sizes = (10**4, 10**5, 10**6, 10**7)
    return [
        point(size, **{report.COLUMNS: 20 * (size / 1e7) ** exponent, report.REPORT: 6.0, report.SUMMARIES: 30.0})
        for size in sizes
    ]


@pytest.mark.parametrize(("slope", "met"), [(1.0, True), (1.3, False)])
def test_the_exponent_tells_linear_from_steeper(slope: float, met: bool) -> None:
    judged = {one.id: one for one in report.judge(scan(slope))}
    assert judged["report.linear"].value == pytest.approx(slope)
    assert judged["report.linear"].met is met
    assert judged["report.ten"].met and judged["report.smoke"].met and judged["report.memory"].met


def test_a_trial_that_failed_is_no_success() -> None:
    failed = scan(1.0)
    failed[-1]["errors"] = {report.SUMMARIES: "out of memory"}
    judged = {one.id: one for one in report.judge(failed)}
    assert not judged["report.ten"].met and not judged["report.memory"].met
