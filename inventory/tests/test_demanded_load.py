"""Full scale is absolute: what a profile demands, what a scenario asked for, and what the results count stand against each other."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from bench_model.base.errors import ProfileError
from bench_model.bundle.evidence import Evidence
from bench_model.documents.struct import as_document
from bench_model.evidence.counted_load import miscounted
from bench_model.evidence.demanded_load import (
    LEFT_OUT,
    as_hard,
    check_load,
    demanded_schema,
    less_than_demanded,
    workload_schemas,
)
from bench_model.profiles.metrics import load_metrics
from bench_model.profiles.requirements import RequirementProfile, load_requirements
from bench_model.profiles.scenarios import load_scenario
from bench_model.profiles.yaml_source import load_schema
from bench_model.verdict.verdict import judge
from bench_model.workloads.table import MODELS

sys.path.insert(0, str(Path(__file__).parent))
from evidence_factory import asked_otherwise, evidence, lose, scaled

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
PROFILES = {file.stem: load_requirements(file, METRICS) for file in sorted((INVENTORY / "requirements").glob("*.yml"))}
SCENARIOS = sorted((INVENTORY / "scenarios").glob("*.yml"))
SNB = PROFILES["dune-snb"]
WORDS = {"larger", "smaller", "superset", "prefix", "equal", "given", "free"}
NO_QUALIFICATION = ("rehearsal", "emulated")


def parameters(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every parameter of a workload, those in groups too, that is compared by itself."""
    for name, one in schema["properties"].items():
        if "properties" in one and "x-harder" not in one:
            yield from parameters(one, (*path, name))
        else:
            yield (*path, name), one


ALL = [(workload, path, schema) for workload, whole in workload_schemas().items() for path, schema in parameters(whole)]


