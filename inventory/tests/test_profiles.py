"""The users' YAML: what ships is right, and what is wrong is named by file, line, field and remedy."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from daq_bench.bench_model.base.direction import larger_is_better
from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.evidence.measured import Measured
from daq_bench.bench_model.profiles import yaml_source
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import check_yields, load_requirements
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.profiles.yaml_source import (
    SCHEMAS,
    YamlSource,
    check,
    parsed,
    read_yaml,
    text_of,
    without_lines,
)
from daq_bench.bench_model.verdict.decision import decide, estimate
from daq_bench.candidate_kit.sizes import parse_size

INVENTORY = Path(__file__).resolve().parents[1]
METRICS = load_metrics(INVENTORY / "metrics.yml")
Edit = Callable[[str, str, str], Path]


@pytest.fixture
def edited(tmp_path: Path) -> Edit:
    """A copy of a shipped profile in which one piece of text is replaced by another."""

    def edit(name: str, old: str, new: str) -> Path:
        copy = tmp_path / Path(name).name
        shutil.copyfile(INVENTORY / name, copy)
        text = copy.read_text(encoding="utf-8")
        assert text.count(old) >= 1, f"{old!r} does not stand in {name}"
        copy.write_text(text.replace(old, new, 1), encoding="utf-8")
        return copy

    return edit


def line_with(file: Path, text: str) -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


@pytest.mark.parametrize("file", sorted((INVENTORY / "scenarios").glob("*.yml")), ids=lambda file: file.stem)
def test_every_shipped_scenario_loads_and_answers_a_shipped_profile(file: Path) -> None:
    scenario = load_scenario(file)
    if "snb_record" in scenario.workloads:
        check_yields(load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS), scenario)
        assert scenario.demand.real_bytes_per_s == 9.24288e9
        return
    wanted = scenario.document["requirement"]  # so that `make qualify SCENARIO=` needs no second name
    check_yields(load_requirements(INVENTORY / "requirements" / f"{wanted}.yml", METRICS), scenario)


def test_the_nominal_rate_is_offered_to_the_byte() -> None:
    demand = load_scenario(INVENTORY / "scenarios" / "snb-100s-nominal.yml").demand
    assert demand.offered_bytes_per_s == pytest.approx(10e9, rel=1e-15)
    assert (demand.real_bytes_per_s, demand.record_bytes) == (9.24288e9, 10**12)


def test_a_raw_drive_is_named_by_its_serial_and_has_no_folder(edited: Edit) -> None:
    comment = " # a folder of a machine in other use: a rehearsal, never a full qualification"
    folder = f"kind: scratch-file{comment}\n              directory: build/scratch"
    raw = edited("lab.yml", folder, 'kind: raw-device\n              drive_serial: "S1"\n              destroy: true')
    target = load_candidate(raw, "this-machine").target
    assert (target.is_raw, target.drive_serial, target.destroy, target.serials) == (True, "S1", True, ["S1"])
    for new, problem in (
        ("kind: raw-device", r"is a raw-device without drive_serial"),
        (
            'kind: raw-device\n              drive_serial: "S1"\n              directory: /mnt',
            r"a raw-device target has no `directory`",
        ),
        ("kind: scratch-file", r"has no key 'directory'"),
        (
            "kind: scratch-file\n              directory: build\n              destroy: true",
            r"is for raw-device targets",
        ),
    ):
        with pytest.raises(ProfileError, match=problem):
            load_candidate(edited("lab.yml", folder, new), "this-machine")


def test_the_shipped_candidate_is_this_machine() -> None:
    candidate = load_candidate(INVENTORY / "lab.yml", "this-machine")
    assert (candidate.connection, candidate.target.kind) == ("local", "scratch-file")
    assert candidate.transient_buffer_bytes == 2**30


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_known_one(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "    seconds_per_point: 0.5", "    second_per_point: 0.5")
    with pytest.raises(ProfileError) as caught:
        load_scenario(file)
    line = line_with(file, "second_per_point")
    assert str(caught.value).startswith(f"{file}:{line}: workloads.block_scan.second_per_point: unknown key")
    assert "Did you mean seconds_per_point?" in str(caught.value)


# file, what it says, what an editor made of it, and the complaint
SLIPS = {
    "missing key": ("requirements/dune-snb.yml", "    severity: mandatory\n", "",
                    r"requirements\[0\]: key 'severity' is missing\. Add it: an advisory"),
    "wrong type": ("scenarios/dune-snb.yml", "duration_s: 10", "duration_s: long",
                   r":{line}: duration_s: value 'long' is not a number\. Write a number"),
    "malformed YAML": ("scenarios/dune-snb.yml", "duration_s: 10", "duration_s: [10", r"{file}:\d+: is not valid YAML"),
    "key twice": ("scenarios/dune-snb.yml", "seed: 20211", "seed: 20211\nseed: 4", "duplicate key"),
    "bare M": ("scenarios/dune-snb.yml", "ring_size: 64MiB", "ring_size: 64M", r"workloads\.snb_record\.ring_size.*never a bare k"),
    "size that O_DIRECT cannot write": ("scenarios/dune-snb.yml", "[4KiB, 32KiB", "[5568, 32KiB", "5568 B is no multiple of 4 KiB"),
    "metric that nobody names": ("requirements/dune-snb.yml", "snb_record.lost_superchunks", "snb_record.lost_superchunk",
                                 r"requirements\[0\]\.metric: metric 'snb_record\.lost_superchunk' is not in"),
    "unit of another kind": ("requirements/dune-snb.yml", "    unit: GB\n", "    unit: GB/s\n",
                             r"requirements\[4\]\.unit: 'B' is a size and 'GB/s' a rate"),
    "requirement twice": ("requirements/dune-snb.yml", "id: SNB-02", "id: SNB-01", "id 'SNB-01' stands twice"),
    "guard band on an exact bound": ("requirements/dune-snb.yml", "    bound: 0\n", "    bound: 0\n    guard_band: 1\n",
                                     "an exact value cannot be met by a distance"),
    "most repetitions below the least": ("scenarios/dune-snb.yml", "repetitions: 1", "repetitions: 3\nrepetitions_max: 2",
                                         "is less than repetitions, 3"),
    "one block size": ("scenarios/dune-snb.yml", "block_sizes: [4KiB, 32KiB, 256KiB, 1MiB, 8MiB, 32MiB]", "block_sizes: [8MiB]",
                       r"block_scan\.block_sizes: has too few entries \(1\)\. Write at least 2"),
    "no repetition": ("scenarios/dune-snb.yml", "repetitions: 1", "repetitions: 0",
                      r"repetitions: value 0 is too small\. Write at least 1"),
    "an id in capitals": ("scenarios/dune-snb.yml", "id: dune-snb", "id: DUNE_SNB",
                          r"id: value 'DUNE_SNB' is not allowed\. Write lower-case letters, digits and hyphens"),
    "text for a whole number": ("scenarios/dune-snb.yml", "repetitions: 1", "repetitions: one",
                                r"repetitions: value 'one' is not a whole number\. Write a whole number"),
    "unknown key of a candidate": ("lab.yml", "cpus_min: 2", "cpu_min: 2",
                                   r"bench_candidate\.identity\.cpu_min: unknown key 'cpu_min'. Did you mean cpus_min"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "complaint"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_named_with_its_place(edited: Edit, name: str, old: str, new: str, complaint: str) -> None:
    file = edited(name, old, new)
    wanted = complaint.replace("{file}", str(file))
    if "{line}" in wanted:
        wanted = wanted.replace("{line}", str(line_with(file, new)))
    with pytest.raises(ProfileError, match=wanted):
        if name == "lab.yml":
            load_candidate(file, "this-machine")
        elif name.startswith("scenarios"):
            load_scenario(file)
        else:
            load_requirements(file, METRICS)


def test_a_requirement_whose_metric_the_scenario_does_not_yield_is_refused(edited: Edit) -> None:
    scenario = load_scenario(edited("scenarios/dune-snb.yml", "      - snb_record.busy_episodes\n", ""))
    requirements = load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS)
    with pytest.raises(ProfileError) as caught:
        check_yields(requirements, scenario)
    line = line_with(INVENTORY / "requirements" / "dune-snb.yml", "snb_record.busy_episodes")
    assert f"dune-snb.yml:{line}: requirements[1].metric: SNB-02 bounds 'snb_record.busy_episodes'" in str(caught.value)


def test_an_unknown_candidate_and_an_absent_file_are_answered_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"has no candidate 'nemo'\. Known: this-machine"):
        load_candidate(INVENTORY / "lab.yml", "nemo")
    mine = tmp_path / "lab.yml"
    mine.write_text(SHARED.format(first="", second="{kind: filesystem, directory: /b}"), encoding="utf-8")
    with pytest.raises(
        ProfileError, match=r"Known: one\. Where none is named it is this-machine: name yours with --cand"
    ):
        load_candidate(mine, "this-machine")
    with pytest.raises(
        ProfileError,
        match=r"there is no such file\. No name is near among the \d+ known ones; `daq-bench list \w+` lists them",
    ):
        load_scenario(INVENTORY / "scenarios" / "nemo.yml")


def test_the_command_line_alters_scale_and_duration_everywhere() -> None:
    scenario = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml").altered(0.02, 3.0)
    assert (scenario.demand.scale, scenario.demand.duration_s) == (0.02, 3.0)
    assert (scenario.document["scale"], scenario.document["duration_s"]) == (0.02, 3.0)


def test_a_count_is_observed_and_anything_else_is_estimated_unless_it_says_otherwise() -> None:
    assert METRICS["snb_record.lost_superchunks"].nature == "observed"
    assert METRICS["block_scan.large_block_throughput"].nature == "estimated"
    assert METRICS["snb_record.verified_fraction"].nature == "observed"


def test_a_share_of_the_load_that_nobody_buys_for_is_refused(edited: Edit) -> None:
    for value, refused in (("1.0e-9", True), ("0.0005", True), ("0.01", False)):
        file = edited("requirements/dune-snb.yml", "scale_min: 1", f"scale_min: {value}")
        if refused:
            with pytest.raises(ProfileError, match=r"scale_min: .*Write at least 0\.001"):
                load_requirements(file, METRICS)
        else:
            assert load_requirements(file, METRICS).conditions.scale_min == float(value)


NO_NUMBERS = (".inf", "-.inf", ".nan", ".NaN", "1e400", "-1e999", "1" + "0" * 400, "9" * 5000)
NUMBERS = [
    ("requirements/dune-snb.yml", "bound: 9.24288", "bound: "),
    ("requirements/dune-snb.yml", "bound: 0", "bound: 0\n    guard_band: "),
    ("requirements/dune-snb.yml", "scale_min: 1", "scale_min: "),
    ("requirements/dune-snb.yml", "duration_s: 100", "duration_s: "),
    ("requirements/dune-snb.yml", "superchunk_rate_hz: 166000", "superchunk_rate_hz: "),
    ("scenarios/dune-snb.yml", "scale: 0.1", "scale: "),
    ("scenarios/dune-snb.yml", "duration_s: 10", "duration_s: "),
    ("scenarios/dune-snb.yml", "seed: 20211", "seed: "),
    ("scenarios/dune-snb.yml", "seconds_per_point: 0.5", "seconds_per_point: "),
    ("scenarios/dune-snb.yml", "ring_size: 64MiB", "ring_size: "),
    ("lab.yml", "cpus_min: 2", "cpus_min: "),
    ("metrics.yml", "unit: count", "unit: "),
]


def load_any(file: Path) -> None:
    """Loads `file` as the kind of users' file that it is a copy of."""
    if file.name == "lab.yml":
        load_candidate(file, "this-machine")
    elif file.name == "metrics.yml":
        load_metrics(file)
    elif "requirements:" in file.read_text(encoding="utf-8"):
        load_requirements(file, METRICS)
    else:
        load_scenario(file)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: value[:6])
