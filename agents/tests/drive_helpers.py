"""Drives that are composed text: `fixtures/drives/<case>` holds what the tools would print of one drive, and the points to expect.

No drive ever said them: they are written after the tools' documentation, to have every case. Real outputs are in inventory/corpus.

`*.hex` are the drive's own pages in the form `first byte: bytes  # what it is`; the rest of a page is zero."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path

from agent_helpers import FIXTURES, T0_NS, fake_program

from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.collectors.smart import Smart
from daq_bench.telemetry_agent.reading.collector import Reading

DRIVES = FIXTURES / "drives"
ANSWERING = sorted(path.parent.name for path in DRIVES.glob("*/expected.lp"))
REFUSING = ("no_smart", "permission_denied", "usb_bridge_refused")
# The answers of the drive or nvme-cli to each question; a file that a case lacks is a page that the drive lacks.
NVME = """
cd "{folder}" || exit 2
case "$*" in
    *smart-log*) file=health.bin ;;
    *id-ctrl*) file=identify.bin ;;
    *get-feature*) file=feature.txt ;;
    *--log-id=0x0\\ *) file=pages.bin ;;
    *--log-id=0x9\\ *--lsi=1\\ *) file=e1.bin ;;
    *--log-id=0x9\\ *--lsi=2\\ *) file=e2.bin ;;
    *--log-id=0xd\\ *--lsp=0*) file=events_rest.bin ;;
    *--log-id=0xd\\ *) file=events_head.bin ;;
    *--log-id=0xc0*) file=c0.bin ;;
    *--log-id=0xca*) file=ca.bin ;;
    *) echo "unexpected: $*" >&2; exit 2 ;;
esac
echo "$*" >>calls
[ -f "$file" ] || {{ echo "NVMe status: Invalid Log Page: The log page indicated is invalid(0x4109)" >&2; exit 1; }}
exec cat "$file"
"""


def page_bytes(text: str) -> bytes:
    """The page that a .hex file describes."""
    size = re.match(r"# (\d+) bytes", text)
    assert size is not None
    page = bytearray(int(size[1]))
    for first, digits in re.findall(r"^(\d+): ([0-9a-f ]+?)\s*(?:#|$)", text, re.MULTILINE):
        one = bytes.fromhex(digits)
        page[int(first) : int(first) + len(one)] = one
    return bytes(page)


class Bench:
    """A machine with one drive of a case, and tools that answer for it. `files` are what the tools print."""

    def __init__(self, folder: Path, case: str) -> None:
        self.files = folder / case
        self.files.mkdir(parents=True)
        for path in (DRIVES / case).iterdir():
            if path.suffix == ".hex":
                (self.files / path.name).with_suffix(".bin").write_bytes(page_bytes(path.read_text()))
            elif path.name != "expected.lp":
                shutil.copy(path, self.files)
        self.drive = "nvme0n1" if case.startswith("nvme") else "sda"
        self.root = folder / "root"
        (self.root / "sys/block" / self.drive / "device").mkdir(parents=True)
        self.path = fake_program(folder / "bin", "smartctl", f'cat "{self.files}/smartctl.json"\n')
        self.bin = folder / "bin"
        if (self.files / "health.bin").exists():
            fake_program(self.bin, "nvme", NVME.format(folder=self.files))
        else:  # nothing of the machine that the tests run on answers instead
            fake_program(self.bin, "nvme", f"echo '/dev/{self.drive}: Permission denied' >&2; exit 1\n")

    def smart(self) -> Smart:
        """The collector on this machine."""
        return Smart(1.0, self.root)

    def printed(self) -> list[Path]:
        """The files that the tools print."""
        return sorted(path for path in self.files.iterdir() if path.name != "calls")

    def calls(self) -> list[str]:
        """nvme-cli's command lines so far."""
        return (self.files / "calls").read_text().splitlines()


def lines_of(points: Iterable[Point]) -> str:
    """Line protocol, all at one time; without what depends on this machine's speed."""
    encoder = Encoder({})
    return "".join(encoder.encode(p._replace(time_ns=T0_NS)) for p in points if p.measurement != "smart_query")


def points_of(collector: Smart, reading: Reading) -> list[Point]:
    """Returns the points that the collector makes of a reading, without how the queries went."""
    return [point for point in collector.parse(reading, None) if point.measurement != "smart_query"]


def endurance_page(written: int = 5) -> bytes:
    """A group's log page (composed): half its endurance used, `written` units of 1e9 B by the host and twice as many onto the media."""
    page = bytearray(512)
    page[3:6] = bytes((99, 10, 50))
    for first, value in ((32, 7000), (48, 3), (64, written), (80, 2 * written), (128, 1), (144, 2)):
        page[first : first + 16] = value.to_bytes(16, "little")
    return bytes(page)


def with_groups(bench: Bench, highest: int) -> Bench:
    """The drive states this many endurance groups; only the first one has a page."""
    identify = bytearray((bench.files / "identify.bin").read_bytes())
    identify[96] |= 1 << 4
    identify[340:342] = highest.to_bytes(2, "little")
    (bench.files / "identify.bin").write_bytes(identify)
    (bench.files / "e1.bin").write_bytes(endurance_page())
    return bench


def event(kind: int, time_ms: int, data: bytes = b"", vendor: bytes = b"") -> bytes:
    """One event of a persistent event log (composed)."""
    length = len(vendor) + len(data)
    return struct.pack("<BBBBHQHIHH", kind, 1, 21, 0, 1, time_ms, 0, 0, len(vendor), length) + vendor + data


def event_log(time_ms: int, events: list[bytes], follows: int = 492, length: int | None = None) -> bytes:
    """A persistent event log (composed); `length`: what its header says where that is not true."""
    body = b"".join(events)
    head = bytearray(512)
    struct.pack_into(
        "<B3xIQBxHQ", head, 0, 13, len(events), 512 + len(body) if length is None else length, 2, follows, time_ms
    )
    return bytes(head) + body + bytes(-len(body) % 4)  # it is read in whole double words


def with_events(bench: Bench, log: bytes) -> Bench:
    """The drive keeps this persistent event log."""
    identify = bytearray((bench.files / "identify.bin").read_bytes())
    identify[261] |= 1 << 4 | 1 << 2
    (bench.files / "identify.bin").write_bytes(identify)
    (bench.files / "events_head.bin").write_bytes(log[:512])
    (bench.files / "events_rest.bin").write_bytes(log[512:])
    return bench
