"""A run of less load than is demanded, or whose results count less than was asked for, decides nothing."""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.evidence.counted_load import miscounted
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import RequirementProfile, load_requirements
from daq_bench.bench_model.profiles.yaml_source import load_schema
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.bench_model.workloads.table import MODELS

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import asked_otherwise, evidence, lose, scaled

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
SNB = load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS)


def reasons(run: Evidence, profile: RequirementProfile = SNB) -> tuple[str, list[str]]:
    found = as_document(judge(run, profile, METRICS))
    return found["outcome"], found["reasons"]


def asked(run: Evidence, workload: str) -> list[dict[str, Any]]:
    """The parameters of `workload` in run.json and in the bundle's copy: whoever makes a test easier changes both."""
    assert run.scenario is not None
    return [run.run["scenario"]["parameters"]["workloads"][workload], run.scenario["workloads"][workload]]


# --- the verdict


@pytest.mark.parametrize(
    ("key", "value", "rate"),
    [
        ("links", 1, "0.9243 GB/s"),
        ("superchunk_rate_hz", 166, "0.009243 GB/s"),
        ("superchunk_bytes", 65, "0.1079 GB/s"),
    ],
)
def test_full_scale_of_a_smaller_unit_is_no_full_scale(key: str, value: float, rate: str) -> None:
    """The audit's case, with evidence that agrees with itself throughout."""
    run = asked_otherwise("snb_record", **{key: value})
    outcome, why = reasons(run)
    assert outcome == "INADMISSIBLE"
    assert any("snb_record asks for less" in text and f"{key} is {value}" in text for text in why)
    assert any(f"snb_record offers {rate}" in text and "9.243 GB/s are demanded" in text for text in why)
    assert judge(run, SNB, METRICS).declared_rehearsal is True  # it limits, and does not invalidate


def test_what_fails_with_less_load_fails() -> None:
    run = asked_otherwise("block_scan", ramp_s=0.5)
    lose(run, 1)
    assert reasons(run)[0] == "FAIL"


def test_a_workload_that_is_not_run_a_length_and_a_telemetry_period_are_named() -> None:
    run = evidence()
    scaled(run, duration_s=50.0)
    run.run["scenario"]["parameters"]["telemetry_period_s"] = 10
    assert run.scenario is not None
    run.scenario["telemetry_period_s"] = 10
    del run.run["scenario"]["parameters"]["workloads"]["block_scan"], run.scenario["workloads"]["block_scan"]
    outcome, why = reasons(run)
    assert outcome == "INADMISSIBLE"
    assert "duration_s is 50.0 where at least 100 is demanded; telemetry_period_s is 10 where at most 1" in why[0]
    assert "The scenario does not run block_scan, which the requirement profile demands" in why


def test_an_old_profile_that_states_no_load_passes_nothing_and_is_no_rehearsal() -> None:
    old = replace(SNB, conditions=replace(SNB.conditions, load=None))
    document = as_document(judge(evidence(), old, METRICS))
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    assert document["reasons"] == [
        "The requirement profile does not state the load that it demands, so that this may be less"
    ]


@pytest.mark.parametrize("lost", ["snb_record", "block_scan"])
def test_a_stored_profile_that_states_a_part_passes_nothing(lost: str) -> None:
    assert SNB.conditions.load is not None
    load = {key: value for key, value in SNB.conditions.load.items() if key != lost}
    outcome, why = reasons(evidence(), replace(SNB, conditions=replace(SNB.conditions, load=load)))
    assert outcome == "INADMISSIBLE"
    assert why == [f"The requirement profile does not state the load that it demands of {lost}"]


def test_a_stored_profile_that_leaves_one_parameter_open_passes_nothing() -> None:
    conditions = copy.deepcopy(SNB.conditions)
    assert conditions.load is not None
    del conditions.load["snb_record"]["links"]
    outcome, why = reasons(evidence(), replace(SNB, conditions=conditions))
    assert (outcome, len(why)) == ("INADMISSIBLE", 1)
    assert "links: the profile does not state what it demands" in why[0]


