"""Concurrent analysis of ROOT files (PROOF): rate against workers for each storage, file beside device, farm, physics."""

from __future__ import annotations

import itertools
from math import erf, exp, sqrt

from daq_bench.bench_model.workloads.concurrent_analysis.document import (
    ConcurrentAnalysis,
    ConcurrentAnalysisRates,
    Fit,
    Kind,
    Series,
    SeriesPoint,
)
from daq_bench.bench_report.base.units import significant, span
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.figures.references import measured_references
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.concurrent_analysis.figures import (
    Stated,
    WorkerPoint,
    farm_figure,
    mass_figure,
    workers_figure,
)
from daq_bench.bench_report.workloads.concurrent_analysis.tables import (
    farm_table,
    physics_table,
    points_table,
    sets_table,
    storage_table,
)

TITLE = "Concurrent analysis of ROOT files"
ANALYSES: dict[Kind, str] = {"sparse": "one variable, histogrammed", "full": "every variable, with fits"}
METRIC: dict[Kind, str] = {"sparse": "sparse_analysis_rate", "full": "full_analysis_rate"}
LOW, HIGH = 60.0, 120.0  # GeV, the spectrum's range in agents/daq_bench/analysis_reader


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("concurrent_analysis", ConcurrentAnalysis)
    derived = bundle.result("concurrent_analysis_rates", ConcurrentAnalysisRates)
    if found is None or derived is None:
        missing = "concurrent_analysis" if found is None else "concurrent_analysis_rates"
        return unfinished(bundle, "concurrent_analysis", TITLE, f"no result of it (results/{missing}.json).")
    parts: list[Part] = [_words(found, derived), storage_table(found), sets_table(found)]
    for analysis in ANALYSES:
        parts.append(
            _rate_figure(bundle, found, derived, analysis)
            or Lacking(f"no point of the {analysis} analysis that counts")
        )
    parts.append(_device_figure(found, derived) or Lacking("no point on the judged storage that counts"))
    parts.append(points_table(derived))
    if found.farm is None:
        parts.append(Lacking("the farm: it was not asked for, or the candidate has fewer cores than it has nodes"))
    else:
        parts += [_farm_figure(derived) or Lacking("no round of the farm that counts"), farm_table(derived)]
    parts += [_mass_figure(derived) or Lacking("no mass spectrum"), physics_table(derived)]
    return Section("concurrent-analysis", TITLE, tuple(parts))


def _words(found: ConcurrentAnalysis, derived: ConcurrentAnalysisRates) -> str:
    judged = derived.judged
    cores = judged.cores
    said = [
        f"The candidate has {cores} physical core{'s' if cores > 1 else ''}. Jobs are processes of their own that take files "
        "from a common list.",
        "A rate is the bytes asked of the files over the time from the first job's start to the last one's end.",
    ]
    for one in judged.core_ratios:
        ratio, interval = one.ratio, one.interval
        if ratio is not None:
            sure = f" (95 % CI {span(interval)})" if interval else ""
            said.append(f"{one.analysis}: with as many workers as cores, {significant(ratio, 3)} of the peak{sure}.")
    if judged.coldness_min is not None:
        least = significant(judged.coldness_min, 3)
        said.append(f"Each point read from storage at least {least} times what its jobs asked of the files.")
    dropped = (
        "the whole page cache was emptied" if found.drop_caches else "the set's files were dropped from the page cache"
    )
    said.append(f"Before each point {dropped}.")
    return " ".join(said)


def _counted(series: Series) -> list[SeriesPoint]:
    return [one for one in series.points if one.n > 0]


def _rate_figure(
    bundle: Bundle, found: ConcurrentAnalysis, derived: ConcurrentAnalysisRates, analysis: Kind
) -> Figure | None:
    layout = found.layouts[0]
    own = [one for one in derived.series if (one.analysis, one.layout) == (analysis, layout)]
    drawn = [(one.storage, _worker_points(one)) for one in own]
    drawn = [(label, points) for label, points in drawn if points]
    if not drawn:
        return None
    references = measured_references(bundle, METRIC[analysis])
    stated = [Stated(one.label, one.value, one.figure.workers) for one in references]
    repetitions = sorted({one.n for series in own for one in _counted(series)})
    caption = (
        f"{ANALYSES[analysis]}; {layout}; {found.compression}. Median and range of "
        f"n = {' or '.join(map(str, repetitions))} repetitions with a cold cache; points whose counters did not prove that are not drawn. "
        + (
            ""
            if "slow-disk" not in dict(drawn)
            else "The slow disk is held back by the kernel: it has a disk's rate and requests per second, and no head. "
        )
        + " ".join(one.attribution for one in references)
    )
    return workers_figure(
        f"analysis-{analysis}", f"Analysis rate against workers: {analysis}", "analysis rate (MB/s)", drawn, stated,
        derived.cores, caption
    )  # fmt: skip


