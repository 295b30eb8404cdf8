"""xUnit against its schema, OCP Test & Validation output against Open Compute's own package."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import ocptv.output as tv
import pytest
import xmlschema
from msgspec import structs
from ocptv.output import objects
from ocptv.output.emit import ArtifactEmitter

sys.path.insert(0, str(Path(__file__).parent))
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.documents.nights import Comparison, Job
from daq_bench.bench_model.nights import ocp_tv
from daq_bench.bench_model.nights.baseline import REGRESSED
from daq_bench.bench_model.nights.night import Night, read_night
from daq_bench.bench_model.nights.outcome import Entry, outcome_of
from daq_bench.bench_model.nights.xunit import xunit

SCHEMA = xmlschema.XMLSchema(Path(__file__).resolve().parents[1] / "schemas" / "xunit.xsd")
JOB = Job("server-a", "snb-100s")
WORSE = Comparison("R-01", "mandatory", REGRESSED, 10.0, 9.5, -0.5, (-0.7, -0.3), "how")


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return read_night(write_night(tmp_path, NightPlan(1)))


def entry_of(night: Night, comparisons: tuple[Comparison, ...] = ()) -> Entry:
    return Entry(JOB, outcome_of(night), "", night, comparisons=comparisons, seconds=12.3456)


def cases(entries: list[Entry]) -> dict[str, str]:
    """Returns the result of each test case, by the first word of its name."""
    text = xunit(entries, "a night")
    SCHEMA.validate(text)
    root = ElementTree.fromstring(text)
    found = {}
    for case in root.iter("testcase"):
        kinds = [child.tag for child in case if child.tag != "system-out"]
        found[case.get("name", "").split()[0]] = kinds[0] if kinds else "passed"
    return found


def test_a_pass_is_one_passed_case_per_requirement(night: Night) -> None:
    assert cases([entry_of(night)]) == {"R-01": "passed", "R-02": "passed", "R-03": "passed"}


def test_a_miss_is_a_failure_and_a_regression_too(tmp_path: Path, night: Night) -> None:
    failed = read_night(write_night(tmp_path, NightPlan(2, lost=1.0)))
    assert cases([entry_of(failed)])["R-03"] == "failure"
    assert cases([entry_of(night, (WORSE,))])["R-01"] == "failure"


def test_inadmissible_is_an_error_but_skipped_in_a_declared_rehearsal(tmp_path: Path) -> None:
    rehearsed = read_night(write_night(tmp_path, NightPlan(2, outcome="INADMISSIBLE")))
    assert set(cases([entry_of(rehearsed)]).values()) == {"skipped"}
    assert set(
        cases(
            [entry_of(replace(rehearsed, verdict=structs.replace(rehearsed.verdict, declared_rehearsal=False)))]
        ).values()
    ) == {"error"}


def test_a_run_without_a_verdict_is_an_error_and_a_skipped_one_is_skipped() -> None:
    assert cases([Entry(JOB, "ERROR", "no run began")]) == {"the": "error"}
    assert cases([Entry(JOB, "skipped", "busy")]) == {"the": "skipped"}


def test_what_a_tool_said_cannot_break_the_file(night: Night) -> None:
    text = xunit([Entry(JOB, "ERROR", "bad \x1b[31m & <tag> \x00 測試")], "n")
    SCHEMA.validate(text)
    message = next(ElementTree.fromstring(text).iter("error")).get("message")
    assert message == "bad \ufffd[31m & <tag> \ufffd 測試"


def test_the_counts_are_those_of_the_cases(night: Night) -> None:
    root = ElementTree.fromstring(xunit([entry_of(night, (WORSE,)), Entry(JOB, "ERROR", "x")], "n"))
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
    }


def lines_of(night: Night) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ocp_tv.lines(night.path, night)]


def test_ocp_lines_are_numbered_timed_and_whole(night: Night) -> None:
    found = lines_of(night)
    assert [line["sequenceNumber"] for line in found] == list(range(len(found)))
    stamps = [line["timestamp"] for line in found]
    assert stamps == sorted(stamps)
    assert found[0]["schemaVersion"] == {"major": 2, "minor": 0}
    assert "testRunStart" in found[1]["testRunArtifact"]
    assert found[-1]["testRunArtifact"] == {"testRunEnd": {"status": "COMPLETE", "result": "PASS"}}
    opened = [
        line["testStepArtifact"]["testStepId"] for line in found if "testStepStart" in line.get("testStepArtifact", {})
    ]
    closed = [
        line["testStepArtifact"]["testStepId"] for line in found if "testStepEnd" in line.get("testStepArtifact", {})
    ]
    assert sorted(opened) == sorted(closed) == ["0", "1"]


def test_each_ocp_line_is_what_open_computes_package_writes(night: Night) -> None:
    """Every line is taken apart, built again from the package's own types, with its checks on, and written by it."""
    tv.config(enable_runtime_checks=True)
    for line in lines_of(night):
        root = objects.Root(impl=_artifact(line), sequence_number=line["sequenceNumber"], timestamp=0.0)
        written = json.loads(ArtifactEmitter._serialize(root))
        assert {**written, "timestamp": line["timestamp"]} == line


