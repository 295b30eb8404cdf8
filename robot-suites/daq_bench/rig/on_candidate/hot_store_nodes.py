"""Runs Redis servers for the hot store, and a plan's steps against them: `hot_store_nodes.py PLAN` (JSON). Prints {result} or {error}.

PLAN: {folder, network: loopback | namespaces, masters, replicas, clients, cluster, append_only, unix_socket, maxmemory_bytes,
node_timeout_ms, steps}.
Every server keeps its files below `folder`; with `namespaces` each server (nodeN) and each client (clientN) has a network namespace of
its own behind a bridge. Steps, in order, each with its entry in the result:
  {do: run, processes: [{name, argv, at, kill_after_s}], kill_node, kill_after_s, kill_from, timeout_s}
                                                        {endpoint}, {folder} and {socket} in argv; times of kills count from
                                                        when the file `kill_from` ({folder}) is there: the load has begun then
  {do: reference, value_bytes, seconds, sample_s, clients}   redis-benchmark's SET beside its GET, by the server's own counters
  {do: restart}                                         kill -9 of every server, and the same again on their files
  {do: replace, node}                                   a server that was killed comes back as a replica
All processes end with this program, however it ends; it first removes what an earlier one left that was killed outright."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from daq_bench.rig.on_candidate.network import namespaces
from daq_bench.rig.on_candidate.network.namespaces import NodesError, tool

UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "KILL", "--"]
READY_S = 30.0
PORT_IN_NAMESPACE = 6379
BUS_OFFSET = 10000
SUBNET = "198.18.0"  # RFC 2544: benchmarks between hosts
LETTERS = "hs"
BENCHMARK_KEYS = 10_000  # so that all keys are there after a moment, at any size


def server_program(folder: Path) -> Path:
    """redis-server, also where only redis-tools is installed: it is the same program under another name, and brings no service."""
    found = shutil.which("redis-server")
    if found:
        return Path(found)
    same = shutil.which("redis-check-rdb")
    if same is None or shutil.which("redis-benchmark") is None:
        raise NodesError("redis-server is not there: install redis-tools (or redis-server)")
    (folder / "redis-server").symlink_to(same)
    return folder / "redis-server"


class Network:
    """Namespaces behind a bridge, named after this process; nothing but names with `loopback`."""

    def __init__(self, kind: str, members: list[str]) -> None:
        self.kind, self.members = kind, members
        self.prefix = f"{LETTERS}{os.getpid()}"
        if kind == "namespaces":
            if os.geteuid() != 0:
                raise NodesError("network namespaces need root; use network: loopback")
            namespaces.remove_left_behind(LETTERS)

    def name(self, member: str) -> str:
        return f"{self.prefix}{member[0]}{member.removeprefix('node').removeprefix('client')}"

    def address(self, member: str) -> str:
        return f"{SUBNET}.{self.members.index(member) + 10}" if self.kind == "namespaces" else "127.0.0.1"

    def make(self) -> None:
        if self.kind != "namespaces":
            return
        bridge = f"{self.prefix}b"
        namespaces.add_bridge(bridge)
        for member in self.members:
            name = self.name(member)
            tool("ip", "netns", "add", name)
            namespaces.plug(name, name, bridge)
            namespaces.address(name, self.address(member))

    def enter(self, member: str | None) -> list[str]:
        if self.kind != "namespaces" or member is None:
            return []
        if member not in self.members:
            raise NodesError(f"there is no {member} among {', '.join(self.members)}")
        return namespaces.inside(self.name(member))

    def bytes_sent(self) -> int | None:
        """Returns the bytes that all members sent so far, as their ends of the bridge have received them."""
        if self.kind != "namespaces":
            return None
        files = [Path(f"/sys/class/net/{self.name(member)}/statistics/rx_bytes") for member in self.members]
        return sum(int(file.read_text(encoding="ascii")) for file in files)

    def remove(self) -> None:
        if self.kind != "namespaces":
            return
        for member in self.members:
            tool("ip", "netns", "del", self.name(member), check=False)
            tool("ip", "link", "del", self.name(member), check=False)
        tool("ip", "link", "del", f"{self.prefix}b", check=False)


def free_ports(number: int) -> list[int]:
    """Ports of loopback that are free together with the cluster's bus ports."""
    ports: list[int] = []
    while len(ports) < number:
        with socket.socket() as one, socket.socket() as bus:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            if port + BUS_OFFSET < 65536 and port not in ports:
                with contextlib.suppress(OSError):
                    bus.bind(("127.0.0.1", port + BUS_OFFSET))
                    ports.append(port)
    return ports


