#!/usr/bin/python
"""Describe the target of a run: directory or drive, filesystem, and the drives beneath."""

from __future__ import annotations

DOCUMENTATION = r"""
module: bench_storage_target
short_description: Describe what a run would write to, without writing
description:
  - Finds filesystem, mount options, free space, direct I/O and the block devices beneath a directory,
    or describes a raw drive.
  - Writes nothing. Whether the filesystem takes O_DIRECT is found by opening a file that has no name, holds
    no byte and is gone when it is closed (O_TMPFILE).
options:
  path:
    description: The directory of the scratch file, or the raw drive's device file.
    type: path
    required: true
  planned_devices:
    description:
      - Device files of the drives that are going to be beneath O(path), in check mode, where it does not exist yet.
      - They are described in its place.
    type: list
    elements: str
    default: []
  sysfs_root:
    description: Where sysfs is mounted.
    type: path
    default: /sys
  failed_is_told:
    description:
      - Whether a target that does not answer any more, as when its drive has failed under it, is told in RV(target) and
        RV(records), with as much as the kernel's list of mounts still says.
      - Without it such a target is an error.
    type: bool
    default: false
author:
  - The daq-storage-bench authors (!UNKNOWN)
"""

EXAMPLES = r"""
- name: Describe the target
  bench_storage_target:
    path: /srv/bench/scratch
"""

RETURN = r"""
target:
  description: The target. V(device) is null when no block device is beneath (tmpfs, overlay, network).
  returned: always
  type: dict
  sample:
    path: /srv/bench/scratch
    kind: directory
    filesystem: xfs
    mount_point: /srv
    mount_options: [rw, noatime]
    size_bytes: 1000000000
    free_bytes: 900000000
    direct_io: {status: supported, detail: ""}
    device: {name: nvme0n1, model: X, serial: Y}
    failed: null
records:
  description: The mismatch of a target that has failed, in the form of facts/tuning.json; none where the target answers.
  returned: always
  type: list
  elements: dict
"""

import errno
import os
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.bench_lsblk import COMMAND, Device, devices_of, everything, serial_of
from ansible.module_utils.bench_pci import placed, request_queues
from ansible.module_utils.bench_storage.devices import parse_mountinfo
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_sysfs import place_of, text_of


def first_text(directory: str, *names: str) -> str | None:
    """Return the first non-empty file of `names` in a sysfs directory."""
    return next(filter(None, (text_of(os.path.join(directory, name)) for name in names)), None)


def describe_device(directory: str, listed: Device) -> dict[str, Any]:
    """Describe one block device from its sysfs directory and lsblk's list; lsblk wins where it knows."""
    name = os.path.basename(directory)
    sectors = first_text(directory, "size")
    rotational = first_text(directory, "queue/rotational")
    numa_node, pcie_link = place_of(Path(directory))
    return {
        "name": name,
        "path": listed.path,
        "model": listed.model or first_text(directory, "device/model"),
        "serial": listed.serial or serial_of(Path(directory)) or None,
        "firmware": first_text(directory, "device/firmware_rev", "device/rev") or listed.firmware or None,
        "wwn": listed.wwn or first_text(directory, "wwid", "device/wwid"),
        "size_bytes": int(sectors) * 512 if sectors else None,  # sysfs counts 512 B sectors on every device
        "numa_node": numa_node,
        "rotational": rotational == "1" if rotational is not None else None,
        "transport": listed.transport or None,
        "pcie_link": pcie_link,
        "members": [],
    }


def whole_device(directory: str) -> str:
    """Return the disk's directory for a partition's, and any other directory as it is."""
    return os.path.dirname(directory) if os.path.exists(os.path.join(directory, "partition")) else directory


def device_tree(directory: str, listed: dict[str, Device]) -> dict[str, Any]:
    """Describe a block device and, below RAID or device mapper, the drives that make it up."""
    directory = whole_device(os.path.realpath(directory))
    name = os.path.basename(directory)
    device = describe_device(
        directory, listed.get(name, Device(name, f"/dev/{name}", number="", type="", size_bytes=0))
    )
    slaves = os.path.join(directory, "slaves")
    names = sorted(os.listdir(slaves)) if os.path.isdir(slaves) else []
    device["members"] = [device_tree(os.path.join(slaves, name), listed) for name in names]
    return device


