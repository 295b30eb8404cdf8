"""The storage role's pure part: requests, lsblk's lists, and every reason not to touch a drive."""

from __future__ import annotations

import ctypes
import itertools
import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.bench_lsblk import Device
from ansible.module_utils.bench_storage import nvme
from ansible.module_utils.bench_storage.construct import create_command, mkfs_command
from ansible.module_utils.bench_storage.devices import (
    is_named,
    parse_fstab,
    parse_lsblk,
    parse_mountinfo,
    parse_root,
    parse_swaps,
    parse_wipefs,
)
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import SETS, Facts, contents, find, objections, size_objection
from ansible.module_utils.bench_storage.layout import Layout, Wanted, layout_of
from ansible.module_utils.bench_storage.report import records_of
from ansible.module_utils.bench_storage.survey import Stack, differences, purge_refusal, usage_of

GIB = 2**30


def layout(**changes: Any) -> Layout:
    """Return a layout of two drives, changed as asked."""
    options = {
        "drives": ["S1", "S2"], "destroy": True, "purge": "discard", "lba_bytes": None,
        "raid": {"level": 0, "chunk": "128KiB"}, "filesystem": "xfs",
    }  # fmt: skip
    return layout_of(changes.pop("target", "nand"), changes.pop("directory", "/srv/nand"), {**options, **changes})


def drive(serial: str = "S1", name: str = "nvme0n1", **changes: Any) -> Device:
    """Return a whole NVMe drive."""
    made = Device(name, f"/dev/{name}", "259:0", "disk", 4 * GIB, model="Fast", serial=serial)
    return replace(made, **changes)


REPOSITORY = Path(__file__).resolve().parents[2]
BLKID_USAGE_RAID = 4  # blkid.h
FREE = Facts(
    lba_bytes=512, lba_choices=(512, 4096), can_discard=True, namespaces=("nvme0n1",), signatures={"nvme0n1": []}
)
ONE = layout(drives=["S1"], raid=None)


def said(facts: Facts, asked: Layout = ONE, device: Device | None = None) -> str:
    """Return all objections as one text."""
    return " | ".join(objections(asked, device or drive(), facts))


def raid_types() -> set[str]:
    """All signatures that this machine's libblkid calls "raid"."""
    library, name, usage = ctypes.CDLL("libblkid.so.1"), ctypes.c_char_p(), ctypes.c_int()
    found = set()
    for number in itertools.count():
        if library.blkid_superblocks_get_name(ctypes.c_size_t(number), ctypes.byref(name), ctypes.byref(usage)) != 0:
            return found
        if usage.value & BLKID_USAGE_RAID and name.value:
            found.add(name.value.decode())
    raise AssertionError


def test_both_guards_know_the_same_signatures_of_sets() -> None:
    """daqwriter's interlock goes by libblkid's usage and a list of its own; this role goes by names."""
    source = (REPOSITORY / "native-writer/src/target/drive_contents.cpp").read_text(encoding="utf-8")
    (listed,) = re.findall(r"kSetsOfOtherUsage = \{([^}]*)\}", source)
    added = set(re.findall(r'"(\w+)"', listed))
    assert {"zfs_member", "bcache"} <= added
    assert {"linux_raid_member", "VMFS_volume_member"} <= raid_types()
    assert raid_types() | added <= set(SETS)
    assert set(SETS) - added <= raid_types(), "daqwriter would let a set pass that this role refuses"


def test_a_free_drive_that_is_given_up_passes() -> None:
    """There is no objection at all; the consent covers a plain file system on it."""
    assert said(FREE) == ""
    assert said(replace(FREE, signatures={"nvme0n1": ["ext4"]})) == ""


def test_without_consent_the_contents_are_named_and_the_remedy() -> None:
    """The refusal names the data that would be lost."""
    text = said(replace(FREE, signatures={"nvme0n1": ["ext4"]}), layout(drives=["S1"], raid=None, destroy=False))
    assert text == (
        "holds ext4 on nvme0n1 and there is no consent to lose it: write destroy: true into the target's storage: block"
    )


