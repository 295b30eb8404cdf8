"""perftest for real over soft RoCE: what it prints is what the parsers read. Needs a kernel with rdma_rxe, and perftest."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_model import perftest
from rig.machine import ON_CANDIDATE, LocalMachine
from rig.workloads.lan_plans import Tools

ADDRESS = "198.18.2.1"  # RFC 2544: benchmarks between hosts
PROGRAM = ON_CANDIDATE / "network_nodes.py"


def why_not() -> str | None:
    missing = [tool for tool in ("ib_write_bw", "ib_read_lat", "rdma", "modprobe") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        return f"needs root and {', '.join(missing) or 'nothing else'}"
    loaded = subprocess.run(["modprobe", "rdma_rxe"], capture_output=True, text=True, check=False)
    if loaded.returncode != 0 and not Path("/sys/module/rdma_rxe").exists():
        return f"this kernel has no soft RoCE: {loaded.stderr.strip()}"
    return None


@pytest.fixture
def device() -> Iterator[str]:
    """A soft RoCE device on a port of our own; both sides of a transfer use it, over its own loopback."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    port, name = f"lr{os.getpid() % 10000}", f"rxe{os.getpid() % 10000}"
    subprocess.run(["ip", "link", "add", port, "type", "dummy"], check=True)
    try:
        subprocess.run(["ip", "address", "add", f"{ADDRESS}/24", "dev", port], check=True)
        subprocess.run(["ip", "link", "set", port, "up"], check=True)
        subprocess.run(["rdma", "link", "add", name, "type", "rxe", "netdev", port], check=True)
        yield name
    finally:
        subprocess.run(["rdma", "link", "delete", name], check=False)
        subprocess.run(["ip", "link", "del", port], check=True)


@pytest.mark.campaign
def test_perftest_is_asked_and_read_as_on_a_real_card(device: str) -> None:
    tools = Tools(Path("netprobe"), 1, 1, {"node0": device, "node1": device})
    machine = LocalMachine()
    for operation in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_read_lat"):
        transfer = (
            tools.latency("direct", 4096, 2)
            if operation == "ib_read_lat"
            else tools.bandwidth("direct", operation, 4096, 2)
        )
        flow, (_, _, server) = transfer.flows[0], transfer.servers[0]
        with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
            try:
                done = machine.run(["sh", "-c", 'sleep 1; exec "$0" "$@"', *flow.client[:-1], ADDRESS], timeout_s=60)
            finally:
                running.kill()
        assert done.returncode == 0, done.stderr
        if operation == "ib_read_lat":
            assert perftest.parse_latency(done.stdout, 4096).mean_us > 0
        else:
            assert perftest.parse_bandwidth(done.stdout, 4096).bytes_per_s > 0
