"""Arrays of Linux software RAID: state, degradation, resynchronisation and what each member says, every second.

Promise: the kernel's own words and counts. What a level does not have (RAID 0 knows neither degradation nor
resynchronisation) is not reported. A member's point has the tag `member`. Arrays come and go during a run: a machine
that could have one is supported, and gives no point while there is none.
"""

from __future__ import annotations

import re
from pathlib import Path

from telemetry_agent.attributes import excerpt, read_present, readable_name, whole_number
from telemetry_agent.collector import Reading, Unsupported, reading_now
from telemetry_agent.point import FieldValue, Point

PERIOD_S_MIN = 2.0
WORDS = {"array_state": "state", "level": "level", "sync_action": "sync_action"}
COUNTS = {"degraded": "degraded", "raid_disks": "raid_disks", "mismatch_cnt": "mismatch_sectors"}
COMPLETED = "sync_completed"
MEMBER_FILES = ("state", "errors")
PROGRESS = re.compile(r"([0-9]+) / ([0-9]+)")


def completed_fraction(text: str, where: str) -> float | None:
    """Share of a resynchronisation that is done; None while there is none. Raises ValueError."""
    progress = PROGRESS.fullmatch(text)
    if progress and int(progress[2]) > 0:
        return int(progress[1]) / int(progress[2])
    if text in ("none", "delayed"):
        return None
    raise ValueError(f"{where}: {excerpt(text)} is no progress")


class MdArray:
    """Collector of the measurement `md_array`."""

    name = "md_array"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._sys_block = root / "sys/block"
        self._able = [root / path for path in ("proc/mdstat", "usr/sbin/mdadm", "sbin/mdadm")]

    def read(self) -> Reading:
        """Texts hold one file each, by "array|member|file"; the member is empty for the array itself."""
        files = {}
        for folder in sorted(self._sys_block.glob("md*/md")):
            array = readable_name(folder.parent.name)
            for name in (*WORDS, *COUNTS, COMPLETED):
                files[f"{array}||{name}"] = folder / name
            for member in sorted(folder.glob("dev-*")):
                for name in MEMBER_FILES:
                    files[f"{array}|{readable_name(member.name)[4:]}|{name}"] = member / name
        texts, faults = read_present(files)
        if not texts and not faults and not any(path.exists() for path in self._able):
            raise Unsupported(f"no {self._able[0]} and no mdadm: this machine makes no md arrays")
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per array and per member."""
        found: dict[tuple[str, str], dict[str, FieldValue]] = {}
        for key, text in reading.texts.items():
            array, member, name = key.split("|")
            fields = found.setdefault((array, member), {})
            where, value = f"{array}/md/{member}/{name}".replace("//", "/"), text.strip()
            if member:
                fields[name] = value if name == "state" else whole_number(value, where)
            elif name in COUNTS:
                if value:  # an array that is being assembled has no number of disks yet
                    fields[COUNTS[name]] = whole_number(value, where)
            elif name in WORDS:
                fields[WORDS[name]] = value
            else:
                done = completed_fraction(value, where)
                if done is not None:
                    fields["sync_completed_fraction"] = done
            if (name == "state" and not value) or (name == "array_state" and not value):
                raise ValueError(f"{where}: is empty")
        points = []
        for (array, member), fields in found.items():
            tags = (("device", array), ("member", member)) if member else (("device", array),)
            points.append(Point("md_array", tags, fields, reading.time_ns))
        return points
