"""CPU use and memory bandwidth of exactly the measured stretch of a transfer, from the counters at its two ends. Pure."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.bundle.telemetry_tracks import Tracks

Document = dict[str, Any]

BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq of /proc/stat
IN_KERNEL = (2, 5, 6)
STEAL = 7
STARVED = 0.95  # [P] a CPU that is busier than this has nothing left for more load


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
