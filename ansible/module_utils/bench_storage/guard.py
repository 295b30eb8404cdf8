"""The guard before anything is destroyed. Pure: facts in, objections out.

Promises: a drive passes only if it is exactly the one named, a whole drive, not in use in any way that the kernel, fstab
or its own signatures tell of, and able to do what is asked. `destroy: true` allows losing data; it never allows taking
a drive that something uses. The guard looks at all drives before the first is written.
Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible.module_utils.bench_lsblk import Device
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.layout import Layout, Wanted

# Signatures of sets: other drives, perhaps of another machine, belong to them, so that consent to lose one drive's
# data says too little. Names as of libblkid: all that it calls "raid", and those that daqwriter's interlock adds (drive_contents.cpp);
# a test compares the three.
FIRMWARE = "delete the array in the controller's or the firmware's RAID set-up"
SETS = {
    "linux_raid_member": "mdadm --stop its array, then mdadm --zero-superblock",
    **dict.fromkeys(
        (
            "isw_raid_member",
            "ddf_raid_member",
            "lsi_mega_raid_member",
            "via_raid_member",
            "silicon_medley_raid_member",
            "nvidia_raid_member",
            "promise_fasttrack_raid_member",
            "hpt45x_raid_member",
            "hpt37x_raid_member",
            "adaptec_raid_member",
            "jmicron_raid_member",
        ),
        FIRMWARE,
    ),
    "LVM1_member": "vgreduce or vgremove its volume group, then pvremove",
    "stratis": "destroy its pool, then wipefs --all",
    "ubi": "detach it, then wipefs --all",
    "bcachefs": "remove it from its file system, then wipefs --all",
    "LVM2_member": "vgreduce or vgremove its volume group, then pvremove",
    "zfs_member": "zpool destroy its pool, or zpool labelclear",
    "bcache": "unregister it, then wipefs --all",
    "ceph_bluestore": "remove its OSD, then wipefs --all",
    "drbd": "remove its resource, then wipefs --all",
    "VMFS_volume_member": "remove its datastore",
}
FILESYSTEM_BYTES_MIN = 300 * 2**20  # the least that mkfs.xfs(8) accepts
MEMBER_SIZES_DIFFER_MAX = 0.01  # [P] beyond it an array wastes a drive's end, or RAID 0 works it with fewer members


@dataclass(frozen=True)
class Facts:
    """The facts that the edge found about one drive and everything on it; keys are device names."""

    mounts: dict[str, list[str]] = field(default_factory=dict)  # name: mount points
    swaps: list[str] = field(default_factory=list)  # names
    elsewhere: dict[str, list[str]] = field(
        default_factory=dict
    )  # name: mounts in other mount namespaces, if it is busy
    named: dict[str, str] = field(default_factory=dict)  # name: who names it (fstab, kernel command line)
    holders: dict[str, list[str]] = field(default_factory=dict)  # name: devices made of it, as sysfs tells
    busy: str = ""  # the kernel's reason to refuse an exclusive open
    signatures: dict[str, list[str]] = field(default_factory=dict)  # name: libblkid types found on it
    kernel_serial: str = ""  # sysfs's own; empty where the driver has none
    lba_bytes: int = 512
    lba_choices: tuple[int, ...] = ()  # LBA formats without metadata; empty where the drive cannot be formatted
    can_discard: bool = False
    purge_refusal: str = ""  # why format or sanitize is not possible; empty when it is, or not asked
    namespaces: tuple[str, ...] = ()  # names of all namespaces with this serial


def find(wanted: Wanted, roots: list[Device]) -> Device:
    """Return the one device with this serial (and WWN); StorageError says what is there instead."""
    same = [device for device in roots if device.serial == wanted.serial]
    if not same:
        there = ", ".join(str(device) for device in roots if device.serial) or "none with a serial"
        raise StorageError(
            f"no drive has the serial {wanted.serial}; this machine has: {there}. Correct storage.drives"
        )
    if wanted.wwn:
        exact = [device for device in same if device.wwn.lower() == wanted.wwn.lower()]
        if len(exact) != 1:
            there = ", ".join(f"{device.path} has {device.wwn or 'none'}" for device in same)
            raise StorageError(
                f"no single drive {wanted.serial} has the WWN {wanted.wwn} ({there}). Correct wwn;"
                " where these are paths to one drive, use the kernel's native multipath (nvme_core.multipath=Y), or take away the others"
            )
        return exact[0]
    if len(same) > 1:
        there = ", ".join(f"{device.path} (wwn {device.wwn or 'none'})" for device in same)
        raise StorageError(
            f"{len(same)} devices have the serial {wanted.serial}: {there}. Name one: {{serial: ..., wwn: ...}}"
        )
    return same[0]


def usage_objections(drive: Device, facts: Facts) -> list[str]:
    """Lists the users of the drive, now or at the next boot. No consent overrides these."""
    said = []
    for device in drive.tree():
        name = device.name
        for directory in facts.mounts.get(name, []):
            said.append(f"{name} is mounted at {directory}: unmount it")
        if places := facts.elsewhere.get(name):
            more = f", and in {len(places) - 1} more" if len(places) > 1 else ""
            said.append(f"{name} is mounted at {places[0]}{more}: unmount it there, or end that process")
        if name in facts.swaps:
            said.append(f"{name} is swap space in use: swapoff it")
        if name in facts.named:
            said.append(f"{name} is named by {facts.named[name]}: it belongs to this system")
        if device is not drive and device.type != "part":
            said.append(f"it is held by {name} ({device.type}): stop or remove that first")
        unlisted = set(facts.holders.get(name, [])) - {below.name for below in device.tree()}
        if unlisted:
            said.append(f"{name} is held by {', '.join(sorted(unlisted))}: stop or remove that first")
    if facts.busy and not said:  # what the lists do not show: ZFS, a process
        said.append(f"the kernel refuses to open it exclusively ({facts.busy}): something uses it")
    return said


def set_objections(facts: Facts, own: frozenset[str]) -> list[str]:
    """Sets that the drive belongs to without being held at present; `own` names devices known to be the bench's."""
    said = []
    for name, types in facts.signatures.items():
        for kind in types:
            remedy = SETS.get(kind)
            if remedy and name not in own:
                said.append(f"{name} belongs to a set of drives ({kind}): if it may go, {remedy}")
    return said


