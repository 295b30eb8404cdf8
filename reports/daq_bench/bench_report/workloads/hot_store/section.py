"""The hot store (DAQDB paper): pass matrix of the semantics, one node against value size beside Redis, clients, scale out."""

from __future__ import annotations

from daq_bench.bench_model.workloads.hot_store.document import HotStore, Point, Rate, Ratio
from daq_bench.bench_report.base.units import NONE, count, decimal_size, percent, significant
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.hot_store.figures import (
    backlog_of,
    kops,
    scale_figure,
    series_figure,
    size_figure,
)

TITLE = "Key-value hot store"


def section(bundle: Bundle) -> Section | None:
    if "hot_store" not in bundle.run.scenario.workloads and "hot_store" not in bundle.results:
        return None
    document = bundle.result("hot_store", HotStore)
    if document is None:
        return Section("hot-store", TITLE, (Lacking("no result of the hot store (results/hot_store.json)."),))
    parts: list[Part] = [
        _words(document),
        _matrix(document),
        _kill_table(document),
        size_figure(document) or Lacking("no value size at which store and Redis both count"),
        _size_table(document),
        series_figure(document) or Lacking("no series that counts"),
        _client_table(document),
        scale_figure(document) or Lacking("no deployment that counts"),
        _scale_table(document),
    ]
    return Section("hot-store", TITLE, tuple(parts))


def _words(document: HotStore) -> str:
    semantics, lost = document.semantics, document.summary.lost_events
    failed = semantics.failed
    promises = "; ".join(f"{engine}: {text}" for engine, text in document.promises.items())
    text = f"{semantics.passed} checks of the semantics passed and {count(failed)} failed. "
    if lost is not None:
        text += f"After all kills together {count(lost)} acknowledged events were missing, damaged or handled twice. "
    return f"{text}What an acknowledged operation survives, by engine: {promises}."


def _matrix(document: HotStore) -> Table:
    rows_of = document.semantics.rows
    engines = list(dict.fromkeys(engine for row in rows_of for engine in row.engines))
    rows, marked = [], set()
    for index, row in enumerate(rows_of):
        cells = row.engines
        outcomes = [cells[one].outcome if one in cells else NONE for one in engines]
        if "failed" in outcomes:
            marked.add(index)
        failed = [f"{one}: {cells[one].detail}" for one in engines if one in cells and cells[one].outcome == "failed"]
        rows.append((row.text, *outcomes, "; ".join(failed) or NONE))
    return Table(
        heads=("Semantics", *engines, "What failed"), kinds="t" + "s" * len(engines) + "t", rows=tuple(rows), name="hot-store-matrix",
        caption="Pass matrix. A dash: not a row of that engine.", marked=frozenset(marked),
    )  # fmt: skip


def _kill_table(document: HotStore) -> Table:
    found = document.losses
    rows = [(row.text, row.engine, row.detail, row.outcome) for row in found]
    return Table(
        heads=("What was killed for", "Engine", "Found afterwards", "Outcome"), kinds="ttts", rows=tuple(rows), name="hot-store-kills",
        caption="A kill proves something only when enough was acknowledged before it, and a consumer's only when it held events.",
        marked=frozenset(index for index, row in enumerate(found) if row.outcome == "failed"),
    )  # fmt: skip


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return NONE
    mean, least, deviation = rate.mean_ops_per_s, rate.min_ops_per_s, rate.stdev_ops_per_s
    if mean is None:
        return NONE
    spread = f" ({kops(least)}; {kops(deviation)})" if least is not None and deviation is not None else ""
    return f"{kops(mean)}{spread}"


def _ratio(found: Ratio) -> str:
    value, interval = found.value, found.interval
    if value is None:
        return NONE
    return significant(value, 3) + (
        f" [{significant(interval[0], 3)}, {significant(interval[1], 3)}]" if interval else ""
    )


def _latency(rate: Rate) -> str:
    found = rate.latency_us
    return NONE if found is None else f"{significant(found.p50, 3)} / {significant(found.p99, 3)}"


