"""Tells which targets of a candidate one run compares: checked against each other before anything is touched.

A scenario names them (`workloads.raid_vs_3dxp.reference` and `.sets`, or `workloads.concurrent_analysis.storages`, the judged one first),
the inventory describes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.profiles.candidates import Candidate, Target
from daq_bench.bench_model.profiles.composed import read_scenario
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.profiles.yaml_source import Key, read_yaml

WORKLOAD, STORAGES_WORKLOAD = "raid_vs_3dxp", "concurrent_analysis"


@dataclass(frozen=True)
class Compared:
    """The targets of one comparison. The reference stays up all the time; the sets of a group are up together."""

    reference: Target
    groups: tuple[tuple[Target, ...], ...]

    @property
    def sets(self) -> list[Target]:
        return [one for group in self.groups for one in group]


def compared_names(scenario: Scenario) -> list[str]:
    """Names of the targets that the scenario measures in one run, the reference first; empty for other scenarios."""
    parameters = scenario.workloads.get(WORKLOAD)
    if parameters:
        return [parameters["reference"], *parameters["sets"]]
    return list(scenario.workloads.get(STORAGES_WORKLOAD, {}).get("storages", []))


def compared(scenario: Scenario, candidate: Candidate) -> Compared:
    """The comparison that `check_compared` has found sound."""
    parameters = scenario.workloads[WORKLOAD]
    by_name = {target.name: target for target in candidate.targets}
    sets = [by_name[name] for name in parameters["sets"]]
    return Compared(by_name[parameters["reference"]], tuple(map(tuple, groups_of(sets))))


def groups_of(sets: Sequence[Target]) -> list[list[Target]]:
    """The sets in groups that share no drive: each set goes into the first group in which it finds all of its drives free."""
    groups: list[list[Target]] = []
    for one in sets:
        for group in groups:
            if not any(set(one.serials) & set(other.serials) for other in group):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def check_compared(scenario: Scenario, candidate: Candidate, inventory: Path) -> None:
    """Raises ProfileError (file, line, field, remedy) for a comparison that cannot be made on this candidate."""
    names = compared_names(scenario)
    if WORKLOAD in scenario.workloads:
        _check_names(scenario, candidate)
    elif names:
        at = ("workloads", STORAGES_WORKLOAD, "storages")
        _check_known(scenario, candidate, [((*at, index), name) for index, name in enumerate(names)])
    else:
        return
    targets = {target.name: target for target in candidate.targets}
    reference, *sets = [targets[name] for name in names]
    workload = WORKLOAD if WORKLOAD in scenario.workloads else STORAGES_WORKLOAD

    def wrong(name: str, *field: Key, problem: str, remedy: str) -> ProfileError:
        at = ("all", "children", "candidates", "hosts", candidate.name, "bench_candidate", "targets", name, *field)
        return read_yaml(inventory).error(at, problem, remedy)

    for one in (reference, *sets):
        if one.kind not in ("filesystem", "scratch-file"):
            raise wrong(
                one.name,
                "kind",
                problem=f"{one.kind} cannot be compared by {workload}, which writes files",
                remedy="Write kind: filesystem, with storage or a folder on the drives",
            )
    if workload == WORKLOAD and len(reference.serials) > 1:
        raise wrong(
            reference.name,
            "storage",
            "drives",
            problem=f"the reference has {len(reference.serials)} drives",
            remedy="The reference is a single drive; compare arrays as sets",
        )
    for one in sets:
        shared = sorted(set(one.serials) & set(reference.serials))
        if shared:
            raise wrong(
                one.name,
                *(("storage", "drives") if one.storage else ("drive_serial",)),
                problem=f"uses {', '.join(shared)}, which is the drive of the reference {reference.name!r}",
                remedy="The reference stays mounted all the time: give the set drives of its own",
            )
        if one.storage and not one.storage.get("destroy"):
            raise wrong(
                one.name,
                "storage",
                problem=f"does not give up its drives ({', '.join(one.serials)}): destroy is not true",
                remedy="A comparison builds its sets anew. Add destroy: true if everything on these drives may be lost, or leave "
                "the set out",
            )
    for index, one in enumerate(sets):
        for other in (reference, *sets[:index]):
            if _overlap(one.directory, other.directory):
                raise wrong(
                    one.name,
                    "directory",
                    problem=f"{one.directory} and {other.directory} of target {other.name!r} lie in one another",
                    remedy="Give each target a folder of its own",
                )


def _check_names(scenario: Scenario, candidate: Candidate) -> None:
    source, at = read_scenario(scenario.file), ("workloads", WORKLOAD)
    parameters = scenario.workloads[WORKLOAD]
    named: list[tuple[tuple[Key, ...], str]] = [((*at, "reference"), parameters["reference"])]
    named += [((*at, "sets", index), name) for index, name in enumerate(parameters["sets"])]
    _check_known(scenario, candidate, named)
    if parameters["reference"] in parameters["sets"]:
        index = parameters["sets"].index(parameters["reference"])
        raise source.error(
            (*at, "sets", index), "is the reference itself", "Name another target, or another folder of the same drive"
        )
    if parameters["judged_set"] not in parameters["sets"]:
        raise source.error(
            (*at, "judged_set"), f"{parameters['judged_set']!r} is not one of the sets", "Name the set that is on offer"
        )
    if parameters["rounds"] % 2:
        raise source.error(
            (*at, "rounds"), f"{parameters['rounds']} rounds do not balance the order", "Write an even number"
        )
    for index, hazard in enumerate(parameters.get("hazards", [])):
        _check_hazard(scenario, candidate, index, hazard)


def _check_known(scenario: Scenario, candidate: Candidate, named: Sequence[tuple[tuple[Key, ...], str]]) -> None:
    known = candidate.target_names
    for field, name in named:
        if name not in known:
            raise read_scenario(scenario.file).error(
                field,
                f"candidate {candidate.name!r} has no target {name!r}",
                nearest(name, known) if known else "Describe several `targets` in its inventory entry",
            )


def _check_hazard(scenario: Scenario, candidate: Candidate, index: int, hazard: dict[str, object]) -> None:
    source, at = read_scenario(scenario.file), ("workloads", WORKLOAD, "hazards", index)
    parameters = scenario.workloads[WORKLOAD]
    if not candidate.virtual:
        raise source.error(
            at, f"{candidate.name} is no virtual candidate: faults are caused on emulated hardware only", "Remove it"
        )
    if hazard["set"] not in parameters["sets"]:
        raise source.error((*at, "set"), f"{hazard['set']!r} is not one of the sets", "Name one of them")
    if int(str(hazard["round"])) > parameters["rounds"]:
        raise source.error((*at, "round"), f"there are {parameters['rounds']} rounds", "Name one of them")
    by_name = {target.name: target for target in candidate.targets}
    if hazard["throttle_drive"] not in by_name[str(hazard["set"])].serials:
        raise source.error(
            (*at, "throttle_drive"),
            f"{hazard['throttle_drive']} is no drive of {hazard['set']}",
            f"Name one of {', '.join(by_name[str(hazard['set'])].serials)}",
        )


def _overlap(one: str, other: str) -> bool:
    a, b = PurePosixPath(one), PurePosixPath(other)
    return a.is_relative_to(b) or b.is_relative_to(a)
