"""Good runs of several nodes: a LAN whose ports carry the demanded rate, and a hot store that loses nothing."""

from __future__ import annotations

import base64
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from daq_bench.audit.good.case import Case
from msgspec import Struct

from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_model.documents.struct import Document, as_document, checked
from daq_bench.bench_model.documents.tools.daqwriter import Latency
from daq_bench.bench_model.documents.tools.hotstore import HotstoreBench, HotstoreSemantics, HotstoreVerify
from daq_bench.bench_model.documents.tools.netprobe import Cpu, FragmentSource, NetprobeBuild, NetprobeLatency
from daq_bench.bench_model.statistics.bootstrap import SAMPLES_MIN, mean_interval
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE
from daq_bench.bench_model.workloads.hot_store import figures as store
from daq_bench.bench_model.workloads.hot_store import runs as hot_store_runs
from daq_bench.rig.workloads.hot_store import workload as hot_store_workload
from daq_bench.rig.workloads.hot_store.plans import Tools
from daq_bench.workloads.lan import run
from daq_bench.workloads.lan.document import Point, Trial
from daq_bench.workloads.lan.model import analysis as lan_model
from daq_bench.workloads.lan.plan import PROBE_LATENCY, TUNED, Settings
from daq_bench.workloads.lan.run.site import LanSite
from daq_bench.workloads.lan.run.tools import Load

NODES, SHARE = 4, 1.3  # each port carries this share of the need
ONE_COUNT = base64.b64encode(
    struct.pack(">iiiiqqd", 0x1C849313, 2, 0, 3, 1, 3_600_000_000, 1.0) + bytes([1, 2])
).decode()  # an HdrHistogram in encoding V2 with one count


@dataclass
class _Site:
    """Nodes on which every tool reports a good network."""

    case: Case
    emulated: dict[str, Any]
    kind: str
    raw: dict[str, str] = field(default_factory=dict)
    netprobe: Path = Path("netprobe")

    @property
    def count(self) -> int:
        return int(self.emulated["nodes"]) if self.kind == "namespaces" else NODES

    def describe(self) -> list[dict[str, Any]]:
        return [_port(f"node{number}") for number in range(self.count)]

    def try_settings(self, settings: Settings) -> list[dict[str, Any]]:
        return [_record(one) for one in settings]

    def provisioned(self) -> dict[str, dict[str, str]]:
        return {}

    def carry_out(self, load: Load, warm_up_s: float) -> dict[str, Any]:
        rate = self.case.scenario.workloads["lan"]["need_size"] * self.case.scenario.scale * SHARE
        into = max(1, sum(one.sink == load.clients[0].sink for one in load.clients))
        flows = []
        for one in load.clients:
            file = f"lan-{load.point.id}-{one.name}.txt"
            self.raw[file] = self._said(load, rate / into)
            flows.append(
                {"name": one.name, "tool": one.tool, "from": one.source, "to": one.sink, "file": file}
                | {"returncode": 0, "stderr": "", "argv": []}
            )
        return {
            **as_document(load.point),
            "attempts": 1,
            "flows": flows,
            "window": _window(self.count, load.seconds, rate),
            "peers": {},
            "settings": [_record(one) for one in load.settings],
        }

    def _said(self, load: Load, rate: float) -> str:
        point, rate = load.point, self.case.around(rate)
        if point.kind == "build":
            return _built(point, load.seconds, rate, self.count - 1)
        if point.operation == PROBE_LATENCY:
            return _trip(point, load.seconds, self.case.around(30.0 if _tuned(point.trial) else 40.0))
        return _iperf(rate, load.seconds, point.bidirectional)


def _tuned(trial: Trial | None) -> bool:
    return trial is not None and trial.side == TUNED