PARTITION = Device("nvme0n1p1", "/dev/nvme0n1p1", "259:1", "part", GIB)
ARRAY = Device("md0", "/dev/md0", "9:0", "raid1", GIB)
WITH_PARTITION = drive(children=(replace(PARTITION, children=(ARRAY,)),))


@pytest.mark.parametrize(
    ("device", "facts", "message"),
    [
        (drive(), {"mounts": {"nvme0n1": ["/data"]}}, "nvme0n1 is mounted at /data: unmount it"),
        (drive(children=(PARTITION,)), {"mounts": {"nvme0n1p1": ["/"]}}, "nvme0n1p1 is mounted at /"),
        (WITH_PARTITION, {"mounts": {"md0": ["/home"]}}, "md0 is mounted at /home"),
        (WITH_PARTITION, {}, "it is held by md0 (raid1): stop or remove that first"),
        (drive(), {"holders": {"nvme0n1": ["dm-0"]}}, "nvme0n1 is held by dm-0"),
        (drive(children=(PARTITION,)), {"swaps": ["nvme0n1p1"]}, "nvme0n1p1 is swap space in use: swapoff it"),
        (drive(), {"named": {"nvme0n1": "/etc/fstab (/backup)"}}, "is named by /etc/fstab (/backup)"),
        (drive(), {"named": {"nvme0n1": "root= of the kernel's command line"}}, "it belongs to this system"),
        (drive(), {"busy": "Device or resource busy"}, "refuses to open it exclusively (Device or resource busy)"),
        (drive(), {"signatures": {"nvme0n1": ["LVM2_member"]}}, "set of drives (LVM2_member): if it may go, vgreduce"),
        (drive(), {"signatures": {"nvme0n1": ["zfs_member"]}}, "zpool destroy its pool"),
        (drive(), {"signatures": {"nvme0n1p1": ["linux_raid_member"]}}, "mdadm --zero-superblock"),
        (drive(type="part"), {}, "is a part, not a whole drive"),
        (drive(type="loop"), {}, "is a loop, not a whole drive"),
        (drive(read_only=True), {}, "is read-only"),
        (drive(), {"kernel_serial": "OTHER"}, "lsblk gives this serial, the kernel OTHER: run udevadm trigger"),
        (drive(size_bytes=2**20), {}, "a file system needs 314572800 B"),
        (drive(), {"can_discard": False}, "cannot discard: give purge: format or sanitize"),
    ],
)  # fmt: skip
def test_each_reason_not_to_touch_a_drive(device: Device, facts: dict[str, Any], message: str) -> None:
    """Consent to lose the data is given in every case, and none is overridden by it."""
    text = said(replace(FREE, **facts), device=device)
    assert message in text


@pytest.mark.parametrize(
    ("asked", "facts", "message"),
    [
        ({"lba_bytes": 8192}, {}, "no LBA format of 8192 B without metadata (now 512, offered: 512, 4096)"),
        ({"lba_bytes": 4096}, {"lba_choices": ()}, "offered: none that can be chosen"),
        ({"lba_bytes": 4096}, {"namespaces": ("nvme0n1", "nvme0n2")}, "several namespaces (nvme0n1, nvme0n2)"),
        ({"purge": "format"}, {"namespaces": ("nvme0n1", "nvme0n2")}, "may erase all"),
        (
            {"purge": "sanitize"},
            {"purge_refusal": "supports neither block erase nor crypto erase"},
            "neither block erase",
        ),
    ],
)
def test_what_the_drive_cannot_do_is_refused(asked: dict[str, Any], facts: dict[str, Any], message: str) -> None:
    """The refusal comes before anything is written, and names what the drive can do."""
    assert message in said(replace(FREE, **facts), layout(drives=["S1"], raid=None, **asked))


