"""inventory/metrics.yml is the whole truth about what the agent emits: nothing else, and nothing dead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from agent_helpers import FIXTURES, METRICS, PYTHON_TYPES, fake_program, machine, two_readings, undeclared
from drive_helpers import ANSWERING, Bench, event, event_log, with_events, with_groups
from recorded_tree import FOLDER, Clock, sample, unpack

from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.collectors.agent_status import AGENT, AgentStatus
from daq_bench.telemetry_agent.collectors.hardware.edac import Edac
from daq_bench.telemetry_agent.collectors.hardware.kernel_log import BEHIND, GAP, NAMES, RECORDS, KernelLog
from daq_bench.telemetry_agent.collectors.hardware.redfish import Redfish
from daq_bench.telemetry_agent.collectors.ipmi import LOG, LOG_SINCE, POWER, SENSORS, Ipmi
from daq_bench.telemetry_agent.collectors.processes import CPUS, OWN, Processes
from daq_bench.telemetry_agent.collectors.processor.memory_bandwidth import MemoryBandwidth
from daq_bench.telemetry_agent.collectors.workload import KNOWN_FIELDS, check_record
from daq_bench.telemetry_agent.devices.redfish_service import Address
from daq_bench.telemetry_agent.reading.collector import Reading, reading_now
from daq_bench.telemetry_agent.scheduling.scheduler import Scheduler
from daq_bench.telemetry_agent.summary import point_counts

RECORD = (
    "daqwriter,command=minidaq,phase=record,run=r offered_bytes=1i,stored_bytes=1i,backlog_bytes=0i,"
    "busy_count=0i,lost_superchunks=0i,elapsed_s=0.1,total_s=5,buffer_bytes=9i 1"
)
READ_BACK = "daqwriter,command=verify,phase=verify,run=r read_bytes=1i,elapsed_s=0.1,total_s=0.4 2"
WRITES = "daqwriter,command=write,phase=write,run=r written_bytes=1i,elapsed_s=0.1,total_s=0.4 2"
EVENT = 'bench_event,kind=phase,run=r,source=snb_record text="record 1 of 1" 2'
SPAN = 'bench_event,extent=span,kind=phase,run=r,source=snb_record text="record 1 of 1",end_ms=3i 2'


# Not on the recorded machines: their host collectors run over the tree of a server with two sockets.
HOST_ALONE = ("cpu_idle", "cpu_throttle", "edac", "interrupts", "kernel_log", "md_array", "memory_bandwidth", "network", "network_link",
              "numa", "pcie_errors", "pcie_link", "process", "rapl")  # fmt: skip
NOT_IN_TREE = ("smart", "ipmi", "temperature", "kernel_log", "edac", "process")
PERF = (
    "\n".join(f"S0,12,1.00,MiB,uncore_imc/cas_count_{way}/,1,100.00,," for way in ("read", "write"))
    + "\nS0,1,1000000000,ns,duration_time,1,100.00,,\n"
)

OF_PROCESSES = {OWN: "", CPUS: "4"}


def emitted_by_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """Points of the host collectors: a server with a healthy, then a failing second reading, and perf in the place of resctrl."""
    points = MemoryBandwidth(1.0).parse(reading_now({"perf": PERF}), None)
    points += Processes(1.0).parse(Reading(2 * 10**9, 2.0, OF_PROCESSES), Reading(0, 0.0, OF_PROCESSES))
    points += KernelLog(1.0).parse(
        reading_now(
            {
                RECORDS: "3,7,1,-;nvme nvme0: I/O 1 QID 1 timeout\x1e3,8,2,-;mpt3sas_cm0: sending diag reset !!",
                GAP: "0",
                NAMES: "",
                BEHIND: "mpt3sas_cm0 sda sdb",
            }
        ),
        None,
    )
    points += Edac(1.0).parse(
        reading_now({f"mc0|dimm0|{name}": "1" for name in ("corrected", "uncorrected", "label")}), None
    )
    monkeypatch.setenv(
        "PATH", fake_program(tmp_path / "bin", "ethtool", f"cat {FOLDER}/ethtool_mlx5.txt; echo ' rx_missed: 1'\n")
    )
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        root = unpack("healthy_0", tmp_path / "host")
        collectors = [one for one in system_collectors(1.0, root) if one.name not in NOT_IN_TREE]
        before = {one.name: sample(one)[0] for one in collectors}
        for tree in ("healthy_1", "failing_1"):
            unpack(tree, root)
            clock.advance()
            points += [point for one in collectors for point in sample(one, before[one.name])[1]]
    return points


def emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """Points of every collector over every recorded machine."""
    points = [check_record(line) for line in (RECORD, READ_BACK, WRITES, EVENT, SPAN)]
    points += emitted_by_host(tmp_path, monkeypatch)
    for name, absent in (
        ("server", ("ipmi", "smart", *HOST_ALONE)),
        ("vm", ("temperature", "smart", "ipmi", *HOST_ALONE)),
    ):
        for index, collector in enumerate(system_collectors(1.0, machine(name, 0))):
            if collector.name not in absent:
                points += two_readings(lambda root, i=index: system_collectors(1.0, root)[i], name)  # type: ignore[misc]
    for case in ANSWERING:
        bench = Bench(tmp_path / case, case)
        with monkeypatch.context() as patched:
            patched.setenv("PATH", bench.path)
            smart = bench.smart()
            points += smart.parse(smart.read(), None)
    bench = with_groups(Bench(tmp_path / "groups", "nvme_datacentre"), 1)
    with_events(bench, event_log(9000, [event(4, 1000)]))
    page = bytearray((bench.files / "c0.bin").read_bytes())
    page[494] = 3  # version: it counts what older ones reserve
    (bench.files / "c0.bin").write_bytes(page)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", bench.path)
        patched.setattr("daq_bench.telemetry_agent.devices.drive_events.PERIOD_S", 0.0)
        smart = bench.smart()
        points += smart.parse(smart.read(), None)
        with_events(bench, event_log(9100, [event(4, 1000), event(13, 9050, bytes((5, 1)))]))
        points += smart.parse(smart.read(), None)
    bmc = {
        key: (FIXTURES / "ipmi" / name).read_text()
        for key, name in ((SENSORS, "sdr_full.csv"), (POWER, "dcmi_power.txt"), (LOG, "sel_entries.csv"))
    }
    bmc[LOG_SINCE] = "30"
    points += Ipmi(1.0).parse(reading_now(bmc), None)
    intake = json.dumps({"TemperatureSummaryCelsius": {"Intake": {"Reading": 24.8}}})
    redfish = Redfish(1.0, Address("bmc", 443, "u"))
    points += redfish.parse(reading_now({"1 ThermalMetrics": intake}), None)
    scheduler = Scheduler(points.extend)
    for collector in system_collectors(1.0, machine("vm", 0)):
        scheduler.add(collector)
    agent = {"cpu_s": 0.1, "tools_cpu_s": 0.1, "rss_max_bytes": 1, "spool_bytes": 1, "influx_reachable": True}
    agent["clock_step_s"] = -2.5
    agent.update({f"{key}_points": value for key, value in point_counts(4, 3, 2, 1).items()})
    status = AgentStatus(1.0, lambda: {**scheduler.snapshot(), AGENT: agent}, instance="bmc")
    scheduler.start()
    scheduler.stop(3.0)
    return points + status.parse(status.read(), None)


def test_every_emitted_point_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurement, tags, fields and types."""
    for point in emitted(tmp_path, monkeypatch):
        assert undeclared(point) == [], point