@pytest.mark.parametrize(("name", "old", "new"), NUMBERS, ids=lambda text: text.split("\n")[-1][:30])
def test_no_number_of_any_document_is_infinite_or_none(edited: Edit, name: str, old: str, new: str, value: str) -> None:
    file = edited(name, old, new + value)
    line = line_with(file, (new + value).split("\n")[-1])
    with pytest.raises(ProfileError, match=rf"^{file}:{line}: "):
        load_any(file)


@pytest.mark.parametrize("value", ["0", "-1", "true", "yes", "null", "[1]", "'1'", "&a true"])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("requirements/dune-snb.yml", "scale_min: 1", "scale_min: "),
        ("scenarios/dune-snb.yml", "scale: 0.1", "scale: "),
        ("scenarios/dune-snb.yml", "duration_s: 10", "duration_s: "),
        ("scenarios/dune-snb.yml", "repetitions: 1", "repetitions: "),
        ("scenarios/dune-snb.yml", "links: 10", "links: "),
        ("scenarios/dune-snb.yml", "superchunk_rate_hz: 166000", "superchunk_rate_hz: "),
    ],
)
def test_a_number_that_means_nothing_is_refused(edited: Edit, name: str, old: str, new: str, value: str) -> None:
    file = edited(name, old, new + value)
    with pytest.raises(ProfileError, match=rf"^{file}:{line_with(file, new + value)}: "):
        load_any(file)


