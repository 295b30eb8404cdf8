"""Faults of the hardware: the kernel's log (a real kernel's where it may be asked), and the memory's error counters."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_helpers import by_tag, undeclared
from drive_helpers import Bench, endurance_page, with_groups
from recorded_tree import Clock, sample, write

from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.collectors.hardware.edac import Edac
from daq_bench.telemetry_agent.collectors.hardware.kernel_log import (
    GAP,
    NAMES,
    POINTS_MAX,
    RECORDS,
    SEPARATOR,
    KernelLog,
)
from daq_bench.telemetry_agent.devices.kernel_text import TEXT_CHARACTERS_MAX, Fault, Message, fault_of, parse_message
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported

T_NS, BOOT_S = 1_800_000_000_000_000_000, 500.0  # a reading at this time, so long after boot
# Messages in the words of Linux; each with what it tells.
TOLD = [
    ("nvme nvme1: I/O tag 12 (100c) opcode 0x1 (I/O Cmd) QID 3 timeout, reset controller", "nvme_reset", "nvme1"),
    ("nvme nvme1: I/O 12 QID 3 timeout, aborting", "nvme_timeout", "nvme1"),
    ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "nvme_reset", "nvme1"),
    ("nvme nvme1: Disabling device after reset failure: -19", "nvme_reset", "nvme1"),
    ("nvme1n1: Write(0x1) @ LBA 8, 8 blocks, Write Fault (sct 0x2 / sc 0x80) DNR", "nvme_io_error", "nvme1n1"),
    ("blk_update_request: I/O error, dev nvme1n1, sector 8 op 0x1:(WRITE) flags 0x0", "block_io_error", "nvme1n1"),
    ("I/O error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2", "block_io_error", "sda"),
    ("critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x0", "block_io_error", "sda"),
    ("Buffer I/O error on dev sda, logical block 0, async page read", "block_io_error", "sda"),
    ("nvme 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "pcie_error", "0000:3b:00.0"),
    ("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie_error", "0000:3a:00.0"),
    ("pcieport 0000:3a:00.0: pciehp: Slot(1): Link Down", "pcie_link", "0000:3a:00.0"),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1)", "memory_corrected", ""),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1)", "memory_uncorrected", ""),
    ("mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: bea0000000000108", "machine_check", ""),
    ("CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 1)", "thermal", ""),
    ("mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 7)", "thermal", ""),
    ("md/raid1:md0: Disk failure on sdb1, disabling device.", "array", "md0"),
    ("md: recovery of RAID array md0", "array", "md0"),
    ("ata3.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen", "disk_link", "ata3"),
    ("sd 2:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_BAD_TARGET", "disk_link", "sdb"),
    ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory", "file_system", "sda1"),
    ("XFS (nvme0n1): log I/O error -5", "file_system", "nvme0n1"),
    ("INFO: task kworker/u8:1:77 blocked for more than 120 seconds.", "hang", ""),
    # People reported these lines, to the kernel's lists if nothing else is said. A controller is reset:
    ("mpt3sas_cm0: fault_state(0x2666)!", "disk_link", "mpt3sas_cm0"),
    ("mpt3sas_cm0: sending diag reset !!", "disk_link", "mpt3sas_cm0"),
    ("megaraid_sas 0000:18:00.0: resetting fusion adapter scsi0.", "disk_link", "0000:18:00.0"),
    ("smartpqi 0000:19:00.0: resetting scsi 15:1:0:0 due to cmd 0x88", "disk_link", "0000:19:00.0"),
    ("smartpqi 0000:89:00.0: controller is offline: status code 0x6100c", "disk_link", "0000:89:00.0"),
    ("hpsa 0000:06:00.0: Controller lockup detected: 0x0015002f after 30", "disk_link", "0000:06:00.0"),
    ("hpsa 0000:05:00.0: scsi 0:1:0:0: resetting logical  Direct-Access     HP       LOGICAL VOLUME", "disk_link", "0000:05:00.0"),
    # what the firmware of an EPYC server saw first
    ("pcieport 0000:60:03.1: AER: aer_status: 0x00002000, aer_mask: 0x00000000", "pcie_error", "0000:60:03.1"),
    ("nvidia 0000:e3:00.0: aer_status: 0x00001000, aer_mask: 0x00000000", "pcie_error", "0000:e3:00.0"),
    (
        "pcieport 0000:3d:02.0: broken device, retraining non-functional downstream link at 2.5GT/s",
        "pcie_link",
        "0000:3d:02.0",
    ),
    ("CMCI storm detected: switching to poll mode", "machine_check", ""),
    ("RAS: Soft-offlining pfn: 0x17c08ac", "memory_corrected", ""),
    ("mlx5_core 0000:41:00.1: temp_warn:170:(pid 0): High temperature on sensors with bit set 0 1", "thermal", "0000:41:00.1"),
    ("md: super_written gets error=-5", "array", ""),
    # data that is lost after write() has said that all is well
    ("EXT4-fs (sda1): Delayed block allocation failed for inode 1940 at logical offset 1516 with max blocks 20", "file_system", "sda1"),
    ("EXT4-fs (sda1): This should not happen!! Data will be lost", "file_system", "sda1"),
    ("EXT4-fs (dm-0): I/O error while writing superblock", "file_system", "dm-0"),
    ("EXT4-fs (dm-0): Remounting filesystem read-only", "file_system", "dm-0"),
    ("JBD2: Detected IO errors while flushing file data on nvme0n1p2-8", "file_system", ""),
    ("JBD2: Error -5 detected when updating journal superblock for dm-0-8.", "file_system", ""),
    ("dm-2: writeback error on inode 934606, offset 0, sector 961072", "file_system", "dm-2"),
    # from Linux 6.5 on without NMI; a network card that hangs, of 6.x and of 5.x
    ("watchdog: Watchdog detected hard LOCKUP on cpu 6", "hang", ""),
    ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "hang", ""),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 1", "hang", ""),
    ("INFO: rcu_sched detected stalls on CPUs/tasks:", "hang", ""),
    ("i40e 0000:a1:00.0 ens44f0np0: NETDEV WATCHDOG: CPU: 214: transmit queue 22 timed out 5376 ms", "hang", "ens44f0np0"),
    ("NETDEV WATCHDOG: eth0 (r8169): transmit queue 0 timed out", "hang", "eth0"),
    ("sd 6:0:3:0: Power-on or device reset occurred", "disk_link", "6:0:3:0"),  # openzfs/zfs#8835, after a reset of mpt3sas_cm0
    # torvalds/linux 644649553508 (8 NUMA nodes); linux-kernel "clocksource: Retry clock read if long delays detected"; x86 tsc_sync.c
    (
        "clocksource: timekeeping watchdog on CPU373: Marking clocksource 'tsc' as unstable because the skew is too large:",
        "clocksource",
        "",
    ),
    ("clocksource: timekeeping watchdog on CPU4: hpet read-back delay of 58800ns, attempt 4, marking unstable", "clocksource", ""),
    ("tsc: Marking TSC unstable due to check_tsc_sync_source failed", "clocksource", ""),
    # Mails to the kernel's lists: two SATA drives vanish (January 2024), a TBS6981 on Linux 3.17.7, a smartpqi of an HPE DL385 Gen10. Cut.
    ("ahci 0000:28:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0035 address=0x7fffff00000", "iommu_fault", "0000:28:00.0"),
    ("AMD-Vi: Event logged [IO_PAGE_FAULT device=0a:00.0 domain=0x001d address=0x637c000 flags=0x0000]", "iommu_fault", "0000:0a:00.0"),
    ("smartpqi 0000:23:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0000 address=0xffffffffffec0000", "iommu_fault", "0000:23:00.0"),
    # torvalds/linux 039d4926379b (8250_mid); TGL platforms; an Intel IPU of 2021; pci/vmd, where NVMe drives time out. Cut
    ("DMAR: [DMA Write NO_PASID] Request device [00:1a.0] fault addr 0x0 [fault reason 0x05]", "iommu_fault", "0000:00:1a.0"),
    ("DMAR: [DMA Read NO_PASID] Request device [0x00:0x02.0] fault addr 0x7c592000 [fault reason 0x06]", "iommu_fault", "0000:00:02.0"),
    ("DMAR: [DMA Read] Request device [00:05.0] PASID ffffffff fault addr 76406000 [fault reason 06]", "iommu_fault", "0000:00:05.0"),
    ("DMAR: [INTR-REMAP] Request device [0x00:0x00.5] fault index 0xa00 [fault reason 0x25]", "iommu_fault", "0000:00:00.5"),
]  # fmt: skip
HARMLESS = [
    "nvme nvme0: Shutdown timeout set to 8 seconds",
    "nvme nvme0: 8/0/0 default/read/poll queues",
    "EDAC MC: Ver: 3.0.0",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
    "XFS (loop1): Ending clean mount",
    "md/raid0:md0: 2 zones",
    "CPU3: Core temperature/speed normal (total events = 1)",
    "operation not supported error, dev loop0, sector 0 op 0x9:(WRITE_ZEROES)",
    # A tool, or the kernel itself, asked a controller for what it has not ("5.18-rc1 nvme0: Admin Cmd(0x6) ...", linux-block, 2022-04).
    "nvme0: Admin Cmd(0x6), I/O Error (sct 0x0 / sc 0x2) MORE DNR",
    "nvme0: Identify(0x6), Invalid Field in Command (sct 0x0 / sc 0x2) ",
    "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",  # at boot, and when kernel.nmi_watchdog is set to 1 again
    "CMCI storm subsided: switching to interrupt mode",
    "mpt3sas_cm0: diag reset: SUCCESS",
    "smartpqi 0000:23:00.0: Online Firmware Activation enabled",
    "EXT4-fs (sda1): re-mounted. Opts: errors=remount-ro",
    "pcieport 0000:3d:02.0: pciehp: Slot(1): Card present",
    # Sound machines say this, at boot (linux-kernel, any boot log) or under load (kernel/time/clocksource.c: "can happen on busy systems")
    "clocksource: Switched to clocksource tsc",
    "clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x1e7161bdfcf, max_idle_ns: 440795233580ns",
    "clocksource: timekeeping watchdog on CPU3: hpet retried 2 times before success",
    "clocksource: timekeeping watchdog on CPU3: Watchdog clocksource 'hpet' advanced an excessive 2512305200 ns, skipping watchdog check.",
    "clocksource:                       'hpet' wd_nsec: 14523447520 wd_now: 5a749706 wd_last: 45adf1e0 mask: ffffffff",
    "clocksource:                       'tsc' is current clocksource.",
    "tsc: Marking TSC unstable due to clocksource watchdog",  # the watchdog's own message has told it
    "tsc: Refined TSC clocksource calibration: 2399.938 MHz",
    "sched_clock: Marking stable (1000000, 2000)->(3000, 4000)",
    "DMAR: IOMMU enabled",
    "DMAR: DRHD base: 0x000000fed90000 flags: 0x0",
    "DMAR: DRHD: handling fault status reg 3",  # the next line names the device
    "DMAR-IR: Enabled IRQ remapping in x2apic mode",
    "AMD-Vi: Interrupt remapping enabled",
    "pci 0000:00:00.2: AMD-Vi: Found IOMMU cap 0x40",
    "iommu ivhd0: AMD-Vi: Event logged [INVALID_DEVICE_REQUEST device=00:00.0 pasid=0x00000 address=0xfffffffdf8000000 flags=0x0a00]",
    # A program's name that somebody chose to look like a fault.
    "DMAR[77]: segfault at 0 ip 0 in DMAR: [DMA Read] Request device [00:05.0] fault addr 0",
    "nice[77]: segfault at 0 ip 0 in nvme nvme0: I/O 1 QID 1 timeout, reset controller",
    "",
]


def record(text: str, us: int = 499_000_000, sequence: int = 7, syslog: int = 3) -> str:
    return f"{syslog},{sequence},{us},-;{text}\n"


def parsed(*records: str, gap: int = 0, names: str = "", before_s: float | None = 1.0) -> list[Point]:
    texts = {RECORDS: SEPARATOR.join(records), GAP: str(gap), NAMES: names}
    previous = None if before_s is None else Reading(T_NS - int(before_s * 1e9), BOOT_S - before_s, {})
    return KernelLog(1.0).parse(Reading(T_NS, BOOT_S, texts), previous)


@pytest.mark.parametrize(("text", "kind", "device"), TOLD, ids=[f"{kind}-{n}" for n, (_, kind, _) in enumerate(TOLD)])
def test_a_fault_is_told_by_kind_and_device(text: str, kind: str, device: str) -> None:
    assert fault_of(parse_message(record(text))) == Fault(kind, device)
    (point,) = parsed(record(text))
    assert dict(point.tags) == {"device": device or "none", "kind": kind} and undeclared(point) == []


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_message_is_no_event(text: str) -> None:
    assert fault_of(parse_message(record(text))) is None


def scsi(root: Path, disk: str, where: str, host: str, driver: str | None, number: str = "0\n") -> None:
    """A disk as sysfs has it. `where`: its place below the host's folder, e.g. `port-6:3/end_device-6:3/target6:0:3/6:0:3:0`."""
    device = root / "sys/devices/pci0000:00" / where
    device.mkdir(parents=True)
    (root / "sys/block" / disk).mkdir(parents=True)
    (root / "sys/block" / disk / "device").symlink_to(device)
    folder = root / "sys/class/scsi_host" / host
    if driver is not None and not folder.exists():
        write(folder / "proc_name", driver)
        write(folder / "unique_id", number)


