"""Scenarios that extend others, profiles that include requirements: what they come to, and whose line an error names."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.composed import read_requirements, read_scenario
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import check_yields, load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import read_yaml

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
SCENARIOS = sorted((INVENTORY / "scenarios").glob("*.yml"))
Write = Callable[..., Path]

OWN_REQUIREMENT = """
  - {id: OWN-01, text: own, metric: thread_scan.ratio_32KiB, comparison: at_least, bound: 2, unit: "1", statistic: min,
     severity: advisory, source: "[P]"}
"""
HEAD = "id: {}\ntitle: t\nsource: s\nconditions: {{target_kinds: [filesystem]}}\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, text: str) -> Path:
        file = tmp_path / f"{name}.yml"
        file.write_text(text, encoding="utf-8")
        return file

    return make


def variant(name: str, base: str, rest: str = "") -> str:
    return f"id: {name}\ntitle: a variant\nextends: {base}\n{rest}"


def requirements(name: str, include: str, rest: str = "") -> str:
    return f"{HEAD.format(name)}include: {include}\n{rest}"


def test_a_variant_is_its_base_but_for_what_it_says(write: Write) -> None:
    base = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml")
    file = write("mine", variant("mine", "dune-snb", "workloads: {snb_record: {links: 5}, block_scan: null}\n"))
    found = load_scenario(file)
    assert list(found.workloads) == ["snb_record"]
    assert found.workloads["snb_record"] == {**base.workloads["snb_record"], "links": 5}
    assert (found.id, found.title, found.seed, found.duration_s) == ("mine", "a variant", base.seed, base.duration_s)
    assert "extends" not in found.document


def test_lists_are_replaced_whole_and_the_order_of_workloads_is_the_bases(write: Write) -> None:
    rest = "workloads: {snb_record: {links: 2}, block_scan: {block_sizes: [4KiB, 8KiB]}}\n"
    found = load_scenario(write("mine", variant("mine", "dune-snb", rest)))
    assert found.workloads["block_scan"]["block_sizes"] == [4096, 8192]
    assert list(found.workloads) == list(load_scenario(INVENTORY / "scenarios" / "dune-snb.yml").workloads)


def test_a_profile_beside_comes_before_a_shipped_one(write: Write) -> None:
    shipped = (INVENTORY / "scenarios" / "dune-snb.yml").read_text(encoding="utf-8")
    write("dune-snb", shipped.replace("seed: 20211", "seed: 7"))
    assert load_scenario(write("mine", variant("mine", "dune-snb"))).seed == 7


@pytest.mark.parametrize(
    ("files", "field", "message"),
    [
        ({"a": variant("a", "a")}, "extends", "'a' is this file itself"),
        ({"a": variant("a", "b"), "b": variant("b", "a")}, "extends", "closes a circle: a -> b -> a"),
        ({"a": variant("a", "nemo")}, "extends", r"there is no profile 'nemo'.*No name is near among the \d+ known ones"),
        ({"a": variant("a", "../dune-snb")}, "extends", r"'\.\./dune-snb' is no id.*by its id: no path"),
        ({"a": variant("a", "/etc/passwd")}, "extends", "is no id"),
        ({"a": variant("a", "dune-snb.yml")}, "extends", "is no id"),
        ({"a": variant("a", "[dune-snb]")}, "extends", "is no id"),
        ({"a": variant("a", "null")}, "extends", "None is no id"),
        ({"a": variant("a", "7")}, "extends", "7 is no id"),
        ({"a": variant("a", "b"), "b": "[]\n"}, "", "holds no fields"),
        ({"a": variant("a", "dune-snb", "workloads: {lan: null}\n")}, "workloads.lan", "leaves out 'lan', which the base"),
        ({"a": variant("a", "dune-snb", "workloads:\n  lan: {seconds: null}\n")}, "workloads.lan.seconds", "leaves out"),
        ({"a": variant("a", "dune-snb", "workloads:\n  lann: {}\n")}, "workloads.lann", "unknown key 'lann'"),
        ({"a": variant("a", "dune-snb", "workloads: 7\n")}, "workloads", "7 is not a group of keys"),
        ({"a": variant("a", "dune-snb", "extend: b\n")}, "extend", r"unknown key 'extend'. Did you mean extends"),
        ({"a": variant("a", "dune-snb", "duration_s: long\n")}, "duration_s", "'long' is not a number"),
        ({"a": "id: a\nextends: dune-snb\n"}, "", "has no title of its own"),
        ({"a": variant("b", "dune-snb")}, "id", "id 'b' differs from the file's name"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_variant_is_named(write: Write, files: dict[str, str], field: str, message: str) -> None:
    for name, text in reversed(files.items()):
        file = write(name, text)
    with pytest.raises(ProfileError, match=rf"\.yml:\d+: {re.escape(field)}") as caught:
        load_scenario(file)
    assert re.search(message, str(caught.value)), caught.value


def test_a_chain_has_an_end(write: Write) -> None:
    write("a", variant("a", "dune-snb"))
    for name, base in (("b", "a"), ("c", "b"), ("d", "c")):
        file = write(name, variant(name, base))
    with pytest.raises(ProfileError, match=r"more than 4 files: d -> c -> b -> a -> dune-snb\. Extend an earlier one"):
        load_scenario(file)
    assert load_scenario(file.with_name("c.yml")).id == "c"


def test_an_error_names_the_file_and_line_where_the_text_stands(write: Write) -> None:
    base = (INVENTORY / "scenarios" / "dune-snb.yml").read_text(encoding="utf-8")
    wrong = write("base", base.replace("id: dune-snb", "id: base").replace("links: 10", "links: many"))
    line = 1 + wrong.read_text(encoding="utf-8").splitlines().index("    links: many")
    own = write("own", variant("own", "base", "workloads:\n  snb_record:\n    io_depth: 0\n"))
    with pytest.raises(ProfileError, match=rf"base\.yml:{line}: workloads\.snb_record\.links: value 'many'"):
        load_scenario(write("mine", variant("mine", "base")))
    with pytest.raises(ProfileError, match=r"own\.yml:6: workloads\.snb_record\.io_depth.*\(1 more"):
        load_scenario(write("own", own.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_a_shipped_variant_says_nothing_that_its_base_says(file: Path) -> None:
    own = plain(read_yaml(file).data)
    if "extends" not in own:
        return

    def again(mine: Any, theirs: Any, at: str) -> list[str]:
        if isinstance(mine, dict) and isinstance(theirs, dict):
            return [text for key in mine if key in theirs for text in again(mine[key], theirs[key], f"{at}.{key}")]
        return [at] if mine == theirs else []

    assert again(own, plain(read_scenario(file.with_name(f"{own['extends']}.yml")).data), "") == []


def test_what_is_included_is_the_other_profiles_word_for_word(write: Write) -> None:
    whole = {
        one.id: one for one in load_requirements(INVENTORY / "requirements" / "dune-scans.yml", METRICS).requirements
    }
    text = requirements("mine", "[{from: dune-scans, ids: [SCAN-06, SCAN-05]}]", f"requirements:{OWN_REQUIREMENT}")
    found = load_requirements(write("mine", text), METRICS)
    assert [one.id for one in found.requirements] == ["SCAN-06", "SCAN-05", "OWN-01"]
    assert found.requirements[:2] == (whole["SCAN-06"], whole["SCAN-05"])
    assert found.conditions.metrics[2] == "thread_scan.ratio_32KiB"


@pytest.mark.parametrize(
    ("include", "field", "message"),
    [
        ("[]", "include", r"has too few entries \(0\)\. Write at least 1"),
        ("dune-scans", "include", "is not a list. Write a list"),
        ("[{from: dune-scans}]", "include[0]", "key 'ids' is missing"),
        ("[{from: dune-scans, ids: []}]", "include[0].ids", r"has too few entries \(0\)\. Write at least 1"),
        ("[{from: dune-scans, ids: [7]}]", "include[0].ids[0]", "is not text. Write text"),
        ("[{from: mine, ids: [OWN-01]}]", "include[0].from", "is this file itself"),
        ("[{from: nemo, ids: [OWN-01]}]", "include[0].from", "there is no profile 'nemo'"),
        ("[{from: ../requirements/dune-scans, ids: [SCAN-05]}]", "include[0].from", "is no id of a profile"),
        ("[{from: dune-scans, ids: [SCAN-05, SCAN-99]}]", "include[0].ids[1]", "dune-scans.yml has no requirement 'SCAN-99'. Did you"),
        ("[{from: dune-scans, ids: [SCAN-05, SCAN-05]}]", "include[0].ids[1]", "id 'SCAN-05' stands twice"),
        ("[{from: thread-scan, ids: [SCAN-05]}]", "include[0].ids[0]", "only includes .SCAN-05. itself. Take it from .dune-scans"),
        ("[{from: dune-scans, ids: [SCAN-05], bound: 3}]", "include[0].bound", "unknown key 'bound'"),
        ("[{from: twice, ids: [OWN-01]}]", "include[0].ids[0]", "'OWN-01' stands twice in twice.yml"),
        ("[{from: once, ids: [OWN-01]}]", "requirements[0].id", "id 'OWN-01' stands twice"),
        ("[{from: other, ids: [OWN-01]}]", "include[0].ids[0]", "other.yml only includes 'OWN-01' itself. Take it from 'mine'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_an_include_is_named(write: Write, include: str, field: str, message: str) -> None:
    write("twice", f"{HEAD.format('twice')}requirements:{OWN_REQUIREMENT}{OWN_REQUIREMENT}")
    write("once", f"{HEAD.format('once')}requirements:{OWN_REQUIREMENT}")
    write("other", requirements("other", "[{from: mine, ids: [OWN-01]}]"))  # a circle
    file = write("mine", requirements("mine", include, f"requirements:{OWN_REQUIREMENT}"))
    with pytest.raises(ProfileError, match=rf"mine\.yml:[1-9]\d*: {re.escape(field)}: ") as caught:
        load_requirements(file, METRICS)
    assert re.search(message, str(caught.value)), caught.value


def test_a_fault_of_an_included_requirement_is_shown_where_it_is_written(write: Write) -> None:
    write("once", f"{HEAD.format('once')}requirements:{OWN_REQUIREMENT}".replace("bound: 2", "bound: two"))
    file = write("mine", requirements("mine", "[{from: once, ids: [OWN-01]}]"))
    with pytest.raises(ProfileError, match=r"once\.yml:6: requirements\[0\]\.bound: value 'two'"):
        load_requirements(file, METRICS)


def test_a_requirement_that_the_scenario_does_not_answer_is_shown_where_it_is_included(write: Write) -> None:
    text = requirements("mine", "\n  - from: dune-scans\n    ids:\n      - SCAN-05\n      - SCAN-01")
    profile = load_requirements(write("mine", text), METRICS)
    with pytest.raises(ProfileError, match=r"mine\.yml:9: include\[0\]\.ids\[1\]: SCAN-01 bounds"):
        check_yields(profile, load_scenario(INVENTORY / "scenarios" / "thread-scan.yml"))


def test_a_stored_profile_needs_no_other_file(write: Write) -> None:
    stored = write("mine", variant("mine", "dune-snb"))
    with pytest.raises(ProfileError, match=r"mine\.yml:3: extends: stands in a stored profile"):
        load_scenario(stored, stored=True)
    stored = write("other", requirements("other", "[{from: dune-scans, ids: [SCAN-05]}]"))
    with pytest.raises(ProfileError, match=r"other\.yml:5: include: stands in a stored profile"):
        load_requirements(stored, METRICS, stored=True)


def test_the_files_of_a_profile_are_known(write: Write) -> None:
    shutil.copy(INVENTORY / "scenarios" / "dune-snb.yml", write("x", "").parent)
    file = write("mine", variant("mine", "dune-snb"))
    assert [one.name for one in read_scenario(file).files] == ["mine.yml", "dune-snb.yml"]
    found = read_requirements(INVENTORY / "requirements" / "thread-scan.yml").files
    assert [one.name for one in found] == ["thread-scan.yml", "dune-scans.yml"]
