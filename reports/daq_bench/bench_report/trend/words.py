"""The trend report's sentences. None says that one thing caused another."""

from __future__ import annotations

from collections.abc import Sequence

from daq_bench.bench_model.nights.bundle_facts import Change
from daq_bench.bench_model.nights.night import Night
from daq_bench.bench_model.nights.run_temperatures import DRIVE
from daq_bench.bench_model.nights.steps import LEVEL
from daq_bench.bench_model.nights.trend import Coincidence, Track, Trend
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.bench_report.base.units import BARE_UNITS, NONE, percent, quantity, significant, utc

MOST_CHANGES = 6  # most changes of one place in a sentence; the table has all
COINCIDES = "Coinciding is not causing: what else changed that night without being recorded is unknown."


def good_sentence(good: Night | None, newest: Night) -> str:
    if good is None:
        return "No run of this history passed or was a declared rehearsal: there is no last known good."
    what = "passed" if good.outcome == "PASS" else f"was a declared rehearsal ({conclude(good.verdict).counted})"
    which = "the newest run itself" if good.id == newest.id else f"{good.id} ({utc(good.started)})"
    return f"Last known good: {which}, which {what}."


def share(one: Coincidence) -> str:
    if one.step.before == 0:
        return f"0 to {significant(one.step.after, 3)}"
    share = 100 * (one.step.after / one.step.before - 1)
    return f"{'+' if share > 0 else ''}{percent(share)}"


def projection(track: Track) -> str:
    line = track.drift
    if line is None or track.row.comparison == "equal":
        return "no projection"
    if line.days_to_bound is None:
        return f"not at the bound within {10 * line.days:.0f} days"
    if line.days_to_bound == 0:
        return "past the bound"
    latest = f"{line.latest:.0f}" if line.latest is not None else "never, or not within the horizon"
    earliest = f"{line.earliest:.0f}" if line.earliest is not None else NONE
    return f"at the bound in {line.days_to_bound:.0f} days (95 %: {earliest} to {latest})"


def step_words(one: Coincidence, track: Track) -> str:
    unit = track.row.unit
    then, now = quantity(one.step.before, unit), quantity(one.step.after, unit)
    return f"{then} until {one.last_before}, {now} from {one.first_after} on ({share(one)}{kind_of(one, track)})"


def kind_of(one: Coincidence, track: Track) -> str:
    """Names the values in which a step was found, where there are two kinds: their sizes differ."""
    if not track.adjusted:
        return ""
    return ", temperature taken out" if any(one is each for each in track.adjusted_steps) else ", as measured"


def step_sentence(one: Coincidence, track: Track, trend: Trend) -> str:
    word = {True: "for the worse", False: "for the better", None: "of level"}[one.worse]
    chance = f"less than {significant(one.step.p, 1)}" if one.step.p < 0.001 else f"about {significant(one.step.p, 1)}"
    text = f"Step {word}: {step_words(one, track)}. The chance of so much without any change is {chance}."
    if not one.changes:
        return f"{text} Nothing that the bench records changed at that place."
    shown = "; ".join(change.text for change in one.changes[:MOST_CHANGES])
    more = len(one.changes) - MOST_CHANGES
    tail = f"; and {more} more" if more > 0 else ""
    return f"{text} It coincides with: {shown}{tail}.{_elsewhere(one.changes, trend)} {COINCIDES}"


def _elsewhere(changes: Sequence[Change], trend: Trend) -> str:
    """Says how often the same fact changed elsewhere: a single coincidence is weak evidence."""
    first = changes[0]
    places = sum(1 for _, other in trend.changes if any((c.group, c.name) == (first.group, first.name) for c in other))
    times = "only here" if places == 1 else f"at {places} places"
    return f" {first.group[0].upper()}{first.group[1:]} {first.name} changed {times} in this history."


def warmth_sentences(track: Track, trend: Trend) -> list[str]:
    warm = track.warmth
    if warm is None:
        return []
    unit = f"{track.row.unit} per K" if track.row.unit not in BARE_UNITS else "per K"
    low, high = (significant(end, 3) for end in warm.interval)
    lacking = len(track.values) - warm.n
    without = f" {lacking} runs do not know theirs and stay as measured." if lacking and warm.depends else ""
    sure = percent(100 * warm.confidence)
    found = f"{significant(warm.slope, 3)} {unit} of the {warm.sensor} ({sure}: {low} to {high}, n = {warm.n} runs)"
    if not warm.depends:
        return [f"Temperature: no dependence found, {found}."]
    caution = (
        " A drive's temperature also follows from its work, so that this is no cause shown."
        if warm.sensor == DRIVE
        else ""
    )
    gone = [one for one in track.steps if one.step.index not in {other.step.index for other in track.adjusted_steps}]
    effect = (
        f" With it taken out, {len(gone)} of {len(track.steps)} steps {'is' if len(gone) == 1 else 'are'} not found any more: "
        "temperature explains as much."
        if gone
        else " The steps stay when it is taken out."
        if track.steps
        else ""
    )
    said = [f"Temperature: {found}.{caution}{effect}{without} Both are drawn."]
    new = [one for one in track.adjusted_steps if one.step.index not in {other.step.index for other in track.steps}]
    return said + [f"Only with the temperature taken out: {step_sentence(one, track, trend)}" for one in new]


def drift_sentence(track: Track) -> str:
    """Describes the drift; empty where there is no trend."""
    line = track.drift
    if line is None or not line.trend:
        return ""
    low, high = (significant(30 * end, 3) for end in line.interval)
    return (
        f"Drift: {significant(30 * line.slope, 3)} {track.row.unit} per 30 days (95 %: {low} to {high}) over the present level's "
        f"{line.n} runs; {projection(track)}, if it goes on like this."
    )


METHOD = (
    f"Steps: each is a change of level that the runs' spread and memory would show by chance in less than {percent(100 * LEVEL)} of series "
    "(parametric bootstrap of an autoregressive process; runs weigh by their own intervals; at least three runs on each side). "
    "docs/trend.md states how often that is wrong, by simulation.",
    "Temperature: Theil and Sen's slope over the differences between neighbouring runs, which a single step hardly moves. "
    "Adjusted only where its interval leaves out zero.",
    "Drift: a straight line through the runs of the present level, its error widened by their memory. Nothing is projected "
    "further than ten times the time that was observed.",
    "Good is a run that passed, or a declared rehearsal, which may leave mandatory requirements undecided or not measured.",
)
