"""The run's cost in hours, data and energy, and the rule by which each repeated measurement stopped."""

from __future__ import annotations

from collections.abc import Iterator

from daq_bench.bench_model.documents.derived import Cost
from daq_bench.bench_model.documents.struct import Struct, read
from daq_bench.bench_report.base.units import NONE, THIN, decimal_size, duration, percent, significant
from daq_bench.bench_report.document.section import Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle


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
        stopping = results.get("stopping") if isinstance(results, dict) else None
        if stopping:
            parts += _looks(name, read(stopping, Stopping, f"results/{name}.json: stopping"))
    return Section("cost", "What the run cost", tuple(parts))


def _totals(cost: Cost) -> Table:
    def why(metric: str) -> str:
        return cost.reasons.get(metric) or NONE

    written, nand, energy = cost.written_bytes, cost.nand_written_bytes, cost.energy_kwh
    rows = [("Time, whole run", duration(cost.hours * 3600), "from start to clean-up")]
    by_host = "by all programs, as the drives under the target count it" if written is not None else why("cost.written")
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


class CostSoFar(Struct, frozen=True):
    hours: float | None = None
    written_bytes: float | None = None
    energy_kwh: float | None = None


class Look(Struct, frozen=True):
    repetitions: int
    decisions: dict[str, str] | None = None
    reason: str | None = None
    cost: CostSoFar | None = None


class Stopping(Struct, frozen=True):
    """When a measurement that may go on was told that it had enough."""

    repetitions_min: int
    repetitions_max: int
    confidence: float
    looks: list[Look]


def _looks(workload: str, stopping: Stopping) -> Iterator[Part]:
    """Yields how a repeated measurement decided to stop; nothing for one that was not meant to be repeated."""
    least, most = stopping.repetitions_min, stopping.repetitions_max
    if most == least:
        return
    rows = []
    for look in stopping.looks:
        decisions = ", ".join(f"{key} {value}" for key, value in (look.decisions or {}).items())
        rows.append((str(look.repetitions), decisions or NONE, look.reason or NONE, _cost(look.cost or CostSoFar())))
    yield Table(
        ("Repetitions", "Decisions", "Then", "Cost so far"), "nttt", tuple(rows), name=f"looks-{workload}",
        caption=f"Looks of {workload.replace('_', ' ')} after {least} to {most} repetitions. To keep the whole error at "
        f"5{THIN}%, each uses intervals of {percent(100 * stopping.confidence, 4)}.",
    )  # fmt: skip


def _cost(spent: CostSoFar) -> str:
    parts = [
        duration(spent.hours * 3600) if spent.hours is not None else None,
        decimal_size(spent.written_bytes) if spent.written_bytes is not None else None,
        f"{significant(spent.energy_kwh, 3)}{THIN}kWh" if spent.energy_kwh is not None else None,
    ]
    return ", ".join(part for part in parts if part) or NONE
