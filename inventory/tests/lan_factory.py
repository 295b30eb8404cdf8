"""results/lan.json of a run that could have been, with the tools' output beside it, in numbers to be worked out by hand."""

from __future__ import annotations

import json
from typing import Any

GBIT = 1.25e8
FIRST_S = 1000.0


def end(utc_s: float, busy: int = 0, received: int = 0, drops: int | None = None) -> dict[str, Any]:
    """Ticks of two CPUs, `busy` of 100 on cpu0 and none on cpu1."""
    cpu0, cpu1 = [busy, 0, 0, 100 - busy, 0, 0, 0, 0], [0, 0, 0, 100, 0, 0, 0, 0]
    if utc_s == FIRST_S:
        cpu0, cpu1 = [0] * 8, [0] * 8
    both = [a + b for a, b in zip(cpu0, cpu1, strict=True)]
    names = ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_errors", "tx_errors")
    ports = {node: {**dict.fromkeys(names, 0), "rx_bytes": received} for node in ("node0", "node1")}
    return {"utc_s": utc_s, "cpu": {"cpu": both, "cpu0": cpu0, "cpu1": cpu1}, "ports": ports, "queue_drops": drops}


def window(busy: int = 50, received: int = 10**8, drops: int | None = None) -> dict[str, Any]:
    return {
        "ticks_per_s": 100, "begin": end(FIRST_S, drops=None if drops is None else 0), "end": end(FIRST_S + 1, busy, received, drops),
    }  # fmt: skip


def iperf(gbits: float, back: float | None = None, again: int = 0) -> str:
    bits = gbits * 1e9
    end_: dict[str, Any] = {
        "sum_sent": {"seconds": 1.0, "bytes": round(bits / 8), "bits_per_second": bits, "retransmits": again},
        "sum_received": {"seconds": 1.0, "bytes": round(bits / 8), "bits_per_second": bits},
        "sender_tcp_congestion": "cubic",
    }
    if back is not None:
        end_["sum_received_bidir_reverse"] = {"bits_per_second": back * 1e9}
    samples = [{"sum": {"bits_per_second": bits * share, "omitted": False}} for share in (0.9, 1.0, 1.1)]
    return json.dumps({"start": {"version": "iperf 3.12", "tcp_mss_default": 1000}, "intervals": samples, "end": end_})


def spread_us(middle: float, high: float, most: float, count: int) -> dict[str, Any]:
    return {
        "definition": "x", "count": count, "min": middle, "mean": middle, "p50": middle, "p90": middle, "p99": high, "p99_9": high,
        "p99_99": high, "max": most, "hdr": "HISTFAAA", "hdr_unit": "ns",
    }  # fmt: skip


def probed(command: str, measured_s: float, **own: Any) -> str:
    return json.dumps({
        "schema_version": 1, "tool": "netprobe", "version": "1", "command": command, "status": "complete", "measured_s": measured_s,
        "started_utc": "2026-01-31T12:00:00Z", "seconds": measured_s, "warm_up_s": 1, "cpu": {"user_s": 0.1, "system_s": 0.2}, **own,
    })  # fmt: skip


def trip(size: int, us: float, count: int = 1000) -> str:
    latency = spread_us(us, 2 * us, 9 * us, count)
    return probed("latency", 1.0, message_bytes=size, round_trips=count, segments_sent_again=0, round_trip_us=latency)


def built(events: int, size: int, sources: int = 3) -> str:
    latency = spread_us(10.0, 40.0, 90.0, events)
    rows = [
        {"source": str(n), "fragments": events, "segments_sent_again": n, "fragment_us": latency}
        for n in range(sources)
    ]
    return probed("build", 2.0, fragment_bytes=size, in_flight=4, events=events, event_us=latency, sources=rows)


def record(**changes: Any) -> dict[str, Any]:
    return {
        "id": "mtu", "at": "node0", "asked": "9000", "before": "1500", "read_back": "9000", "held": True, "restored": True,
        "status": "applied", "detail": "", **changes,
    }  # fmt: skip


