"""The users' YAML as typed values: candidate, scenario, requirement profile and metric catalogue.

Every loader raises ProfileError (file, line, field, remedy) for anything that a run could trip over later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jmespath
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from bench_model.errors import ProfileError
from bench_model.load import Demand
from bench_model.units import convert, parse_size
from bench_model.yaml_source import YamlSource, check, read_yaml

Comparison = Literal["at_least", "at_most", "equal"]
Severity = Literal["mandatory", "advisory"]
CANDIDATE_BOUNDS = {"candidate.transient_buffer": ("transient_buffer_bytes", "B")}


@dataclass(frozen=True)
class Candidate:
    """One server of inventory/lab.yml. Sizes in bytes."""

    name: str
    description: str
    connection: str
    identity: dict[str, Any]
    target_kind: str
    target_directory: str
    drive_serial: str | None
    transient_buffer_bytes: int
    document: dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """What runs: workloads with their parameters (sizes already in bytes), at a scale and for a duration."""

    id: str
    title: str
    file: Path
    scale: float
    duration_s: float
    repetitions: int
    seed: int
    workloads: dict[str, dict[str, Any]]
    document: dict[str, Any]

    @property
    def demand(self) -> Demand:
        """The paced load of `snb_record`; zero links when the scenario has no such workload."""
        record = self.workloads.get("snb_record", {"links": 0, "superchunk_bytes": 0, "superchunk_rate_hz": 0.0})
        return Demand(
            record["links"],
            record["superchunk_bytes"],
            float(record["superchunk_rate_hz"]),
            self.scale,
            self.duration_s,
        )

    @property
    def yields(self) -> set[str]:
        return {metric for workload in self.workloads.values() for metric in workload["yields"]}

    def altered(self, scale: float | None, duration_s: float | None) -> Scenario:
        """This scenario with the command line's SCALE= and DURATION= in force, also in its document."""
        changed = {"scale": scale or self.scale, "duration_s": duration_s or self.duration_s}
        return replace(self, **changed, document={**self.document, **changed})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Requirement:
    """One bound on one metric; `bound` is a number in `unit`, or the name of something the candidate declares."""

    id: str
    text: str
    metric: str
    comparison: Comparison
    bound: float | str
    unit: str
    statistic: Literal["min", "max", "median"]
    severity: Severity
    scales_with_load: bool
    source: str


@dataclass(frozen=True)
class Conditions:
    """What a run must have been to count as evidence at full scale."""

    scale_min: float
    record_duration_s_min: float
    target_kinds: tuple[str, ...]


@dataclass(frozen=True)
class RequirementProfile:
    """A requirement file: its conditions and its requirements in the order of the file."""

    id: str
    title: str
    file: Path
    conditions: Conditions
    requirements: tuple[Requirement, ...]


@dataclass(frozen=True)
class ResultMetric:
    """Where in a run bundle the values of one metric stand, one per repetition."""

    name: str
    description: str
    unit: str
    file: str
    path: str


