"""Faults of the hardware in the kernel's log (NVMe, block, PCIe, memory, heat, arrays, file systems), each second.

Promise: only messages of the kernel itself and since the agent's start; one point per device and kind of fault each
second, with the number of messages and the first one's text, so that no storm of messages fills the spool. Messages that the kernel
overwrote before they were read are counted, too (kind `lost`). A message that is not understood costs itself and is named.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from daq_bench.candidate_kit.nvme_paths import drives_of_controller
from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.devices.kernel_text import (
    Fault,
    Message,
    fault_of,
    parse_message,
    visible,
)
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now
from daq_bench.telemetry_agent.reading.pci import disks_behind, functions_by_name

PERIOD_S_MIN = 1.0
RECORD_BYTES_MAX = 8192  # the kernel's own limit of one record
RECORDS_MAX = 2000  # faults of one reading; the others wait for the next in the kernel's buffer
READS_MAX = 20_000  # records of one reading, faults or not: a storm must not hold the collector for ever
POINTS_MAX = 64  # of one reading; the devices beyond are reported together
FAULTS_MAX = 3
NO_DEVICE, OTHERS, LOST = "none", "others", "lost"
RECORDS, GAP, NAMES = "records", "gap", "names"
BEHIND = "behind"  # a controller's or port's name in the log, and the disks behind it, a line each
SEPARATOR = "\x1e"


class KernelLog:
    """Collector of the measurement `kernel_event`."""

    name = "kernel_log"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._root = root
        self._path = root / "dev/kmsg"
        self._fd = -1
        self._sequence = -1  # of the last record that was read

    def read(self) -> Reading:
        """Every record since the last reading; the first reading passes over all that stands there."""
        first = self._fd < 0
        if first:
            self._open()
        records: list[str] = []
        faults: list[str] = []
        gap = 0
        for _ in range(0 if first else READS_MAX):
            if len(records) >= RECORDS_MAX:
                break
            try:
                data = os.read(self._fd, RECORD_BYTES_MAX)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # overwritten: the next read gives the oldest that is left, whose number tells how many
                self.close()
                raise
            if not data:
                break
            record = data.decode("utf-8", "replace").replace(SEPARATOR, " ")
            try:
                message = parse_message(record)
            except ValueError as error:
                faults.append(str(error))
                continue
            if self._sequence >= 0:
                gap += max(0, message.sequence - self._sequence - 1)
            self._sequence = message.sequence
            if fault_of(message):
                records.append(record)
        names = self._names() if records else {}
        texts = {RECORDS: SEPARATOR.join(records), GAP: str(gap)}
        texts[NAMES] = "\n".join(f"{address} {device}" for address, device in names.items())
        behind = disks_behind(self._root) if records else {}
        texts[BEHIND] = "\n".join(f"{controller} {' '.join(disks)}" for controller, disks in behind.items())
        shown = faults[:FAULTS_MAX]
        if len(faults) > FAULTS_MAX:
            shown.append(f"/dev/kmsg: {len(faults) - FAULTS_MAX} more records are not understood")
        return reading_now(texts, tuple(shown))

    def _names(self) -> dict[str, str]:
        """The names that the rest of the telemetry uses, by the kernel's: of a PCI function, and of a multipath drive's controller."""
        found = {function.name: device for device, function in functions_by_name(self._root).items()}
        for controller in (self._root / "sys/class/nvme").glob("nvme*"):
            drives = drives_of_controller(controller)
            if drives and not drives[0].startswith(f"{controller.name}n"):
                found[controller.name] = drives[0]
        return found

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per device and kind."""
        names = dict(line.split(" ", 1) for line in reading.texts[NAMES].split("\n") if line)
        behind = dict(line.split(" ", 1) for line in reading.texts.get(BEHIND, "").split("\n") if line)
        disks: dict[Fault, str] = {}
        found: dict[Fault, list[Message]] = {}
        for record in filter(None, reading.texts[RECORDS].split(SEPARATOR)):
            message = parse_message(record)
            fault = fault_of(message)
            if fault is None:
                continue
            device = names.get(fault.device, fault.device)
            key = Fault(fault.kind, device or NO_DEVICE)
            if key not in found and len(found) >= POINTS_MAX:
                key = Fault(fault.kind, OTHERS)
            elif fault.device in behind:
                disks[key] = behind[fault.device]
            found.setdefault(key, []).append(message)
        points = []
        for number, (fault, messages) in enumerate(found.items()):
            fields: dict[str, FieldValue] = {
                "messages": len(messages),
                "text": messages[0].text,
                "priority": min(message.priority for message in messages),
                "sequence": messages[0].sequence,
            }
            time_ns = _time_ns(messages[0], reading, previous) + number
            tags = (
                ("device", fault.device),
                *((("drives", disks[fault]),) if fault in disks else ()),
                ("kind", fault.kind),
            )
            points.append(Point("kernel_event", tags, fields, time_ns))
        gap = int(reading.texts[GAP])
        if gap:
            text = visible(f"the kernel overwrote {gap} messages of its log before they were read")
            tags = (("device", NO_DEVICE), ("kind", LOST))
            points.append(Point("kernel_event", tags, {"messages": gap, "text": text}, reading.time_ns))
        return points

    def close(self) -> None:
        """Close the log if it is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Unsupported(f"no {self._path}: a kernel without it, or a container") from None
        except PermissionError:
            raise Unsupported(
                f"{self._path} is not open to this user: run the agent as root, or set kernel.dmesg_restrict=0"
            ) from None
        if self._sequence < 0:  # after a failed read the log is read on, from its oldest message
            os.lseek(self._fd, 0, os.SEEK_END)


def _time_ns(message: Message, reading: Reading, previous: Reading | None) -> int:
    """The message's time by our clock. The kernel stamps by a clock that drifts against every other (dmesg's manual says so): within
    the reading's own interval its stamp holds, beyond it the interval does."""
    age_ns = int(reading.monotonic_s * 1e9) - message.us * 1000
    longest_ns = int((reading.monotonic_s - previous.monotonic_s) * 1e9) if previous else 0
    return reading.time_ns - min(max(age_ns, 0), max(longest_ns, 0))
