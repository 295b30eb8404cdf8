"""Dips of the rate under sustained load, what caused each, and which of them were thermal throttling."""

from __future__ import annotations

from collections.abc import Sequence

from bench_report.base.fields import Node
from bench_report.base.units import NONE, decimal_rate, decimal_size, duration, percent
from bench_report.document.canvas import Figure
from bench_report.document.section import Lacking, Part, Section
from bench_report.document.table import Table
from bench_report.figures.dips import dip_figure
from bench_report.reading.dataset.bundle import Bundle

MOST_FIGURES = 3
MOST_ROWS = 40
MOST_REASONS = 3


def dips_section(bundle: Bundle) -> Section | None:
    dips = bundle.results.get("dips")
    if dips is None:
        return None
    windows = dips.list("windows")
    analysed = dips.at("summary").integer("windows_analysed")
    if not analysed and "thermal" not in bundle.run.workloads:
        return None
    parts: list[Part] = [_words(dips, bundle.results.get("throttling"))]
    parts += _figures(bundle, windows)
    table = _table(windows)
    if table:
        parts.append(table)
    short = [window for window in windows if window.text("reason")]
    if short:
        said = sorted(set(filter(None, (window.text("reason") for window in short))))
        parts.append(f"Of {len(windows)} loads {len(short)} could not be analysed: {'; '.join(said[:MOST_REASONS])}.")
    if not windows:
        parts.append(Lacking("no workload wrote at a steady pace for long enough, or its telemetry is not there."))
    return Section("dips", "Dips and their causes", tuple(parts))


def _words(dips: Node, throttling: Node | None) -> str:
    summary = dips.at("summary")
    count, unexplained = summary.integer("dips"), summary.integer("unexplained")
    if count is None:
        return "Whether the rate dipped cannot be said."
    text = "The rate never dipped by 10 % or more under sustained load, and no loss recurred, crept in or added up."
    if count:
        plural = "s" if count != 1 else ""
        text = (
            f"{count} dip{plural} of 10 % or more under sustained load, {unexplained} of them without a known cause; "
        )
        text += f"{decimal_size(summary.at('lost_bytes').as_number())} were not written because of them."
    patterns = [pattern for window in dips.list("windows") for pattern in window.list("patterns")]
    for pattern in patterns:
        text += (
            f" A regular dip every {duration(pattern.at('period_s').as_number())}, "
            f"{percent(100 * pattern.at('depth_fraction').as_number())} deep, {_rhythm(pattern)}."
        )
    return f"{text} {_throttling_words(throttling)}"


def _rhythm(pattern: Node) -> str:
    return (
        "costs too much to be a rhythm of the target's"
        if pattern.flag("costly")
        else "belongs to the target's own rhythm"
    )


def _throttling_words(throttling: Node | None) -> str:
    if throttling is None:
        return "No drive told of its heat, so that thermal throttling could neither be found nor excluded."
    told = "".join(f" {one.capitalize()}." for one in throttling.texts("processors"))
    return _episodes_words(throttling) + told


def _episodes_words(throttling: Node) -> str:
    episodes = throttling.at("summary").integer("episodes")
    watched = ", ".join(kind.replace("_", " ") for kind in throttling.texts("watched")) or "nothing"
    if episodes is None:
        reasons = throttling.find("reasons")
        reason = (reasons.text("throttling.episodes") if reasons else None) or "no drive told of its heat"
        return f"Thermal throttling could neither be found nor excluded: {reason}."
    if episodes == 0:
        return f"No thermal throttling was found; watched of the drives: {watched}."
    first = throttling.list("episodes")[0]
    onset = first.number("time_to_onset_s")
    when = (
        f"{duration(onset)} after the begin of the load"
        if onset is not None
        else "outside of the loads, or at an unknown time"
    )
    text = (
        f"Thermal throttling was found {episodes} time{'s' if episodes != 1 else ''} (watched of the drives: {watched}), first "
        f"{when}, with confidence {first.at('confidence').as_text()}."
    )
    contradictions = throttling.texts("contradictions")
    return text + (
        f" The drives' word and the rate contradict each other: {'; '.join(contradictions)}." if contradictions else ""
    )


def _figures(bundle: Bundle, windows: Sequence[Node]) -> list[Figure]:
    """Returns figures of the loads that lost most, or of the longest one where none lost anything."""
    dipped = [window for window in windows if window.list("dips")]
    chosen = sorted(dipped, key=_lost, reverse=True)[:MOST_FIGURES]
    if not chosen:
        chosen = sorted(windows, key=lambda window: window.at("duration_s").as_number())[-1:]
    made = (dip_figure(bundle, window, f"dips-{number}") for number, window in enumerate(chosen, 1))
    return [figure for figure in made if figure is not None]


def _lost(window: Node) -> float:
    return sum(dip.at("lost_bytes").as_number() for dip in window.list("dips"))


def _table(windows: Sequence[Node]) -> Table | None:
    rows = [_row(window, dip) for window in windows for dip in window.list("dips")]
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


def _kind(dip: Node) -> str:
    kind = dip.text("kind") or "dip"
    return "" if kind == "dip" else f" ({kind})"


def _row(window: Node, dip: Node) -> tuple[str, ...]:
    start, end = (dip.at(key).as_number() for key in ("start_s", "end_s"))
    evidence = "; ".join(one.at("text").as_text() for one in dip.list("evidence"))
    unseen = ", ".join(dip.texts("not_looked_at"))
    if not evidence:
        evidence = "no evidence for any cause that was looked at" + (f"; not looked at: {unseen}" if unseen else "")
    until = duration(end) if dip.flag("ended") else "its end"
    level = decimal_rate(dip.at("level_bytes_per_s").as_number(), 3)
    return (
        f"{window.at('workload').as_text()}: {window.at('name').as_text()}",
        f"{duration(start)} to {until}{_kind(dip)}",
        f"{percent(100 * dip.at('depth_fraction').as_number())}, to {level}",
        decimal_size(dip.at("lost_bytes").as_number(), 3) or NONE,
        dip.at("cause").as_text().replace("_", " "),
        evidence,
    )
