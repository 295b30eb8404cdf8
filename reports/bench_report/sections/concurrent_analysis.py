"""Concurrent analysis of ROOT files (PROOF): rate against workers for each storage, file beside device, farm, physics."""

from __future__ import annotations

import itertools
from math import erf, exp, sqrt

from bench_report.base.fields import Node
from bench_report.base.units import significant
from bench_report.document.canvas import Figure
from bench_report.document.section import Lacking, Part, Section
from bench_report.figures.analysis import Stated, WorkerPoint, farm_figure, mass_figure, workers_figure
from bench_report.figures.references import measured_references
from bench_report.reading.dataset.bundle import Bundle
from bench_report.sections.analysis_tables import farm_table, physics_table, points_table, sets_table, storage_table

TITLE = "Concurrent analysis of ROOT files"
ANALYSES = {"sparse": "one variable, histogrammed", "full": "every variable, with fits"}
METRIC = {"sparse": "sparse_analysis_rate", "full": "full_analysis_rate"}
LOW, HIGH = 60.0, 120.0  # GeV, the spectrum's range in agents/analysis_reader


def section(bundle: Bundle) -> Section | None:
    found, derived = (bundle.results.get(name) for name in ("concurrent_analysis", "concurrent_analysis_rates"))
    if found is None and "concurrent_analysis" not in bundle.run.workloads:
        return None
    if found is None or derived is None:
        missing = "concurrent_analysis" if found is None else "concurrent_analysis_rates"
        return Section("concurrent-analysis", TITLE, (Lacking(f"no result of it (results/{missing}.json)."),))
    parts: list[Part] = [_words(found, derived), storage_table(found), sets_table(found)]
    for analysis in ANALYSES:
        parts.append(
            _rate_figure(bundle, found, derived, analysis)
            or Lacking(f"no point of the {analysis} analysis that counts")
        )
    parts.append(_device_figure(found, derived) or Lacking("no point on the judged storage that counts"))
    parts.append(points_table(derived))
    if found.find("farm") is None:
        parts.append(Lacking("the farm: it was not asked for, or the candidate has fewer cores than it has nodes"))
    else:
        parts += [_farm_figure(derived) or Lacking("no round of the farm that counts"), farm_table(derived)]
    parts += [_mass_figure(derived) or Lacking("no mass spectrum"), physics_table(derived)]
    return Section("concurrent-analysis", TITLE, tuple(parts))


def _words(found: Node, derived: Node) -> str:
    judged = derived.at("judged")
    cores = judged.at("cores").as_integer()
    said = [
        f"The candidate has {cores} physical core{'s' if cores > 1 else ''}. Jobs are processes of their own that take files "
        "from a common list.",
        "A rate is the bytes asked of the files over the time from the first job's start to the last one's end.",
    ]
    for one in judged.list("core_ratios"):
        ratio, interval = one.number("ratio"), one.numbers("interval")
        if ratio is not None:
            span = f" (95 % CI {significant(interval[0], 3)} to {significant(interval[1], 3)})" if interval else ""
            said.append(
                f"{one.at('analysis').as_text()}: with as many workers as cores, {significant(ratio, 3)} of the peak{span}."
            )
    coldness = judged.number("coldness_min")
    if coldness is not None:
        said.append(
            f"Each point read from storage at least {significant(coldness, 3)} times what its jobs asked of the files."
        )
    dropped = (
        "the whole page cache was emptied"
        if found.at("drop_caches").as_flag()
        else "the set's files were dropped from the page cache"
    )
    said.append(f"Before each point {dropped}.")
    return " ".join(said)


def _counted(series: Node) -> list[Node]:
    return [one for one in series.list("points") if one.at("n").as_integer() > 0]


def _rate_figure(bundle: Bundle, found: Node, derived: Node, analysis: str) -> Figure | None:
    layout = found.texts("layouts")[0]
    own = [
        one
        for one in derived.list("series")
        if (one.at("analysis").as_text(), one.at("layout").as_text()) == (analysis, layout)
    ]
    drawn = [(one.at("storage").as_text(), _worker_points(one)) for one in own]
    drawn = [(label, points) for label, points in drawn if points]
    if not drawn:
        return None
    references = measured_references(bundle, METRIC[analysis])
    stated = [Stated(one.label, one.value, one.figure.workers) for one in references]
    repetitions = sorted({one.at("n").as_integer() for series in own for one in _counted(series)})
    caption = (
        f"{ANALYSES[analysis]}; {layout}; {found.at('compression').as_text()}. Median and range of "
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
        derived.at("cores").as_integer(), caption
    )  # fmt: skip


