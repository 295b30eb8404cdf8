"""Looks at drives and at what is built on them; writes nothing.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ansible.module_utils.bench_lsblk import Device, everything
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import Facts, contents, find, objections, size_objection
from ansible.module_utils.bench_storage.layout import Layout
from ansible.module_utils.bench_storage.machine import Machine
from ansible.module_utils.bench_storage.marks import BUSY_S_MAX
from ansible.module_utils.bench_storage.nvme import Abilities


@dataclass(frozen=True)
class Drive:
    """One drive under test with what is known of it."""

    device: Device
    facts: Facts
    abilities: Abilities | None  # None: no NVMe drive


def uuid_digits(text: str) -> str:
    """Return a UUID's hexadecimal digits alone: mdadm writes colons where others write dashes."""
    return re.sub(r"[^0-9a-f]", "", text.lower())


def usage_of(machine: Machine, device: Device) -> Facts:
    """Find out what uses a drive and everything on it."""
    mounts = machine.mounts()
    swaps = machine.swap_files()
    tree = device.tree()
    points = {part.name: [m.directory for m in mounts if m.number == part.number] for part in tree}
    named = {part.name: machine.names_of(part) for part in tree}
    mounted = {name: directories for name, directories in points.items() if directories}
    swapped = [part.name for part in tree if part.path in swaps]
    holders = machine.holders(device.name)
    known = bool(mounted or swapped or any(holders.values()))
    busy = machine.exclusive_refusal(device.path, wait_s=0.0 if known else BUSY_S_MAX)
    elsewhere = machine.mounts_elsewhere({part.number for part in tree}) if busy and not known else {}
    return Facts(
        mounts=mounted,
        elsewhere={part.name: elsewhere[part.number] for part in tree if part.number in elsewhere},
        swaps=swapped,
        named={name: who for name, who in named.items() if who},
        holders=holders,
        busy=busy,
        signatures={part.name: machine.signatures(part.path) for part in tree},
        kernel_serial=machine.kernel_serial(device.name),
        lba_bytes=machine.queue_number(device.name, "logical_block_size"),
        can_discard=machine.queue_number(device.name, "discard_max_bytes") > 0,
    )


def purge_refusal(purge: str, abilities: Abilities | None) -> str:
    """Return why the drive cannot be purged by a command of its own; empty where that is not asked."""
    if purge in ("format", "sanitize") and abilities is None:
        return f"is no NVMe drive, so purge: {purge} is not possible: give discard or none"
    if abilities is not None and purge == "format" and not abilities.can_format:
        return "does not support Format NVM: give purge: sanitize, discard or none"
    if abilities is not None and purge == "sanitize" and not abilities.sanitize_action:
        return "supports neither block erase nor crypto erase: give purge: format, discard or none"
    return ""


def survey(machine: Machine, layout: Layout, device: Device, roots: list[Device]) -> Drive:
    """Find out everything that the guard asks about one drive."""
    facts = usage_of(machine, device)
    needs_nvme = bool(layout.lba_bytes) or layout.purge in ("format", "sanitize")
    abilities = machine.nvme_abilities(device.path) if needs_nvme and machine.is_nvme(device.name) else None
    return Drive(
        device,
        Facts(
            **{
                **vars(facts),
                "lba_choices": abilities.lba_choices() if abilities else (),
                "purge_refusal": purge_refusal(layout.purge, abilities),
                "namespaces": tuple(root.name for root in roots if root.serial == device.serial),
            }
        ),
        abilities,
    )


def directory_objection(machine: Machine, directory: str) -> str:
    """Return why nothing can be mounted at the target's directory; empty where it can."""
    if any(mount.directory == directory for mount in machine.mounts()):
        return f"something is mounted at {directory} already: unmount it, or choose another directory for the target"
    if os.path.realpath(directory) != directory:
        return (
            f"{directory} leads through a symbolic link to {os.path.realpath(directory)}: write that into the inventory"
        )
    if os.path.lexists(directory) and not os.path.isdir(directory):
        return f"{directory} is not a folder: choose another directory for the target"
    if os.path.isdir(directory) and os.listdir(directory):
        return f"{directory} is not empty, and mounting there would hide what it holds: empty it, or choose another"
    return ""


