"""Full scale is absolute: what a profile demands and what a scenario asks for stand against each other."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.evidence.demanded_load import (
    LEFT_OUT,
    as_hard,
    check_load,
    demanded_schema,
    less_than_demanded,
    workload_schemas,
)
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import RequirementProfile, load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import load_schema
from daq_bench.bench_model.workloads.table import MODELS

sys.path.insert(0, str(Path(__file__).parent))

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
PROFILES = {file.stem: load_requirements(file, METRICS) for file in sorted((INVENTORY / "requirements").glob("*.yml"))}
SCENARIOS = sorted((INVENTORY / "scenarios").glob("*.yml"))
SNB = PROFILES["dune-snb"]
WORDS = {"larger", "smaller", "superset", "prefix", "equal", "later", "given", "free"}
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


# --- the schemas


@pytest.mark.parametrize(("workload", "path", "schema"), ALL, ids=lambda it: it if isinstance(it, str) else None)
def test_every_parameter_says_which_way_the_test_gets_harder(workload: str, path: tuple[str, ...], schema: Any) -> None:
    assert schema.get("x-harder") in WORDS, f"{workload}: {'.'.join(path)} needs x-harder in its schema"
    assert schema.get("x-left-out") in (None, "hardest", "easiest", "by-capacity")
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
    if file.stem in ("interference", "interference-endurance"):  # a shipped scenario cannot name anybody's second host
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
            r"snb_record\.links: value 'ten' is not a whole number",
        ),
        ("dune-snb", "      links: 10\n", "      links: true\n", r"value True is not a whole number"),
        ("dune-snb", "      links: 10\n", "      links: 0\n", r"value 0 is too small\. Write at least 1"),
        ("dune-snb", "      links: 10\n", f"      links: {LEFT_OUT}\n", r"value 'left-out' is not a whole number"),
        ("dune-snb", "superchunk_rate_hz: 166000", "superchunk_rate_hz: .nan", r"value nan is no finite number"),
        ("dune-snb", "ring_size: 512MiB", "ring_size: 0MiB", r"value '0MiB' is not allowed"),
        (
            "dune-snb",
            "      links: 10\n",
            "      links: 10\n      link: 10\n",
            r"unknown key 'link'. Did you mean links",
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
            r"interference\.readers\.threads: value 'four' is not a whole number",
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
            r"unknown key 'checksum'. Did you mean checksums",
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
        ({"x-harder": "later", "enum": ["discard", "format"]}, "discard", "format", True),
        ({"x-harder": "later", "enum": ["discard", "format"]}, "format", "discard", False),
        ({"x-harder": "later", "enum": ["discard", "format"]}, "discard", "none", False),
        ({"x-harder": "larger", "x-left-out": "by-capacity"}, LEFT_OUT, 7 * 10**12, True),
        ({"x-harder": "larger", "x-left-out": "by-capacity"}, 7 * 10**12, LEFT_OUT, False),
        ({"x-harder": "larger", "x-left-out": "by-capacity"}, 7 * 10**12, 8 * 10**12, True),
        ({"x-harder": "larger", "x-left-out": "by-capacity"}, 7 * 10**12, 6 * 10**12, False),
        *(
            ({"x-harder": "larger", "x-left-out": "by-capacity"}, LEFT_OUT, ran, False)
            for ran in (None, 0, -1, True, float("nan"), float("inf"), "7TB", [7])
        ),
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
    if kind == "later":
        yield from (*schema["enum"][: schema["enum"].index(value)], "another")
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
