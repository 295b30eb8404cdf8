"""Compares the candidate's own account (`on_candidate/probe.py` reads it there) with the inventory's declaration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.base.units import binary_label, parse_size
from bench_model.profiles.candidates import Candidate
from rig.candidate.machine import Machine


@dataclass(frozen=True)
class Device:
    """A whole drive, or an array of `members`. None: the device does not report it (virtual disks often report no serial)."""

    name: str
    model: str | None
    serial: str | None
    firmware: str | None
    wwn: str | None
    size_bytes: int
    numa_node: int | None
    rotational: bool
    transport: str | None
    pcie_link: str | None
    raid_level: str | None = None
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """The target that a run writes to. `device` is None where no single drive or array is beneath (network, memory).

    `filesystem` is None on a raw drive, whose `free_bytes` are its whole capacity."""

    filesystem: str | None
    free_bytes: int
    device: Device | None


@dataclass(frozen=True)
class Survey:
    """`host` as in run.json's candidate; `devices` as lsblk lists them, with a `description` each; `target` if it is there."""

    host: dict[str, Any]
    devices: list[dict[str, Any]]
    target: Target | None
    clock_s: float

    def path_of(self, serial: str) -> Path | None:
        """The device node of the whole drive with this serial or WWN."""
        for node in self.devices:
            if serial in (node["description"]["serial"], node["description"]["wwn"]) and node["type"] == "disk":
                return Path(node["path"])
        return None

    def drives_of(self, device: Device | None) -> list[Device]:
        """The drive itself, or the members of an array (partitions count as their drive)."""
        if device is None:
            return []
        if not device.members:
            return [device]
        by_name = {node["kname"]: node for node in self.devices}
        nodes = [by_name[name] for name in device.members if name in by_name]
        whole = [by_name.get(node["pkname"], node) if node["type"] == "part" else node for node in nodes]
        return [drive for node in whole for drive in self.drives_of(device_from(node["description"]))]


def device_from(description: dict[str, Any]) -> Device:
    return Device(**{**description, "members": tuple(description["members"])})


def survey(machine: Machine, directory: Path | None = None) -> Survey:
    """Asks the candidate. Raises BenchError when it does not answer."""
    found = machine.call("probe", *([directory] if directory else []))
    target = found["target"]
    if target:
        device = device_from(target["device"]) if target["device"] else None
        target = Target(target["filesystem"], target["free_bytes"], device)
    return Survey(found["host"], found["devices"], target, found["clock_s"])


def check_identity(candidate: Candidate, found: Survey, directory_is_there: bool = True) -> list[dict[str, Any]]:
    """Returns one {subject, declared, found, ok} for each thing that the inventory declares of the candidate.

    `directory_is_there` False: the target is yet to be made, so its drive is not checked."""
    declared, host = candidate.identity, found.host
    checks: list[dict[str, Any]] = []

    def add(subject: str, wanted: str, said: str, ok: bool) -> None:
        checks.append({"subject": subject, "declared": wanted, "found": said, "ok": ok})

    if "architectures" in declared:
        names = declared["architectures"]
        add("architecture", " or ".join(names), host["architecture"], host["architecture"] in names)
    if "cpu_model" in declared:
        add("CPU model", declared["cpu_model"], host["cpu_model"], declared["cpu_model"] in host["cpu_model"])
    if "cpus_min" in declared:
        add("CPUs", f"at least {declared['cpus_min']}", str(host["cpus"]), host["cpus"] >= declared["cpus_min"])
    if "memory_min" in declared:
        least = parse_size(declared["memory_min"])
        size = f"{host['memory_bytes'] / 2**30:.1f} GiB"
        add("memory", f"at least {binary_label(least)}", size, host["memory_bytes"] >= least)
    for drive in declared.get("drives", []):
        checks.extend(_check_drive(drive, found.devices))
    serials = candidate.target.serials
    if serials and directory_is_there:
        beneath = found.drives_of(found.target.device if found.target else None)
        said = ", ".join(drive.serial or drive.name for drive in beneath) or "no drive"
        # A raw drive may be named by its WWN, where its serial is not its own.
        known = [drive.wwn if candidate.target.is_raw and drive.wwn in serials else drive.serial for drive in beneath]
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
        subjects += [f"drive {serial}", *(f"{key} of {serial}" for key in ("model", "firmware") if key in drive)]
    return subjects + ([_target_subject(candidate)] if serials else [])


def _target_subject(candidate: Candidate) -> str:
    if candidate.target.is_raw:
        return "target drive"
    return f"drive{'s' if len(candidate.target.serials) > 1 else ''} under the target folder"


def differences(checks: list[dict[str, Any]]) -> str:
    """One phrase per check that does not hold; empty when all do."""
    wrong = [check for check in checks if not check["ok"]]
    return "; ".join(f"{check['subject']}: declared {check['declared']}, found {check['found']}" for check in wrong)


def _check_drive(drive: dict[str, str], devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    serial = drive["serial"]
    node = next((one for one in devices if one["description"]["serial"] == serial), None)
    checks = [_drive_check(f"drive {serial}", "present", node["path"] if node else "absent", node is not None)]
    found = node["description"] if node else {"model": None, "firmware": None}
    if "model" in drive:
        model = found["model"] or "not reported"
        checks.append(_drive_check(f"model of {serial}", drive["model"], model, drive["model"] in model))
    if "firmware" in drive:
        firmware = found["firmware"] or "not reported"
        checks.append(_drive_check(f"firmware of {serial}", drive["firmware"], firmware, firmware == drive["firmware"]))
    return checks


def _drive_check(subject: str, declared: str, found: str, ok: bool) -> dict[str, Any]:
    return {"subject": subject, "declared": declared, "found": found, "ok": ok}


def require_target_directory(path: Path) -> None:
    """Creates the folder of a scratch target on this machine. Raises BenchError when that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(
            f"target directory {path} cannot be made: {error.strerror}. Correct target.directory in the inventory"
        ) from None
