"""The conditioning of targets: one table for every workload that conditions its target."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, TIMES, decimal_rate, decimal_size, duration, percent
from bench_report.document.table import Table


def conditioning_table(name: str, evidence: list[tuple[str, Node]]) -> Table:
    """Returns a row for each (purpose, evidence of rig.workloads.shared.conditioning)."""
    return Table(
        heads=("Before", "Purge", "Reads zero", "Preconditioning", "Written", "Time", "Rate"),
        kinds="ttntnnn", rows=tuple(_row(label, node) for label, node in evidence), name=name,
        caption="How the target was brought into its condition: purge, and for the preconditioned one sequential writes of 128 KiB. "
        "Reads zero: share of 64 evenly spread places that read as zeros after the purge.",
    )  # fmt: skip


def _row(label: str, evidence: Node) -> tuple[str, ...]:
    purge, written = evidence.at("purge"), evidence.find("preconditioning")
    how = purge.at("method").as_text() if purge.at("done").as_flag() else "not done"
    share, zeros = evidence.number("share_of_capacity"), purge.number("zero_share")
    row = (
        f"{label}: {evidence.at('condition').as_text()}",
        f"{how}: {purge.at('text').as_text()}",
        percent(100 * zeros) if zeros is not None else NONE,
    )
    if written is None:
        return (*row, NONE, NONE, NONE, NONE)
    of = f" ({percent(100 * share)} of the drive)" if share is not None else ""
    return (
        *row,
        f"{written.at('passes').as_integer()} {TIMES} {decimal_size(evidence.at('span_bytes').as_number())}{of}",
        decimal_size(written.at("bytes_written").as_number()),
        duration(written.at("seconds").as_number()),
        decimal_rate(written.at("bytes_per_s").as_number()),
    )