def _worker_points(series: Node) -> list[WorkerPoint]:
    return [
        WorkerPoint(
            one.at("workers").as_integer(), *(one.at(f"{key}_bytes_per_s").as_number() for key in ("median", "least", "most"))
        )
        for one in _counted(series)
    ]  # fmt: skip


def _device_figure(found: Node, derived: Node) -> Figure | None:
    """Draws the bytes asked of the files beside the bytes read from the device, on the judged storage."""
    layout, storage = found.texts("layouts")[0], derived.at("judged").at("storage").as_text()
    series = []
    for one in derived.list("series"):
        if (one.at("storage").as_text(), one.at("layout").as_text()) != (storage, layout):
            continue
        points = _counted(one)
        for key, label in (("median_bytes_per_s", "from the files"), ("device_bytes_per_s", "from the device")):
            drawn = [
                WorkerPoint(point.at("workers").as_integer(), *([point.at(key).as_number()] * 3)) for point in points
            ]
            if drawn:
                series.append((f"{one.at('analysis').as_text()}, {label}", drawn))
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
        derived.at("cores").as_integer(),
        caption,
    )


def _farm_figure(derived: Node) -> Figure | None:
    farm = derived.at("farm")
    rounds = [one for one in farm.list("rounds") if one.number("ratio") is not None]
    if not rounds:
        return None
    nodes, ratio, interval = len(farm.list("nodes")), farm.at("ratio").as_number(), farm.numbers("interval")
    span = f", 95 % CI {significant(interval[0], 3)} to {significant(interval[1], 3)}" if interval else ""
    caption = (
        f"{nodes} nodes with {farm.at('workers').as_integer()} workers together, on Dask over loopback, each confined to its own cores and "
        f"its own files, sharing the candidate's drive. Together they have {significant(ratio, 3)} of the sum (n = {len(rounds)}{span}). "
        "The source states that a farm of eight nodes is just the sum of its nodes (section 3.2, figure 4), without figures."
    )
    drawn = [
        (
            one.at("round").as_integer(),
            one.at("sum_bytes_per_s").as_number(),
            one.at("aggregate_bytes_per_s").as_number(),
        )
        for one in rounds
    ]
    return farm_figure("analysis-farm", "Farm: aggregate rate against the sum of single nodes", drawn, caption)


def _mass_figure(derived: Node) -> Figure | None:
    one = next((each for each in derived.list("physics") if each.numbers("mass")), None)
    if one is None:
        return None
    counts, fit = one.numbers("mass"), one.find("fit")
    edges = [LOW + (HIGH - LOW) * index / len(counts) for index in range(len(counts) + 1)]
    truth = one.at("truth")
    caption = f"Generated: {significant(truth.at('mass').as_number(), 4)} GeV, width {significant(truth.at('width').as_number(), 3)} GeV. "
    if fit:
        mass = fit.at("mass")
        caption += (
            f"Fitted: {significant(mass.at('value').as_number(), 5)} \u00b1 {significant(mass.at('error').as_number(), 2)} GeV, chi2 "
            f"{significant(fit.at('chi2').as_number(), 3)} for {fit.at('degrees').as_integer()} degrees of freedom. "
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


def _expected(fit: Node, edges: list[float]) -> list[float]:
    """Returns the fitted pairs of each bin: a Gaussian, and an exponential from LOW to HIGH."""
    signal, mass, width, background, slope = (
        fit.at(name).at("value").as_number() for name in ("signal", "mass", "width", "background", "slope")
    )
    whole = 1 - exp(-(HIGH - LOW) / slope)
    below = [
        signal * 0.5 * erf((edge - mass) / (sqrt(2) * width)) + background * (1 - exp(-(edge - LOW) / slope)) / whole
        for edge in edges
    ]
    return [high - low for low, high in itertools.pairwise(below)]
