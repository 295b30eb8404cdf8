"""The users' YAML: what ships is right, and what is wrong is named by file, line, field and remedy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_model.errors import ProfileError
from bench_model.profiles import check_yields, load_candidate, load_metrics, load_requirements, load_scenario

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
    file = edited("scenarios/dune-snb.yml", "    seconds_per_point: 3", "    second_per_point: 3")
    with pytest.raises(ProfileError) as caught:
        load_scenario(file)
    line = line_with(file, "second_per_point")
    assert str(caught.value).startswith(f"{file}:{line}: workloads.block_scan.second_per_point: unknown key")
    assert "Did you mean 'seconds_per_point'?" in str(caught.value)


def test_a_missing_key_is_named_with_its_meaning(edited: Edit) -> None:
    file = edited("requirements/dune-snb.yml", "    severity: mandatory\n", "")
    with pytest.raises(ProfileError, match=r"requirements\[0\]: key 'severity' is missing\. Add it: an advisory"):
        load_requirements(file, METRICS)


def test_a_value_of_the_wrong_type_is_named(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "duration_s: 20", "duration_s: long")
    with pytest.raises(
        ProfileError, match=rf":{line_with(file, 'long')}: duration_s: value 'long' is not of type number"
    ):
        load_scenario(file)


def test_malformed_yaml_is_named_with_its_line(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "duration_s: 20", "duration_s: [20")
    with pytest.raises(ProfileError, match=rf"{file}:\d+: is not valid YAML"):
        load_scenario(file)


def test_a_key_that_stands_twice_is_refused(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "seed: 20211", "seed: 20211\nseed: 4")
    with pytest.raises(ProfileError, match="duplicate key"):
        load_scenario(file)


def test_a_bare_k_is_refused_as_a_size(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "ring_size: 64MiB", "ring_size: 64M")
    with pytest.raises(ProfileError, match=r"workloads\.snb_record\.ring_size.*never a bare k"):
        load_scenario(file)


def test_a_block_size_that_o_direct_cannot_write_is_refused(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "[4KiB, 8KiB", "[5568, 8KiB")
    with pytest.raises(ProfileError, match="5568 B is no multiple of 4 KiB"):
        load_scenario(file)


def test_a_metric_that_nobody_names_is_refused(edited: Edit) -> None:
    file = edited("requirements/dune-snb.yml", "snb_record.lost_superchunks", "snb_record.lost_superchunk")
    with pytest.raises(
        ProfileError, match=r"requirements\[0\]\.metric: metric 'snb_record\.lost_superchunk' is not in"
    ):
        load_requirements(file, METRICS)


def test_a_requirement_whose_metric_the_scenario_does_not_yield_is_refused(edited: Edit) -> None:
    scenario = load_scenario(edited("scenarios/dune-snb.yml", "      - snb_record.busy_episodes\n", ""))
    requirements = load_requirements(INVENTORY / "requirements" / "dune-snb.yml", METRICS)
    with pytest.raises(ProfileError) as caught:
        check_yields(requirements, scenario)
    line = line_with(INVENTORY / "requirements" / "dune-snb.yml", "snb_record.busy_episodes")
    assert f"dune-snb.yml:{line}: requirements[1].metric: SNB-02 bounds 'snb_record.busy_episodes'" in str(caught.value)


def test_a_unit_of_another_kind_is_refused(edited: Edit) -> None:
    file = edited("requirements/dune-snb.yml", "    unit: GB\n", "    unit: GB/s\n")
    with pytest.raises(ProfileError, match=r"requirements\[4\]\.unit: 'B' is a size and 'GB/s' a rate"):
        load_requirements(file, METRICS)


def test_a_requirement_number_that_stands_twice_is_refused(edited: Edit) -> None:
    file = edited("requirements/dune-snb.yml", "id: SNB-02", "id: SNB-01")
    with pytest.raises(ProfileError, match="id 'SNB-01' stands twice"):
        load_requirements(file, METRICS)


def test_an_unknown_candidate_and_an_absent_file_are_answered_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"has no candidate 'nemo'\. Known here: this-machine"):
        load_candidate(INVENTORY / "lab.yml", "nemo")
    with pytest.raises(ProfileError, match=r"there is no such file\. Known here: .*dune-snb, "):
        load_scenario(INVENTORY / "scenarios" / "nemo.yml")


def test_a_candidate_with_an_unknown_key_is_refused(edited: Edit) -> None:
    file = edited("lab.yml", "cpus_min: 2", "cpu_min: 2")
    with pytest.raises(
        ProfileError, match=r"bench_candidate\.identity\.cpu_min: unknown key 'cpu_min'. Did you mean 'cpus_min'"
    ):
        load_candidate(file, "this-machine")


def test_the_command_line_alters_scale_and_duration_everywhere() -> None:
    scenario = load_scenario(INVENTORY / "scenarios" / "dune-snb.yml").altered(0.02, 3.0)
    assert (scenario.demand.scale, scenario.demand.duration_s) == (0.02, 3.0)
    assert (scenario.document["scale"], scenario.document["duration_s"]) == (0.02, 3.0)


def test_a_count_is_observed_and_anything_else_is_estimated_unless_it_says_otherwise() -> None:
    assert METRICS["snb_record.lost_superchunks"].nature == "observed"
    assert METRICS["block_scan.large_block_throughput"].nature == "estimated"
    assert METRICS["snb_record.verified_fraction"].nature == "observed"


def test_a_guard_band_on_an_exact_bound_is_refused(edited: Edit) -> None:
    file = edited("requirements/dune-snb.yml", "    bound: 0\n", "    bound: 0\n    guard_band: 1\n")
    with pytest.raises(ProfileError, match="an exact value cannot be met by a distance"):
        load_requirements(file, METRICS)


def test_the_most_repetitions_cannot_be_fewer_than_the_least(edited: Edit) -> None:
    file = edited("scenarios/dune-snb.yml", "repetitions: 1", "repetitions: 3\nrepetitions_max: 2")
    with pytest.raises(ProfileError, match="is less than repetitions, 3"):
        load_scenario(file)