@pytest.mark.parametrize("value", ["true", "'9.2'", "[9.2]", "null", "&a true"])
def test_a_bound_is_a_number_or_the_candidates_own(edited: Edit, value: str) -> None:
    with pytest.raises(ProfileError, match=r"requirements\[6\]\.bound"):
        load_requirements(edited("requirements/dune-snb.yml", "bound: 9.24288", f"bound: {value}"), METRICS)


@pytest.mark.parametrize("unit", ["K", "degC"])
def test_a_distance_between_temperatures_is_in_kelvin_however_it_was_written(edited: Edit, unit: str) -> None:
    """1 degC between two temperatures is 1 K; a temperature itself is never in K."""
    profile = load_requirements(edited("requirements/thermal.yml", "unit: K", f"unit: {unit}"), METRICS)
    headroom = [one for one in profile.requirements if one.metric.endswith("headroom")]
    assert headroom and {one.unit for one in headroom} == {"K"}


@pytest.mark.parametrize(("key", "option"), [("scale", "--scale"), ("duration_s", "--duration")])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 0.0, -1.0, 1e9])
def test_the_command_line_cannot_ask_for_no_number_either(key: str, option: str, value: float) -> None:
    scenario = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml")
    with pytest.raises(BenchError, match=rf"{option} .* was asked for; it must be above 0"):
        scenario.altered(**{"scale": None, "duration_s": None, key: value})


BOMB = "a: &a [1, 1]\n" + "".join(f"{name}: &{name} [*{of}, *{of}, *{of}]\n" for of, name in pairwise("abcdefghij"))
HOSTILE = {
    "no such day": ("seed: 1\nday: 2026-02-30\n", 2, "day is out of range"),
    "no such month": ("seed: 1\nday: 2026-13-01\n", 2, "month must be in 1..12"),
    "deep brackets": ("seed: 1\ndeep: " + "[" * 20_000, 2, "nested more than"),
    "deep braces": ("deep: " + "{a: " * 5000, 1, "nested more than"),
    "deep lines": ("\n".join(" " * depth + "a:" for depth in range(500)), 40, "nested more than"),
    "deep dashes": ("- " * 5000, 1, "nested more than"),
    "alias bomb": (BOMB, 2, "an alias within an anchored part"),
    "its own part": ("a: &a [*a]", 1, "an alias within an anchored part"),
    "many aliases": ("a: &a 1\nb: [" + "*a, " * 40 + "]", 2, "more than 32 aliases"),
    "many entries": ("a: [" + "1, " * 100_000 + "]", 1, "is larger than"),
    "many lines": ("# nothing\n" * 30_000, 30_001, "is larger than"),
    "large": ("a: " + "x" * 10**6, 1, "is larger than"),
    "escape": ('a: "\\e[31m"', 1, "a character that is not shown"),
    "right to left": ('a: "\\u202exslx"', 1, "a character that is not shown"),
    "nul": ('a: "\\0"', 1, "a character that is not shown"),
    "raw nul": ("a: 1\nb: \0", 2, "not allowed"),
    "short deep brackets": ("seed: 1\ndeep: " + "[" * 5000, 2, "nested more than"),
    "many anchors": ("".join(f"a{n}: &n{n} 1\n" for n in range(5000)), 33, "more than 32 anchors"),
    "no such truth": ("a: !!bool x", 1, "is not valid YAML"),
    "an invalid tag": ("a: !!int abc", 1, "invalid literal"),
    "an infinite key": (".inf: 1", 1, "no finite number"),
}


