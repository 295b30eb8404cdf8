"""One transfer of the LAN: what its tools measured, its CPU use and memory bandwidth, and whether it counts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_model.documents.struct import Document, read
from daq_bench.bench_model.documents.tools.netprobe import NetprobeBuild, NetprobeLatency, Probe
from daq_bench.workloads.lan.model import iperf3, perftest
from daq_bench.workloads.lan.plan import GBIT, LATENCIES, PROBE_LATENCY, RDMA_BANDWIDTHS, READ_LATENCY

BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of /proc/stat
IN_KERNEL = (2, 5, 6)
STEAL = 7
STARVED = 0.95  # [P] a CPU that is busier than this has nothing left for more load
SAID_MAX = 200  # characters of a tool's words
Raw = Callable[[str], str]


def transfer(one: Document, raw: Raw, tracks: Tracks, need: float) -> Document:
    """The transfer's own words with what its tools measured."""
    keys = ("id", "kind", "topology", "operation", "bidirectional", "message_bytes", "nodes", "trial")
    cpu = cpu_of(one["window"])
    peers = {node: found for node, window in one.get("peers", {}).items() if (found := cpu_of(window)) is not None}
    base = {
        **{key: one[key] for key in keys}, "cpu": cpu, "cpu_of_peers": peers, "memory_bytes_per_s": memory_of(one["window"], tracks),
        "queue_drops": drops_of(one["window"]), "starved": False,
    }  # fmt: skip
    measured, reason = [], None
    for flow in one["flows"]:
        try:
            if flow["returncode"] != 0:
                raise ValueError(f"ended with exit status {flow['returncode']}: {_first_words(flow, raw)}")
            measured.append(
                {
                    "from": flow["from"],
                    "to": flow["to"],
                    **_measured(one["operation"], flow, raw(flow["file"]), one["message_bytes"]),
                }
            )
        except (BenchError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError) as error:
            reason = reason or f"{flow['name']}: {in_words(error)}"
    base |= summed(one, measured)
    if reason is None and not measured:
        reason = "nothing was measured"
    rate = base.get("port_bytes_per_s")
    where, busiest = _busiest(cpu, peers)
    if reason is None and rate is not None and rate < need and busiest >= STARVED:
        base["starved"] = True
        reason = (
            f"the load had no CPU left ({100 * busiest:.0f} % of the busiest one{where}), so that {rate / GBIT:.3g} Gbit/s say "
            "nothing about the port"
        )
    return {
        **base,
        "failed": reason is not None and not base["starved"],
        "admissible": reason is None,
        "reason": reason,
    }


def _busiest(cpu: Document | None, peers: dict[str, Document]) -> tuple[str, float]:
    """Returns the busiest CPU of all hosts: a receiver without a CPU left says as little about the port as a sender."""
    known = [(f" of {node}", one["busiest"]) for node, one in peers.items()]
    return max([("", cpu["busiest"] if cpu else 0.0), *known], key=lambda pair: pair[1])


def _first_words(flow: Document, raw: Raw) -> str:
    """iperf3 tells its error in its JSON, the others on stderr."""
    try:
        return str(strict(raw(flow["file"])).get("error") or flow["stderr"])[:200]
    except (ValueError, OSError, AttributeError):
        return flow["stderr"][:200] or "it said nothing"


def _measured(operation: str, flow: Document, text: str, message_bytes: int) -> Document:
    """Returns the figures that one tool measured; raises ValueError."""
    if flow["tool"] == "iperf3":
        found = iperf3.parse(text)
        samples = found.samples_bytes_per_s
        return {
            "bytes_per_s": found.bytes_per_s, "reverse_bytes_per_s": found.reverse_bytes_per_s, "sent_again": found.sent_again,
            "sent_again_share": found.sent_again_share, "congestion": found.congestion, "samples": len(samples),
            "least_bytes_per_s": min(samples, default=None), "most_bytes_per_s": max(samples, default=None),
        }  # fmt: skip
    if flow["tool"] in (*RDMA_BANDWIDTHS, READ_LATENCY):
        try:
            return _of_perftest(flow, text, message_bytes)
        except ValueError as error:
            tool = flow["tool"]
            raise ValueError(f"{tool} (version: `{tool} --version`, which its table does not tell): {error}") from None
    said = strict(text)
    if operation == PROBE_LATENCY:
        return _latency_of(read(said, NetprobeLatency, PROBE_LATENCY), message_bytes)
    return _building_of(read(said, NetprobeBuild, "netprobe build"))


