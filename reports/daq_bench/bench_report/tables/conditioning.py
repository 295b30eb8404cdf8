"""The conditioning of targets: one table for every workload that conditions its target."""

from __future__ import annotations

from daq_bench.bench_model.documents.results import Conditioning
from daq_bench.bench_report.base.units import NONE, TIMES, decimal_rate, decimal_size, duration, grouped_in, percent
from daq_bench.bench_report.document.table import Table


def conditioning_table(name: str, evidence: list[tuple[str, Conditioning]]) -> Table:
    """Returns a row for each (purpose, evidence of rig.workloads.shared.conditioning)."""
    return Table(
        heads=("Before", "Purge", "Reads zero", "Preconditioning", "Written", "Time", "Rate"),
        kinds="ttntnnn", rows=tuple(_row(label, one) for label, one in evidence), name=name,
        caption="How the target was brought into its condition: purge, and for the preconditioned one sequential writes of 128 KiB. "
        "Reads zero: share of 64 evenly spread places that read as zeros after the purge.",
    )  # fmt: skip


def _row(label: str, evidence: Conditioning) -> tuple[str, ...]:
    purge, written = evidence.purge, evidence.preconditioning
    how = purge.method if purge.done else "not done"
    share, zeros = evidence.share_of_capacity, purge.zero_share
    row = (
        f"{label}: {evidence.condition}",
        grouped_in(f"{how}: {purge.text}"),
        percent(100 * zeros) if zeros is not None else NONE,
    )
    if written is None:
        return (*row, NONE, NONE, NONE, NONE)
    of = f" ({percent(100 * share)} of the drive)" if share is not None else ""
    return (
        *row,
        f"{written.passes} {TIMES} {decimal_size(evidence.span_bytes)}{of}",
        decimal_size(written.bytes_written),
        duration(written.seconds),
        decimal_rate(written.bytes_per_s),
    )