def _worker_points(series: Series) -> list[WorkerPoint]:
    return [
        WorkerPoint(one.workers, median, least, most)
        for one in _counted(series)
        if (median := one.median_bytes_per_s) is not None
        and (least := one.least_bytes_per_s) is not None
        and (most := one.most_bytes_per_s) is not None
    ]


def _device_figure(found: ConcurrentAnalysis, derived: ConcurrentAnalysisRates) -> Figure | None:
    """Draws the bytes asked of the files beside the bytes read from the device, on the judged storage."""
    layout, storage = found.layouts[0], derived.judged.storage
    series = []
    for one in derived.series:
        if (one.storage, one.layout) != (storage, layout):
            continue
        asked = [(point.workers, point.median_bytes_per_s) for point in _counted(one)]
        read = [(point.workers, point.device_bytes_per_s) for point in _counted(one)]
        for label, rates in (("from the files", asked), ("from the device", read)):
            drawn = [WorkerPoint(workers, rate, rate, rate) for workers, rate in rates if rate is not None]
            if drawn:
                series.append((f"{one.analysis}, {label}", drawn))
    if not series:
        return None
    caption = (
        f"Storage {storage}, {layout}; medians. The device is read by whole pages and ahead of the jobs, and by whatever else the machine "
        "does meanwhile; it must never be read less than was asked of the files."
    )
    return workers_figure(
        "analysis-device",
        "Rate from the files and from the device",
        "rate (MB/s)",
        series,
        [],
        derived.cores,
        caption,
    )


def _farm_figure(derived: ConcurrentAnalysisRates) -> Figure | None:
    farm = derived.farm
    rounds = [one for one in farm.rounds if one.ratio is not None]
    if not rounds or farm.ratio is None:
        return None
    interval = farm.interval
    sure = f", 95 % CI {span(interval)}" if interval else ""
    caption = (
        f"{len(farm.nodes)} nodes with {farm.workers} workers together, on Dask over loopback, each confined to its own cores and "
        f"its own files, sharing the candidate's drive. Together they have {significant(farm.ratio, 3)} of the "
        f"sum (n = {len(rounds)}{sure}). The source states that a farm of eight nodes is just the sum of its nodes "
        "(section 3.2, figure 4), without figures."
    )
    drawn = [(one.round, one.sum_bytes_per_s, one.aggregate_bytes_per_s) for one in rounds]
    return farm_figure("analysis-farm", "Farm: aggregate rate against the sum of single nodes", drawn, caption)


def _mass_figure(derived: ConcurrentAnalysisRates) -> Figure | None:
    one = next((each for each in derived.physics if each.mass), None)
    if one is None or not one.mass:
        return None
    counts, fit = one.mass, one.fit
    edges = [LOW + (HIGH - LOW) * index / len(counts) for index in range(len(counts) + 1)]
    caption = f"Generated: {significant(one.truth.mass, 4)} GeV, width {significant(one.truth.width, 3)} GeV. "
    if fit:
        caption += (
            f"Fitted: {significant(fit.mass.value, 5)} \u00b1 {significant(fit.mass.error, 2)} GeV, chi2 "
            f"{significant(fit.chi2, 3)} for {fit.degrees} degrees of freedom. "
        )
    caption += "The two hardest leptons of each event; bars are square roots of the counts."
    return mass_figure(
        "analysis-mass",
        "Mass spectrum of the full analysis",
        edges,
        counts,
        _expected(fit, edges) if fit else None,
        caption,
    )


def _expected(fit: Fit, edges: list[float]) -> list[float]:
    """Returns the fitted pairs of each bin: a Gaussian, and an exponential from LOW to HIGH."""
    signal, mass, width, background, slope = (
        one.value for one in (fit.signal, fit.mass, fit.width, fit.background, fit.slope)
    )
    whole = 1 - exp(-(HIGH - LOW) / slope)
    below = [
        signal * 0.5 * erf((edge - mass) / (sqrt(2) * width)) + background * (1 - exp(-(edge - LOW) / slope)) / whole
        for edge in edges
    ]
    return [high - low for low, high in itertools.pairwise(below)]