@pytest.mark.parametrize(("text", "line", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_at_once_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    file = tmp_path / "hostile.yml"
    file.write_text(text, encoding="utf-8")
    begin = time.process_time()
    with pytest.raises(ProfileError, match=rf"^{file}(:\d+)?: .*{problem}") as caught:
        load_scenario(file)
    assert time.process_time() - begin < 2  # half a second here: of CPU time, since others use the machine too
    assert caught.value.place.line == line


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.yml"
    os.mkfifo(fifo)
    for file in (fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(ProfileError, match="is not a regular file"):
            load_scenario(file)


SHARED = """
all:
  children:
    candidates:
      hosts:
        one:
          bench_candidate:
            description: d
            identity: {{architectures: [x86_64]}}
            transient_buffer: 1GiB
            tuning: {{}}
            targets:
              first: {{kind: filesystem, directory: /a, storage: {{drives: ["S1"], destroy: true, filesystem: xfs}}{first}}}
              second: {second}
"""
BUILT = '{kind: filesystem, directory: /b, storage: {drives: ["S1"], destroy: true, filesystem: xfs}%s}'


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ("", BUILT % "", True),
        ("", BUILT % ", comparison_only: true", False),
        ("", '{kind: raw-device, drive_serial: "S1", destroy: true}', True),
        ("", '{kind: raw-device, drive_serial: " s1", destroy: true}', True),
        ("", '{kind: filesystem, directory: /b, drive_serial: "S1", comparison_only: true}', True),
        ("", '{kind: filesystem, directory: /b, drive_serial: "S2"}', False),
        ("", BUILT.replace('["S1"]', '[{serial: "S1", wwn: "eui.2"}]') % "", True),
    ],
)
def test_a_drive_that_is_erased_is_in_one_target_or_in_alternatives(
    tmp_path: Path, first: str, second: str, refused: bool
) -> None:
    file = tmp_path / "lab.yml"
    file.write_text(SHARED.format(first=first, second=second), encoding="utf-8")
    if not refused:
        assert len(load_candidate(file, "one").targets) == 2
        return
    with pytest.raises(ProfileError, match=r"drive .*one of them erases it") as caught:
        load_candidate(file, "one")
    assert caught.value.place.line == 14


KNOWN = "identity: {{architectures: [x86_64], drives: [{drives}]}}"


@pytest.mark.parametrize(
    ("drives", "second", "wrong"),
    [
        ("{serial: S1}, {serial: X0A0A002}", '{kind: raw-device, drive_serial: "X0A0A002", destroy: true}', ""),
        ("{serial: S1}, {serial: X0A0A002}", '{kind: raw-device, drive_serial: " x0a0a002", destroy: true}', ""),
        ("{serial: S1}, {serial: X0A0A002}", '{kind: raw-device, drive_serial: "X0A0A003", destroy: true}', "X0A0A003"),
        (
            "{serial: S1}, {serial: X0A0A003}",
            "{kind: filesystem, directory: /b, storage: {drives: [x0a0a003], destroy: true, filesystem: xfs}}",
            "x0a0a003",
        ),  # the storage role would look for it to the letter
        ("{serial: S1}", '{kind: filesystem, directory: /b, drive_serial: "X0A0A003"}', ""),  # erases nothing
        (
            "{serial: X0A0A002}",
            '{kind: filesystem, directory: /b, drive_serial: "X0A0A002"}',
            "S1",
        ),  # of the first target
    ],
)
def test_what_is_erased_is_among_the_drives_that_the_machine_is_said_to_have(
    tmp_path: Path, drives: str, second: str, wrong: str
) -> None:
    file = tmp_path / "lab.yml"
    text = SHARED.replace("identity: {{architectures: [x86_64]}}", KNOWN).format(first="", second=second, drives=drives)
    file.write_text(text, encoding="utf-8")
    if not wrong:
        assert load_candidate(file, "one").targets[1].serials
        return
    with pytest.raises(ProfileError, match=rf"erases drive '{wrong}', which identity.drives does not have") as caught:
        load_candidate(file, "one")
    assert ("Did you mean X0A0A002?" in str(caught.value)) is (wrong == "X0A0A003")


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("transient_buffer: 1GiB", "transient_buffer: 250", "a buffer of 250 holds no superchunk"),
        ("architectures: [x86_64]", "memory_min: 250", "no server has a memory of 250"),
        ("architectures: [x86_64]", "memory_min: 400000TiB", "no server has a memory of 400000TiB"),
        ("architectures: [x86_64]", "drives: [{serial: s, capacity: 750}]", "no drive has a capacity of 750"),
        ("architectures: [x86_64]", "cpus_min: 100000", "100000"),
        ("architectures: [x86_64]", "architectures: [amd64]", "amd64"),
    ],
)
def test_a_size_that_no_server_has_is_refused(tmp_path: Path, old: str, new: str, wrong: str) -> None:
    second = "{kind: filesystem, directory: /b}"
    text = SHARED.format(first="", second=second)
    file = tmp_path / "lab.yml"
    file.write_text(text, encoding="utf-8")
    assert load_candidate(file, "one").name == "one"
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ProfileError, match=wrong):
        load_candidate(file, "one")


def test_an_anchor_or_two_are_nobodys_harm(tmp_path: Path) -> None:
    file = tmp_path / "lab.yml"
    file.write_text(
        "shared: &shared {a: 1, b: &yes true}\none: *shared\ntwo: {<<: *shared, c: *yes}\n", encoding="utf-8"
    )
    data = plain(read_yaml(file).data)
    assert data["two"] == {"c": True, "a": 1, "b": True}
    assert data["two"]["c"] is True


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("bound: 9.24288", "bound: 0", "at least 0 GB/s is met by anything"),
        ("bound: 9.24288", "bound: -9.2", "at least -9.2 GB/s is met by anything"),
        ("bound: 1000", "bound: -1", "nothing measures -1 ms"),
    ],
)
def test_a_bound_that_decides_nothing_is_refused(edited: Edit, old: str, new: str, problem: str) -> None:
    with pytest.raises(ProfileError, match=rf"\.bound: {problem}"):
        load_requirements(edited("requirements/dune-snb.yml", old, new), METRICS)


