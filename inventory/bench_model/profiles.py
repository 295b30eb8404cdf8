"""The users' YAML as typed values: candidate, scenario, requirement profile and metric catalogue.

Every loader raises ProfileError (file, line, field, remedy) for anything that a run could trip over later."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import jmespath
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from bench_model.errors import BenchError, ProfileError
from bench_model.load import Demand
from bench_model.units import convert, never_negative, parse_size
from bench_model.yaml_source import Key, YamlSource, check, load_schema, read_yaml

Comparison = Literal["at_least", "at_most", "equal"]
Nature = Literal["observed", "estimated"]
Severity = Literal["mandatory", "advisory"]
RAW_DEVICE = "raw-device"
CANDIDATE_BOUNDS = {"candidate.transient_buffer": ("transient_buffer_bytes", "B")}


TEMPLATE_MARKS = ("{{", "{%", "{#")  # Jinja's
# What may stand in a path, a host pattern of Ansible or a command line and is then a name and nothing else.
PLAIN = {
    "name": re.compile(r"\w[\w.-]{0,252}"),  # letters of any script
    "ansible_host": re.compile(r"[A-Za-z0-9:][A-Za-z0-9.:_%-]{0,252}"),
    "ansible_user": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\$-]{0,252}"),
}


@dataclass(frozen=True)
class Target:
    """Where records are written. `storage`: what provisioning builds there; None: the folder, or the raw drive, is there already."""

    name: str  # empty for a candidate's only one
    kind: str
    directory: str  # empty for a raw drive
    drive_serial: str | None
    storage: dict[str, Any] | None
    destroy: bool = False  # consent to lose what is on a raw drive

    @property
    def is_raw(self) -> bool:
        """A whole drive without a file system, found by its serial."""
        return self.kind == RAW_DEVICE

    comparison_only: bool = False  # no run of its own unless it is asked for
    declared: dict[str, Any] = field(default_factory=dict)  # price, endurance, rack units

    @property
    def serials(self) -> list[str]:
        """Serials of the drives that must carry the folder; empty when nothing is declared."""
        if self.storage:
            return [drive if isinstance(drive, str) else drive["serial"] for drive in self.storage["drives"]]
        return [self.drive_serial] if self.drive_serial else []


@dataclass(frozen=True)
class Candidate:
    """One server of inventory/lab.yml, with the target chosen for this run. Sizes in bytes."""

    name: str
    description: str
    connection: str
    virtual: bool
    identity: dict[str, Any]
    targets: tuple[Target, ...]
    target: Target
    transient_buffer_bytes: int
    document: dict[str, Any]

    @property
    def own_run_targets(self) -> list[str]:
        """Names of the targets that get a run each when none is asked for."""
        return [target.name for target in self.targets if not target.comparison_only]

    def aimed_at(self, target: str) -> Candidate:
        """This candidate with another of its targets chosen. Raises BenchError when it has none of that name."""
        for one in self.targets:
            if one.name == target:
                return replace(self, target=one)
        known = ", ".join(one.name for one in self.targets) or "none by name"
        raise BenchError(f"candidate {self.name!r} has no target {target!r}. Known: {known}")


@dataclass(frozen=True)
class Scenario:
    """What runs: workloads with their parameters (sizes already in bytes), at a scale and for a duration."""

    id: str
    title: str
    file: Path
    scale: float
    duration_s: float | None  # of the paced record; None where the scenario has none
    repetitions: int
    repetitions_max: int  # more than `repetitions`: workloads that can, go on until their requirements are decided
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
            self.duration_s or 0.0,
        )

    @property
    def yields(self) -> set[str]:
        return {metric for workload in self.workloads.values() for metric in workload["yields"]}

    def altered(self, scale: float | None, duration_s: float | None) -> Scenario:
        """This scenario with the command line's SCALE= and DURATION= in force, also in its document. Raises BenchError."""
        for key, value in (("scale", scale), ("duration_s", duration_s)):
            most = load_schema("scenario")["properties"][key]["maximum"]
            if value is not None and not 0 < value <= most:  # neither is not-a-number
                raise BenchError(f"{key} = {value} was asked for; it must be above 0 and at most {most}")
        asked = {"scale": scale or self.scale, "duration_s": duration_s or self.duration_s}
        changed = {key: value for key, value in asked.items() if value is not None}
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
    guard_band: float = 0.0  # in `unit`: met only when inside the bound by as much


