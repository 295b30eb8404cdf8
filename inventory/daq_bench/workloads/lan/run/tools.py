"""The programs that make a transfer of the workload `lan`, as command lines: iperf3, perftest, netprobe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from msgspec import UNSET

from daq_bench.workloads.lan.document import Point
from daq_bench.workloads.lan.plan import (
    IPERF,
    MANY_TO_ONE,
    ONE_BUILDER,
    PROBE_LATENCY,
    RDMA,
    RDMA_BANDWIDTHS,
    TCP,
    Asked,
    Number,
    Settings,
)

IPERF_PORT, PERFTEST_PORT, PROBE_PORT = 5201, 18515, 5301
SAMPLES = 40  # iperf3's intervals within a transfer


@dataclass(frozen=True)
class Process:
    """A program at one node. A word `{node1}` becomes that node's address."""

    name: str
    at: str
    argv: Sequence[str]


@dataclass(frozen=True)
class Client(Process):
    """`source` and `sink`: which nodes its payload goes between."""

    tool: str
    source: str
    sink: str


@dataclass(frozen=True)
class Load:
    """One transfer: clients that run at the same time, their servers, and the settings in force meanwhile."""

    point: Point
    seconds: Number
    clients: Sequence[Client]
    servers: Sequence[Process]
    settings: Settings = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """One setting in its two states; empty `untuned`: as it is found. A setting that provisioning applied has an empty `tuned`."""

    id: str
    untuned: Settings
    tuned: Settings

    @staticmethod
    def of(asked: Asked) -> Setting:
        values = (asked.untuned, asked.tuned)
        states = [[] if one is UNSET else [{"id": asked.id, "value": str(one)}] for one in values]
        return Setting(asked.id, *states)


@dataclass(frozen=True)
class Tools:
    """Describes how load is made: over TCP, or with perftest on `devices` (RDMA device by node)."""

    netprobe: Path
    warm_up_s: Number
    streams: int = 1
    in_flight: int = 1
    devices: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        return RDMA if self.devices else TCP

    def load(self, point: Point, seconds: Number, settings: Settings | None = None) -> Load:
        names = [f"node{number}" for number in range(point.nodes)]
        if point.kind == "crowd":  # over TCP; perftest knows only pairs of RDMA devices
            sinks = names[:1] if point.operation == MANY_TO_ONE else names
            pairs = [(source, sink) for sink, source in product(sinks, names) if source != sink]
            made = [self._iperf(number, *pair, point, seconds) for number, pair in enumerate(pairs)]
        elif point.operation == IPERF:
            made = [self._iperf(0, "node0", "node1", point, seconds)]
        elif point.operation == PROBE_LATENCY:
            made = [self._trips(point, seconds)]
        elif point.kind != "build":
            made = [self._perftest(point, seconds)]
        else:
            builders = names[:1] if point.operation == ONE_BUILDER else names
            sources = names[1:] if point.operation == ONE_BUILDER else names
            clients = [self._builder(name, names, point, seconds) for name in builders]
            servers = [
                self._serves(f"fragments of {name}", name, sum(one != name for one in builders)) for name in sources
            ]
            return Load(point, seconds, clients, servers, settings or [])
        clients, servers = [client for client, _ in made], [server for _, server in made]
        return Load(point, seconds, clients, servers, settings or [])

    def _iperf(self, number: int, source: str, sink: str, point: Point, seconds: Number) -> tuple[Client, Process]:
        port = str(IPERF_PORT + number)
        argv = [
            "iperf3", "--client", f"{{{sink}}}", "--port", port, "--json", "--length", str(point.message_bytes),
            "--time", f"{max(1, round(seconds))}", "--omit", f"{max(1, round(self.warm_up_s))}",
            "--interval", f"{max(0.1, seconds / SAMPLES):g}", "--parallel", str(self.streams),
            *(["--bidir"] if point.bidirectional else []),
        ]  # fmt: skip
        client = Client(f"{source}-to-{sink}", source, argv, IPERF, source, sink)
        answers = ["iperf3", "--server", "--one-off", "--port", port, "--bind", f"{{{sink}}}"]
        return client, Process(f"server of {client.name}", sink, answers)

    def _perftest(self, point: Point, seconds: Number) -> tuple[Client, Process]:
        """-D counts from the first message; --margin leaves time off at either end unmeasured, so that it is added."""
        tool, margin = point.operation, max(1, round(self.warm_up_s))
        common = [
            "--size", str(point.message_bytes), "--duration", str(round(seconds) + 2 * margin), "--margin", str(margin),
            "--rdma_cm", "--CPU-freq", "--port", str(PERFTEST_PORT),
            *(["--report_gbits"] if tool in RDMA_BANDWIDTHS else []), *(["-b"] if point.bidirectional else []),
        ]  # fmt: skip
        there, here = ([tool, "--ib-dev", self.devices[node], *common] for node in ("node1", "node0"))
        source, sink = ("node1", "node0") if tool == "ib_read_bw" else ("node0", "node1")
        return Client("transfer", "node0", [*here, "{node1}"], tool, source, sink), Process("server", "node1", there)

    def _trips(self, point: Point, seconds: Number) -> tuple[Client, Process]:
        about = [f"--peer={{node1}}:{PROBE_PORT}", f"--message-size={point.message_bytes}"]
        client = Client("latency", "node0", self._probe("latency", about, seconds), "netprobe", "node0", "node1")
        return client, self._serves("answers", "node1", 1)

    def _builder(self, name: str, names: Sequence[str], point: Point, seconds: Number) -> Client:
        """Event building: each builder asks all other nodes for an event's fragments at once."""
        about = [f"--source={{{one}}}:{PROBE_PORT}" for one in names if one != name]
        about += [f"--fragment-size={point.message_bytes}", f"--in-flight={self.in_flight}"]
        return Client(f"builder-{name}", name, self._probe("build", about, seconds), "netprobe", "others", name)

    def _probe(self, command: str, about: Sequence[str], seconds: Number) -> list[str]:
        times = [f"--seconds={seconds:g}", f"--warm-up={self.warm_up_s:g}"]
        return [str(self.netprobe), command, *about, *times, "--json=-"]

    def _serves(self, name: str, node: str, connections: int) -> Process:
        listen = f"--listen={{{node}}}:{PROBE_PORT}"
        return Process(name, node, [str(self.netprobe), "serve", listen, f"--connections={connections}"])
