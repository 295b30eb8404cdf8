"""The candidate's own accounts, which programs of `on_candidate` read there, and what follows: is it the machine that the inventory
declares, can it be a candidate at all (by Ansible's own rule, bench_fit), and what did SELinux deny the bench?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import binary_label, decimal_label
from daq_bench.bench_model.documents.facts import IdentityCheck
from daq_bench.bench_model.documents.run import Drive, Host
from daq_bench.bench_model.documents.struct import Closed, Struct, as_document, read
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.machine import Machine, Places

SHOWN_OF_SATA = 4  # characters of a firmware revision (SCSI INQUIRY)
CAPACITY_TOLERANCE = 0.02  # [P] 7.68 TB on the label are 7.6815 TB


class Target(Closed, frozen=True):
    """The target that a run writes to. `device` is None where no single drive or array is beneath (network, memory).

    `filesystem` is None on a raw drive, whose `free_bytes` are its whole capacity. `memory`: the layers down to RAM."""

    filesystem: str | None
    free_bytes: int
    device: Drive | None
    memory: str = ""


class Node(Struct, frozen=True):
    """A block device as lsblk lists it, which says more than is read here."""

    kname: str
    path: str
    type: str
    pkname: str | None
    description: Drive


class Survey(Closed, frozen=True):
    """`host` as in run.json's candidate; `devices`: whole drives and what lies on them; `target` if it is there."""

    host: Host
    devices: list[Node]
    target: Target | None
    clock_s: float

    def named(self, name: str, wwn: str = "") -> list[Node]:
        """The whole drives with this serial or WWN, and with this WWN where it is given: namespaces of one drive share their serial."""
        whole = [(node, node.description) for node in self.devices if node.type == "disk"]
        same = [(node, drive) for node, drive in whole if name in (drive.serial, drive.wwn)]
        return [node for node, drive in same if wwn.casefold() in ("", (drive.wwn or "").casefold())]

    def path_of(self, name: str) -> Path | None:
        """The device node of the whole drive with this serial or WWN."""
        return next((Path(node.path) for node in self.named(name)), None)

    def drives_of(self, device: Drive | None) -> list[Drive]:
        """The drive itself, or those of an array or a volume, each once (partitions count as their drive)."""
        if device is None:
            return []
        if not device.members:
            return [device]
        by_name = {node.kname: node for node in self.devices}
        nodes = [by_name[name] for name in device.members if name in by_name]
        whole = [by_name.get(node.pkname or "", node) if node.type == "part" else node for node in nodes]
        beneath = [drive for node in whole for drive in self.drives_of(node.description)]
        return list({drive.name: drive for drive in beneath}.values())


def survey(machine: Machine, directory: Path | None = None) -> Survey:
    """Asks the candidate. Raises BenchError when it does not answer, or says something else than the bench's own program does."""
    return read(machine.call("probe", *([directory] if directory else [])), Survey, "the candidate's account of itself")


def clock_of(machine: Machine) -> float:
    """The candidate's clock, s since 1970. Raises BenchError when it does not answer, or says something else."""
    said = machine.run(["date", "+%s.%N"], timeout_s=30).check("reading the candidate's clock").stdout
    if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?\n?", said):
        raise BenchError(f"the candidate's clock reads {said[:80]!r}, which is no time")
    return float(said)


def check_identity(candidate: Candidate, found: Survey, directory_is_there: bool = True) -> list[IdentityCheck]:
    """Returns a check for each thing that the inventory declares of the candidate.

    `directory_is_there` False: the target is yet to be made, so its drive is not checked."""
    declared, host = candidate.identity, found.host
    checks: list[IdentityCheck] = []

    def add(subject: str, wanted: str, said: str, ok: bool) -> None:
        checks.append(IdentityCheck(subject, wanted, said, ok))

    if "architectures" in declared:
        names = declared["architectures"]
        add("architecture", " or ".join(names), told(host.architecture), host.architecture in names)
    if "cpu_model" in declared:
        model = told(host.cpu_model)
        add("CPU model", declared["cpu_model"], model, declared["cpu_model"] in model)
    if "cpus_min" in declared:
        add("CPUs", f"at least {declared['cpus_min']}", told(host.cpus), (host.cpus or 0) >= declared["cpus_min"])
    if "memory_min" in declared:
        least = parse_size(declared["memory_min"])
        size = f"{(host.memory_bytes or 0) / 2**30:.1f} GiB"
        add("memory", f"at least {binary_label(least)}", size, (host.memory_bytes or 0) >= least)
    for drive in declared.get("drives", []):
        checks.extend(_check_drive(drive, found.named(drive["serial"])))
    serials = candidate.target.serials
    if serials and directory_is_there:
        beneath = found.drives_of(found.target.device if found.target else None)
        said = ", ".join(dict.fromkeys(drive.serial or drive.name for drive in beneath)) or "no drive"
        # A raw drive may be named by its WWN, where its serial is not its own.
        known = {drive.wwn if candidate.target.is_raw and drive.wwn in serials else drive.serial for drive in beneath}
        add(
            _target_subject(candidate),
            ", ".join(serials),
            said,
            sorted(serials) == sorted(name or "" for name in known),
        )
    return checks


def planned_checks(candidate: Candidate) -> list[str]:
    """Returns the subjects of the checks that the inventory's entry asks for, whatever the machine answers; an absent one was not made."""
    declared, serials = candidate.identity, candidate.target.serials
    named = {"architectures": "architecture", "cpu_model": "CPU model", "cpus_min": "CPUs", "memory_min": "memory"}
    subjects = [subject for key, subject in named.items() if key in declared]
    for drive in declared.get("drives", []):
        serial = drive["serial"]
        subjects += [
            f"drive {serial}",
            *(f"{key} of {serial}" for key in ("model", "firmware", "capacity") if key in drive),
        ]
    return subjects + ([_target_subject(candidate)] if serials else [])