@dataclass(frozen=True)
class Conditions:
    """What a run must have been to count as evidence at full scale.

    `load`: what is demanded, in absolute terms, by workload and parameter (bench_model.demanded_load). None in profiles from before
    it was stated, of stored bundles; those stated `record_duration_s_min`. `metrics`: what is bounded under these conditions."""

    scale_min: float
    record_duration_s_min: float | None
    target_kinds: tuple[str, ...]
    load: dict[str, Any] | None = None
    metrics: tuple[str, ...] = ()


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
    """Where in a run bundle the values of one metric stand, one per repetition.

    `nature`: an `observed` value is a fact about its repetition (a count, an extreme, what read back); an `estimated` one
    would scatter if it were measured again, and is decided by an interval. `samples`: one time-ordered series per
    repetition, whose mean is the value. `interval`: [low, high] per repetition at 95 %, where the workload knows it better. `rounds`:
    how many rounds each value's interval was made of. `strata`: what each value is of; only values of the same are repetitions.
    `rule`: of a standard, which decides instead of an interval."""

    name: str
    description: str
    unit: str
    file: str
    path: str
    nature: Nature
    samples: str | None = None
    interval: str | None = None
    rounds: str | None = None
    strata: str | None = None
    rule: Literal["steady-window"] | None = None


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
    _check_name(source, at)
    if not isinstance(node[name], dict) or "bench_candidate" not in node[name]:
        raise source.error(at, "has no key 'bench_candidate'", "Add it (docs/own-hardware.md)")
    check(source, "candidate", (*at, "bench_candidate"))
    _check_data(source, (*at, "bench_candidate"), node[name]["bench_candidate"])
    _check_connection(source, at, node[name])
    document = plain(node[name]["bench_candidate"])
    targets = _targets(source, at, document)
    return Candidate(
        name=name,
        description=document["description"],
        connection=str(node[name].get("ansible_connection", "ssh")),
        virtual=document.get("virtual", False),
        identity=document["identity"],
        targets=targets,
        target=next(target for target in targets if not target.comparison_only),
        transient_buffer_bytes=parse_size(document["transient_buffer"]),
        document=document,
    )


def _check_name(source: YamlSource, at: tuple[str, ...]) -> None:
    """A candidate's name becomes the name of folders, and what Ansible is limited to."""
    if not PLAIN["name"].fullmatch(at[-1]):
        raise source.error(
            at, f"{at[-1]!r} is no plain name", "Use letters, digits and ._- and begin with a letter or digit"
        )
    if at[-1] in ("all", "ungrouped", *source.data["all"]["children"]):
        raise source.error(
            at, f"{at[-1]!r} is the name of a group, so that it would mean all its hosts", "Choose another"
        )


def _check_data(source: YamlSource, at: tuple[str, ...], entry: Any) -> None:
    """What describes a candidate is data. Ansible expands any template in it, which runs commands on the control node."""
    for path, text in _texts(entry, at):
        if any(mark in text for mark in TEMPLATE_MARKS):
            raise source.error(path, f"{text!r} holds a template", "Write the value itself: bench_candidate is data")


