"""Dips of the rate under sustained load, what caused each, and which of them were thermal throttling."""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.documents.dips import Dip, Dips, Load, Pattern, Throttling
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.base.units import NONE, decimal_rate, decimal_size, duration, percent
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.section import Lacking, Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.figures.dips import dip_figure, never_reached
from daq_bench.bench_report.reading.dataset.bundle import Bundle

MOST_FIGURES = 3
MOST_ROWS = 40
MOST_REASONS = 3
THROTTLING = "results/throttling.json"


def dips_section(bundle: Bundle) -> Section | None:
    dips = bundle.result("dips", Dips)
    if dips is None:
        return None
    windows = dips.windows
    if not dips.summary.windows_analysed and "thermal" not in bundle.run.scenario.workloads:
        return None
    parts: list[Part] = [_words(dips, bundle.result("throttling", Throttling))]
    parts += _figures(bundle, windows)
    table = _table(windows)
    if table:
        parts.append(table)
    short = [window.reason for window in windows if window.reason]
    if short:
        said = sorted(set(short))
        parts.append(f"{len(short)} of {len(windows)} loads could not be analysed: {'; '.join(said[:MOST_REASONS])}.")
    if not windows:
        parts.append(Lacking("no workload wrote at a steady pace for long enough, or its telemetry is not there."))
    return Section("dips", "Dips and their causes", tuple(parts))


def _words(dips: Dips, throttling: Throttling | None) -> str:
    summary = dips.summary
    count, unexplained, lost = summary.dips, summary.unexplained, summary.lost_bytes
    if count is None:
        return "Whether the rate dipped cannot be said."
    text = "The rate never dipped by 10 % or more under sustained load, and no loss of rate recurred, crept in or added up."
    if count:
        plural = "s" if count != 1 else ""
        text = (
            f"{count} dip{plural} of 10 % or more under sustained load, {unexplained} of them without a known cause; "
        )
        text += f"{NONE if lost is None else decimal_size(lost)} were not written because of them."
    patterns = [pattern for window in dips.windows for pattern in window.patterns]
    for pattern in patterns:
        text += (
            f" A regular dip every {duration(pattern.period_s)}, "
            f"{percent(100 * pattern.depth_fraction)} deep, {_rhythm(pattern)}."
        )
    return f"{text} {_throttling_words(throttling)}"


def _rhythm(pattern: Pattern) -> str:
    return "costs too much to be a rhythm of the target's" if pattern.costly else "belongs to the target's own rhythm"


def _throttling_words(throttling: Throttling | None) -> str:
    if throttling is None:
        return "No drive told of its heat, so that thermal throttling could neither be found nor excluded."
    told = "".join(f" {one.capitalize()}." for one in throttling.processors)
    return _episodes_words(throttling) + told


def _episodes_words(throttling: Throttling) -> str:
    episodes = throttling.summary.episodes
    watched = ", ".join(kind.replace("_", " ") for kind in throttling.watched) or "nothing"
    if episodes is None:
        reason = throttling.reasons.get("throttling.episodes") or "no drive told of its heat"
        return f"Thermal throttling could neither be found nor excluded: {reason}."
    if episodes == 0:
        return f"No thermal throttling was found; watched of the drives: {watched}."
    if not throttling.episodes:
        raise BundleError(THROTTLING, f"the summary counts {episodes} episodes, and none is listed")
    first = throttling.episodes[0]
    onset = first.time_to_onset_s
    when = (
        f"{duration(onset)} after the begin of the load"
        if onset is not None
        else "outside of the loads, or at an unknown time"
    )
    text = (
        f"Thermal throttling was found {episodes} time{'s' if episodes != 1 else ''} (watched of the drives: {watched}), first "
        f"{when}, with confidence {first.confidence}."
    )
    contradictions = throttling.contradictions
    return text + (
        f" The drives' word and the rate contradict each other: {'; '.join(contradictions)}." if contradictions else ""
    )


def _figures(bundle: Bundle, windows: Sequence[Load]) -> list[Figure]:
    """Returns figures of the loads that lost most, or of the longest one where none lost anything."""
    dipped = [window for window in windows if window.dips]
    chosen = sorted(dipped, key=_lost, reverse=True)[:MOST_FIGURES]
    if not chosen:
        chosen = sorted(windows, key=lambda window: window.duration_s)[-1:]
    made = (dip_figure(bundle, window, f"dips-{number}") for number, window in enumerate(chosen, 1))
    return [figure for figure in made if figure is not None]


def _lost(window: Load) -> float:
    return sum(dip.lost_bytes for dip in window.dips)


def _table(windows: Sequence[Load]) -> Table | None:
    rows = [_row(window, dip) for window in windows for dip in window.dips]
    if not rows:
        return None
    unknown = frozenset(index for index, row in enumerate(rows[:MOST_ROWS]) if row[4] == "unknown")
    caption = "Each dip with the evidence for its cause; those without one are marked."
    if len(rows) > MOST_ROWS:
        caption += f" The first {MOST_ROWS} of {len(rows)}; the rest is in results/dips.json."
    return Table(
        heads=("Load", "From its begin", "Depth", "Not written", "Cause", "Evidence"),
        kinds="tnnntt", rows=tuple(rows[:MOST_ROWS]), name="dips", caption=caption, marked=unknown,
    )  # fmt: skip


def _row(window: Load, dip: Dip) -> tuple[str, ...]:
    evidence, unseen = "; ".join(one.text for one in dip.evidence), ", ".join(dip.not_looked_at)
    if not evidence:
        evidence = "no evidence for any cause that was looked at" + (f"; not looked at: {unseen}" if unseen else "")
    until = duration(dip.end_s) if dip.ended else "its end"
    kind = "" if dip.kind == "dip" else f" ({dip.kind})"
    if never_reached(window, dip):
        kind = f": the rate never reached {decimal_rate(dip.reference_bytes_per_s, 3)}"
    return (
        f"{window.workload}: {window.name}",
        f"{duration(dip.start_s)} to {until}{kind}",
        f"{percent(100 * dip.depth_fraction)}, to {decimal_rate(dip.level_bytes_per_s, 3)}",
        decimal_size(dip.lost_bytes, 3) or NONE,
        dip.cause.replace("_", " "),
        evidence,
    )