def adapters(root: Path) -> None:
    """Two adapters by mpt3sas, a RAID controller and an AHCI controller with two ports; paths as of Linux 6.1."""
    hba = "0000:00:01.0/0000:01:00.0/host6"
    scsi(root, "sda", f"{hba}/port-6:0/end_device-6:0/target6:0:0/6:0:0:0", "host6", "mpt3sas\n")
    scsi(root, "sdb", f"{hba}/port-6:3/end_device-6:3/target6:0:3/6:0:3:0", "host6", "mpt3sas\n")
    scsi(
        root,
        "sdc",
        "0000:00:02.0/0000:02:00.0/host7/port-7:0/end_device-7:0/target7:0:0/7:0:0:0",
        "host7",
        "mpt3sas\n",
        "1\n",
    )
    scsi(root, "sdd", "0000:00:03.0/0000:18:00.0/host0/target0:2:0/0:2:0:0", "host0", "megaraid_sas\n")
    scsi(root, "sde", "0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0", "host2", "ahci\n", "3\n")
    scsi(root, "sdf", "0000:00:17.0/ata4/host3/target3:0:0/3:0:0:0", "host3", None)  # its folder is gone already


@pytest.mark.parametrize(
    ("text", "drives"),
    [
        ("mpt3sas_cm0: sending diag reset !!", "sda sdb"),
        ("mpt3sas_cm1: fault_state(0x2666)!", "sdc"),
        ("mpt3sas_cm2: sending diag reset !!", None),  # without a disk
        ("mpt2sas_cm0: sending diag reset !!", None),  # another driver's numbers
        ("megaraid_sas 0000:18:00.0: resetting fusion adapter scsi0.", "sdd"),
        ("ahci 0000:00:17.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0035 address=0x7ff flags=0x0000]", "sde sdf"),
        ("DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x0 [fault reason 0x05] PTE Write", "sda sdb"),
        (
            "DMAR: [DMA Write NO_PASID] Request device [00:01.0] fault addr 0x0 [fault reason 0x05] PTE Write",
            None,
        ),  # the port above
        ("ata3.00: exception Emask 0x0 SAct 0x0 SErr 0x0 action 0x6 frozen", "sde"),
        ("ata4: hard resetting link", "sdf"),
        ("sd 6:0:3:0: Power-on or device reset occurred", "sdb"),
        ("I/O error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0", None),  # it names the drive itself
    ],
)
def test_a_fault_of_a_controller_names_the_disks_behind_it(tmp_path: Path, text: str, drives: str | None) -> None:
    adapters(tmp_path)
    with packets(tmp_path / "dev/kmsg") as writer:
        log = reading_on(tmp_path, 6)
        os.write(writer, record(text).encode())
        (point,) = log.parse(log.read(), None)
        log.close()
    assert dict(point.tags).get("drives") == drives and undeclared(point) == []


