"""The series of a large server: every declared measurement with the values that its tags take in one night. For tests and for ADR 41.

`python robot-suites/tests/influx_series.py URL DATABASE SERVERS NIGHTS` writes them into an InfluxDB 1.8 that the bench set up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

from ruamel.yaml import YAML

from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.history import kept_event
from daq_bench.telemetry_agent.base.point import Encoder, FieldValue, Point

Words = tuple[str, ...]
DRIVES, CORES, SOCKETS, PORTS, REQUIREMENTS = 24, 64, 2, 2, 12
NIGHT_NS = 86_400 * 10**9
IN_HISTORY = ("bench_verdict", "bench_run", "aligned_run")
# Events that are known after the agent's end, so that only the rig writes them.
KNOWN_LATER = (("busy", ("extent", "span")), ("verdict",))
VALUES: dict[str, FieldValue] = {"integer": 1, "float": 1.5, "boolean": True, "string": "x"}


def numbered(name: str, count: int) -> Words:
    return tuple(f"{name}{number}" for number in range(count))


DRIVE = numbered("nvme", DRIVES)
CORE = numbered("", CORES)
IDENTITY = ("device", "serial", "model")  # one value each for a drive
# Tags that vary on their own, by measurement; those of IDENTITY go with `device`, and what is not named has one value.
TAKES: dict[str, dict[str, Words]] = {
    "block_device": {"device": (*DRIVE, "md0")},
    "cpu": {"core": ("total", *CORE)},
    "cpu_frequency": {"core": CORE},
    "cpu_throttle": {"package": numbered("", SOCKETS)},
    "cpu_idle": {"package": numbered("", SOCKETS), "state": ("POLL", "C1", "C1E", "C6")},
    "memory": {},
    "numa": {"node": numbered("", SOCKETS)},
    "memory_bandwidth": {"domain": numbered("L3-", SOCKETS)},
    "interrupts": {"device": (*DRIVE, *numbered("eth", PORTS))},
    "network": {"interface": (*numbered("eth", PORTS), "bond0")},
    "network_link": {"interface": (*numbered("eth", PORTS), "bond0")},
    "md_array": {"member": ("", *DRIVE)},
    "pressure": {"resource": ("cpu", "io", "memory", "irq"), "kind": ("some", "full")},
    "process": {"name": numbered("program", 40)},
    "temperature": {"device": (*DRIVE, *numbered("coretemp", SOCKETS)), "label": ("Composite", "Sensor 1", "Sensor 2")},
    "smart": {"device": DRIVE},
    "smart_temperature": {"device": DRIVE, "sensor": ("composite", "sensor_1", "sensor_2")},
    "smart_ocp": {"device": DRIVE},
    "smart_endurance": {"device": DRIVE},
    "nvme_event": {"device": DRIVE, "kind": ("power_on_reset", "thermal_excursion")},
    "smart_query": {"device": DRIVE},
    "pcie_link": {"device": (*DRIVE, *numbered("eth", PORTS))},
    "pcie_errors": {"device": (*DRIVE, *numbered("eth", PORTS)), "function": ("device", "port")},
    "rapl": {"domain": tuple(f"package-{n}{part}" for n in range(SOCKETS) for part in ("", "/dram"))},
    "ipmi_sensor": {"sensor": numbered("Sensor ", 80)},
    "redfish_sensor": {"sensor": numbered("Sensor ", 40)},
    "ipmi_power": {},
    "ipmi_event": {"sensor": numbered("Sensor ", 4)},
    "kernel_event": {"device": numbered("nvme", 4)},
    "memory_errors": {"controller": numbered("mc", SOCKETS), "module": ("total", *numbered("dimm", 8))},
    "telemetry_agent": {"collector": numbered("collector", 28)},
    "daqwriter": {"phase": ("record", "drain", "verify")},
    "bench_event": {"kind": numbered("kind", 10), "source": numbered("source", 3), "extent": ("", "span")},
    "bench_verdict": {"requirement": numbered("SNB-", REQUIREMENTS)},
    "bench_run": {},
    "aligned_run": {},
}


def declared() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = YAML(typ="safe").load(Layout().inventory / "metrics.yml")["measurements"]
    return found


def points(measurement: str, said: dict[str, Any], time_ns: int) -> Iterator[Point]:
    """One point of each series, with one declared field."""
    takes = TAKES[measurement]
    if unknown := takes.keys() - said["tags"].keys():
        raise ValueError(f"{measurement} has no tag {', '.join(sorted(unknown))}")
    name, field = next(iter(said["fields"].items()))
    for words in product(*takes.values()):
        tags = dict(zip(takes, words, strict=True))
        for tag in said["tags"]:
            if tag not in ("host", "run", *takes):
                tags[tag] = f"{tag} of {tags['device']}" if tag in IDENTITY and "device" in takes else "x"
        yield Point(
            measurement,
            tuple((key, word) for key, word in tags.items() if word),
            {name: VALUES[field["type"]]},
            time_ns,
        )


def nights(servers: int, begin_ns: int, count: int) -> Iterator[tuple[str, str]]:
    """(policy, lines) of each night of each server, a night apart; policy is empty for raw points."""
    every = declared()
    for night, server in product(range(count), range(servers)):
        at_ns = begin_ns + night * NIGHT_NS
        everywhere = {"host": f"server-{server}", "run": f"run-{at_ns}-server-{server}"}
        lines: dict[str, list[str]] = {"": [], "/history": []}
        for name, said in every.items():
            encoder = Encoder({tag: word for tag, word in everywhere.items() if tag in said["tags"]})
            made = [encoder.encode(point) for point in points(name, said, at_ns)]
            lines["/history" if name in IN_HISTORY else ""] += made
            if name == "bench_event":
                made += [
                    encoder.encode(Point(name, (("kind", kind), ("source", "x"), *extent), {"text": "x"}, at_ns))
                    for kind, *extent in KNOWN_LATER
                ]
                lines["/history"] += map(kept_event, made)
        yield from ((policy, "".join(made)) for policy, made in lines.items())


def write(url: str, database: str, servers: int, begin_ns: int, count: int) -> None:
    influx = Influx(url, database)
    for policy, lines in nights(servers, begin_ns, count):
        influx.write(f"{database}{policy}", lines, timeout_s=120)


if __name__ == "__main__":
    import time

    count = int(sys.argv[4])
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]), time.time_ns() - count * NIGHT_NS, count)
