"""One transfer over a network: `network_nodes.py PLAN` (JSON). Prints {result} or {error}.

PLAN: {network, settings, processes, window: {after_s, seconds} | null, timeout_s, journal}.
network: {kind: namespaces, topology: direct | switch, nodes, rate_bytes_per_s | null, queue_bytes}: nodes of its own, each a network
namespace with the port eth0, two of them wired together or all behind a bridge whose ports have that rate and queue; or {kind: host, node,
interface, addresses: {node: address}}: this machine's own port.
settings: {id, value} of every port, or {id, files: {path: value}}; in force for this one transfer and put back however it ends, a kill
included: what was there before is in `journal` first, and the next start puts it back.
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
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

UNTIL_PARENT_DIES = ["setpriv", "--pdeathsig", "KILL", "--"]
SUBNET = "198.18.1"  # RFC 2544: benchmarks between hosts
OURS = re.compile(r"ln(\d+)(b|n\d+|p\d+)")
BURST_S = 0.001  # of a shaper: so much may leave at once
BURST_MIN_BYTES = 256 << 10  # one segment of the largest size that a kernel without real hardware passes on
MEETING_PORT = 5300
MEETING_S_MAX = 45.0  # a port whose rings or MTU were changed may take seconds to come up again
LISTENING_S_MAX = 15.0
UNSEEN_S = 2.5  # for RDMA listeners where iproute2's `rdma` cannot show them
LISTEN = "0A"  # state in /proc/net/tcp
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COUNTERS = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors")
INFINIBAND = Path("/sys/class/infiniband")
RDMA_COUNTERS = {"rdma_rx_bytes": "port_rcv_data", "rdma_tx_bytes": "port_xmit_data"}
RDMA_WORD_BYTES = 4  # these two count octets divided by 4 (Linux, Documentation/ABI/stable/sysfs-class-infiniband)
FEATURES = {"tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload", "gro": "generic-receive-offload"}
RINGS = {"rx-ring": ("rx", "RX"), "tx-ring": ("tx", "TX")}
SYSFS = {"mtu": "mtu", "txqueuelen": "tx_queue_len"}
COALESCING = {"rx-usecs": "rx-usecs", "adaptive-rx": "adaptive-rx"}
PAUSES = {"rx-pause": ("rx", "RX"), "tx-pause": ("tx", "TX")}


NOT_MET = "the nodes did not meet:"  # another node's own error says more


class NodesError(Exception):
    """What could not be run, for {error}."""


def tool(*argv: str, check: bool = True) -> str:
    if shutil.which(argv[0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
        raise NodesError(f"{argv[0]} is not there: install iperf3, ethtool and iproute2 on this host")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    if check and done.returncode != 0:
        raise NodesError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip() or 'failed'}")
    return done.stdout


class Host:
    """This machine's own port; other nodes are elsewhere and have addresses only."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.node, self.interface, self.addresses = plan["node"], plan["interface"], plan["addresses"]
        self.ports = [(self.node, self.interface)]
        self.counters: Path | None = None

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
        self.counters = rdma_counters(self.interface)

    def inside(self, node: str) -> list[str]:
        return []

    def remove(self) -> None:
        """Nothing was made."""

    def queue_drops(self) -> int | None:
        return None

    def meet(self) -> None:
        """Returns at the same moment on all hosts: each tells node0 that it is ready, and is told when all are."""
        deadline = time.monotonic() + MEETING_S_MAX
        others = sorted(set(self.addresses) - {"node0"})
        where = (self.addresses["node0"], MEETING_PORT)
        if self.node != "node0":
            with self._reach(where, deadline) as link:
                link.sendall(f"{self.node}\n".encode())
                link.settimeout(max(0.1, deadline - time.monotonic()))
                try:
                    said = link.recv(16)
                except OSError as error:
                    raise NodesError(f"{NOT_MET} node0 did not say when to begin: {error}") from None
                if said != b"go\n":
                    raise NodesError(f"{NOT_MET} node0 ended before the transfer")
            return
        family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        with contextlib.ExitStack() as stack:
            try:
                server = stack.enter_context(socket.create_server(where, family=family))
            except OSError as error:
                raise NodesError(
                    f"{where[0]}, TCP port {where[1]}: {error.strerror}. Correct network.address in the inventory, or free the port"
                ) from None
            links: dict[str, socket.socket] = {}
            while set(links) != set(others):
                try:
                    server.settimeout(max(0.1, deadline - time.monotonic()))
                    link = stack.enter_context(server.accept()[0])
                    link.settimeout(2.0)
                    with contextlib.suppress(OSError):  # a stranger who says nothing, or hangs up
                        name = link.recv(64).decode("ascii", "replace").strip()
                        if name in others:
                            links[name] = link
                except (TimeoutError, socket.timeout):
                    late = ", ".join(sorted(set(others) - set(links)))
                    raise NodesError(f"{NOT_MET} {late} was not ready within {MEETING_S_MAX:g} s") from None
            for name in others:
                links[name].sendall(b"go\n")

    def _reach(self, where: tuple[str, int], deadline: float) -> socket.socket:
        while True:
            try:
                return socket.create_connection(where, timeout=2.0)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise NodesError(
                        f"{NOT_MET} node0 ({where[0]}, TCP port {where[1]}) cannot be reached over the data network: {error}. Open the port"
                    ) from None
                time.sleep(0.05)

    def rdma(self) -> dict[str, int]:
        """Bytes so far through the port's RDMA device; empty without one, and for one that does not count (soft RoCE)."""
        with contextlib.suppress(OSError, ValueError):
            if self.counters is not None:
                return {
                    name: RDMA_WORD_BYTES * int((self.counters / file).read_text(encoding="ascii"))
                    for name, file in RDMA_COUNTERS.items()
                }
        return {}


