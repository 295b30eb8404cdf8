"""The storage application with a multi-threaded checksum (ATLAS): overhead, gain, fallback, demand, files."""

from __future__ import annotations

from bench_report.base.fields import Node
from bench_report.base.units import TIMES, binary_size, count, decimal_size, duration, latency, percent, significant
from bench_report.document.canvas import Figure
from bench_report.document.section import Lacking, Part, Section
from bench_report.figures.references import measured_references
from bench_report.figures.streams import Level, ThreadPoint, share_figure, thread_figure
from bench_report.reading.dataset.bundle import Bundle
from bench_report.sections.streams_tables import (
    HANDING_OUT,
    comparison_table,
    demand_table,
    overhead_table,
    span,
    verification_table,
)

TITLE = "Storage application with multi-threaded checksum"
NS_PER_US = 1e3
SINKS = {"target": "files on the target", "null": "no drive: what the CPUs alone could do"}


def section(bundle: Bundle) -> Section | None:
    found, analysis = (bundle.results.get(name) for name in ("streams_checksum", "streams_checksum_analysis"))
    if found is None and "streams_checksum" not in bundle.run.workloads:
        return None
    if found is None or analysis is None:
        missing = "streams_checksum" if found is None else "streams_checksum_analysis"
        return Section("streams-checksum", TITLE, (Lacking(f"no result of it (results/{missing}.json)."),))
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
    notes = " ".join(analysis.texts("notes"))
    if notes:
        parts.append(notes)
    return Section("streams-checksum", TITLE, tuple(parts))


def _words(bundle: Bundle, found: Node, analysis: Node) -> str:
    cpus, judged, own = found.at("cpus"), analysis.at("judged"), found.at("application")
    cores, order = len(cpus.numbers("cores")), len(cpus.numbers("order"))
    said = [
        f"The candidate has {cores} physical core{'s' if cores > 1 else ''} and {order} usable CPU{'s' if order > 1 else ''}.",
        f"Deployed: {own.at('variant').as_text()}, {_threads(own.at('threads').as_integer())} for each stream.",
    ]
    gain, all_cores = judged.find("gain"), judged.find("gain_all_cores")
    if gain:
        said.append(f"It has {_ratio(gain)} the throughput of the original, the single-threaded zlib.")
    if all_cores:
        parallel = all_cores.number("parallel_share")
        share = f", which by Amdahl's law spreads {percent(100 * parallel)} of the work" if parallel is not None else ""
        said.append(
            f"Sharing zlib out among all {cores} physical cores gives {_ratio(all_cores)} the original's throughput{share}."
        )
    smt = judged.find("smt")
    if smt:
        said.append(f"Adding the SMT siblings gives {_ratio(smt)} the throughput of the physical cores alone.")
    combine, splits = found.at("identity").find("combine_ns"), found.at("identity").find("splits")
    if combine:
        said.append(f"One adler32_combine takes {latency(combine.at('median').as_number() / NS_PER_US)}.")
    if splits:
        wrong = found.at("identity").at("wrong").as_integer()
        result = "each gave zlib's checksum" if not wrong else "the comparison ended at a WRONG CHECKSUM"
        said.append(
            f"{count(splits.at('comparisons').as_integer())} cuts of an event of "
            f"{binary_size(splits.at('bytes').as_number())}, by every variant and number of threads, were compared: {result}."
        )
    said += [one.attribution for one in measured_references(bundle, "checksum_combine_time")]
    return " ".join(said)


def _threads(number: int) -> str:
    return f"{number} checksum thread{'s' if number > 1 else ''}"


def _ratio(figure: Node) -> str:
    interval = figure.numbers("interval")
    said = f"{significant(figure.at('ratio').as_number(), 3)} times"
    return f"{said} (95 % CI {span(interval)}, n = {figure.at('n').as_integer()})" if interval else said


