"""One transfer over a network: `network_nodes.py PLAN` (JSON). Prints {result} or {error}.

PLAN: {network, settings, processes, window: {after_s, seconds} | null, timeout_s, journal}.
network: {kind: namespaces, topology: direct | switch, nodes, rate_bytes_per_s | null, queue_bytes}: nodes of its own, each a network
namespace with the port eth0, two of them wired together or all behind a bridge whose ports have that rate and queue; or {kind: host, node,
interface, addresses: {node: address}}: this machine's own port.
settings: {id, value} of every port, or {id, files: {path: value}}; in force for this one transfer and put back however it ends, a kill
included: the first values are in `journal` before the change, and the next start puts them back.
processes: {name, at, argv, role: server | client}; {nodeN} in argv is that node's address, {port} its interface. Clients start when
all servers listen: with `meet` those of all hosts, which then begin at the same moment (a TCP connection each to node0 says so).
The result has every setting's read-back, each process' end and output, CPU ticks and port counters at both ends of the window. RDMA traffic
passes a real card's interface by: its device's own counters stand beside the interface's."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from daq_bench.rig.on_candidate.network.namespaces import NodesError, rows_of, tool
from daq_bench.rig.on_candidate.network.places import Host, Namespaces
from daq_bench.rig.on_candidate.network.settings import Settings

UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "KILL", "--"]
LISTENING_S_MAX = 15.0
UNSEEN_S = 2.5  # for RDMA listeners where iproute2's `rdma` cannot show them
LISTEN = "0A"  # state in /proc/net/tcp
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COUNTERS = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors")


def listens(pid: int) -> bool | None:
    """Says whether the process has a listening TCP socket or RDMA connection identifier; None: RDMA's cannot be seen."""
    try:
        own = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:  # it is on its way into its namespace, or has ended
        return False
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == LISTEN and f"socket:[{words[9]}]" in own:
                    return True
    if not any(path.startswith("/dev/infiniband/") for path in own):
        return False
    try:
        shown = rows_of("rdma", "-j", "resource", "show", "cm_id")
    except NodesError:
        return None
    return any(one.get("pid") == pid and one.get("state") == "LISTEN" for one in shown)


def cpu_ticks() -> dict[str, list[int]]:
    """user, nice, system, idle, iowait, irq, softirq, steal of all CPUs together (`cpu`) and of each."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    return {
        words[0]: [int(word) for word in words[1:9]] for words in map(str.split, lines) if words[0].startswith("cpu")
    }


class Transfer:
    """The processes of a plan."""

    def __init__(self, plan: dict[str, Any], network: Host | Namespaces) -> None:
        self.plan, self.network = plan, network
        self.running: list[tuple[dict[str, Any], subprocess.Popen[bytes], Any, Any]] = []

    def start(self, spec: dict[str, Any]) -> None:
        words = {**self.network.addresses, "port": dict(self.network.ports).get(spec["at"], "")}
        argv = [re.sub(r"\{(node\d+|port)\}", lambda match: words[match[1]], word) for word in spec["argv"]]
        if shutil.which(argv[0]) is None:
            raise NodesError(
                f"{argv[0]} is not there: install perftest (RDMA) or iperf3 on this host, or let provisioning do it"
            )
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
        process = subprocess.Popen(
            [*UNTIL_PARENT_DIES, *self.network.inside(spec["at"]), *argv],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        self.running.append((spec, process, out, err))

    def run(self) -> dict[str, Any]:
        servers = [spec for spec in self.plan["processes"] if spec["role"] == "server"]
        for spec in servers:
            self.start(spec)
        for spec, process, _, err in self.running:
            self._await(spec, process, err)
        if self.plan.get("meet") and isinstance(self.network, Host):
            self.network.meet()
        begin = time.monotonic()
        for spec in self.plan["processes"]:
            if spec["role"] == "client":
                self.start(spec)
        window = self._window(begin) if self.plan.get("window") else None
        deadline = begin + self.plan["timeout_s"]
        for spec, process, _, _ in self.running:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                if spec["role"] == "client":
                    raise NodesError(f"{spec['name']} did not end within {self.plan['timeout_s']:g} s") from None
                process.kill()
        said = [
            {"name": spec["name"], "at": spec["at"], "returncode": process.wait(), "stdout": text_of(out), "stderr": text_of(err)[-2000:]}
            for spec, process, out, err in self.running
        ]  # fmt: skip
        return {"processes": said, "window": window}

    def _await(self, spec: dict[str, Any], process: subprocess.Popen[bytes], err: Any) -> None:
        """Returns when the server listens. Raises NodesError."""
        since = time.monotonic()
        while True:
            if process.poll() is not None:
                raise NodesError(f"{spec['name']} ended at once: {text_of(err)[-300:] or 'it said nothing'}")
            found, waited_s = listens(process.pid), time.monotonic() - since
            if found or (found is None and waited_s > UNSEEN_S):
                return
            if waited_s > LISTENING_S_MAX:
                raise NodesError(f"{spec['name']} ({spec['argv'][0]}) does not listen after {LISTENING_S_MAX:g} s")
            time.sleep(0.02)

    def _window(self, begin: float) -> dict[str, Any]:
        asked = self.plan["window"]
        time.sleep(max(0.0, begin + asked["after_s"] - time.monotonic()))
        first = self._look()
        time.sleep(max(0.0, begin + asked["after_s"] + asked["seconds"] - time.monotonic()))
        return {"ticks_per_s": TICKS_PER_S, "begin": first, "end": self._look()}

    def _look(self) -> dict[str, Any]:
        ports = {}
        for node, port in self.network.ports:
            files = [f"/sys/class/net/{port}/statistics/{name}" for name in COUNTERS]
            values = tool(*self.network.inside(node), "cat", *files).split()
            ports[node] = {**dict(zip(COUNTERS, map(int, values))), **self.network.rdma()}
        return {"utc_s": time.time(), "cpu": cpu_ticks(), "ports": ports, "queue_drops": self.network.queue_drops()}

    def end(self) -> None:
        for _, process, _, _ in self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def text_of(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace")).strip()


def carry_out(plan: dict[str, Any]) -> dict[str, Any]:
    network: Host | Namespaces = (
        Host(plan["network"]) if plan["network"]["kind"] == "host" else Namespaces(plan["network"])
    )
    journal = Path(plan["journal"]) if plan.get("journal") else None
    transfer = Transfer(plan, network)
    try:
        network.make()
        settings = Settings(network, plan.get("settings", []), journal)
        try:
            settings.apply()
            said = transfer.run()
            settings.look_again()
        finally:
            transfer.end()
            settings.put_back()
    finally:
        network.remove()
    records = [
        {key: value for key, value in record.items() if key not in ("read", "place")} for record in settings.records
    ]
    return {**said, "settings": records}


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def answer(plan: str) -> dict[str, Any]:
    try:
        return {"result": carry_out(json.loads(plan))}
    except (NodesError, OSError) as error:
        return {"error": str(error)}


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, _stop)
    print(json.dumps(answer(sys.argv[1])))