def test_an_lba_format_in_use_already_asks_nothing_of_the_drive() -> None:
    """This holds also for a drive that cannot be formatted, or that shares its controller."""
    facts = replace(FREE, lba_bytes=4096, lba_choices=(), namespaces=("nvme0n1", "nvme0n2"))
    assert said(facts, layout(drives=["S1"], raid=None, lba_bytes=4096)) == ""


def test_a_purge_by_the_drive_itself_needs_a_drive_that_can() -> None:
    """The refusal for each missing ability names the remaining ways."""
    can = nvme.Abilities(True, nvme.SANITIZE_BLOCK, (), 0)
    assert purge_refusal("format", can) == purge_refusal("sanitize", can) == purge_refusal("discard", None) == ""
    assert "is no NVMe drive" in purge_refusal("format", None)
    assert "does not support Format NVM" in purge_refusal("format", replace(can, can_format=False))
    assert "neither block erase nor crypto erase" in purge_refusal("sanitize", replace(can, sanitize_action=0))


def test_a_drive_is_found_by_its_exact_serial() -> None:
    """No prefix and no other case matches; the refusal lists the drives that are there."""
    roots = [drive("S1"), drive("S12", "nvme1n1")]
    assert find(Wanted("S1"), roots).name == "nvme0n1"
    with pytest.raises(StorageError, match=r"no drive has the serial s1; this machine has: S1 \(Fast, /dev/nvme0n1"):
        find(Wanted("s1"), roots)


def test_namespaces_with_one_serial_need_the_wwn() -> None:
    """The role never guesses between two devices."""
    roots = [drive("S1", wwn="eui.01"), drive("S1", "nvme0n2", wwn="eui.02")]
    with pytest.raises(StorageError, match=r"2 devices have the serial S1: .*eui.01.*Name one"):
        find(Wanted("S1"), roots)
    assert find(Wanted("S1", "EUI.02"), roots).name == "nvme0n2"
    with pytest.raises(StorageError, match=r"no single drive S1 has the WWN eui\.03"):
        find(Wanted("S1", "eui.03"), roots)


def test_members_of_different_size_and_too_little_room_are_refused() -> None:
    """The arithmetic stands in the message."""
    small = drive("S2", size_bytes=3 * GIB)
    assert "differ in size by more than 1 %" in size_objection(layout(), [drive(), small], 0)
    assert size_objection(layout(), [drive(), drive("S2")], 8 * GIB) == ""
    assert f"hold {8 * GIB} B, needed are {9 * GIB} B" in size_objection(layout(), [drive(), drive("S2")], 9 * GIB)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drives": []}, "storage.drives is empty"),
        ({"drives": [123]}, r"storage.drives has 123; give the drive's exact serial in quotes"),
        ({"drives": [{"serial": "S1", "wnn": "x"}]}, "serial and wwn"),
        ({"drives": ["S1", "S1"]}, "names S1 twice"),
        ({"raid": None}, "names 2 drives without storage.raid"),
        ({"raid": {"level": 6}}, "level 6 needs 4 drives or more; storage.drives names 2"),
        ({"raid": {"level": 4}}, "storage.raid.level is 4; known: 0, 1, 5, 6, 10"),
        ({"raid": {"level": 1, "chunk": "64KiB"}}, "level 1, which has no chunk"),
        ({"raid": {"level": 0, "chunk": "128k"}}, "'128k'; write a whole number and a unit"),
        ({"raid": {"level": 0, "chunk": "96KiB"}}, "powers of two"),
        ({"lba_bytes": 520}, "storage.lba_bytes is 520"),
        ({"directory": "srv"}, "an absolute path below /"),
        ({"directory": "/"}, "an absolute path below /"),
        ({"target": "a b"}, "the target's name is 'a b'"),
        ({"target": "a" * 29}, "at most 28 characters"),
    ],
)
def test_a_wrong_request_names_its_field(changes: dict[str, Any], message: str) -> None:
    """The refusal is one clear sentence, before anything is looked at."""
    with pytest.raises(StorageError, match=message):
        layout(**changes)


