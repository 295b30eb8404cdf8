"""NVMe's persistent event log (0Dh): what the drive itself wrote down of its power, heat, errors, links and firmware. Pure.

Layout: NVMe base specification 1.4 to 2.0. nvme-cli's own command prints it with names that differ between its versions and
leaves the drive's reading context open; so the page is read as bytes. Only what the specification names becomes an event: snapshots of
the health log, changes of the time, set features and the vendor's own events do not. The times are the drive's; they serve only as
ages against the time that the log's header states.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from daq_bench.telemetry_agent.devices.kernel_text import visible

PAGE = 0x0D
READ, ESTABLISH, RELEASE = (
    "--lsp=0",
    "--lsp=1",
    "--lsp=2",
)  # the page is read in a context, which is released afterwards
HEADER_BYTES = 512
LOG_BYTES_MAX = 2**20  # read of a log; one that is longer is named
EVENTS_MAX = 64  # of one reading; those beyond are reported together
OTHERS = "others"
HEAD_BYTES = 24  # of one event, as far as its fixed part goes
CONTEXT_HEAD_BYTES = 3  # the header's length counts from here
TIME_MASK = 2**48 - 1  # the upper 16 bits of a timestamp are its origin

POWER_ON, FIRMWARE, THERMAL, HARDWARE = 0x04, 0x02, 0x0D, 0x05
# Event type -> kind
KINDS = {
    FIRMWARE: "firmware_commit",
    POWER_ON: "power_on_reset",
    HARDWARE: "hardware_error",
    0x06: "namespace_change",
    0x07: "format",
    0x08: "format",
    0x09: "sanitize",
    0x0A: "sanitize",
    0x0C: "telemetry_log",
    THERMAL: "thermal_excursion",
    0x0E: "sanitize",
}
# Code of a hardware error -> (kind, words)
HARDWARE_ERRORS = {
    0x01: ("pcie_correctable", "PCIe correctable error"),
    0x02: ("pcie_nonfatal", "PCIe uncorrectable non-fatal error"),
    0x03: ("pcie_fatal", "PCIe uncorrectable fatal error"),
    0x04: ("pcie_link", "PCIe link status change"),
    0x05: ("pcie_link", "PCIe link not active"),
    0x06: ("critical_warning", "critical warning condition"),
    0x07: ("critical_warning", "critical warning condition of an endurance group"),
    0x08: ("unsafe_shutdown", "unsafe shutdown"),
    0x09: ("controller_fatal", "controller fatal status"),
    0x0A: ("media_error", "media and data integrity status"),
    0x0B: ("controller_timeout", "controller ready timeout exceeded"),
}


class Header(NamedTuple):
    """The log's own account. `first`: where its events begin."""

    events: int
    length: int
    time_ms: int
    first: int


class Event(NamedTuple):
    """One event; `key` tells it from every other of the log."""

    kind: str
    text: str
    time_ms: int
    key: bytes


def header(page: bytes) -> Header:
    """Raises ValueError for a page that is no such header."""
    if len(page) != HEADER_BYTES:
        raise ValueError(f"persistent event log: {len(page)} B instead of a header of {HEADER_BYTES} B")
    if page[0] != PAGE:
        raise ValueError(f"persistent event log: its header begins with {page[:4].hex()} and not with {PAGE:02x}")
    follows = _number(
        page, 18, 2
    )  # of the header, after this number; some count all of it, and nvme-cli passes over it
    first = HEADER_BYTES if follows in (0, HEADER_BYTES) else 20 + follows
    found = Header(_number(page, 4, 4), _number(page, 8, 8), _number(page, 20, 8) & TIME_MASK, first)
    if found.first < HEADER_BYTES or found.length < found.first:
        raise ValueError(
            f"persistent event log: its header states {found.length} B with events from byte {found.first} on"
        )
    return found


def events(log: bytes, stated: Header) -> tuple[list[Event], list[str]]:
    """(events, faults) of a log with its header, in its order, of the kinds that are reported. A fault is a sentence on what is missing."""
    found: list[Event] = []
    at = stated.first
    for number in range(stated.events):
        head = log[at : at + HEAD_BYTES]
        if len(head) < HEAD_BYTES:
            return found, [_short(number, stated, len(log))]
        start = at + CONTEXT_HEAD_BYTES + head[2]
        vendor, length = _number(head, 20, 2), _number(head, 22, 2)
        if head[2] < HEAD_BYTES - CONTEXT_HEAD_BYTES or vendor > length:
            return found, [
                f"persistent event log: event {number + 1} of {stated.events} is not understood: {head.hex()}"
            ]
        end = start + length
        if end > len(log):
            return found, [_short(number, stated, len(log))]
        if head[0] in KINDS:
            kind, text = _told(head[0], log[start + vendor : end])
            key = hashlib.blake2b(log[at:end], digest_size=12).digest()
            found.append(Event(kind, visible(text), _number(head, 6, 8) & TIME_MASK, key))
        at = end
    return found, []


def _short(number: int, stated: Header, read: int) -> str:
    return f"persistent event log: {number} of {stated.events} events within the {read} B that were read"


def _told(kind: int, data: bytes) -> tuple[str, str]:
    """(kind, words) of one event. The words leave out whatever the event lacks."""
    if kind == HARDWARE and len(data) >= 2:
        code = _number(data, 0, 2)
        return HARDWARE_ERRORS.get(code, (KINDS[HARDWARE], f"hardware error {code:#04x}"))
    if kind == FIRMWARE and len(data) >= 20:
        old, new = (data[at : at + 8].decode("ascii", "replace").strip("\0 ") for at in (0, 8))
        status = f", refused with status {data[18]:#x}/{data[19]:#04x}" if data[18] or data[19] else ""
        return KINDS[kind], f"firmware {old} to {new} in slot {data[17]}{status}"
    if kind == POWER_ON and len(data) >= 8:
        return KINDS[kind], f"power-on or reset with firmware {data[:8].decode('ascii', 'replace').strip(chr(0) + ' ')}"
    if kind == THERMAL and len(data) >= 2:
        return KINDS[kind], f"over temperature {data[0]}, threshold {data[1]}"
    return KINDS[kind], f"event of type {kind:#04x}"


def _number(page: bytes, first: int, size: int) -> int:
    return int.from_bytes(page[first : first + size], "little")
