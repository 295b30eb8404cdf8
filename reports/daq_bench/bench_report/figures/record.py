"""The record against time: data offered, data stored, and the backlog that waited in memory in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daq_bench.bench_model.documents.run import DemandOfRun
from daq_bench.bench_model.documents.tools.minidaq import Episode, Minidaq
from daq_bench.bench_report.base.envelope import thinned
from daq_bench.bench_report.base.units import (
    GB,
    count,
    decimal_rate,
    decimal_size,
    duration,
    factor_text,
    in_gb_per_s,
    latency,
    percent,
    share_or_count,
)
from daq_bench.bench_report.document.canvas import Figure, sheet
from daq_bench.bench_report.document.palette import BLUE, FAINT, GREY, INK, VERMILLION
from daq_bench.bench_report.document.panel import Panel
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.reading.dataset.record import Series, series_of

HEIGHT_MM = 70.0
ROOM = 1.12  # above the highest value, so that a line never touches the frame


def record_figures(bundle: Bundle) -> list[Figure]:
    """Draws the repetition with the largest backlog, which decides the buffer; `workloads.snb_record` draws all of them side by side."""
    drawn = [
        (number, repetition.minidaq, series_of(repetition.minidaq.series, number))
        for number, repetition in enumerate(bundle.repetitions, 1)
        if repetition.minidaq.series.t_s
    ]
    if not drawn:
        live, title = bundle.live_series, "Record as far as it came, from the writer's live records"
        return [_figure(bundle, "record-live", live, None, title)] if live and live.t_s else []
    number, minidaq, series = max(drawn, key=lambda item: (item[1].backlog.high_water_bytes, -item[0]))
    title = _title(number, len(bundle.repetitions), len(drawn) > 1, bundle.repetitions[number - 1].condition)
    return [_figure(bundle, f"record-{number}", series, minidaq, title)]


def _title(number: int, total: int, selected: bool, condition: str | None) -> str:
    on = f" on the {condition} target" if condition else ""
    if total == 1:
        return f"Record{on}: offered and stored rate, and backlog"
    note = ", that with the highest backlog" if selected else ""
    return f"Record{on}, repetition {number} of {total}{note}: offered and stored rate, and backlog"


def _figure(bundle: Bundle, name: str, series: Series, minidaq: Minidaq | None, title: str) -> Figure:
    with sheet(name, HEIGHT_MM, rows=2, ratios=(1.35, 1.0)) as (drawing, (rate, backlog)):
        _draw_rates(rate, series, bundle.run.demand)
        divisor, unit = _backlog_unit(series, minidaq)
        _draw_backlog(backlog, series, minidaq, divisor, unit)
        end = series.t_s[-1]
        if minidaq:
            _draw_spans((rate, backlog), minidaq, series)
        backlog.set_xlim(0, end)
        backlog.set_xlabel("time since the start of the record (s)")
        rate.legend_above()
        backlog.legend_above(columns=4)
        alt = f"{title}. Two panels on one time axis from 0 to {duration(end)}: rate in GB/s, backlog in {unit}."
    return drawing.figure(title, _caption(bundle, series, minidaq), alt, _see(series, minidaq))


def _draw_rates(axes: Panel, series: Series, demand: DemandOfRun | None) -> None:
    # Each line is narrower than the one below it: where they lie on each other, all are seen.
    columns = (
        ("offered", series.offered_bytes_per_s, VERMILLION, (0, (4, 1.5)), 1.1, 4),
        ("stored", series.stored_bytes_per_s, BLUE, "-", 2.2, 3),
    )
    for label, values, colour, dashes, width, order in columns:
        x, y = thinned(series.t_s, [value / GB for value in values])
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=width, label=label, zorder=order)
    top = max(max(series.offered_bytes_per_s), max(series.stored_bytes_per_s)) / GB
    if demand and demand.offered_bytes_per_s:
        asked = demand.offered_bytes_per_s / GB
        axes.axhline(asked, color=FAINT, linewidth=4.5, zorder=2, label=f"demanded {in_gb_per_s(asked * GB)}")
        top = max(top, asked)
    axes.set_ylim(0, top * ROOM or 1.0)
    axes.label_panel("Rate", "GB/s")


def _backlog_unit(series: Series, minidaq: Minidaq | None) -> tuple[float, str]:
    top = max([*series.backlog_bytes, minidaq.backlog.high_water_bytes if minidaq else 0.0])
    return (1e9, "GB") if top >= 1e9 else (1e6, "MB") if top >= 1e6 else (1e3, "kB")


def _draw_backlog(axes: Panel, series: Series, minidaq: Minidaq | None, divisor: float, unit: str) -> None:
    x, y = thinned(series.t_s, [value / divisor for value in series.backlog_bytes])
    axes.plot(x, y, color=BLUE, label="backlog")
    axes.fill_between(x, y, color=BLUE, alpha=0.15, linewidth=0)
    top = max([*series.backlog_bytes, minidaq.backlog.high_water_bytes if minidaq else 0.0]) / divisor
    capacity = minidaq.backlog.capacity_bytes if minidaq else 0
    if minidaq and minidaq.backlog.high_water_bytes:
        high, at = minidaq.backlog.high_water_bytes / divisor, minidaq.backlog.high_water_s
        axes.mark(at, high, "v", INK, f"highest {decimal_size(high * divisor)} at {duration(at)}", 5, size=5)
    # A capacity far above the data would flatten them; the caption then gives it in words.
    if capacity and capacity / divisor <= 5 * top:
        axes.axhline(capacity / divisor, color=VERMILLION, linewidth=0.9, linestyle="--", label="capacity")
        top = max(top, capacity / divisor)
    axes.set_ylim(0, top * ROOM or 1.0)
    axes.label_panel("Backlog (arrived, not yet stored)", unit)


def _draw_spans(panels: tuple[Panel, ...], minidaq: Minidaq, series: Series) -> None:
    end = series.t_s[-1]
    # A very short episode is drawn as wide as a hair on paper: BUSY must not be invisible.
    least = end / 600
    for axes in panels:
        if _visible_drain(minidaq, series):
            axes.shade([(minidaq.time.record_s, end)], GREY, "", "drain")
            axes.axvline(minidaq.time.record_s, color=GREY, linewidth=0.7)
        axes.shade(_bands(minidaq.busy.episodes, least), VERMILLION, "//", "BUSY")


def _bands(episodes: Sequence[Episode], least: float) -> list[tuple[float, float]]:
    """Joins episodes that would touch on paper into one band, so that thousands of them become a few bands."""
    bands: list[tuple[float, float]] = []
    for one in sorted(episodes, key=lambda one: one.start_s):
        start, end = one.start_s, one.start_s + max(one.duration_s, least)
        if bands and start - bands[-1][1] < least:
            bands[-1] = (bands[-1][0], max(end, bands[-1][1]))
        else:
            bands.append((start, end))
    return bands


def _caption(bundle: Bundle, series: Series, minidaq: Minidaq | None) -> str:
    parts = ["Backlog: what has arrived and is not stored yet."]
    if minidaq is None:
        parts.append(
            "No result was written for this record: the lines are the writer's live records, up to the last one."
        )
    else:
        parts.extend(punctuality(minidaq))
        parts.extend(_busy_and_backlog(minidaq, series))
    parts.append(f"n = {count(len(series.t_s))} intervals of about {duration(_interval(series))}.")
    demand, scale = bundle.run.demand, bundle.run.scenario.scale
    if demand and demand.offered_bytes_per_s and scale is not None and scale < 1:
        parts.append(
            f"Scaled down: the demanded line is {factor_text(scale)} of one readout unit's "
            f"{decimal_rate(demand.real_bytes_per_s)}."
        )
    return " ".join(parts)


def _busy_and_backlog(minidaq: Minidaq, series: Series) -> list[str]:
    parts = []
    if minidaq.busy.count == 0:
        parts.append("The dataflow was never BUSY.")
    elif minidaq.busy.count:
        spent = f", {duration(minidaq.busy.total_s)} in total"
        shown = "hatched" if minidaq.busy.episodes else "not located in time by the writer"
        parts.append(
            f"The dataflow was BUSY {minidaq.busy.count} time{'s' if minidaq.busy.count > 1 else ''}{spent} ({shown})."
        )
    band = ", grey" if _visible_drain(minidaq, series) else ""
    parts.append(
        f"After the last superchunk had arrived, the rest was on the drive within {duration(minidaq.time.drain_s)} (drain{band})."
    )
    return parts


def _visible_drain(minidaq: Minidaq, series: Series) -> bool:
    return series.t_s[-1] - minidaq.time.record_s > series.t_s[-1] / 600


def _interval(series: Series) -> float:
    steps = sorted(after - before for before, after in zip((0.0, *series.t_s), series.t_s, strict=False))
    return round(steps[len(steps) // 2], 4)


def punctuality(minidaq: Minidaq) -> Iterator[str]:
    """Yields sentences on how well the source measurably kept to its times."""
    offered = minidaq.superchunks.offered
    late, worst = minidaq.source.late_superchunks, minidaq.source.worst_lateness_us
    if not offered:
        return
    limit = f" by more than {latency(minidaq.source.late_threshold_us)}" if minidaq.source.late_threshold_us else ""
    if late:
        most = f", the latest by {latency(worst)}"
        share, counted = share_or_count(late, offered), f"{count(late)} of {count(offered)}"
        said = f"{counted} superchunks" if share == counted else f"{share} of the superchunks ({counted})"
        yield f"The source was late{limit} with {said}{most}."
    else:
        yield f"The source was late{limit} with 0 of {count(offered)} superchunks."


def _highest(series: Series, minidaq: Minidaq | None) -> tuple[float, float, bool]:
    """Returns when the backlog was highest, how high, and whether this is the writer's own mark."""
    if minidaq:
        return minidaq.backlog.high_water_s, minidaq.backlog.high_water_bytes, True
    at = max(range(len(series.t_s)), key=lambda index: series.backlog_bytes[index])
    return series.t_s[at], series.backlog_bytes[at], False


def _see(series: Series, minidaq: Minidaq | None) -> str:
    at, high, exact = _highest(series, minidaq)
    capacity = minidaq.backlog.capacity_bytes if minidaq else None
    share = f", {percent(100 * high / capacity)} of the rings\u2019 {decimal_size(capacity)}" if capacity else ""
    sampled = "" if exact else f", in samples of {duration(_interval(series))}"
    text = f"The backlog is highest {duration(at)} after the start ({decimal_size(high)}{share}{sampled})"
    lost = minidaq.superchunks.lost if minidaq else None
    if lost is None:
        return f"{text}."
    return f"{text}, and {count(lost)} superchunks were lost." if lost else f"{text}, and no superchunk was lost."