LSBLK = {
    "blockdevices": [
        {"kname": "sda", "path": "/dev/sda", "maj:min": "8:0", "type": "disk", "size": "100", "ro": "0", "serial": " A ",
         "children": [{"kname": "sda1", "path": "/dev/sda1", "maj:min": "8:1", "type": "part", "size": 50, "ro": False,
                       "uuid": "AB-CD", "children": [{"kname": "md0", "maj:min": "9:0", "type": "raid0", "size": 90}]}]},
    ]
}  # fmt: skip


def test_lsblk_of_old_and_new_versions_is_read() -> None:
    """Numbers and flags come bare or as text; blanks around a serial are not part of it."""
    (root,) = parse_lsblk(json.dumps(LSBLK))
    assert (root.serial, root.size_bytes, root.read_only) == ("A", 100, False)
    assert [device.name for device in root.tree()] == ["sda", "sda1", "md0"]


def test_a_list_of_devices_that_is_no_tree_is_refused() -> None:
    """In a flat list every drive looks unused."""
    rows = [("sda", "8:0", "disk"), ("sda1", "8:1", "part")]
    flat = {"blockdevices": [{"kname": name, "maj:min": at, "type": kind} for name, at, kind in rows]}
    with pytest.raises(StorageError, match="lsblk lists sda1 outside of any drive"):
        parse_lsblk(json.dumps(flat))


def test_what_names_a_device_is_recognised() -> None:
    """A path, a UUID in any case, or a label names it; an empty UUID matches nothing."""
    device = drive(uuid="ab-cd", label="data")
    assert is_named(device, "/dev/disk/by-id/x", "/dev/nvme0n1")
    assert is_named(device, "UUID=AB-CD", "")
    assert is_named(device, 'LABEL="data"', "")
    assert not is_named(replace(device, uuid=""), "UUID=", "")
    assert not is_named(device, "proc", "/dev/nvme0n1")


def test_the_systems_own_tables_are_parsed() -> None:
    """Comments, escapes and headings are no entries."""
    assert parse_fstab("# UUID=x / ext4\nUUID=y /my\\040disk xfs\n\n") == [("UUID=y", "/my disk")]
    assert parse_swaps("Filename Type\n/dev/sda2 partition 1 0 -2\n") == ["/dev/sda2"]
    assert parse_root("quiet root=/dev/vda rw") == "/dev/vda"
    assert parse_root("quiet") == ""
    (mount,) = parse_mountinfo("24 22 9:0 / /my\\040disk rw,noatime shared:2 - xfs /dev/md0 rw,attr2\n")
    assert (mount.number, mount.directory, mount.filesystem) == ("9:0", "/my disk", "xfs")
    assert mount.options == ("rw", "noatime", "attr2")
    # As Linux 6 tells a mount(2) whose source is an empty text: two blanks.
    (mount,) = parse_mountinfo("65 44 0:39 / /mnt rw,relatime - tmpfs  rw\n")
    assert (mount.directory, mount.filesystem, mount.source) == ("/mnt", "tmpfs", "")


class RecordedMachine:
    """A machine whose partition is mounted in one place, swap in another and named by the system."""

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "mounts": parse_mountinfo("1 0 259:1 / /boot rw - vfat /dev/nvme0n1p1 rw\n"),
            "swap_files": ["/dev/nvme0n1p1"],
            "holders": {"nvme0n1": []},
            "kernel_serial": "S1", "exclusive_refusal": "busy", "signatures": ["vfat"], "queue_number": 512,
        }  # fmt: skip
        if name == "names_of":
            return lambda device: "/etc/fstab (/boot)" if device.name == "nvme0n1p1" else ""
        return lambda *_arguments, **_options: answers[name]


