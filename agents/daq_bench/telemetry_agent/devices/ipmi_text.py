"""Parses the output of ipmitool into readings: sensors, power, entries of the event log. Pure.

Text format: `ipmitool -v -c sdr elist full` (1.8.19) prints a line per sensor, without any quoting:

    Fan2,0,RPM,Lower Critical,29.2,Fan Device,Fan,...      a reading, its threshold state, its entity
    NVMe2 Temp,,,ns,15.2,Drive Backplane,Temperature,...   no reading: scanning disabled or nothing there
    PSU 2 Status,0Eh,ok,10.2,Presence detected             discrete states, which are no measurement

Only with -v does a line hold the entity, without which sensors of one name cannot be told apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from daq_bench.candidate_kit import plausible
from daq_bench.candidate_kit.inlet_names import is_margin
from daq_bench.candidate_kit.ipmi_units import PERCENT, PERCENT_FLAG, numbered, unit_of
from daq_bench.candidate_kit.tools import shown
from daq_bench.telemetry_agent.base.point import PointError, check_tag

# ipmitool's unit -> (kind, field)
UNITS = {
    "RPM": ("fan", "speed_rpm"),
    "degrees C": ("temperature", "temperature_degc"),
    "Watts": ("power", "power_w"),
    "Volts": ("voltage", "voltage_v"),
    "Amps": ("current", "current_a"),
}
# Units of a temperature -> (what is taken off, how many make a kelvin). IPMI 2.0, table 43-15.
SCALES = {"degrees F": (32.0, 1.8), "degrees K": (273.15, 1.0)}
FAN_ENTITIES = ("29", "30")  # IPMI 2.0, table 43-13: fan, cooling unit
SEVERITIES = {"ok": 0, "non-critical": 1, "critical": 2, "non-recoverable": 3}

ENTITY = r"(?P<entity>\d+\.\d+)"
STATE = r"(?P<state>ok|(?:Lower|Upper) (?:Non-Critical|Critical|Non-Recoverable))"
# The name comes first and may hold commas, so it ends where the rest of the line makes sense.
READING_LINE = re.compile(rf"(?P<name>.+?),(?P<value>-?\d+(?:\.\d+)?),(?P<unit>[^,]+),{STATE},{ENTITY},.*")
OTHER_LINE = re.compile(rf"(?P<name>.+?),(?:,,ns|[0-9A-F]{{2}}h,(?:ok|ns)),{ENTITY},.*")

BOUNDS = re.compile(r".*,(?P<least>-?\d+\.\d+),(?P<highest>-?\d+\.\d+)")
ALL_ONES = 255  # of a sensor's eight bits

# The answer of a BMC without DCMI: completion code C1h, "invalid command".
NO_DCMI = "(c1)"
WATTS_LINE = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")
STATE_LINE = re.compile(r"Power reading state is:\s+(activated|deactivated)")
# Debian's 1.8.19 prints no line break after the time.
TIME_LINE = re.compile(r"IPMI timestamp:\s+(\S.*?)\s*(?:Sampling period:|$)", re.MULTILINE)
ALL_ONES_W = 0xFFFF  # DCMI's field has 16 bits; a BMC that cannot read the sensor sets all of them
# Also as BMCs print it whose clock stands at its beginning, and with it each of their times (openbmc/openbmc#3257).
TIME_UNKNOWN = re.compile(r"Unspecified|.*\b1970\b.*|01/01/70 .*")
NO_ENTRIES = "SEL has no entries"
ENTRIES_LINE = re.compile(r"^Entries\s*:\s*(\d+)\s*$", re.MULTILINE)
ADDED_LINE = re.compile(r"^Last Add Time\s*:\s*(\S.*?)\s*\n", re.MULTILINE)
LOG_LINE = re.compile(r"(?P<record>[0-9a-fA-F]{1,4}),(?P<date>[^,]*),(?P<time>[^,]*),(?P<rest>[^,].*)")
STAMP = re.compile(r"(\d\d)/(\d\d)/(\d\d(?:\d\d)?) (\d\d):(\d\d):(\d\d)")
SINCE_START = re.compile(
    r"Pre-Init (?P<seconds>\d{1,10})|S\+ (?:70/(?P<day>\d{3}) )?(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
)
# IPMI 2.0, chapter 43: identifier (2 B), version, type, length of what follows
RECORD_HEADER_BYTES, FULL_RECORD = 5, 0x01


class SensorReading(NamedTuple):
    """One sensor with a reading. `sensor` is unique within its entity."""

    sensor: str
    entity: str
    unit: str
    value: float
    state: str


class PowerReading(NamedTuple):
    """DCMI's power; `time` is the BMC's own text, empty when it has none."""

    watts: float
    time: str


def parse_sensors(text: str) -> tuple[list[SensorReading], list[str]]:
    """The sensors that have a reading, and a sentence for every line in an unknown form."""
    found, faults = [], []
    seen: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        if not line.strip():
            continue
        match = READING_LINE.fullmatch(line) or OTHER_LINE.fullmatch(line)
        if match is None or not _is_sound(match):
            faults.append(f"ipmitool sdr: line not understood: {shown(line)}")
            continue
        name, entity = match["name"].strip(), match["entity"]
        # Silent sensors count too: one that falls silent must not pass its name on to another.
        seen[name, entity] += 1
        if match.re is READING_LINE:
            sensor = numbered(name, seen[name, entity])
            reading = SensorReading(sensor, entity, *_unit_and_value(match), match["state"].lower())
            if fault := _temperature_fault(name, reading) or _clipped(match):
                faults.append(f"ipmitool sdr: {fault}")
            else:
                found.append(reading)
    return found, faults


def _unit_and_value(match: re.Match[str]) -> tuple[str, float]:
    """A temperature is in degrees C."""
    value = float(match["value"])
    unit = unit_of(match["unit"], value, match["name"])
    if unit not in SCALES:
        return unit, value
    zero, step = SCALES[unit]
    return "degrees C", round(
        (value - zero) / step, 3
    ) if value else value  # 0 is a sensor that was not read, in each of them


def _temperature_fault(name: str, reading: SensorReading) -> str:
    """Why this is no temperature; "" where it may be one, and for a margin in kelvin to a limit, which may be 0."""
    if reading.unit != "degrees C" or is_margin(name, reading.value, reading.entity):
        return ""
    try:
        plausible.degrees_of_a_running_part(reading.value, name)
    except ValueError as error:
        return str(error)
    return ""


def _clipped(match: re.Match[str]) -> str:
    """Why this is no speed and no power: all of its eight bits are ones, which states that nothing was read, or that more than can be said.

    The line ends with the least and the highest value of the sensor, which is 255 steps of up to three digits where its bits are ones."""
    unit, value = match["unit"].removeprefix(PERCENT_FLAG), float(match["value"])
    bounds = BOUNDS.fullmatch(match[0])
    if (
        unit not in ("RPM", "Watts")
        or bounds is None
        or float(bounds["highest"]) != value
        or float(bounds["least"]) != 0
    ):
        return ""
    step = value / ALL_ONES
    if value == 0 or abs(float(f"{step:.3g}") - step) > 1e-6 * step:
        return ""
    return f"{match['name'].strip()} is {value:g} {unit}, which is the sensor's highest value and no reading"


def _is_sound(match: re.Match[str]) -> bool:
    """Can the name be a tag, and the value a number? (line protocol knows no backslash at a name's end)"""
    try:
        check_tag("sensor", match["name"].strip())
    except PointError:
        return False
    return match.re is not READING_LINE or math.isfinite(float(match["value"]))


def kind_and_field(reading: SensorReading) -> tuple[str, str] | None:
    """Returns the quantity that the sensor measures and the field that holds it; None for one that is not collected, as margins are not."""
    if reading.unit == "degrees C" and is_margin(reading.sensor, reading.value, reading.entity):
        return None
    if reading.unit == PERCENT:  # HPE's fans; elsewhere it is a load or a margin
        fan = reading.entity.split(".")[0] in FAN_ENTITIES or "fan" in reading.sensor.lower()
        return ("fan", "duty_percent") if fan else None
    return UNITS.get(reading.unit)


def parse_power(text: str) -> PowerReading | None:
    """DCMI's answer, or None while the BMC says that it measures no power. Raises ValueError on anything else.

    OpenBMC says `deactivated` beside watts that it measures (openbmc/openbmc#3257); a server that answers draws
    more than 0 W, whatever the state is."""
    watts, state, time = WATTS_LINE.search(text), STATE_LINE.search(text), TIME_LINE.search(text)
    if watts is None or state is None:
        raise ValueError(f"ipmitool dcmi power reading: not understood: {shown(text)}")
    if state[1] == "deactivated" and float(watts[1]) == 0:
        return None
    if float(watts[1]) == 0:
        raise ValueError(
            "ipmitool dcmi power reading: 0 W while it measures, which is no reading of a server that runs"
        )
    if int(watts[1][:9]) >= ALL_ONES_W:
        raise ValueError(
            f"ipmitool dcmi power reading: {watts[1][:9]} W, which is the field's highest value and no reading"
        )
    return PowerReading(float(watts[1]), time[1] if time and not TIME_UNKNOWN.fullmatch(time[1]) else "")


class LogState(NamedTuple):
    """The event log as `sel info` describes it; `last_added` is the BMC's own text."""

    entries: int
    last_added: str


class LogEntry(NamedTuple):
    """One entry of the event log. `asserted` is None where the BMC does not say; `time` is the BMC's own text."""

    record: int
    time: str
    sensor: str
    text: str
    asserted: bool | None


def parse_log_state(text: str) -> LogState:
    """Raises ValueError on anything else than `sel info`."""
    entries, added = ENTRIES_LINE.search(text), ADDED_LINE.search(text)
    if entries is None or added is None:
        raise ValueError(f"ipmitool sel info: not understood: {shown(text)}")
    return LogState(int(entries[1]), added[1])


def added_entries(before: LogState, now: LogState) -> int:
    """Says how many entries are new. A log that was emptied, or is full and writes over its oldest, has one at least."""
    if now == before or now.entries == 0:
        return 0
    return max(1, now.entries - before.entries)


def parse_log(text: str) -> tuple[list[LogEntry], list[str]]:
    """Entries of `-c sel elist`, oldest first, and a sentence for each line of another form. Raises ValueError for one that is torn."""
    if text and not text.endswith("\n"):
        raise ValueError(f"ipmitool sel elist: cut off: {shown(text[-60:])}")
    entries, faults = [], []
    if text.strip() == NO_ENTRIES:  # it is listed only when it had new ones
        return [], ["ipmitool sel elist: the log has no entries any more: those that were new are lost"]
    for line in filter(str.strip, text.splitlines()):
        try:
            entries.append(_log_entry(line))
        except ValueError as error:
            faults.append(str(error))
    return entries, faults


def bmc_seconds(text: str) -> float | None:
    """A time as ipmitool's versions print it, in seconds of the BMC's own clock; None for no such time.

    05/27/2026 or 05/27/26 with the time of day; a BMC that nobody told the time says "S+ 00:30:20", and its entries "Pre-Init 0000001820".
    Only a difference of two means something: the zone is whatever ipmitool took."""
    said = text.strip()
    stamp, since = STAMP.match(said), SINCE_START.fullmatch(said)
    if since is not None:
        if since["seconds"]:
            return float(since["seconds"])
        days = int(since["day"] or 1) - 1
        return days * 86400.0 + sum(int(since[name]) * unit for name, unit in (("h", 3600), ("m", 60), ("s", 1)))
    if stamp is None:
        return None
    month, day, year, hour, minute, second = (int(number) for number in stamp.groups())
    year += 2000 if year < 100 else 0
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


def _log_entry(line: str) -> LogEntry:
    match = LOG_LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"ipmitool sel elist: line not understood: {shown(line)}")
    words: Sequence[str] = [word.strip() for word in match["rest"].split(",")]
    asserted = True if "Asserted" in words else False if "Deasserted" in words else None
    time = f"{match['date'].strip()} {match['time'].strip()}".strip()
    return LogEntry(int(match["record"], 16), time, words[0] or "unnamed", ", ".join(filter(None, words)), asserted)


def full_records(dump: bytes) -> int:
    """Sensors with values among dumped sensor data records. Raises ValueError for a dump that is torn."""
    found, at = 0, 0
    while at < len(dump):
        body = dump[at + 4] if at + RECORD_HEADER_BYTES <= len(dump) else None
        if body is None or at + RECORD_HEADER_BYTES + body > len(dump):
            raise ValueError(f"ipmitool sdr dump: a record of {len(dump) - at} B is cut off")
        found += dump[at + 3] == FULL_RECORD
        at += RECORD_HEADER_BYTES + body
    return found