class Nodes:
    """The servers of a plan and the processes that use them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.folder = Path(plan["folder"])
        self.folder.mkdir(parents=True, exist_ok=False)
        self.total = plan["masters"] * (1 + plan.get("replicas", 0))
        members = [f"node{i}" for i in range(self.total)] + [f"client{i}" for i in range(plan.get("clients", 0))]
        self.network = Network(plan.get("network", "loopback"), members)
        self.program = server_program(self.folder) if self.total else None
        ports = free_ports(self.total)
        self.ports = [PORT_IN_NAMESPACE if self.network.kind == "namespaces" else port for port in ports]
        self.servers: dict[int, subprocess.Popen[bytes]] = {}
        self.others: list[subprocess.Popen[bytes]] = []

    def endpoint(self, node: int) -> str:
        return f"{self.network.address(f'node{node}')}:{self.ports[node]}"

    def socket(self, node: int) -> Path:
        return self.folder / f"node{node}" / "redis.sock"

    def up(self) -> None:
        self.network.make()
        for node in range(self.total):
            self.start(node)
        for node in range(self.total):
            self.wait_for(lambda node=node: self.ask(node, "ping") == "PONG", f"server {self.endpoint(node)}")
        if self.plan.get("cluster"):
            ends = [self.endpoint(node) for node in range(self.total)]
            replicas = ["--cluster-replicas", str(self.plan.get("replicas", 0))]
            tool(*self.network.enter("node0"), "redis-cli", "--cluster", "create", *ends, *replicas, "--cluster-yes")
            self.wait_for(self.cluster_is_whole, "the cluster")

    def start(self, node: int) -> None:
        plan, folder = self.plan, self.folder / f"node{node}"
        folder.mkdir(exist_ok=True)
        argv = [
            *self.network.enter(f"node{node}"),
            str(self.program),
            "--dir",
            str(folder),
            "--port",
            str(self.ports[node]),
        ]
        argv += [
            "--bind",
            self.network.address(f"node{node}"),
            "--protected-mode",
            "no",
            "--save",
            "",
            "--daemonize",
            "no",
        ]
        argv += ["--appendonly", "yes" if plan.get("append_only") else "no", "--appendfsync", "everysec"]
        if plan.get("unix_socket"):
            argv += ["--unixsocket", str(self.socket(node)), "--unixsocketperm", "700"]
        if plan.get("maxmemory_bytes"):
            argv += ["--maxmemory", str(plan["maxmemory_bytes"]), "--maxmemory-policy", "noeviction"]
        if plan.get("cluster"):
            argv += ["--cluster-enabled", "yes", "--cluster-node-timeout", str(plan.get("node_timeout_ms", 2000))]
            argv += ["--cluster-config-file", "nodes.conf", "--cluster-require-full-coverage", "no"]
        with (folder / "log").open("ab") as log:
            self.servers[node] = subprocess.Popen(
                [*UNTIL_PARENT_DIES, *argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def ask(self, node: int, *words: str) -> str:
        host, port = self.endpoint(node).split(":")
        return tool(
            *self.network.enter(f"node{node}"), "redis-cli", "-h", host, "-p", port, *words, check=False
        ).strip()

    def cluster_is_whole(self) -> bool:
        """Says whether every slot has an owner, and every owner its replicas, with all data."""
        replicas = self.plan.get("replicas", 0)
        for node in self.servers:
            if "cluster_state:ok" not in self.ask(node, "cluster", "info"):
                return False
            said = self.ask(node, "info", "replication")
            if "role:master" in said and said.count("state=online") < replicas:
                return False
            if "role:slave" in said and "master_link_status:up" not in said:
                return False
        return True

    def wait_for(self, ready: Any, what: str) -> None:
        deadline = time.monotonic() + READY_S
        while not ready():
            for node, server in self.servers.items():
                if server.poll() is not None:
                    log = (self.folder / f"node{node}" / "log").read_text(encoding="utf-8", errors="replace")
                    raise NodesError(f"server {self.endpoint(node)} ended: {log.strip()[-300:]}")
            if time.monotonic() > deadline:
                raise NodesError(f"{what} was not ready within {READY_S:.0f} s")
            time.sleep(0.1)

    def run(self, step: dict[str, Any]) -> dict[str, Any]:
        """Runs all processes at once; those with `kill_after_s` get kill -9 then, and so does the server `kill_node`."""
        ends = ",".join(self.endpoint(node) for node in sorted(self.servers))
        sent, started = self.network.bytes_sent(), time.monotonic()
        running = []
        for spec in step["processes"]:
            words = {"{endpoint}": ends, "{folder}": str(self.folder), "{socket}": str(self.socket(0))}
            argv = spec["argv"]
            for name, value in words.items():
                argv = [word.replace(name, value) for word in argv]
            error = tempfile.TemporaryFile()  # noqa: SIM115 - read at the end
            process = subprocess.Popen(
                [*UNTIL_PARENT_DIES, *self.network.enter(spec.get("at")), *argv],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=error, start_new_session=True,
            )  # fmt: skip
            self.others.append(process)
            running.append((spec, process, error))
        kills = [
            (spec["kill_after_s"], process) for spec, process, _ in running if spec.get("kill_after_s") is not None
        ]
        if step.get("kill_node") is not None:
            kills.append((step["kill_after_s"], self.servers.pop(step["kill_node"])))
        if step.get("kill_from"):
            self.wait_for_work(step, [process for _, process, _ in running], started + step["timeout_s"])
        begun = time.monotonic() if step.get("kill_from") else started
        for after_s, process in sorted(kills, key=lambda kill: kill[0]):
            time.sleep(max(0.0, begun + after_s - time.monotonic()))
            process.kill()
        said = []
        for spec, process, error in running:
            try:
                process.wait(max(0.1, started + step["timeout_s"] - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise NodesError(f"{spec['name']} did not end within {step['timeout_s']:g} s") from None
            error.seek(0)
            text = error.read().decode("utf-8", "replace").strip()[-2000:]
            said.append({"name": spec["name"], "returncode": process.returncode, "stderr": text})
        after = self.network.bytes_sent()
        moved = None if sent is None or after is None else after - sent
        return {"processes": said, "seconds": time.monotonic() - started, "network_bytes": moved}

    def wait_for_work(self, step: dict[str, Any], processes: list[subprocess.Popen[bytes]], deadline: float) -> None:
        """Waits until `kill_from` is there, or all processes ended: a store's room takes longer to reserve than some loads last."""
        file = Path(step["kill_from"].replace("{folder}", str(self.folder)))
        while not file.exists() and any(process.poll() is None for process in processes):
            if time.monotonic() > deadline:
                raise NodesError(
                    f"the load that is to be killed did not begin within {step['timeout_s']:g} s: no {file}"
                )
            time.sleep(0.01)

    def reference(self, step: dict[str, Any]) -> dict[str, Any]:
        """Operations per second of SET and of GET, of each sample, after a second that is not counted."""
        host, port = self.endpoint(0).split(":")
        common = [
            "-h",
            host,
            "-p",
            port,
            "-c",
            str(step["clients"]),
            "-d",
            str(step["value_bytes"]),
            "-r",
            str(BENCHMARK_KEYS),
        ]
        endless = ["-n", "1000000000", "-q"]
        fill = ["redis-benchmark", *common, "-t", "set", "-n", str(2 * BENCHMARK_KEYS), "-q"]
        tool(*fill)
        tools = [
            subprocess.Popen(
                [*UNTIL_PARENT_DIES, "redis-benchmark", *common, "-t", test, *endless],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            for test in ("set", "get")
        ]  # fmt: skip
        self.others += tools
        series: dict[str, list[float]] = {"set": [], "get": []}
        time.sleep(1.0)
        last_s, last = time.monotonic(), self.calls()
        started = last_s
        for tick in range(1, round(step["seconds"] / step["sample_s"]) + 1):
            time.sleep(max(0.0, started + tick * step["sample_s"] - time.monotonic()))
            now_s, now = time.monotonic(), self.calls()
            for name, samples in series.items():
                samples.append((now[name] - last[name]) / (now_s - last_s))
            last_s, last = now_s, now
        ended = [one for one in tools if one.poll() is not None]
        for one in tools:
            one.kill()
            one.wait()
        if ended:
            raise NodesError(f"redis-benchmark ended by itself with exit status {ended[0].returncode}")
        self.ask(0, "flushall")
        return {"samples_ops_per_s": series, "argv": ["redis-benchmark", *common, *endless]}

    def calls(self) -> dict[str, int]:
        said = self.ask(0, "info", "commandstats")
        found = {name: re.search(rf"cmdstat_{name}:calls=(\d+)", said) for name in ("set", "get")}
        return {name: int(match[1]) if match else 0 for name, match in found.items()}

    def restart(self) -> dict[str, Any]:
        for server in self.servers.values():
            server.kill()
            server.wait()
        for node in list(self.servers):
            self.start(node)
        for node in self.servers:
            self.wait_for(lambda node=node: self.ask(node, "ping") == "PONG", f"server {self.endpoint(node)}")
        if self.plan.get("cluster"):
            self.wait_for(self.cluster_is_whole, "the cluster")
        return {"restarted": len(self.servers)}

    def replace(self, step: dict[str, Any]) -> dict[str, Any]:
        self.start(step["node"])
        self.wait_for(self.cluster_is_whole, "the cluster with the server that came back")
        return {"replaced": step["node"]}

    def step(self, step: dict[str, Any]) -> dict[str, Any]:
        if step["do"] == "run":
            return self.run(step)
        if step["do"] == "reference":
            return self.reference(step)
        if step["do"] == "replace":
            return self.replace(step)
        return self.restart()

    def down(self) -> None:
        for process in [*self.others, *self.servers.values()]:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.network.remove()
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(arguments: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    plan = json.loads(arguments[0])
    try:
        nodes = Nodes(plan)
        try:
            nodes.up()
            said: dict[str, Any] = {"result": [nodes.step(step) for step in plan["steps"]]}
        finally:
            nodes.down()
    except (NodesError, OSError) as error:
        said = {"error": str(error)}
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
