"""results/streams_checksum_analysis.json: what follows from what `streams_checksum` measured. A pure function of its document.

Throughput is compared in pairs of alternating order (bench_model.statistics.paired). That a setup is *slower* than the original is
said only where the whole interval lies below 1, at a level that holds for all setups together (Bonferroni)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.statistics.paired import BELOW, CONFIDENCE, Pair, PairedEstimate, compare
from daq_bench.bench_model.statistics.repetitions import median_interval

RESULTS = "streams_checksum.json"
METRICS = "streams_checksum"
AGAINST_ORIGINAL = ("switched-off", "threads", "small-events", "application")
FALLBACK = ("switched-off", "small-events")
IN_USE = (*FALLBACK, "application")  # what an operator runs; the other settings are tried to draw the figure
US_PER_NS = 1e-3


def document(found: Document) -> Document:
    """The analysis of results/streams_checksum.json."""
    comparisons = [_comparison(one) for one in found["comparisons"]]
    against = [one for one in comparisons if one["kind"] in AGAINST_ORIGINAL]
    slower = _slower(found, against)
    overhead = [_overhead(one) for one in found["overhead"]["points"]]
    judged, reasons = _judged(found, comparisons, overhead)
    return {
        "schema_version": 1,
        "confidence": CONFIDENCE,
        "comparisons": comparisons,
        "fallback": [one for one in comparisons if one["kind"] in FALLBACK],
        "slower": slower,
        "slower_points": len(slower) if any(one["admissible"] for one in against) else None,
        "slower_in_use": _slower_in_use(comparisons, slower),
        "overhead": overhead,
        "judged": judged,
        "wrong_checksums": found["identity"]["wrong"],
        "wrong_files": [one["wrong_files"] for one in found["verification"]],
        "faults": [one["faults"] for one in found["verification"]],
        "failed_runs": _failed_runs(found),
        "notes": _notes(found),
        "reasons": reasons,
    }


def _pairs(one: Document) -> list[Pair]:
    """The pairs of which both runs count."""
    return [
        Pair(
            pair["round"],
            pair["reference_first"],
            pair["measured"]["bytes_per_s"] / pair["reference"]["bytes_per_s"],
        )
        for pair in one["pairs"]
        if _why_masked(pair) is None
    ]


def _why_masked(pair: Document) -> str | None:
    for name, run in (("reference", pair["reference"]), ("setup", pair["measured"])):
        if run["reason"]:
            return f"round {pair['round']}, {name}: {run['reason']}"
        if run["bytes_per_s"] <= 0:
            return f"round {pair['round']}, {name}: nothing was written"
    return None


def _comparison(one: Document) -> Document:
    pairs = _pairs(one)
    masked = [reason for pair in one["pairs"] if (reason := _why_masked(pair))]
    result = compare(pairs) if pairs else None
    ratio = result.ratio if result else None
    return {
        "kind": one["kind"],
        "label": one["label"],
        "setup": one["setup"],
        "reference": one["reference"],
        "n": len(pairs),
        "masked": len(masked),
        "ratio": ratio,
        "ratios": [pair.ratio for pair in pairs],
        "interval": list(result.interval) if result and result.interval else None,
        "method": result.method if result else None,
        "decision": result.decision if result else None,
        "order_effect": _order_effect(result),
        "outlier_rounds": list(result.outlier_rounds) if result else [],
        "reference_bytes_per_s": _median_rate(one, "reference"),
        "bytes_per_s": _median_rate(one, "measured"),
        "parallel_share": parallel_share(ratio, one["setup"]["threads"]) if ratio else None,
        "admissible": bool(pairs),
        "reason": None if pairs else (masked or ["it was not measured"])[0],
        "masked_reasons": masked,
    }


def _order_effect(result: PairedEstimate | None) -> Document | None:
    effect = result.order_effect if result else None
    return {"factor": effect.factor, "p": effect.p, "is_there": effect.is_there} if effect else None


def _median_rate(one: Document, key: str) -> float | None:
    rates = [pair[key]["bytes_per_s"] for pair in one["pairs"] if _why_masked(pair) is None]
    return median(rates) if rates else None


def parallel_share(speed_up: float, threads: int) -> float | None:
    """Share p of the work that would be spread over `threads`, by Amdahl's law: speed_up = 1 / (1 - p + p / threads).

    None for one thread, and for what is slower than one: it then spreads nothing."""
    if threads < 2 or speed_up < 1:
        return None
    return (1 - 1 / speed_up) / (1 - 1 / threads)


def _slower(found: Document, against: Sequence[Document]) -> list[str]:
    """The setups that are shown to be slower than the original, at a level that holds for all of them together."""
    tried = [(one, pairs) for one in found["comparisons"] if one["kind"] in AGAINST_ORIGINAL and (pairs := _pairs(one))]
    level = 1 - (1 - CONFIDENCE) / max(1, len(tried))
    return [one["label"] for one, pairs in tried if compare(pairs, level).decision == BELOW]


def _slower_in_use(comparisons: Sequence[Document], slower: Sequence[str]) -> int | None:
    """Says how many of `slower` are as deployed or fall back; None where one of these could not be measured."""
    own = [one for one in comparisons if one["kind"] in IN_USE]
    return sum(one["label"] in slower for one in own) if all(one["admissible"] for one in own) else None


def _overhead(point: Document) -> Document:
    """Time per event beyond zlib's on one thread's share, in the same turns; median, with its interval by order statistics."""
    values = [US_PER_NS * (whole - share) for whole, share in zip(point["ns"], point["share_ns"], strict=True)]
    interval = median_interval(values) if values else None
    return {
        "variant": point["variant"],
        "threads": point["threads"],
        "n": len(values),
        "median_us": median(values) if values else None,
        "least_us": min(values, default=None),
        "most_us": max(values, default=None),
        "interval_us": list(interval) if interval else None,
        "event_us": US_PER_NS * median(point["ns"]) if values else None,
        "share_us": US_PER_NS * median(point["share_ns"]) if values else None,
        "admissible": bool(values) and not point["reason"],
        "reason": point["reason"] or (None if values else "it was not measured"),
    }


def _judged(
    found: Document, comparisons: Sequence[Document], overhead: Sequence[Document]
) -> tuple[Document, dict[str, str]]:
    """Returns the values that requirements bound, and the reason for each metric that has no value."""
    variant, cores = found["throughput"]["variants"][0], len(found["cpus"]["cores"])
    placement = "cores" if found["cpus"]["has_siblings"] else "all"
    all_cores = [
        one
        for one in comparisons
        if one["kind"] == "threads"
        and one["setup"]["variant"] == variant
        and (one["setup"]["threads"], one["setup"]["placement"]) == (cores, placement)
    ]
    handing_out = [one for one in overhead if (one["variant"], one["threads"]) == (variant, cores) and cores > 1]
    judged: Document = {
        "variant": variant,
        "cores": cores,
        "gain": _figure([one for one in comparisons if one["kind"] == "application"]),
        "gain_all_cores": _figure(all_cores),
        "smt": _figure([one for one in comparisons if one["kind"] == "smt"]),
        "ceiling": _figure([one for one in comparisons if one["kind"] == "ceiling"]),
        "overhead_us": handing_out[0]["median_us"] if handing_out and handing_out[0]["admissible"] else None,
        "overhead_interval_us": handing_out[0]["interval_us"] if handing_out else None,
        "overhead_n": handing_out[0]["n"] if handing_out else None,
        "demand": [{"name": one["name"], "kept": one["kept"]} for one in found["demand"]],
        "abandoned_events": sum(one["abandoned_events"] for one in found["demand"]) if found["demand"] else None,
    }
    reasons = {}
    for name in ("gain", "gain_all_cores"):
        if judged[name] is None:
            reasons[f"{METRICS}.{name}"] = _why_no_figure(name, cores, comparisons, all_cores)
    if judged["overhead_us"] is None:
        only = "the candidate has one physical core, so nothing is handed out"
        reasons[f"{METRICS}.overhead"] = only if cores < 2 else "no point at all physical cores counts"
    for one in found["demand"]:
        if one["kept"] is None:
            reasons[f"{METRICS}.kept"] = f"{one['name']}: {one['reason']}"
    for one in comparisons:
        if one["kind"] in FALLBACK and not one["admissible"]:
            reasons[f"{METRICS}.fallback"] = f"{one['label']}: {one['reason']}"
    for one in comparisons:
        if one["kind"] in IN_USE and not one["admissible"]:
            reasons[f"{METRICS}.slower_in_use"] = f"{one['label']}: {one['reason']}"
    if not any(one["admissible"] for one in comparisons if one["kind"] in AGAINST_ORIGINAL):
        reasons[f"{METRICS}.slower_points"] = "no comparison with the original counts"
    return judged, reasons


def _why_no_figure(name: str, cores: int, comparisons: Sequence[Document], all_cores: Sequence[Document]) -> str:
    if name == "gain_all_cores" and cores < 2:
        return "the candidate has one physical core"
    of = all_cores if name == "gain_all_cores" else [one for one in comparisons if one["kind"] == "application"]
    return next((str(one["reason"]) for one in of), "it was not measured")


def _figure(found: Sequence[Document]) -> Document | None:
    """Ratio and interval of the comparison, None where it does not count."""
    if not found or not found[0]["admissible"]:
        return None
    one = found[0]
    return {key: one[key] for key in ("label", "n", "ratio", "interval", "decision", "parallel_share")}


def _failed_runs(found: Document) -> int:
    runs = [pair[key] for one in found["comparisons"] for pair in one["pairs"] for key in ("reference", "measured")]
    return sum(1 for run in [*runs, *found["demand"], *found["verification"]] if run["failed"])


def _notes(found: Document) -> list[str]:
    """Returns sentences on what this candidate cannot show."""
    notes = []
    if not found["cpus"]["has_siblings"]:
        notes.append(
            "No physical core has more than one usable CPU (kernel: SMT "
            f"{found['cpus']['smt'] or 'not told'}), so nothing can be said about SMT siblings, and no such series is drawn."
        )
    for one in found["not_measured"]:
        notes.append(f"{one['threads']} checksum threads were asked for and not measured: {one['reason']}.")
    return notes
