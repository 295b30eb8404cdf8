#!/usr/bin/python
"""Build, verify or undo the storage under test, guarded by the drives' serials."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_storage_build
short_description: Build, verify or undo the storage under test, guarded by the drives' serials
description:
  - Purges the drives, sets their LBA format, makes an md array and a file system and mounts it. B(Destroys what is on the
    drives), if and only if O(layout.destroy) is true and nothing uses them.
  - All drives are checked before the first is written. Each step is written to
    C(storage-<target>.json) below O(state_dir) before it is begun.
  - A target built before (recognised by that file) is left as it is. Where nothing may be destroyed, an array and
    file system that are there and match are accepted.
  - Check mode tells what would be destroyed, by serial and model, and does nothing.
options:
  mode:
    description: V(undo) undoes all targets that O(state_dir) remembers, V(undo_target) the one that O(target) names.
    type: str
    choices: [build, verify, undo, undo_target]
    default: build
  state_dir:
    description: Folder on the candidate that keeps what was built.
    type: path
    required: true
  target:
    description: The target's name; empty for a candidate's only one.
    type: str
    default: ""
  directory:
    description: Where the file system is mounted.
    type: path
  layout:
    description: The target to build, in the form of a target's C(storage) block.
    type: dict
    suboptions:
      drives:
        description: Serials of the drives, in the order of the array's members; or mappings of C(serial) and C(wwn).
        type: list
        elements: raw
        required: true
      destroy:
        description: Consent to lose everything that is on these drives.
        type: bool
        default: false
      purge:
        description: How the drives are brought into a known state first.
        type: str
        choices: [none, discard, format, sanitize]
        default: none
      lba_bytes:
        description: Size of the logical blocks (NVMe). Left out, the drive stays as it is.
        type: int
      raid:
        description: The array; left out for a single drive.
        type: dict
        suboptions:
          level:
            description: md's level.
            type: int
            choices: [0, 1, 5, 6, 10]
            required: true
          chunk:
            description: Size of the chunks, such as 128KiB.
            type: str
      filesystem:
        description: The file system.
        type: str
        choices: [xfs, ext4]
        default: xfs
  free_bytes_min:
    description: The least that the drives must hold together.
    type: int
    default: 0
  wait_s:
    description: Longest time for one format, sanitize or resync, in s.
    type: int
    default: 14400
  sysfs_root:
    description: Where sysfs is mounted.
    type: path
    default: /sys
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Make a RAID 0 of two drives
  bench_storage_build:
    state_dir: /var/lib/daq-storage-bench
    target: nand-raid0
    directory: /srv/daq-bench/nand-raid0
    layout:
      drives: ["2109ABCD0001", "2109ABCD0002"]
      destroy: true
      purge: discard
      raid: {level: 0, chunk: 128KiB}
      filesystem: xfs
"""

RETURN = r"""
records:
  description: One record per aspect, in the form of C(facts/tuning.json).
  returned: always
  type: list
  elements: dict
plan:
  description: The things that would be destroyed and made; in check mode only.
  returned: always
  type: list
  elements: str
devices:
  description: Device files of the drives of the layout; empty where something is undone.
  returned: always
  type: list
  elements: str
"""

import contextlib
import os
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_state import locked
from ansible.module_utils.bench_storage import memory
from ansible.module_utils.bench_storage.construct import Construction, commands_for, first_state, mount
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.layout import PURGES, Layout, layout_of
from ansible.module_utils.bench_storage.machine import Machine
from ansible.module_utils.bench_storage.report import records_of
from ansible.module_utils.bench_storage.revive import find_built
from ansible.module_utils.bench_storage.survey import Stack, differences, doom, guarded, observe
from ansible.module_utils.bench_storage.undo import Undoing

UNDO_FIRST = "run restore.yml first (daq-bench restore does; it erases what was built)"


@dataclass
class Result:
    """The module's result."""

    records: list[dict[str, str]] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    changed: bool = False


def verified(machine: Machine, layout: Layout, state: dict[str, Any] | None) -> Result:
    """Read everything back; changes nothing and refuses nothing."""
    stack = observe(machine, layout.directory)
    built = state if state and state["phase"] == memory.COMPLETE else None
    return Result(records_of(layout, stack, built, just_built=False))


def kept(machine: Machine, layout: Layout, state: dict[str, Any], pretend: bool) -> Result:
    """Leave the built target as it is; after a reboot, assemble and mount it again."""
    if state["layout"] != layout.fingerprint():
        changed = [key for key, value in layout.fingerprint().items() if state["layout"].get(key) != value]
        raise StorageError(
            f"target {layout.target} was built with another {', '.join(changed)} than the inventory asks now: {UNDO_FIRST}"
        )
    stack = observe(machine, layout.directory)
    if stack.device is None and pretend:
        return Result(plan=[f"would mount the target {layout.target} again; nothing would be erased"], changed=True)
    revived = stack.device is None
    if revived:
        mount(machine, layout, find_built(machine, layout, state))
        stack = observe(machine, layout.directory)
    found = differences(layout, stack)
    if found:
        raise StorageError(
            f"target {layout.target} is no longer what was built ({'; '.join(found.values())}): {UNDO_FIRST}"
        )
    return Result(records_of(layout, stack, state, just_built=False), changed=revived)


def accepted(layout: Layout, stack: Stack) -> Result:
    """Without consent: accept the existing target if it matches."""
    found = differences(layout, stack)
    if found:
        raise StorageError(
            f"target {layout.target}: {'; '.join(found.values())}; and without destroy: true in the target's storage: block"
            " nothing is made. Give that consent if everything on the drives may be lost, or make it by hand"
        )
    return Result(records_of(layout, stack, None, just_built=False))