SHARE = 'comparison: equal\n    bound: 1\n    unit: "1"\n    statistic: min'


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            SHARE,
            'comparison: at_least\n    bound: 99.9\n    unit: "1"\n    statistic: min',
            "bound: nothing measures 99.9",
        ),
        (
            SHARE,
            'comparison: at_most\n    bound: 1\n    unit: "1"\n    statistic: max',
            "bound: at most 1 is met by anything",
        ),
        (
            SHARE,
            'comparison: at_least\n    bound: 0\n    unit: "1"\n    statistic: min',
            "bound: at least 0 is met by anything",
        ),
        (
            SHARE,
            "comparison: at_least\n    bound: 0.999\n    unit: percent\n    statistic: min",
            "bound: 0.999 percent of a share asks for next to nothing",
        ),
        (SHARE, f"{SHARE}\n    scales_with_load: true", "scales_with_load: a ratio is not smaller at a smaller load"),
        (
            "bound: 1000",
            "guard_band: 2000\n    bound: 1000",
            "guard_band: at most 1000 ms by at least 2000 is met by nothing",
        ),
        ("comparison: equal\n    bound: 0", "comparison: equal\n    bound: 0.5", "bound: nothing counts 0.5"),
        (
            "comparison: at_least\n    bound: 9.24288\n    unit: GB/s\n    statistic: min",
            "comparison: equal\n    bound: 9.24288\n    unit: GB/s\n    statistic: min",
            "comparison: no measured block_scan.large_block_throughput equals a bound exactly",
        ),
        (
            "comparison: at_most\n    bound: 1000",
            "comparison: equal\n    bound: 1000",
            "comparison: no measured snb_record.durable_latency_p99_9 equals a bound exactly",
        ),
    ],
)
def test_a_bound_that_no_value_or_every_value_meets_is_refused(edited: Edit, old: str, new: str, problem: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(problem)):
        load_requirements(edited("requirements/dune-snb.yml", old, new), METRICS)


def test_a_share_may_be_asked_for_in_percent(edited: Edit) -> None:
    new = "comparison: at_least\n    bound: 99.9\n    unit: percent\n    statistic: min"
    assert load_requirements(edited("requirements/dune-snb.yml", SHARE, new), METRICS).requirements[2].bound == 99.9


@pytest.mark.parametrize(
    ("comparison", "bound", "unit", "severity", "refused"),
    [
        ("at_most", 9.2, "GB/s", "mandatory", True),
        ("at_most", 9300, "MB/s", "mandatory", False),
        ("at_most", 8.6, "GiB/s", "mandatory", True),
        ("at_most", 9.2, "GB/s", "advisory", False),
        ("at_least", 20, "GB/s", "mandatory", False),
    ],
)
def test_mandatory_bounds_that_exclude_each_other_are_refused(
    edited: Edit, comparison: str, bound: float, unit: str, severity: str, refused: bool
) -> None:
    statistic = "min" if comparison == "at_least" else "max"
    other = (
        "requirements:\n  - {id: OWN-01, text: t, metric: block_scan.large_block_throughput, "
        f"comparison: {comparison}, bound: {bound}, unit: {unit}, statistic: {statistic}, "
        f"severity: {severity}, source: own}}"
    )
    file = edited("requirements/dune-snb.yml", "requirements:", other)
    if not refused:
        assert load_requirements(file, METRICS)
        return
    with pytest.raises(ProfileError, match="OWN-01 and SNB-07 contradict each other"):
        load_requirements(file, METRICS)


LOST, RATE, LATENCY = "snb_record.lost_superchunks", "saturation.sustained_rate", "snb_record.write_latency_p99_9"


def _bounded(edited: Edit, bounds: Sequence[tuple[str, str, object, str]], severity: str = "mandatory") -> Path:
    statistics = {"at_least": "min", "at_most": "max", "equal": "max"}
    rows = [
        f'  - {{id: OWN-0{number}, text: t, metric: {metric}, comparison: {comparison}, bound: {bound}, unit: "{unit}", '
        f"statistic: {statistics[comparison]}, severity: {severity}, source: own}}"
        for number, (metric, comparison, bound, unit) in enumerate(bounds, 1)
    ]
    return edited("requirements/dune-snb.yml", "requirements:", "\n".join(["requirements:", *rows]))


@pytest.mark.parametrize(
    ("metric", "comparison", "bound", "unit", "words"),
    [
        (LATENCY, "at_least", 1, "us", "at least 1 us is missed by the better values: less is better of"),
        (RATE, "at_most", 3, "GB/s", "at most 3 GB/s is missed by the better values: more is better of"),
        (RATE, "at_most", 3, "GB/s", "Use at_least, or make it advisory; for a range, add a mandatory at_least to it"),
        (
            LOST,
            "equal",
            5,
            "count",
            "equal 5 count is missed by the better values: less .*Use at_most, or make it advisory$",
        ),
        ("saturation.bytes_before_cliff", "equal", 1, "TB", "equal 1 TB is missed by the better values: more"),
        ("lan.incast_fairness", "equal", 0.9, "1", "equal 0.9 is missed by the better values: more"),
        (
            "snb_record.fresh.transient_buffer_needed",
            "at_least",
            "candidate.transient_buffer",
            "GiB",
            "at least candidate",
        ),
        ("wear.spare_margin_percent", "at_most", 50, "percent", "at most 50 percent is missed"),
        ("snb_record.drive_critical_temperature_headroom", "at_most", 5, "K", "at most 5 K is missed"),
    ],
)
def test_a_mandatory_bound_that_only_worse_values_meet_is_refused(
    edited: Edit, metric: str, comparison: str, bound: object, unit: str, words: str
) -> None:
    wrong = [(metric, comparison, bound, unit)]
    with pytest.raises(ProfileError, match=words) as refused:
        load_requirements(_bounded(edited, wrong), METRICS)
    assert re.search(r"dune-snb\.yml:\d+: requirements\[0\]\.comparison: ", str(refused.value))
    assert load_requirements(_bounded(edited, wrong, "advisory"), METRICS), "it decides nothing"
    assert load_requirements(_bounded(edited, wrong), METRICS, stored=True), "a bundle is judged by what it was asked"


