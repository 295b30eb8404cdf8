"""The 100 Gbit/s LAN (LHCb): bandwidth, latency, CPU, event building, settings, and the ports' properties."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count, latency, significant
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.lan_nodes import building_figure, crowd_label, settings_figure
from bench_report.figures.lan_sizes import bandwidth_figure, latency_figure
from bench_report.figures.lan_words import gbit, share_text, size_text
from bench_report.reading.dataset.bundle import Bundle

TITLE = "100 Gbit/s LAN for event building"
ENGINES = {
    "tcp": "TCP (iperf3, netprobe): not every node has an RDMA device at its port, or TCP was asked for",
    "rdma": "RDMA (perftest)",
}


def section(bundle: Bundle) -> Section | None:
    found, analysis = (bundle.results.get(name) for name in ("lan", "lan_analysis"))
    if found is None and "lan" not in bundle.run.workloads:
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
    notes = " ".join(analysis.texts("notes"))
    if notes:
        parts.append(notes)
    return Section("lan", TITLE, tuple(parts))


def _words(found: Node, analysis: Node) -> str:
    need, judged = found.at("need_bytes_per_s").as_number(), analysis.at("judged")
    said = [f"Load: {ENGINES[found.at('engine').as_text()]}. A port needs {gbit(need)}"]
    full = found.at("full_need_bytes_per_s").as_number()
    said[0] += f", {found.at('scale').as_number():g} of {gbit(full)}." if need != full else "."
    shares = judged.numbers("port_share")
    if shares:
        middle = sorted(shares)[len(shares) // 2]
        said.append(
            f"The candidate's port carried {gbit(middle * need)} (upper median of {len(shares)} repetitions at the largest message)."
        )
    building = judged.numbers("building_share")
    if building:
        said.append(f"The slowest builder of all nodes took {gbit(min(building) * need)}.")
    held = judged.number("settings_not_held")
    if held is not None:
        said.append(
            "Every tried setting read back as asked, held and went back."
            if not held
            else f"{count(held)} read-backs were NOT as asked."
        )
    return " ".join(said)


def _ports_table(found: Node) -> Table:
    rows = []
    for port in found.list("ports"):
        ring, pause = port.at("rings").at("now"), port.at("pause")
        frames = sum(value.as_number() for _, value in port.at("pause_frames").entries())
        pcie = [port.at("pcie").text(key) for key in ("speed", "width")]
        mtu = port.integer("mtu_bytes")
        rows.append((
            port.at("node").as_text(), port.at("host").as_text(), port.at("interface").as_text(), port.text("speed") or NONE,
            f"{port.text('driver') or NONE} {port.text('firmware') or ''}".strip(), NONE if mtu is None else count(mtu),
            f"{ring.text('RX') or NONE} / {ring.text('TX') or NONE}", f"{pause.text('RX') or NONE} / {pause.text('TX') or NONE}",
            count(frames) if len(dict(port.at("pause_frames").entries())) else NONE,
            " x".join(one for one in pcie if one) or NONE, ", ".join(port.texts("rdma_devices")) or "none",
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
        "The ports as they were found. A dash: the port does not tell.",
        "lan-ports",
        frozenset(),
    )


def _odd(points: list[Node]) -> frozenset[int]:
    return frozenset(index for index, one in enumerate(points) if not one.at("admissible").as_flag())


def _cpu(one: Node, key: str) -> str:
    """Returns the candidate's CPU use and, behind a stroke, its peer's; the highest of many peers."""
    cpu, peers = one.find("cpu"), one.find("cpu_of_peers")
    own = NONE if cpu is None else share_text(cpu.number(key))
    others = [found for _, peer in peers.entries() if (found := peer.number(key)) is not None] if peers else []
    return f"{own} / {share_text(max(others))}" if others else own


def _rate(value: float | None) -> str:
    return NONE if value is None else gbit(value)


def _bandwidth_table(analysis: Node) -> Table:
    points = [*analysis.list("bandwidth"), *analysis.list("confirmation")]
    rows = []
    for one in points:
        both = " (both ways)" if one.at("bidirectional").as_flag() else ""
        memory = one.number("memory_bytes_per_s")
        again = one.integer("sent_again")
        rows.append((
            f"{one.at('operation').as_text()}{both}", one.at("topology").as_text(), size_text(one), _rate(one.number("total_bytes_per_s")),
            _rate(one.number("counted_bytes_per_s")), _cpu(one, "mean"), _cpu(one, "busiest"), _cpu(one, "steal"),
            NONE if memory is None else f"{significant(memory / 1e9, 3)} GB/s", NONE if again is None else count(again),
            one.text("reason") or "",
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


def _latency_table(analysis: Node) -> Table:
    points, rows = list(analysis.list("latency")), []
    for one in points:
        found = one.find("latency_us")
        values = [None if found is None else found.number(key) for key in ("mean", "p50", "p99", "max")]
        number = one.integer("n")
        rows.append((
            one.at("operation").as_text(), one.at("topology").as_text(), size_text(one), NONE if number is None else count(number),
            *(NONE if value is None else latency(value) for value in values), _cpu(one, "mean"), one.text("reason") or "",
        ))  # fmt: skip
    heads = ("Tool", "Topology", "Message", "Messages", "Mean", "Median", "p99", "Highest", "CPU", "Why masked")
    return Table(heads, "ttnnnnnnnt", tuple(rows), "Latency by message size.", "lan-latency-table", _odd(points))


def _crowd_table(analysis: Node) -> Table:
    points = [*analysis.list("crowd"), *analysis.list("build")]
    rows = []
    for one in points:
        into = [value.as_number() for _, value in one.at("into").entries()] if one.find("into") else []
        events = [flow.find("event_us") for flow in one.list("flows")]
        p99 = [event.at("p99").as_number() for event in events if event is not None]
        again, drops, fairness = one.integer("sent_again"), one.integer("queue_drops"), one.number("fairness")
        rows.append((
            crowd_label(one), f"{gbit(min(into))} to {gbit(max(into))}" if into else NONE, _rate(one.number("total_bytes_per_s")),
            NONE if fairness is None else significant(fairness, 3), NONE if again is None else count(again),
            share_text(one.number("sent_again_share")), NONE if drops is None else count(drops), latency(max(p99)) if p99 else NONE,
            _cpu(one, "mean"), one.text("reason") or "",
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


def _settings_table(analysis: Node) -> Table:
    rows: list[tuple[str, ...]] = []
    odd: set[int] = set()
    words = {"above": "higher", "below": "lower", "undecided": "not told apart"}
    for one in analysis.list("settings"):
        cells: list[str] = [one.at("id").as_text()]
        for key in ("bandwidth", "latency"):
            found = one.at(key)
            ratio, ends, decision = found.number("ratio"), found.numbers("interval"), found.text("decision")
            cells += [
                str(found.at("n").as_integer()),
                NONE if ratio is None else significant(ratio, 3),
                f"{significant(ends[0], 3)} to {significant(ends[1], 3)}" if ends else NONE,
                words[decision] if decision else found.text("reason") or NONE,
            ]
            if found.list("masked"):
                odd.add(len(rows))
        rows.append(tuple(cells))
    heads = ("Setting", "Pairs", "Bandwidth", "95 % CI", "Decision", "Pairs", "Latency", "95 % CI", "Decision")
    caption = "Tuned over untuned: each setting alone where all others are untuned, and all together."
    return Table(heads, "tnnnsnnns", tuple(rows), caption, "lan-settings-table", frozenset(odd))


def _read_back_table(analysis: Node) -> Table:
    rows: list[tuple[str, ...]] = []
    odd: set[int] = set()
    held = {True: "yes", False: "NO", None: NONE}
    for record in analysis.list("tuned_settings"):
        status = record.at("status").as_text()
        flags = [record.flag(key) for key in ("held", "restored")]
        if status not in ("applied", "unchanged", "unsupported") or False in flags:
            odd.add(len(rows))
        rows.append((
            record.at("id").as_text(), record.at("at").as_text(), record.text("before") or NONE, record.at("asked").as_text(),
            record.text("read_back") or NONE, status, *(held[flag] for flag in flags), count(record.at("times").as_integer()),
            record.text("detail") or "",
        ))  # fmt: skip
    heads = ("Setting", "At", "Before", "Asked", "Read back", "Status", "Held", "Put back", "Times", "Detail")
    caption = "Every value that was asked for, at every port. Held: the same at the transfer's end."
    return Table(heads, "tttttsssnt", tuple(rows), caption, "lan-read-back", frozenset(odd))