def put(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for key in parents:
        document = document[key]
    if value is None:
        document.pop(last, None)
    else:
        document[last] = value


def get(document: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def reasons(run: Evidence, profile: RequirementProfile = SNB) -> tuple[str, list[str]]:
    found = as_document(judge(run, profile, METRICS))
    return found["outcome"], found["reasons"]


def asked(run: Evidence, workload: str) -> list[dict[str, Any]]:
    """The parameters of `workload` in run.json and in the bundle's copy: whoever makes a test easier changes both."""
    assert run.scenario is not None
    return [run.run["scenario"]["parameters"]["workloads"][workload], run.scenario["workloads"][workload]]


# --- the schemas


@pytest.mark.parametrize(("workload", "path", "schema"), ALL, ids=lambda it: it if isinstance(it, str) else None)
def test_every_parameter_says_which_way_the_test_gets_harder(workload: str, path: tuple[str, ...], schema: Any) -> None:
    assert schema.get("x-harder") in WORDS, f"{workload}: {'.'.join(path)} needs x-harder in its schema"
    assert schema.get("x-left-out") in (None, "hardest", "easiest")
    if schema["x-harder"] == "free":
        assert schema["description"]


def test_every_key_of_a_scenario_says_so_too() -> None:
    for key, schema in load_schema("scenario")["properties"].items():
        assert key == "workloads" or schema.get("x-harder") in WORDS, key


def test_every_workload_has_its_counts() -> None:
    assert [name for name in workload_schemas() if not MODELS[name].counts] == []


# --- the profiles


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_shipped_profile_states_its_load(profile: RequirementProfile) -> None:
    check_load(profile)


def test_of_dune_the_load_is_the_papers() -> None:
    load = SNB.conditions.load
    assert load is not None
    record = load["snb_record"]
    assert record["links"] * record["superchunk_bytes"] * record["superchunk_rate_hz"] == 9_242_880_000
    assert load["duration_s"] == 100


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_a_full_scenario_asks_for_what_its_profile_demands_and_a_rehearsal_for_less(file: Path) -> None:
    scenario = load_scenario(file).altered(None, None)
    profile = PROFILES[scenario.document.get("requirement", "dune-snb")]
    check_load(profile, scenario)
    texts = list(less_than_demanded(scenario.document, profile.conditions.load))
    if file.stem == "interference":  # a shipped scenario cannot name anybody's second host
        assert [text.partition(": ")[2] for text in texts] == ["network.peer is left out where given is demanded"]
    elif file.stem == "scans-emulated":
        assert texts == []  # its profile is of its own size; the scale and the emulated drives limit it
    else:
        assert bool(texts) == (file.stem.endswith(NO_QUALIFICATION) or file.stem == "dune-snb")


def whole(name: str) -> str:
    """The profile's text, with what it includes written out."""
    text = (INVENTORY / "requirements" / f"{name}.yml").read_text(encoding="utf-8")
    if "\ninclude:" not in text:
        return text
    head, ids = text.split("\ninclude:")[0], re.findall(r"[A-Z]+-\d+", text.split("ids:")[1])
    source = (INVENTORY / "requirements" / "dune-scans.yml").read_text(encoding="utf-8").split("\n  - id: ")[1:]
    taken = [f"  - id: {entry.rstrip()}\n" for entry in source if entry.split("\n")[0] in ids]
    return f"{head}\nrequirements:\n{''.join(taken)}"


def edited(tmp_path: Path, name: str, old: str, new: str) -> Path:
    text = whole(name)
    assert old in text
    copy_ = tmp_path / f"{name}.yml"
    copy_.write_text(text.replace(old, new, 1), encoding="utf-8")
    return copy_


@pytest.mark.parametrize(
    ("profile", "old", "new", "problem"),
    [
        (
            "dune-snb",
            "      links: 10\n",
            "",
            r":\d+: conditions\.load\.snb_record: key 'links' is missing\. Add it: data links",
        ),
        ("dune-snb", "    duration_s: 100\n", "", r"conditions\.load: key 'duration_s' is missing"),
        ("dune-snb", "    repetitions: 3\n", "", r"conditions\.load: key 'repetitions' is missing"),
        ("dune-snb", "      purge: discard\n", "", r"snb_record: key 'purge' is missing"),
        (
            "dune-snb",
            "      links: 10\n",
            "      links: ten\n",
            r"snb_record\.links: value 'ten' is not of type integer",
        ),
        ("dune-snb", "      links: 10\n", "      links: true\n", r"value True is not of type integer"),
        ("dune-snb", "      links: 10\n", "      links: 0\n", r"0 is less than the minimum"),
        ("dune-snb", "      links: 10\n", f"      links: {LEFT_OUT}\n", r"value 'left-out' is not of type integer"),
        ("dune-snb", "superchunk_rate_hz: 166000", "superchunk_rate_hz: .nan", r"value nan is no finite number"),
        ("dune-snb", "ring_size: 512MiB", "ring_size: 0MiB", r"value '0MiB' is not allowed"),
        (
            "dune-snb",
            "      links: 10\n",
            "      links: 10\n      link: 10\n",
            r"unknown key 'link'. Did you mean 'links'",
        ),
        ("dune-snb", "      links: 10\n", "      links: 10\n      yields: [a]\n", r"unknown key 'yields'"),
        (
            "interference",
            "threads: 4, ",
            "",
            r":\d+: conditions\.load\.interference\.readers: key 'threads' is missing",
        ),
        (
            "interference",
            "threads: 4, ",
            "threads: four, ",
            r"interference\.readers\.threads: value 'four' is not of type integer",
        ),
        (
            "interference",
            "peer: given",
            "peer: my-host",
            r"interference\.network\.peer: value 'my-host' is not allowed",
        ),
        (
            "interference",
            "      checksums: {",
            "      checksum: {",
            r"unknown key 'checksum'. Did you mean 'checksums'",
        ),
    ],
)
def test_a_profile_that_leaves_the_load_open_is_refused(
    tmp_path: Path, profile: str, old: str, new: str, problem: str
) -> None:
    """Also in a part that may be left out as a whole."""
    with pytest.raises(ProfileError, match=problem):
        check_load(load_requirements(edited(tmp_path, profile, old, new), METRICS))


def test_a_profile_without_any_load_is_refused_with_its_line(tmp_path: Path) -> None:
    text = whole("thread-scan")
    head, rest = text.split("  load:")
    file = tmp_path / "thread-scan.yml"
    file.write_text(head + rest[rest.index("requirements:") :], encoding="utf-8")
    with pytest.raises(ProfileError, match=r"thread-scan\.yml:5: conditions: does not state the load that it demands"):
        check_load(load_requirements(file, METRICS))


def test_a_bounded_workload_that_the_load_lacks_is_refused(tmp_path: Path) -> None:
    file = edited(tmp_path, "thread-scan", "thread_scan.ratio_32KiB", "block_scan.plateau_throughput")
    text = file.read_text(encoding="utf-8").replace('unit: "1"', "unit: GB/s")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"conditions\.load: key 'block_scan' is missing"):
        check_load(load_requirements(file, METRICS))


def test_a_metric_of_no_workload_belongs_to_the_one_that_yields_it(tmp_path: Path) -> None:
    """`dips.count` stands in the yields of `thermal`: a profile that bounds nothing else still states thermal's load."""
    file = edited(tmp_path, "thread-scan", "thread_scan.ratio_32KiB", "dips.count")
    file.write_text(file.read_text(encoding="utf-8").replace('unit: "1"', "unit: count"), encoding="utf-8")
    profile = load_requirements(file, METRICS)
    with pytest.raises(ProfileError, match="key 'thermal' is missing"):
        check_load(profile, load_scenario(INVENTORY / "scenarios" / "thermal.yml"))


@pytest.mark.parametrize("name", sorted(workload_schemas()))
def test_each_parameter_that_is_not_free_must_be_stated(name: str) -> None:
    schema = demanded_schema({name})["properties"][name]
    free = {path for workload, path, one in ALL if workload == name and one["x-harder"] == "free"}
    stated = {path for path, _ in parameters(unwrapped(schema))}
    wanted = {path for workload, path, _ in ALL if workload == name} - free
    assert stated == wanted


def unwrapped(schema: Any) -> Any:
    """The demanded schema with the choice `left-out` taken away."""
    if isinstance(schema, dict) and "oneOf" in schema and schema["oneOf"][0] == {"const": LEFT_OUT}:
        return unwrapped(schema["oneOf"][1])
    if isinstance(schema, dict) and "properties" in schema:
        return {**schema, "properties": {key: unwrapped(one) for key, one in schema["properties"].items()}}
    return schema


# --- the comparison


@pytest.mark.parametrize(
    ("schema", "demanded", "ran", "hard"),
    [
        ({"x-harder": "larger"}, 10, 10, True),
        ({"x-harder": "larger"}, 10, 10.5, True),
        ({"x-harder": "larger"}, 10, 9, False),
        ({"x-harder": "larger"}, 10, float("nan"), False),
        ({"x-harder": "larger"}, 10, float("inf"), False),
        ({"x-harder": "larger"}, 1, True, False),
        ({"x-harder": "larger"}, 10, "11", False),
        ({"x-harder": "larger"}, 10, None, False),
        ({"x-harder": "larger"}, 10, [11], False),
        ({"x-harder": "larger"}, "ten", 11, False),
        ({"x-harder": "smaller"}, 10, 10, True),
        ({"x-harder": "smaller"}, 10, 11, False),
        ({"x-harder": "smaller"}, 10, float("-inf"), False),
        ({"x-harder": "superset"}, [1, 2], [2, 1, 3], True),
        ({"x-harder": "superset"}, [1, 2], [1], False),
        ({"x-harder": "superset"}, [1, 2], [True, 2], False),
        ({"x-harder": "superset"}, [1], "1", False),
        ({"x-harder": "prefix"}, ["fio"], ["fio", "daqwriter"], True),
        ({"x-harder": "prefix"}, ["fio"], ["daqwriter", "fio"], False),
        ({"x-harder": "prefix"}, [], ["fio"], False),
        ({"x-harder": "equal"}, "crc32", "crc32", True),
        ({"x-harder": "equal"}, "crc32", "off", False),
        ({"x-harder": "equal"}, True, 1, False),
        ({"x-harder": "equal"}, [1, 2], [2, 1], False),
        ({"x-harder": "given"}, "given", "host", True),
        ({"x-harder": "given"}, "given", "", False),
        ({"x-harder": "given"}, "given", 3, False),
        ({"x-harder": "unheard-of"}, 1, 1, False),
        ({}, 1, 1, False),
        ({"x-harder": "larger"}, LEFT_OUT, LEFT_OUT, True),
        ({"x-harder": "larger"}, LEFT_OUT, 10, False),
        ({"x-harder": "larger", "x-left-out": "hardest"}, 10, LEFT_OUT, True),
        ({"x-harder": "larger", "x-left-out": "hardest"}, LEFT_OUT, 10, False),
        ({"x-harder": "superset", "x-left-out": "easiest"}, ["fresh"], LEFT_OUT, False),
        ({"x-harder": "superset", "x-left-out": "easiest"}, LEFT_OUT, ["fresh"], True),
    ],
)
def test_what_is_as_hard(schema: dict[str, Any], demanded: Any, ran: Any, hard: bool) -> None:
    assert as_hard(schema, "parameter", demanded, ran) is hard


def test_sizes_are_compared_as_amounts() -> None:
    assert as_hard({"x-harder": "larger"}, "file_size", 32 * 2**30, "32GiB")
    assert not as_hard({"x-harder": "larger"}, "file_size", 32 * 2**30, "32GB")
    assert not as_hard({"x-harder": "larger"}, "file_size", 32 * 2**30, "32G")
    assert as_hard({"x-harder": "superset"}, "block_sizes", [4096], ["4KiB", "8KiB"])


def easier(schema: dict[str, Any], value: Any) -> Iterator[Any]:
    """Values that make the test easier, or that cannot be understood; None: left out."""
    kind = schema["x-harder"]
    yield from {"larger": [0.001, -1, "much"], "smaller": [1e18, "little"], "given": [None, "", 7]}.get(kind, [])
    if kind in ("superset", "prefix"):
        yield from ([], value[1:], "all")
    if kind == "equal":
        yield from ("another", {"another": 1}, [])
    yield from (float("nan"), float("inf"), {})
    if schema.get("x-left-out") != "hardest" and not ("default" in schema and schema["default"] == value):
        yield None


@pytest.mark.parametrize("name", sorted(workload_schemas()))
def test_each_parameter_that_is_made_easier_is_named_whatever_the_workload(name: str) -> None:
    """The class, not the instance: a workload that comes later has its adversaries without anyone writing them."""
    profile = next(one for one in PROFILES.values() if one.conditions.load and name in one.conditions.load)
    load = profile.conditions.load
    assert load is not None
    full = {key: value for key, value in load.items() if key not in workload_schemas()}
    own = without_left_out(load[name])
    assert named(load, name, full, own) == [], "the demanded load itself is no less than demanded"
    tried = 0
    for path, schema in parameters(workload_schemas()[name]):
        value = get(own, path)
        if schema["x-harder"] == "free" or value is None:
            continue
        for lower in easier(schema, value):
            spoiled = copy.deepcopy(own)
            put(spoiled, path, lower)
            texts = named(load, name, full, spoiled)
            assert any(path[-1] in text or path[0] in text for text in texts), (path, lower, texts)
            tried += 1
    assert tried > 10


def without_left_out(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: "a-host" if value == "given" else without_left_out(value)
            for key, value in node.items()
            if value != LEFT_OUT
        }
    return node


def named(load: dict[str, Any], name: str, beside: dict[str, Any], own: dict[str, Any]) -> list[str]:
    run = {"scenario": {"parameters": {**beside, "scale": 1, "workloads": {name: own}}}}
    return list(less_than_demanded(run["scenario"]["parameters"], {**beside, name: load[name]}))


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


@pytest.mark.parametrize("value", [*BAD, 19.0])
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