class Made:
    """The document, and the tools' output by file."""

    def __init__(self, kind: str = "namespaces", scale: float = 0.01) -> None:
        self.raw: dict[str, str] = {}
        ports = [
            {
                "node": f"node{n}", "host": "this machine", "interface": "eth0", "operstate": "up", "speed": "10000Mb/s", "mtu_bytes": 1500,
                "txqueuelen": 1000, "driver": "veth", "firmware": None, "pcie": {"speed": None, "width": None}, "numa_node": None,
                "pause": {}, "pause_frames": {}, "rings": {"now": {}, "most": {}}, "coalescing": {}, "offloads": {}, "rdma_devices": [],
            }
            for n in range(4)
        ]  # fmt: skip
        self.document: dict[str, Any] = {
            "schema_version": 1, "engine": "tcp", "scale": scale, "full_need_bytes_per_s": 64 * GBIT, "need_bytes_per_s": 64 * GBIT * scale,
            "network": {"kind": kind, "nodes": 4, "topologies": ["switch"], "port_bytes_per_s": 100 * GBIT * scale, "queue_bytes": 1000},
            "seconds_per_size": 1, "warm_up_s": 1, "streams": 1, "building": {"in_flight": 4}, "settings": {"pairs": 4, "seconds": 1},
            "ports": ports, "left_out": [], "transfers": [], "limits": [],
        }  # fmt: skip

    def add(
        self, id_: str, kind: str, operation: str, size: int, outputs: list[tuple[str, str, str]], **changes: Any
    ) -> dict[str, Any]:
        """`outputs`: (from, to, text) of each flow."""
        tool = {"many to one": "iperf3", "all to all": "iperf3", "iperf3": "iperf3"}.get(
            operation, operation.split()[0]
        )
        tool = "netprobe" if kind == "build" else tool
        flows = []
        for source, sink, text in outputs:
            file = f"lan-{id_}-{source}-{sink}.txt"
            self.raw[file] = text
            flows.append({
                "name": f"{source}-to-{sink}", "tool": tool, "from": source, "to": sink, "file": file, "returncode": 0, "stderr": "",
                "argv": [],
            })  # fmt: skip
        transfer = {
            "id": id_, "kind": kind, "topology": "switch", "operation": operation, "bidirectional": False, "message_bytes": size,
            "nodes": 2,
            "trial": None, "flows": flows, "window": window(), "settings": [], **changes,
        }  # fmt: skip
        self.document["transfers"].append(transfer)
        return transfer

    def trials(self, experiment: str, pairs: list[tuple[float, float, float, float]]) -> None:
        """(untuned Gbit/s, tuned Gbit/s, untuned us, tuned us) of each pair."""
        for number, (slow, fast, late, early) in enumerate(pairs, start=1):
            for side, rate, us in (("untuned", slow, late), ("tuned", fast, early)):
                mark = {
                    "experiment": experiment,
                    "pair": number,
                    "side": side,
                    "first": (side == "untuned") == (number % 2 == 1),
                }
                records = [record()] if side == "tuned" else []
                stem = f"setting-{experiment.replace(' ', '-')}-{number}-{side}"
                self.add(f"{stem}-bandwidth", "setting", "iperf3", 4096, [("node0", "node1", iperf(rate))],
                         trial={**mark, "quantity": "bandwidth"}, settings=records)  # fmt: skip
                self.add(f"{stem}-latency", "setting", "netprobe latency", 64, [("node0", "node1", trip(64, us))],
                         trial={**mark, "quantity": "latency"}, settings=records)  # fmt: skip


def whole() -> Made:
    """A run with everything, at a hundredth of the need (0.64 Gbit/s)."""
    made = Made()
    for size, gbits in ((4096, 0.5), (65536, 0.9)):
        made.add(f"bandwidth-{size}", "bandwidth", "iperf3", size, [("node0", "node1", iperf(gbits))])
    made.add("bandwidth-both", "bandwidth", "iperf3", 65536, [("node0", "node1", iperf(0.9, 0.8))], bidirectional=True)
    for number in range(1, 7):
        made.add(
            f"confirmation-{number}", "confirmation", "iperf3", 65536, [("node0", "node1", iperf(0.9 + number / 1000))]
        )
    for size in (64, 4096):
        made.add(f"latency-{size}", "latency", "netprobe latency", size, [("node0", "node1", trip(size, 20.0))])
    into = [(f"node{n}", "node0", iperf(rate, again=n)) for n, rate in ((1, 0.3), (2, 0.3), (3, 0.2))]
    made.add("crowd-many-to-one", "crowd", "many to one", 65536, into, nodes=4, window=window(drops=7))
    made.add("build-all", "build", "all builders", 100_000,
             [("others", f"node{n}", built(600, 100_000)) for n in range(4)], nodes=4)  # fmt: skip
    quiet = [(0.5, 1.0, 40.0, 20.0), (0.5, 1.02, 40.0, 20.4), (0.5, 0.98, 40.0, 19.8), (0.5, 1.01, 40.0, 20.1)]
    made.trials("mtu", quiet)
    made.trials("all together", quiet)
    return made
