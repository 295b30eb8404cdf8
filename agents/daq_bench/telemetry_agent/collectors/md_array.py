"""Arrays of Linux software RAID: state, degradation, resynchronisation and what each member says, every second.

Promise: the kernel's own words and counts. A value that a level does not have (RAID 0 knows neither degradation nor
resynchronisation) is not reported. An invalid value costs that value alone and is named.
A member's point has the tag `member`. Arrays come and go during a run: a machine
that could have one is supported, and gives no point while there is none.
"""

from __future__ import annotations

import re

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, read_present, readable_name, whole_number
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading, Unsupported, reading_now

WORDS = {"array_state": "state", "level": "level", "sync_action": "sync_action"}
COUNTS = {"degraded": "degraded", "raid_disks": "raid_disks", "mismatch_cnt": "mismatch_sectors"}
COMPLETED = "sync_completed"
MEMBER_FILES = ("state", "errors")
RESHAPING = re.compile(r"([0-9]+) \([0-9]+\)")  # raid_disks while an array is reshaped: the new number (the old one)
PROGRESS = re.compile(r"([0-9]+) / ([0-9]+)")


def completed_fraction(text: str, where: str) -> float | None:
    """Share of a resynchronisation that is done; None while there is none. Raises ValueError."""
    progress = PROGRESS.fullmatch(text)
    if progress and int(progress[2]) > 0:
        return int(progress[1]) / int(progress[2])
    if text in ("none", "delayed"):
        return None
    raise ValueError(f"{where}: {excerpt(text)} is no progress")


def field_of(key: str, text: str) -> dict[str, FieldValue]:
    """The field of one file by "array|member|file"; none where it says nothing. Raises ValueError that names the file."""
    array, member, name = key.split("|")
    where, value = f"{array}/md/{member}/{name}".replace("//", "/"), text.strip()
    if name in ("state", "array_state") and not value:
        raise ValueError(f"{where}: is empty")
    if member:
        return {name: value if name == "state" else whole_number(value, where)}
    if name in COUNTS:
        reshaping = RESHAPING.fullmatch(value) if name == "raid_disks" else None
        # an array that is being assembled has no number of disks yet
        return {COUNTS[name]: whole_number(reshaping[1] if reshaping else value, where)} if value else {}
    if name in WORDS:
        return {WORDS[name]: value}
    done = completed_fraction(value, where)
    return {} if done is None else {"sync_completed_fraction": done}


class MdArray(OfRoot):
    """Collector of the measurement `md_array`."""

    name = "md_array"
    period_s_min = 2.0

    def read(self) -> Reading:
        """Texts hold one file each, by "array|member|file"; the member is empty for the array itself."""
        files = {}
        for folder in sorted((self._root / "sys/block").glob("md*/md")):
            array = readable_name(folder.parent.name)
            for name in (*WORDS, *COUNTS, COMPLETED):
                files[f"{array}||{name}"] = folder / name
            for member in sorted(folder.glob("dev-*")):
                for name in MEMBER_FILES:
                    files[f"{array}|{readable_name(member.name)[4:]}|{name}"] = member / name
        texts, faults = read_present(files)
        able = [self._root / path for path in ("proc/mdstat", "usr/sbin/mdadm", "sbin/mdadm")]
        if not texts and not faults and not any(path.exists() for path in able):
            raise Unsupported(f"no {able[0]} and no mdadm: this machine makes no md arrays")
        for key, text in list(texts.items()):
            try:
                field_of(key, text)
            except ValueError as error:
                faults.append(str(error))
                del texts[key]
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per array and per member."""
        found: dict[tuple[str, str], dict[str, FieldValue]] = {}
        for key, text in reading.texts.items():
            array, member, _ = key.split("|")
            found.setdefault((array, member), {}).update(field_of(key, text))
        points = []
        for (array, member), fields in found.items():
            if not fields:
                continue  # each of its values was refused, and named
            tags = (("device", array), ("member", member)) if member else (("device", array),)
            points.append(Point("md_array", tags, fields, reading.time_ns))
        return points