def test_what_a_program_wrote_is_no_event() -> None:
    """The kernel gives such messages another facility, whatever they ask for."""
    assert fault_of(parse_message(record(TOLD[0][0], syslog=(1 << 3) | 3))) is None
    assert fault_of(Message(3, 0, 1, 1, TOLD[0][0])) is not None


def test_a_message_lies_within_its_readings_interval() -> None:
    """By its stamp where the kernel's clock agrees; a clock that drifted by an hour moves it by no more than the interval."""
    for us, expected_s in ((499_400_000, 0.6), (499_400_000 - 3_600_000_000 % 499_000_000, 1.0), (9_000_000_000, 0.0)):
        (point,) = parsed(record(TOLD[0][0], us=us))
        assert (T_NS - point.time_ns) / 1e9 == pytest.approx(expected_s, abs=1e-6)
    (first,) = parsed(record(TOLD[0][0], us=1), before_s=None)
    assert first.time_ns == T_NS


def test_a_storm_is_one_point_per_device_and_kind() -> None:
    points = parsed(*(record(f"nvme nvme{n % 3}: I/O {n} QID 1 timeout, aborting", sequence=n) for n in range(2000)))
    assert [point.fields["messages"] for point in points] == [667, 667, 666]
    assert len({point.time_ns for point in points}) == 3
    many = parsed(*(record(f"nvme nvme{n}: I/O 1 QID 1 timeout, aborting", sequence=n) for n in range(1000)))
    assert len(many) == POINTS_MAX + 1 and sum(int(point.fields["messages"]) for point in many) == 1000
    assert dict(many[-1].tags)["device"] == "others"
    assert len("".join(Encoder({}).encode(point) for point in many)) < 32_000