def test_a_broken_line_would_be_noticed(night: Night) -> None:
    line = lines_of(night)[1]
    line["testRunArtifact"]["testRunStart"]["dutInfo"]["softwareInfos"][0]["softwareType"] = "DRIVER"
    with pytest.raises(ValueError, match="DRIVER"):
        _artifact(line)


def test_a_run_that_does_not_count_is_not_applicable(tmp_path: Path) -> None:
    found = lines_of(read_night(write_night(tmp_path, NightPlan(1, outcome="INADMISSIBLE"))))
    assert found[-1]["testRunArtifact"]["testRunEnd"]["result"] == "NOT_APPLICABLE"


def test_the_same_bundle_gives_the_same_lines(night: Night) -> None:
    assert ocp_tv.lines(night.path, night) == ocp_tv.lines(night.path, night)


def _artifact(line: dict[str, Any]) -> Any:
    if "schemaVersion" in line:
        return objects.SchemaVersion(**line["schemaVersion"])
    if "testRunArtifact" in line:
        ((kind, body),) = line["testRunArtifact"].items()
        return objects.RunArtifact(impl=OF_RUN[kind](body))
    body = dict(line["testStepArtifact"])
    step = body.pop("testStepId")
    ((kind, inner),) = body.items()
    return objects.StepArtifact(id=step, impl=OF_STEP[kind](inner))


def _run_start(body: dict[str, Any]) -> objects.RunStart:
    return objects.RunStart(
        body["name"], body["version"], body["commandLine"], body["parameters"], _dut(body["dutInfo"])
    )


def _dut(body: dict[str, Any]) -> objects.DutInfo:
    software = [
        objects.SoftwareInfo(
            one["softwareInfoId"], one["name"], one["version"], None, objects.SoftwareType(one["softwareType"]), None
        )
        for one in body["softwareInfos"]
    ]
    hardware = [
        objects.HardwareInfo(
            one["hardwareInfoId"], one["name"], one.get("version"), None, one.get("location"), one.get("serialNumber"),
            None, None, None, None, None, None,
        )
        for one in body["hardwareInfos"]
    ]  # fmt: skip
    platform = [objects.PlatformInfo(one["info"]) for one in body["platformInfos"]]
    return objects.DutInfo(body["dutInfoId"], body["name"], platform, software, hardware, None)


def _measurement(body: dict[str, Any]) -> objects.Measurement:
    validators = [
        objects.Validator(one["name"], objects.ValidatorType(one["type"]), one["value"], None)
        for one in body["validators"]
    ]
    metadata = objects.Metadata(body["metadata"])
    return objects.Measurement(body["name"], body["value"], body["unit"], validators, None, None, metadata)


OF_RUN = {
    "testRunStart": _run_start,
    "testRunEnd": lambda body: objects.RunEnd(objects.TestStatus(body["status"]), objects.TestResult(body["result"])),
    "log": lambda body: objects.Log(objects.LogSeverity(body["severity"]), body["message"], None),
    "error": lambda body: objects.Error(body["symptom"], body["message"], [], None),
}
OF_STEP = {
    "testStepStart": lambda body: objects.StepStart(body["name"]),
    "testStepEnd": lambda body: objects.StepEnd(objects.TestStatus(body["status"])),
    "measurement": _measurement,
    "diagnosis": lambda body: objects.Diagnosis(
        body["verdict"], objects.DiagnosisType(body["type"]), body["message"], None, None, None
    ),
}
