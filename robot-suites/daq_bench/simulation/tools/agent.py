"""The telemetry agent on the modelled server: the texts that its collectors would have read, through the agent's own parsers and encoder.

Once a second of the model it samples what is due, and at the end it leaves points.lp, cursor.json and summary.json."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.documents.struct import utc_text
from daq_bench.simulation.physics.server import CPUS, STUCK, Server
from daq_bench.simulation.tools import ipmitool, smartctl
from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.collectors.block_device import DISK_KEY, BlockDevice
from daq_bench.telemetry_agent.collectors.hardware.kernel_log import GAP, NAMES, RECORDS, KernelLog
from daq_bench.telemetry_agent.collectors.ipmi import POWER, SENSORS, Ipmi
from daq_bench.telemetry_agent.collectors.processes import CPUS as NUMBER_OF_CPUS
from daq_bench.telemetry_agent.collectors.processes import OWN, Processes
from daq_bench.telemetry_agent.collectors.processor.cpu import STAT, Cpu
from daq_bench.telemetry_agent.collectors.smart import drive_points
from daq_bench.telemetry_agent.collectors.temperature import degrees_celsius
from daq_bench.telemetry_agent.collectors.workload import Workload
from daq_bench.telemetry_agent.devices.drive_questions import HEALTH, SMARTCTL
from daq_bench.telemetry_agent.reading.collector import Reading
from daq_bench.telemetry_agent.summary import FINISHED, point_counts

SECTOR_BYTES = 512
STUCK_DEGC = 38
PUSH_S = 5
BULK_S = 4  # between samples while a target of the market is preconditioned, whose hours have no other shape than the drives'
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
AGENT = 700  # number of its process
SERVICES = (
    (1, "systemd", 0.002),
    (812, "sshd", 0.001),
    (841, "rsyslogd", 0.003),
)  # of any server, and CPUs that each takes
ELSEWHERE = "nvme31n1"  # a drive that is no part of the target
Texts = Mapping[str, str]


@dataclass
class Sampled:
    """One collector's account. `take` gives the points of a sample; what it raises is a sample that failed."""

    name: str
    period_s: float
    take: Callable[[], list[Point]]
    began_s: float
    expected: int = 0
    collected: int = 0
    points: int = 0
    faults: int = 0
    detail: str = ""
    last_s: float = 0.0
    longest_gap_s: float = 0.0

    def __post_init__(self) -> None:
        self.last_s = self.began_s

    def sample(self, now_s: float, silent: bool) -> list[Point]:
        self.expected += 1
        if silent:
            return []
        try:
            made = self.take()
        except (OSError, ValueError) as error:
            self.faults, self.detail = self.faults + 1, str(error)[:500]
            return []
        self.longest_gap_s = max(self.longest_gap_s, now_s - self.last_s)
        self.collected, self.last_s, self.points = self.collected + 1, now_s, self.points + len(made)
        return made

    def summary(self, now_s: float) -> dict[str, Any]:
        return {
            "name": self.name,
            "period_s": self.period_s,
            "status": "ok" if self.collected else "failing",
            "detail": self.detail,
            "expected_samples": self.expected,
            "collected_samples": self.collected,
            "missed_samples": self.expected - self.collected,
            "longest_gap_s": round(max(self.longest_gap_s, now_s - self.last_s), 6),
            "points": self.points,
            "faults": self.faults,
            "duration_s_mean": 0.002,
            "duration_s_max": 0.01,
        }