def identity_objections(drive: Device, facts: Facts) -> list[str]:
    """Says whether the device is what its listing says."""
    said = []
    if drive.type != "disk":
        said.append(f"is a {drive.type or 'device of unknown type'}, not a whole drive")
    if drive.read_only:
        said.append("is read-only")
    if facts.kernel_serial and facts.kernel_serial != drive.serial:
        said.append(f"lsblk gives this serial, the kernel {facts.kernel_serial}: run udevadm trigger")
    if drive.size_bytes < FILESYSTEM_BYTES_MIN:
        said.append(f"has {drive.size_bytes} B; a file system needs {FILESYSTEM_BYTES_MIN} B")
    return said


def ability_objections(layout: Layout, facts: Facts) -> list[str]:
    """Says whether the drive can be purged and formatted as asked."""
    said = []
    if layout.purge == "discard" and not facts.can_discard:
        said.append("cannot discard: give purge: format or sanitize (NVMe), or none")
    if facts.purge_refusal:
        said.append(facts.purge_refusal)
    formats = layout.lba_bytes and layout.lba_bytes != facts.lba_bytes
    if formats and layout.lba_bytes not in facts.lba_choices:
        offered = ", ".join(map(str, facts.lba_choices)) or "none that can be chosen"
        said.append(
            f"has no LBA format of {layout.lba_bytes} B without metadata (now {facts.lba_bytes}, offered: {offered}):"
            " correct or remove storage.lba_bytes"
        )
    if len(facts.namespaces) > 1 and (formats or layout.purge in ("format", "sanitize")):
        said.append(
            f"its controller has several namespaces ({', '.join(facts.namespaces)}), and format and sanitize may erase all:"
            " give purge: discard and no other lba_bytes, or delete the other namespaces"
        )
    return said


def objections(layout: Layout, drive: Device, facts: Facts) -> list[str]:
    """Everything that speaks against writing to one drive."""
    said = identity_objections(drive, facts) + usage_objections(drive, facts)
    said += set_objections(facts, frozenset()) + ability_objections(layout, facts)
    if not layout.destroy:
        said.append(
            f"holds {contents(drive, facts)} and there is no consent to lose it: write destroy: true into the target's"
            " storage: block"
        )
    return said


def size_objection(layout: Layout, drives: list[Device], free_bytes_min: int) -> str:
    """Says whether the drives together make a target of the size needed; an empty string if so."""
    sizes = [drive.size_bytes for drive in drives]
    if max(sizes) - min(sizes) > MEMBER_SIZES_DIFFER_MAX * max(sizes):
        listed = ", ".join(f"{drive.serial} {drive.size_bytes}" for drive in drives)
        return f"the array's members differ in size by more than 1 % (in B: {listed}): name drives of one size"
    usable = min(sizes) * (layout.raid.data_drives(len(drives)) if layout.raid else 1)
    if usable < free_bytes_min:
        return f"the drives together hold {usable} B, needed are {free_bytes_min} B: name more or larger drives"
    return ""


def contents(drive: Device, facts: Facts) -> str:
    """Names the content that would be lost, in words."""
    parts = []
    for device in drive.tree():
        kinds = facts.signatures.get(device.name) or ([device.filesystem] if device.filesystem else [])
        label = f" '{device.label}'" if device.label else ""
        if kinds:
            parts.append(f"{'/'.join(kinds)}{label} on {device.name}")
        elif device is not drive:
            parts.append(f"{device.type} {device.name}")
    return ", ".join(parts) or "no known signature (which does not mean no data)"