def test_hostile_text_becomes_one_harmless_line() -> None:
    text = 'nvme nvme1: I/O 1 QID 1 timeout \x1b[2J\r\u202e\u2028",x=1i \\' + "A" * 5000
    (point,) = parsed(record(text.replace("\n", " ")))
    line = Encoder({}).encode(point)
    assert line.count("\n") == 1 and "\x1b" not in line and "\r" not in line and "\u202e" not in line
    assert len(str(point.fields["text"])) <= TEXT_CHARACTERS_MAX + 3


@pytest.mark.parametrize(
    "bad", ["", "3", "3,7", "a,7,1,-;x", "3,7,,-;x", "3,7,1,-", "-3,7,1,-;x", "3,7,nan,-;x", "\x00"]
)
def test_a_record_that_is_not_of_the_format_is_named(bad: str) -> None:
    with pytest.raises(ValueError, match="/dev/kmsg"):
        parse_message(bad)


def test_an_address_goes_by_the_name_of_the_drive() -> None:
    (point,) = parsed(record(TOLD[9][0]), names="0000:3b:00.0 nvme0n1\n0000:5e:00.0 eth0")
    assert dict(point.tags)["device"] == "nvme0n1"


@contextlib.contextmanager
def packets(path: Path) -> Iterator[int]:
    """A pipe in packet mode in the log's place: like /dev/kmsg it gives one record to each read."""
    path.parent.mkdir(parents=True)
    reader, writer = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    path.symlink_to(f"/proc/self/fd/{reader}")
    try:
        yield writer
    finally:
        os.close(writer)
        os.close(reader)