class SimulatedAgent:
    """`spool`: the bundle's folder of telemetry. From `start` on it watches the server."""

    def __init__(self, server: Server, spool: Path, tags: Mapping[str, str], workload_file: Path) -> None:
        self.server, self.spool, self.tags, self.workload_file = server, spool, dict(tags), workload_file
        self._encode = Encoder(tags).encode
        self._lines: list[str] = []
        self._counts: Counter[str] = Counter()
        self._steps: list[dict[str, Any]] = []
        self._offset_s = server.clock_offset_s
        self._before: dict[str, Reading] = {}
        self._block, self._ipmi, self._kernel = BlockDevice(1.0), Ipmi(5.0), KernelLog(1.0)
        self._cpu, self._process = Cpu(1.0), Processes(2.0)
        self._kernel_said: set[str] = set()
        self._pushed = 0  # lines that stand in the spool already
        self.kept = 0  # points in the spool

    def start(self) -> None:
        self._began_s = self.server.now_s
        takes: list[tuple[str, float, Callable[[], list[Point]]]] = [
            ("block_device", 1.0, self._disks),
            ("temperature", 1.0, self._temperatures),
            ("kernel_log", 1.0, self._kernel_log),
            ("cpu", 1.0, self._cpus),
            ("process", 2.0, self._processes),
            ("ipmi", 5.0, self._bmc),
            ("smart", 10.0, self._smart),
        ]
        self._sampled = [Sampled(name, period, take, self._began_s) for name, period, take in takes]
        self._tick = 0
        self.server.watcher = self.sample

    def sample(self) -> None:
        server = self.server
        self._tick += 1
        silent = False
        for hazard in server.active("agent_silent"):
            server.note(hazard.kind)
            silent = True
        if server.clock_offset_s != self._offset_s:
            step = server.clock_offset_s - self._offset_s
            self._steps.append({"utc": _utc(server.clock_s), "step_s": step})
            self._offset_s = server.clock_offset_s
        for one in self._sampled:
            if self._tick % max(int(one.period_s), BULK_S * server.in_bulk) == 0:
                self._put(one.sample(server.now_s, silent))
        if self._tick % PUSH_S == 0:
            self._push()

    def _push(self) -> None:
        """Adds to the spool what is new: a workload may look at it while it grows."""
        with (self.spool / "points.lp").open("a", encoding="utf-8") as file:
            file.write("".join(self._lines[self._pushed :]))
        self._pushed = len(self._lines)

    def _put(self, points: list[Point]) -> None:
        for point in points:
            self._lines.append(self._encode(point))
            self._counts[point.measurement] += 1

    def _reading(self, name: str, texts: Texts) -> tuple[Reading, Reading | None]:
        now = Reading(int(self.server.clock_s * 1e9), self.server.now_s, texts)
        before = self._before.get(name)
        self._before[name] = now
        return now, before

    def _disks(self) -> list[Point]:
        server = self.server
        is_array = len(server.group.drives) > 1
        rows = [(server.array_name, server.array_written, server.array_read, "")] if is_array else []
        rows += [
            (one.spec.name, one.written_bytes, one.read_bytes, one.spec.serial) for one in server.drives if one.present
        ]
        if server.others.elsewhere:
            rows.append((ELSEWHERE, server.others.elsewhere, 0.0, ""))
        lines, texts = [], {}
        for number, (name, written, read, serial) in enumerate(rows):
            wrote, got = int(written) // SECTOR_BYTES, int(read) // SECTOR_BYTES
            ms = int(self.server.now_s - self._began_s) * 900
            lines.append(
                f" 259 {number} {name} {got // 256} 0 {got} {ms // 2} {wrote // 2048} 0 {wrote} {ms * 4} 4 {ms} {ms * 4} 0 0 0 0 0 0"
            )
            texts[DISK_KEY + name] = serial
        texts["diskstats"] = "\n".join(lines) + "\n"
        return self._block.parse(*self._reading("block_device", texts))

    def _temperatures(self) -> list[Point]:
        found = []
        for number, drive in enumerate(self.server.drives):
            if not drive.present or self._is_silent(number) or drive.spec.transport != "nvme":
                continue  # the kernel reads no temperature of a SAS drive
            tags = (
                ("chip", "nvme"), ("device", drive.spec.name), ("label", "Composite"), ("sensor", f"hwmon{number}/temp1"),
            )  # fmt: skip
            fields = {
                "temperature_degc": degrees_celsius(f"{1000 * self._told_degc(number)}\n"),
                "warning_degc": float(drive.spec.warning_degc),
                "critical_degc": float(drive.spec.critical_degc),
            }
            found.append(Point("temperature", tags, fields, int(self.server.clock_s * 1e9)))
        return found

    def _told_degc(self, number: int) -> int:
        for kind in STUCK:
            stuck = self.server.spec.has(kind)
            if stuck and stuck.drive == number:
                self.server.note(kind)
                return STUCK_DEGC
        return self.server.drives[number].composite_degc

    def _is_silent(self, number: int) -> bool:
        for hazard in self.server.active("drive_sensor_silent"):
            if hazard.drive == number:
                self.server.note(hazard.kind)
                return True
        return False

    def _smart(self) -> list[Point]:
        found: list[Point] = []
        for number, drive in enumerate(self.server.drives):
            if not drive.present or self._is_silent(number):
                continue
            degc = self._told_degc(number)
            texts = {SMARTCTL: json.dumps(smartctl.document(drive.spec, drive, degc))}
            if drive.spec.transport == "nvme":
                texts[HEALTH] = smartctl.health_page(drive, degc)
            found += drive_points(drive.spec.name, texts, int(self.server.clock_s * 1e9))
        return found

    def _cpus(self) -> list[Point]:
        """All of them together: nothing of the model is bound to one."""
        server = self.server
        spent = [round(TICKS_PER_S * one) for one in (self._services_s() + server.others.cpu_s, server.busy_s)]
        idle = round(TICKS_PER_S * CPUS * self._lasted_s) - sum(spent)
        text = f"cpu  {spent[0]} 0 {spent[1]} {idle} 0 0 0 0 0 0\nintr 0\n"
        return self._cpu.parse(*self._reading("cpu", {STAT: text}))

    @property
    def _lasted_s(self) -> float:
        return self.server.now_s - self._began_s

    def _services_s(self) -> float:
        return sum(share for _, _, share in SERVICES) * self._lasted_s

    def _processes(self) -> list[Point]:
        """/proc/PID/stat and write_bytes of /proc/PID/io, as the agent has them: services, one that works beside the bench, the bench."""
        server = self.server
        found = [(number, name, 1, share * self._lasted_s, 0.0) for number, name, share in SERVICES]
        others = server.others
        found.append((4242, server.spec.others_name, 1, others.cpu_s, others.written + others.elsewhere))
        found += [
            (AGENT, "python3", 1, 0.002 * self._lasted_s, 0.0),
            (701, "daqwriter", AGENT, server.busy_s, sum(server.written_to.values())),
        ]
        texts = {
            str(
                number
            ): f"{number} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {round(TICKS_PER_S * cpu_s)} 0 0 0 20 0 1 0 100\n{int(written)}"
            for number, name, parent, cpu_s, written in found
        }
        texts |= {OWN: str(AGENT), NUMBER_OF_CPUS: str(CPUS)}
        return self._process.parse(*self._reading("process", texts))

    def _bmc(self) -> list[Point]:
        server = self.server
        for hazard in server.active("bmc_hangs"):
            server.note(hazard.kind)
            raise OSError("ipmitool sdr: no answer within 30 s")
        watts = server.watts
        if server.spec.has("bmc_zero_watts"):
            server.note("bmc_zero_watts")
            watts = 0.0
        rpm = server.fan_rpm
        if server.spec.has("bmc_sensor_stuck"):
            server.note("bmc_sensor_stuck")
            rpm = 14_700
        texts = {SENSORS: ipmitool.sensors(rpm, 58), POWER: ipmitool.power(watts, server.clock_s)}
        return self._ipmi.parse(*self._reading("ipmi", texts))

    def _kernel_log(self) -> list[Point]:
        records = []
        for number, drive in enumerate(self.server.drives):
            name = drive.spec.name
            if not drive.present and name not in self._kernel_said:
                self._kernel_said.add(name)
                us = int(self.server.now_s * 1e6)
                text = f"nvme nvme{number}: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"
                records.append(f"4,{100 + number},{us},-;{text}\n")
        texts = {RECORDS: "\x1e".join(records), GAP: "0", NAMES: ""}
        return self._kernel.parse(*self._reading("kernel_log", texts))

    def finish(self, state: str, delivered_share: float, outage: str | None) -> dict[str, Any]:
        """Passes the workload's records on and writes the spool, the cursor and the account. `state`: how the agent ended."""
        self.server.watcher = None
        workload = Workload(1.0, self.workload_file)
        passed = workload.parse(workload.read(), None)
        self._put(passed)
        lost = self._lost()
        kept = self._lines[: len(self._lines) - sum(lost.values())]
        spool, self.kept = "".join(kept), len(kept)
        (self.spool / "points.lp").write_text(spool, encoding="utf-8")
        delivered = round(len(kept) * delivered_share)
        offset = sum(len(line.encode()) for line in kept[:delivered])
        _write(self.spool / "cursor.json", {"delivered_bytes_offset": offset, "delivered_points": delivered})
        summary = self._summary(state, workload, len(passed), lost, delivered, outage)
        _write(self.spool / "summary.json", summary)
        return summary

    def _lost(self) -> Counter[str]:
        """Points that found no room: the last ones, where the control node's disk was full."""
        lost: Counter[str] = Counter()
        full = self.server.has_struck("control_disk_full")
        if full:
            self.server.harms["control_disk_full"] = "the spool's last points found no room"
            for line in self._lines[-max(1, len(self._lines) // 20) :]:
                lost[line.partition(",")[0]] += 1
        return lost

    def _summary(
        self, state: str, workload: Workload, passed: int, lost: Counter[str], delivered: int, outage: str | None
    ) -> dict[str, Any]:
        now_s, total = self.server.now_s, sum(self._counts.values())
        spooled = total - sum(lost.values())
        seconds = round(now_s - self._began_s)
        own = Sampled("workload", 1.0, list, now_s, seconds, seconds, passed)
        return {
            "schema_version": 1,
            "state": state,
            "started_utc": _utc(self._began_s),
            "finished_utc": _utc(now_s) if state == FINISHED else None,
            "host": self.tags["host"],
            "tags": self.tags,
            "period_s": 1.0,
            "collectors": [one.summary(now_s) for one in (*self._sampled, own)],
            "points": point_counts(total, spooled, delivered, 0),
            "measurements": {
                name: {"collected": count, "spooled": count - lost[name], "thinned": 0, "thinned_delivered": 0}
                for name, count in sorted(self._counts.items())
            },
            "spool": {
                "bytes": (self.spool / "points.lp").stat().st_size, "recovered_points": 0, "torn_bytes": 0,
                "last_error": "No space left on device" if lost else None, "thinnings": [],
            },
            "clock": {"step_count": len(self._steps), "steps": self._steps, "stamps_ahead_s": 0.0},
            "influx": {
                "enabled": True, "url": "http://127.0.0.1:8086", "database": "bench", "reachable_at_end": outage is None,
                "last_error": outage, "outage_count": int(outage is not None),
                "outages": [] if outage is None else [{"from_utc": _utc(self._began_s), "to_utc": None, "error": outage}],
            },
            "workload": workload.summary() | {"path": "workload.lp"},
            "cpu": {"seconds": 1.0, "percent_of_one_core": 0.2, "tools_seconds": 0.5, "tools_percent_of_one_core": 0.1},
            "memory": {"rss_max_bytes": 30_000_000},
        }  # fmt: skip


def _utc(at_s: float) -> str:
    return utc_text(datetime.fromtimestamp(at_s, UTC))


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
