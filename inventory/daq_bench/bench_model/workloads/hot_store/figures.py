"""The hot store's figures from what hotstore and redis-benchmark yielded: points against value size, matrix of the semantics,
scale out. Pure: documents in, results/hot_store.json out.

A rate's scatter is that of its samples of SAMPLE_S. A ratio's interval is that of the two means' own, the far ends against each
other: wider than it need be, never narrower."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.statistics import hdr
from daq_bench.bench_model.statistics.bootstrap import mean_interval
from daq_bench.bench_model.statistics.repetitions import CONFIDENCE

Interval = tuple[float, float]

ENGINES = ("lmdb", "redis", "redis-cluster")
# Rows of the matrix: what `hotstore semantics` answers, and what each engine is killed for.
SEMANTICS = (
    "put-refuses-existing", "values-unchanged", "update-value", "update-level", "remove", "range", "getany-exclusive", "locked",
    "lease-returns", "late-fenced", "locked-attribute", "getany-level", "reopening", "schema",
)  # fmt: skip
RESTART, CONSUMER, NODE = "restart-after-kill", "consumer-killed", "node-lost"
HEIRS = 2  # consumers that a killed one's events come back to
KILLS = {"lmdb": (CONSUMER, RESTART), "redis": (CONSUMER, RESTART), "redis-cluster": (CONSUMER, NODE)}
SIDES = {"put": "set", "consume": "get"}  # of the embedded store, and what of Redis it is held against
BACKLOG_PARTS = 4  # put threads wait while one of so many parts of the capacity is put and not yet removed
SAMPLE_S = 0.5  # thirty seconds are sixty samples: enough for an interval
SAMPLES_SHARE_MIN = 0.9  # of those that were asked for
NS_PER_US = 1000.0
PASSED, FAILED, NOT_APPLICABLE, NOT_RUN = "passed", "failed", "not applicable", "not run"
# A choice: measured were 30 to 50 ns (once 17) and 205 to 315 ns, so a repetition of the short one may now and then count as a change.
HANDOVER_CHANGE_MAX = 1.5
# The values that the one paper behind this states in words; it does not state its figures' points, so they are not drawn.
PUBLISHED = {
    "source": "Cicalese et al., The design of a distributed key-value store for petascale hot storage in data acquisition systems, "
    "section 4.4",
    "just_below_ops_per_s": 300_000,
    "min_ops_per_s": 241_000,
    "stdev_at_most_ops_per_s": 7_600,
    "times_redis": 3,
    "conditions": "two Xeon Gold 6140, persistent memory emulated with a RAM disk, values of 1 to 10 kB, "
    "30 s, one put thread and one get-and-delete thread",
}


def rate_of(samples: Sequence[float], latency: Document | None = None, waited_s: float | None = None) -> Document:
    """Mean, least and standard deviation of a series of operations per second, and what is known of the latency."""
    mean = statistics.fmean(samples) if samples else None
    deviation = statistics.stdev(samples) if len(samples) > 1 else None
    counts = mean is not None and mean > 0
    return {
        "n": len(samples),
        "samples_ops_per_s": list(samples),
        "mean_ops_per_s": mean,
        "min_ops_per_s": min(samples, default=None),
        "stdev_ops_per_s": deviation,
        "relative_stdev": deviation / mean if counts and mean and deviation is not None else None,
        "min_over_mean": min(samples) / mean if counts and mean else None,
        "waited_s": waited_s,
        "latency_us": {key: latency[key] for key in ("p50", "p99", "p99_9", "max")} if latency else None,
    }


def cpus_moved(document: Document) -> bool | None:
    """Says whether the CPUs of a document of `hotstore bench` came apart or closer under the load; None: one CPU only."""
    found = document["handover_ns"]
    if found["before"] is None or found["after"] is None:
        return None
    return bool(max(found.values()) > HANDOVER_CHANGE_MAX * min(found.values()))


def side_of(document: Document, side: str) -> Document:
    """`put` or `consume` of a document of `hotstore bench`."""
    said = document[side]
    return rate_of(said["samples_ops_per_s"], said["latency_us"], said["waited_s"])


def ratio_of(above: Document, below: Document, seed: int) -> Document:
    """Returns the ratio of two mean rates, with its interval where both series are long enough for one."""
    if not above["mean_ops_per_s"] or not below["mean_ops_per_s"]:
        return {"value": None, "interval": None}
    found = [_interval(tuple(one["samples_ops_per_s"]), seed) for one in (above, below)]
    first, second = found
    interval = [first[0] / second[1], first[1] / second[0]] if first and second and second[0] > 0 else None
    return {"value": above["mean_ops_per_s"] / below["mean_ops_per_s"], "interval": interval}


@lru_cache(maxsize=256)
def _interval(samples: tuple[float, ...], seed: int) -> Interval | None:
    """Whoever looks at a run's ratios again asks for the same intervals."""
    return mean_interval(samples, CONFIDENCE, seed).interval


