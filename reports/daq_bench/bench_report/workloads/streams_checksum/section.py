"""The storage application with a multi-threaded checksum (ATLAS): overhead, gain, fallback, demand, files."""

from __future__ import annotations

from daq_bench.bench_model.workloads.streams_checksum.document import (
    Compared,
    Gain,
    OverheadPoint,
    StreamsChecksum,
    StreamsChecksumAnalysis,
)
from daq_bench.bench_report.base.units import (
    NONE,
    TIMES,
    binary_size,
    count,
    decimal_size,
    duration,
    latency,
    percent,
    significant,
    span,
)
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Part, Section, unfinished
from daq_bench.bench_report.figures.references import measured_references
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.workloads.streams_checksum.figures import Level, ThreadPoint, share_figure, thread_figure
from daq_bench.bench_report.workloads.streams_checksum.tables import (
    HANDING_OUT,
    comparison_table,
    demand_table,
    overhead_table,
    verification_table,
)

TITLE = "Storage application with multi-threaded checksum"
NS_PER_US = 1e3
SINKS = {"target": "files on the target", "null": "no drive: what the CPUs alone could do"}


def section(bundle: Bundle) -> Section | None:
    found = bundle.result("streams_checksum", StreamsChecksum)
    analysis = bundle.result("streams_checksum_analysis", StreamsChecksumAnalysis)
    if found is None or analysis is None:
        missing = "streams_checksum" if found is None else "streams_checksum_analysis"
        return unfinished(bundle, "streams_checksum", TITLE, f"no result of it (results/{missing}.json).")
    parts: list[Part] = [
        _words(bundle, found, analysis),
        _overhead_figure(found, analysis) or Lacking("no point of the overhead of handing out chunks counts"),
        overhead_table(analysis),
        _throughput_figure(bundle, found, analysis) or Lacking("no pair of the throughput by checksum threads counts"),
        comparison_table(found, analysis),
        _share_figure(bundle, found) or Lacking("the shares of the streams: no paced run"),
        demand_table(found),
        verification_table(found),
    ]
    if analysis.notes:
        parts.append(" ".join(analysis.notes))
    return Section("streams-checksum", TITLE, tuple(parts))


def _words(bundle: Bundle, found: StreamsChecksum, analysis: StreamsChecksumAnalysis) -> str:
    cpus, judged, own = found.cpus, analysis.judged, found.application
    cores, order = len(cpus.cores), len(cpus.order)
    said = [
        f"The candidate has {cores} physical core{'s' if cores > 1 else ''} and {order} usable CPU{'s' if order > 1 else ''}.",
        f"Deployed: {own.variant}, {_threads(own.threads)} for each stream.",
    ]
    if judged.gain:
        said.append(f"It has {_ratio(judged.gain)} the throughput of the original, the single-threaded zlib.")
    if all_cores := judged.gain_all_cores:
        parallel = all_cores.parallel_share
        share = f", which by Amdahl's law spreads {percent(100 * parallel)} of the work" if parallel is not None else ""
        said.append(
            f"Sharing zlib out among all {cores} physical cores gives {_ratio(all_cores)} the original's throughput{share}."
        )
    if judged.smt:
        said.append(f"Adding the SMT siblings gives {_ratio(judged.smt)} the throughput of the physical cores alone.")
    combine, splits = found.identity.combine_ns, found.identity.splits
    if combine:
        said.append(f"One adler32_combine takes {latency(combine.median / NS_PER_US)}.")
    if splits:
        wrong = found.identity.wrong
        result = "each gave zlib's checksum" if not wrong else "the comparison ended at a WRONG CHECKSUM"
        said.append(
            f"{count(splits.comparisons)} cuts of an event of {binary_size(splits.bytes)}, by every variant and number of threads, were "
            f"compared: {result}."
        )
    said += [one.attribution for one in measured_references(bundle, "checksum_combine_time")]
    return " ".join(said)


def _threads(number: int) -> str:
    return f"{number} checksum thread{'s' if number > 1 else ''}"


def _ratio(figure: Gain) -> str:
    said = NONE if figure.ratio is None else f"{significant(figure.ratio, 3)} times"
    return f"{said} (95 % CI {span(figure.interval)}, n = {figure.n})" if figure.interval else said


