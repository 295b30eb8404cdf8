"""Finds what was built again after a reboot: nothing of the bench is in fstab or mdadm.conf.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

import os
from typing import Any

from ansible.module_utils.bench_lsblk import everything
from ansible.module_utils.bench_storage.construct import md_uuid
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import find
from ansible.module_utils.bench_storage.layout import Layout
from ansible.module_utils.bench_storage.machine import Machine
from ansible.module_utils.bench_storage.survey import uuid_digits


def find_built(machine: Machine, layout: Layout, state: dict[str, Any]) -> str:
    """Return the device file that carries the target's file system, assembling its array where that does not run."""
    path = find_array(machine, layout, state) if state["array"] else find(layout.drives[0], machine.devices()).path
    if uuid_digits(machine.filesystem_uuid(path)) != uuid_digits(state["filesystem"]["uuid"]):
        raise StorageError(
            f"{path} no longer carries the file system that was built for target {layout.target}: run restore.yml first"
        )
    return path


def find_array(machine: Machine, layout: Layout, state: dict[str, Any]) -> str:
    """Return the array's device file."""
    wanted = uuid_digits(state["array"]["uuid"])
    roots = machine.devices()
    for device in everything(roots).values():
        if device.type.startswith("raid") and uuid_digits(machine.array_uuid(device.path)) == wanted:
            return device.path
    members = [find(drive, roots).path for drive in layout.drives]
    path = f"/dev/md/{layout.array_name}"
    machine.run(["mdadm", "--assemble", path, f"--uuid={md_uuid(state['array']['uuid'])}", *members])
    machine.settle()
    return os.path.realpath(path)
