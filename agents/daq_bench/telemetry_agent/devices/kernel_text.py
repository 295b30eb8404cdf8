"""Understands the kernel's log: which of its messages tell of a fault of the hardware, of what kind, and on which device.

The forms are those of Linux 4.18 to 6.18 (drivers/nvme/host, block/blk-core.c, drivers/pci/pcie/aer.c, drivers/edac, drivers/md,
drivers/ata, arch/x86/kernel/cpu/mce, kernel/time/clocksource.c, drivers/iommu and the thermal drivers). A message of another form is no
event; nothing is guessed."""

from __future__ import annotations

import re
from typing import NamedTuple

TEXT_CHARACTERS_MAX = 300
KERNEL_FACILITY = 0  # what a user writes into /dev/kmsg gets another one from the kernel, whatever it asks for
_HEAD = re.compile(r"(?P<priority>[0-9]{1,10}),(?P<sequence>[0-9]{1,19}),(?P<us>[0-9]{1,18}),[^;]*;(?P<text>.*)")
_PCI = r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = r"(?P<device>[A-Za-z][A-Za-z0-9_-]{0,31})"
_BLOCK = (
    "I/O|timeout|critical target|critical medium|critical space allocation|critical nexus|recoverable transport"
    "|protection|reservation conflict|zone open resources exceeded|zone active resources exceeded|device offline"
)
# A controller (no namespace) that has not the command, field, namespace or log page that it was asked for (NVMe base specification: generic
# status 01h, 02h, 0Bh, command specific status 09h): Linux 5.18 and later print that where a tool only asks.
_ASKED_IN_VAIN = r"nvme\d+: .*\(sct 0x(0 / sc 0x(1|2|b)|1 / sc 0x9)\)"
# In this order: the first form that fits gives the kind. All but the blocks' begin where the message does, since a
# message may end with a program's name, which anybody may choose.
_FORMS = tuple(
    (kind, re.compile(form))
    for kind, form in (
        (
            "nvme_reset",
            rf"nvme {_DEVICE}: .*(reset controller|resetting controller|will reset|restart after slot reset|aborting reset"
            r"|after reset failure|after probe failure|disable controller|[Rr]emoving (failed|dead) controller)",
        ),
        ("nvme_timeout", rf"nvme {_DEVICE}: I/O .*\btimeout\b"),
        ("nvme_io_error", rf"(?!{_ASKED_IN_VAIN}){_DEVICE}: .*\(sct 0x"),
        ("nvme_io_error", rf"nvme {_DEVICE}: (Abort status|Identify (Controller|namespace) failed|controller is down)"),
        ("block_io_error", rf"(blk_update_request: |print_req_error: )?({_BLOCK}) error, dev {_DEVICE}, sector "),
        ("block_io_error", rf"Buffer I/O error on (dev(ice)? )?{_DEVICE}, "),
        ("pcie_error", rf"\S+ (?P<pci>{_PCI}): (AER: )?PCIe Bus Error: "),
        (
            "pcie_error",
            # aer_status: what the firmware saw first (GHES), where servers of Dell and HPE keep the errors from the kernel's own handler
            rf"\S+ (?P<pci>{_PCI}): ((AER: )?aer_status: |AER: .*(recovery failed|recovery successful|can't recover|device reset"
            r"|Root Port link)|DPC: containment event)",
        ),
        (
            "pcie_link",
            rf"\S+ (?P<pci>{_PCI}): (pciehp: .*Link Down|bandwidth|.*link (is|has been) (down|retrained)"
            r"|broken device, retraining)",
        ),
        ("memory_uncorrected", r"EDAC .*: [0-9]+ UE |Memory failure: 0x"),
        ("memory_corrected", r"EDAC .*: [0-9]+ CE |RAS: Soft-offlining pfn: "),
        (
            "machine_check",
            r"(mce: |\{[0-9]+\})?\[Hardware Error\]: |mce: .*(machine check|Machine [Cc]heck|Uncorrected hardware memory error)"
            r"|(mce: )?CMCI storm detected",
        ),
        (
            "thermal",
            r"(mce: )?CPU[0-9]+: .*temperature.*(above threshold|throttled)|thermal .*critical temperature"
            rf"|.*: critical temperature reached|\S+ (?P<pci>{_PCI}): .*High temperature on sensors",
        ),
        ("array", rf"md/raid[0-9a-z]*:{_DEVICE}: .*([Ff]ail|error|[Nn]ot enough|Cannot continue|read-only)"),
        (
            "array",
            rf"md: .*(recovery|resync|reshape) of RAID array {_DEVICE}|md: (kicking non-fresh|super_written gets error)",
        ),
        (
            "disk_link",
            r"(?P<port>ata[0-9]+)(\.[0-9]+)?: (exception|hard resetting|soft resetting|failed command|SATA link down"
            r"|limiting SATA|disabled|disable device)",
        ),
        (
            "disk_link",
            r"sd (?P<port>[0-9]+(:[0-9]+){3}): (\[\w+\] )?(rejecting I/O|Power-on or device reset|.*task abort)",
        ),
        ("disk_link", rf"sd [0-9:]+ \[{_DEVICE}\] .*(FAILED Result|Sense Key : (Hardware|Medium))"),
        # A controller is reset, or ends: no drive behind it answers meanwhile.
        (
            "disk_link",
            r"(?P<port>mpt[23]sas_cm[0-9]+): (sending diag reset|fault_state\()",
        ),
        (
            "disk_link",
            rf"(megaraid_sas|smartpqi|hpsa) (?P<pci>{_PCI}): (resetting |.*FAULT state|[Cc]ontroller (is )?offline"
            r"|[Cc]ontroller lockup|scsi [0-9:]+ resetting |no heartbeat detected)",
        ),
        (
            "file_system",  # BTRFS says the same when it mounts
            rf"(?i:(?=.*(error|corrupt|abort|shut|read-only|fail)))(EXT4-fs|BTRFS|F2FS-fs)[a-z ]* ?\(device {_DEVICE}\)",
        ),
        (
            "file_system",
            rf"XFS \({_DEVICE}\): .*(I/O error|CRC error|Internal error|[Cc]orrupt|[Ss]hut(ting)? ?down|[Ff]ailing async write)",
        ),
        ("file_system", rf"{_DEVICE}: writeback error on inode "),  # XFS by iomap
        (
            "file_system",
            rf"EXT4-fs \({_DEVICE}\): (Delayed block allocation failed|This should not happen|failed to convert unwritten|Remounting"
            r" filesystem read-only|previous I/O error|I/O error while)",
        ),
        ("file_system", r"Aborting journal on device|JBD2: (Detected IO errors|I/O error|Error -[0-9]+ detected)"),
        # The machine's clock: what replaces it may be read a hundred times slower, by every request. A watchdog that gives up
        # ("retried 2 times before success", "skipping watchdog check") has found nothing.
        (
            "clocksource",
            r"clocksource: timekeeping watchdog on CPU[0-9]+: (Marking clocksource '.*' as unstable|.*, marking unstable)",
        ),
        ("clocksource", r"(tsc: )?Marking TSC unstable due to (?!clocksource watchdog)"),  # that one has told already
        # A device asked for memory that it was not given. Root ports answer INVALID_DEVICE_REQUEST on sound machines.
        ("iommu_fault", rf"\S+ (?P<pci>{_PCI}): AMD-Vi: Event logged \[IO_PAGE_FAULT "),
        ("iommu_fault", r"AMD-Vi: Event logged \[IO_PAGE_FAULT device=(?P<function>[0-9a-f:]+\.[0-7]) "),
        (
            "iommu_fault",
            r"(DMAR: )?\[(DMA (Read|Write)|INTR-REMAP)[^]]*\] Request device \[(?P<function>[0-9a-fx:]+\.[0-7])\]",
        ),
        (
            "hang",
            r"INFO: task .* blocked for more than|(rcu: )?INFO: rcu.* stall|(NMI )?watchdog: .*(BUG: |hard LOCKUP)",
        ),
        ("hang", rf"\S+ \S+ {_DEVICE}: NETDEV WATCHDOG: .*timed out"),
        ("hang", rf"NETDEV WATCHDOG: {_DEVICE} .*timed out"),
    )
)


