"""Fans, temperatures, power, voltages and currents as the server's BMC reports them, through `ipmitool`.

Promise: only reads; every call of ipmitool is bounded; a sensor without a present reading gives no point, and
no value is ever repeated; a BMC that does not answer is a failed sample, and the next one tries afresh. The
threshold state is the BMC's own judgement. Its limits are not reported: the sensor data record holds those of
the factory, and not those that were set since.

Text format: `ipmitool -v -c sdr elist full` (1.8.19) prints a line per sensor, without any quoting:

    Fan2,0,RPM,Lower Critical,29.2,Fan Device,Fan,...      a reading, its threshold state, its entity
    NVMe2 Temp,,,ns,15.2,Drive Backplane,Temperature,...   no reading: scanning disabled or nothing there
    PSU 2 Status,0Eh,ok,10.2,Presence detected             discrete states, which are no measurement

Only with -v does a line hold the entity, without which sensors of one name cannot be told apart.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from telemetry_agent.collector import Reading, Unsupported, reading_now
from telemetry_agent.point import FieldValue, Point

PERIOD_S_MIN = 5.0
# Bounds against a BMC that hangs; a hundred sensors read in band take some seconds.
READ_TIMEOUT_S = 10.0
POWER_TIMEOUT_S = 5.0
DUMP_TIMEOUT_S = 60.0
DEVICES = ("ipmi0", "ipmi/0", "ipmidev/0")  # what ipmitool itself tries
IN_BAND = ("-I", "open", "-d", "0")

SENSORS, POWER = "sensors", "power"
# ipmitool's unit -> (kind, field)
UNITS = {
    "RPM": ("fan", "speed_rpm"),
    "degrees C": ("temperature", "temperature_degc"),
    "Watts": ("power", "power_w"),
    "Volts": ("voltage", "voltage_v"),
    "Amps": ("current", "current_a"),
}
FAN_ENTITIES = ("29", "30")  # IPMI 2.0, table 43-13: fan, cooling unit
SEVERITIES = {"ok": 0, "non-critical": 1, "critical": 2, "non-recoverable": 3}

ENTITY = r"(?P<entity>\d+\.\d+)"
STATE = r"(?P<state>ok|(?:Lower|Upper) (?:Non-Critical|Critical|Non-Recoverable))"
# The name comes first and may hold commas, so it ends where the rest of the line makes sense.
READING_LINE = re.compile(rf"(?P<name>.+?),(?P<value>-?\d+(?:\.\d+)?),(?P<unit>[^,]+),{STATE},{ENTITY},.*")
OTHER_LINE = re.compile(rf"(?P<name>.+?),(?:,,ns|[0-9A-F]{{2}}h,(?:ok|ns)),{ENTITY},.*")

# What a BMC without DCMI answers: completion code C1h, "invalid command".
NO_DCMI = "(c1)"
WATTS_LINE = re.compile(r"Instantaneous power reading:\s+(\d+) Watts")
STATE_LINE = re.compile(r"Power reading state is:\s+(activated|deactivated)")
# Debian's 1.8.19 prints no line break after the time.
TIME_LINE = re.compile(r"IPMI timestamp:\s+(\S.*?)\s*(?:Sampling period:|$)", re.MULTILINE)
TIME_UNKNOWN = "Unspecified"


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
    """The sensors that have a reading, and a sentence for every line that is none of the known forms."""
    found, faults = [], []
    seen: Counter[tuple[str, str]] = Counter()
    for line in text.splitlines():
        if not line.strip():
            continue
        match = READING_LINE.fullmatch(line) or OTHER_LINE.fullmatch(line)
        if match is None:
            faults.append(f"ipmitool sdr: line not understood: {line[:80]!r}")
            continue
        name, entity = match["name"].strip(), match["entity"]
        # Silent sensors count too: one that falls silent must not pass its name on to another.
        seen[name, entity] += 1
        if match.re is READING_LINE:
            number = seen[name, entity]
            sensor = name if number == 1 else f"{name} #{number}"
            found.append(SensorReading(sensor, entity, match["unit"], float(match["value"]), match["state"].lower()))
    return found, faults


def kind_and_field(reading: SensorReading) -> tuple[str, str] | None:
    """What the sensor measures and the field that holds it; None for a quantity that is not collected."""
    if reading.unit == "percent":  # HPE's fans; elsewhere it is a load or a margin
        fan = reading.entity.split(".")[0] in FAN_ENTITIES or "fan" in reading.sensor.lower()
        return ("fan", "duty_percent") if fan else None
    return UNITS.get(reading.unit)


def parse_power(text: str) -> PowerReading | None:
    """DCMI's answer, or None while the BMC says that it measures no power. Raises ValueError on anything else."""
    watts, state, time = WATTS_LINE.search(text), STATE_LINE.search(text), TIME_LINE.search(text)
    if watts is None or state is None:
        raise ValueError(f"ipmitool dcmi power reading: not understood: {text.strip()[:80]!r}")
    if state[1] == "deactivated":
        return None
    return PowerReading(float(watts[1]), time[1] if time and time[1] != TIME_UNKNOWN else "")


