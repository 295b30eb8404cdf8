"""The findings of the first page: their rule, tried case by case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_report.qualification.findings import MOST, findings
from daq_bench.bench_report.qualification.first_page import content
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.load import load

Maker = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("unsettled")  # the words are tested here


def judged(root: Path, *rows: dict[str, Any], **verdict: Any) -> Bundle:
    """A bundle judged as told: the requirements are those of the factory, changed row by row; the others are left out."""
    document = json.loads((root / "verdict.json").read_text(encoding="utf-8"))
    base = document["requirements"][5]
    document["requirements"] = [
        {**base, "id": f"R-{number}", "reason": "", **row} for number, row in enumerate(rows, 1)
    ]
    document.update(verdict)
    return replace(load(root), verdict=read(document, Verdict, "verdict.json"))


def told(bundle: Bundle) -> list[str]:
    return [f"{one.kind}: {one.text.split(' ')[0]}" for one in findings(bundle)]


def met(percent: float, **more: Any) -> dict[str, Any]:
    return {"decision": "met", "outcome": "PASS", "margin": percent / 100, "margin_percent": percent, **more}


def missed(percent: float | None, **more: Any) -> dict[str, Any]:
    return {"decision": "missed", "outcome": "FAIL", "margin": -1.0, "margin_percent": percent, **more}


def test_missed_before_undecided_before_not_measured_before_the_smallest_margin(bundle_with: Maker) -> None:
    rows = (
        met(80.0), met(3.0), {"decision": "undecided", "outcome": "INADMISSIBLE", "margin_percent": 1.0}, missed(-5.0), missed(-40.0),
        {"decision": None, "measured": None, "margin": None, "margin_percent": None, "reason": "Not measured: no sensor"},
        missed(-90.0, severity="advisory"),
    )  # fmt: skip
    found = told(judged(bundle_with(telemetry=False), *rows, findings=[]))
    assert found[:6] == [
        "Missed: R-5", "Missed: R-4", "Missed, advisory: R-7", "Undecided: R-3", "Not measured: R-6", "Smallest margin: R-2",
    ]  # fmt: skip
    assert found[-1] == "Met: R-1" and "Tuning changed: Another" in found


def test_a_count_that_must_be_exact_comes_first_when_missed_and_is_no_small_margin_when_met(bundle_with: Maker) -> None:
    exact = {"comparison": "equal", "bound": 0, "scaled_bound": 0, "unit": "count"}
    rows = (missed(-90.0), missed(None, **exact, measured=3), met(0.0, **exact, measured=0), met(50.0))
    found = told(judged(bundle_with(telemetry=False), *rows, findings=[]))
    assert found[:3] == ["Missed: R-2", "Missed: R-1", "Smallest margin: R-4"] and not any(
        "R-3" in one for one in found
    )


def test_evidence_that_does_not_count_and_a_broken_bench_go_before_everything(bundle_with: Maker) -> None:
    broken = judged(
        bundle_with(telemetry=False, outcome="ERROR"), missed(-90.0),
        findings=[{"text": "The telemetry has a gap of 40 s", "invalidates": True, "evidence": []}],
    )  # fmt: skip
    assert [one.kind for one in findings(broken)][:3] == ["The bench failed", "Evidence does not count", "Missed"]
    unjudged = findings(load(bundle_with(interrupted=True)))
    assert unjudged[0].kind == "Not judged"


def test_conditions_are_found(bundle_with: Maker) -> None:
    summary = {"dips": 2, "unexplained": 1, "windows_analysed": 1, "lost_bytes": 1e9, "deepest_fraction": 0.5}
    dips = {"schema_version": 1, "rule": "a rule", "windows": [], "summary": summary, "reasons": {}}
    root = bundle_with(drives=2, smart_worse=True, extra={"results/dips.json": dips})
    account = json.loads((root / "telemetry/summary.json").read_text())
    account["collectors"] = [{"name": "cpu", "status": "ok", "period_s": 1.0, "points": 9, "longest_gap_s": 40.0}]
    (root / "telemetry/summary.json").write_text(json.dumps(account))
    (root / "facts/tuning-after.json").unlink()
    found = {one.kind: one.text for one in findings(load(root))}
    assert found["Dip without cause"].startswith("1 dip of the rate")
    assert "media errors 0 before, 3 after" in found["Drive got worse"]
    assert "Tuning not read back" in found and "cpu_governor" in found["Tuning not as asked"]
    assert found["Telemetry gap"].startswith("The collector cpu was silent for 40")
    assert "facts/tuning-after.json" in found["Missing evidence"]


def test_the_first_page_has_three_and_says_how_many_there_are_besides(bundle_with: Maker) -> None:
    shown = content(judged(bundle_with(telemetry=False), met(9.0), met(8.0), met(7.0), met(6.0), met(5.0), findings=[]))
    assert len(shown["remarks"]) == MOST and "met (" in shown["more_findings"]


def hardware(*events: dict[str, Any]) -> dict[str, Any]:
    """results/hardware_events.json with these events."""
    sentences = [
        f"{one['device']}: {one['count']} resets in the kernel's log at {one['first_s']} s ({one['text']})"
        for one in events
    ]
    return {
        "schema_version": 1, "times_from": "the begin of the load", "summary": {"kernel_messages": len(events)},
        "reasons": {"hardware.memory_corrected": "edac: no ECC"}, "events": list(events), "events_left_out": 0,
        "sentences": sentences,
    }  # fmt: skip


def reset(number: int, text: str = "resetting controller") -> dict[str, Any]:
    return {
        "device": f"nvme{number}",
        "kind": "nvme_reset",
        "source": "kernel",
        "count": 3,
        "first_s": 12.4,
        "text": text,
    }


def test_a_fault_of_the_hardware_stands_before_what_it_caused(bundle_with: Maker) -> None:
    root = bundle_with(telemetry=False, extra={"results/hardware_events.json": hardware(reset(1))})
    found = findings(judged(root, missed(-40.0), findings=[]))
    assert [one.kind for one in found[:2]] == ["Hardware fault", "Missed"]
    assert found[0].text.startswith("nvme1: 3 resets in the kernel's log at 12.4 s")


def test_many_faults_are_one_finding_and_their_text_is_only_text(bundle_with: Maker) -> None:
    hostile = '<script>alert(1)</script> \\x1b[2J "' + "A" * 400
    extra = {"results/hardware_events.json": hardware(*(reset(number, hostile) for number in range(50)))}
    bundle = judged(bundle_with(telemetry=False, extra=extra), met(3.0), findings=[])
    (fault,) = [one for one in findings(bundle) if one.kind == "Hardware fault"]
    assert "47 more" in fault.text and len(fault.text) < 700
    page = to_html(bundle)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page and "edac: no ECC" in page


def test_no_fault_is_no_finding(bundle_with: Maker) -> None:
    for extra in ({}, {"results/hardware_events.json": hardware()}):
        bundle = judged(bundle_with(telemetry=False, extra=extra), met(3.0), findings=[])
        assert not [one for one in findings(bundle) if one.kind == "Hardware fault"]
