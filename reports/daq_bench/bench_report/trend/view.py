"""The trend report's sections and tables, as finished text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import count as counting
from itertools import islice, product
from string import ascii_uppercase

from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.run_temperatures import DRIVE, INLET
from daq_bench.bench_model.nights.steps import FEWEST
from daq_bench.bench_model.nights.trend import Coincidence, Track, Trend
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_model.verdict.decision import MISSED
from daq_bench.bench_model.verdict.sentences import SIGNS
from daq_bench.bench_report.base.units import NONE, THIN, quantity, significant, span, together, utc
from daq_bench.bench_report.document.canvas import Figure
from daq_bench.bench_report.document.outcome import GLYPHS, Outcome, css_name
from daq_bench.bench_report.document.section import Part, Section
from daq_bench.bench_report.document.table import Table
from daq_bench.bench_report.trend.figures import trend_figure
from daq_bench.bench_report.trend.words import (
    COINCIDES,
    METHOD,
    MOST_CHANGES,
    drift_sentence,
    good_sentence,
    kind_of,
    projection,
    share,
    step_sentence,
    step_words,
    warmth_sentences,
)

MOST_ALIKE = 10  # rows of one reason
Marks = Mapping[str, Sequence[str]]


def sections_of(trend: Trend, beside: Marks) -> list[Section]:
    marks = letters([position for position, _ in trend.changes])
    drawn = [(track, trend_figure(track, trend.history, marks)) for track in trend.tracks if _varies(track)]
    return [
        Section("good", "Last known good, and what changed since", tuple(_since_good(trend))),
        *(_section(track, figure, trend) for track, figure in drawn),
        Section("changes", "What changed between runs", tuple(_changes(trend, marks))),
        Section("runs", "Runs", (_runs(trend.history.nights, beside), *_left_out(trend))),
        Section("method", "How to read this", METHOD),
    ]


def letters(positions: Sequence[int]) -> dict[int, str]:
    """Returns A, B, ... Z, AA, ... for each place where something changed."""
    words = ("".join(word) for length in counting(1) for word in product(ascii_uppercase, repeat=length))
    return dict(zip(positions, islice(words, len(positions)), strict=True))


def outcome_of(trend: Trend) -> Outcome:
    """Returns the newest run's outcome, with the trend's addition to it."""
    newest, good = trend.history.newest, trend.history.last_good
    worse = [track for track in trend.tracks if any(one.worse for one in _steps(track))]
    near = [
        track for track in trend.tracks if track.drift and track.drift.trend and track.drift.days_to_bound is not None
    ]
    missed = [track.row.id for track in trend.tracks if track.row.decision == MISSED]
    reasons = [f"The newest run misses {', '.join(missed)}."] if missed else []
    reasons.append(good_sentence(good, newest))
    reasons += [f"{track.row.id} changed for the worse: {step_words(_steps(track)[-1], track)}." for track in worse]
    reasons += [f"{track.row.id} drifts towards its bound: {projection(track)}." for track in near]
    if not worse and not near:
        reasons.append("No requirement changed its level for the worse, and none drifts towards its bound.")
    reasons += list(trend.history.notes)
    suffix, found = "SIMULATED" if newest.simulated else "", conclude(newest.verdict)
    meaning = f"The newest run, {newest.id}, ended {found.word}."
    return Outcome(found.word, GLYPHS[found.word], css_name(found.word), suffix, meaning, tuple(reasons))


def _steps(track: Track) -> tuple[Coincidence, ...]:
    """Returns the steps that count: with the temperature taken out, where the metric depends on it."""
    return track.adjusted_steps if track.adjusted else track.steps


def _varies(track: Track) -> bool:
    """Says whether the series varies: an even one needs no figure."""
    return len(track.values) > 1 and len(set(track.values)) > 1


def overview(trend: Trend) -> Table:
    rows = [
        (
            f"{track.row.id} {track.row.text}" + ("" if track.row.severity == "mandatory" else " (advisory)"),
            _newest(track),
            f"{SIGNS[track.row.comparison]}{THIN}{quantity(track.row.scaled_bound, track.row.unit, trim=True)}",
            _range(track),
            _steps_cell(track, trend),
            _drift_cell(track),
        )
        for track in trend.tracks
    ]
    worse = frozenset(n for n, track in enumerate(trend.tracks) if any(one.worse for one in _steps(track)))
    return Table(
        ("Requirement", "Newest, 95 % interval", "Bound", "All runs: lowest to highest, n", "Steps", "Drift"), "tnnntt",
        tuple(rows), f"Requirements over {len(trend.history.nights)} runs, in the newest run's units; set apart: a step for the worse.",
        "overview", worse,
    )  # fmt: skip


def _newest(track: Track) -> str:
    if track.row.measured is None or not track.values:
        return NONE
    pair = track.intervals[-1]
    text = quantity(track.values[-1], track.row.unit, trim=pair is None)
    interval = "" if pair is None else f" ({span(pair, significant)})"
    return f"{text}{interval}, {track.row.decision or 'not decided'}"


def _range(track: Track) -> str:
    if not track.values:
        return "never measured"
    low, high = min(track.values), max(track.values)
    ends = together((low,) if low == high else (low, high))
    return f"{' to '.join(ends)}, n = {len(track.values)}"


def _steps_cell(track: Track, trend: Trend) -> str:
    if not track.enough:
        return f"too few runs (n < {FEWEST})"
    found = _steps(track)
    if not found:
        return "none"
    return "; ".join(f"before run {_number(one, trend)}: {share(one)}{kind_of(one, track)}" for one in found)


def _number(one: Coincidence, trend: Trend) -> int:
    return next(n for n, night in enumerate(trend.history.nights, 1) if night.id == one.first_after)


def _drift_cell(track: Track) -> str:
    if track.drift is None:
        return "too few runs"
    if not track.drift.trend:
        return "no trend"
    return f"{significant(30 * track.drift.slope, 3)} per 30 days; {projection(track)}"


def quiet(trend: Trend) -> tuple[str, ...]:
    even = [track.row.id for track in trend.tracks if track.values and not _varies(track)]
    return (f"The same value in every run, and therefore without a figure: {', '.join(even)}.",) if even else ()


def _since_good(trend: Trend) -> list[Part]:
    good, newest = trend.history.last_good, trend.history.newest
    parts: list[Part] = [good_sentence(good, newest)]
    if good is None or good.id == newest.id:
        return parts
    if not trend.since_good:
        return [*parts, f"Nothing that the bench records differs between {good.id} and {newest.id}."]
    rows = tuple((one.group, one.name, one.before or NONE, one.after or NONE) for one in trend.since_good)
    caption = (
        f"Changes since the last known good. Between {good.id} and the newest, {newest.id}; likelier reasons first."
    )
    return [*parts, Table(("Kind", "Name", "Then", "Now"), "tccc", rows, caption, "since"), COINCIDES]


def _section(track: Track, figure: Figure | None, trend: Trend) -> Section:
    parts: list[Part] = [figure] if figure else []
    parts += [step_sentence(one, track, trend) for one in track.steps]
    parts += warmth_sentences(track, trend)
    parts += [sentence] if (sentence := drift_sentence(track)) else []
    if track.left_out:
        said = "; ".join(f"{one.name}: {one.reason}" for one in track.left_out[:MOST_CHANGES])
        more = len(track.left_out) - MOST_CHANGES
        parts.append(f"Not in this series: {said}{f'; and {more} more' if more > 0 else ''}.")
    return Section(f"trend-of-{track.row.id.lower()}", f"{track.row.id} {track.row.text}", tuple(parts))


def _changes(trend: Trend, marks: dict[int, str]) -> list[Part]:
    if not trend.changes:
        return ["Nothing that the bench records changed between any two runs."]
    nights = trend.history.nights
    rows = [
        (
            marks[position],
            f"run {position} \N{RIGHTWARDS ARROW} {position + 1}, {nights[position].id}",
            "; ".join(c.text for c in changes),
        )
        for position, changes in trend.changes
    ]
    caption = "Facts that differ between a run and the one before it; the letters are those of the figures."
    return [Table(("Mark", "Between runs, the later one", "What changed"), "ttt", tuple(rows), caption, "changes")]


def _runs(nights: Sequence[Night], beside: Marks) -> Table:
    rows = tuple(
        (
            str(number), night.id, f"{night.started:%Y-%m-%d %H:%M}", conclude(night.verdict).word,
            _degrees(night, INLET), _degrees(night, DRIVE), ", ".join(beside.get(night.id, ())) or NONE,
        )
        for number, night in enumerate(nights, 1)
    )  # fmt: skip
    bad = frozenset(index for index, night in enumerate(nights) if not night.good)
    heads = ("No.", "Run", "Start (UTC)", "Outcome", "Inlet (°C)", "Hottest drive (°C)", "Beside it")
    return Table(heads, "nctsnnt", rows, "Runs of this history; set apart: not good.", "nights", bad)


def _degrees(night: Night, sensor: str) -> str:
    value = night.temperatures.get(sensor)
    return NONE if value is None else f"{value:.1f}"


def _left_out(trend: Trend) -> list[Table]:
    """Returns what is left out, one row each, or one row for many with one reason, as the runs of other candidates."""
    alike = Counter(one.reason for one in trend.history.left_out)
    rows = [(one.name, one.reason) for one in trend.history.left_out if alike[one.reason] <= MOST_ALIKE]
    rows += [(f"{number} runs or folders", f"each {reason}") for reason, number in alike.items() if number > MOST_ALIKE]
    if not rows:
        return []
    caption = f"Left out of this history: {len(trend.history.left_out)}."
    return [Table(("Folder or run", "Why it is not in this history"), "ct", tuple(rows), caption, "left-out")]


def span_words(trend: Trend) -> str:
    """`24 runs from ... to ...`."""
    nights = trend.history.nights
    days = (nights[-1].started - nights[0].started) / timedelta(days=1)
    runs = f"{len(nights)} run{'s' * (len(nights) != 1)}"
    return f"{runs} from {utc(nights[0].started)} to {utc(nights[-1].started)} ({days:.1f} days)"