def test_usage_is_collected_for_everything_on_the_drive() -> None:
    """The partition's mount, swap and fstab line count as the drive's."""
    facts = usage_of(RecordedMachine(), drive(children=(PARTITION,)))  # type: ignore[arg-type]
    assert facts.mounts == {"nvme0n1p1": ["/boot"]}
    assert (facts.swaps, facts.named) == (["nvme0n1p1"], {"nvme0n1p1": "/etc/fstab (/boot)"})
    assert (facts.busy, facts.lba_bytes, facts.can_discard) == ("busy", 512, True)
    assert contents(drive(children=(PARTITION,)), facts) == "vfat on nvme0n1, vfat on nvme0n1p1"


def identify(lbafs: list[tuple[int, int, int]], flbas: int = 0, oacs: int = 2, sanicap: int = 0) -> nvme.Abilities:
    """Make Identify structures of (data shift, metadata bytes, performance) and parse them."""
    controller, namespace = bytearray(4096), bytearray(4096)
    struct.pack_into("<H", controller, 256, oacs)
    struct.pack_into("<I", controller, 328, sanicap)
    namespace[25], namespace[26] = len(lbafs) - 1, flbas
    for index, (shift, metadata, performance) in enumerate(lbafs):
        struct.pack_into("<HBB", namespace, 128 + 4 * index, metadata, shift, performance)
    return nvme.parse_abilities(bytes(controller), bytes(namespace))


def test_lba_formats_without_metadata_can_be_chosen_the_fastest_first() -> None:
    """An unused entry is no format; the format in use stays where it fits."""
    found = identify([(9, 0, 2), (9, 8, 0), (12, 0, 1), (0, 0, 0), (12, 0, 0)])
    assert (found.lba_choices(), found.can_format) == ((512, 4096), True)
    assert (found.format_for(4096), found.format_for(512), found.format_for(0)) == (4, 0, 0)
    assert identify([(12, 0, 1), (12, 0, 0)], flbas=0).format_for(4096) == 0
    with pytest.raises(StorageError, match="no LBA format of 8192 B"):
        found.format_for(8192)
    assert identify([(9, 0, 0)] * 40, flbas=0x21).format_in_use == 17


def test_a_drive_that_cannot_format_offers_no_choice() -> None:
    """Its table of formats is only a description."""
    assert identify([(9, 0, 0), (12, 0, 0)], oacs=0).lba_choices() == ()


@pytest.mark.parametrize(("sanicap", "action"), [(0, 0), (1, 4), (2, 2), (3, 2), (4, 0)])
def test_sanitize_prefers_the_block_erase_and_never_overwrites(sanicap: int, action: int) -> None:
    """An overwrite takes hours and costs endurance."""
    assert identify([(9, 0, 0)], sanicap=sanicap).sanitize_action == action


def test_the_sanitize_log_tells_progress_and_end() -> None:
    """Status is the low three bits; progress counts 65536ths."""
    running = nvme.parse_sanitize_log(struct.pack("<HH", 32768, 0x0002).ljust(512, b"\0"))
    assert (running.done, running.completed, running.status) == (0.5, False, nvme.SANITIZE_RUNNING)
    assert nvme.parse_sanitize_log(struct.pack("<HH", 65535, 0x0101).ljust(512, b"\0")).completed
    with pytest.raises(StorageError, match="returned 4 B for the sanitize log"):
        nvme.parse_sanitize_log(b"\0" * 4)


def test_arrays_of_copies_start_clean_and_arrays_of_parity_are_synchronised() -> None:
    """Members stand in the order given; no bitmap is kept."""
    paths = ["/dev/b", "/dev/a"]
    stripe = create_command(layout(), paths, "0123abcd-0123-abcd-0123-abcd0123abcd")
    assert stripe[-3:] == ["--raid-devices=2", "/dev/b", "/dev/a"]
    assert {"--level=0", "--chunk=128", "--metadata=1.2", "--uuid=0123abcd:0123abcd:0123abcd:0123abcd"} <= set(stripe)
    assert "--assume-clean" not in stripe
    mirror = create_command(layout(raid={"level": 1}), paths, "0" * 32)
    assert {"--assume-clean", "--bitmap=none"} <= set(mirror)
    assert not any(argument.startswith("--chunk") for argument in mirror)
    parity = create_command(layout(drives=["a", "b", "c"], raid={"level": 5}), ["x", "y", "z"], "0" * 32)
    assert "--assume-clean" not in parity
    assert "--chunk=512" in parity