class Namespaces:
    """Nodes of our own, named after this process. Ports are shaped on both sides, so that a switch's has a queue that can overflow."""

    def __init__(self, plan: dict[str, Any]) -> None:
        if os.geteuid() != 0:
            raise NodesError(
                "network namespaces need root: run the bench as root, or give the candidate a network with peers"
            )
        self.plan, self.prefix = plan, f"ln{os.getpid()}"
        self.nodes = [f"node{number}" for number in range(plan["nodes"])]
        self.addresses = {node: f"{SUBNET}.{10 + number}" for number, node in enumerate(self.nodes)}
        self.direct = plan["topology"] == "direct"
        if self.direct and len(self.nodes) != 2:
            raise NodesError(f"{len(self.nodes)} nodes cannot be wired together directly: give two")
        self.ports = [(node, "eth0") for node in self.nodes]
        names = re.findall(r"^(\S+)", tool("ip", "netns", "list", check=False), re.MULTILINE)
        links = re.findall(r"^\d+: ([^:@]+)", tool("ip", "-o", "link"), re.MULTILINE)
        for name in [*names, *links]:  # what a process left that was killed outright
            match = OURS.fullmatch(name)
            if match and not Path(f"/proc/{match[1]}").exists():
                tool("ip", *(["netns", "del"] if name in names else ["link", "del"]), name, check=False)

    def _name(self, node: str) -> str:
        return f"{self.prefix}n{node[4:]}"

    def inside(self, node: str) -> list[str]:
        if node not in self.addresses:
            raise NodesError(f"there is no {node} among {', '.join(self.nodes)}")
        return ["ip", "netns", "exec", self._name(node)]

    def make(self) -> None:
        for node in self.nodes:
            tool("ip", "netns", "add", self._name(node))
        if self.direct:
            first, second = (self._name(node) for node in self.nodes)
            tool("ip", "link", "add", "eth0", "netns", first, "type", "veth", "peer", "name", "eth0", "netns", second)
        else:
            tool("ip", "link", "add", f"{self.prefix}b", "type", "bridge")
            tool("ip", "link", "set", f"{self.prefix}b", "up")
        for node in self.nodes:
            if not self.direct:
                port = self._port(node)
                tool("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", self._name(node))
                tool("ip", "link", "set", port, "master", f"{self.prefix}b", "up")
                self._shape([], port)
            tool(*self.inside(node), "ip", "address", "add", f"{self.addresses[node]}/24", "dev", "eth0")
            tool(*self.inside(node), "ip", "link", "set", "eth0", "up")
            tool(*self.inside(node), "ip", "link", "set", "lo", "up")
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
        """Packets that the switch's ports had no room for, so far; None without a switch."""
        if self.direct:
            return None
        said = [json.loads(tool("tc", "-s", "-j", "qdisc", "show", "dev", self._port(node))) for node in self.nodes]
        return sum(int(one["drops"]) for queues in said for one in queues if one.get("root"))

    def rdma(self) -> dict[str, int]:
        return {}

    def remove(self) -> None:
        for node in self.nodes:
            tool("ip", "netns", "del", self._name(node), check=False)
            if not self.direct:
                tool("ip", "link", "del", self._port(node), check=False)
        if not self.direct:
            tool("ip", "link", "del", f"{self.prefix}b", check=False)