class Message(NamedTuple):
    """One record of the kernel's log. `us` since boot by the kernel's own clock; `priority` 0 (emergency) to 7 (debug)."""

    priority: int
    facility: int
    sequence: int
    us: int
    text: str


class Fault(NamedTuple):
    """`device` is a kernel name or a PCI address, "" where the message names none."""

    kind: str
    device: str


def parse_message(record: str) -> Message:
    """One record of /dev/kmsg, without the dictionary that may follow it. Raises ValueError."""
    match = _HEAD.fullmatch(record.partition("\n")[0])
    if match is None:
        raise ValueError(f"/dev/kmsg: {record[:200]!r} is not understood")
    syslog = int(match["priority"])
    return Message(syslog & 7, syslog >> 3, int(match["sequence"]), int(match["us"]), visible(match["text"]))


def fault_of(message: Message) -> Fault | None:
    """The fault that a message tells of; None for any other message, and for one that a program wrote and not the kernel."""
    if message.facility != KERNEL_FACILITY:
        return None
    for kind, form in _FORMS:
        match = form.match(message.text)
        if match is None:
            continue
        named = match.groupdict()
        device = named.get("device") or named.get("pci") or named.get("port") or _address(named.get("function"))
        return Fault(kind, device)
    return None


def _address(function: str | None) -> str:
    """The whole PCI address of a function without a domain, as an IOMMU's driver names it: `04:00.0`, in some releases `0x04:0x00.0`."""
    short = (function or "").replace("0x", "")
    return f"0000:{short}" if short.count(":") == 1 else short


def visible(text: str) -> str:
    """Its beginning, each character that is not printed (control, line break, direction of writing) as its number."""
    shown = "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text[:TEXT_CHARACTERS_MAX])
    return shown[:TEXT_CHARACTERS_MAX] + (
        "..." if len(text) > TEXT_CHARACTERS_MAX or len(shown) > TEXT_CHARACTERS_MAX else ""
    )
