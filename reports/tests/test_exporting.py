"""The file for Prometheus: every value that it must have, by prometheus_client's own parser; and what must not be in it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from nights_factory import NightPlan, write_night
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_report.__main__ import main
from daq_bench.bench_report.exporting import registry_of

DOCS = REPOSITORY / "docs"

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def values_of(file: Path) -> Values:
    families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def exported(folder: Path, status: int = 0) -> Values:
    assert main(["export-metrics", str(folder / "runs"), "--output", str(folder / "daq.prom")]) == status
    assert [file.name for file in folder.iterdir()] == sorted(["daq.prom", "runs"])
    return values_of(folder / "daq.prom")


def value(found: Values, name: str, **labels: str) -> Any:
    return found.get((f"daq_bench_{name}", tuple(sorted(labels.items()))))


A = {"candidate": "server-a", "scenario": "snb-100s", "target": "nand"}
B = {"candidate": "server-b", "scenario": "snb-100s", "target": "nand"}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A good server after an evening on which it failed; one that lost data; one whose last run was a rehearsal."""
    write_night(tmp_path / "runs", NightPlan(1, lost=1.0))
    write_night(tmp_path / "runs", NightPlan(2, rate=9.9))
    write_night(tmp_path / "runs", NightPlan(2, candidate="server-b", lost=3.0))
    write_night(tmp_path / "runs", NightPlan(2, candidate="server-c", outcome="INADMISSIBLE"))
    return tmp_path


def test_the_newest_run_of_each_stands_there_with_its_values(lab: Path) -> None:
    found = exported(lab)
    assert [value(found, "run_outcome", **A, outcome=word) for word in ("PASS", "FAIL", "ERROR")] == [1, 0, 0]
    assert [value(found, "run_outcome", **B, outcome=word) for word in ("PASS", "FAIL")] == [0, 1]
    rehearsal = {**A, "candidate": "server-c"}
    assert [value(found, "run_outcome", **rehearsal, outcome=word) for word in ("rehearsal", "PASS")] == [1, 0]
    for one in (A, B, rehearsal):
        words = [
            of
            for (name, labels), of in found.items()
            if name == "daq_bench_run_outcome" and set(one.items()) <= set(labels)
        ]
        assert sum(words) == 1, "one outcome is the state"
    assert value(found, "requirement_margin_ratio", **A, requirement="R-01") == pytest.approx((9.9 - 9) / 9)
    assert value(found, "requirement_margin_ratio", **A, requirement="R-03") is None, (
        "a count of 0 has no relative margin"
    )
    assert value(found, "requirements", **B, state="missed") == 1
    assert value(found, "requirements", **A, state="missed") == 0
    assert value(found, "run_started_timestamp_seconds", **A) == NightPlan(2).start.timestamp()
    assert value(found, "run_finished_timestamp_seconds", **A) > value(found, "run_started_timestamp_seconds", **A)
    assert abs(value(found, "exported_timestamp_seconds") - datetime.now(UTC).timestamp()) < 600
    assert value(found, "runs_left_out") == 0


READERS = [["export-metrics", "--output=daq.prom"], ["site", "--output=site"], ["history"]]


