"""One server of inventory/lab.yml and its targets. Raises ProfileError (file, line, field, remedy) for what a run could trip over later."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.base.units import GIB, MIB
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.connection_entries import (
    LOCAL,
    PLAIN,
    TEMPLATE_MARKS,
    absent_files,
    check_connection,
    connection_of_entry,
)
from daq_bench.bench_model.profiles.yaml_source import Key, YamlSource, check, read_shared_yaml
from daq_bench.candidate_kit.sizes import parse_size

RAW_DEVICE = "raw-device"
CANDIDATE_BOUNDS = {"candidate.transient_buffer": ("transient_buffer_bytes", "B")}


@dataclass(frozen=True)
class Target:
    """Says where records are written. `storage`: provisioning builds it there; None: the folder, or the raw drive, is there already."""

    name: str  # empty for a candidate's only one
    kind: str
    directory: str = ""  # empty for a raw drive
    drive_serial: str | None = None
    storage: dict[str, Any] | None = None
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

    @property
    def erased(self) -> list[str]:
        """Serials of the drives on which everything may be lost: the inventory consents to it."""
        return self.serials if self.destroy or (self.storage or {}).get("destroy") else []

    @property
    def drives(self) -> list[tuple[str, str]]:
        """Serial and WWN of the same drives; the WWN is empty where none is declared."""
        if not self.storage:
            return [(serial, "") for serial in self.serials]
        return [
            (one, "") if isinstance(one, str) else (one["serial"], one.get("wwn", "")) for one in self.storage["drives"]
        ]


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
    def capacities(self) -> dict[str, int]:
        """B of each drive whose capacity is declared, by its serial."""
        drives = self.identity.get("drives", [])
        return {one["serial"]: parse_size(one["capacity"]) for one in drives if "capacity" in one}

    @property
    def own_run_targets(self) -> list[str]:
        """Names of the targets that get a run each when none is asked for."""
        return [target.name for target in self.targets if not target.comparison_only]

    def aimed_at(self, target: str) -> Candidate:
        """This candidate with another of its targets chosen. Raises BenchError when it has no target of that name."""
        for one in self.targets:
            if one.name == target:
                return replace(self, target=one)
        raise BenchError(f"candidate {self.name!r} has no target {target!r}. {nearest(target, self.target_names)}")

    @property
    def target_names(self) -> list[str]:
        """Names by which a target can be asked for; a candidate's only one has none."""
        return [target.name for target in self.targets if target.name]


HOSTS = ("all", "children", "candidates", "hosts")


def _hosts(source: YamlSource) -> dict[str, Any]:
    node: Any = source.data
    if node is None:
        raise source.error((), "is empty", "Add a candidate (docs/own-hardware.md), or name another file")
    for key in HOSTS:
        node = node.get(key) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not node:
        raise source.error(
            (), "has no hosts under all.children.candidates.hosts", "Add a candidate (docs/own-hardware.md)"
        )
    return node


def candidate_names(file: Path) -> list[str]:
    """The candidates of the Ansible inventory `file`, whether or not their entries are right."""
    return list(map(str, _hosts(read_shared_yaml(file))))


def absent_files_of(file: Path, name: str, home: Path, environment: Mapping[str, str]) -> list[ProfileError]:
    """The files that the entry of the candidate `name` names and this machine lacks; load_candidate took the entry before."""
    return absent_files(read_shared_yaml(file), (*HOSTS, name), home, environment)


