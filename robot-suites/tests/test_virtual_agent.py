"""The telemetry agent on the virtual candidate: what its host collectors see of two NUMA nodes, NVMe drives, an array and a network."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.bundle.line_protocol import Point, parse_line
from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate import ssh
from daq_bench.virtual_candidate.candidate import VirtualCandidate

pytestmark = pytest.mark.virtual

BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_"
WRITTEN, MEMBERS = "VCXP0001", ("VCNA0001", "VCNA0002")  # the first on node 0, the array's one on each
ARRAY = "/dev/md77"
# Long enough for two readings of those that read every 10 s, under emulation.
SCRIPT = f"""
set -eu
agent=
trap 'test -z "$agent" || kill $agent' EXIT
rm -rf /root/agent-spool
mdadm --create {ARRAY} --run --quiet --assume-clean --metadata=1.2 --level=1 --raid-devices=2 {" ".join(BY_ID + one for one in MEMBERS)}
udevadm settle
python3 /root/agent.pyz run --spool-dir /root/agent-spool --no-influx --tag host=guest --tag run=r --period 0.5 &
agent=$!
until test -s /root/agent-spool/points.lp; do sleep 1; done
for second in $(seq 15); do
    dd if=/dev/zero of={BY_ID}{WRITTEN} bs=1M count=4 oflag=direct status=none
    dd if=/dev/zero of={ARRAY} bs=1M count=2 oflag=direct status=none
    sleep 1
