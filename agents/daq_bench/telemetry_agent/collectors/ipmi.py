"""Fans, temperatures, power, voltages and currents as the server's BMC reports them, and its log of events, through `ipmitool`.

Promise: only reads; every call of ipmitool is bounded; a sensor without a present reading gives no point, and
no value is ever repeated; a BMC that does not answer is a failed sample, and the next one tries afresh; an answer that
is cut off is one, too. The threshold state is the BMC's own judgement. Its limits are not reported: the sensor data
record holds those of the factory, and not those that were set since.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from daq_bench.candidate_kit.tools import Answer, find_tool, run_tool, shown
from daq_bench.telemetry_agent.base.point import FieldValue, Point, PointError, check_tag
from daq_bench.telemetry_agent.devices.ipmi_text import (
    NO_DCMI,
    SEVERITIES,
    LogState,
    added_entries,
    bmc_seconds,
    full_records,
    kind_and_field,
    parse_log,
    parse_log_state,
    parse_power,
    parse_sensors,
)
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, reading_now

PERIOD_S_MIN = 5.0
# Bounds against a BMC that hangs; one with a hundred sensors and much to do takes 20 s.
READ_TIMEOUT_S = 30.0
POWER_TIMEOUT_S = 20.0
LOG_TIMEOUT_S = 30.0
DUMP_TIMEOUT_S = 90.0
LOG_PERIOD_S = 30.0
LOG_ENTRIES_MAX = 32
DEVICES = ("ipmi0", "ipmi/0", "ipmidev/0")  # what ipmitool itself tries
IN_BAND = ("-I", "open", "-d", "0")
PASSWORD_VARIABLE = "IPMI_PASSWORD"

CLOCK_ERROR_S = 2.0  # a BMC counts whole seconds, and is asked a moment later
SENSORS, POWER, LOG = "sensors", "power", "log"
POWER_UNREAD = "power unread"  # why, where the BMC has DCMI and its power was not read
# The BMC's time after the log was read, and the seconds up to then since the reading before began.
LOG_NOW, LOG_SINCE = "log now", "log since"


def lan_interface(host: str, port: int, user: str, cipher_suite: int) -> tuple[str, ...]:
    """ipmitool's arguments for a BMC on the network. The password comes from the environment, never from here."""
    address = ("-I", "lanplus", "-H", host, "-p", str(port), "-U", user, "-C", str(cipher_suite))
    return (*address, "-N", "2", "-R", "3", "-E")