def load_candidate(file: Path, name: str) -> Candidate:
    """The candidate `name` of the Ansible inventory `file`."""
    source = read_shared_yaml(file)
    node = _hosts(source)
    if name not in node:
        remedy = nearest(name, node, "daq-bench list candidates")
        if name == THE_DEFAULT:
            remedy += f". Where none is named it is {THE_DEFAULT}: name yours with {typed('--candidate')}"
        raise source.error(HOSTS, f"has no candidate {name!r}", remedy)
    at = (*HOSTS, name)
    _check_name(source, at)
    if not isinstance(node[name], dict) or "bench_candidate" not in node[name]:
        raise source.error(at, "has no key 'bench_candidate'", "Add it (docs/own-hardware.md)")
    check(source, "candidate", (*at, "bench_candidate"))
    _check_data(source, (*at, "bench_candidate"), node[name]["bench_candidate"])
    check_connection(source, at)
    document = plain(node[name]["bench_candidate"])
    _check_capacities(source, (*at, "bench_candidate", "identity", "drives"), document["identity"].get("drives", []))
    _check_sizes(source, (*at, "bench_candidate"), document)
    targets = _targets(source, at, document)
    connection = connection_of_entry(source, at)
    _check_directories(source, at, targets, connection == LOCAL)
    _check_erased(source, (*at, "bench_candidate"), document["identity"].get("drives", []), targets)
    return Candidate(
        name=name,
        description=document["description"],
        connection=connection,
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


def _check_capacities(source: YamlSource, at: tuple[str, ...], drives: Sequence[dict[str, Any]]) -> None:
    for index, drive in enumerate(drives):
        try:
            known = "capacity" not in drive or parse_size(drive["capacity"]) > 0
        except ValueError as error:
            raise source.error((*at, index, "capacity"), str(error), "Correct it") from None
        if not known:
            raise source.error(
                (*at, index, "capacity"), "no drive holds 0 B", "Write what the maker states, or remove it"
            )


MEMORY_BYTES = (64 * MIB, 2**18 * GIB)  # [P] what a server may have: a number without its unit is below
THE_DEFAULT = "this-machine"  # of the commands that take --candidate
DRIVE_BYTES_MIN = 16 * MIB  # [P] an emulated one is larger
BUFFER_BYTES_MIN = MIB  # [P] one superchunk has some MB


def _check_sizes(source: YamlSource, at: tuple[str, ...], document: dict[str, Any]) -> None:
    """Sizes that no server has come of a unit that was forgotten or mistyped."""
    declared = document["identity"].get("memory_min")
    least, most = MEMORY_BYTES
    if declared is not None and not least <= parse_size(declared) <= most:
        raise source.error(
            (*at, "identity", "memory_min"), f"no server has a memory of {declared}", "Write it as 250GiB"
        )
    buffer = parse_size(document["transient_buffer"])
    if buffer < BUFFER_BYTES_MIN:
        wrong = f"a buffer of {document['transient_buffer']} holds no superchunk"
        raise source.error((*at, "transient_buffer"), wrong, "Write what the server can buffer in RAM, as 8GiB")
    for place, drive in enumerate(document["identity"].get("drives", [])):
        declared = drive.get("capacity")
        if declared is not None and parse_size(declared) < DRIVE_BYTES_MIN:
            where: tuple[str | int, ...] = (*at, "identity", "drives", place, "capacity")
            raise source.error(where, f"no drive has a capacity of {declared}", "Write it as 3.84TB")


def _check_data(source: YamlSource, at: tuple[str, ...], entry: Any) -> None:
    """Refuses templates in a candidate's description: Ansible would expand them, which runs commands on the control node."""
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
        targets.append(Target(name, **one))
    if all(target.comparison_only for target in targets):
        raise source.error(entry, "has only targets that are comparison_only", "Leave one to be qualified by itself")
    _check_shared(source, entry, targets)
    return tuple(targets)


def _check_shared(source: YamlSource, entry: tuple[str, ...], targets: Sequence[Target]) -> None:
    """A drive that one target erases belongs to that one, or to alternatives: all erase it, one after another, and at most one of
    them gets a run of its own."""
    for number, target in enumerate(targets):
        for other in targets[:number]:
            shared = [one for one in target.drives if any(_same_drive(one, another) for another in other.drives)]
            erasing = [one for one in (target, other) if one.storage or one.is_raw]
            if shared and erasing and not _alternatives(target, other):
                raise source.error(
                    (*entry, "targets", target.name),
                    f"drive {shared[0][0]} is in target {other.name!r}, too, and one of them erases it",
                    "Give each target drives of its own, or make all but one of them `comparison_only: true` (alternatives)",
                )


def _alternatives(target: Target, other: Target) -> bool:
    """Both are built on the same drives, so that one is gone when the other is there; at most one gets a run of its own."""
    return (
        all(one.storage or one.is_raw for one in (target, other))
        and any(_same_drive(one, another) for one in target.drives for another in other.drives)
        and (target.comparison_only or other.comparison_only)
    )


def _check_directories(source: YamlSource, at: tuple[str, ...], targets: Sequence[Target], is_here: bool) -> None:
    """A target's folder is its own: one run would remove or measure what another wrote. Alternatives are never there together.

    This machine's links are followed, another machine's are not known."""
    folders = [(one, _folder(one.directory, is_here)) for one in targets if one.directory]
    for number, (target, folder) in enumerate(folders):
        for other, its in folders[:number]:
            if _alternatives(target, other) or not (folder.is_relative_to(its) or its.is_relative_to(folder)):
                continue
            where = (
                "is the folder of"
                if folder == its
                else "lies in that of"
                if folder.is_relative_to(its)
                else "holds that of"
            )
            line = source.line_of((*at, "bench_candidate", "targets", other.name, "directory"))
            raise source.error(
                (*at, "bench_candidate", "targets", target.name, "directory"),
                f"{target.directory} {where} target {other.name!r} (line {line}: {other.directory})",
                "Give each target a folder beside the other's: a run would take the other's files for its own",
            )


def _folder(directory: str, is_here: bool) -> Path:
    """One spelling for all spellings of a folder; a relative one is below the checkout."""
    path = os.path.normpath(REPOSITORY / directory)
    return Path(os.path.realpath(path) if is_here else f"/{path.lstrip('/')}")


def _check_erased(
    source: YamlSource, entry: tuple[str, ...], known: Sequence[dict[str, Any]], targets: Sequence[Target]
) -> None:
    """A mistyped serial may name another drive of the machine: where its drives are listed, what is erased is among them.

    The storage role looks for a serial to the letter, a raw target's drive is found in any case."""
    serials = [str(one["serial"]) for one in known]
    folded = [one.strip().casefold() for one in serials]
    for target in targets:
        for serial in target.erased if serials else ():
            is_known = serial.strip() in serials if target.storage else serial.strip().casefold() in folded
            if not is_known:
                where = (*entry, "targets", target.name) if target.name else (*entry, "target")
                raise source.error(
                    where, f"erases drive {serial!r}, which identity.drives does not have",
                    f"Correct the serial, or add the drive to identity.drives. {nearest(serial, serials)}",
                )  # fmt: skip


def _same_drive(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Namespaces of one drive share its serial and differ in their WWN; without a WWN the serial may be any of them."""
    (serial, wwn), (its_serial, its_wwn) = ((a.strip().casefold(), b.strip().casefold()) for a, b in (one, other))
    return serial == its_serial and (not wwn or not its_wwn or wwn == its_wwn)


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