@pytest.mark.parametrize(
    "bounds",
    [
        [(RATE, "at_least", 9.3, "GB/s"), (RATE, "at_most", 12, "GB/s")],  # what is faster came from memory
        [
            ("snb_record.power_mean", "at_least", 50, "W"),
            ("snb_record.power_mean", "at_most", 900, "W"),
        ],  # does the meter read?
        [("surroundings.inlet_temperature", "at_least", 30, "degC")],  # a hot aisle is a condition of the test
        [("surroundings.inlet_temperature", "at_most", 27, "degC")],
        [("cost.written", "at_least", 10, "TB")],
        [("thread_scan.ratio_32KiB", "at_most", 1.5, "1")],
        [("saturation.unwritten", "equal", 0, "B")],
        [("lan.incast_fairness", "equal", 1, "1")],
        [("endurance.available_spare", "equal", 100, "percent")],
    ],
)
def test_a_range_and_a_bound_on_what_no_candidate_is_better_by_are_meant(
    edited: Edit, bounds: list[tuple[str, str, object, str]]
) -> None:
    assert load_requirements(_bounded(edited, bounds), METRICS)


@pytest.mark.parametrize("bound", ["1.0e+308", "1.0e+22", "-1.0e+308"])
@pytest.mark.parametrize("key", ["bound", "guard_band"])
def test_a_number_beyond_anything_that_is_measured_is_refused(edited: Edit, key: str, bound: str) -> None:
    values = {"bound": "9.3", "guard_band": "0"} | {key: bound}
    row = f"{values['bound']}, guard_band: {values['guard_band']}"
    file = _bounded(edited, [(RATE, "at_least", row, "GB/s")])
    with pytest.raises(ProfileError, match=rf"\.{key}: .*(nothing measures|too small|anything)"):
        load_requirements(file, METRICS)


HEADROOM, POWER, USED = "snb_record.drive_temperature_headroom", "snb_record.power_mean", "wear.used_percent"
SPARE = "wear.spare_margin_percent"


@pytest.mark.parametrize(
    ("metric", "comparison", "bound", "unit", "problem"),
    [
        (POWER, "at_most", 0, "W", "at most 0 W is met by nothing"),
        (POWER, "at_most", -1, "W", "at most -1 W is met by nothing"),
        (HEADROOM, "at_least", -100, "K", "at least -100 K is met by anything"),
        (
            HEADROOM,
            "at_least",
            -16,
            "K",
            "at least -16 K is met by anything. Mind the unit: write a number from -15 K to 80 K",
        ),
        ("thermal.temperature_headroom", "at_least", -16, "K", "at least -16 K is met by anything"),
        ("snb_record.drive_critical_temperature_headroom", "at_least", -1, "K", "at least -1 K is met by anything"),
        (SPARE, "at_least", -1, "percent", "at least -1 percent is met by anything"),
        (SPARE, "at_least", 101, "percent", "at least 101 percent is met by nothing"),
        ("endurance.available_spare", "at_least", 0, "percent", "at least 0 percent is met by anything"),
        (HEADROOM, "at_least", 500, "K", "at least 500 K is met by nothing"),
        ("surroundings.inlet_temperature", "at_least", -280, "degC", "at least -280 degC is met by anything"),
        (RATE, "at_least", "1.0e-310", "B/s", "at least 1e-310 B/s is met by anything. Mind the unit"),
        (RATE, "at_least", "1.0e+9", "GB/s", "at least 1e+09 GB/s is met by nothing"),
        ("saturation.duration", "at_most", "1.0e+9", "s", "at most 1e+09 s is met by anything"),
        (LATENCY, "at_most", 0, "us", "at most 0 us is met by nothing"),
        (LATENCY, "equal", 0, "us", "no measured snb_record.write_latency_p99_9 equals a bound exactly"),
        ("cost.hours", "at_most", 0, "h", "at most 0 h is met by nothing"),
        ("raid_vs_3dxp.throughput_ratio", "at_least", 0, "1", "at least 0 is met by anything"),
        ("raid_vs_3dxp.latency_p99_9_ratio", "at_most", 0, "1", "at most 0 is met by nothing"),
        (LOST, "at_most", 0.5, "count", "nothing counts 0.5"),
        (USED, "at_most", 300, "percent", "at most 300 percent is met by anything"),
        (USED, "at_most", -3, "percent", "at most -3 percent is met by nothing"),
    ],
)
def test_a_bound_outside_what_its_unit_allows_is_refused(
    edited: Edit, metric: str, comparison: str, bound: object, unit: str, problem: str
) -> None:
    file = _bounded(edited, [(metric, comparison, bound, unit)])
    with pytest.raises(ProfileError, match=rf"dune-snb\.yml:\d+: requirements\[0\]\.\w+: {re.escape(problem)}"):
        load_requirements(file, METRICS)
    assert load_requirements(file, {name: replace(one, bounds=None) for name, one in METRICS.items()}, stored=True)