def plain(node: Any) -> Any:
    """The YAML node as plain dicts, lists and scalars, ready for JSON."""
    if isinstance(node, CommentedMap | dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq | list):
        return [plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def load_candidate(file: Path, name: str) -> Candidate:
    """The candidate `name` of the Ansible inventory `file`."""
    source = read_yaml(file)
    hosts_path = ("all", "children", "candidates", "hosts")
    node: Any = source.data
    for key in hosts_path:
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not node:
        raise source.error(
            (), "has no hosts under all.children.candidates.hosts", "Add a candidate (docs/own-hardware.md)"
        )
    if name not in node:
        raise source.error(hosts_path, f"has no candidate {name!r}", f"Known here: {', '.join(node)}")
    at = (*hosts_path, name)
    if not isinstance(node[name], dict) or "bench_candidate" not in node[name]:
        raise source.error(at, "has no key 'bench_candidate'", "Add it (docs/own-hardware.md)")
    check(source, "candidate", (*at, "bench_candidate"))
    document = plain(node[name]["bench_candidate"])
    return Candidate(
        name=name,
        description=document["description"],
        connection=str(node[name].get("ansible_connection", "ssh")),
        identity=document["identity"],
        target_kind=document["target"]["kind"],
        target_directory=document["target"]["directory"],
        drive_serial=document["target"].get("drive_serial"),
        transient_buffer_bytes=parse_size(document["transient_buffer"]),
        document=document,
    )


def load_scenario(file: Path) -> Scenario:
    """The scenario in `file`, its sizes turned into bytes."""
    source = read_yaml(file)
    check(source, "scenario")
    document = plain(source.data)
    _check_id(source, document["id"])
    workloads = {name: _sizes_in_bytes(source, name, workload) for name, workload in document["workloads"].items()}
    return Scenario(
        id=document["id"],
        title=document["title"],
        file=file,
        scale=float(document["scale"]),
        duration_s=float(document["duration_s"]),
        repetitions=document["repetitions"],
        seed=document["seed"],
        workloads=workloads,
        document=document,
    )


def _sizes_in_bytes(source: YamlSource, name: str, workload: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {}
    for key, value in workload.items():
        try:
            if key == "block_sizes":
                done[key] = [parse_size(size) for size in value]
            else:
                done[key] = parse_size(value) if key.endswith("_size") else value
        except ValueError as error:
            raise source.error(("workloads", name, key), str(error), "Correct it") from None
    sizes = done.get("block_sizes", [])
    if sizes != sorted(set(sizes)):
        raise source.error(("workloads", name, "block_sizes"), "is not ascending", "Sort it, each size once")
    for size in [*sizes, done.get("block_size", 4096)]:
        if size % 4096:
            raise source.error(
                ("workloads", name), f"block size {size} B is no multiple of 4 KiB", "O_DIRECT needs one"
            )
    return done


def _check_id(source: YamlSource, identifier: str) -> None:
    if identifier != source.file.stem:
        raise source.error(("id",), f"id {identifier!r} differs from the file's name", f"Write id: {source.file.stem}")


def load_metrics(file: Path) -> dict[str, ResultMetric]:
    """The result metrics that inventory/metrics.yml names."""
    source = read_yaml(file)
    check(source, "metrics")
    metrics = {}
    for name, entry in plain(source.data["results"]).items():
        try:
            jmespath.compile(entry["path"])
            convert(1.0, entry["unit"], entry["unit"])
        except (ValueError, jmespath.exceptions.JMESPathError) as error:
            raise source.error(("results", name), str(error).replace("\n", " "), "Correct it") from None
        metrics[name] = ResultMetric(name=name, **entry)
    return metrics


def load_requirements(file: Path, metrics: dict[str, ResultMetric]) -> RequirementProfile:
    """The requirement profile in `file`; every metric must be known and every unit must fit its metric."""
    source = read_yaml(file)
    check(source, "requirement")
    document = plain(source.data)
    _check_id(source, document["id"])
    requirements = []
    for index, entry in enumerate(document["requirements"]):
        _check_requirement(source, index, entry, metrics)
        requirements.append(Requirement(**{"scales_with_load": False, **entry}))
    _check_unique(source, [requirement.id for requirement in requirements])
    conditions = document["conditions"]
    return RequirementProfile(
        id=document["id"],
        title=document["title"],
        file=file,
        conditions=Conditions(
            float(conditions["scale_min"]),
            float(conditions["record_duration_s_min"]),
            tuple(conditions["target_kinds"]),
        ),
        requirements=tuple(requirements),
    )


def _check_requirement(source: YamlSource, index: int, entry: dict[str, Any], metrics: dict[str, ResultMetric]) -> None:
    at = ("requirements", index)
    if entry["metric"] not in metrics:
        known = ", ".join(sorted(metrics))
        raise source.error(
            (*at, "metric"), f"metric {entry['metric']!r} is not in inventory/metrics.yml", f"Known: {known}"
        )
    units = [metrics[entry["metric"]].unit]
    if isinstance(entry["bound"], str):
        units.append(CANDIDATE_BOUNDS[entry["bound"]][1])
    for unit in units:
        try:
            convert(1.0, unit, entry["unit"])
        except ValueError as error:
            raise source.error((*at, "unit"), str(error), f"Use a unit that {unit!r} converts to") from None


def _check_unique(source: YamlSource, identifiers: list[str]) -> None:
    for index, identifier in enumerate(identifiers):
        if identifier in identifiers[:index]:
            raise source.error(("requirements", index, "id"), f"id {identifier!r} stands twice", "Number them apart")


def check_yields(profile: RequirementProfile, scenario: Scenario) -> None:
    """Raises ProfileError when a requirement bounds a metric that the scenario does not yield."""
    source = read_yaml(profile.file)
    for index, requirement in enumerate(profile.requirements):
        if requirement.metric not in scenario.yields:
            raise source.error(
                ("requirements", index, "metric"),
                f"{requirement.id} bounds {requirement.metric!r}, which scenario {scenario.id!r} does not yield",
                f"Choose a scenario that yields it, or add the workload to {scenario.file}",
            )


def check_scenario_metrics(scenario: Scenario, metrics: dict[str, ResultMetric]) -> None:
    """Raises ProfileError when a scenario says that it yields a metric that metrics.yml does not name."""
    for name, workload in scenario.workloads.items():
        for metric in workload["yields"]:
            if metric not in metrics:
                error: ProfileError = read_yaml(scenario.file).error(
                    ("workloads", name, "yields"),
                    f"metric {metric!r} is not in inventory/metrics.yml",
                    "Correct its name",
                )
                raise error
