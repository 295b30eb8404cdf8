"""The hot store (DAQDB paper): pass matrix of the semantics, one node against value size beside Redis, clients, scale out."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import NONE, count, decimal_size, percent, significant
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.hot_store import backlog_of, kops, repetition_of, scale_figure, series_figure, size_figure
from bench_report.reading.dataset.bundle import Bundle

TITLE = "Key-value hot store"


def section(bundle: Bundle) -> Section | None:
    if "hot_store" not in bundle.run.workloads and "hot_store" not in bundle.results:
        return None
    document = bundle.results.get("hot_store")
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


def _words(document: Node) -> str:
    semantics, lost = document.at("semantics"), document.at("summary").integer("lost_events")
    failed = semantics.at("failed").as_integer()
    promises = "; ".join(f"{engine}: {text.as_text()}" for engine, text in document.at("promises").entries())
    text = f"{semantics.at('passed').as_integer()} checks of the semantics passed and {count(failed)} failed. "
    if lost is not None:
        text += f"After all kills together {count(lost)} acknowledged events were missing, damaged or handled twice. "
    return f"{text}What an acknowledged operation survives, by engine: {promises}."


def _matrix(document: Node) -> Table:
    rows_of = list(document.at("semantics").list("rows"))
    engines = list(dict.fromkeys(engine for row in rows_of for engine, _ in row.at("engines").entries()))
    rows, marked = [], set()
    for index, row in enumerate(rows_of):
        cells = dict(row.at("engines").entries())
        outcomes = [cells[one].at("outcome").as_text() if one in cells else NONE for one in engines]
        if "failed" in outcomes:
            marked.add(index)
        failed = [
            f"{one}: {cells[one].at('detail').as_text()}"
            for one in engines
            if one in cells and cells[one].at("outcome").as_text() == "failed"
        ]
        rows.append((row.at("text").as_text(), *outcomes, "; ".join(failed) or NONE))
    return Table(
        heads=("Semantics", *engines, "What failed"), kinds="t" + "s" * len(engines) + "t", rows=tuple(rows), name="hot-store-matrix",
        caption="Pass matrix. A dash: not a row of that engine.", marked=frozenset(marked),
    )  # fmt: skip


def _kill_table(document: Node) -> Table:
    found = list(document.list("losses"))
    rows = [tuple(row.at(key).as_text() for key in ("text", "engine", "detail", "outcome")) for row in found]
    return Table(
        heads=("What was killed for", "Engine", "Found afterwards", "Outcome"), kinds="ttts", rows=tuple(rows), name="hot-store-kills",
        caption="A kill proves something only when enough was acknowledged before it, and a consumer's only when it held events.",
        marked=frozenset(index for index, row in enumerate(found) if row.at("outcome").as_text() == "failed"),
    )  # fmt: skip


def _rate(rate: Node | None) -> str:
    if rate is None:
        return NONE
    mean, least, deviation = (rate.number(key) for key in ("mean_ops_per_s", "min_ops_per_s", "stdev_ops_per_s"))
    if mean is None:
        return NONE
    spread = f" ({kops(least)}; {kops(deviation)})" if least is not None and deviation is not None else ""
    return f"{kops(mean)}{spread}"


def _ratio(node: Node) -> str:
    value, interval = node.number("value"), node.numbers("interval")
    if value is None:
        return NONE
    return significant(value, 3) + (
        f" [{significant(interval[0], 3)}, {significant(interval[1], 3)}]" if interval else ""
    )


def _latency(rate: Node) -> str:
    found = rate.find("latency_us")
    return (
        NONE
        if found is None
        else f"{significant(found.at('p50').as_number(), 3)} / {significant(found.at('p99').as_number(), 3)}"
    )


def _moved(points: list[Node]) -> str:
    """Names values during which a hypervisor or scheduler moved the CPUs: their distance may change the rate, and explains scatter."""
    found = []
    for point in points:
        own = point.at("embedded")
        if own.flag("cpus_moved"):
            before, after = (own.at("handover_ns").number(name) or 0.0 for name in ("before", "after"))
            value = count(point.at("value_bytes").as_integer())
            which = f", repetition {repetition_of(point)}" if point.integer("repetition") else ""
            found.append(
                f"{value} B{which} (a cache line passed in {significant(before, 2)} ns before and {significant(after, 2)} ns after)"
            )
    return f" The distance of the CPUs changed while these values were measured: {'; '.join(found)}." if found else ""


def _size_table(document: Node) -> Table:
    points, rows = list(document.list("points")), []
    for point in points:
        own, redis, drive, ratios = point.at("embedded"), point.at("redis"), point.find("drive"), point.at("ratios")
        rows.append((
            count(point.at("value_bytes").as_integer()), count(repetition_of(point)),
            _rate(own.at("put")), _rate(redis.at("set")), _ratio(ratios.at("put")),
            _rate(own.at("consume")), _rate(redis.at("get")), _ratio(ratios.at("consume")),
            f"{_latency(own.at('put'))}; {_latency(own.at('consume'))}",
            NONE if drive is None else f"{_rate(drive.at('put'))}; {_rate(drive.at('consume'))}",
            "drawn" if point.at("admissible").as_flag() else f"not drawn: {point.text('reason') or 'no reason recorded'}",
        ))  # fmt: skip
    return Table(
        heads=(
            "Value, B", "Repetition", "Put, in process", "Redis SET, TCP", "Ratio", "Get and remove, in process", "Redis GET, TCP", "Ratio",
            "p50 / p99, us: put; get and remove",
            "On the target: put; get and remove", "In the figure",
        ),
        kinds="nnnnnnnnnnt", rows=tuple(rows), name="hot-store-sizes-table",
        caption="One thread of each kind that calls LMDB in its own process (survives kill -9), and redis-benchmark over loopback TCP with "
        f"{document.at('redis_clients').as_integer()} connections of each kind (Redis volatile). Backlog: at most "
        f"{backlog_of(document)}. Mean (least sample; standard deviation of the samples). Ratio: of the means, with its 95 % interval "
        f"where the series are long enough.{_moved(points)}",
        marked=frozenset(index for index, point in enumerate(points) if not point.at("admissible").as_flag()),
    )  # fmt: skip


def _client_table(document: Node) -> Table:
    points, rows = list(document.list("clients")), []
    for point in points:
        put, consume = point.at("put"), point.at("consume")
        rows.append((
            count(point.at("clients").as_integer()), _rate(put), _latency(put), _rate(consume), _latency(consume),
            "counts" if point.at("admissible").as_flag() else f"does not count: {point.text('reason') or 'no reason recorded'}",
        ))  # fmt: skip
    size = count(document.at("client_value_bytes").as_integer())
    return Table(
        heads=("Clients of each kind", "Put", "p50 / p99, us", "Get and remove", "p50 / p99, us", "Evidence"), kinds="nnnnnt",
        rows=tuple(rows), name="hot-store-clients",
        caption=f"N threads that put beside N that get and remove, LMDB in one process, in memory, values of {size} B, backlog at most "
        f"{backlog_of(document)}. Rates of all together.",
        marked=frozenset(index for index, point in enumerate(points) if not point.at("admissible").as_flag()),
    )  # fmt: skip


def _scale_table(document: Node) -> Table:
    points, rows = list(document.at("scale_out").list("points")), []
    for point in points:
        put99, consume99, moved = (
            point.number(key) for key in ("put_p99_us", "consume_p99_us", "network_bytes_per_event")
        )
        rows.append((
            point.at("deployment").as_text(), count(point.at("nodes").as_integer()), kops(point.at("put_ops_per_s").as_number()),
            kops(point.at("consume_ops_per_s").as_number()), NONE if put99 is None else significant(put99, 3),
            NONE if consume99 is None else significant(consume99, 3), count(point.at("unconfirmed").as_integer()),
            NONE if moved is None else decimal_size(moved),
            "counts" if point.at("admissible").as_flag() else f"does not count: {point.text('reason') or 'no reason recorded'}",
        ))  # fmt: skip
    share = document.at("summary").number("network_share")
    text = "" if share is None else f" At the most nodes base moves {percent(100 * share)} of what detached moves."
    return Table(
        heads=(
            "Deployment", "Nodes", "Put", "Claim, get, remove", "Put p99, us", "Consume p99, us", "Unconfirmed", "Network per event",
            "Evidence",
        ),
        kinds="tnnnnnnnt", rows=tuple(rows), name="hot-store-scale-table",
        caption=f"Every event that was put is consumed before a point ends, so that network bytes are those of whole events.{text}",
        marked=frozenset(index for index, point in enumerate(points) if not point.at("admissible").as_flag()),
    )  # fmt: skip
