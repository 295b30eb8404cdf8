"""The places where a transfer's processes run: this machine's own port, or nodes in network namespaces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from daq_bench.rig.on_candidate.network import namespaces, rdma
from daq_bench.rig.on_candidate.network.meeting import meet
from daq_bench.rig.on_candidate.network.namespaces import NodesError, rows_of, tool

SUBNET = "198.18.1"  # RFC 2544: benchmarks between hosts
LETTERS = "ln"
BURST_S = 0.001  # a shaper's burst: this much may leave at once
BURST_MIN_BYTES = 256 << 10  # one segment of the largest size that a kernel without real hardware passes on


class Host:
    """This machine's own port; other nodes are elsewhere and have addresses only."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.node, self.interface, self.addresses = plan["node"], plan["interface"], plan["addresses"]
        self.ports = [(self.node, self.interface)]
        self.device: Path | None = None  # the port of its RDMA device

    def make(self) -> None:
        folder = Path("/sys/class/net") / self.interface
        if not folder.exists():
            there = ", ".join(sorted(os.listdir("/sys/class/net")))
            raise NodesError(
                f"there is no interface {self.interface} (there are {there}): correct network.interface in the inventory"
            )
        state = (folder / "operstate").read_text(encoding="ascii").strip()
        if state not in ("up", "unknown"):
            raise NodesError(
                f"{self.interface} is not up (operstate {state}): connect it and give it an address, or correct network.interface"
            )
        self.device = next(iter(rdma.ports_of(self.interface)), None)

    def inside(self, node: str) -> list[str]:
        return []

    def remove(self) -> None:
        """Does nothing: there is nothing to remove."""

    def queue_drops(self) -> int | None:
        return None

    def meet(self) -> None:
        """Returns at the same moment on all hosts of the transfer."""
        meet(self.node, self.addresses)

    def rdma(self) -> dict[str, int]:
        return rdma.bytes_of(self.device)


class Namespaces:
    """Nodes of our own, named after this process. Ports are shaped on both sides, so that a switch's has a queue that can overflow."""

    def __init__(self, plan: dict[str, Any]) -> None:
        if os.geteuid() != 0:
            raise NodesError(
                "network namespaces need root: run the bench as root, or give the candidate a network with peers"
            )
        self.plan, self.prefix = plan, f"{LETTERS}{os.getpid()}"
        self.nodes = [f"node{number}" for number in range(plan["nodes"])]
        self.addresses = {node: f"{SUBNET}.{10 + number}" for number, node in enumerate(self.nodes)}
        self.direct = plan["topology"] == "direct"
        if self.direct and len(self.nodes) != 2:
            raise NodesError(f"{len(self.nodes)} nodes cannot be wired together directly: give two")
        self.ports = [(node, "eth0") for node in self.nodes]
        namespaces.remove_left_behind(LETTERS)

    def _name(self, node: str) -> str:
        return f"{self.prefix}n{node[4:]}"

    def inside(self, node: str) -> list[str]:
        if node not in self.addresses:
            raise NodesError(f"there is no {node} among {', '.join(self.nodes)}")
        return namespaces.inside(self._name(node))

    def make(self) -> None:
        for node in self.nodes:
            tool("ip", "netns", "add", self._name(node))
        if self.direct:
            first, second = (self._name(node) for node in self.nodes)
            tool("ip", "link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        else:
            namespaces.add_bridge(f"{self.prefix}b")
        for node in self.nodes:
            if not self.direct:
                namespaces.plug(self._name(node), self._port(node), f"{self.prefix}b")
                self._shape([], self._port(node))
            namespaces.address(self._name(node), self.addresses[node])
            self._shape(self.inside(node), "eth0")

    def _port(self, node: str) -> str:
        return f"{self.prefix}p{node[4:]}"

    def _shape(self, where: list[str], device: str) -> None:
        rate = self.plan.get("rate_bytes_per_s")
        if rate:
            burst = max(BURST_MIN_BYTES, round(rate * BURST_S))
            limit = max(self.plan["queue_bytes"], burst)
            tool(*where, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{round(8 * rate)}bit",
                 "burst", str(burst), "limit", str(limit))  # fmt: skip

    def switch_ports(self) -> list[str]:
        return [] if self.direct else [*(self._port(node) for node in self.nodes), f"{self.prefix}b"]

    def queue_drops(self) -> int | None:
        """Returns the packets that the switch's ports had no room for, so far; None without a switch."""
        if self.direct:
            return None
        asked = ("tc", "-s", "-j", "qdisc", "show", "dev")
        queues = [one for node in self.nodes for one in rows_of(*asked, self._port(node)) if one.get("root")]
        if not all(isinstance(one.get("drops"), int) for one in queues):
            raise NodesError(f"{' '.join(asked)} states no drops of a queue: install iproute2 5 or newer on this host")
        return sum(int(one["drops"]) for one in queues)

    def rdma(self) -> dict[str, int]:
        return {}

    def remove(self) -> None:
        for node in self.nodes:
            tool("ip", "netns", "del", self._name(node), check=False)
            if not self.direct:
                tool("ip", "link", "del", self._port(node), check=False)
        if not self.direct:
            tool("ip", "link", "del", f"{self.prefix}b", check=False)
