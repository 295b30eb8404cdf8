"""Drive health: `smartctl -j` for every whole disk, and of NVMe drives their own log pages through nvme-cli.

Promise: only reads. Drives are asked side by side, each within its own time: one that hangs is a fault of its own and
visible in `smart_query`, and the others' points carry the time at which they answered. An answer that is no answer is
a fault that shows it; when no drive answers the sample failed, and where none has health data the collector is
unsupported. NVMe data units become bytes (1000 x 512 B each).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.smartctl import VOLUME
from daq_bench.candidate_kit.tools import find_tool
from daq_bench.telemetry_agent.base.point import FieldValue, Point, PointError, check_tag
from daq_bench.telemetry_agent.collectors.block_device import is_whole_disk
from daq_bench.telemetry_agent.devices import nvme_pages, smartctl_json
from daq_bench.telemetry_agent.devices.drive_poll import PATIENCE_S, DrivePoll, DriveState
from daq_bench.telemetry_agent.devices.drive_questions import (
    BEHIND,
    ENDURANCE,
    EVENTS,
    HEALTH,
    IDENTIFY,
    LIMITS,
    NOT_INSTALLED,
    REFUSED_PAUSE_S,
    SMARTCTL,
    TOOL_S_MAX,
    DriveQuestions,
    vendor_fields,
)
from daq_bench.telemetry_agent.reading.collector import SLOW_PERIOD_S, Reading, Unsupported, reading_now

ANSWER, QUERY = "answer", "query"  # texts["answer nvme0n1"], texts["query nvme0n1"]


class Smart:
    """Collector of the measurements `smart`, `smart_temperature`, `smart_ocp`, `smart_endurance`, `nvme_event` and `smart_query`."""

    name = "smart"
    pace = "slow"

    def __init__(
        self,
        period_s: float,
        root: Path = Path("/"),
        patience_s: float = PATIENCE_S,
        tool_s_max: float = TOOL_S_MAX,
    ) -> None:
        self.period_s = max(SLOW_PERIOD_S, period_s)
        self._sys_block = root / "sys/block"
        self._questions = DriveQuestions(tool_s_max)
        self._poll = DrivePoll(self._questions.ask, patience_s)
        self._hidden = DrivePoll(self._questions.ask, patience_s)  # disks behind RAID controllers
        self._scanned_s = float("-inf")
        self._behind: list[str] = []
        self._refusals_said: set[str] = set()

    def read(self) -> Reading:
        """Ask every whole disk; texts hold its answers and how it stands, as JSON."""
        if find_tool("smartctl") is None and find_tool("nvme") is None:
            raise Unsupported(NOT_INSTALLED)
        drives = self._drives()
        self._questions.forget_all_but([*drives, *self._behind])
        texts, faults, refusals = self._asked(self._poll, drives)
        if refusals:  # perhaps the volume of a controller
            self._look_behind(refusals, faults)
        more, said, refused = self._asked(self._hidden, self._behind)
        texts.update(more)
        faults += said
        refusals += refused
        if self._behind:
            found = f"asked in its place: {', '.join(self._behind)}"
            refusals = [text.replace(VOLUME, f"a controller's volume; {found}") for text in refusals]
        if not texts:
            raise Unsupported("no drive has SMART data: " + ("; ".join(refusals) or "no drive found"))
        if not any(key.startswith(ANSWER) for key in texts):
            raise OSError("no drive answers: " + "; ".join(faults))
        # A drive without health data is as it is: said once, and no fault of each sample.
        faults += [refusal for refusal in refusals if refusal not in self._refusals_said]
        self._refusals_said.update(refusals)
        return reading_now(texts, tuple(faults))

    def _asked(self, poll: DrivePoll, names: list[str]) -> tuple[dict[str, str], list[str], list[str]]:
        """(texts, faults, refusals) of these drives."""
        answers, faults = poll.sample(names)
        texts, refusals = {}, []
        for name in names:
            answer = answers.get(name)
            if answer is not None and answer.refused:
                refusals.append(f"{name}: {answer.refused}")
                continue
            if answer is not None:
                faults += answer.faults
            if answer is not None and answer.texts:
                texts[f"{ANSWER} {name}"] = json.dumps({"time_ns": answer.time_ns, "texts": dict(answer.texts)})
            state = poll.state(name, answered=answer is not None and bool(answer.texts))
            texts[f"{QUERY} {name}"] = json.dumps(state)
        return texts, faults, refusals

    def _look_behind(self, refusals: list[str], faults: list[str]) -> None:
        """Has smartctl look for disks behind controllers, as rarely as a drive that refused is asked again."""
        if time.monotonic() - self._scanned_s >= REFUSED_PAUSE_S:
            self._scanned_s = time.monotonic()
            self._behind, said = self._questions.behind_controllers(refusals)
            faults += said

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """The points of each drive that answered, and how each one stands."""
        points: list[Point] = []
        seen: set[str] = set()
        for key, text in reading.texts.items():
            kind, _, name = key.partition(" ")
            if kind == ANSWER:
                answer = json.loads(text)
                found = drive_points(name, answer["texts"], answer["time_ns"])
                serial = dict(found[0].tags).get("serial", "")
                # A disk that a controller passes through answers under both of its names.
                if not (BEHIND in name and serial in seen):
                    points += found
                seen |= {serial} - {""}
            else:
                state = DriveState(*json.loads(text))
                points.append(Point("smart_query", (("device", name),), state._asdict(), reading.time_ns))
        return points

    def _drives(self) -> list[str]:
        try:
            names = sorted(path.name for path in self._sys_block.iterdir())
        except FileNotFoundError:
            return []
        return [name for name in names if is_whole_disk(self._sys_block, name) and not name.startswith("md")]


def drive_points(name: str, texts: Mapping[str, str], time_ns: int) -> list[Point]:
    """The points of one drive's answer. The drive's own pages win over what smartctl makes of them."""
    document: dict[str, Any] = json.loads(texts.get(SMARTCTL, "{}"))
    fields = smartctl_json.health_fields(document)
    degrees, limits = smartctl_json.temperatures(document), smartctl_json.limits_of_load(document)
    identity = smartctl_json.identity(document)
    if HEALTH in texts and not nvme_pages.is_blank(page := bytes.fromhex(texts[HEALTH])):
        fields.update(nvme_pages.health_fields(page))
        degrees.update(nvme_pages.temperatures(page))
    if IDENTIFY in texts:
        found = nvme_pages.identity(bytes.fromhex(texts[IDENTIFY]))
        identity = {"serial": found.serial, "model": found.model, **identity}
        stated = {"warning_degc": found.warning_degc, "critical_degc": found.critical_degc}
        limits.update({key: value for key, value in stated.items() if value is not None})
    fields.update(nvme_pages.thermal_limits(int(texts.get(LIMITS, "0"))))
    own, ocp = vendor_fields(texts)
    fields.update(own)
    tags = _tags(name, identity)
    told: dict[str, Any] = json.loads(texts.get(EVENTS, "{}"))
    if told:
        fields["logged_events"] = told["logged"]
    points = [Point("smart", tags, fields, time_ns)]
    for sensor, value in degrees.items():
        has_limits = sensor in (nvme_pages.COMPOSITE, smartctl_json.DRIVE)
        values: dict[str, FieldValue] = {"temperature_degc": value, **(limits if has_limits else {})}
        points.append(Point("smart_temperature", (*tags, ("sensor", sensor)), values, time_ns))
    for key in sorted(key for key in texts if key.startswith(f"{ENDURANCE} ")):
        own_tags = (*tags, ("group", key.partition(" ")[2]))
        points.append(
            Point("smart_endurance", own_tags, nvme_pages.endurance_fields(bytes.fromhex(texts[key])), time_ns)
        )
    if ocp:
        points.append(Point("smart_ocp", tags, ocp, time_ns))
    for number, one in enumerate(told.get("events", [])):
        values = {"text": one["text"], "events": one["events"], "drive_time_ms": one["time_ms"]}
        values["earlier_s"] = one["earlier_ms"] / 1000
        # A nanosecond apart, so that none hides another.
        at_ns = time_ns - one["age_ms"] * 1_000_000 + number
        points.append(Point("nvme_event", (*tags, ("kind", one["kind"])), values, at_ns))
    return points


def _tags(name: str, identity: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Sorted. A serial that line protocol cannot express is left out; the device's name says which drive it is."""
    tags = {"device": name}
    for key, value in identity.items():
        try:
            check_tag(key, value)
        except PointError:
            continue
        tags[key] = value
    return tuple(sorted(tags.items()))