def point(
    value_bytes: int,
    embedded: Document,
    redis: Mapping[str, Sequence[float]],
    drive: Document | None,
    seconds: float,
    seed: int,
) -> Document:
    """One value size: the embedded store on the memory's folder, Redis beside it, and the embedded store on the target."""
    sides = {side: side_of(embedded, side) for side in SIDES}
    references = {name: rate_of(samples) for name, samples in redis.items()}
    reason = why_masked(embedded, sides, references, seconds)
    if reason is None and drive is not None:
        reason = why_masked(drive, {side: side_of(drive, side) for side in SIDES}, {}, seconds)
        reason = f"on the target: {reason}" if reason else None
    return {
        "value_bytes": value_bytes,
        "embedded": {
            **sides,
            "cpu_us_per_operation": embedded["cpu"]["us_per_operation"],
            "handover_ns": embedded["handover_ns"],
            "cpus_moved": cpus_moved(embedded),
        },
        "redis": references,
        "drive": {side: side_of(drive, side) for side in SIDES} if drive else None,
        "ratios": {side: ratio_of(sides[side], references[name], seed) for side, name in SIDES.items()},
        "admissible": reason is None,
        "reason": reason,
    }


def why_masked(
    document: Document, sides: Mapping[str, Document], references: Mapping[str, Document], seconds: float
) -> str | None:
    """Why a run of the load does not count; None: it does."""
    if document["status"] != "complete":
        return f"hotstore bench is {document['status']}: {document['error'] or 'no reason given'}"
    if document["corrupt"]:
        return f"{document['corrupt']} values were not what was put"
    short = [name for name, one in {**sides, **references}.items() if one["n"] < SAMPLES_SHARE_MIN * seconds / SAMPLE_S]
    if short:
        return f"fewer samples than were asked for: {', '.join(short)}"
    idle = [name for name, one in {**sides, **references}.items() if not one["mean_ops_per_s"]]
    return f"nothing was done: {', '.join(idle)}" if idle else None


def clients_point(clients: int, document: Document, seconds: float) -> Document:
    """N clients that put beside N that get and remove, in one process."""
    sides = {side: side_of(document, side) for side in SIDES}
    reason = why_masked(document, sides, {}, seconds)
    return {"clients": clients, **sides, "admissible": reason is None, "reason": reason}


def matrix(found: Mapping[str, Iterable[Document]], further: Iterable[Document]) -> Document:
    """`found`: rows of `hotstore semantics` by engine; `further`: {id, text, engine, outcome, detail} of what takes several processes."""
    rows: dict[str, Document] = {}
    for engine, answers in found.items():
        for row in answers:
            _enter(rows, {**row, "engine": engine})
    for row in further:
        _enter(rows, row)
    outcomes = [cell["outcome"] for row in rows.values() for cell in row["engines"].values()]
    return {
        "rows": list(rows.values()),
        "passed": outcomes.count(PASSED),
        "failed": outcomes.count(FAILED),
    }


def _enter(rows: dict[str, Document], row: Document) -> None:
    kept = rows.setdefault(row["id"], {"id": row["id"], "text": row["text"], "engines": {}})
    kept["engines"][row["engine"]] = {"outcome": row["outcome"], "detail": row["detail"]}


def loss_row(id_: str, text: str, engine: str, verified: Document, minimum: int) -> Document:
    """A row of the matrix from `hotstore verify` after something was killed; one that had nothing to lose proves nothing."""
    lost = verified["missing"] + verified["corrupt"] + verified["came_back"] + verified["removed_twice"]
    enough = verified["acknowledged"] >= minimum
    detail = (
        f"{verified['acknowledged']} acknowledged, {verified['removed']} removed, {verified['missing']} missing, "
        f"{verified['corrupt']} corrupt, {verified['came_back']} came back, {verified['removed_twice']} removed twice"
    )
    if not enough:
        detail += f"; fewer than {minimum} acknowledged before the kill"
    outcome = PASSED if lost == 0 and enough else FAILED
    return {"id": id_, "text": text, "engine": engine, "outcome": outcome, "detail": detail, "lost": lost}


