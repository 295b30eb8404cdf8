"""The plans that the workload `lan` gives its nodes: the transfers and the settings' trials, as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.workloads.lan.analysis import ALL, TUNED, UNTUNED
from daq_bench.bench_model.workloads.lan.transfers import PROBE_LATENCY

Settings = list[dict[str, Any]]

IPERF_PORT, PERFTEST_PORT, PROBE_PORT = 5201, 18515, 5301
IPERF_BYTES_MAX = 1 << 20  # iperf3's own limit of a write
SAMPLES = 40  # iperf3's intervals within a transfer
TCP, RDMA = "tcp", "rdma"
TCP_OPERATION = "iperf3"
RDMA_OPERATIONS = ("ib_write_bw", "ib_read_bw", "ib_send_bw")
READ_LATENCY = "ib_read_lat"
MANY_TO_ONE, ALL_TO_ALL = "many to one", "all to all"
ONE_BUILDER, ALL_BUILDERS = "one builder", "all builders"


@dataclass(frozen=True)
class Flow:
    """One client with its server. `source` and `sink`: which nodes the payload goes between; the client runs at `at`."""

    name: str
    tool: str
    source: str
    sink: str
    at: str
    client: list[str]


@dataclass(frozen=True)
class Transfer:
    """Flows that run at the same time, and the settings in force meanwhile."""

    id: str
    kind: str
    topology: str
    operation: str
    message_bytes: int
    nodes: int
    seconds: float
    flows: tuple[Flow, ...]
    servers: tuple[tuple[str, str, list[str]], ...]  # (name, node, command)
    bidirectional: bool = False
    settings: Settings = field(default_factory=list)
    trial: dict[str, Any] | None = None
    shaped: bool = True


@dataclass(frozen=True)
class Tools:
    """Describes how load is made: over TCP, or with perftest on `devices` (RDMA device by node)."""

    netprobe: Path
    warm_up_s: float
    streams: int = 1
    devices: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        return RDMA if self.devices else TCP

    def bandwidth(
        self, topology: str, operation: str, size: int, seconds: float, bidirectional: bool = False, **more: Any
    ) -> Transfer:
        """From node0 to node1, and with `bidirectional` back at the same time."""
        both = "-bidirectional" if bidirectional else ""
        kind = more.pop("kind", "bandwidth")
        id_ = more.pop("id", f"{kind}-{topology}-{operation}{both}-{size}")
        if operation == TCP_OPERATION:
            flow, server = self._iperf(0, "node0", "node1", size, seconds, ["--bidir"] if bidirectional else [])
        else:
            flow, server = self._perftest(operation, size, seconds, ["-b"] if bidirectional else [])
        return Transfer(id_, kind, topology, operation, size, 2, seconds, (flow,), (server,), bidirectional, **more)

    def latency(self, topology: str, size: int, seconds: float, **more: Any) -> Transfer:
        """One message at a time between node0 and node1."""
        kind = more.pop("kind", "latency")
        if self.engine == RDMA:
            operation = READ_LATENCY
            flow, server = self._perftest(operation, size, seconds, [])
        else:
            operation = PROBE_LATENCY
            at = f"{{node1}}:{PROBE_PORT}"
            client = [
                str(self.netprobe), "latency", f"--peer={at}", f"--message-size={size}", f"--seconds={seconds:g}",
                f"--warm-up={self.warm_up_s:g}", "--json=-",
            ]  # fmt: skip
            flow = Flow("latency", "netprobe", "node0", "node1", "node0", client)
            server = ("answers", "node1", [str(self.netprobe), "serve", f"--listen={at}", "--connections=1"])
        id_ = more.pop("id", f"{kind}-{topology}-{operation.replace(' ', '-')}-{size}")
        return Transfer(id_, kind, topology, operation, size, 2, seconds, (flow,), (server,), **more)

    def crowd(self, operation: str, nodes: int, size: int, seconds: float) -> Transfer:
        """Many to one, or all to all, over TCP; of RDMA devices perftest knows pairs only."""
        names = [f"node{number}" for number in range(nodes)]
        sinks = names[:1] if operation == MANY_TO_ONE else names
        pairs = [(source, sink) for sink in sinks for source in names if source != sink]
        made = [self._iperf(index, source, sink, size, seconds, []) for index, (source, sink) in enumerate(pairs)]
        flows, servers = (tuple(part) for part in zip(*made, strict=True))
        id_ = f"crowd-{operation.replace(' ', '-')}"
        return Transfer(id_, "crowd", "switch", operation, size, nodes, seconds, flows, servers)

    def build(self, operation: str, nodes: int, size: int, in_flight: int, seconds: float) -> Transfer:
        """Event building: each builder asks all other nodes for an event's fragments at once."""
        names = [f"node{number}" for number in range(nodes)]
        builders = names[:1] if operation == ONE_BUILDER else names
        sources = names[1:] if operation == ONE_BUILDER else names
        servers = tuple(
            (
                f"fragments of {name}",
                name,
                [
                    str(self.netprobe), "serve", f"--listen={{{name}}}:{PROBE_PORT}",
                    f"--connections={sum(builder != name for builder in builders)}",
                ],
            )
            for name in sources
        )  # fmt: skip
        flows = tuple(
            Flow(f"builder-{name}", "netprobe", "others", name, name, [
                str(self.netprobe), "build", *(f"--source={{{one}}}:{PROBE_PORT}" for one in names if one != name),
                f"--fragment-size={size}", f"--in-flight={in_flight}", f"--seconds={seconds:g}", f"--warm-up={self.warm_up_s:g}",
                "--json=-",
            ])
            for name in builders
        )  # fmt: skip
        id_ = f"build-{operation.replace(' ', '-')}-{size}"
        return Transfer(id_, "build", "switch", operation, size, nodes, seconds, flows, servers)

    def _iperf(
        self, index: int, source: str, sink: str, size: int, seconds: float, options: Sequence[str]
    ) -> tuple[Flow, tuple[str, str, list[str]]]:
        port = str(IPERF_PORT + index)
        client = [
            "iperf3", "--client", f"{{{sink}}}", "--port", port, "--json", "--length", str(size), "--time", f"{max(1, round(seconds))}",
            "--omit", f"{max(1, round(self.warm_up_s))}", "--interval", f"{max(0.1, seconds / SAMPLES):g}", "--parallel", str(self.streams),
            *options,
        ]  # fmt: skip
        flow = Flow(f"{source}-to-{sink}", "iperf3", source, sink, source, client)
        return flow, (
            f"server of {flow.name}",
            sink,
            ["iperf3", "--server", "--one-off", "--port", port, "--bind", f"{{{sink}}}"],
        )

    def _perftest(
        self, tool: str, size: int, seconds: float, options: Sequence[str]
    ) -> tuple[Flow, tuple[str, str, list[str]]]:
        """-D counts from the first message; --margin leaves time off at either end unmeasured, so that it is added."""
        margin = max(1, round(self.warm_up_s))
        common = [
            "--size", str(size), "--duration", str(round(seconds) + 2 * margin), "--margin", str(margin), "--rdma_cm", "--CPU-freq",
            "--port", str(PERFTEST_PORT), *(["--report_gbits"] if tool in RDMA_OPERATIONS else []), *options,
        ]  # fmt: skip
        server = [tool, "--ib-dev", self.devices["node1"], *common]
        client = [tool, "--ib-dev", self.devices["node0"], *common, "{node1}"]
        source, sink = ("node1", "node0") if tool == "ib_read_bw" else ("node0", "node1")
        return Flow("transfer", tool, source, sink, "node0", client), ("server", "node1", server)