def lan(case: Case) -> dict[str, Document]:
    """All answers that the workload asks its nodes for, and their analysis."""
    emulated = run.emulated_of(case.scenario)
    kind = "namespaces" if case.scenario.workloads["lan"].get("emulated") else "hosts"
    site = _Site(case, emulated, kind)
    found = run.Campaign(cast(LanSite, site), case.scenario, "switch", lambda *_: None).run()
    analysis = lan_model.document(found, site.raw.__getitem__, Tracks({}))
    return {"results/lan.json": found, "results/lan_analysis.json": analysis}


def _port(node: str) -> dict[str, Any]:
    empty: dict[str, Any] = {key: {} for key in ("pause", "pause_frames", "coalescing", "offloads")}
    return {
        "node": node,
        "host": node,
        "interface": "eth1",
        "operstate": "up",
        "speed": "100000Mb/s",
        "mtu_bytes": 9000,
        "txqueuelen": 1000,
        "driver": "imaginary",
        "firmware": "1",
        "pcie": {"speed": "16.0 GT/s PCIe", "width": "16"},
        "numa_node": "0",
        "rings": {"now": {}, "most": {}},
        "rdma_devices": [],
        **empty,
    }


def _record(setting: dict[str, Any]) -> dict[str, Any]:
    asked = str(setting.get("value", ""))
    return {
        "id": setting["id"],
        "at": "node0",
        "asked": asked,
        "before": "",
        "read_back": asked,
        "held": True,
        "restored": True,
        "status": "applied",
        "detail": "",
    }


def _window(nodes: int, seconds: float, rate: float) -> dict[str, Any]:
    """A window in which one of two CPUs is busy for half of the time."""
    ticks = int(seconds * 50)

    def end(at_s: float, busy: int, received: int) -> dict[str, Any]:
        cpu0, cpu1 = [busy, 0, 0, busy, 0, 0, 0, 0], [0, 0, 0, 2 * busy, 0, 0, 0, 0]
        both = [one + other for one, other in zip(cpu0, cpu1, strict=True)]
        ports = {f"node{number}": {"rx_bytes": received} for number in range(nodes)}
        return {"utc_s": at_s, "cpu": {"cpu": both, "cpu0": cpu0, "cpu1": cpu1}, "ports": ports, "queue_drops": None}

    return {
        "ticks_per_s": 100,
        "begin": end(1000.0, 0, 0),
        "end": end(1000.0 + seconds, ticks, int(rate * seconds)),
    }


def _iperf(rate: float, seconds: float, both: bool) -> str:
    whole = {"bits_per_second": 8 * rate, "bytes": int(rate * seconds), "seconds": seconds, "retransmits": 0}
    end: dict[str, Any] = {"sum_sent": whole, "sum_received": whole, "sender_tcp_congestion": "cubic"}
    if both:
        end["sum_received_bidir_reverse"] = whole
    samples = [{"sum": {"bits_per_second": 8 * rate, "omitted": False}}] * 40
    return json.dumps({"start": {"version": "iperf 3.12", "tcp_mss_default": 8948}, "intervals": samples, "end": end})


def _spread_us(middle: float, count: int) -> Latency:
    high = 2 * middle
    return Latency("x", count, middle, middle, middle, middle, high, high, high, 2 * high, "ns", ONE_COUNT)


def _probed(seconds: float) -> dict[str, Any]:
    started, used = "2026-01-31T12:00:00Z", Cpu(0.1, 0.2)
    return {
        "schema_version": 1, "tool": "netprobe", "version": "1", "status": "complete", "started_utc": started, "seconds": seconds,
        "warm_up_s": 1.0, "measured_s": seconds, "cpu": used,
    }  # fmt: skip


def _trip(point: Point, seconds: float, us: float) -> str:
    size, count = point.message_bytes, 10**5
    said = NetprobeLatency(
        **_probed(seconds), command="latency", message_bytes=size, round_trips=count, segments_sent_again=0,
        round_trip_us=_spread_us(us, count),
    )  # fmt: skip
    return json.dumps(checked(said))


