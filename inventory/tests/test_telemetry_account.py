"""The account of a run's telemetry: every difference between its steps gets its name, and what has none invalidates the evidence."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from daq_bench.bench_model.bundle.spool_content import Content, read_content
from daq_bench.bench_model.bundle.telemetry_files import BMC, OWN
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.bench_model.documents.telemetry import InfluxCounts, TelemetryAccount
from daq_bench.bench_model.evidence.telemetry_account import account, of_counts, workload_lines
from daq_bench.bench_model.profiles.yaml_source import check_document

RUN = "20260131T120000Z-here-snb"
T0_NS = 1_769_860_800_000_000_000  # 2026-01-31T12:00:00Z
COLLECTORS = {"cpu": "cpu", "smart": "smart", "bench_event": "workload"}


def line(measurement: str, number: int, tags: str = "", fields: str = "x=1") -> str:
    return f"{measurement},host=here,run={RUN}{tags} {fields} {T0_NS + number * 1_000_000_000}\n"


def content_of(tmp_path: Path, lines: list[str], delivered: int | None = None) -> Content:
    """The content of a spool of which the first `delivered` lines are delivered (None: all)."""
    spool = tmp_path / "points.lp"
    spool.write_text("".join(lines), encoding="utf-8")
    return read_content(spool, sum(len(one.encode()) for one in lines[:delivered]))


def summary(collected: int, **changes: Any) -> dict[str, Any]:
    """An agent's account in which everything went well."""
    points = {"collected": collected, "spooled": collected, "thinned": 0, "delivered": collected, "undelivered": 0}
    cpu = {
        "name": "cpu", "status": "ok", "detail": "", "period_s": 1.0, "expected_samples": collected, "missed_samples": 0,
        "collected_samples": collected, "points": collected, "longest_gap_s": 1.0, "duration_s_max": 0.01,
    }  # fmt: skip
    return {
        "state": "finished", "points": points, "collectors": [cpu], "influx": {"outages": []}, "spool": {"last_error": None},
        "workload": None, **changes,
    }  # fmt: skip


def counts(points: dict[str, int] | None, **changes: Any) -> InfluxCounts:
    told = {
        "schema_version": 1, "stopped_utc": "2026-01-31T13:00:00Z", "workload_bytes": 0, "delivered_bytes": {}, "rejected": {},
        "retention_s": None, "counted_utc": "2026-01-31T13:00:01Z", "points": points, "reason": None, **changes,
    }  # fmt: skip
    return read(told, InfluxCounts, "influx-counts.json")


def made(*arguments: Any) -> dict[str, Any]:
    """The account, which keeps to its schema whatever it says."""
    document = as_document(account(*arguments))
    check_document(document, "telemetry-account", "telemetry_account.json")
    return document


def names(document: dict[str, Any], measurement: str = "cpu") -> dict[str, int]:
    row = document["whole"] if measurement == "whole" else document["measurements"][measurement]
    return {one["name"]: one["points"] for one in row["differences"]}


def test_what_is_everywhere_needs_no_name(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)])
    document = made(
        summary(10, measurements={"cpu": {"collected": 10, "spooled": 10, "thinned": 0}}),
        content,
        counts({"cpu": 10}),
        COLLECTORS,
    )
    row = document["measurements"]["cpu"]
    assert (row["collected"], row["stored"], row["present"], row["differences"]) == (10, 10, 10, [])
    assert document["sentence"] == "InfluxDB holds 10 of the bundle's 10 points"
    assert document["invalid"] == document["limits"] == []


def test_an_absent_influxdb_makes_no_evidence_invalid(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)], delivered=4)
    document = made(summary(10), content, counts(None, reason="http://127.0.0.1:8086 does not answer"), COLLECTORS)
    assert document["invalid"] == []
    assert document["influxdb"]["reached"] is False
    assert document["measurements"]["cpu"]["present"] is None
    assert document["sentence"].endswith("the bundle holds 10 points, of which 6 wait for replay")


