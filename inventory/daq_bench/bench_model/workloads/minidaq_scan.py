"""The results of the MiniDAQ's scan over request sizes beside synthetic writes (DUNE paper, figure 4). Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.base.units import binary_label
from daq_bench.bench_model.documents.struct import Amount, Block, Closed, Document, Ordinal, Positive
from daq_bench.bench_model.documents.struct import Count as Whole
from daq_bench.bench_model.documents.tools.minidaq import MinidaqSearch
from daq_bench.bench_model.statistics.plateau import PLATEAU_SHARE, find_plateau
from daq_bench.bench_model.workloads.model import Count, Model, stated
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, counting, follows, rows

SOURCE_ACHIEVED_MIN = 0.999  # daqwriter's own bound for a trial that counts
RULE = (
    "The plateau starts at the smallest request size from which on every larger admissible request size reaches at least "
    f"{PLATEAU_SHARE:.0%} of the scan's maximum; its throughput is the median of these points, and so are the ratio to synthetic "
    "writes of the same round and the share of CPU time spent copying. A request size's point is the median of its repetitions, and "
    "is admissible when all of them are"
)
PLATEAU_SIZE, PLATEAU = "minidaq_scan.plateau_request_size", "minidaq_scan.plateau_throughput"
RATIO, COPY, INHIBITS = "minidaq_scan.ratio_to_synthetic", "minidaq_scan.copy_share", "minidaq_scan.inhibits"


Limit = Literal["inhibit", "source", "all asked", "nothing stood"]


class Ratio(Closed, frozen=True):
    """`request_bytes`: B, as asked for; `value`: null: does not count"""

    request_bytes: Ordinal
    repetition: Ordinal
    value: float | None


class OnPlateau(Closed, frozen=True):
    """`from_request_bytes`: B; `throughput_bytes_per_s`: B/s; `ratios`: what is judged: one of each request size on the plateau and each
    repetition; sizes are judged apart; `ratio_to_synthetic`: median over the plateau; `ratio_range`: least and greatest ratio on the
    plateau; `copy_share`: of the process' CPU time, median over the plateau"""

    from_request_bytes: int | None
    throughput_bytes_per_s: float | None
    ratios: list[Ratio]
    ratio_to_synthetic: float | None
    copy_share: float | None
    rule: str
    ratio_range: Annotated[list[float], Meta(min_length=2, max_length=2)] | UnsetType | None = UNSET


class Search(Closed, frozen=True):
    """`highest_bytes_per_s`: B/s stood in two trials; `highest_trigger_rate_hz`: Hz of each application; `lowest_refused_bytes_per_s`:
    B/s; null: all that was asked for was stood"""

    highest_bytes_per_s: float | None
    highest_trigger_rate_hz: float | None
    lowest_refused_bytes_per_s: float | None
    trials: Ordinal


class Run(Closed, frozen=True):
    """`trigger_rate_hz`: Hz of each application; `stored_bytes_per_s`: B/s, final flush included; `achieved_fraction`: emitted over due"""

    trigger_rate_hz: float
    stored_bytes_per_s: float
    achieved_fraction: float
    vetoed: Whole
    busy_count: Whole
    lost: Whole


class Synthetic(Closed, frozen=True):
    """`block_bytes`: B; `throughput_bytes_per_s`: B/s, final flush included; `throughput_bytes_per_s_samples`: B/s per interval; `first`:
    it ran before the MiniDAQ of its round; `reason`: why it does not count"""

    block_bytes: Block
    threads: Ordinal
    throughput_bytes_per_s: Amount
    throughput_bytes_per_s_samples: list[Amount]
    first: bool
    reason: str | None


class Point(Closed, frozen=True):
    """`repetition`: of the pass over all request sizes; `asked_request_bytes`: B of each application and decision; `request_bytes`: B
    after rounding up to whole superchunks of every link; `limited_by`: what kept the search from a higher rate; `runs`: records at the
    rate found and, while they met an inhibit, at lower ones; the last is the point; `throughput_bytes_per_s`: B/s stored in the point's
    record; `throughput_bytes_per_s_samples`: B/s stored per interval; `inhibits`: of the point's record; `copy_share`: of the process'
    CPU time; `cpu_seconds_per_gb`: CPU s of the process per GB stored; `admissible`: false: masked, not drawn; `reason`: why the point
    is masked"""

    repetition: Ordinal
    asked_request_bytes: Ordinal
    request_bytes: Ordinal
    search: Search
    limited_by: Limit
    runs: list[Run]
    synthetic: Synthetic
    throughput_bytes_per_s: float | None
    throughput_bytes_per_s_samples: list[Amount]
    inhibits: Whole | None
    copy_share: float | None
    cpu_seconds_per_gb: float | None
    ratio_to_synthetic: float | None
    admissible: bool
    reason: str | None


