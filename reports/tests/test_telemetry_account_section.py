"""The report's account of the telemetry: numbers, the name of every difference, outages, and no section where there is no account."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from section_parts import printed_words

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.bench_report.document.section import Lacking, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.qualification.render import to_html
from daq_bench.bench_report.reading.load import load
from daq_bench.bench_report.sections.telemetry_account import telemetry_account_section
from daq_bench.bench_report.tables.hardware import hardware_parts

Maker = Callable[..., Path]
UNNAMED = "Telemetry of smart, bundle to InfluxDB: +3 points that nothing explains (InfluxDB holds 7 points)"


def difference(name: str, points: int, reason: str) -> dict[str, Any]:
    return {"step": "bundle to InfluxDB", "name": name, "points": points, "reason": reason}


def document(reached: bool = True) -> dict[str, Any]:
    """An account with an outage, missed samples, points that wait, and some without an explanation."""
    cpu = {
        "collector": "cpu",
        "expected": None,
        "collected": 12000,
        "stored": 12000,
        "present": 11990 if reached else None,
    }
    smart = {"collector": "smart", "expected": None, "collected": None, "stored": 10, "present": 7 if reached else None}
    collectors = [
        {
            "name": "cpu",
            "status": "ok",
            "expected_samples": 6000,
            "collected_samples": 6000,
            "missed_samples": 0,
            "points": 12000,
            "reason": None,
        },
        {
            "name": "smart",
            "status": "failing",
            "expected_samples": 12,
            "collected_samples": 10,
            "missed_samples": 2,
            "points": 10,
            "reason": "smartctl: timeout; " + "x" * 300,
        },
    ]
    waiting = "InfluxDB was not counted (refused): the bundle holds 12010 points, of which 10 wait for replay"
    held = "InfluxDB holds 11997 of the bundle's 12010 points (10 undelivered, 3 unnamed)"
    made = {
        "schema_version": 1,
        "state": "finished",
        "clock_steps": [],
        "collectors": collectors,
        "limits": [],
        "influxdb": {
            "counted_utc": "2026-01-31T13:00:00Z",
            "reached": reached,
            "reason": None if reached else "refused",
            "retention_s": None,
            "waiting": 10,
        },
        "outages": [{"from_utc": "2026-01-31T12:30:00Z", "to_utc": None, "error": "HTTP 503"}],
        "measurements": {
            "cpu": {**cpu, "differences": [difference("undelivered", 10, "wait for replay")] if reached else []},
            "smart": {**smart, "differences": [difference("unnamed", 3, "InfluxDB holds 7 points")] if reached else []},
        },
        "whole": {
            "collector": None,
            "expected": None,
            "collected": 12010,
            "stored": 12010,
            "present": 11997 if reached else None,
            "differences": [],
        },
        "sentence": held if reached else waiting,
        "invalid": [UNNAMED] if reached else [],
    }
    check_document(made, "telemetry-account", "telemetry_account.json")
    return made


def section_of(root: Path) -> Section | None:
    return telemetry_account_section(load(root))


def written(root: Path, account: dict[str, Any]) -> Path:
    (root / "results" / "telemetry_account.json").write_text(json.dumps(account), encoding="utf-8")
    return root


def tables(section: Section | None) -> dict[str, Table]:
    assert section is not None
    return {part.name: part for part in section.parts if isinstance(part, Table)}


def test_a_bundle_from_before_the_account_has_no_section(bundle_with: Maker) -> None:
    root = bundle_with()
    (root / "results" / "telemetry_account.json").unlink()
    assert section_of(root) is None


def test_every_difference_stands_with_its_name(bundle_with: Maker) -> None:
    section = section_of(written(bundle_with(), document()))
    found = tables(section)
    assert [row[0] for row in found["telemetry-account"].rows] == ["cpu", "smart", "all"]
    assert found["telemetry-account"].rows[1][1:] == ("10 of 12", "\u2013", "10", "7")
    assert [(row[0], row[3]) for row in found["telemetry-differences"].rows] == [
        ("cpu", "undelivered"),
        ("smart", "unnamed"),
    ]
    (missed,) = found["telemetry-missed"].rows
    assert missed[:2] == ("smart", "2")
    assert len(missed[2]) <= 300
    assert found["telemetry-outages"].rows == (("2026-01-31T12:30:00Z", "until the end", "HTTP 503"),)
    assert section is not None
    assert [part.text for part in section.parts if isinstance(part, Lacking)] == [UNNAMED]


def test_an_influxdb_that_was_not_reached_is_said_to_be(bundle_with: Maker) -> None:
    section = section_of(written(bundle_with(), document(reached=False)))
    assert section is not None
    assert "of which 10 wait for replay" in str(section.parts[0])
    found = tables(section)
    assert found["telemetry-account"].rows[0][-1] == "\u2013"
    assert "telemetry-differences" not in found


def test_the_account_is_in_the_report(bundle_with: Maker) -> None:
    root = written(bundle_with(), document())
    text = printed_words(to_html(load(root)))
    assert "Telemetry account" in text
    assert "InfluxDB holds 11 997 of the bundle" in text


def test_what_nobody_looked_at_is_said_once_and_never_lost(bundle_with: Maker) -> None:
    account = document()
    account["collectors"][0] |= {"reason": "no counters"}
    root = written(bundle_with(), account)
    reasons = [
        "cpu: no counters",
        "cpu: something else",
        f"smart: {account['collectors'][1]['reason']}",
        "the telemetry has no edac",
    ]
    hardware = {
        "schema_version": 1, "times_from": "the begin of the load", "summary": {}, "events": [], "events_left_out": 0, "sentences": [],
        "reasons": {f"hardware.metric_{number}": reason for number, reason in enumerate(reasons)},
    }  # fmt: skip
    (root / "results" / "hardware_events.json").write_text(json.dumps(hardware), encoding="utf-8")
    *_, told = map(str, hardware_parts(load(root)))
    assert told.startswith("Not monitored: cpu (why: ")
    assert "no counters" not in told, "the table of samples not taken has it"
    assert all(reason in told for reason in reasons[1:]), "another reason, or one that the table cuts short, stays"