def test_undelivered_points_are_named_with_their_outage(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)], delivered=4)
    outage = {"from_utc": "2026-01-31T12:00:04Z", "to_utc": None, "error": "HTTP 503"}
    document = made(summary(10, influx={"outages": [outage]}), content, counts({"cpu": 4}), COLLECTORS)
    (difference,) = document["measurements"]["cpu"]["differences"]
    assert (difference["name"], difference["points"]) == ("undelivered", 6)
    assert "2026-01-31T12:00:04Z" in difference["reason"]
    assert "HTTP 503" in difference["reason"]
    assert document["outages"] == [outage]
    assert document["invalid"] == []
    # A batch that was stored although its answer was lost is no difference.
    assert names(made(summary(10), content, counts({"cpu": 10}), COLLECTORS)) == {}


def test_points_that_nothing_explains_invalidate_the_evidence(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)])
    for present, difference in ((7, 3), (12, -2)):
        document = made(summary(10), content, counts({"cpu": present}), COLLECTORS)
        assert names(document) == {"unnamed": difference}
        assert "Telemetry of cpu, bundle to InfluxDB" in document["invalid"][0]


def test_a_measurement_that_only_influxdb_knows_is_not_overlooked(tmp_path: Path) -> None:
    document = made(summary(1), content_of(tmp_path, [line("cpu", 0)]), counts({"cpu": 1, "smart": 2}), COLLECTORS)
    assert names(document, "smart") == {"unnamed": -2}
    assert len(document["invalid"]) == 1


def test_refused_lines_carry_the_servers_reason(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)])
    refused = {"cpu": {"HTTP 400: field type conflict": 2}}
    document = made(summary(10), content, counts({"cpu": 8}, rejected=refused), COLLECTORS)
    assert names(document) == {"rejected": 2}
    assert document["measurements"]["cpu"]["differences"][0]["reason"] == "HTTP 400: field type conflict"
    assert names(made(summary(10), content, counts({"cpu": 7}, rejected=refused), COLLECTORS)) == {
        "rejected": 2,
        "unnamed": 1,
    }


def test_points_of_equal_series_and_time_are_one_in_influxdb(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", 1), line("cpu", 1, fields="y=2"), line("cpu", 1, ",core=0")])
    document = made(summary(3), content, counts({"cpu": 2}), COLLECTORS)
    assert names(document) == {"overwritten": 1}
    assert document["invalid"] == []


def test_points_older_than_the_database_keeps_are_named(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)])
    kept = counts({"cpu": 6}, retention_s=3600, counted_utc="2026-01-31T13:00:04Z")
    document = made(summary(10), content, kept, COLLECTORS)
    assert names(document) == {"expired": 4}
    assert names(made(summary(10), content, structs.replace(kept, points={"cpu": 5}), COLLECTORS)) == {
        "expired": 4,
        "unnamed": 1,
    }


def test_thinned_and_lost_points_are_named_and_a_loss_forbids_a_pass(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(6)])
    spool = {
        "last_error": "No space left on device",
        "thinnings": [{"reason": "the spool's disk is full", "points": 3}],
    }
    by_measurement = {"cpu": {"collected": 10, "spooled": 6, "thinned": 3}}
    points = {"collected": 10, "spooled": 6, "thinned": 3}
    document = made(
        summary(10, spool=spool, measurements=by_measurement, points=points), content, counts({"cpu": 6}), COLLECTORS
    )
    assert names(document) == {"thinned": 3, "unspooled": 1}
    assert document["invalid"] == []
    assert "No space left on device" in document["limits"][0]
    # An older agent counts all measurements together only.
    old = made(summary(10, spool=spool, points=points), content, counts({"cpu": 6}), COLLECTORS)
    assert names(old, "whole") == {"thinned": 3, "unspooled": 1}


def test_a_spool_that_lost_lines_since_it_was_written_is_found(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(9)])
    for more in ({}, {"measurements": {"cpu": {"collected": 10, "spooled": 10, "thinned": 0}}}):
        document = made(summary(10, **more), content, counts({"cpu": 9}), COLLECTORS)
        assert any(
            "the agent wrote 10 points into its spool, in which there are 9" in text for text in document["invalid"]
        )


def test_a_killed_agents_account_may_lag_behind_its_spool(tmp_path: Path) -> None:
    content = content_of(tmp_path, [line("cpu", n) for n in range(10)])
    document = made(summary(7, state="running"), content, counts({"cpu": 10}), COLLECTORS)
    assert names(document, "whole") == {"agent killed": -3}
    assert document["invalid"] == []
    assert made(summary(12, state="running"), content, counts({"cpu": 10}), COLLECTORS)["invalid"]


