"""Tables of the concurrent analysis."""

from __future__ import annotations

from daq_bench.bench_model.workloads.concurrent_analysis.document import ConcurrentAnalysis, ConcurrentAnalysisRates
from daq_bench.bench_report.base.units import NONE, count, decimal_rate, decimal_size, percent, significant
from daq_bench.bench_report.document.table import Table


def storage_table(found: ConcurrentAnalysis) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(found.storages):
        if one.reason:
            marked.add(index)
        judged = "judged" if index == 0 else "for comparison"
        rows.append((one.name, one.text, ", ".join(one.devices) or NONE, one.reason or judged))
    return Table(
        heads=("Storage", "What it is", "Counters of", "Use"), kinds="ttct", rows=tuple(rows), name="analysis-storages",
        caption="The device's counters are sectors read, /sys/block/*/stat.", marked=frozenset(marked),
    )  # fmt: skip


def sets_table(found: ConcurrentAnalysis) -> Table:
    rows = []
    for one in found.sets:
        shape = one.shape
        memory_bytes = shape.events * shape.event_bytes
        rows.append((
            one.storage, one.analysis, one.layout, count(shape.events), count(one.files), decimal_size(one.bytes),
            significant(memory_bytes / one.bytes, 3), shape.compression,
        ))  # fmt: skip
    return Table(
        heads=("Storage", "Set", "Layout", "Events", "Files", "Size", "Compression factor", "Compression"), kinds="tttnnnnt",
        rows=tuple(rows),
        name="analysis-sets", caption="Generated with uproot from the run's seed; the truth is known of each.",
    )  # fmt: skip


def points_table(derived: ConcurrentAnalysisRates) -> Table:
    rows: list[tuple[str, ...]] = []
    marked = set()
    for series in derived.series:
        for one in series.points:
            if one.masked:
                marked.add(len(rows))
            rates = (
                one.median_bytes_per_s, one.least_bytes_per_s, one.most_bytes_per_s, one.device_bytes_per_s, one.worker_bytes_per_s,
            )  # fmt: skip
            rate, least, most, device, worker = (NONE if value is None else decimal_rate(value, 3) for value in rates)
            rows.append((
                series.storage, series.analysis, series.layout, count(one.workers), f"{one.n}", rate, f"{least} to {most}", device,
                worker, NONE if one.cpu_share is None else percent(100 * one.cpu_share),
                NONE if one.amplification is None else significant(one.amplification, 3),
                "drawn" if not one.reason else f"not drawn: {one.reason}",
            ))  # fmt: skip
    return Table(
        heads=(
            "Storage", "Analysis", "Layout", "Workers", "n", "Rate", "Least to most", "From the device", "Each worker", "CPU",
            "Read amplification", "In the figure",
        ),
        kinds="tttnnnnnnnnt", rows=tuple(rows), name="analysis-points",
        caption="Medians over the repetitions that count. CPU: of the jobs, of all usable CPUs. Read amplification: bytes from the device "
        "over bytes asked of the files.",
        marked=frozenset(marked),
    )  # fmt: skip


def farm_table(derived: ConcurrentAnalysisRates) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(derived.farm.rounds):
        if one.reason:
            marked.add(index)
        runs = "; ".join(f"{' + '.join(run.nodes)} {decimal_rate(run.bytes_per_s, 3)}" for run in one.runs)
        rows.append((
            count(one.round), "alone first" if one.alone_first else "together first", runs,
            NONE if one.ratio is None else significant(one.ratio, 3),
            "counts" if not one.reason else f"does not count: {one.reason}",
        ))  # fmt: skip
    return Table(
        heads=("Round", "Order", "Rates", "Aggregate over sum", "Evidence"), kinds="nttnt", rows=tuple(rows), name="analysis-farm-table",
        caption="From handing out the first file to having all results.", marked=frozenset(marked),
    )  # fmt: skip


def physics_table(derived: ConcurrentAnalysisRates) -> Table:
    rows, marked = [], set()
    for index, one in enumerate(derived.physics):
        if one.wrong:
            marked.add(index)
        pulls = "; ".join(f"{name} {significant(value, 2)}" for name, value in (one.pulls or {}).items())
        chi2 = f"{significant(one.fit.chi2, 3)} / {one.fit.degrees}" if one.fit else NONE
        rows.append((
            one.storage, one.analysis, one.layout, count(one.points), count(one.wrong), pulls or NONE, chi2,
            "; ".join(one.why_wrong) or NONE,
        ))  # fmt: skip
    return Table(
        heads=("Storage", "Analysis", "Layout", "Points", "Wrong", "Pulls of the fit", "chi2 / degrees", "Why wrong"), kinds="tttnnttt",
        rows=tuple(rows), name="analysis-physics", marked=frozenset(marked),
        caption="Wrong: a histogram of any variable, or a number of events, that is not the generated one, or differs between "
        "numbers of workers. Pull: fitted minus generated over the fit's standard deviation.",
    )  # fmt: skip
