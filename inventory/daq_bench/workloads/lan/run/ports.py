"""Tries, before anything is changed, whether the nodes reach each other's ports over the data network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.on_candidate.network.meeting import PORT
from daq_bench.workloads.lan.run.tools import IPERF_PORT, PROBE_PORT

TRY_S = 20.0  # [P] the nodes begin some seconds apart, more on busy ones
LISTEN_S = 25.0  # one that began last still finds the others
FIREWALLD = ["systemctl", "is-active", "--quiet", "firewalld"]


def ports_of(nodes: int) -> list[int]:
    """The TCP ports that each of so many nodes has to accept. RDMA passes a firewall by."""
    return [*range(IPERF_PORT, IPERF_PORT + nodes * (nodes - 1)), PORT, PROBE_PORT]


def check_ports(scenario: Scenario, candidate: Candidate, machine: Machine, reach: Callable[[str], Machine]) -> None:
    """`reach` links to a peer by its name in the inventory. Raises RefusedError that names each closed port with the remedy."""
    declared = candidate.document.get("network")
    if declared is None:
        return
    own = (candidate.name, machine, declared["interface"], declared["address"])
    nodes = [own, *((one["host"], reach(one["host"]), one["interface"], one["address"]) for one in declared["peers"])]
    ports = ports_of(len(nodes))
    addresses = [address for *_, address in nodes]

    def tried(node: tuple[str, Machine, str, str]) -> list[dict[str, Any]]:
        others = [one for one in addresses if one != node[3]]
        asked = {"own": node[3], "ports": ports, "others": others, "try_s": TRY_S, "listen_s": LISTEN_S}
        return list(node[1].call("open_ports", json.dumps(asked)))

    with ThreadPoolExecutor(len(nodes)) as pool:
        closed = [(node[0], one) for node, said in zip(nodes, pool.map(tried, nodes), strict=True) for one in said]
    said = [_refusal(node, [one for one in closed if one[1]["address"] == node[3]]) for node in nodes]
    if any(said):
        raise RefusedError(f"{scenario.file}: the network cannot be measured: {'. '.join(filter(None, said))}")


def _refusal(node: tuple[str, Machine, str, str], closed: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """Why a node cannot be reached, and what opens it; empty where it can."""
    if not closed:
        return ""
    name, machine, interface, address = node
    ports = sorted({one["port"] for _, one in closed})
    sources, whys = (
        ", ".join(sorted(set(words))) for words in zip(*((host, one["why"]) for host, one in closed), strict=True)
    )
    what = f"{name} ({address}) cannot be reached from {sources} at TCP {', '.join(map(str, ports))}: {printable(whys)}"
    if machine.run(FIREWALLD, timeout_s=30).returncode != 0:
        return f"{what}. Open these ports on the way to it"
    wanted = " ".join(f"--add-port={port}/tcp" for port in ports)
    return (
        f"{what}. firewalld runs there: `firewall-cmd --zone=$(firewall-cmd --get-zone-of-interface={interface}) {wanted}` opens them "
        "until its next start; the bench changes no firewall"
    )
