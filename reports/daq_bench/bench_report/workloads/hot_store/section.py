"""The hot store (DAQDB paper): pass matrix of the semantics, one node against value size beside Redis, clients, scale out."""

from __future__ import annotations

from daq_bench.bench_model.workloads.hot_store.document import Clients, HotStore, Point, Rate, Ratio, ScalePoint
from daq_bench.bench_report.base.units import NONE, count, decimal_size, percent, significant, three
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.document.table import COUNTS, IN_FIGURE, Column, Columns, Table, masked, table
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
    document = bundle.result("hot_store", HotStore)
    if document is None:
        return unfinished(bundle, "hot_store", TITLE, "no result of the hot store (results/hot_store.json).")
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


def _rate(rate: Rate) -> str:
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


def _on_target(one: Point) -> str | None:
    return f"{_rate(one.drive.put)}; {_rate(one.drive.consume)}" if one.drive else None


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


SIZES: Columns[Point] = (
    Column("Value, B", lambda one: one.value_bytes, count),
    Column("Repetition", lambda one: one.repetition, count),
    Column("Put, in process", lambda one: one.embedded.put, _rate),
    Column("Redis SET, TCP", lambda one: one.redis.set, _rate),
    Column("Ratio", lambda one: one.ratios.put, _ratio),
    Column("Get and remove, in process", lambda one: one.embedded.consume, _rate),
    Column("Redis GET, TCP", lambda one: one.redis.get, _rate),
    Column("Ratio", lambda one: one.ratios.consume, _ratio),
    Column(
        "p50 / p99, us: put; get and remove",
        lambda one: f"{_latency(one.embedded.put)}; {_latency(one.embedded.consume)}",
        kind="n",
    ),
    Column("On the target: put; get and remove", _on_target, kind="n"),
    IN_FIGURE,
)


def _size_table(document: HotStore) -> Table:
    caption = (
        "One thread of each kind that calls LMDB in its own process (survives kill -9), and redis-benchmark over loopback TCP with "
        f"{document.redis_clients} connections of each kind (Redis volatile). Backlog: at most "
        f"{backlog_of(document)}. Mean (least sample; standard deviation of the samples). Ratio: of the means, with its 95 % interval "
        f"where the series are long enough.{_moved(document.points)}"
    )
    return table(document.points, SIZES, "hot-store-sizes-table", caption, masked)


CLIENTS: Columns[Clients] = (
    Column("Clients of each kind", lambda one: one.clients, count),
    Column("Put", lambda one: one.put, _rate),
    Column("p50 / p99, us", lambda one: one.put, _latency),
    Column("Get and remove", lambda one: one.consume, _rate),
    Column("p50 / p99, us", lambda one: one.consume, _latency),
    COUNTS,
)


def _client_table(document: HotStore) -> Table:
    caption = (
        "N threads that put beside N that get and remove, LMDB in one process, in memory, values of "
        f"{count(document.client_value_bytes)} B, backlog at most {backlog_of(document)}. Rates of all together."
    )
    return table(document.clients, CLIENTS, "hot-store-clients", caption, masked)


SCALE: Columns[ScalePoint] = (
    Column("Deployment", lambda one: one.deployment),
    Column("Nodes", lambda one: one.nodes, count),
    Column("Put", lambda one: one.put_ops_per_s, kops),
    Column("Claim, get, remove", lambda one: one.consume_ops_per_s, kops),
    Column("Put p99, us", lambda one: one.put_p99_us, three),
    Column("Consume p99, us", lambda one: one.consume_p99_us, three),
    Column("Unconfirmed", lambda one: one.unconfirmed, count),
    Column("Network per event", lambda one: one.network_bytes_per_event, decimal_size),
    COUNTS,
)


def _scale_table(document: HotStore) -> Table:
    share = document.summary.network_share
    text = "" if share is None else f" At the most nodes base moves {percent(100 * share)} of what detached moves."
    caption = f"Every event that was put is consumed before a point ends, so that network bytes are those of whole events.{text}"
    return table(document.scale_out.points, SCALE, "hot-store-scale-table", caption, masked)