def test_missed_samples_have_their_collectors_reason(tmp_path: Path) -> None:
    base = summary(1)["collectors"][0]
    slow = {**base, "missed_samples": 4, "duration_s_max": 4.2}
    failing = {**slow, "name": "ipmi", "detail": "ipmitool: timeout", "status": "failing"}
    absent = {**base, "name": "smart", "status": "unsupported", "detail": "no smartctl"}
    document = made(
        summary(1, collectors=[base, slow, failing, absent]),
        content_of(tmp_path, [line("cpu", 0)]),
        counts({"cpu": 1}),
        COLLECTORS,
    )
    reasons = [one["reason"] for one in document["collectors"]]
    assert reasons[0] is None
    assert "a sample took up to 4.2 s" in reasons[1]
    assert reasons[2].startswith("ipmitool: timeout; ")
    assert reasons[3] == "no smartctl"


@pytest.mark.parametrize(
    ("seen", "expected", "invalid"), [(4, {}, 0), (3, {"late": 1}, 0), (2, {"late": 1, "unnamed": 1}, 1)]
)
def test_records_written_for_the_agent_are_expected_one_by_one(
    tmp_path: Path, seen: int, expected: dict[str, int], invalid: int
) -> None:
    """Those of the moment in which the agent ended may be missed; the verdict's event, later still, is not counted at all."""
    (tmp_path / "telemetry").mkdir()
    before = (
        "# a comment\n"
        + "".join(line("bench_event", n, fields='text="a b, c"') for n in range(3))
        + line("bench_event", 3600)
    )
    (tmp_path / "telemetry" / "workload.lp").write_text(before + line("bench_event", 3601), encoding="utf-8")
    counted = counts({"cpu": 1}, workload_bytes=len(before))
    records = workload_lines(tmp_path, counted)
    assert records == (Counter({"bench_event": 4}), 1)
    workload = {"lines_seen": seen, "lines_rejected": 0, "reasons": []}
    document = made(summary(1, workload=workload), content_of(tmp_path, [line("cpu", 0)]), counted, COLLECTORS, records)
    assert names(document, "whole") == expected
    assert len(document["invalid"]) == invalid


def test_refused_records_of_the_workload_are_named(tmp_path: Path) -> None:
    workload = {"lines_seen": 2, "lines_rejected": 2, "reasons": ["field 'x' is not declared"]}
    document = made(
        summary(1, workload=workload),
        content_of(tmp_path, [line("cpu", 0)]),
        counts({"cpu": 1}),
        COLLECTORS,
        (Counter(daqwriter=2), 0),
    )
    assert names(document, "whole") == {"refused": 2}
    assert document["whole"]["differences"][0]["reason"] == "field 'x' is not declared"


def test_a_step_of_the_clock_invalidates_the_evidence(tmp_path: Path) -> None:
    steps = [{"utc": "2026-01-31T12:00:05Z", "step_s": -3600.0}, {"utc": "2026-01-31T12:00:07Z", "step_s": 0.2}]
    document = made(
        summary(1, clock={"steps": steps}), content_of(tmp_path, [line("cpu", 0)]), counts({"cpu": 1}), COLLECTORS
    )
    assert len(document["invalid"]) == 1
    assert "-3600.0 s" in document["invalid"][0]


def test_without_an_agents_account_there_is_none(tmp_path: Path) -> None:
    assert of_counts(tmp_path, counts(None)) is None


@settings(deadline=None, max_examples=50)  # files on a busy disk
@given(
    st.lists(st.tuples(st.sampled_from(["", ",core=0", r",core=a\ b\,c"]), st.integers(0, 20)), max_size=60),
    st.integers(0, 60),
)
def test_points_are_the_different_times_of_each_series(pairs: list[tuple[str, int]], delivered: int) -> None:
    lines = [line("cpu", number, tags, r'text="a b\" c"') for tags, number in pairs]
    with tempfile.TemporaryDirectory() as folder:
        content = content_of(Path(folder), lines, delivered)
    assert content.lines()["cpu"] == len(lines)
    assert content.points()["cpu"] == len(set(pairs))
    assert content.points_before()["cpu"] == len(set(pairs[:delivered]))
    assert content.points_older_than(T0_NS + 10 * 10**9)["cpu"] == len({pair for pair in pairs if pair[1] < 10})