class Ipmi:
    """Collector of the measurements `ipmi_sensor`, `ipmi_power` and `ipmi_event`.

    `interface` are ipmitool's arguments that say which BMC to ask (`lan_interface`); without them it is this machine's
    own, in band. Over LAN the collector's name is `ipmi_lan`."""

    name = "ipmi"
    pace = "slow"

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
        if interface:
            self.name = "ipmi_lan"
        self._timeout_s = timeout_s
        # The sensor data records, read once: per sensor they cost several requests more than its value does.
        self._directory: tempfile.TemporaryDirectory[str] | None = None  # removed when the agent ends
        self._records = 0  # sensors with values among them; 0: not read yet
        self._lines = 0  # sensors that were listed at most
        self._answered: set[str] = set()
        self._has_measured = False  # power, at least once
        self._absent: set[str] = set()
        self._log_asked_s = float("-inf")
        self._log_state: LogState | None = None
        self._log_read_s = self._log_before_s = float("-inf")  # begin of the log's last reading, and of the one before

    def read(self) -> Reading:
        """Ask for every sensor, then for DCMI's power and the log of events; those alone may fail, as faults."""
        program = find_tool("ipmitool")
        if program is None:
            raise Unsupported("ipmitool is not installed (package ipmitool)")
        command = [program, *(self._interface or self._in_band())]
        text, faults = self._read_sensors(command)
        texts = {SENSORS: text}
        for key, read in ((POWER, self._read_power), (LOG, self._read_log)):
            try:
                texts[key] = read(command)
            except (OSError, ValueError) as error:
                faults.append(str(error))
                if key == POWER and POWER not in self._absent:
                    texts[POWER_UNREAD] = shown(str(error))
        if texts.get(LOG):
            faults += parse_log(texts[LOG])[1]
            faults += self._date_log(command, texts)
        return reading_now(texts, tuple(faults))

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """A point per sensor that has a reading, DCMI's power unless it is the one seen before, the new events.

        Where the power was not read, the point says so: else the reading before it would seem to hold."""
        points = list(_sensor_points(reading))
        power = parse_power(reading.texts[POWER]) if reading.texts.get(POWER) else None
        before = parse_power(previous.texts[POWER]) if previous and previous.texts.get(POWER) else None
        # Same value of the same time: the BMC measures more slowly than we ask.
        if power is not None and not (power.time and power == before):
            points.append(Point("ipmi_power", (), {"power_w": power.watts}, reading.time_ns))
        if reading.texts.get(POWER_UNREAD):
            points.append(Point("ipmi_power", (), {"unread": reading.texts[POWER_UNREAD]}, reading.time_ns))
        return points + list(_event_points(reading))

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
        readings, faults = parse_sensors(done.text)
        if not readings:
            self._records = 0  # a BMC that comes back from a restart may have others
            reason = done.reason if done.status else "none has a value"
            raise OSError(f"ipmitool sdr: no sensor can be read: {'; '.join([reason, *faults])}")
        lines = done.text.count("\n")
        if done.status:
            faults.append(f"ipmitool sdr: {done.reason}")
        elif not done.text.endswith("\n") or lines < self._lines:
            # Fewer sensors would look like sensors that fell silent. Should they be gone, the records tell so next time.
            expected, self._records = self._lines or self._records, 0
            raise OSError(f"ipmitool sdr: cut off after {lines} of {expected} sensors: {shown(done.text[-60:])}")
        elif lines < self._records and lines > self._lines:
            faults.append(f"ipmitool sdr: {lines} sensors listed, the BMC describes {self._records}")
        self._lines = max(lines, self._lines)
        return done.text, faults

    def _dumped_records(self, command: list[str]) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="telemetry_agent-ipmi-")
        path = Path(self._directory.name) / "records"
        if not self._records:
            path.unlink(missing_ok=True)
            done = _run(command, ("sdr", "dump", str(path)), max(DUMP_TIMEOUT_S, self._timeout_s))
            if done.status or not path.exists():
                raise OSError(f"ipmitool sdr dump: {done.reason}")
            self._records, self._lines = full_records(path.read_bytes()), 0
            if not self._records:
                raise OSError("ipmitool sdr dump: the BMC describes no sensor that has a value")
        return str(path)

    def _read_power(self, command: list[str]) -> str:
        """DCMI's answer, "" from a BMC that has no DCMI."""
        done = self._ask(command, POWER, ("dcmi", "power", "reading"), POWER_TIMEOUT_S)
        if done is None:
            return ""
        measures = parse_power(done.text) is not None
        if self._has_measured and not measures:
            raise ValueError("ipmitool dcmi power reading: the BMC does not measure power any more")
        self._has_measured = measures
        return done.text

    def _read_log(self, command: list[str]) -> str:
        """The entries that were added since the last time, without those from before the first time."""
        now_s = time.monotonic()
        if now_s - self._log_asked_s < LOG_PERIOD_S:
            return ""
        self._log_asked_s = now_s
        done = self._ask(command, LOG, ("sel", "info"), LOG_TIMEOUT_S)
        if done is None:
            return ""
        state = parse_log_state(done.text)
        added = added_entries(self._log_state, state) if self._log_state else 0
        text = ""
        if added:
            # Listing reads the whole log, entry by entry: only when there is something new.
            arguments = ("-c", "-S", self._dumped_records(command), "sel", "elist", "last")
            listed = _run(command, (*arguments, str(min(added, LOG_ENTRIES_MAX))), LOG_TIMEOUT_S)
            if listed.status:
                raise OSError(f"ipmitool sel elist: {listed.reason}")
            parse_log(listed.text)
            text = listed.text
        self._log_state = state
        self._log_before_s, self._log_read_s = self._log_read_s, now_s
        return text

    def _date_log(self, command: list[str], texts: dict[str, str]) -> list[str]:
        """Adds what tells how old the new entries are, by the BMC's own clock."""
        try:
            done = _run(command, ("sel", "time", "get"), min(LOG_TIMEOUT_S, self._timeout_s))
        except OSError as error:
            return [str(error)]
        finally:  # a slow BMC takes seconds for the entries, and for its time
            texts[LOG_SINCE] = str(time.monotonic() - self._log_before_s)
        if done.status or bmc_seconds(done.text) is None:
            return [f"ipmitool sel time get: {done.reason if done.status else 'not understood: ' + shown(done.text)}"]
        texts[LOG_NOW] = done.text
        return []

    def _ask(self, command: list[str], what: str, arguments: tuple[str, ...], limit_s: float) -> Answer | None:
        """The answer, or None from a BMC that does not know the command: that is said once and not asked again."""
        if what in self._absent:
            return None
        done = _run(command, arguments, min(limit_s, self._timeout_s))
        if done.status:
            if what not in self._answered and done.reason.endswith(NO_DCMI):
                self._absent.add(what)
            note = "; not asked again" if what in self._absent else ""
            raise OSError(f"ipmitool {' '.join(arguments)}: {done.reason}{note}")
        self._answered.add(what)
        return done


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


def _event_points(reading: Reading) -> Iterator[Point]:
    """At their age by the BMC's own clock; where no age fits, at the reading's time. A nanosecond apart, so that none hides
    another."""
    now_s = bmc_seconds(reading.texts.get(LOG_NOW, ""))
    since_s = float(reading.texts.get(LOG_SINCE, "0"))
    for number, entry in enumerate(parse_log(reading.texts.get(LOG, ""))[0]):
        fields: dict[str, FieldValue] = {"text": entry.text, "record": entry.record, "bmc_time": entry.time}
        written_s = bmc_seconds(entry.time)
        age_s = now_s - written_s if now_s is not None and written_s is not None else None
        dated = age_s is not None and -CLOCK_ERROR_S <= age_s <= since_s + CLOCK_ERROR_S
        if LOG_SINCE in reading.texts:
            fields["earlier_s"] = CLOCK_ERROR_S if dated else since_s
        time_ns = reading.time_ns - (int(min(max(age_s, 0.0), since_s) * 1e9) if dated and age_s is not None else 0)
        if entry.asserted is not None:
            fields["asserted"] = entry.asserted
        try:
            check_tag("sensor", entry.sensor)
            tags = (("sensor", entry.sensor),)
        except PointError:
            tags = (("sensor", "unnamed"),)
        yield Point("ipmi_event", tags, fields, time_ns + number)


def _run(command: list[str], arguments: Sequence[str], timeout_s: float) -> Answer:
    # Spoken of without the command line, which may name users and hosts. Its exit status is not 0 also when one
    # sensor of many could not be read.
    words = " ".join(word for word in arguments if word.isalpha())
    return run_tool([*command, *arguments], timeout_s, f"ipmitool {words}")
