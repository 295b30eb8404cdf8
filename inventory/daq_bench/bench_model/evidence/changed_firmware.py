"""Was the firmware after the load what it was before? A candidate whose firmware changed in mid-run is no longer the declared one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from daq_bench.bench_model.documents.facts import FirmwareReading
from daq_bench.bench_model.documents.verdict import Finding
from daq_bench.bench_model.evidence.soundness import Sound

FILE = "facts/firmware.json"
BEFORE, AFTER = "before the load", "after the load"
WRITES_IT = "kernel_log"  # the bench that first read the firmware twice is the one whose agent has this collector
NAMES = {"drive": "drive {}", "nic": "network card {}", "bios": "the BIOS", "bmc": "the BMC"}
SYSFS = "sysfs"  # which has the first four characters of a SATA drive's
Versions = dict[tuple[str, str], list[tuple[str | None, str]]]


def firmware_findings(evidence: Sound) -> Iterator[Finding]:
    """A finding for each part that changed, and for readings that are not there. Older bundles have none, and lose nothing by it. That a
    document is there and cannot be read is said elsewhere."""
    if evidence.firmware is None:
        collectors = evidence.telemetry.collectors if evidence.telemetry else []
        if FILE not in evidence.malformed and any(one.name == WRITES_IT for one in collectors):
            yield Finding("The run did not record the candidate's firmware", True, (FILE,))
        return
    readings = evidence.firmware.readings
    times = [reading.when for reading in readings]
    if times != [BEFORE, AFTER]:
        told = ", ".join(times) or "never"
        yield Finding(
            f"The firmware was to be read once before and once after the load, and was read: {told}", True, (FILE,)
        )
        return
    before, after = (_versions(reading) for reading in readings)
    for reading, found in zip(readings, (before, after), strict=True):
        if not found:
            yield Finding(f"Firmware: not one part of the candidate was read {reading.when}", False, (FILE,))
    drives = sum(kind == "drive" for kind, _ in before)
    carried = len({one.serial for one in evidence.run.target.drives if one.serial})
    if before and drives < carried:  # that a drive tells nothing afterwards is said of the drive itself
        text = f"Firmware: {drives} drives were read {BEFORE}, and the target lies on {carried}"
        yield Finding(text, False, (FILE,))
    for kind, name in sorted(before.keys() | after.keys()):
        yield from _part(kind, name, before.get((kind, name)), after.get((kind, name)))


def _part(
    kind: str, name: str, first: list[tuple[str | None, str]] | None, last: list[tuple[str | None, str]] | None
) -> Iterator[Finding]:
    part = NAMES[kind].format(name)
    if first is None:
        if kind == "drive":
            yield Finding(f"Firmware: {part} was not there before the load and is there after it", False, (FILE,))
        return
    known = [version for version, _ in first if version is not None]
    if last is None or (known and all(version is None for version, _ in last)):
        if known:
            # A drive that is gone or mute is not shown to be the one that was measured; a BMC may be busy, or be flashed just now.
            text = f"Firmware: {part} had {', '.join(known)} before the load and tells none after it"
            yield Finding(text, kind == "drive", (FILE,))
    elif known and not _same(first, last):
        now = ", ".join(version for version, _ in last if version is not None)
        yield Finding(f"Firmware: {part} had {', '.join(known)} before the load and has {now} after it", True, (FILE,))


def _same(first: list[tuple[str | None, str]], last: list[tuple[str | None, str]]) -> bool:
    if [version for version, _ in first] == [version for version, _ in last]:
        return True
    if len(first) != 1 or len(last) != 1 or first[0][1] == last[0][1] or SYSFS not in (first[0][1], last[0][1]):
        return False
    short, long = sorted((first[0][0] or "", last[0][0] or ""), key=len)
    return bool(short) and long.startswith(short)


def _versions(reading: FirmwareReading) -> Versions:
    found: Versions = defaultdict(list)
    for one in reading.parts:
        found[one.kind, one.name].append((one.version, one.source))
    return {key: sorted(rows, key=lambda row: (row[0] or "", row[1])) for key, rows in found.items()}