@dataclass(frozen=True)
class Setting:
    """One setting in its two states; empty `untuned`: as it is found. A setting that provisioning applied has an empty `tuned`."""

    id: str
    untuned: Settings
    tuned: Settings

    @staticmethod
    def of(one: dict[str, Any]) -> Setting:
        def state(key: str) -> Settings:
            return [{"id": one["id"], "value": str(one[key])}] if key in one else []

        return Setting(one["id"], state("untuned"), state("tuned"))


def experiments(settings: Sequence[Setting]) -> list[tuple[str, Settings, Settings]]:
    """(name, untuned, tuned): each setting tuned alone where all others are untuned, and all tuned together."""
    base = [entry for one in settings for entry in one.untuned]
    made = [
        (one.id, base, [entry for other in settings for entry in (one.tuned if other is one else other.untuned)])
        for one in settings
    ]
    return [*made, (ALL, base, [entry for one in settings for entry in one.tuned])]


def trials(
    settings: Sequence[Setting], pairs: int, tools: Tools, topology: str, sizes: tuple[int, int], seconds: float
) -> Iterator[Transfer]:
    """Every half of every pair, untuned first in odd pairs. All experiments of a pair follow one another: a drift meets all alike."""
    operation = TCP_OPERATION if tools.engine == TCP else RDMA_OPERATIONS[0]
    for pair in range(1, pairs + 1):
        untuned_first = pair % 2 == 1
        for name, untuned, tuned in experiments(settings):
            for side in (UNTUNED, TUNED) if untuned_first else (TUNED, UNTUNED):
                own: dict[str, Any] = {
                    "kind": "setting",
                    "settings": untuned if side == UNTUNED else tuned,
                    "shaped": False,
                }
                mark = {"experiment": name, "pair": pair, "side": side, "first": (side == UNTUNED) == untuned_first}
                stem = f"setting-{name.replace(' ', '-')}-{pair}-{side}"
                for quantity in ("bandwidth", "latency"):
                    trial = {**mark, "quantity": quantity}
                    if quantity == "bandwidth":
                        yield tools.bandwidth(
                            topology, operation, sizes[0], seconds, id=f"{stem}-bandwidth", trial=trial, **own
                        )
                    else:
                        yield tools.latency(topology, sizes[1], seconds, id=f"{stem}-latency", trial=trial, **own)