@pytest.mark.parametrize(
    "bound",
    [
        (HEADROOM, "at_least", 0, "K"),  # up to the warning itself
        (HEADROOM, "at_least", -5, "K"),  # above it, while a second requirement holds the critical temperature
        (HEADROOM, "at_least", -15, "K"),  # as far as a drive's critical temperature is above its warning
        ("snb_record.drive_critical_temperature_headroom", "at_least", 0, "K"),
        (SPARE, "at_least", 0, "percent"),  # not below the drive's own threshold
        (SPARE, "at_least", 90, "percent"),
        (RATE, "at_least", 0.092, "MB/s"),  # one link at a hundredth of the load
        (LOST, "at_most", 0, "count"),
        ("throttling.lost_bytes", "at_most", 0, "B"),
        ("dips.deepest", "at_most", 0, "1"),
        ("lan.incast_sent_again", "at_most", 0.0001, "percent"),
        (POWER, "at_most", 12, "W"),  # a computer on one board
        ("cost.hours", "at_most", 2000, "h"),
        ("saturation.duration", "at_most", 7, "d"),
        ("wear.percent_per_pb", "at_most", 500, "percent"),  # a drive of 200 TBW
        (USED, "at_most", 100, "percent"),
        ("raid_vs_3dxp.endurance", "at_least", 200_000, "TB"),
    ],
)
def test_a_low_demand_and_a_small_server_are_meant(edited: Edit, bound: tuple[str, str, object, str]) -> None:
    assert load_requirements(_bounded(edited, [bound]), METRICS)


def test_a_headroom_that_lies_at_its_bound_is_undecided_since_sensors_tell_whole_kelvins() -> None:
    shipped = [
        one
        for file in sorted((INVENTORY / "requirements").glob("*.yml"))
        for one in load_requirements(file, METRICS).requirements
        if METRICS[one.metric].unit == "K"
    ]
    assert {one.id for one in shipped} >= {"TH-03", "SNB-06", "SNB-10"}
    for one in shipped:
        assert isinstance(one.bound, (int, float))
        for more, decision in ((-1, "missed"), (0, "undecided"), (1, "met")):
            found = estimate(one, METRICS[one.metric], Measured((one.bound + more,)), 1)
            assert decide(one.comparison, one.bound, one.guard_band, found).decision == decision, (one.id, more)


def test_the_unit_of_every_metric_has_its_bounds() -> None:
    for one in METRICS.values():
        assert one.bounds, f"{one.name}: metrics.yml has no bounds for unit {one.unit!r}"
        assert one.bounds[0] < one.bounds[1], one.unit


def test_every_metric_says_which_values_are_better_and_no_shipped_bound_contradicts_it() -> None:
    assert [one.name for one in METRICS.values() if one.better is None] == []
    for file in sorted((INVENTORY / "requirements").glob("*.yml")):
        for one in load_requirements(file, METRICS).requirements:
            if one.comparison != "equal":
                by_bound = larger_is_better(None, one.comparison)
                assert larger_is_better(METRICS[one.metric].better, one.comparison) == by_bound, (file.name, one.id)


@pytest.mark.parametrize(
    "size", ["9" * 400 + "GB", "9223372036854775808", "1e400", "inf", "nan GB", "-1 GB", "\u0661 GB", "True", "1.5B"]
)
def test_a_size_that_no_file_can_have_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|is more than|has unit|is not a whole"):
        parse_size(size)


def test_a_size_is_exact_beyond_what_a_float_holds() -> None:
    assert parse_size("9007199254740993 B") == 2**53 + 1
    assert parse_size("0.1 GB") == 100_000_000


FOLDERS = """
all:
  children:
    candidates:
      hosts:
        one:
          ansible_connection: {connection}
          bench_candidate:
            description: d
            identity: {{architectures: [x86_64]}}
            transient_buffer: 1GiB
            tuning: {{}}
            targets:
              first: {{kind: filesystem, directory: {first}}}
              second: {{kind: scratch-file, comparison_only: true, directory: {second}}}
"""


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("/srv/a", "/srv/a", "is the folder of"),
        ("/srv/a", "/srv/a/", "is the folder of"),
        ("/srv/a", "//srv/./b/../a", "is the folder of"),
        ("/srv/a", "/srv/a/b", "lies in that of"),
        ("/srv/a/b", "/srv/x/../a", "holds that of"),
        ("build/scratch", "build/./scratch", "is the folder of"),
        ("build/scratch", "build/scratch/b", "lies in that of"),
        ("build/scratch", str(REPOSITORY / "build" / "scratch"), "is the folder of"),
        ("build/scratch", "../" * 30 + str(REPOSITORY / "build")[1:], "holds that of"),
        ("/srv/a", "/srv/ab", None),
        ("/srv/a", "/srv/a/../b", None),
        ("build/a", "/build/a", None),
    ],
)
@pytest.mark.parametrize("connection", ["local", "ssh"])
def test_no_target_lies_in_the_folder_of_another(
    tmp_path: Path, first: str, second: str, said: str | None, connection: str
) -> None:
    file = tmp_path / "lab.yml"
    file.write_text(FOLDERS.format(connection=connection, first=first, second=second), encoding="utf-8")
    if said is None:
        assert len(load_candidate(file, "one").targets) == 2
        return
    with pytest.raises(ProfileError) as caught:
        load_candidate(file, "one")
    assert str(caught.value) == (
        f"{file}:15: all.children.candidates.hosts.one.bench_candidate.targets.second.directory: {second} {said} target 'first' "
        f"(line 14: {first}). Give each target a folder beside the other's: a run would take the other's files for its own"
    )