def _texts(node: Any, at: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Every string below the node, keys included, with the field where it stands."""
    if isinstance(node, str):
        yield at, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from _texts(value, (*at, key))
        if isinstance(key, str):
            yield (*at, key), key


def _check_connection(source: YamlSource, at: tuple[str, ...], entry: dict[str, Any]) -> None:
    """Host and user, where they are no templates: those are Ansible's, and checked once it has expanded them."""
    for key in {"ansible_host", "ansible_user"} & entry.keys():
        text = str(entry[key])
        if not any(mark in text for mark in TEMPLATE_MARKS) and not PLAIN[key].fullmatch(text):
            raise source.error((*at, key), f"{text!r} is no plain host or user", "Give a name or an address alone")


def _targets(source: YamlSource, at: tuple[str, ...], document: dict[str, Any]) -> tuple[Target, ...]:
    entry = (*at, "bench_candidate")
    if ("target" in document) == ("targets" in document):
        raise source.error(entry, "needs either `target` or `targets`, not both", "Describe where records are written")
    declared = document.get("targets") or {"": document["target"]}
    targets = []
    for name, one in declared.items():
        where = (*entry, "targets", name) if name else (*entry, "target")
        _check_kind(source, where, one)
        if "storage" in one:
            _check_storage(source, where, one)
        targets.append(
            Target(
                name,
                one["kind"],
                one.get("directory", ""),
                one.get("drive_serial"),
                one.get("storage"),
                destroy=one.get("destroy", False),
                comparison_only=one.get("comparison_only", False),
                declared=one.get("declared", {}),
            )
        )
    if all(target.comparison_only for target in targets):
        raise source.error(entry, "has only targets that are comparison_only", "Leave one to be qualified by itself")
    return tuple(targets)


def _check_kind(source: YamlSource, at: tuple[str, ...], target: dict[str, Any]) -> None:
    """A raw drive is named by its serial and has no folder; everything else has a folder."""
    if target["kind"] != RAW_DEVICE:
        if "directory" not in target:
            raise source.error(at, "has no key 'directory'", "Name the folder on the drives under test")
        if "destroy" in target:
            raise source.error((*at, "destroy"), "is for raw-device targets", "Write it into `storage`, or remove it")
        return
    if "drive_serial" not in target:
        raise source.error(at, "is a raw-device without drive_serial", "Name the drive by its serial, quoted")
    for key in ("directory", "storage"):
        if key in target:
            raise source.error(
                (*at, key), f"a raw-device target has no `{key}`", "Remove it, or write kind: filesystem"
            )


RAID_MEMBERS_MIN = {0: 2, 1: 2, 5: 3, 6: 4, 10: 2}  # mdadm(8)


def _check_storage(source: YamlSource, at: tuple[str, ...], target: dict[str, Any]) -> None:
    storage = target["storage"]
    if target["kind"] != "filesystem" or not target["directory"].startswith("/"):
        raise source.error(
            at, "has `storage`, which makes a file system", "Write kind: filesystem and an absolute directory"
        )
    members, raid = len(storage["drives"]), storage.get("raid")
    if raid is None and members != 1:
        raise source.error(
            (*at, "storage", "drives"), f"names {members} drives without `raid`", "Name one, or add raid"
        )
    if raid and members < RAID_MEMBERS_MIN[raid["level"]]:
        least = RAID_MEMBERS_MIN[raid["level"]]
        raise source.error(
            (*at, "storage", "drives"), f"RAID {raid['level']} needs {least} drives or more", "Add drives"
        )
    if raid and "chunk" in raid and raid["level"] == 1:
        raise source.error((*at, "storage", "raid", "chunk"), "RAID 1 has no chunks", "Remove it")


def load_scenario(file: Path) -> Scenario:
    """The scenario in `file`, its sizes turned into bytes."""
    source = read_yaml(file)
    check(source, "scenario")
    document = plain(source.data)
    _check_id(source, document["id"])
    workloads = {
        name: _sizes_in_bytes(source, ("workloads", name), workload) for name, workload in document["workloads"].items()
    }
    if "snb_record" in workloads and "duration_s" not in document:
        raise source.error((), "has the workload snb_record and no duration_s", "Add the record's length in s")
    repetitions = document.get("repetitions", 1)
    if document.get("repetitions_max", repetitions) < repetitions:
        raise source.error(
            ("repetitions_max",),
            f"is less than repetitions, {repetitions}",
            "Write the larger of the two, or remove it",
        )
    return Scenario(
        id=document["id"],
        title=document["title"],
        file=file,
        scale=float(document.get("scale", 1)),
        duration_s=float(document["duration_s"]) if "duration_s" in document else None,
        repetitions=repetitions,
        repetitions_max=document.get("repetitions_max", repetitions),
        seed=document["seed"],
        workloads=workloads,
        document=document,
    )


SIZE_KEYS = ("_size", "_sizes", "_budget")  # whoever reads a scenario knows by the name that this is an amount of data
BLOCK_KEYS = ("block_size", "block_sizes")
LEFT_OUT = "left-out"  # of a demanded load: the scenario does not have the parameter


def _sizes_in_bytes(source: YamlSource, at: tuple[str | int, ...], node: Any) -> Any:
    """The node with every size in bytes; those of blocks must be multiples of 4 KiB, a list of sizes ascending."""
    if isinstance(node, list):
        return [_sizes_in_bytes(source, (*at, index), one) for index, one in enumerate(node)]
    if not isinstance(node, dict):
        return node
    return {
        key: _sizes(source, (*at, key), value)
        if key.endswith(SIZE_KEYS)
        else _sizes_in_bytes(source, (*at, key), value)
        for key, value in node.items()
    }


def _sizes(source: YamlSource, at: tuple[str | int, ...], value: Any) -> Any:
    if value == LEFT_OUT:
        return value
    try:
        done = [parse_size(size) for size in value] if isinstance(value, list) else parse_size(value)
    except ValueError as error:
        raise source.error(at, str(error), "Correct it") from None
    if isinstance(done, list) and done != sorted(set(done)):
        raise source.error(at, "is not ascending", "Sort it, each size once")
    for size in done if isinstance(done, list) else [done]:
        if at[-1] in BLOCK_KEYS and size % 4096:
            raise source.error(at, f"block size {size} B is no multiple of 4 KiB", "O_DIRECT needs one")
    return done


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


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
            for key in ("path", "samples", "interval", "rounds", "strata"):
                if key in entry:
                    jmespath.compile(entry[key])
            convert(1.0, entry["unit"], entry["unit"])
        except (ValueError, jmespath.exceptions.JMESPathError) as error:
            raise source.error(("results", name), str(error).replace("\n", " "), "Correct it") from None
        # A count is exact. Of anything else that says nothing, the cautious reading: it has to show its scatter.
        nature = "observed" if entry["unit"] == "count" else "estimated"
        metrics[name] = ResultMetric(name=name, **{"nature": nature, **entry})
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
            float(conditions.get("scale_min", 1)),
            _number(conditions.get("record_duration_s_min")),
            tuple(conditions["target_kinds"]),
            _sizes_in_bytes(source, ("conditions", "load"), conditions.get("load")),
            tuple(requirement.metric for requirement in requirements),
        ),
        requirements=tuple(requirements),
    )


def _check_requirement(source: YamlSource, index: int, entry: dict[str, Any], metrics: dict[str, ResultMetric]) -> None:
    at = ("requirements", index)
    if entry.get("guard_band") and entry["comparison"] == "equal":
        raise source.error(
            (*at, "guard_band"), "an exact value cannot be met by a distance", "Remove it, or use at_least or at_most"
        )
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
    _check_bound(source, (*at, "bound"), entry)


def _check_bound(source: YamlSource, at: tuple[str | int, ...], entry: dict[str, Any]) -> None:
    """A bound that everything meets, or nothing, is a slip of the pen."""
    bound, unit = entry["bound"], entry["unit"]
    if isinstance(bound, str) or not never_negative(unit):
        return
    if entry["comparison"] == "at_least" and bound <= 0:
        raise source.error(at, f"at least {bound} {unit} is met by anything", "Raise it")
    if bound < 0:
        raise source.error(at, f"nothing measures {bound} {unit}", "Write it above zero")


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
