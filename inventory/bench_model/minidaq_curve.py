"""What the MiniDAQ's scan over request sizes shows beside synthetic writes (DUNE paper, figure 4). Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench_model.plateau import PLATEAU_SHARE, find_plateau

SOURCE_ACHIEVED_MIN = 0.999  # daqwriter's own bound for a trial that counts
RULE = (
    "The plateau starts at the smallest request size from which on every larger admissible request size reaches at least "
    f"{PLATEAU_SHARE:.0%} of the scan's maximum; its throughput is the median of these points, and so are the ratio to synthetic "
    "writes of the same round and the share of CPU time spent copying"
)
PLATEAU_SIZE, PLATEAU = "minidaq_scan.plateau_request_size", "minidaq_scan.plateau_throughput"
RATIO, COPY, INHIBITS = "minidaq_scan.ratio_to_synthetic", "minidaq_scan.copy_share", "minidaq_scan.inhibits"


def limited_by(search: dict[str, Any]) -> str:
    """What kept `daqwriter minidaq --search` from a higher rate: "inhibit", "source", "all asked" (nothing did) or
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
    return f"synthetic writes of the same round: {synthetic_reason}" if synthetic_reason else None


def ratio_of(point: dict[str, Any], demand_bytes_per_s: float) -> float:
    """MiniDAQ over synthetic. Where all that the links deliver was stored, there was no more to ask for: synthetic writes
    then count for no more than that."""
    synthetic = point["synthetic"]["throughput_bytes_per_s"]
    if point["limited_by"] == "all asked":
        synthetic = min(synthetic, demand_bytes_per_s)
    return float(point["throughput_bytes_per_s"] / synthetic)


def summarize(points: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """(the plateau and what holds on it, why a metric has no value by metric) from points of results/minidaq_scan.json."""
    counted = [point for point in points if point["admissible"]]
    plateau = find_plateau([(point["asked_request_bytes"], point["throughput_bytes_per_s"]) for point in counted])
    inhibits = [point["inhibits"] for point in points if point["inhibits"] is not None]
    reasons = {}
    if plateau is None:
        why = "throughput does not level out within the scanned request sizes, so there is no plateau"
        reasons = dict.fromkeys((PLATEAU_SIZE, PLATEAU, RATIO, COPY), why)
    if not inhibits:
        reasons[INHIBITS] = "at no request size was a rate stood twice without inhibit"
    start = plateau.start if plateau else None
    before = [point for point in points if start and point["asked_request_bytes"] < start]
    if before and not before[-1]["admissible"]:
        start = None
        reasons[PLATEAU_SIZE] = (
            "the point just below the plateau does not count, so where the plateau begins is not known"
        )
    on_it = [point for point in counted if plateau and point["asked_request_bytes"] >= plateau.start]
    ratios = [point["ratio_to_synthetic"] for point in on_it]
    shares = [point["copy_share"] for point in on_it if point["copy_share"] is not None]
    if plateau and not shares:
        reasons[COPY] = (
            "copying took more time by the clock than the process had of the CPUs: other work kept it waiting"
        )
    return {
        "plateau": {
            "from_request_bytes": start,
            "throughput_bytes_per_s": plateau.throughput_bytes_per_s if plateau else None,
            "ratio_to_synthetic": statistics.median(ratios) if ratios else None,
            "ratio_range": [min(ratios), max(ratios)] if ratios else None,
            "copy_share": statistics.median(shares) if shares else None,
            "rule": RULE,
        },
        "inhibits": max(inhibits) if inhibits else None,
    }, reasons