def test_a_parameter_that_nobody_knows_is_named() -> None:
    run = evidence()
    for own in asked(run, "snb_record"):
        own["compressible"] = True
    assert "compressible is a parameter that this bench does not know" in reasons(run)[1][0]


# --- contradictions


def _other_copy(run: Evidence) -> None:
    assert run.scenario is not None
    run.scenario["workloads"]["snb_record"]["links"] = 1


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_other_copy, "run.json and the bundle's copy of the scenario differ in workloads"),
        (lambda run: run.scenario.update(seed=1), "copy of the scenario differ in seed"),
        (lambda run: run.run["scenario"].pop("parameters"), "missing required field `parameters`"),
        (lambda run: run.run["scenario"].update(parameters={}), "does not say with which parameters"),
        (lambda run: run.run["scenario"].update(parameters=None), "scenario.parameters: Expected `object`, got `null`"),
        (lambda run: run.run["scenario"].update(scale=1.1), "scenario.scale is 1.1 and 1"),
        (lambda run: run.run["scenario"].update(scale=float("nan")), "scale is nan: no finite number"),
        (lambda run: run.run["scenario"].update(repetitions=5), "scenario.repetitions is 5 and 3"),
        (lambda run: run.run["scenario"].update(id="another"), "scenario.id is another and snb-100s"),
        (lambda run: run.run["demand"].update(real_bytes_per_s=9e10), "demand (real_bytes_per_s) does not follow"),
        (lambda run: run.run["demand"].update(duration_s=float("nan")), "duration_s is nan: no finite number"),
        (lambda run: run.run["demand"].pop("duration_s"), "missing required field `duration_s`"),
        (lambda run: run.run.update(demand=None), "demand (demand) does not follow"),
    ],
)
def test_a_run_that_contradicts_its_scenario_decides_nothing(spoil: Any, text: str) -> None:
    run = evidence()
    spoil(run)
    document = as_document(judge(run, SNB, METRICS))
    assert (document["outcome"], document["declared_rehearsal"]) == ("INADMISSIBLE", False)
    found = [one for one in document["findings"] if text in one["text"]]
    assert found, document["reasons"]
    assert found[0]["invalidates"] is True


def test_a_bundle_without_its_scenario_decides_nothing() -> None:
    outcome, why = reasons(replace(evidence(), scenario=None))
    assert outcome == "INADMISSIBLE"
    assert "The bundle has no readable copy of its scenario (profiles/scenarios/)" in why


@pytest.mark.parametrize("identifier", ["../../../etc/passwd", "", None, 3, "a/b", "missing"])
def test_the_copy_is_looked_for_by_an_id_and_by_nothing_else(tmp_path: Path, identifier: Any) -> None:
    folder = tmp_path / "profiles" / "scenarios"
    folder.mkdir(parents=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "run.json").write_text(json.dumps({"scenario": {"id": identifier}}), encoding="utf-8")
    assert Evidence.load(tmp_path).scenario is None


def test_the_copy_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "profiles" / "scenarios"
    folder.mkdir(parents=True)
    (folder / "mine.yml").write_text("id: mine\nseed: 4\n", encoding="utf-8")
    (tmp_path / "run.json").write_text(json.dumps({"scenario": {"id": "mine"}}), encoding="utf-8")
    assert Evidence.load(tmp_path).scenario == {"id": "mine", "seed": 4}
    (folder / "mine.yml").write_text("id: .nan\n", encoding="utf-8")
    assert Evidence.load(tmp_path).scenario is None


# --- counts


def counts_of(run: Evidence) -> tuple[dict[str, Any], dict[str, Any]]:
    minidaq: dict[str, Any] = run.results["results/snb_record.json"]["repetitions"][0]["minidaq"]
    point: dict[str, Any] = run.results["results/block_scan.json"]["points"][0]
    return minidaq, point


BAD: list[Any] = [None, float("nan"), float("inf"), "many", True, [], {}]


