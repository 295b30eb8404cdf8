"""results/concurrent_analysis_rates.json: what follows from what the jobs and the device counted. A pure function of the run's raw records.

The ratio of the rate at as many workers as cores to the peak, and of a farm to the sum of its nodes, are taken within each repetition, in
alternating order (bench_model.statistics.paired), so that a drift of the machine is in neither."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.statistics.paired import CONFIDENCE, Pair, compare
from daq_bench.bench_model.statistics.repetitions import median_interval
from daq_bench.bench_model.workloads.concurrent_analysis.points import coldness, pulls, rates, wrong

RESULTS = "concurrent_analysis.json"
NAME = "results/concurrent_analysis_rates.json"
METRICS = "concurrent_analysis"
FULL = "full"
WORKER_BYTES_PER_S = 10e6  # section 4 of the source: a single job on a modern CPU develops 10 to 15 MB/s
SATURATED = 0.9  # [P] share of the cores' time from which on the CPU is the limit
SERIES_KEY = ("storage", "analysis", "layout")


def document(found: Document) -> Document:
    """The analysis of results/concurrent_analysis.json."""
    sets: dict[tuple[str, ...], Document] = {_key(one): one for one in found["sets"]}
    points = [_point(one, sets[_key(one)], found) for one in found["points"]]
    farm = _farm(found, sets)
    _same_everywhere([*points, *(run for one in farm["rounds"] for run in one["runs"])])
    series = [_series(key, [one for one in points if _key(one) == key], found["cores"]) for key in sets]
    physics = [_physics(one, [point for point in points if _key(point) == key]) for key, one in sets.items()]
    judged, reasons = _judged(found, series, points, farm, physics)
    for one in [*points, *(run for each in farm["rounds"] for run in each["runs"])]:
        one.pop("result")
    return {
        "schema_version": 1,
        "confidence": CONFIDENCE,
        "cores": found["cores"],
        "points": points,
        "series": series,
        "farm": farm,
        "physics": physics,
        "judged": judged,
        "limits": [],
        "invalid": _invalid(found, points, farm),
        "reasons": reasons,
    }


def _key(one: Document) -> tuple[str, ...]:
    return tuple(one[name] for name in SERIES_KEY)


def _point(one: Document, of_set: Document, found: Document) -> Document:
    own = rates(one["records"], one["devices"], len(found["cpus"]))
    return {
        **{name: one[name] for name in SERIES_KEY},
        "workers": one["workers"],
        "repetition": one["repetition"],
        **own,
        "coldness": coldness(own["fetched_bytes"], own["storage_bytes"], own["device_bytes"]),
        "wrong": wrong(one["result"], of_set["truth"], one["analysis"]),
        "result": one["result"],
    }


def _farm(found: Document, sets: dict[tuple[str, ...], Document]) -> Document:
    """Each round: the rate of every node alone, of all together, and their ratio."""
    farm = found["farm"]
    if farm is None:
        return {"nodes": [], "workers": 0, "rounds": [], "ratio": None, "interval": None, "n": 0}
    truth = sets[(found["storages"][0]["name"], farm["analysis"], found["layouts"][0])]["truth"]
    rounds = [_round(one, farm, truth, len(found["cpus"])) for one in farm["rounds"]]
    pairs = [Pair(one["round"], one["alone_first"], one["ratio"]) for one in rounds if one["ratio"] is not None]
    result = compare(pairs) if pairs else None
    return {
        "nodes": farm["nodes"],
        "workers": sum(node["workers"] for node in farm["nodes"]),
        "rounds": rounds,
        "ratio": result.ratio if result else None,
        "interval": list(result.interval) if result and result.interval else None,
        "n": len(pairs),
    }


def _round(one: Document, farm: Document, truth: Document, cpus: int) -> Document:
    runs = []
    for run in one["runs"]:
        whole = len(run["nodes"]) == len(farm["nodes"])
        own = rates(run["records"], run["devices"], cpus, run["elapsed_s"])
        runs.append(
            {
                "nodes": run["nodes"],
                "analysis": farm["analysis"],
                **own,
                "wrong": wrong(run["result"], truth, farm["analysis"]) if whole else None,
                "result": run["result"] if whole else None,
            }
        )
    alone = [run for run in runs if len(run["nodes"]) == 1]
    together = next(run for run in runs if len(run["nodes"]) > 1)
    counts = all(run["reason"] is None for run in runs)
    total = sum(run["bytes_per_s"] for run in alone)
    return {
        "round": one["round"],
        "alone_first": one["alone_first"],
        "runs": runs,
        "sum_bytes_per_s": total,
        "aggregate_bytes_per_s": together["bytes_per_s"],
        "ratio": together["bytes_per_s"] / total if counts else None,
        "reason": next((run["reason"] for run in runs if run["reason"]), None),
    }


def _same_everywhere(points: Sequence[Document]) -> None:
    """A result that differs from the first one over the same kind of events, whoever read what, is wrong too. Writes `wrong`."""
    first: dict[tuple[str, str], Any] = {}
    for one in points:
        if one["result"] is None or one["wrong"]:
            continue
        key = one["analysis"], one["result"]["digest"]
        if first.setdefault(key, one["result"]) != one["result"]:
            one["wrong"] = "the result differs from that of other numbers of workers"


def _series(key: tuple[str, ...], points: Sequence[Document], cores: int) -> Document:
    counts = sorted({one["workers"] for one in points})
    made = [_of_workers(number, [one for one in points if one["workers"] == number]) for number in counts]
    drawn = [one for one in made if one["n"]]
    peak = max(drawn, key=lambda one: float(one["median_bytes_per_s"])) if drawn else None
    return {
        **dict(zip(SERIES_KEY, key, strict=True)),
        "points": made,
        "peak_workers": peak["workers"] if peak else None,
        "peak_bytes_per_s": peak["median_bytes_per_s"] if peak else None,
        "core_ratio": _core_ratio(points, peak["workers"], cores) if peak else None,
    }


def _of_workers(workers: int, points: Sequence[Document]) -> Document:
    """One point of a figure over its repetitions that count."""
    good = [one for one in points if one["reason"] is None]
    values = [one["bytes_per_s"] for one in good]
    interval = median_interval(values) if values else None
    return {
        "workers": workers,
        "n": len(good),
        "masked": len(points) - len(good),
        "median_bytes_per_s": median(values) if values else None,
        "least_bytes_per_s": min(values, default=None),
        "most_bytes_per_s": max(values, default=None),
        "interval_bytes_per_s": list(interval) if interval else None,
        "device_bytes_per_s": median(one["device_bytes_per_s"] for one in good) if good else None,
        "worker_bytes_per_s": median(values) / workers if values else None,
        "cpu_share": median(one["cpu_share"] for one in good) if good else None,
        "amplification": median(one["device_bytes"] / one["fetched_bytes"] for one in good) if good else None,
        "reason": None if good else next((one["reason"] for one in points), "it was not measured"),
    }


def _core_ratio(points: Sequence[Document], peak: int, cores: int) -> Document | None:
    """Rate at as many workers as cores over that at the peak, in the same repetitions; exactly 1 where that is the peak."""
    good = {(one["workers"], one["repetition"]): one["bytes_per_s"] for one in points if one["reason"] is None}
    pairs = [
        Pair(turn, (turn % 2 == 1) == (peak < cores), rate / good[peak, turn])
        for (workers, turn), rate in sorted(good.items())
        if workers == cores and (peak, turn) in good
    ]
    if not pairs:
        return None
    if peak == cores:
        return {"ratio": 1.0, "interval": [1.0, 1.0], "n": len(pairs)}
    result = compare(pairs)
    return {"ratio": result.ratio, "interval": list(result.interval) if result.interval else None, "n": len(pairs)}


def _physics(of_set: Document, points: Sequence[Document]) -> Document:
    fits = [one["result"]["fit"] for one in points if one["result"]["fit"]]
    return {
        **{name: of_set[name] for name in SERIES_KEY},
        "points": len(points),
        "wrong": sum(one["wrong"] is not None for one in points),
        "why_wrong": sorted({one["wrong"] for one in points if one["wrong"]}),
        "fit": fits[0] if fits else None,
        "mass": points[0]["result"]["mass"] if points and of_set["analysis"] == FULL else None,
        "truth": {
            "signal": of_set["truth"]["signal"],
            "mass": of_set["shape"]["truth"]["mass"],
            "width": of_set["shape"]["truth"]["width"],
        },
        "pulls": pulls(fits[0] if fits else None, of_set["truth"], of_set["shape"]),
    }


def _judged(
    found: Document, series: Sequence[Document], points: Sequence[Document], farm: Document, physics: Sequence[Document]
) -> tuple[Document, dict[str, str]]:
    """Returns the values that requirements bound, for the judged storage, and the reason for each metric that has no value."""
    storage, layout, cores = found["storages"][0]["name"], found["layouts"][0], found["cores"]
    own = [one for one in series if (one["storage"], one["layout"]) == (storage, layout)]
    judged_points = [one for one in points if one["storage"] == storage]
    supply = [
        max(one["bytes_per_s"] / cores / WORKER_BYTES_PER_S, one["cpu_share"] / SATURATED)
        for one in judged_points
        if (one["analysis"], one["layout"], one["workers"]) == (FULL, layout, cores) and one["reason"] is None
    ]
    colds = [one["coldness"] for one in judged_points if one["coldness"] is not None]
    wrongs = [one["wrong"] for one in points] + [run["wrong"] for each in farm["rounds"] for run in each["runs"]]
    deviations = [abs(value) for one in physics for value in (one["pulls"] or {}).values()]
    fitted = [one for one in physics if one["analysis"] == FULL]
    judged: Document = {
        "storage": storage,
        "cores": cores,
        "core_ratios": [
            {"analysis": one["analysis"], **(one["core_ratio"] or {"ratio": None, "interval": None, "n": 0})}
            for one in own
        ],
        "supply": supply,
        "farm_ratio": farm["ratio"],
        "farm_interval": farm["interval"],
        "coldness_min": min(colds) if len(colds) == len(judged_points) and colds else None,
        "wrong_results": sum(one is not None for one in wrongs) if points else None,
        "pull_max": max(deviations) if deviations and all(one["pulls"] for one in fitted) else None,
    }
    reasons = {}
    if any(one["ratio"] is None for one in judged["core_ratios"]) or not judged["core_ratios"]:
        reasons["core_ratio"] = "no repetition counts both at as many workers as cores and at the peak"
    if not supply:
        reasons["worker_supply"] = "no point of the full analysis at as many workers as cores counts"
    if farm["ratio"] is None:
        reasons["farm_ratio"] = next((one["reason"] for one in farm["rounds"] if one["reason"]), "no farm was measured")
    if judged["coldness_min"] is None:
        reasons["coldness"] = "a point has no counters of a device"
    if judged["pull_max"] is None:
        reasons["pull_max"] = "the mass spectrum of a set could not be fitted: too few events"
    return judged, {f"{METRICS}.{name}": text for name, text in reasons.items()}


def _invalid(found: Document, points: Sequence[Document], farm: Document) -> list[str]:
    """Sentences that forbid a PASS and a FAIL: without a cold cache a rate says nothing of the storage that is judged."""
    judged = found["storages"][0]["name"]
    own = [one for one in points if one["storage"] == judged]
    warm = [one for one in own if one["reason"]]
    said = []
    if warm:
        one = warm[0]
        said.append(
            f"{len(warm)} of {len(own)} points on {judged} are masked; the first, {one['analysis']} with {one['workers']} workers: "
            f"{one['reason']}"
        )
    masked = [one for one in farm["rounds"] if one["reason"]]
    if masked:
        said.append(
            f"{len(masked)} of {len(farm['rounds'])} rounds of the farm are masked; the first: {masked[0]['reason']}"
        )
    return said
