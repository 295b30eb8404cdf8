"""The run's cost in hours, data and energy, and the rule by which each repeated measurement stopped."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.derived import Cost
from daq_bench.bench_report.base.fields import Node
from daq_bench.bench_report.base.units import NONE, THIN, decimal_size, duration, percent, significant
from daq_bench.bench_report.document.section import Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle

J_PER_KWH = 3.6e6


def cost_section(bundle: Bundle) -> Section | None:
    """Makes the section from results/cost.json; None in a bundle without it."""
    cost = bundle.result("cost", Cost)
    if cost is None:
        return None
    parts: list[Part] = [_totals(cost)]
    phases = _phases(cost)
    if phases:
        parts.append(phases)
    for name, results in bundle.results.items():
        stopping = results.find("stopping")
        if stopping:
            parts += _looks(name, stopping)
    return Section("cost", "What the run cost", tuple(parts))


def _totals(cost: Cost) -> Table:
    def why(metric: str) -> str:
        return cost.reasons.get(metric) or NONE

    written, nand, energy = cost.written_bytes, cost.nand_written_bytes, cost.energy_kwh
    rows = [("Time, whole run", duration(cost.hours * 3600), "from start to clean-up")]
    by_host = (
        "by the counters of the drives under the target, whoever wrote" if written is not None else why("cost.written")
    )
    rows.append(("Written by the host", NONE if written is None else decimal_size(written), by_host))
    on_nand = "by the drives' own logs" if nand is not None else why("cost.nand_written")
    rows.append(("Written onto the NAND", NONE if nand is None else decimal_size(nand), on_nand))
    of_server = (
        f"whole server, by its BMC, over {duration(cost.energy_hours * 3600)}"
        if energy is not None
        else why("cost.energy")
    )
    rows.append(("Energy", NONE if energy is None else f"{significant(energy, 3)}{THIN}kWh", of_server))
    return Table(("What", "Amount", "How it is known"), "tnt", tuple(rows), "What the run cost.", "cost")


def _phases(cost: Cost) -> Table | None:
    rows = []
    for phase in cost.phases:
        share = percent(100 * phase.hours / cost.hours, 2) if cost.hours else NONE
        rows.append((phase.name.replace("_", " "), duration(phase.hours * 3600), share))
    if not rows:
        return None
    return Table(("Phase", "Time", "Share of the run"), "tnn", tuple(rows), "Where its time went.", "phases")


def _looks(workload: str, stopping: Node) -> Iterator[Part]:
    """Yields how a repeated measurement decided to stop; nothing for one that was not meant to be repeated."""
    least, most = stopping.at("repetitions_min").as_integer(), stopping.at("repetitions_max").as_integer()
    if most == least:
        return
    confidence = stopping.at("confidence").as_number()
    rows = []
    for look in stopping.list("looks"):
        decided = look.find("decisions")
        decisions = ", ".join(f"{key} {value.as_text()}" for key, value in decided.entries()) if decided else ""
        rows.append((
            str(look.at("repetitions").as_integer()), decisions or NONE, look.text("reason") or NONE, _cost(look.find("cost")),
        ))  # fmt: skip
    yield Table(
        ("Repetitions", "Decisions", "Then", "Cost so far"), "nttt", tuple(rows), name=f"looks-{workload}",
        caption=f"Looks of {workload.replace('_', ' ')} after {least} to {most} repetitions. To keep the whole error at "
        f"5{THIN}%, each uses intervals of {percent(100 * confidence, 4)}.",
    )  # fmt: skip


def _cost(node: Node | None) -> str:
    if node is None:
        return NONE
    hours, written, energy = (node.number(key) for key in ("hours", "written_bytes", "energy_kwh"))
    parts = [
        duration(hours * 3600) if hours is not None else None,
        decimal_size(written) if written is not None else None,
        f"{significant(energy, 3)}{THIN}kWh" if energy is not None else None,
    ]
    return ", ".join(part for part in parts if part) or NONE