def _target_subject(candidate: Candidate) -> str:
    if candidate.target.is_raw:
        return "target drive"
    return f"drive{'s' if len(candidate.target.serials) > 1 else ''} under the target folder"


def differences(checks: Sequence[IdentityCheck]) -> str:
    """One phrase per check that does not hold; empty when all do."""
    wrong = [check for check in checks if not check.ok]
    return "; ".join(f"{check.subject}: declared {check.declared}, found {check.found}" for check in wrong)


def told(value: object) -> str:
    return "not reported" if value is None else str(value)


def _check_drive(declared: dict[str, str], there: Sequence[Node]) -> list[IdentityCheck]:
    """`there`: the drives with its serial, which may be namespaces: the one that has the capacity is meant."""
    serial, wanted = declared["serial"], parse_size(declared.get("capacity", "0"))
    node = next((one for one in there if _is_near(one.description, wanted)), next(iter(there), None))
    found = IdentityCheck(f"drive {serial}", "present", node.path if node else "absent", node is not None)
    checks, drive = [found], node.description if node else None
    if "model" in declared:
        model = told(drive and drive.model)
        checks.append(IdentityCheck(f"model of {serial}", declared["model"], model, declared["model"] in model))
    if "firmware" in declared:
        firmware = told(drive and drive.firmware)
        same = firmware == declared["firmware"] or _is_its_part(declared["firmware"], drive)
        checks.append(IdentityCheck(f"firmware of {serial}", declared["firmware"], firmware, same))
    if "capacity" in declared:
        said = told(drive and drive.size_bytes and decimal_label(drive.size_bytes))
        checks.append(IdentityCheck(f"capacity of {serial}", decimal_label(wanted), said, _is_near(drive, wanted)))
    return checks


def _is_its_part(declared: str, drive: Drive | None) -> bool:
    """Is it what an older lsblk shows of a SATA drive's firmware, and the inventory has from there? (probe: revision_of)"""
    there = (drive and drive.transport != "nvme" and drive.firmware) or ""
    return len(declared) == SHOWN_OF_SATA and declared in there


def _is_near(drive: Drive | None, wanted: int) -> bool:
    size = drive.size_bytes if drive else None
    return size is not None and abs(size - wanted) <= CAPACITY_TOLERANCE * wanted


def where_it_is_named() -> str:
    """Where whoever asked for a run may have named its target's folder."""
    return f"{typed('--target')} or target.directory in the inventory"


def require_target_directory(path: Path) -> None:
    """Creates the folder of a scratch target on this machine. Raises BenchError when that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "a file is there" if isinstance(error, FileExistsError) else error.strerror
        raise BenchError(f"target directory {path} cannot be made: {why}. Correct {where_it_is_named()}") from None


class Runtime(Closed, frozen=True):
    """A machine as a program finds it. `glibc` is empty where the C library is another."""

    machine: str
    glibc: str
    python: str
    libraries: list[str]


def unfit(machine: Machine, layout: Layout) -> list[str]:
    """All that keeps a machine behind SSH from being a candidate, each with its remedy. This machine runs what was built on it."""
    if machine.is_local:
        return []
    use_module_utils(layout)
    from ansible.module_utils.bench_elf import needs_of
    from ansible.module_utils.bench_fit import obstacles, unbuilt

    programs = {}
    for file in (layout.portable_daqwriter, *layout.programs.values()):
        try:
            programs[file.name] = needs_of(str(file)) if file.is_file() else unbuilt()
        except (OSError, ValueError) as error:
            raise BenchError(f"{file} is damaged: {error}. Build it again: `make build`") from None
    offered = read(machine.call("runtime"), Runtime, "the candidate's account of its system")
    try:
        found: list[str] = obstacles(programs, as_document(offered))
    except ValueError:
        raise BenchError(
            f"the candidate says that its glibc is {offered.glibc!r} and its Python {offered.python!r}, which are no versions"
        ) from None
    return found


def check_fit(machine: Machine, layout: Layout, name: str) -> None:
    """Raises RefusedError with all of `unfit`."""
    if found := unfit(machine, layout):
        raise RefusedError(f"{name} cannot be a candidate: {'; '.join(found)}. Nothing was changed")


# The processes by which the bench works there. The agent is Python, which the reader knows by its domain.
NAMES = ("daqwriter", "hotstore", "netprobe", "fio", "iperf3", "smartctl", "nvme", "ipmitool", "mdadm")


class Denials(Closed, frozen=True):
    """`denied` in words; `unread`: why no log could be read, empty where one was or where SELinux is off."""

    denied: list[str]
    unread: str


def denials(machine: Machine, places: Places, since_s: float) -> Denials:
    """The denials since `since_s` by the candidate's clock. Raises BenchError."""
    asked = {"since_s": since_s, "names": NAMES, "folders": [str(places.programs), str(places.state)]}
    return read(machine.call("denials", json.dumps(asked)), Denials, "the candidate's account of SELinux")


def denials_remedy(places: Places) -> str:
    return (
        f"`restorecon -RFv {places.programs} {places.state}` there gives the bench's files the policy's labels; if it is denied again, "
        "`ausearch -m avc -ts recent | audit2why` says what allows it"
    )


def denials_cause(machine: Machine, places: Places, since_s: float) -> str:
    """The denials since then in a sentence with the remedy; empty where there are none, or the candidate does not say."""
    try:
        found: Sequence[str] = denials(machine, places, since_s).denied
    except BenchError:
        return ""
    return f"SELinux denied the bench: {printable('; '.join(found))}. Remedy: {denials_remedy(places)}" if found else ""
