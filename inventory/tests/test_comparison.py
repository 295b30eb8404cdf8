"""Tells which targets one run may compare: what cannot work is named by file, line, field and remedy, before anything is touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.compared_targets import check_compared, compared, compared_names, groups_of
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario

INVENTORY = Path(__file__).resolve().parents[1]
YAML_SAFE = YAML(typ="safe")
Entry = dict[str, Any]
Change = Callable[[Entry], None]


def profiles(
    folder: Path, inventory: Change = lambda entry: None, scenario: Change = lambda workload: None
) -> tuple[Scenario, Candidate, Path]:
    """The shipped emulated comparison on the shipped virtual candidate, changed."""
    lab, run = (
        YAML_SAFE.load(INVENTORY / "lab.yml"),
        load_scenario(INVENTORY / "scenarios/raid-vs-3dxp-emulated.yml").document,
    )
    inventory(lab["all"]["children"]["candidates"]["hosts"]["virtual"]["bench_candidate"])
    scenario(run["workloads"]["raid_vs_3dxp"])
    files = folder / "lab.yml", folder / "raid-vs-3dxp-emulated.yml"
    YAML_SAFE.dump(lab, files[0])
    YAML_SAFE.dump(run, files[1])
    return load_scenario(files[1]), load_candidate(files[0], "virtual"), files[0]


def line_with(file: Path, text: str, after: str = "") -> int:
    lines = file.read_text(encoding="utf-8").splitlines()
    start = next((number for number, line in enumerate(lines) if after in line), 0) if after else 0
    return next(number for number, line in enumerate(lines, start=1) if number > start and text in line)


def refused(folder: Path, **changes: Change) -> ProfileError:
    scenario, candidate, inventory = profiles(folder, **changes)
    with pytest.raises(ProfileError) as caught:
        check_compared(scenario, candidate, inventory)
    return caught.value


def test_the_shipped_comparisons_can_be_made() -> None:
    for scenario_id, name in (
        ("raid-vs-3dxp", "virtual"),
        ("raid-vs-3dxp-emulated", "virtual"),
        ("raid-vs-3dxp-rehearsal", "this-machine-twice"),
    ):
        scenario = load_scenario(INVENTORY / "scenarios" / f"{scenario_id}.yml")
        candidate = load_candidate(INVENTORY / "lab.yml", name)
        check_compared(scenario, candidate, INVENTORY / "lab.yml")


def test_sets_that_share_drives_follow_one_another_and_others_are_up_together(tmp_path: Path) -> None:
    scenario, candidate, _ = profiles(tmp_path)
    assert compared_names(scenario) == ["reference", "nand-raid0", "nand-raid5"]
    assert [[one.name for one in group] for group in compared(scenario, candidate).groups] == [
        ["nand-raid0"],
        ["nand-raid5"],
    ]
    by_name = {one.name: one for one in candidate.targets}
    mixed = groups_of([by_name["nand-raid0"], by_name["reference"], by_name["nand-raid5"]])
    assert [[one.name for one in group] for group in mixed] == [["nand-raid0", "reference"], ["nand-raid5"]]


def test_targets_for_comparisons_lengthen_no_other_run() -> None:
    assert load_candidate(INVENTORY / "lab.yml", "virtual").own_run_targets == ["reference", "nand-raid0"]


def test_an_unknown_target_is_named_with_its_line_and_the_known_ones(tmp_path: Path) -> None:
    error = refused(tmp_path, scenario=lambda workload: workload.update(sets=["nand-raid0", "nand-raid6"]))
    file = tmp_path / "raid-vs-3dxp-emulated.yml"
    assert str(error).startswith(
        f"{file}:{line_with(file, 'nand-raid6')}: workloads.raid_vs_3dxp.sets[1]: candidate 'virtual'"
    )
    assert "has no target 'nand-raid6'. Did you mean nand-raid5, nand-raid1 or nand-raid0?" in str(error)


def test_a_set_that_is_not_given_up_is_refused_with_its_drives(tmp_path: Path) -> None:
    error = refused(tmp_path, inventory=lambda entry: entry["targets"]["nand-raid5"]["storage"].pop("destroy"))
    file = tmp_path / "lab.yml"
    assert str(error).startswith(f"{file}:{line_with(file, 'storage:', after='nand-raid5:')}: ")
    assert "targets.nand-raid5.storage: does not give up its drives (VCNA0001, VCNA0002, VCNA0003)" in str(error)


def test_a_set_on_the_references_drive_is_refused(tmp_path: Path) -> None:
    def share(entry: Entry) -> None:
        entry["targets"]["nand-raid0"]["storage"]["drives"] = ["VCXP0001", "VCNA0002"]
        entry["targets"]["reference"]["comparison_only"] = True  # alternatives may share a drive

    error = refused(tmp_path, inventory=share)
    assert "targets.nand-raid0.storage.drives: uses VCXP0001, which is the drive of the reference 'reference'" in str(
        error
    )
    assert f"{tmp_path / 'lab.yml'}:" in str(error)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sets": ["nand-raid0", "reference"]}, r"sets\[1\]: is the reference itself"),
        ({"judged_set": "nand-raid1"}, "judged_set: 'nand-raid1' is not one of the sets"),
        ({"rounds": 3}, "rounds: 3 rounds do not balance the order. Write an even number"),
        ({"reference": "nand-raid1"}, "the reference has 2 drives"),
        (
            {"hazards": [{"set": "nand-raid0", "round": 9, "throttle_drive": "VCNA0001", "bandwidth_size": "4MB"}]},
            r"hazards\[0\].round: there are 4 rounds",
        ),
        (
            {"hazards": [{"set": "nand-raid0", "round": 1, "throttle_drive": "VCXP0001", "bandwidth_size": "4MB"}]},
            "VCXP0001 is no drive of nand-raid0",
        ),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(tmp_path: Path, change: Entry, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        check_compared(*profiles(tmp_path, scenario=lambda workload: workload.update(change)))


def test_faults_are_for_emulated_hardware(tmp_path: Path) -> None:
    hazard = {"set": "nand-raid0", "round": 1, "throttle_drive": "VCNA0001", "bandwidth_size": "4MB"}
    error = refused(
        tmp_path,
        inventory=lambda entry: entry.update(virtual=False),
        scenario=lambda workload: workload.update(hazards=[hazard]),
    )
    assert "faults are caused on emulated hardware only" in str(error)


def test_folders_inside_one_another_are_refused(tmp_path: Path) -> None:
    def nest(entry: Entry) -> None:
        entry["targets"]["nand-raid5"]["directory"] = "/srv/daq-bench/reference/below"

    assert "lie in one another" in str(refused(tmp_path, inventory=nest))


def test_an_entry_needs_a_target_of_its_own(tmp_path: Path) -> None:
    def hide(entry: Entry) -> None:
        for target in entry["targets"].values():
            target["comparison_only"] = True

    with pytest.raises(ProfileError, match="has only targets that are comparison_only"):
        profiles(tmp_path, inventory=hide)


def test_a_run_without_a_target_named_takes_one_of_its_own(tmp_path: Path) -> None:
    """Also where the file names first what is there for comparisons alone."""

    def sort(entry: Entry) -> None:
        entry["targets"] = {
            name: {**entry["targets"][name], "comparison_only": name == "nand-raid0"}
            for name in ("nand-raid0", "reference")
        }

    _, candidate, _ = profiles(tmp_path, inventory=sort)
    assert candidate.target.name == "reference"