class MinidaqScan(Closed, frozen=True):
    """results/minidaq_scan.json: highest rate of the MiniDAQ without inhibit against request size, beside synthetic writes. `links`: of
    each application; `superchunk_bytes`: B; `superchunk_rate_hz`: Hz per link, scale included; `demand_bytes_per_s`: B/s that all links
    deliver; `seconds_per_point`: s; `seconds_per_trial`: s; `inhibits`: vetoed decisions, BUSY episodes and lost superchunks of a
    point's record, the most of all points; `reasons`: why a metric has no value, by metric"""

    schema_version: Literal[1]
    applications: Ordinal
    links: Ordinal
    superchunk_bytes: Ordinal
    superchunk_rate_hz: Positive
    demand_bytes_per_s: Positive
    synthetic_threads: Ordinal
    seconds_per_point: Positive
    seconds_per_trial: Positive
    condition: str
    inhibits: Whole | None
    reasons: dict[str, str]
    plateau: OnPlateau
    points: list[Point]


def limited_by(search: MinidaqSearch) -> Limit:
    """Returns what kept `daqwriter minidaq --search` from a higher rate: "inhibit", "source", "all asked" (nothing did) or
    "nothing stood". A refused trial in which nothing was lost, vetoed or BUSY was refused since its source was late."""
    if search.highest_bytes_per_s is None:
        return "nothing stood"
    bound = search.lowest_refused_bytes_per_s
    if bound is None:
        return "all asked"
    refused = [one for one in search.trials if not one.stood and one.asked_bytes_per_s <= bound * (1 + 1e-9)]
    of_source = [one for one in refused if not (one.lost or one.vetoed or one.busy_count)]
    return "source" if refused and len(of_source) == len(refused) else "inhibit"


def inhibits_of(run: dict[str, Any]) -> int:
    """Vetoed decisions, BUSY episodes and lost superchunks of one record; a stable system has none."""
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


def coverage(plan: Plan, document: Document) -> Iterator[Problem]:
    """A request size below the plateau may be limited by the source: the plateau does not rest on it."""
    points, start = document["points"], document["plateau"]["from_request_bytes"]
    sizes = plan.parameters["request_sizes"]
    planned = [(size, number) for number in range(1, plan.repetitions + 1) for size in sizes]
    found = [(one["asked_request_bytes"], one["repetition"]) for one in points]
    yield from rows("request size", planned, found, lambda key: name_of(*key))
    needed = [one for one in points if start is None or one["asked_request_bytes"] >= start]
    yield from counting("request size", ((_request(one), one) for one in needed))
    made, _ = summarize(points)
    yield from follows("the plateau", document["plateau"], made["plateau"])
    yield from follows("the inhibits", document["inhibits"], made["inhibits"])
    for one in points:
        name, last = f"request size {_request(one)}", (one["runs"] or [None])[-1]
        said = one["inhibits"], one["throughput_bytes_per_s"]
        yield from follows(name, said, (inhibits_of(last), last["stored_bytes_per_s"]) if last else (None, None))
        why = why_masked(one["limited_by"], last, one["synthetic"]["reason"])
        yield from follows(f"{name}: the reason", one["reason"], why)
        ratio = ratio_of(one, document["demand_bytes_per_s"]) if one["admissible"] else None
        yield from follows(f"{name}: the ratio", one["ratio_to_synthetic"], ratio)
        yield from _searched(name, one)


def _searched(name: str, point: Document) -> Iterator[Problem]:
    """A rate was found or not, and only an inhibit asks for a further, slower record."""
    search, runs = point["search"], point["runs"]
    found = [search[key] is not None for key in ("highest_bytes_per_s", "highest_trigger_rate_hz")]
    limits = ["nothing stood"] if not any(found) else ["inhibit", "source"]
    if all(found) and search["lowest_refused_bytes_per_s"] is None:
        limits = ["all asked"]
    if any(found) is not all(found) or point["limited_by"] not in limits or bool(runs) is not all(found):
        yield f"{name} contradicts itself: {point['limited_by']!r} is not how its search ended", INVALIDATES
    if not all(inhibits_of(run) for run in runs[:-1]):
        yield f"{name} contradicts itself: a record without inhibit is not its last", INVALIDATES


def _request(point: Document) -> str:
    return name_of(point["asked_request_bytes"], point["repetition"])


MODEL = Model(
    coverage,
    (
        Count("applications", stated("applications")),
        Count("links", stated("links")),
        Count("superchunk_bytes", stated("superchunk_bytes")),
        Count("demand_bytes_per_s", lambda asked, _: asked.own["applications"] * asked.rate() * asked.scale),
        Count("seconds_per_point", stated("seconds_per_point")),
        Count("synthetic_threads", stated("synthetic_threads")),
    ),
    result=MinidaqScan,
)