def test_a_torn_last_line_is_not_counted_and_a_broken_one_is_named(tmp_path: Path) -> None:
    spool = tmp_path / "points.lp"
    spool.write_text(line("cpu", 0) + "cpu,run=x busy", encoding="utf-8")
    assert read_content(spool).lines() == Counter(cpu=1)
    spool.write_text(line("cpu", 0) + "nonsense\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"points.lp:2: not line protocol"):
        read_content(spool)


@settings(deadline=None, max_examples=50)  # files on a busy disk
@given(
    points=st.integers(0, 40),
    delivered=st.integers(0, 40),
    refused=st.integers(0, 40),
    old=st.integers(0, 40),
    present=st.integers(0, 60),
)
def test_differences_always_add_up(points: int, delivered: int, refused: int, old: int, present: int) -> None:
    """Whatever happened: stored minus all that has a name, or has none, is what is present."""
    with tempfile.TemporaryDirectory() as folder:
        content = content_of(Path(folder), [line("cpu", n) for n in range(points)], delivered)
    counted = counts(
        {"cpu": present},
        rejected={"cpu": {"HTTP 400": refused}},
        retention_s=3600,
        counted_utc=f"2026-01-31T13:00:{old:02}Z",
    )
    document = made(summary(points), content, counted, COLLECTORS)
    assert points - sum(names(document).values()) == present
    assert bool(document["invalid"]) == ("unnamed" in names(document))


def test_points_thinned_after_their_delivery_are_a_named_surplus(tmp_path: Path) -> None:
    """InfluxDB has them, the bundle has not; where they stood is a comment, which is no point."""
    spool = tmp_path / "points.lp"
    kept = [line("cpu", n) for n in range(4)]
    spool.write_text(kept[0] + '# thinned {"points": 6}\n' + "".join(kept[1:]), encoding="utf-8")
    content = read_content(spool, spool.stat().st_size)
    counted = {"collected": 10, "spooled": 4, "thinned": 6, "thinned_delivered": 6}
    document = made(summary(10, measurements={"cpu": counted}), content, counts({"cpu": 10}), COLLECTORS)
    assert names(document) == {"thinned": 6, "thinned after delivery": -6}
    assert document["invalid"] == []
    assert document["influxdb"]["waiting"] == 0


def test_the_agent_that_read_the_bmc_is_in_the_account(tmp_path: Path) -> None:
    """Two spools, two accounts, one answer of InfluxDB; what one of them lost has its name."""
    for spool, measurement, collector in ((OWN, "cpu", "cpu"), (BMC, "ipmi_power", "ipmi_lan")):
        (tmp_path / spool).mkdir(parents=True)
        lines = [line(measurement, n) for n in range(5)]
        (tmp_path / spool / "points.lp").write_text("".join(lines), encoding="utf-8")
        one = summary(5, measurements={measurement: {"collected": 5, "spooled": 5, "thinned": 0}})
        one["collectors"][0]["name"] = collector
        (tmp_path / spool / "summary.json").write_text(json.dumps(one), encoding="utf-8")
    delivered = {str(spool): (tmp_path / spool / "points.lp").stat().st_size for spool in (OWN, BMC)}
    everything = of_counts(tmp_path, counts({"cpu": 5, "ipmi_power": 5}, delivered_bytes=delivered))
    assert everything is not None
    assert read(as_document(everything), TelemetryAccount, "telemetry_account.json") == everything
    assert everything.invalid == []
    assert (everything.whole.collected, everything.whole.present) == (10, 10)
    assert [one.name for one in everything.collectors] == ["cpu", "ipmi_lan (bmc)"]
    without = of_counts(tmp_path, counts({"cpu": 5, "ipmi_power": 2}, delivered_bytes={**delivered, str(BMC): 0}))
    assert without is not None
    assert names(as_document(without), "ipmi_power") == {"undelivered": 3}
    lost = of_counts(tmp_path, counts({"cpu": 5, "ipmi_power": 2}, delivered_bytes=delivered))
    assert lost is not None
    assert "Telemetry of ipmi_power" in lost.invalid[0]
