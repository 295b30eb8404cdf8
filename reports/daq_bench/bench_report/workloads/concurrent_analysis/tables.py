"""Tables of the concurrent analysis."""

from __future__ import annotations

from daq_bench.bench_model.workloads.concurrent_analysis.document import (
    ConcurrentAnalysis,
    ConcurrentAnalysisRates,
    FarmRound,
    Physics,
    Series,
    SeriesPoint,
    Set,
    Storage,
)
from daq_bench.bench_report.base.units import NONE, count, decimal_size, known, share, significant, three, three_of_rate
from daq_bench.bench_report.document.table import Column, Columns, Table, table


def storage_table(found: ConcurrentAnalysis) -> Table:
    judged = found.storages[:1]
    columns: Columns[Storage] = (
        Column("Storage", lambda one: one.name),
        Column("What it is", lambda one: one.text),
        Column("Counters of", lambda one: ", ".join(one.devices) or NONE, kind="c"),
        Column("Use", lambda one: one.reason or ("judged" if one in judged else "for comparison")),
    )
    caption = "The device's counters are sectors read, /sys/block/*/stat."
    return table(found.storages, columns, "analysis-storages", caption, lambda one: one.reason)


SETS: Columns[Set] = (
    Column("Storage", lambda one: one.storage),
    Column("Set", lambda one: one.analysis),
    Column("Layout", lambda one: one.layout),
    Column("Events", lambda one: one.shape.events, count),
    Column("Files", lambda one: one.files, count),
    Column("Size", lambda one: one.bytes, decimal_size),
    Column("Compression factor", lambda one: one.shape.events * one.shape.event_bytes / one.bytes, three),
    Column("Compression", lambda one: one.shape.compression),
)


def sets_table(found: ConcurrentAnalysis) -> Table:
    return table(
        found.sets, SETS, "analysis-sets", "Generated with uproot from the run's seed; the truth is known of each."
    )


def _least_to_most(one: SeriesPoint) -> str:
    ends = (one.least_bytes_per_s, one.most_bytes_per_s)
    return " to ".join(known(value, three_of_rate) for value in ends)


POINTS: Columns[tuple[Series, SeriesPoint]] = (
    Column("Storage", lambda row: row[0].storage),
    Column("Analysis", lambda row: row[0].analysis),
    Column("Layout", lambda row: row[0].layout),
    Column("Workers", lambda row: row[1].workers, count),
    Column("n", lambda row: row[1].n, count),
    Column("Rate", lambda row: row[1].median_bytes_per_s, three_of_rate),
    Column("Least to most", lambda row: _least_to_most(row[1]), kind="n"),
    Column("From the device", lambda row: row[1].device_bytes_per_s, three_of_rate),
    Column("Each worker", lambda row: row[1].worker_bytes_per_s, three_of_rate),
    Column("CPU", lambda row: row[1].cpu_share, share),
    Column("Read amplification", lambda row: row[1].amplification, three),
    Column("In the figure", lambda row: f"not drawn: {row[1].reason}" if row[1].reason else "drawn"),
)


def points_table(derived: ConcurrentAnalysisRates) -> Table:
    rows = ((series, one) for series in derived.series for one in series.points)
    caption = (
        "Medians over the repetitions that count. CPU: of the jobs, of all usable CPUs. Read amplification: bytes from the device "
        "over bytes asked of the files."
    )
    return table(rows, POINTS, "analysis-points", caption, lambda row: row[1].masked)


ROUNDS: Columns[FarmRound] = (
    Column("Round", lambda one: one.round, count),
    Column("Order", lambda one: "alone first" if one.alone_first else "together first"),
    Column(
        "Rates", lambda one: "; ".join(f"{' + '.join(run.nodes)} {three_of_rate(run.bytes_per_s)}" for run in one.runs)
    ),
    Column("Aggregate over sum", lambda one: one.ratio, three),
    Column("Evidence", lambda one: f"does not count: {one.reason}" if one.reason else "counts"),
)


def farm_table(derived: ConcurrentAnalysisRates) -> Table:
    caption = "From handing out the first file to having all results."
    return table(derived.farm.rounds, ROUNDS, "analysis-farm-table", caption, lambda one: one.reason)


def _pulls(one: Physics) -> str | None:
    return "; ".join(f"{name} {significant(value, 2)}" for name, value in (one.pulls or {}).items()) or None


PHYSICS: Columns[Physics] = (
    Column("Storage", lambda one: one.storage),
    Column("Analysis", lambda one: one.analysis),
    Column("Layout", lambda one: one.layout),
    Column("Points", lambda one: one.points, count),
    Column("Wrong", lambda one: one.wrong, count),
    Column("Pulls of the fit", _pulls),
    Column("chi2 / degrees", lambda one: one.fit and f"{three(one.fit.chi2)} / {one.fit.degrees}"),
    Column("Why wrong", lambda one: "; ".join(one.why_wrong) or None),
)


def physics_table(derived: ConcurrentAnalysisRates) -> Table:
    caption = (
        "Wrong: a histogram of any variable, or a number of events, that is not the generated one, or differs between "
        "numbers of workers. Pull: fitted minus generated over the fit's standard deviation."
    )
    return table(derived.physics, PHYSICS, "analysis-physics", caption, lambda one: one.wrong)