def reading_on(root: Path, sequence: int) -> KernelLog:
    """A collector that has read up to a message; it does not pass over what stands there."""
    log = KernelLog(1.0, root)
    log._sequence = sequence
    log.read()
    return log


def test_overwritten_messages_are_counted_and_a_bad_one_costs_itself(tmp_path: Path) -> None:
    with packets(tmp_path / "dev/kmsg") as writer:
        log = reading_on(tmp_path, 6)
        for text in (record(TOLD[0][0], sequence=7), "garbage", record("harmless", sequence=8),
                     record(TOLD[1][0] + "\n SUBSYSTEM=nvme", sequence=20)):  # fmt: skip
            os.write(writer, text.encode())
        reading, points = sample(log)
        log.close()
    assert reading.faults == ("/dev/kmsg: 'garbage' is not understood",)
    assert {dict(p.tags)["kind"]: p.fields["messages"] for p in points} == {
        "nvme_reset": 1,
        "nvme_timeout": 1,
        "lost": 11,
    }
    assert all(undeclared(point) == [] for point in points)


def test_a_storm_of_bad_records_names_few(tmp_path: Path) -> None:
    with packets(tmp_path / "dev/kmsg") as writer:
        log = reading_on(tmp_path, 6)
        for _ in range(12):
            os.write(writer, b"\xff\x00garbage")
        reading, points = sample(log)
        log.close()
    assert len(reading.faults) == 4 and "9 more" in reading.faults[-1] and points == []