def _of_perftest(flow: Document, text: str, message_bytes: int) -> Document:
    if flow["tool"] in RDMA_BANDWIDTHS:
        rate = perftest.parse_bandwidth(text, message_bytes).bytes_per_s
        return {
            "bytes_per_s": rate,
            "reverse_bytes_per_s": None,
            "sent_again": None,
            "sent_again_share": None,
            "samples": 1,
        }
    read = perftest.parse_latency(text, message_bytes)
    return {
        "n": read.messages,
        "latency_us": {"mean": read.mean_us, "p50": read.typical_us, "p99": read.p99_us, "max": read.max_us},
    }


def _latency_of(said: NetprobeLatency, message_bytes: int) -> Document:
    """Halves of the round trips."""
    _complete(said)
    if said.message_bytes != message_bytes or not said.round_trips:
        raise ValueError(
            f"{message_bytes} B were asked for; {said.round_trips} round trips of {said.message_bytes} B"[:SAID_MAX]
        )
    trip = said.round_trip_us
    halves = {"mean": trip.mean / 2, "p50": trip.p50 / 2, "p99": trip.p99 / 2, "max": trip.max / 2}
    return {"n": said.round_trips, "latency_us": halves}


def _building_of(said: NetprobeBuild) -> Document:
    _complete(said)
    if not said.events or not said.measured_s:
        raise ValueError("no event was built")
    fragments = sum(one.fragments for one in said.sources)
    time = said.event_us
    return {
        "events": said.events,
        "events_per_s": said.events / said.measured_s,
        "bytes_per_s": fragments * said.fragment_bytes / said.measured_s,
        "event_us": {"p50": time.p50, "p99": time.p99, "max": time.max},
        "sent_again": sum(one.segments_sent_again for one in said.sources),
        "slowest_source_us": max(one.fragment_us.p99 for one in said.sources),
    }


def _complete(said: Probe) -> None:
    if said.status != "complete":
        raise ValueError(f"it is {said.status}")


def summed(one: Document, measured: Sequence[Document]) -> Document:
    """Returns the figures of the whole transfer. `port_bytes_per_s`: into the fullest port, of the traffic compared with the need."""
    kind = one["kind"]
    if not measured:
        return {}
    if one["operation"] in LATENCIES:
        return {"n": measured[0]["n"], "latency_us": measured[0]["latency_us"]}
    rates = [flow["bytes_per_s"] for flow in measured]
    again = [flow["sent_again"] for flow in measured if flow.get("sent_again") is not None]
    result: Document = {
        "flows": list(measured),
        "total_bytes_per_s": sum(rates),
        "sent_again": sum(again) if again else None,
    }
    if kind in ("bandwidth", "confirmation", "setting"):
        reverse = measured[0]["reverse_bytes_per_s"]
        result["bytes_per_s"] = rates[0]
        result["reverse_bytes_per_s"] = reverse
        result["total_bytes_per_s"] = rates[0] + (reverse or 0.0)
        result["port_bytes_per_s"] = rates[0]
        result["counted_bytes_per_s"] = _counted(one, measured[0]["to"])
        return result
    into: dict[str, float] = {}
    for flow in measured:
        into[flow["to"]] = into.get(flow["to"], 0.0) + flow["bytes_per_s"]
    result["into"] = into
    result["port_bytes_per_s"] = min(into.values())
    result["fairness"] = jain(rates)
    shares = [flow["sent_again_share"] for flow in measured if flow.get("sent_again_share") is not None]
    result["sent_again_share"] = fmean(shares) if shares else None
    return result