def test_every_declared_field_and_tag_is_emitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No declaration is dead; host and run come from the command line."""
    points = emitted(tmp_path, monkeypatch)
    for measurement, declared in yaml.safe_load(METRICS.read_text())["measurements"].items():
        if "agents/" not in declared["source"]:
            continue  # written by another part of the bench, which has its own test
        own = [point for point in points if point.measurement == measurement]
        assert {field for point in own for field in point.fields} == set(declared["fields"]), measurement
        tags = {key for point in own for key, _ in point.tags}
        assert tags | {"host", "run"} == set(declared["tags"]), measurement


@pytest.mark.parametrize(
    ("point", "complaint"),
    [
        (Point("gpu", (), {"x": 1}, 1), "measurement gpu"),
        (Point("memory", (), {"swap_bytes": 1}, 1), "field swap_bytes"),
        (Point("memory", (), {"free_bytes": 1.0}, 1), "type of free_bytes: float, declared integer"),
        (Point("smart", (), {"media_errors": True}, 1), "type of media_errors: bool, declared integer"),
        (Point("memory", (("dimm", "0"),), {"free_bytes": 1}, 1), "tag dimm"),
    ],
)
def test_the_check_fails_on_anything_else(point: Point, complaint: str) -> None:
    """The guard itself works."""
    assert undeclared(point) == [complaint]


def test_the_workload_collector_lets_through_exactly_the_declared_fields() -> None:
    """The agent carries its own copy because it has no YAML; the copies must agree."""
    for measurement, fields in KNOWN_FIELDS.items():
        declared = yaml.safe_load(METRICS.read_text())["measurements"][measurement]["fields"]
        assert {name: PYTHON_TYPES[field["type"]] for name, field in declared.items()} == dict(fields)


def test_declarations_are_complete() -> None:
    """Each field has type, unit, kind and description; units come last in names."""
    for measurement, declared in yaml.safe_load(METRICS.read_text())["measurements"].items():
        assert set(declared) == {"description", "source", "tags", "fields"}, measurement
        for name, field in declared["fields"].items():
            assert set(field) == {"type", "unit", "kind", "description"}, name
            assert field["type"] in PYTHON_TYPES
            assert field["kind"] in ("counter", "gauge")
            endings = {"B": "_bytes", "B/s": "_bytes_per_s", "s": "_s", "ms": "_ms", "us": "_us", "Hz": "_hz",
                       "degC": "_degc", "percent": "_percent", "min": "_min", "h": "_hours",
                       "W": "_w", "V": "_v", "A": "_a", "rpm": "_rpm", "1/s": "_per_s", "uJ": "_uj"}  # fmt: skip
            if field["unit"] in endings:
                assert name.endswith(endings[field["unit"]]), name
            else:
                assert field["unit"] in ("count", "1"), name