def _built(point: Point, seconds: float, rate: float, sources: int) -> str:
    events = int(rate * seconds / point.message_bytes / sources)
    times = _spread_us(10.0, events)
    said = NetprobeBuild(
        **_probed(seconds), command="build", fragment_bytes=point.message_bytes, in_flight=4, events=events, event_us=times,
        sources=[FragmentSource(f"node{number}", events, 0, times) for number in range(sources)],
    )  # fmt: skip
    return json.dumps(checked(said))


def hot_store(case: Case) -> dict[str, Document]:
    """Four times the rate of Redis, at every size; every row of the semantics passes, and no kill loses anything."""
    nodes = _Store(case)
    runs = nodes.run()
    return {
        "results/hot_store_runs.json": runs,
        "results/hot_store.json": hot_store_runs.document(runs, nodes.said.__getitem__),
    }


class _Store(hot_store_workload.Campaign):
    """The workload on nodes of which every program reports a good hot store. `said`: the documents that the programs leave."""

    def __init__(self, case: Case) -> None:
        tools = Tools(Path("hotstore"), Path("/raw"), Path("/memory"))
        site: Any = SimpleNamespace(tools=tools, scratch=Path("/data"), raw=Path("/raw"), keep=self._kept)
        site.kept, site.carry_out = self._kept, lambda _: [{"network_bytes": 0}]
        own, scenario = case.plan("hot_store").parameters, case.scenario
        super().__init__(site, own, scenario.repetitions, scenario.seed, lambda *_: None)
        self._case, self._samples = case, int(own["seconds_per_point"] / store.SAMPLE_S)
        self.said: dict[str, Any] = {}

    def _kept(self, name: str, kind: type[Struct] = HotstoreBench) -> Any:
        if kind is HotstoreSemantics:
            rows = [{"id": one, "text": one, "outcome": "passed", "detail": ""} for one in store.SEMANTICS]
            self.said[name] = {"rows": rows}
        elif kind is HotstoreVerify:
            nothing = dict.fromkeys(("missing", "corrupt", "came_back", "removed_twice", "removed"), 0)
            least = self.parameters["kills"]["acknowledged_min"]
            self.said[name] = {**nothing, "acknowledged": 2 * least, "promise": "power loss"}
        else:
            slow = 3e5 if "-target-" in name or "-clients-" in name else 4e5
            rate = 1e4 if "-producer-" in name or "-consumer-" in name else slow
            self.said[name] = {**_bench(self._case, rate, self._samples), "returned_events": 100}
        return SimpleNamespace(returned_events=100)

    def _redis_run(self, name: str, value_bytes: int, seconds: float) -> None:
        rates = {key: _steady(self._case, 1e5, self._samples) for key in store.SIDES.values()}
        self.said[name] = {"samples_ops_per_s": rates}

    def _remove_target_store(self) -> None:
        """Does nothing: there is none."""

    def _scale(self, deployment: str, nodes: int) -> dict[str, Any]:
        told = 10**6 * nodes * (11 if deployment == "base" else 22)
        return {**super()._scale(deployment, nodes), "network_bytes": told}


def _steady(case: Case, rate: float, count: int) -> list[float]:
    """Samples that look as independent as they are: now and then chance makes a short series resemble itself, and it has no interval."""
    drawn = (case.series(rate, count) for _ in range(100))
    return next(
        one for one in drawn if count < SAMPLES_MIN or mean_interval(one, CONFIDENCE, case.scenario.seed).interval
    )


def _bench(case: Case, rate: float, count: int) -> Document:
    times = {"p50": 2.0, "p99": 4.0, "p99_9": 8.0, "max": 16.0, "hdr": ONE_COUNT}
    side = {"latency_us": times, "waited_s": 0.0, "operations": int(rate * 10), "ops_per_s": rate}
    return {
        "status": "complete",
        "error": None,
        "corrupt": 0,
        **{name: {**side, "samples_ops_per_s": _steady(case, rate, count)} for name in store.SIDES},
        "cpu": {"us_per_operation": 2.0},
        "handover_ns": {"before": 40.0, "after": 41.0},
        "answers": {},
        "measured_s": 30.0,
        "promise": "process crash",
    }