def _overhead_figure(found: StreamsChecksum, analysis: StreamsChecksumAnalysis) -> Figure | None:
    drawn = [point for point in analysis.overhead if point.admissible]
    if not drawn:
        return None
    series = []
    for variant, label in HANDING_OUT.items():
        points = [
            ThreadPoint(point.threads, point.median_us, *(point.interval_us or (None, None)))
            for point in drawn
            if point.variant == variant and point.median_us is not None
        ]
        if points:
            series.append((label, points))
    numbers = sorted({point.n for point in drawn})
    masked = [_at(point) for point in analysis.overhead if not point.admissible]
    caption = [
        f"Time of one event of {binary_size(found.overhead.event_bytes)} beyond zlib's time on one thread's "
        f"share of it, in the same turn; median of n = {' to '.join(map(str, numbers[:: max(1, len(numbers) - 1)]))} turns, bars: 95 % "
        "interval of the median (order statistics). Each thread has a CPU of its own, physical cores first. Below zero: within the "
        "noise. The axis is logarithmic above 1 \u00b5s and linear below.",
        f"Not drawn: {', '.join(masked)}." if masked else "",
    ]
    name, title = "streams-overhead", "What handing out an event's chunks costs"
    text = " ".join(part for part in caption if part)
    return thread_figure(name, title, "overhead per event (\u00b5s)", series, (), text, cores=_siblings_from(found))


def _siblings_from(found: StreamsChecksum) -> int | None:
    return len(found.cpus.cores) if found.cpus.has_siblings else None


def _at(point: OverheadPoint) -> str:
    return f"{point.variant} with {point.threads} ({point.reason})"


def _throughput_figure(bundle: Bundle, found: StreamsChecksum, analysis: StreamsChecksumAnalysis) -> Figure | None:
    siblings, comparisons = found.cpus.has_siblings, analysis.comparisons
    series = []
    for variant in found.throughput.variants:
        for placement in ("cores", "all") if siblings else ("all",):
            points = [
                ThreadPoint(one.setup.threads, one.ratio, *(one.interval or (None, None)))
                for one in comparisons
                if _is_point(one, variant, placement) and one.admissible and one.ratio is not None
            ]
            if points:
                where = {"cores": "one CPU per core", "all": "with SMT siblings"}[placement] if siblings else ""
                label = f"{variant}, {where}" if where else variant
                series.append((label, sorted(points, key=lambda point: point.threads)))
    if not series:
        return None
    references = measured_references(bundle, "checksum_gain")
    levels = [Level("original: zlib, one thread", 1.0, False)]
    levels += [
        Level(f"{one.label} {one.figure.qualifier} {TIMES}{significant(one.value, 3)}", one.value, True)
        for one in references
    ]
    for kind, label in (("application", "as deployed: "), ("ceiling", "")):
        for one in comparisons:
            if one.kind == kind and one.admissible and one.ratio is not None:
                text = f"{label}{one.setup.variant}" if label else "no checksum at all"
                levels.append(Level(text, one.ratio, False))
    name, title = "streams-throughput", "Throughput of the storage application, normalised to the original"
    masked = [one.label for one in comparisons if not one.admissible]
    caption = [
        f"Geometric mean over up to n = {found.rounds} pairs of runs of {duration(found.throughput.seconds)}, the original first in one "
        "round and last in the next; bars: 95 % interval "
        f"(Student t on log ratios). {_capital(SINKS[found.throughput.sink])}. "
        "Threads are those of each stream, its own included.",
        f"Not drawn, since no pair counts: {', '.join(masked)}." if masked else "",
        *(one.attribution for one in references),
    ]
    return thread_figure(
        name, title, "throughput / original (1: alike)", series, levels, " ".join(part for part in caption if part),
        cores=_siblings_from(found), from_zero=True,
    )  # fmt: skip


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_point(one: Compared, variant: str, placement: str) -> bool:
    """Says whether the setup is a point of the series: the switched-off one is its point at one thread where every CPU may be used."""
    return (one.setup.variant, one.setup.placement) == (variant, placement) and one.kind in ("threads", "switched-off")


def _share_figure(bundle: Bundle, found: StreamsChecksum) -> Figure | None:
    if not found.demand:
        return None
    run = found.demand[0]
    references = measured_references(bundle, "busiest_stream_share")
    level = (
        Level(
            f"{references[0].label}, one stream more than {percent(100 * references[0].value)}",
            references[0].value,
            True,
        )
        if references
        else None
    )
    name, title = "streams-shares", "What each stream has of the throughput"
    caption = (
        f"The {run.name} run: {decimal_size(run.written_bytes)} in n = {len(run.streams)} streams. The "
        "shares are asked for by number of events; their sizes scatter. The source states the busiest stream's share only. "
        + " ".join(one.attribution for one in references)
    )
    asked, achieved = [one.share for one in run.streams], [one.achieved_share for one in run.streams]
    return share_figure(name, title, asked, achieved, level, caption)