@pytest.mark.parametrize("words", READERS)
def test_nothing_that_can_be_read_is_an_error_and_one_good_run_is_none(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A timer that writes an empty page every hour and ends with 0 is never looked at."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert main(words) == 0, "a folder without a bundle is the first day"
    assert (
        capsys.readouterr().out
        == {
            "export-metrics": "daq.prom: no run that counts, so no value of one\n",
            "site": "site/index.html\n",
            "history": "0 runs that others may rest on, 0 bundles or folders left out\n",
        }[words[0]]
    )
    damaged = write_night(tmp_path / "runs", NightPlan(1))
    (damaged / "run.json").write_text('{"schema_version": 1', encoding="utf-8")
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"left out: {damaged.name}: " in said and "run.json" in said
    assert "error: the only bundle or folder cannot be used. `daq-bench check-bundle runs/<run-id>` says what" in said
    write_night(tmp_path / "runs", NightPlan(2))
    assert main(words) == 0
    said = capsys.readouterr()
    assert f"left out: {damaged.name}: " in said.err and "error" not in said.err
    if words[0] == "history":
        assert said.out == "1 run that others may rest on, 1 bundle or folder left out\n"
    if words[0] == "site":
        assert damaged.name in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["compare"],
        ["lot"],
        ["site"],
        ["history"],
        ["trend", "--candidate=server-a"],
        ["export-metrics", "--output=daq.prom"],
        ["render"],
        ["check"],
    ],
)
def test_an_empty_name_is_no_folder_of_runs(
    words: list[str], lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a path it would be the working folder, here one of runs."""
    monkeypatch.chdir(lab / "runs")
    before = sorted((lab / "runs").rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main([*words, ""])
    assert ended.value.code == 2
    assert ": the name is empty. Write " in capsys.readouterr().err
    assert sorted((lab / "runs").rglob("*")) == before


def test_node_exporter_may_read_it_whatever_the_umask_is(lab: Path) -> None:
    """root's umask is 077 where a site is strict, and node_exporter is another user."""
    before = os.umask(0o077)
    try:
        exported(lab)
    finally:
        os.umask(before)
    assert (lab / "daq.prom").stat().st_mode & 0o777 == 0o644


def test_no_label_grows_with_the_runs(lab: Path) -> None:
    before = set(exported(lab))
    for number in range(3, 8):
        write_night(lab / "runs", NightPlan(number, rate=9.9))
    assert set(exported(lab)) == before
    assert not any(NightPlan(7).run_id in str(key) for key in before)


def test_a_clock_that_was_ahead_and_a_broken_bundle_are_left_out_and_counted(lab: Path) -> None:
    write_night(lab / "runs", NightPlan(9, lost=1.0, started=datetime.now(UTC) + timedelta(days=3)))
    (lab / "runs" / "20260101T000000Z-server-a-torn").mkdir()
    found = exported(lab)
    assert value(found, "run_outcome", **A, outcome="PASS") == 1
    assert value(found, "runs_left_out") == 2


def test_a_run_that_goes_on_is_no_damage_and_keeps_the_last_outcome(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An alert about bundles that are left out would come each night."""
    (write_night(lab / "runs", NightPlan(3, lost=1.0)) / "verdict.json").unlink()
    (lab / "runs" / "20260101T000000Z-server-a-torn").mkdir()
    found = exported(lab)
    assert (value(found, "runs_unfinished"), value(found, "runs_left_out")) == (1, 1)
    assert value(found, "run_outcome", **A, outcome="PASS") == 1
    assert value(found, "run_started_timestamp_seconds", **A) == NightPlan(2).start.timestamp()
    assert "verdict.json is missing: no finished run" in capsys.readouterr().err


def test_the_first_run_of_all_that_goes_on_is_no_error(tmp_path: Path) -> None:
    (write_night(tmp_path / "runs", NightPlan(1)) / "verdict.json").unlink()
    assert value(exported(tmp_path), "runs_unfinished") == 1


def test_a_run_that_ends_ahead_of_the_clock_has_no_end(lab: Path) -> None:
    night = read_night(next((lab / "runs").glob("*server-b*")))
    ahead = replace(night, finished=datetime.now(UTC) + timedelta(days=3))
    registry, _ = registry_of([ahead], [], datetime.now(UTC))
    assert registry.get_sample_value("daq_bench_run_finished_timestamp_seconds", B) is None
    assert registry.get_sample_value("daq_bench_run_started_timestamp_seconds", B) is not None


def test_names_of_any_kind_are_data(tmp_path: Path) -> None:
    name = 'se"rver\\ \N{SNOWMAN}'
    write_night(tmp_path / "runs", NightPlan(1, candidate=name))
    found = exported(tmp_path)
    assert value(found, "run_outcome", candidate=name, scenario="snb-100s", target="nand", outcome="PASS") == 1


def test_the_page_and_the_rules_name_metrics_that_are_exported(lab: Path) -> None:
    exported(lab)
    text = (lab / "daq.prom").read_text(encoding="utf-8")
    known = set(re.findall(r"^# TYPE (daq_bench_\w+)", text, re.MULTILINE))
    page, rules = (
        (DOCS / "prometheus.md").read_text(encoding="utf-8"),
        (DOCS / "prometheus" / "alerts.yml").read_text(encoding="utf-8"),
    )
    assert set(re.findall(r"daq_bench_\w+", rules)) <= known
    assert known - {"daq_bench_run_finished_timestamp_seconds"} == set(re.findall(r"daq_bench_\w+", page))
    alerts = YAML(typ="safe").load(rules)["groups"][0]["rules"]
    for rule in alerts:
        assert set(rule) == {"alert", "expr", "labels", "annotations"}
    # A PASS may miss an advisory requirement: it passes that one by no margin.
    (small,) = (rule["expr"] for rule in alerts if rule["alert"] == "DaqBenchMarginSmall")
    assert small.startswith("daq_bench_requirement_margin_ratio >= 0 < 0.05 and ")


@pytest.mark.parametrize(
    ("text", "last_s"),
    [
        ("cpu busy=1 1772503200000000000\ncpu busy=1 1772503201500000000\n", 1772503201.5),
        ("cpu busy=1 1772503201000000000\nbmc fan=1 1772503200000000000\n", 1772503201.0),  # out of order
        ("cpu busy=1 1772503200000000000\ncpu busy=1 17725032", 1772503200.0),  # a line that a kill cut off
        (f"{'x' * 70000} 9\ncpu busy=1 1772503200000000000\n", 1772503200.0),
        (f"cpu busy=1 1772503200000000000\ncpu busy=1 {'9' * 5000}\n", 1772503200.0),  # no stamp that a clock gives
        ("cpu busy=1 1772503200000000000\ncpu busy=1 9223372036854775807\n", 1772503200.0),  # a clock that was ahead
        ("", None),
        ("no line of telemetry\n", None),
    ],
)
def test_the_last_point_is_the_telemetrys_own_and_not_the_files_date(
    tmp_path: Path, text: str, last_s: float | None
) -> None:
    night = read_night(write_night(tmp_path, NightPlan(1)))
    spool = night.path / "telemetry" / "points.lp"
    spool.parent.mkdir(exist_ok=True)
    spool.write_text(text, encoding="utf-8")  # its date is now
    registry, _ = registry_of([night], [], datetime.now(UTC))
    assert registry.get_sample_value("daq_bench_telemetry_last_point_timestamp_seconds", A) == last_s


@pytest.mark.usefixtures("real_door")
def test_what_the_door_refuses_is_no_outcome(lab: Path) -> None:
    found = exported(lab, status=2)  # not one run can be used
    assert value(found, "runs_left_out") == 4
    assert not any(name == "daq_bench_run_outcome" for name, _ in found)


@pytest.mark.parametrize(
    ("runs", "output", "message"),
    [
        ("runs", "daq.txt", "node_exporter would not read it"),
        ("runs", "no/daq.prom", "cannot be written: No such file or directory"),
        ("none", "daq.prom", "none is no folder"),
    ],
)
def test_what_cannot_be_done_is_one_error(
    lab: Path, runs: str, output: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "daq.prom").write_text("kept", encoding="utf-8")
    assert main(["export-metrics", str(lab / runs), "--output", str(lab / output)]) == 2
    assert message in capsys.readouterr().err
    assert (lab / "daq.prom").read_text(encoding="utf-8") == "kept"
    assert sorted(file.name for file in lab.iterdir()) == ["daq.prom", "runs"]