done
mdadm --quiet --manage {ARRAY} --fail {BY_ID}{MEMBERS[1]}
sleep 5
kill -TERM $agent
wait $agent
agent=
"""
CLEAN = f"""
mdadm --quiet --stop {ARRAY}
mdadm --quiet --zero-superblock --force {" ".join(BY_ID + one for one in MEMBERS)}
rm -rf /root/agent.pyz /root/agent-spool
"""


@dataclass(frozen=True)
class Seen:
    """One run of the agent."""

    points: list[Point]
    summary: dict[str, Any]
    names: dict[str, str]  # the guest's kernel names of its NVMe drives, by serial
    nodes: dict[str, str]  # NUMA node by kernel name

    def of(self, measurement: str, **tags: str) -> list[Point]:
        return [
            point
            for point in self.points
            if point.measurement == measurement and all(point.tags.get(tag) == value for tag, value in tags.items())
        ]

    def values(self, measurement: str, tag: str) -> set[str]:
        return {point.tags[tag] for point in self.of(measurement) if tag in point.tags}


@pytest.fixture(scope="module")
def seen(virtual_machine: VirtualCandidate, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """The agent runs for some 20 s while a drive and an array are written to, and the array loses a member."""
    program = tmp_path_factory.mktemp("agent") / "agent.pyz"
    builder = Layout().repository / "agents" / "build_pyz.py"
    subprocess.run([sys.executable, str(builder), "--output", str(program)], check=True)
    _copy(virtual_machine, program)
    words = "$(cat $c/serial) $(cat $c/device/numa_node) $(ls -d $c/nvme*n1)"
    listed = virtual_machine.run(f"for c in /sys/class/nvme/nvme*; do echo {words}; done")
    rows = [line.split() for line in listed.splitlines()]
    try:
        virtual_machine.run(SCRIPT, timeout_s=300)
        lines = virtual_machine.run("cat /root/agent-spool/points.lp", timeout_s=120).splitlines()
        summary = json.loads(virtual_machine.run("cat /root/agent-spool/summary.json"))
    finally:
        virtual_machine.run(CLEAN)
    names = {serial: Path(path).name for serial, _, path in rows}
    nodes = {Path(path).name: node for _, node, path in rows}
    return Seen([parse_line(line) for line in lines], summary, names, nodes)


def _copy(machine: VirtualCandidate, program: Path) -> None:
    at = machine.instance
    argv = ssh.command(at.ssh, at.ports.ssh, "cat > /root/agent.pyz")
    subprocess.run(argv, input=program.read_bytes(), check=True, timeout=300)


def test_every_collector_works_or_says_why_not(seen: Seen) -> None:
    found = {one["name"]: (one["status"], one["detail"]) for one in seen.summary["collectors"]}
    # The drives' tools may need longer than the agent waits where every CPU is emulated; test_virtual_telemetry.py looks at them.
    failing = {name: detail for name, (status, detail) in found.items() if status not in ("ok", "unsupported")}
    assert failing.keys() <= {"smart"}, failing
    assert all(detail for status, detail in found.values() if status == "unsupported")
    needed = {"block_device", "cpu", "memory", "numa", "interrupts", "network", "network_link", "md_array", "pcie_link"}
    assert {name for name in needed if found[name][0] != "ok"} == set(), found


def test_both_numa_nodes_are_seen(seen: Seen) -> None:
    assert seen.values("numa", "node") == {"0", "1"}
    for point in seen.of("numa"):
        assert point.fields["used_bytes"] + point.fields["free_bytes"] == point.fields["total_bytes"] > 0
    pages = [int(point.fields["local_pages"]) for point in seen.of("numa", node="0")]
    assert pages == sorted(pages) and pages[-1] > pages[0]


def test_each_drive_has_its_pcie_link(seen: Seen) -> None:
    assert set(seen.names.values()) <= seen.values("pcie_link", "device")
    for point in seen.of("pcie_link"):
        assert point.fields["generation"] >= 1
        assert point.fields["lanes"] >= 1
        assert 0 < point.fields.get("bandwidth_fraction", 1.0) <= 1


def test_the_drives_vectors_tell_which_cpu_took_them(seen: Seen) -> None:
    """The guest has one CPU per node: what the CPU of the other node took is remote."""
    assert set(seen.names.values()) <= seen.values("interrupts", "device")
    drive = seen.names[WRITTEN]
    totals = seen.of("interrupts", device=drive, core="total")
    assert {point.tags["driver"] for point in totals} == {"nvme"}
    assert max(point.fields["interrupts_per_s"] for point in totals) > 0
    assert all(point.fields["vectors"] >= 1 for point in totals)
    for point in totals:
        if not point.fields["interrupts_per_s"]:
            continue
        assert point.fields["busiest_core_remote"] == (str(point.fields["busiest_core"]) != seen.nodes[drive])
        by_core = dict(one.split("=") for one in str(point.fields["busiest_cores"]).split(" "))
        remote = sum(float(rate) for core, rate in by_core.items() if core != seen.nodes[drive])
        assert point.fields["remote_fraction"] == pytest.approx(remote / point.fields["interrupts_per_s"], rel=1e-4)


def test_a_drive_that_is_written_to_has_a_latency_and_a_queue(seen: Seen) -> None:
    points = seen.of("block_device", device=seen.names[WRITTEN])
    assert points[-1].fields["written_bytes"] - points[0].fields["written_bytes"] >= 40_000_000
    latencies = [point.fields["write_latency_s"] for point in points if "write_latency_s" in point.fields]
    assert latencies and 0 < max(latencies) < 10
    assert max(point.fields.get("queue_depth", 0.0) for point in points) > 0


def test_the_array_is_seen_to_lose_a_member(seen: Seen) -> None:
    array = [point for point in seen.of("md_array", device="md77") if "member" not in point.tags]
    assert {point.fields["level"] for point in array} == {"raid1"}
    assert (array[0].fields["degraded"], array[-1].fields["degraded"]) == (0, 1)
    members = {seen.names[serial] for serial in MEMBERS}
    assert seen.values("md_array", "member") == members
    last = {point.tags["member"]: str(point.fields["state"]) for point in seen.of("md_array") if "member" in point.tags}
    assert "in_sync" in last[seen.names[MEMBERS[0]]]
    assert "faulty" in last[seen.names[MEMBERS[1]]]


def test_the_network_counts_and_has_a_carrier(seen: Seen) -> None:
    (interface,) = seen.values("network", "interface")
    received = [int(point.fields["received_bytes"]) for point in seen.of("network", interface=interface)]
    assert received == sorted(received) and received[0] > 0
    assert all(point.fields["carrier"] for point in seen.of("network_link", interface=interface))
