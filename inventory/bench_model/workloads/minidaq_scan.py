"""The results of the MiniDAQ's scan over request sizes beside synthetic writes (DUNE paper, figure 4). Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench_model.base.units import binary_label
from bench_model.statistics.plateau import PLATEAU_SHARE, find_plateau

SOURCE_ACHIEVED_MIN = 0.999  # daqwriter's own bound for a trial that counts
RULE = (
    "The plateau starts at the smallest request size from which on every larger admissible request size reaches at least "
    f"{PLATEAU_SHARE:.0%} of the scan's maximum; its throughput is the median of these points, and so are the ratio to synthetic "
    "writes of the same round and the share of CPU time spent copying. A request size's point is the median of its repetitions, and "
    "is admissible when all of them are"
)
PLATEAU_SIZE, PLATEAU = "minidaq_scan.plateau_request_size", "minidaq_scan.plateau_throughput"
RATIO, COPY, INHIBITS = "minidaq_scan.ratio_to_synthetic", "minidaq_scan.copy_share", "minidaq_scan.inhibits"


def limited_by(search: dict[str, Any]) -> str:
    """Returns what kept `daqwriter minidaq --search` from a higher rate: "inhibit", "source", "all asked" (nothing did) or
    "nothing stood". A refused trial in which nothing was lost, vetoed or BUSY was refused since its source was late."""
    if search["highest_bytes_per_s"] is None:
        return "nothing stood"
    bound = search["lowest_refused_bytes_per_s"]
    if bound is None:
        return "all asked"
    refused = [one for one in search["trials"] if not one["stood"] and one["asked_bytes_per_s"] <= bound * (1 + 1e-9)]
    of_source = [one for one in refused if not (one["lost"] or one["vetoed"] or one["busy_count"])]
    return "source" if refused and len(of_source) == len(refused) else "inhibit"


def inhibits_of(run: dict[str, Any]) -> int:
    """Vetoed decisions, BUSY episodes and lost superchunks of one record: what a stable system has none of."""
    return int(run["vetoed"] + run["busy_count"] + run["lost"])


def why_masked(limit: str, run: dict[str, Any] | None, synthetic_reason: str | None) -> str | None:
    """Why a point of the curve does not count; None when it does."""
    if run is None:
        return "no rate was stood twice without inhibit"
    if inhibits_of(run):
        return "a record met an inhibit at every rate that was tried"
    if run["achieved_fraction"] < SOURCE_ACHIEVED_MIN:
        return f"the source offered only {run['achieved_fraction']:.2%} of what was due"
    if limit == "source":
        return "the search ended at the rate that the source could offer, not at what the drive could take"
    return None if synthetic_reason is None else f"synthetic writes of the same round: {synthetic_reason}"


def ratio_of(point: dict[str, Any], demand_bytes_per_s: float) -> float:
    """MiniDAQ over synthetic. Where all that the links deliver was stored, there was no more to ask for: synthetic writes
    then count for no more than that."""
    synthetic = point["synthetic"]["throughput_bytes_per_s"]
    if point["limited_by"] == "all asked":
        synthetic = min(synthetic, demand_bytes_per_s)
    return float(point["throughput_bytes_per_s"] / synthetic)


def summarize(points: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """(the plateau and what holds on it, why a metric has no value by metric) from points of results/minidaq_scan.json."""
    by_size = _by_size(points)
    rates = {size: _rate(own) for size, own in by_size.items()}
    plateau = find_plateau([(size, rate) for size, rate in rates.items() if rate is not None])
    inhibits = [point["inhibits"] for point in points if point["inhibits"] is not None]
    reasons = {}
    if plateau is None:
        why = "throughput does not level out within the scanned request sizes, so there is no plateau"
        reasons = dict.fromkeys((PLATEAU_SIZE, PLATEAU, RATIO, COPY), why)
    if not inhibits:
        reasons[INHIBITS] = "at no request size was a rate stood twice without inhibit"
    start = plateau.start if plateau else None
    before = [size for size in by_size if start and size < start]
    if before and rates[before[-1]] is None:
        start = None
        reasons[PLATEAU_SIZE] = (
            "the point just below the plateau does not count, so where the plateau begins is not known"
        )
    on_it = [point for size, own in by_size.items() if plateau and size >= plateau.start for point in own]
    holes = [point for point in on_it if point["ratio_to_synthetic"] is None]
    if holes:
        named = [f"{name_of(one['asked_request_bytes'], one['repetition'])}: {one['reason']}" for one in holes]
        reasons[RATIO] = "; ".join(named)
    ratios = [point["ratio_to_synthetic"] for point in on_it if point["ratio_to_synthetic"] is not None]
    shares = [point["copy_share"] for point in on_it if point["admissible"] and point["copy_share"] is not None]
    if plateau and not shares:
        reasons[COPY] = (
            "copying took more time by the clock than the process had of the CPUs: other work kept it waiting"
        )
    return {
        "plateau": {
            "from_request_bytes": start,
            "throughput_bytes_per_s": plateau.throughput_bytes_per_s if plateau else None,
            "ratios": [_ratio_row(point) for point in on_it],
            "ratio_to_synthetic": statistics.median(ratios) if ratios else None,
            "ratio_range": [min(ratios), max(ratios)] if ratios else None,
            "copy_share": statistics.median(shares) if shares else None,
            "rule": RULE,
        },
        "inhibits": max(inhibits) if inhibits else None,
    }, reasons


def name_of(request_bytes: int, repetition: int) -> str:
    """One point among those of its scan, in words."""
    return f"{binary_label(request_bytes)}, repetition {repetition}"


def _by_size(points: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The repetitions of each request size, sizes ascending."""
    found: dict[int, list[dict[str, Any]]] = {}
    for point in points:
        found.setdefault(point["asked_request_bytes"], []).append(point)
    return dict(sorted(found.items()))


def _rate(repetitions: Sequence[dict[str, Any]]) -> float | None:
    """A size's point. None where a repetition does not count: the others may be those that went well."""
    if not all(point["admissible"] for point in repetitions):
        return None
    return float(statistics.median(point["throughput_bytes_per_s"] for point in repetitions))


def _ratio_row(point: dict[str, Any]) -> dict[str, Any]:
    """One ratio that is judged; a repetition that does not count keeps its place, as a hole."""
    return {
        "request_bytes": point["asked_request_bytes"],
        "repetition": point["repetition"],
        "value": point["ratio_to_synthetic"],
    }