def test_no_log_or_no_permission_is_unsupported(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="a container"):
        KernelLog(1.0, tmp_path).read()


KMSG = Path("/dev/kmsg")
MAY_ASK = os.geteuid() == 0 and KMSG.exists() and Path("/dev/loop-control").exists() and shutil.which("losetup")


@pytest.mark.skipif(not MAY_ASK, reason="needs root, /dev/kmsg and loop devices")
def test_the_real_kernels_log(tmp_path: Path) -> None:
    """A drive whose medium went away under it, and a program that writes what looks like a fault."""
    log = KernelLog(1.0)
    before, points = sample(log)
    assert points == []  # entries from before the run are not its events
    (tmp_path / "image").write_bytes(b"\0" * 2**20)
    started_ns = time.time_ns()
    losetup = ["losetup", "--find", "--show", "--direct-io=off", str(tmp_path / "image")]
    device = Path(subprocess.run(losetup, check=True, capture_output=True, text=True).stdout.strip())
    try:
        KMSG.write_text("<3>nvme nvme77: I/O 1 QID 1 timeout, reset controller\n")
        os.truncate(tmp_path / "image", 0)
        with contextlib.suppress(OSError):
            handle = os.open(device, os.O_RDONLY)
            try:
                os.read(handle, 4096)
            finally:
                os.close(handle)
    finally:
        subprocess.run(["losetup", "--detach", str(device)], check=True)
    deadline = time.monotonic() + 10
    found: list[Point] = []
    while not [one for one in found if dict(one.tags)["device"] == device.name] and time.monotonic() < deadline:
        time.sleep(0.1)
        before, points = sample(log, before)
        found += points
    log.close()
    own = [one for one in found if dict(one.tags)["device"] == device.name]
    assert own and {dict(one.tags)["kind"] for one in own} == {"block_io_error"}
    assert started_ns - 2e9 <= own[0].time_ns <= time.time_ns()
    assert not [one for one in found if dict(one.tags)["device"] == "nvme77"]


def test_a_log_that_is_written_all_the_time_does_not_hold_the_collector(tmp_path: Path) -> None:
    with packets(tmp_path / "dev/kmsg") as writer:
        log = reading_on(tmp_path, 0)
        stop = threading.Event()

        def storm() -> None:
            sequence = 0
            while not stop.is_set():
                sequence += 1
                with contextlib.suppress(BlockingIOError):
                    os.write(writer, record(TOLD[0][0], sequence=sequence).encode())

        thread = threading.Thread(target=storm)
        thread.start()
        try:
            began = time.monotonic()
            _, points = sample(log)
            assert time.monotonic() - began < 60 and len(points) <= 2
        finally:
            stop.set()
            thread.join()
            log.close()


MC0 = "sys/devices/system/edac/mc/mc0"