class Ipmi:
    """Collector of the measurements `ipmi_sensor` and `ipmi_power`.

    `interface` are ipmitool's arguments that say which BMC to ask, such as `-I lanplus -H ... -U ... -E` (the
    password comes from the environment); without them it is this machine's own, in band.
    """

    name = "ipmi"

    def __init__(
        self,
        period_s: float,
        root: Path = Path("/"),
        interface: Sequence[str] = (),
        timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._devices = [root / "dev" / name for name in DEVICES]
        self._interface = tuple(interface)
        self._timeout_s = timeout_s
        # The sensor data records, read once: per sensor they cost several requests more than its value does.
        self._directory: tempfile.TemporaryDirectory[str] | None = None  # removed when the agent ends
        self._dumped = False
        self._power_answered = False
        self._power_absent = False

    def read(self) -> Reading:
        """Ask for every sensor, then for DCMI's power; that one alone may fail, as a fault."""
        program = shutil.which("ipmitool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if program is None:
            raise Unsupported("ipmitool is not installed (package ipmitool)")
        command = [program, *(self._interface or self._in_band())]
        text, faults = self._read_sensors(command)
        texts = {SENSORS: text}
        try:
            texts[POWER] = self._read_power(command)
        except (OSError, ValueError) as error:
            faults.append(str(error))
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per sensor that has a reading, and DCMI's power unless it is the one seen before."""
        points = list(_sensor_points(reading))
        power = parse_power(reading.texts[POWER]) if reading.texts.get(POWER) else None
        before = parse_power(previous.texts[POWER]) if previous and previous.texts.get(POWER) else None
        # Same value of the same time: the BMC measures more slowly than we ask.
        if power is not None and not (power.time and power == before):
            points.append(Point("ipmi_power", (), {"power_w": power.watts}, reading.time_ns))
        return points

    def _in_band(self) -> tuple[str, ...]:
        device = next((path for path in self._devices if path.exists()), None)
        if device is None:
            raise Unsupported(f"no {self._devices[0]}: no BMC, or ipmi_si and ipmi_devintf are not loaded")
        if not os.access(device, os.R_OK | os.W_OK):
            raise Unsupported(f"{device} is not open to this user: run the agent as root")
        return IN_BAND

    def _read_sensors(self, command: list[str]) -> tuple[str, list[str]]:
        records = self._dumped_records(command)
        done = _run(command, ("-v", "-c", "-S", records, "sdr", "elist", "full"), self._timeout_s)
        readings, faults = parse_sensors(done.stdout)
        if not readings:
            self._dumped = False  # a BMC that comes back from a restart may have others
            reason = _reason(done) if done.returncode else "none has a value"
            raise OSError(f"ipmitool sdr: no sensor can be read: {'; '.join([reason, *faults])}")
        if done.returncode:
            faults.append(f"ipmitool sdr: {_reason(done)}")
        return done.stdout, faults

    def _dumped_records(self, command: list[str]) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="telemetry_agent-ipmi-")
        path = f"{self._directory.name}/records"
        if not self._dumped:
            done = _run(command, ("sdr", "dump", path), max(DUMP_TIMEOUT_S, self._timeout_s))
            if done.returncode:
                raise OSError(f"ipmitool sdr dump: {_reason(done)}")
            self._dumped = True
        return path

    def _read_power(self, command: list[str]) -> str:
        """DCMI's answer, "" from a BMC that has no DCMI."""
        if self._power_absent:
            return ""
        done = _run(command, ("dcmi", "power", "reading"), min(POWER_TIMEOUT_S, self._timeout_s))
        if done.returncode:
            reason = _reason(done)
            self._power_absent = not self._power_answered and reason.endswith(NO_DCMI)
            note = "; not asked again" if self._power_absent else ""
            raise OSError(f"ipmitool dcmi power reading: {reason}{note}")
        parse_power(done.stdout)
        self._power_answered = True
        return done.stdout


def _sensor_points(reading: Reading) -> Iterator[Point]:
    for item in parse_sensors(reading.texts[SENSORS])[0]:
        measured = kind_and_field(item)
        if measured is None:
            continue
        kind, field = measured
        tags = (("entity", item.entity), ("kind", kind), ("sensor", item.sensor))
        severity = SEVERITIES[item.state.split(" ")[-1]]
        fields: dict[str, FieldValue] = {field: item.value, "state": item.state, "severity": severity}
        yield Point("ipmi_sensor", tags, fields, reading.time_ns)


def _run(command: list[str], arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,  # it would ask a terminal for a password that is not given
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            env={**os.environ, "LC_ALL": "C"},
            check=False,  # not 0 also when one sensor of many could not be read
        )
    except subprocess.TimeoutExpired:
        # Without the command line, which may name users and hosts.
        words = " ".join(word for word in arguments if word.isalpha())
        raise TimeoutError(f"ipmitool {words}: no answer within {timeout_s:g} s") from None


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """ipmitool's last words, which are the cause."""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1].strip() if lines else f"exit status {done.returncode}"