@pytest.mark.parametrize("value", [*BAD, 0, -1, 163_000_000])
@pytest.mark.parametrize("key", ["intended", "offered"])
def test_a_record_that_counts_less_than_was_asked_for_decides_nothing(key: str, value: Any) -> None:
    run = evidence()
    counts_of(run)[0]["superchunks"][key] = value
    document = as_document(judge(run, SNB, METRICS))
    assert document["outcome"] == "INADMISSIBLE"
    found = [one for one in document["findings"] if f"repetitions[0].minidaq.superchunks.{key}" in one["text"]]
    assert {one["invalidates"] for one in found} == {True}


@pytest.mark.parametrize("value", [*BAD, 9.0])
def test_a_point_that_was_measured_too_short_decides_nothing(value: Any) -> None:
    run = evidence()
    counts_of(run)[1]["runtime_s"] = value
    assert any("results/block_scan.json: points[0].runtime_s" in text for text in reasons(run)[1])


def test_a_count_that_is_missing_is_missing() -> None:
    for lost in ("superchunks", "parameters", "time"):
        run = evidence()
        del counts_of(run)[0][lost]
        found = list(miscounted(run.run["scenario"]["parameters"], run.results))
        assert found
        assert all("is missing" in text and invalid for _, text, invalid in found)


def test_an_empty_list_counts_nothing() -> None:
    run = evidence()
    run.results["results/snb_record.json"]["repetitions"] = []
    assert all(
        "counts nothing" in text and invalid
        for _, text, invalid in miscounted(run.run["scenario"]["parameters"], run.results)
    )
    assert list(miscounted(run.run["scenario"]["parameters"], run.results))


def test_a_repetition_is_not_passed_over() -> None:
    run = evidence(repetitions=3)
    run.results["results/snb_record.json"]["repetitions"][1]["minidaq"] = None
    assert any("repetitions[1]" in text for _, text, _ in miscounted(run.run["scenario"]["parameters"], run.results))


def test_the_tolerance_is_that_of_the_source() -> None:
    run = evidence()
    counts_of(run)[0]["superchunks"]["offered"] = 164_500_000  # 99.1 %
    assert not [text for _, text, *_ in miscounted(run.run["scenario"]["parameters"], run.results) if "offered" in text]
    counts_of(run)[0]["superchunks"]["offered"] = 164_300_000  # 98.98 %
    assert [text for _, text, *_ in miscounted(run.run["scenario"]["parameters"], run.results) if "offered" in text]


def test_of_a_failed_record_a_shortfall_is_no_excuse() -> None:
    """The drive gave up: its loss stands, and only a PASS is out of reach."""
    run = evidence()
    minidaq = counts_of(run)[0]
    minidaq.update(status="failed")
    minidaq["superchunks"].update(offered=1000, lost=3)
    found = [one for one in miscounted(run.run["scenario"]["parameters"], run.results) if "offered" in one[1]]
    assert [invalidates for *_, invalidates in found] == [False]


def test_every_count_stands_in_the_schema_of_its_results() -> None:
    """A path that is misspelt would invalidate every run of its workload."""
    for workload, model in MODELS.items():
        for count in model.counts:
            path = count.path.split(".")
            if workload == "snb_record":  # no schema of its own: the tool's document stands in it
                assert required(load_schema("daqwriter-minidaq"), path[2:]), count.path
            else:
                assert required(load_schema(workload.replace("_", "-")), path), f"{workload}: {count.path}"


def required(root: Any, path: list[str]) -> bool:
    """Says whether `path` must be there in a document of the schema `root`."""
    schema = root
    for key in path:
        name = key.removesuffix("[]")
        root, schema = followed(root, schema)
        if name not in schema["required"]:
            return False
        schema = schema["properties"][name]
        if key.endswith("[]"):
            root, schema = followed(root, schema)
            schema = schema["items"]
    return True


def followed(root: Any, schema: Any) -> tuple[Any, Any]:
    """(the file's schema, the schema in it) that a reference leads to."""
    while "$ref" in schema:
        file, _, pointer = schema["$ref"].partition("#")
        root = schema = load_schema(file.removesuffix(".schema.json")) if file else root
        for key in filter(None, pointer.split("/")):
            schema = schema[key]
    return root, schema


def test_conditions_survive_the_way_into_a_document() -> None:
    assert asdict(SNB.conditions)["load"] == SNB.conditions.load
