"""The places of the workload `lan`: nodes in network namespaces of the candidate, or the candidate and its peers, each one host."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.on_candidate.network.meeting import NOT_MET
from daq_bench.workloads.lan.plan import Number, Settings
from daq_bench.workloads.lan.run.tools import Load

PROVISIONED = "tuning-before.json"  # values from before provisioning's tuning (ansible/module_utils/bench_state.py)
JOURNAL = "lan-settings.json"
OF_ROLES = ("cpu-", "nic-irq-affinity")
GRACE_S = 20.0
ATTEMPTS = 3
# Tools that did not come to a connection, and so measured nothing: perftest listens a second time between its set-up and its test, and a
# client that is quicker is rejected.
NOT_CONNECTED = re.compile(
    r"RDMA_CM_EVENT_(?:REJECTED|UNREACHABLE)|Unexpected CM event|rdma_client function|Couldn't connect|unable to connect to server"
)


def _did_not_connect(process: dict[str, Any]) -> bool:
    said = process["stdout"] + process["stderr"]
    return process["returncode"] != 0 and NOT_CONNECTED.search(said) is not None


@dataclass(frozen=True)
class Node:
    """One host. `interface` and `address`: its port on the data network."""

    name: str
    host: str
    machine: Machine
    interface: str
    address: str
    journal: str


@dataclass(frozen=True)
class LanSite:
    """`nodes` is empty with namespaces. `raw`: the tools' output in the bundle. `emulated`: rate (B/s) and queue (B) of a port."""

    machine: Machine
    nodes: tuple[Node, ...]
    netprobe: Path
    state: Path
    raw: Path
    emulated: dict[str, Any]

    @staticmethod
    def of(context: RunContext, emulated: dict[str, Any], reach: Callable[[str], Machine]) -> LanSite:
        """The site of a run. `reach` links to a peer, by its name in the inventory."""
        places = context.places
        declared = context.candidate.document.get("network")
        nodes: list[Node] = []
        if declared:
            own = (context.candidate.name, context.machine, declared["interface"], declared["address"])
            nodes.append(Node("node0", *own, str(places.state / JOURNAL)))
            for number, peer in enumerate(declared["peers"], start=1):
                name, host = f"node{number}", peer["host"]
                machine = context.machine.beside(name, partial(reach, host))
                journal = str(machine.places(host, context.bundle.path).state / JOURNAL)
                nodes.append(Node(name, host, machine, peer["interface"], peer["address"], journal))
        return LanSite(context.machine, tuple(nodes), places.netprobe, places.state, context.raw, emulated)

    @property
    def kind(self) -> str:
        return "hosts" if self.nodes else "namespaces"

    @property
    def count(self) -> int:
        return len(self.nodes) or int(self.emulated["nodes"])

    def describe(self) -> list[dict[str, Any]]:
        """Describes each port and its settings. Raises BenchError for one that is not there or not up."""
        if not self.nodes:
            program = self.machine.program("network_port", "{port}")
            port = self._call([{"name": "port", "at": "node0", "role": "client", "argv": program}])
            said = json.loads(port["processes"][0]["stdout"])["result"]
            said["rdma_devices"] = []  # of the host's ports, should one be called eth0 as well: namespaces have none
            return [{"node": f"node{number}", "host": "this machine", **said} for number in range(self.count)]
        self.try_settings([])
        return [
            {"node": node.name, "host": node.host, **node.machine.call("network_port", node.interface)}
            for node in self.nodes
        ]

    def try_settings(self, settings: Settings) -> list[dict[str, Any]]:
        """Puts settings into force for a moment; returns the records of the results."""
        return list(self._call([], settings)["settings"])

    def _call(self, processes: Sequence[dict[str, Any]], settings: Settings | None = None) -> dict[str, Any]:
        plan = {"processes": list(processes), "settings": settings or [], "timeout_s": 30.0}
        return self._run(plan, 2, "direct", True)[0]

    def carry_out(self, load: Load, warm_up_s: Number) -> dict[str, Any]:
        """The transfer's entry in results/lan.json; its tools' output is in the bundle then."""
        point = load.point
        processes = [
            {"name": one.name, "at": one.at, "role": role, "argv": one.argv}
            for role, programs in (("server", load.servers), ("client", load.clients))
            for one in programs
        ]
        plan = {
            "processes": processes,
            "settings": load.settings,
            "timeout_s": warm_up_s + load.seconds + GRACE_S,
            "window": {"after_s": max(1.0, warm_up_s), "seconds": load.seconds},
        }
        attempts, ended = 0, dict[str, Any]()
        while attempts == 0 or (attempts < ATTEMPTS and any(map(_did_not_connect, ended.values()))):
            attempts += 1
            said = self._run(plan, point.nodes, point.topology, point.trial is None)
            ended = {one["name"]: one for part in said for one in part["processes"]}
        flows = []
        for client in load.clients:
            file, done = f"lan-{point.id}-{client.name}.txt", ended[client.name]
            (self.raw / file).write_text(done["stdout"] + "\n", encoding="utf-8")
            about = {"name": client.name, "tool": client.tool, "from": client.source, "to": client.sink, "file": file}
            flows.append({**about, "returncode": done["returncode"], "stderr": done["stderr"], "argv": client.argv})
        return {
            **as_document(point),
            "attempts": attempts,
            "flows": flows,
            "window": said[0]["window"],
            "peers": {node.name: part["window"] for node, part in zip(self.nodes[1:], said[1:], strict=False)},
            "settings": [record for part in said for record in part["settings"]],
        }

    def _run(self, plan: dict[str, Any], nodes: int, topology: str, shaped: bool) -> list[dict[str, Any]]:
        """Returns each host's answer, node0 first. Raises BenchError with the first complaint."""
        limit_s = plan["timeout_s"] + 60
        if not self.nodes:
            network = {
                "kind": "namespaces",
                "topology": topology,
                "nodes": nodes,
                "rate_bytes_per_s": self.emulated["rate_bytes_per_s"] if shaped else None,
                "queue_bytes": self.emulated["queue_bytes"],
            }
            return [self.machine.call("network_nodes", json.dumps({**plan, "network": network}), timeout_s=limit_s)]
        used = self.nodes[:nodes]
        addresses = {node.name: node.address for node in used}

        def of(node: Node) -> dict[str, Any]:
            own = {
                **plan,
                "processes": [one for one in plan["processes"] if one["at"] == node.name],
                "settings": [one for one in plan["settings"] if "files" not in one or node is used[0]],
                "meet": bool(plan["processes"]),
                "journal": node.journal,
                "network": {"kind": "host", "node": node.name, "interface": node.interface, "addresses": addresses},
            }
            found: dict[str, Any] = node.machine.call("network_nodes", json.dumps(own), timeout_s=limit_s)
            return found

        with ThreadPoolExecutor(len(used)) as pool:
            asked = [(node, pool.submit(of, node)) for node in used]
        failed = [(node, error) for node, one in asked if (error := one.exception()) is not None]
        if failed:
            node, error = min(failed, key=lambda pair: NOT_MET in str(pair[1]))
            if not isinstance(error, BenchError):
                raise error
            raise BenchError(f"{node.host}: {error}") from None
        return [one.result() for _, one in asked]

    def provisioned(self) -> dict[str, dict[str, str]]:
        """{setting: {file: value before}} of what the roles applied to the candidate and that bears on a transfer; empty for nothing."""
        try:
            document = json.loads(self.machine.read_text(self.state / PROVISIONED))
        except BenchError:
            return {}
        return {name: saved["values"] for name, saved in document["settings"].items() if name.startswith(OF_ROLES)}