def guarded(machine: Machine, layout: Layout, free_bytes_min: int) -> list[Drive]:
    """Return the drives if nothing speaks against destroying them; StorageError lists everything that does."""
    roots = machine.devices()
    found: list[Drive] = []
    said: list[str] = []
    for wanted in layout.drives:
        try:
            device = find(wanted, roots)
        except StorageError as error:
            said.append(str(error))
            continue
        drive = survey(machine, layout, device, roots)
        found.append(drive)
        against = objections(layout, device, drive.facts)
        said += [f"drive {device}: {'; '.join(against)}"] if against else []
    if not said:
        said = [size_objection(layout, [drive.device for drive in found], free_bytes_min)]
        said = [text for text in (*said, directory_objection(machine, layout.directory)) if text]
    if said:
        raise StorageError(f"target {layout.target}: nothing was written. {'. '.join(said)}")
    return found


def doom(drive: Drive) -> str:
    """Say what would be lost, by serial and model."""
    return f"would destroy drive {drive.device}, which carries {contents(drive.device, drive.facts)}"


@dataclass(frozen=True)
class Stack:
    """The mount at the target's directory, down to the drives."""

    device: Device | None = None  # drive or array; None: nothing is mounted there
    raid: str = ""
    array_state: str = ""
    members: tuple[str, ...] = ()  # serials, in the order of the slots
    filesystem: str = ""
    options: tuple[str, ...] = ()
    lba_bytes: tuple[int, ...] = ()


def observe(machine: Machine, directory: str) -> Stack:
    """Read the stack back from the kernel."""
    at = [mount for mount in machine.mounts() if mount.directory == directory]
    roots = machine.devices()
    device = everything(roots).get(at[-1].number) if at else None
    if device is None:
        return Stack()
    names, raid, state = [device.name], "", ""
    if device.type.startswith("raid") or machine.array_value(device.name, "level"):
        names = machine.array_members(device.name)
        chunk = int(machine.array_value(device.name, "chunk_size") or 0)
        level = machine.array_value(device.name, "level")
        raid = level + (f", chunk {chunk // 1024} KiB" if chunk and level != "raid1" else "")
        state = machine.array_value(device.name, "array_state")
    serials = {root.name: root.serial for root in roots}
    return Stack(
        device=device,
        raid=raid,
        array_state=state,
        members=tuple(serials.get(name) or name for name in names),
        filesystem=at[-1].filesystem,
        options=at[-1].options,
        lba_bytes=tuple(machine.queue_number(name, "logical_block_size") for name in names),
    )


def differences(layout: Layout, stack: Stack) -> dict[str, str]:
    """Return what of the stack is not as asked, by aspect; empty where all is."""
    if stack.device is None:
        return {"mount": f"nothing that lies on a drive is mounted at {layout.directory}"}
    found = {}
    asked, serials = str(layout.raid or ""), tuple(drive.serial for drive in layout.drives)
    if (asked, serials) != (stack.raid, stack.members):
        found["array"] = (
            f"asked {asked or 'no array'} of {', '.join(serials)},"
            f" found {stack.raid or 'no array'} of {', '.join(stack.members)}"
        )
    if stack.filesystem != layout.filesystem:
        found["filesystem"] = f"asked {layout.filesystem}, found {stack.filesystem}"
    if layout.lba_bytes and set(stack.lba_bytes) != {layout.lba_bytes}:
        found["lba"] = f"asked {layout.lba_bytes} B, found {', '.join(map(str, stack.lba_bytes))} B"
    if "rw" not in stack.options:
        found["mount"] = f"{layout.directory} is mounted read-only"
    return found