@pytest.mark.parametrize(("connection", "refused"), [("local", True), ("ssh", False)])
def test_links_are_followed_on_this_machine_alone(tmp_path: Path, connection: str, refused: bool) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    file = tmp_path / "lab.yml"
    for second, is_same in (("link/b", True), ("loop", False)):
        text = FOLDERS.format(connection=connection, first=tmp_path / "real", second=tmp_path / second)
        file.write_text(text, encoding="utf-8")
        if refused and is_same:
            with pytest.raises(ProfileError, match="lies in that of target 'first'"):
                load_candidate(file, "one")
        else:
            assert len(load_candidate(file, "one").targets) == 2


@pytest.mark.parametrize(
    ("second", "refused"),
    [
        (BUILT % ", comparison_only: true", False),
        ('{kind: filesystem, directory: /b, storage: {drives: ["S2"], destroy: true, filesystem: xfs}}', True),
        ("{kind: filesystem, directory: /b, comparison_only: true}", True),
        ('{kind: raw-device, drive_serial: "S2", destroy: true}', False),
    ],
)
def test_alternatives_on_the_same_drives_may_share_a_folder(tmp_path: Path, second: str, refused: bool) -> None:
    file = tmp_path / "lab.yml"
    text = SHARED.format(first="", second=second).replace("directory: /a", "directory: /b")
    file.write_text(text, encoding="utf-8")
    if refused:
        with pytest.raises(ProfileError, match="/b is the folder of target 'first'"):
            load_candidate(file, "one")
    else:
        assert len(load_candidate(file, "one").targets) == 2


def test_libyaml_reads_our_metrics_as_the_reader_with_lines_does_and_nobody_elses(edited: Edit) -> None:
    file = INVENTORY / "metrics.yml"
    quick, slow = without_lines(file, text_of(file)).data, parsed(file, text_of(file)).data
    assert type(quick) is dict and repr(quick) == repr(plain(slow))
    other = edited("metrics.yml", "description: ", "description: other ")
    assert type(without_lines(other, text_of(other)).data) is type(slow)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    unit: B/s\n", "    unit: B/s\n    unit: B\n", "found duplicate key"),
        ("    unit: B/s\n", "    unti: B/s\n", "unknown key 'unti'"),
        ("    unit: B/s\n", "    unit: [B/s\n", "is not valid YAML"),
        ("    description: Throughput", "    description: \u202e", "has a character that is not shown"),
        ("version: 1\n", "version: .nan\n", "is no finite number"),
    ],
)
def test_what_is_wrong_in_our_metrics_is_named_with_its_line(
    edited: Edit, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    """As somebody finds it who adds a metric: libyaml alone would take a key that stands twice, and knows no lines."""
    file = edited("metrics.yml", old, new)
    line = text_of(INVENTORY / "metrics.yml").partition(old)[0].count("\n") + 1
    monkeypatch.setattr(yaml_source, "METRICS", file)
    with pytest.raises(ProfileError, match=message) as refused:
        load_metrics(file)
    assert abs(refused.value.place.line - line) <= 1


SHAPES = frozenset(
    {"$ref", "additionalProperties", "allOf", "anyOf", "items", "oneOf", "prefixItems", "properties", "propertyNames"}
)
SAYS_NOTHING = frozenset(
    {"$comment", "$defs", "$id", "$schema", "default", "deprecated", "description", "examples", "title"}
)


def rules_of(schema: object) -> Iterator[tuple[str, object]]:
    """Yields each rule of a schema and of what it holds."""
    if not isinstance(schema, dict):
        return
    for name, rule in schema.items():
        yield name, rule
        inner = rule.values() if name in ("properties", "$defs") else rule if isinstance(rule, list) else [rule]
        for one in inner if name in SHAPES | {"$defs", "not"} else ():
            yield from rules_of(one)


BROKEN = {
    "const": 7, "maximum": 10**30, "minimum": -(10**30), "exclusiveMaximum": 10**30, "exclusiveMinimum": -(10**30), "minLength": "",
    "maxLength": 10**4 * "x", "minItems": [], "maxItems": 1000 * [1], "minProperties": {}, "pattern": "\u00e9 !",
    "maxProperties": dict.fromkeys("abcdefghij", 1), "uniqueItems": ["a", "a"], "enum": "\u00e9 !", "additionalProperties": {"\u00e9": 1},
    "required": {},
}  # fmt: skip


def test_no_rule_of_a_schema_is_told_in_the_validators_own_words() -> None:
    """Whatever rule a field breaks, the message names a remedy and holds nothing of what jsonschema would say."""
    rules = {
        (name, json.dumps(rule)) for file in sorted(SCHEMAS.glob("*.json")) for name, rule in rules_of(json.loads(file.read_text("utf-8")))
        if name not in SHAPES | SAYS_NOTHING and not name.startswith("x-")
    }  # fmt: skip
    assert {name for name, _ in rules} >= {"type", "minItems", "pattern", "dependentRequired", "not", "uniqueItems"}
    for name, text in sorted(rules):
        rule = json.loads(text)
        if name in ("not", "dependentRequired"):
            needed = rule["required"] if name == "not" else [next(iter(rule))]
            value: object = dict.fromkeys(needed, 1)
        elif name == "type":
            value = next(one for one, kind in ((None, "null"), ({}, "object"), ("x", "string")) if kind not in rule)
        else:
            value = BROKEN[name]
        schema = {"properties": {"field": {name: rule, "description": "what it is"}}}
        source = YamlSource(Path("own.yml"), {"field": value})
        raw = [one.message for one in Draft202012Validator(schema).iter_errors(source.data)]
        if not raw:  # allows whatever there is
            continue
        with pytest.raises(ProfileError) as caught:
            check(source, schema)
        assert not any(one in str(caught.value) for one in raw), (name, text)
        assert not caught.value.remedy.startswith("Correct it"), (name, text)