def rdma_counters(interface: str) -> Path | None:
    """The folder of counters of the first device port that has an address (GID) of this interface. There are up to 1024 entries to read."""
    for entry in INFINIBAND.glob("*/ports/*/gid_attrs/ndevs/*"):
        with contextlib.suppress(OSError):  # an entry without an address cannot be read
            if entry.read_text(encoding="ascii").strip() == interface:
                return entry.parents[2] / "counters"
    return None


def field(text: str, name: str, section: str = "") -> str | None:
    """The value of `name:` in what ethtool prints, behind `section` if one is named; None where it has none."""
    part = text.partition(section)[2] if section else text
    match = re.search(rf"^{re.escape(name)}:\s*(\S+)", part, re.MULTILINE)
    return match[1] if match and match[1] != "n/a" else None


def read_setting(where: list[str], port: str, name: str) -> str | None:
    """What is in force; None where the port has no such setting."""
    if name in SYSFS:
        return tool(*where, "cat", f"/sys/class/net/{port}/{SYSFS[name]}").strip()
    if name in FEATURES:
        return field(tool(*where, "ethtool", "-k", port, check=False), FEATURES[name])
    if name in RINGS:
        return field(tool(*where, "ethtool", "-g", port, check=False), RINGS[name][1], "Current hardware settings:")
    if name in COALESCING:
        said = tool(*where, "ethtool", "-c", port, check=False)
        if name == "adaptive-rx":
            match = re.search(r"^Adaptive RX: (on|off)\b", said, re.MULTILINE)
            return match[1] if match else None
        return field(said, COALESCING[name])
    if name in PAUSES:
        return field(tool(*where, "ethtool", "-a", port, check=False), PAUSES[name][1])
    raise NodesError(f"there is no setting {name}: correct it in the scenario")


def write_setting(where: list[str], port: str, name: str, value: str) -> None:
    if name in SYSFS:
        tool(*where, "ip", "link", "set", "dev", port, name, value)
    elif name in FEATURES:
        tool(*where, "ethtool", "-K", port, name, value)
    else:
        letter = "-G" if name in RINGS else "-C" if name in COALESCING else "-A"
        word = COALESCING[name] if name in COALESCING else (RINGS.get(name) or PAUSES[name])[0]
        tool(*where, "ethtool", letter, port, word, value)


def resolved(where: list[str], port: str, name: str, value: str) -> str:
    """`max` of a ring is what the card can have."""
    if value != "max" or name not in RINGS:
        return value
    return field(tool(*where, "ethtool", "-g", port, check=False), RINGS[name][1], "Pre-set maximums:") or value