def _moved(points: list[Point]) -> str:
    """Names values during which a hypervisor or scheduler moved the CPUs: their distance may change the rate, and explains scatter."""
    found, several = [], max(point.repetition for point in points) > 1
    for point in points:
        own = point.embedded
        if own.cpus_moved:
            before, after = (one or 0.0 for one in (own.handover_ns.before, own.handover_ns.after))
            which = f", repetition {point.repetition}" if several else ""
            found.append(
                f"{count(point.value_bytes)} B{which} (a cache line passed in {significant(before, 2)} ns before and "
                f"{significant(after, 2)} ns after)"
            )
    return f" The distance of the CPUs changed while these values were measured: {'; '.join(found)}." if found else ""


def _size_table(document: HotStore) -> Table:
    points, rows = document.points, []
    for point in points:
        own, redis, drive, ratios = point.embedded, point.redis, point.drive, point.ratios
        rows.append((
            count(point.value_bytes), count(point.repetition),
            _rate(own.put), _rate(redis.set), _ratio(ratios.put),
            _rate(own.consume), _rate(redis.get), _ratio(ratios.consume),
            f"{_latency(own.put)}; {_latency(own.consume)}",
            NONE if drive is None else f"{_rate(drive.put)}; {_rate(drive.consume)}",
            "drawn" if point.admissible else f"not drawn: {point.reason or 'no reason recorded'}",
        ))  # fmt: skip
    return Table(
        heads=(
            "Value, B", "Repetition", "Put, in process", "Redis SET, TCP", "Ratio", "Get and remove, in process", "Redis GET, TCP", "Ratio",
            "p50 / p99, us: put; get and remove",
            "On the target: put; get and remove", "In the figure",
        ),
        kinds="nnnnnnnnnnt", rows=tuple(rows), name="hot-store-sizes-table",
        caption="One thread of each kind that calls LMDB in its own process (survives kill -9), and redis-benchmark over loopback TCP with "
        f"{document.redis_clients} connections of each kind (Redis volatile). Backlog: at most "
        f"{backlog_of(document)}. Mean (least sample; standard deviation of the samples). Ratio: of the means, with its 95 % interval "
        f"where the series are long enough.{_moved(points)}",
        marked=frozenset(index for index, point in enumerate(points) if not point.admissible),
    )  # fmt: skip


def _client_table(document: HotStore) -> Table:
    points, rows = document.clients, []
    for point in points:
        put, consume = point.put, point.consume
        rows.append((
            count(point.clients), _rate(put), _latency(put), _rate(consume), _latency(consume),
            "counts" if point.admissible else f"does not count: {point.reason or 'no reason recorded'}",
        ))  # fmt: skip
    size = count(document.client_value_bytes)
    return Table(
        heads=("Clients of each kind", "Put", "p50 / p99, us", "Get and remove", "p50 / p99, us", "Evidence"), kinds="nnnnnt",
        rows=tuple(rows), name="hot-store-clients",
        caption=f"N threads that put beside N that get and remove, LMDB in one process, in memory, values of {size} B, backlog at most "
        f"{backlog_of(document)}. Rates of all together.",
        marked=frozenset(index for index, point in enumerate(points) if not point.admissible),
    )  # fmt: skip


def _scale_table(document: HotStore) -> Table:
    points, rows = document.scale_out.points, []
    for point in points:
        put99, consume99, moved = point.put_p99_us, point.consume_p99_us, point.network_bytes_per_event
        rows.append((
            point.deployment, count(point.nodes), kops(point.put_ops_per_s),
            kops(point.consume_ops_per_s), NONE if put99 is None else significant(put99, 3),
            NONE if consume99 is None else significant(consume99, 3), count(point.unconfirmed),
            NONE if moved is None else decimal_size(moved),
            "counts" if point.admissible else f"does not count: {point.reason or 'no reason recorded'}",
        ))  # fmt: skip
    share = document.summary.network_share
    text = "" if share is None else f" At the most nodes base moves {percent(100 * share)} of what detached moves."
    return Table(
        heads=(
            "Deployment", "Nodes", "Put", "Claim, get, remove", "Put p99, us", "Consume p99, us", "Unconfirmed", "Network per event",
            "Evidence",
        ),
        kinds="tnnnnnnnt", rows=tuple(rows), name="hot-store-scale-table",
        caption=f"Every event that was put is consumed before a point ends, so that network bytes are those of whole events.{text}",
        marked=frozenset(index for index, point in enumerate(points) if not point.admissible),
    )  # fmt: skip