@pytest.mark.parametrize(("drives", "level", "width"), [(2, 0, 2), (3, 5, 2), (4, 6, 2), (4, 10, 2), (6, 5, 5)])
def test_the_file_system_is_aligned_to_the_arrays_data_drives(drives: int, level: int, width: int) -> None:
    """Parity and copies carry no stripe of their own."""
    asked = layout(drives=[f"S{n}" for n in range(drives)], raid={"level": level, "chunk": "64KiB"})
    assert f"su=65536,sw={width}" in mkfs_command(asked, "/dev/md0", "u")
    ext4 = layout(drives=[f"S{n}" for n in range(drives)], raid={"level": level, "chunk": "64KiB"}, filesystem="ext4")
    assert any(word.endswith(f"stride=16,stripe_width={16 * width}") for word in mkfs_command(ext4, "/dev/md0", "u"))


def test_a_single_drive_has_no_stripe_and_labels_fit() -> None:
    """xfs takes 12 characters of label, ext4 16."""
    assert "-d" not in mkfs_command(ONE, "/dev/sda", "u")
    assert layout(target="a-long-target-name").label == "daq-a-long-t"
    assert layout(target="a-long-target-name", filesystem="ext4").label == "daq-a-long-targe"


STACK = Stack(
    drive(name="md0"), "raid0, chunk 128 KiB", "clean", ("S1", "S2"), "xfs", ("rw", "noatime"), (4096, 4096)
)  # fmt: skip


@pytest.mark.parametrize(
    ("stack", "aspect"),
    [
        (Stack(), "mount"),
        (replace(STACK, raid="raid0, chunk 64 KiB"), "array"),
        (replace(STACK, members=("S2", "S1")), "array"),
        (replace(STACK, filesystem="ext4"), "filesystem"),
        (replace(STACK, lba_bytes=(512, 4096)), "lba"),
        (replace(STACK, options=("ro",)), "mount"),
    ],
)
def test_every_difference_from_what_was_asked_is_a_mismatch_record(stack: Stack, aspect: str) -> None:
    """The record is of that aspect only."""
    asked = layout(lba_bytes=4096)
    assert differences(asked, STACK) == {}
    assert list(differences(asked, stack)) == [aspect]
    records = {record["id"]: record for record in records_of(asked, stack, None, just_built=False)}
    assert records[f"storage-{aspect}"]["status"] == "mismatch"
    assert records[f"storage-{aspect}"]["detail"]


def test_an_existing_target_that_was_not_purged_says_so() -> None:
    """A purge that was asked for and not done must not look done."""
    records = {record["id"]: record for record in records_of(layout(), STACK, None, just_built=False)}
    assert (records["storage-purge"]["status"], records["storage-array"]["status"]) == ("unsupported", "unchanged")
    kept = records_of(layout(purge="none"), STACK, None, just_built=False)
    assert kept[0]["status"] == "unchanged"


@pytest.mark.parametrize(
    "said",
    ["{", "null", "[]", "{}", '{"signatures": null}', '{"signatures": [{"uuid": null}]}', '{"signatures": [{"type": "xfs"}]}',
     '{"signatures": [{"type": null, "uuid": null}]}', '{"signatures": [7]}', "[" * 100_000],
)  # fmt: skip
def test_what_wipefs_did_not_list_is_one_error_and_no_empty_drive(said: str) -> None:
    """A drive counts as empty by this list alone."""
    with pytest.raises(StorageError, match="wipefs' list of signatures cannot be read"):
        parse_wipefs(said)


@pytest.mark.parametrize("said", ["", "\n", '{"signatures": []}'])
def test_of_an_empty_drive_wipefs_lists_nothing_or_says_nothing(said: str) -> None:
    assert parse_wipefs(said) == []