def _overhead_figure(found: Node, analysis: Node) -> Figure | None:
    drawn = [point for point in analysis.list("overhead") if point.at("admissible").as_flag()]
    if not drawn:
        return None
    series = []
    for variant, label in HANDING_OUT.items():
        own = [point for point in drawn if point.at("variant").as_text() == variant]
        points = []
        for point in own:
            ends = point.numbers("interval_us")
            low, high = ends if ends else (None, None)
            points.append(ThreadPoint(point.at("threads").as_integer(), point.at("median_us").as_number(), low, high))
        if points:
            series.append((label, points))
    numbers = sorted({point.at("n").as_integer() for point in drawn})
    masked = [_at(point) for point in analysis.list("overhead") if not point.at("admissible").as_flag()]
    caption = [
        f"Time of one event of {binary_size(found.at('overhead').at('event_bytes').as_number())} beyond zlib's time on one thread's "
        f"share of it, in the same turn; median of n = {' to '.join(map(str, numbers[:: max(1, len(numbers) - 1)]))} turns, bars: 95 % "
        "interval of the median (order statistics). Each thread has a CPU of its own, physical cores first. Below zero: within the "
        "noise. The axis is logarithmic above 1 \u00b5s and linear below.",
        f"Not drawn: {', '.join(masked)}." if masked else "",
    ]
    name, title = "streams-overhead", "What handing out an event's chunks costs"
    text = " ".join(part for part in caption if part)
    return thread_figure(name, title, "overhead per event (\u00b5s)", series, (), text, cores=_siblings_from(found))


def _siblings_from(found: Node) -> int | None:
    cpus = found.at("cpus")
    return len(cpus.numbers("cores")) if cpus.at("has_siblings").as_flag() else None


def _at(point: Node) -> str:
    return f"{point.at('variant').as_text()} with {point.at('threads').as_integer()} ({point.text('reason')})"


def _throughput_figure(bundle: Bundle, found: Node, analysis: Node) -> Figure | None:
    siblings = found.at("cpus").at("has_siblings").as_flag()
    comparisons = analysis.list("comparisons")
    series = []
    for variant in found.at("throughput").texts("variants"):
        for placement in ("cores", "all") if siblings else ("all",):
            points = [
                ThreadPoint(one.at("setup").at("threads").as_integer(), one.at("ratio").as_number(), *_ends(one))
                for one in comparisons
                if _is_point(one, variant, placement) and one.at("admissible").as_flag()
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
            if one.at("kind").as_text() == kind and one.at("admissible").as_flag():
                text = f"{label}{one.at('setup').at('variant').as_text()}" if label else "no checksum at all"
                levels.append(Level(text, one.at("ratio").as_number(), False))
    name, title = "streams-throughput", "Throughput of the storage application, normalised to the original"
    throughput = found.at("throughput")
    masked = [one.at("label").as_text() for one in comparisons if not one.at("admissible").as_flag()]
    caption = [
        f"Geometric mean over up to n = {found.at('rounds').as_integer()} pairs of runs of "
        f"{duration(throughput.at('seconds').as_number())}, the original first in one round and last in the next; bars: 95 % interval "
        f"(Student t on log ratios). {_capital(SINKS[throughput.at('sink').as_text()])}. "
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


def _is_point(one: Node, variant: str, placement: str) -> bool:
    """Says whether the setup is a point of the series: the switched-off one is its point at one thread where every CPU may be used."""
    setup, kind = one.at("setup"), one.at("kind").as_text()
    if setup.at("variant").as_text() != variant or setup.at("placement").as_text() != placement:
        return False
    return kind in ("threads", "switched-off")


def _ends(one: Node) -> tuple[float | None, float | None]:
    ends = one.numbers("interval")
    return (ends[0], ends[1]) if ends else (None, None)


def _share_figure(bundle: Bundle, found: Node) -> Figure | None:
    runs = found.list("demand")
    if not runs:
        return None
    run = runs[0]
    streams = run.list("streams")
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
        f"The {run.at('name').as_text()} run: {decimal_size(run.at('written_bytes').as_number())} in n = {len(streams)} streams. The "
        "shares are asked for by number of events; their sizes scatter. The source states the busiest stream's share only. "
        + " ".join(one.attribution for one in references)
    )
    asked, achieved = ([stream.at(key).as_number() for stream in streams] for key in ("share", "achieved_share"))
    return share_figure(name, title, asked, achieved, level, caption)