def with_returned(row: Document, returned: int) -> Document:
    """The row of a killed consumer; it proves something only if the consumer held events when it was killed."""
    detail = f"{row['detail']}; {returned} events came back from the killed consumer"
    return {**row, "detail": detail, "outcome": row["outcome"] if returned > 0 else FAILED}


def scale_point(
    deployment: str,
    nodes: int,
    producers: list[Document],
    consumers: list[Document],
    network_bytes: int | None,
    drained_s: float,
) -> Document:
    """All processes of a deployment together, from the first put until all is consumed.

    `drained_s`: how long a consumer found nothing before it ended; that time is not part of its rate."""
    documents = [*producers, *consumers]
    put_events = sum(one["put"]["operations"] for one in producers)
    consumed = sum(one["consume"]["operations"] for one in consumers)
    bad = [f"{one['status']}: {one['error']}" for one in documents if one["status"] != "complete" or one["corrupt"]]
    if not bad and (put_events == 0 or consumed < put_events):
        bad = [f"{put_events} events were put and {consumed} consumed"]
    active = [max(one["measured_s"] - drained_s, 1e-3) for one in consumers]
    return {
        "deployment": deployment,
        "nodes": nodes,
        "put_ops_per_s": sum(one["put"]["ops_per_s"] for one in producers),
        "consume_ops_per_s": consumed / max(active),
        "put_p99_us": merged_percentile([one["put"]["latency_us"]["hdr"] for one in producers], 99),
        "consume_p99_us": merged_percentile([one["consume"]["latency_us"]["hdr"] for one in consumers], 99),
        "unconfirmed": sum(one["answers"].get("unconfirmed", 0) for one in documents),
        "events": put_events,
        "network_bytes": network_bytes,
        "network_bytes_per_event": network_bytes / put_events if network_bytes is not None and put_events else None,
        "admissible": not bad,
        "reason": bad[0] if bad else None,
    }


def merged_percentile(texts: Iterable[str], percentile: float) -> float | None:
    """In us, of several histograms of ns together."""
    counts: dict[int, int] = {}
    for text in texts:
        histogram = hdr.decode(text)
        for highest, number in zip(histogram.highest, histogram.counts, strict=True):
            counts[highest] = counts.get(highest, 0) + number
    if not counts:
        return None
    highest_of = tuple(sorted(counts))
    merged = hdr.Histogram(highest_of, highest_of, tuple(counts[one] for one in highest_of))
    return merged.value_at(percentile) / NS_PER_US


def network_share(points: Sequence[Document]) -> float | None:
    """Network bytes per event of the base deployment over those of the detached one, at the most nodes that both have."""
    by_place = {
        (one["deployment"], one["nodes"]): one["network_bytes_per_event"] for one in points if one["admissible"]
    }
    both = [n for kind, n in by_place if kind == "base" and ("detached", n) in by_place]
    if not both:
        return None
    base, detached = by_place["base", max(both)], by_place["detached", max(both)]
    return base / detached if base is not None and detached else None


def summary(
    points: Sequence[Document], matrix_found: Document, losses: Sequence[Document], scale: Sequence[Document]
) -> Document:
    """Returns the values that requirements bound, and why one is missing. A point that does not count keeps its place, as a hole."""
    drawn = [one for one in points if one["admissible"]]
    stdevs, minima = (
        [one["embedded"][side][key] for one in drawn for side in SIDES if one["embedded"][side][key] is not None]
        for key in ("relative_stdev", "min_over_mean")
    )
    reasons = {}
    if len(drawn) < len(points):
        masked = next(one for one in points if not one["admissible"])
        for name in ("put_ratio", "consume_ratio", "relative_stdev", "min_over_mean"):
            reasons[f"hot_store.{name}"] = (
                f"values of {masked['value_bytes']} B, repetition {masked['repetition']}: {masked['reason']}"
            )
    share = network_share(scale)
    if share is None:
        reasons["hot_store.network_share"] = "no number of nodes has both deployments and counted network bytes"
    whole = len(drawn) == len(points)
    return {
        "ratios": {side: [_judged(one, side) for one in points] for side in SIDES},
        "relative_stdev": max(stdevs) if stdevs and whole else None,
        "min_over_mean": min(minima) if minima and whole else None,
        "semantics_failed": matrix_found["failed"] if matrix_found["rows"] else None,
        "lost_events": sum(one["lost"] for one in losses) if losses else None,
        "network_share": share,
        "reasons": reasons,
    }


def _judged(point: Document, side: str) -> Document:
    found: Document = point["ratios"][side] if point["admissible"] else {"value": None, "interval": None}
    return found