def memory(root: Path, **values: str) -> Path:
    """A controller with two modules, as the kernel's sysfs has them (composed)."""
    whole = {"ce_count": "3\n", "ue_count": "0\n", "dimm0/dimm_ce_count": "3\n", "dimm0/dimm_ue_count": "0\n",
             "dimm0/dimm_label": "CPU_SrcID#0_MC#0_Chan#1_DIMM#0\n", "dimm1/dimm_ce_count": "0\n", "dimm1/dimm_ue_count": "0\n",
             "dimm1/dimm_label": "\n"}  # fmt: skip
    for name, text in {**whole, **values}.items():
        write(root / MC0 / name, text)
    return root


def test_errors_of_the_memory_by_controller_and_module(tmp_path: Path, clock: Clock) -> None:
    points = sample(Edac(1.0, memory(tmp_path)))[1]
    assert by_tag(points, "module") == {
        "total": {"corrected": 3, "uncorrected": 0},
        "dimm0": {"corrected": 3, "uncorrected": 0, "label": "CPU_SrcID#0_MC#0_Chan#1_DIMM#0"},
        "dimm1": {"corrected": 0, "uncorrected": 0},
    }
    assert all(undeclared(point) == [] for point in points)


@pytest.mark.parametrize("bad", ["", "nan\n", "-1\n", "1.5\n", "null\n", "9" * 30, "0x3\n", "1\n2\n"])
def test_a_bad_count_costs_itself_and_is_named(bad: str, tmp_path: Path, clock: Clock) -> None:
    reading, points = sample(Edac(1.0, memory(tmp_path, **{"dimm0/dimm_ce_count": bad})))
    assert len(reading.faults) == 1 and "dimm_ce_count" in reading.faults[0]
    fields = by_tag(points, "module")
    assert (
        "corrected" not in fields["dimm0"] and fields["dimm0"]["uncorrected"] == 0 and fields["total"]["corrected"] == 3
    )


def test_no_controller_is_absent_and_not_zero(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(Unsupported, match="no ECC"):
        Edac(1.0, tmp_path).read()
    write(tmp_path / MC0 / "dimm0/dimm_label", "A1\n")
    with pytest.raises(Unsupported):
        Edac(1.0, tmp_path).read()
    write(tmp_path / MC0 / "ce_count", "many\n")
    with pytest.raises(OSError, match="ce_count"):
        Edac(1.0, tmp_path).read()


def endurance(bench: Bench, monkeypatch: pytest.MonkeyPatch, samples: int = 1) -> tuple[list[Point], list[str]]:
    """Points of the groups in the last of some samples, and all faults."""
    monkeypatch.setenv("PATH", bench.path)
    smart, faults = bench.smart(), []
    points: list[Point] = []
    for _ in range(samples):
        reading = smart.read()
        faults += reading.faults
        points = smart.parse(reading, None)
    return [one for one in points if one.measurement == "smart_endurance"], faults


def test_each_endurance_group_tells_its_wear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((point,), faults) = endurance(with_groups(Bench(tmp_path, "nvme_datacentre"), 1), monkeypatch)
    assert dict(point.tags)["group"] == "1" and undeclared(point) == [] and faults == []
    assert point.fields["media_written_bytes"] == 10 * 10**9 and point.fields["percentage_used_percent"] == 50


def test_a_drive_without_groups_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, "nvme_datacentre")
    assert endurance(bench, monkeypatch) == ([], [])
    assert "--log-id=0x9 " not in (bench.files / "calls").read_text()


@pytest.mark.parametrize("bad", [b"", b"\0" * 512, b"\xff" * 512, endurance_page()[:100], endurance_page(2**100)])
def test_a_group_without_a_sound_page_costs_itself_and_is_asked_once(
    bad: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = with_groups(Bench(tmp_path, "nvme_datacentre"), 2)
    (bench.files / "e2.bin").write_bytes(bad)
    points, faults = endurance(bench, monkeypatch, samples=3)
    assert [dict(one.tags)["group"] for one in points] == ["1"]
    assert len(faults) == 1 and "endurance group 2" in faults[0] and "not read again" in faults[0]
    assert (bench.files / "calls").read_text().count("--lsi=2") == 1