def planned(layout: Layout, losses: list[str]) -> Result:
    """Return the steps that would be done."""
    made = f"would make {layout.raid or 'no array'}, {layout.filesystem}, mounted at {layout.directory}"
    purge = f"would purge by {layout.purge}" if layout.purge != "none" else "would erase signatures only"
    lba = [f"would set logical blocks of {layout.lba_bytes} B where they differ"] if layout.lba_bytes else []
    return Result(plan=[*losses, purge, *lba, made], changed=True)


def refuse_shared(layout: Layout, state_dir: str) -> None:
    """Refuse drives that another target of this candidate was built on: the guard would only see them in use."""
    wanted = {drive.serial for drive in layout.drives}
    for path in memory.remembered(state_dir):
        state = memory.load(path)
        shared = sorted(wanted & {drive["serial"] for drive in state["drives"]}) if state else []
        if state and state["target"] != layout.target and shared:
            raise StorageError(
                f"target {layout.target} wants {', '.join(shared)}, on which target {state['target']} was built ({path}):"
                f" {UNDO_FIRST}"
            )


def build(machine: Machine, layout: Layout, options: dict[str, Any], pretend: bool) -> Result:
    """Build the target, whatever state it was left in."""
    path = memory.path_of(options["state_dir"], layout.target)
    state = memory.load(path)
    if state is not None and state["phase"] == memory.COMPLETE:
        return kept(machine, layout, state, pretend)
    if state is not None:
        if pretend:
            return planned(layout, [f"would first undo what an interrupted run left (phase {state['phase']}, {path})"])
        undoing = Undoing(machine, path, state)
        undoing.run()
        if os.path.exists(path):
            detail = "; ".join(entry["detail"] for entry in undoing.records if entry["status"] != "applied")
            raise StorageError(f"target {layout.target}: what an interrupted run left cannot be undone: {detail}")
    machine.require(commands_for(layout))
    refuse_shared(layout, options["state_dir"])
    if not layout.destroy:
        return accepted(layout, observe(machine, layout.directory))
    drives = guarded(machine, layout, options["free_bytes_min"])
    if pretend:
        return planned(layout, [doom(drive) for drive in drives])
    state = first_state(layout, drives)
    memory.save(path, state)
    Construction(machine, layout, path, state, options["wait_s"]).run(drives)
    stack = observe(machine, layout.directory)
    found = differences(layout, stack)
    if found:
        raise StorageError(f"target {layout.target} was built and reads back differently: {'; '.join(found.values())}")
    return Result(records_of(layout, stack, state, just_built=True), changed=True)


def undo(machine: Machine, options: dict[str, Any], pretend: bool) -> Result:
    """Undo every target that is remembered, or the one that is named."""
    result = Result()
    paths = memory.remembered(options["state_dir"])
    if options["mode"] == "undo_target":
        paths = [path for path in paths if path == memory.path_of(options["state_dir"], options["target"])]
    for path in paths:
        state = memory.load(path)
        if state is None:
            raise AssertionError("it was found just now, under the lock")
        undoing = Undoing(machine, path, state, pretend)
        undoing.run()
        result.records += undoing.records
        result.changed = result.changed or undoing.changed
    return result


def run_mode(options: dict[str, Any], machine: Machine, pretend: bool) -> Result:
    """Build, verify or undo, as `mode` says, holding the state directory's lock where it writes."""
    # A build that was cut off from its controller goes on; undo waits here until it has ended.
    writes = options["mode"] != "verify" and not pretend
    with locked(options["state_dir"]) if writes else contextlib.nullcontext():
        if options["mode"] in ("undo", "undo_target"):
            return undo(machine, options, pretend)
        layout = layout_of(options["target"], options["directory"], options["layout"])
        if options["mode"] == "build":
            result = build(machine, layout, options, pretend)
        else:
            result = verified(machine, layout, memory.load(memory.path_of(options["state_dir"], layout.target)))
        serials = {drive.serial for drive in layout.drives}
        result.devices = [device.path for device in machine.devices() if device.serial in serials]
        return result


def argument_spec() -> dict[str, Any]:
    """Return the module's options."""
    raid = {
        "level": {"type": "int", "choices": [0, 1, 5, 6, 10], "required": True},
        "chunk": {"type": "str"},
    }
    layout = {
        "drives": {"type": "list", "elements": "raw", "required": True},
        "destroy": {"type": "bool", "default": False},
        "purge": {"type": "str", "choices": list(PURGES), "default": "none"},
        "lba_bytes": {"type": "int"},
        "raid": {"type": "dict", "options": raid},
        "filesystem": {"type": "str", "choices": ["xfs", "ext4"], "default": "xfs"},
    }
    return {
        "mode": {"type": "str", "choices": ["build", "verify", "undo", "undo_target"], "default": "build"},
        "state_dir": {"type": "path", "required": True},
        "target": {"type": "str", "default": ""},
        "directory": {"type": "path"},
        "layout": {"type": "dict", "options": layout},
        "free_bytes_min": {"type": "int", "default": 0},
        "wait_s": {"type": "int", "default": 14400},
        "sysfs_root": {"type": "path", "default": "/sys"},
    }


def main() -> None:
    """Run the module."""
    needs = ["directory", "layout"]
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("mode", "build", needs), ("mode", "verify", needs)],
        supports_check_mode=True,
    )
    try:
        machine = Machine(log=module.log, sysfs_root=module.params["sysfs_root"])
        result = run_mode(module.params, machine, module.check_mode)
    except (StorageError, OSError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**vars(result))


if __name__ == "__main__":
    main()
