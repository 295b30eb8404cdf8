"""The 100 Gbit/s LAN (LHCb): bandwidth, latency, CPU, event building, settings, and the ports' properties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from daq_bench.bench_report.base.units import NONE, count, latency, significant
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.workloads.lan.document import CpuUse, Lan, LanAnalysis, MeasuredTransfer
from daq_bench.workloads.lan.report.figures import (
    bandwidth_figure,
    building_figure,
    crowd_label,
    gbit,
    latency_figure,
    settings_figure,
    share_text,
    size_text,
)

TITLE = "100 Gbit/s LAN for event building"
ENGINES = {
    "tcp": "TCP (iperf3, netprobe): not every node has an RDMA device at its port, or TCP was asked for",
    "rdma": "RDMA (perftest)",
}


def section(bundle: Bundle) -> Section | None:
    found, analysis = bundle.result("lan", Lan), bundle.result("lan_analysis", LanAnalysis)
    if found is None and "lan" not in bundle.run.scenario.workloads:
        return None
    if found is None or analysis is None:
        missing = "lan" if found is None else "lan_analysis"
        return Section("lan", TITLE, (Lacking(f"no result of the network (results/{missing}.json)."),))
    parts: list[Part] = [
        _words(found, analysis),
        _ports_table(found),
        bandwidth_figure(found, analysis) or Lacking("no point of the bandwidth against message size counts"),
        _bandwidth_table(analysis),
        latency_figure(found, analysis) or Lacking("no point of the latency against message size counts"),
        _latency_table(analysis),
        building_figure(found, analysis) or Lacking("no event building, and no streams of many nodes, that count"),
        _crowd_table(analysis),
        settings_figure(found, analysis) or Lacking("no pair of any setting"),
        _settings_table(analysis),
        _read_back_table(analysis),
    ]
    if analysis.notes:
        parts.append(" ".join(analysis.notes))
    return Section("lan", TITLE, tuple(parts))


def _words(found: Lan, analysis: LanAnalysis) -> str:
    need, judged = found.need_bytes_per_s, analysis.judged
    said = [f"Load: {ENGINES[found.engine]}. A port needs {gbit(need)}"]
    full = found.full_need_bytes_per_s
    said[0] += f", {found.scale:g} of {gbit(full)}." if need != full else "."
    shares = judged.port_share
    if shares:
        middle = sorted(shares)[len(shares) // 2]
        said.append(
            f"The candidate's port carried {gbit(middle * need)} (upper median of {len(shares)} repetitions at the largest message)."
        )
    building = judged.building_share
    if building:
        said.append(f"The slowest builder of all nodes took {gbit(min(building) * need)}.")
    held = judged.settings_not_held
    if held is not None:
        said.append(
            "Every tried setting read back as asked, held and went back."
            if not held
            else f"{count(held)} read-backs were NOT as asked."
        )
    return " ".join(said)


def _ports_table(found: Lan) -> Table:
    rows = []
    for port in found.ports:
        ring, pause, frames = port.rings.now, port.pause, port.pause_frames
        pcie = [str(port.pcie[key]) for key in ("speed", "width") if port.pcie.get(key)]
        rows.append((
            port.node, port.host, port.interface, port.speed or NONE, f"{port.driver or NONE} {port.firmware or ''}".strip(),
            NONE if port.mtu_bytes is None else count(port.mtu_bytes),
            f"{ring.get('RX') or NONE} / {ring.get('TX') or NONE}", f"{pause.get('RX') or NONE} / {pause.get('TX') or NONE}",
            count(sum(frames.values())) if frames else NONE,
            " x".join(pcie) or NONE, ", ".join(port.rdma_devices) or "none",
        ))  # fmt: skip
    heads = (
        "Node",
        "Host",
        "Port",
        "Speed",
        "Driver, firmware",
        "MTU, B",
        "Rings RX / TX",
        "Pause RX / TX",
        "Pause frames",
        "PCIe",
        "RDMA",
    )
    return Table(
        heads,
        "tttttnttntt",
        tuple(rows),
        "The ports as found. A dash: the port does not tell.",
        "lan-ports",
        frozenset(),
    )


def _odd(points: Sequence[MeasuredTransfer]) -> frozenset[int]:
    return frozenset(index for index, one in enumerate(points) if not one.admissible)


def _cpu(one: MeasuredTransfer, share: Callable[[CpuUse], float]) -> str:
    """Returns the candidate's CPU use and, behind a stroke, its peer's; the highest of many peers."""
    own = NONE if one.cpu is None else share_text(share(one.cpu))
    others = [share(peer) for peer in one.cpu_of_peers.values()]
    return f"{own} / {share_text(max(others))}" if others else own


def _mean(use: CpuUse) -> float:
    return use.mean


def _rate(value: float | None) -> str:
    return NONE if value is None else gbit(value)


def _bandwidth_table(analysis: LanAnalysis) -> Table:
    points = [*analysis.bandwidth, *analysis.confirmation]
    rows = []
    for one in points:
        both, memory, again = " (both ways)" if one.bidirectional else "", one.memory_bytes_per_s, one.sent_again
        rows.append((
            f"{one.operation}{both}", one.topology, size_text(one), _rate(one.total_bytes_per_s), _rate(one.counted_bytes_per_s),
            _cpu(one, _mean), _cpu(one, lambda use: use.busiest), _cpu(one, lambda use: use.steal),
            NONE if memory is None else f"{significant(memory / 1e9, 3)} GB/s", NONE if again is None else count(again), one.reason or "",
        ))  # fmt: skip
    heads = (
        "Tool",
        "Topology",
        "Message",
        "Goodput",
        "Into the port",
        "CPU",
        "Busiest CPU",
        "Stolen",
        "Memory",
        "Sent again",
        "Why masked",
    )
    caption = (
        "Bandwidth by message size, then the repetitions at the largest. Into the port: the receiving port's own counter, headers "
        "included. CPU: "
        "of all CPUs over exactly the measured stretch, of the candidate / of its peer (of several: the most); the busiest with what the "
        "hypervisor took."
    )
    return Table(heads, "ttnnnnnnnnt", tuple(rows), caption, "lan-bandwidth-table", _odd(points))


def _latency_table(analysis: LanAnalysis) -> Table:
    points, rows = analysis.latency, []
    for one in points:
        found = one.latency_us
        values = (found.mean, found.p50, found.p99, found.max) if found else (None,) * 4
        rows.append((
            one.operation, one.topology, size_text(one), NONE if one.n is None else count(one.n),
            *(NONE if value is None else latency(value) for value in values), _cpu(one, _mean), one.reason or "",
        ))  # fmt: skip
    heads = ("Tool", "Topology", "Message", "Messages", "Mean", "Median", "p99", "Highest", "CPU", "Why masked")
    return Table(heads, "ttnnnnnnnt", tuple(rows), "Latency by message size.", "lan-latency-table", _odd(points))


def _crowd_table(analysis: LanAnalysis) -> Table:
    points = [*analysis.crowd, *analysis.build]
    rows = []
    for one in points:
        into, p99 = one.into.values(), [flow.event_us.p99 for flow in one.flows if flow.event_us]
        again, drops, fairness = one.sent_again, one.queue_drops, one.fairness
        rows.append((
            crowd_label(one), f"{gbit(min(into))} to {gbit(max(into))}" if into else NONE, _rate(one.total_bytes_per_s),
            NONE if fairness is None else significant(fairness, 3), NONE if again is None else count(again),
            share_text(one.sent_again_share), NONE if drops is None else count(drops), latency(max(p99)) if p99 else NONE,
            _cpu(one, _mean), one.reason or "",
        ))  # fmt: skip
    heads = (
        "Load",
        "Into a node",
        "All together",
        "Fairness",
        "Sent again",
        "Share",
        "Switch drops",
        "Event p99",
        "CPU",
        "Why masked",
    )
    caption = (
        "Incast and event building. Fairness: Jain's index of the flows (of builders: among builders). Sent again: TCP segments. Switch "
        "drops: "
        "packets that the emulated switch had no room for. Event p99: from the request of an event's fragments to the last of them, the "
        "slowest "
        "builder."
    )
    return Table(heads, "tnnnnnnnnt", tuple(rows), caption, "lan-crowds", _odd(points))


def _settings_table(analysis: LanAnalysis) -> Table:
    rows: list[tuple[str, ...]] = []
    odd: set[int] = set()
    words = {"above": "higher", "below": "lower", "undecided": "not told apart"}
    for one in analysis.settings:
        cells: list[str] = [one.id]
        for found in (one.bandwidth, one.latency):
            ratio, ends = found.ratio, found.interval
            cells += [
                str(found.n),
                NONE if ratio is None else significant(ratio, 3),
                f"{significant(ends[0], 3)} to {significant(ends[1], 3)}" if ends else NONE,
                words[found.decision] if found.decision else found.reason or NONE,
            ]
            if found.masked:
                odd.add(len(rows))
        rows.append(tuple(cells))
    heads = ("Setting", "Pairs", "Bandwidth", "95 % CI", "Decision", "Pairs", "Latency", "95 % CI", "Decision")
    caption = "Tuned over untuned: each setting alone where all others are untuned, and all together."
    return Table(heads, "tnnnsnnns", tuple(rows), caption, "lan-settings-table", frozenset(odd))


def _read_back_table(analysis: LanAnalysis) -> Table:
    rows: list[tuple[str, ...]] = []
    odd: set[int] = set()
    held = {True: "yes", False: "NO", None: NONE}
    for record in analysis.tuned_settings:
        flags = (record.held, record.restored)
        if record.status not in ("applied", "unchanged", "unsupported") or False in flags:
            odd.add(len(rows))
        rows.append((
            record.id, record.at, record.before or NONE, record.asked, record.read_back or NONE, record.status,
            *(held[flag] for flag in flags), count(record.times), record.detail,
        ))  # fmt: skip
    heads = ("Setting", "At", "Before", "Asked", "Read back", "Status", "Held", "Put back", "Times", "Detail")
    caption = "Every value that was asked for, at every port. Held: the same at the transfer's end."
    return Table(heads, "tttttsssnt", tuple(rows), caption, "lan-read-back", frozenset(odd))