def drives_of(device: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the drives at the leaves of a device tree, each once."""
    if device is None:
        return []
    if not device["members"]:
        return [device]
    drives = {drive["name"]: drive for member in device["members"] for drive in drives_of(member)}
    return list(drives.values())


def mount_of(path: str, mountinfo: str) -> dict[str, Any]:
    """Return the mount that `path` is on: the longest mount point that leads to it, the latest of equals."""
    best: dict[str, Any] = {}
    for mount in parse_mountinfo(mountinfo):
        point = mount.directory
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best.get("mount_point", "")):
            best = {
                "mount_point": point,
                "device_number": mount.number,
                "filesystem": mount.filesystem,
                "source": mount.source,
                "mount_options": list(mount.options),
            }
    return best


def direct_io(directory: str) -> dict[str, str]:
    """Say whether a file in `directory` can be opened with O_DIRECT, leaving no file behind."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            return {"status": "unknown", "detail": "the filesystem has no O_TMPFILE to try it with"}
        if error.errno == errno.EINVAL:
            return {"status": "unsupported", "detail": "the filesystem refuses O_DIRECT"}
        return {"status": "unknown", "detail": f"cannot open a file in {directory}: {error.strerror}"}
    os.close(descriptor)
    return {"status": "supported", "detail": ""}


def device_number(path: str, mount: dict[str, Any]) -> str | None:
    """Return MAJOR:MINOR of the block device beneath; btrfs names it only as its mount's source.

    In a chroot whose root is no mount point, no mount of ours leads to `path`: `mount` is then empty.
    """
    status = os.stat(path)
    if stat.S_ISBLK(status.st_mode):
        number = status.st_rdev
    elif os.major(status.st_dev) != 0:  # 0: an anonymous device, as of btrfs, a network or memory
        number = status.st_dev
    elif mount.get("source", "").startswith("/dev/") and os.path.exists(mount["source"]):
        number = os.stat(mount["source"]).st_rdev
    else:
        return None
    return f"{os.major(number)}:{os.minor(number)}"


def describe_target(path: str, sysfs_root: str, listed: dict[str, Device]) -> dict[str, Any]:
    """Describe directory or drive; raises ValueError when `path` is neither, and OSError when it does not answer."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    is_drive = stat.S_ISBLK(status.st_mode)
    if not is_drive and not os.path.isdir(path):
        raise ValueError(f"{path} is neither a directory nor a block device")
    mount: dict[str, Any] = {}
    target: dict[str, Any] = {"path": path, "kind": "device" if is_drive else "directory", "failed": None}
    if not is_drive:
        mount = mount_of(os.path.realpath(path), mountinfo())
        space = os.statvfs(path)
        target["size_bytes"] = space.f_frsize * space.f_blocks
        target["free_bytes"] = space.f_frsize * space.f_bavail
        target["direct_io"] = direct_io(path)
    else:
        target.update(size_bytes=None, free_bytes=None)
        target["direct_io"] = {"status": "supported", "detail": "a raw drive"}
    target.update(mounted(mount, device_number(path, mount), sysfs_root, listed))
    if target["device"] and is_drive:
        target["size_bytes"] = target["device"]["size_bytes"]
    return target


def mountinfo() -> str:
    """Return the kernel's list of mounts."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as stream:
        return stream.read()


def mounted(mount: dict[str, Any], number: str | None, sysfs_root: str, listed: dict[str, Device]) -> dict[str, Any]:
    """Return what the kernel tells of a mount and of the device beneath, which it names by MAJOR:MINOR."""
    directory = os.path.join(sysfs_root, "dev/block", number) if number else ""
    told = {key: mount.get(key) for key in ("filesystem", "mount_point", "mount_options", "source")}
    return {**told, "device": device_tree(directory, listed) if directory and os.path.isdir(directory) else None}


def describe_failed(
    path: str, error: ValueError | OSError, sysfs_root: str, listed: dict[str, Device]
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Describe a target that does not answer, from the list of mounts alone, and return its mismatch.

    One that is not there has no mount: the one above it is somebody else's.
    """
    is_there, said = isinstance(error, OSError), getattr(error, "strerror", None) or str(error)
    mount = mount_of(os.path.abspath(path), mountinfo()) if is_there else {}  # following links would ask the target
    target = {"path": path, "kind": None, "size_bytes": None, "free_bytes": None, "failed": said}
    target["direct_io"] = {"status": "unknown", "detail": said}
    target.update(mounted(mount, mount.get("device_number"), sysfs_root, listed))
    record = {
        "id": "storage-target", "role": "storage", "subject": path, "asked": "an answer", "before": "", "applied": "",
        "read_back": said, "status": "mismatch",
        "detail": "the target has failed: `daq-bench restore` gives the candidate back; then look at its drives",
    }  # fmt: skip
    return target, [record]


def describe_planned(
    path: str, devices: list[str], sysfs_root: str, listed: dict[str, Device]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Describe a target that does not exist yet, and the drives that will be beneath it."""
    unknown = {"status": "unknown", "detail": "not built yet"}
    missing = dict.fromkeys(
        ("filesystem", "mount_point", "mount_options", "source", "size_bytes", "free_bytes", "device")
    )
    names = [os.path.basename(device) for device in devices]
    drives = [device_tree(os.path.join(sysfs_root, "block", name), listed) for name in names]
    return {**missing, "path": path, "kind": "directory", "direct_io": unknown, "failed": None}, drives


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "planned_devices": {"type": "list", "elements": "str", "default": []},
            "sysfs_root": {"type": "path", "default": "/sys"},
            "failed_is_told": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    command = [module.get_bin_path("lsblk", required=True), *COMMAND[1:]]
    _rc, output, _error = module.run_command(command, check_rc=True)
    sys_block = Path(module.params["sysfs_root"], "block")
    try:
        listed = {device.name: device for device in everything(devices_of(output, sys_block)).values()}
    except ValueError as error:
        module.fail_json(msg=f"target: {error}")
    path, sysfs_root = module.params["path"], module.params["sysfs_root"]
    records: list[dict[str, str]] = []
    try:
        if module.params["planned_devices"] and module.check_mode:
            target, drives = describe_planned(path, module.params["planned_devices"], sysfs_root, listed)
        else:
            target = describe_target(path, sysfs_root, listed)
            drives = drives_of(target["device"])
    except StorageError as error:
        module.fail_json(msg=f"target: {error}")
    except (ValueError, OSError) as error:
        if not module.params["failed_is_told"]:
            module.fail_json(msg=f"target: {error}")
        target, records = describe_failed(path, error, sysfs_root, listed)
        drives = drives_of(target["device"])
    drives = [
        {
            **placed(drive, os.path.join(sysfs_root, "block", drive["name"]), sysfs_root),
            "queues": request_queues(drive["name"], sysfs_root),
        }
        for drive in drives
    ]
    block_devices = [{**vars(one), "children": [child.name for child in one.children]} for one in listed.values()]
    module.exit_json(changed=False, target=target, records=records, drives=drives, block_devices=block_devices)


if __name__ == "__main__":
    main()