class Settings:
    """What is to be in force for this transfer. A record for each: {id, at, asked, before, read_back, held, restored, status, detail}."""

    def __init__(self, network: Host | Namespaces, asked: list[dict[str, Any]], journal: Path | None) -> None:
        self.network, self.asked, self.journal = network, asked, journal
        self.records: list[dict[str, Any]] = []
        self.undo: list[tuple[dict[str, Any], list[Any]]] = []  # record, and the words for `_put`
        if journal is not None and journal.exists():
            for words in json.loads(journal.read_text(encoding="utf-8")):
                self._put(*words)
            journal.unlink()

    def _put(self, place: str, name: str, value: str) -> None:
        if place.startswith("/"):
            Path(place).write_text(value, encoding="utf-8")
        else:
            write_setting([], place, name, value)

    def apply(self) -> None:
        for one in self.asked:
            for path, value in one.get("files", {}).items():
                self._one(
                    one["id"],
                    "host",
                    [],
                    path,
                    str(value),
                    lambda path=path: Path(path).read_text(encoding="utf-8").strip(),
                )
            if "value" in one:
                for node, port in self.network.ports:
                    where = self.network.inside(node)
                    read = lambda where=where, port=port, name=one["id"]: read_setting(where, port, name)  # noqa: E731
                    self._one(one["id"], node, where, port, resolved(where, port, one["id"], str(one["value"])), read)
                if one["id"] == "mtu" and isinstance(self.network, Namespaces):
                    for port in self.network.switch_ports():
                        write_setting([], port, "mtu", str(one["value"]))
        for record in self.records:
            if record["status"] in ("applied", "unchanged"):
                record["read_back"] = record["read"]()
                if record["read_back"] != record["asked"]:
                    record.update(status="mismatch", detail=f"asked {record['asked']}, reads {record['read_back']}")

    def _one(self, name: str, at: str, where: list[str], place: str, value: str, read: Any) -> None:
        record: dict[str, Any] = {
            "id": name, "at": at, "place": place, "asked": value, "before": None, "read_back": None, "held": None, "restored": None,
            "status": "unsupported", "detail": f"{place} has no such setting", "read": read,
        }  # fmt: skip
        self.records.append(record)
        try:
            record["before"] = read()
        except OSError as error:
            record["detail"] = f"{place}: {error.strerror}"
        if record["before"] is None:
            return
        record.update(status="unchanged", detail="")
        if record["before"] == value:
            return
        self.undo.append((record, [place, name, record["before"]]))
        if self.journal is not None and isinstance(self.network, Host):
            self.journal.write_text(json.dumps([words for _, words in reversed(self.undo)]), encoding="utf-8")
        try:
            if place.startswith("/"):
                self._put(place, name, value)
            else:
                write_setting(where, place, name, value)
            record["status"] = "applied"
        except (NodesError, OSError) as error:
            record.update(status="refused", detail=str(error), read_back=record["before"])

    def look_again(self) -> None:
        """Whether they held until the transfer's end."""
        for record in self.records:
            if record["before"] is not None:
                record["held"] = record["read"]() == record["read_back"]

    def put_back(self) -> None:
        for record, (place, name, value) in reversed(self.undo):
            if isinstance(self.network, Host):
                with contextlib.suppress(NodesError, OSError):
                    self._put(place, name, value)
                record["restored"] = record["read"]() == value
            else:
                record["restored"] = True  # the port goes with its namespace
        if self.journal is not None and all(record["restored"] for record, _ in self.undo):
            self.journal.unlink(missing_ok=True)


def listens(pid: int) -> bool | None:
    """Whether the process has a TCP socket that listens, or an RDMA connection identifier that does; None: RDMA's cannot be seen."""
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
        shown = json.loads(tool("rdma", "-j", "resource", "show", "cm_id") or "[]")
    except (NodesError, ValueError):
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
