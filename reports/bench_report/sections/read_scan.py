"""The read scan: the highest rates, and a table of all points for each tool."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, binary_size, count, in_gb_per_s, latency
from bench_report.document.section import Part, Section
from bench_report.document.table import Table
from bench_report.reading.dataset.bundle import Bundle


def section(bundle: Bundle) -> Section | None:
    node = bundle.results.get("read_scan")
    if node is None:
        return None
    tables = [_table(scan) for scan in node.at("scans").items()]
    parts: list[Part] = [_paragraph(node), *tables]
    return Section("read-scan", "Read scan", tuple(parts))


def _paragraph(node: Node) -> str:
    said = []
    sequential, random, alone = (
        node.find(key) for key in ("sequential_throughput", "random_rate", "random_latency_p99_9")
    )
    if sequential:
        said.append(f"Sequential reads reach {in_gb_per_s(sequential.at('value').as_number())} {_with(sequential)}.")
    if random:
        said.append(f"Random reads reach {count(round(random.at('value').as_number()))} per second {_with(random)}.")
    if alone:
        said.append(
            f"99.9 % of random reads {_with(alone)} are answered within {latency(alone.at('value').as_number())}."
        )
    for pattern in ("sequential", "random"):
        rates = [one.at("throughput_bytes_per_s").as_number() for one in node.at("again").items() if _is(one, pattern)]
        if rates:
            said.append(
                f"Measured again {len(rates)} times, {pattern} reads run at {in_gb_per_s(min(rates))} to {in_gb_per_s(max(rates))}."
            )
    return " ".join([*said, f"{node.at('rule').as_text()}."])


def _is(point: Node, pattern: str) -> bool:
    return point.at("pattern").as_text() == pattern and point.text("reason") is None


def _with(best: Node) -> str:
    size, depth, jobs = (best.at(key).as_integer() for key in ("block_bytes", "io_depth", "jobs"))
    return f"(blocks of {binary_size(size)}, depth {depth}, {jobs} job{'s' if jobs > 1 else ''})"


def _table(scan: Node) -> Table:
    tool = scan.at("tool").as_text()
    return Table(
        heads=("Pattern", "Block size", "Depth", "Jobs", "Rate", "Reads/s", "p50", "p99.9", "Masked"),
        kinds="tnnnnnnnt",
        rows=tuple(_row(point) for point in scan.at("points").items()),
        name=f"reads-{tool}",
        caption=f"Reads with {tool} by pattern, block size, depth of each job and number of jobs; 1 GB/s = 10\u2079 B/s.",
    )


def _row(point: Node) -> tuple[str, ...]:
    reason = point.text("reason")
    figures = (
        in_gb_per_s(point.at("throughput_bytes_per_s").as_number()),
        count(round(point.at("iops").as_number())),
        *(latency(point.at("latency_us").at(key).as_number()) for key in ("p50", "p99_9")),
    )
    return (
        point.at("pattern").as_text(),
        binary_size(point.at("block_bytes").as_integer()),
        *(str(point.at(key).as_integer()) for key in ("io_depth", "jobs")),
        *(figures if reason is None else [NONE] * len(figures)),
        reason or "counts",
    )