def _counted(one: Document, node: str) -> float | None:
    """Returns the receiving port's count: for perftest the RDMA device's, where it counts, since its traffic bypasses the interface."""
    counters = ["rx_bytes"]
    if one["operation"] in RDMA_BANDWIDTHS:
        counters.insert(0, "rdma_rx_bytes")
    rates = [
        port_rate(window, node, counter)
        for counter in counters
        for window in (one["window"], *one.get("peers", {}).values())
    ]
    return next((rate for rate in rates if rate is not None), None)


def jain(rates: Sequence[float]) -> float | None:
    """Jain's index of fairness: 1 for equal rates, 1/n where one flow has everything (Jain, Chiu, Hawe 1984)."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


def cpu_of(window: Document | None) -> Document | None:
    """Shares 0 to 1 of all CPUs: `mean`, `kernel`, `steal`, of the busiest one `busiest` (steal included), and `per_cpu`."""
    if window is None:
        return None
    first, last = window["begin"]["cpu"], window["end"]["cpu"]
    grown = {
        name: [b - a for a, b in zip(first[name], ticks, strict=True)] for name, ticks in last.items() if name in first
    }
    shares = {name: _shares(ticks) for name, ticks in grown.items() if sum(ticks) > 0}
    whole = shares.get("cpu")
    own = {name[3:]: one for name, one in shares.items() if name != "cpu"}
    if whole is None or not own:
        return None
    return {
        "mean": whole[0],
        "kernel": whole[1],
        "steal": whole[2],
        "busiest": max(one[0] + one[2] for one in own.values()),
        "per_cpu": {name: one[0] for name, one in sorted(own.items(), key=lambda pair: int(pair[0]))},
        "seconds": window["end"]["utc_s"] - window["begin"]["utc_s"],
    }


def _shares(ticks: list[int]) -> tuple[float, float, float]:
    total = sum(ticks)
    return sum(ticks[i] for i in BUSY) / total, sum(ticks[i] for i in IN_KERNEL) / total, ticks[STEAL] / total


def memory_of(window: Document | None, tracks: Tracks) -> float | None:
    """B/s between all processors and their memory, mean of the samples within the window; None where nothing was collected in it."""
    if window is None:
        return None
    begin, end = window["begin"]["utc_s"], window["end"]["utc_s"]
    total = _sum_of(tracks, "total_bytes_per_s", begin, end)
    if total is not None:
        return total
    read, written = (_sum_of(tracks, name, begin, end) for name in ("read_bytes_per_s", "written_bytes_per_s"))
    return None if read is None or written is None else read + written


def _sum_of(tracks: Tracks, name: str, begin: float, end: float) -> float | None:
    means = [track.mean(begin, end) for track in tracks.of("memory_bandwidth", name).values()]
    known = [mean for mean in means if mean is not None]
    return sum(known) if known and len(known) == len(means) else None


def port_rate(window: Document | None, node: str, counter: str) -> float | None:
    """Growth per second of a port's counter over the window; headers count, since it is the port's own. None: it has no such counter."""
    ports = [window[end]["ports"].get(node, {}) for end in ("begin", "end")] if window else []
    if window is None or any(counter not in port for port in ports):
        return None
    first, last = (port[counter] for port in ports)
    seconds = window["end"]["utc_s"] - window["begin"]["utc_s"]
    return float((last - first) / seconds) if seconds > 0 else None


def drops_of(window: Document | None) -> int | None:
    """Packets that the emulated switch had no room for; None where its queues are not ours to read."""
    if window is None:
        return None
    first, last = window["begin"]["queue_drops"], window["end"]["queue_drops"]
    return None if first is None or last is None else last - first
