"""Thermal throttling, found from several signals together.

A drop of the rate is a dip and no more. It is throttling when a drive under the load says so itself while it lasts: by a temperature
at or above its own warning limit (WCTEMP), by the temperature bit of its critical warning, or by a counter or a status of its thermal
management. One such signal: confidence medium; two or more: high. The BMC's view of the drive's bay is no signal of the drive.

The same signals under a load whose rate shows no dip are an episode, too (kind *drive*), and the contradiction is said; so is a counter
that grew anywhere between the readings of the drive's health before and after the run. None is stated as a number only where every
drive of the target answers for every load: by a counter of throttling events that stood still and is known to count, or by
temperatures below its own warning limit throughout. A counter at 0 may be one that the drive does not keep. One that is no number,
goes backwards, or stands at the end of its range is broken, and then nothing answers for that drive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from daq_bench.bench_model.behaviour.dips import Dip
from daq_bench.bench_model.behaviour.smart_facts import Facts
from daq_bench.bench_model.bundle.telemetry_tracks import THERMOMETERS, Track, Tracks
from daq_bench.bench_model.documents.dips import Signal
from daq_bench.candidate_kit import plausible

TEMPERATURE_BIT = 0x02  # NVMe base specification, SMART / Health Information log, critical warning bit 1
AROUND_S = 3.0  # [P] dips and sensors are sampled each second, not at one instant
LOG_PERIOD_S = 10.0  # a drive's log is read this rarely: its signal may come so much later than the dip begins
SILENT_S_MAX = 3 * LOG_PERIOD_S  # [P] a drive that was not read for longer has not answered for that time
EVENTS = {  # counters that count throttling itself
    ("smart", "thermal_management_1_transitions"): "transitions to light throttling (TMT1)",
    ("smart", "thermal_management_2_transitions"): "transitions to heavy throttling (TMT2)",
    ("smart", "thermal_management_1_time_s"): "seconds of light throttling (TMT1)",
    ("smart", "thermal_management_2_time_s"): "seconds of heavy throttling (TMT2)",
    ("smart_ocp", "thermal_throttling_events"): "times that throttling began (OCP)",
}
COUNTERS = {
    **EVENTS,
    ("smart", "warning_temperature_time_min"): "minutes above the warning temperature",
    ("smart", "critical_temperature_time_min"): "minutes above the critical temperature",
}
ENDS = {"thermal_throttling_events": 255.0}  # the others have 32 bits
STATUS = ("smart_ocp", "thermal_throttling_status")


@dataclass(frozen=True)
class Verdict:
    """Describes whether a dip is throttling. `silent`: the kinds that were watched and said nothing."""

    throttling: bool
    confidence: str  # high, medium or none
    signals: tuple[Signal, ...]
    silent: tuple[str, ...]


def watched(tracks: Tracks, drives: Sequence[str]) -> list[str]:
    """The kinds of signals that the telemetry holds of at least one of the drives."""
    kinds = []
    if any(_thermometers(tracks, drive) for drive in drives):
        kinds.append("temperature")
    if any(tracks.get("smart", drive, "critical_warning") for drive in drives):
        kinds.append("critical_warning")
    if any(tracks.get(log, drive, counter) for drive in drives for log, counter in COUNTERS):
        kinds.append("counter")
    if any(tracks.get(STATUS[0], drive, STATUS[1]) for drive in drives):
        kinds.append("status")
    return kinds


def judge(tracks: Tracks, drives: Sequence[str], start_s: float, end_s: float) -> Verdict:
    """Returns the verdict from the drives' own signals while a dip lasted, times on the candidate's clock."""
    return verdict_of(tracks, drives, signals_between(tracks, drives, start_s, end_s))


def verdict_of(tracks: Tracks, drives: Sequence[str], signals: Sequence[Signal]) -> Verdict:
    kinds = {signal.kind for signal in signals}
    silent = tuple(kind for kind in watched(tracks, drives) if kind not in kinds)
    confidence = "high" if len(kinds) > 1 else "medium" if kinds else "none"
    return Verdict(bool(kinds), confidence, tuple(signals), silent)


def judge_dip(tracks: Tracks, drives: Sequence[str], dip: Dip, begin_s: float) -> Verdict:
    """The same for a dip of a series that began at `begin_s`."""
    return judge(tracks, drives, begin_s + dip.start_s, begin_s + dip.end_s)


def signals_between(tracks: Tracks, drives: Sequence[str], start_s: float, end_s: float) -> list[Signal]:
    finders = (_temperature, _warning, _counters, _status)
    return [signal for drive in drives for finder in finders for signal in finder(tracks, drive, start_s, end_s)]


def signals_of_run(tracks: Tracks, drives: Sequence[str], facts: Facts) -> list[Signal]:
    """Returns the signals of the drives' counters in the whole run, load or not: by the telemetry, and by their health before and after."""
    found = [signal for drive in drives for signal in _counters(tracks, drive, -math.inf, math.inf)]
    return found + [signal for drive in drives for signal in _of_facts(drive, facts)]


def unlocated(tracks: Tracks, drives: Sequence[str], facts: Facts) -> list[str]:
    """Returns sentences on counters that grew between the readings before and after the run, where the telemetry does not show it."""
    return [
        text
        for drive in drives
        for name, growth, text in (facts[drive].grown if drive in facts else ())
        if growth > _seen(tracks, drive, name)
    ]


def unanswered(tracks: Tracks, drives: Sequence[str], facts: Facts, start_s: float, end_s: float) -> list[str]:
    """Why it cannot be said of a drive that it did not throttle between two times; one text for each such drive."""
    found = (_unanswered(tracks, drive, facts, start_s, end_s) for drive in drives)
    return [text for text in found if text]


def _unanswered(tracks: Tracks, drive: str, facts: Facts, start_s: float, end_s: float) -> str:
    broken = [*_broken(tracks, drive), *(facts[drive].broken if drive in facts else ())]
    if broken:
        return f"{drive}: {broken[0]}"
    if any(_counts(tracks.get(log, drive, name), log, start_s, end_s) for log, name in EVENTS):
        return ""
    reason = _not_cool(tracks, drive, start_s, end_s)
    return f"{drive}: no counter of throttling that is known to count, and {reason}" if reason else ""


def _broken(tracks: Tracks, drive: str) -> Iterator[str]:
    """Counters that contradict themselves."""
    for (log, name), meaning in COUNTERS.items():
        track = tracks.get(log, drive, name)
        if track is None:
            continue
        if not np.isfinite(track.values).all():
            yield f"its counter of {meaning} has a reading that is no number"
        elif (np.diff(track.values) < 0).any():
            yield f"its counter of {meaning} went backwards: the drive was reset, or the reading is wrong"
        elif track.values[-1] >= ENDS.get(name, 2.0**32 - 1):
            yield f"its counter of {meaning} stands at the end of its range"
    warning = tracks.get("smart", drive, "critical_warning")
    if warning is not None and not np.isfinite(warning.values).all():
        yield "its critical warning has a reading that is no number"


def _counts(track: Track | None, log: str, start_s: float, end_s: float) -> bool:
    """Says whether a counter was read around the whole time, and is one that the drive keeps: OCP demands it, NVMe lets it be 0."""
    if track is None or len(track.times_s) < 2:
        return False
    covers = track.times_s[0] <= start_s + SILENT_S_MAX and track.times_s[-1] >= end_s - SILENT_S_MAX
    return bool(covers and (log == "smart_ocp" or track.values[0] > 0))


def _not_cool(tracks: Tracks, drive: str, start_s: float, end_s: float) -> str:
    """Why its temperature does not show that it stayed below its own warning limit; empty where it does."""
    thermometers = _thermometers(tracks, drive)
    if not thermometers:
        return "no temperature together with its warning limit"
    for track, limit in thermometers:
        inside = (track.times_s >= start_s) & (track.times_s <= end_s)
        times, values = track.times_s[inside], track.values[inside]
        gaps = np.diff(np.concatenate(([start_s], times, [end_s])))
        if not len(times) or gaps.max() > SILENT_S_MAX:
            return f"its temperature was not read for {gaps.max():.0f} s"
        if not np.isfinite(values).all():
            return "a reading of its temperature is no number"
        if values.max() >= limit:
            return f"its temperature reached its warning limit of {limit:.0f} degC"
    return ""


def _thermometers(tracks: Tracks, drive: str) -> list[tuple[Track, float]]:
    """Each of a drive's temperatures that comes with its own warning limit."""
    found = []
    for name in THERMOMETERS:
        limit, degrees = (tracks.get(name, drive, field) for field in ("warning_degc", "temperature_degc"))
        if limit and degrees and all(map(plausible.is_limit, limit.values)):
            found.append((degrees, float(limit.values.min())))
    return found


def _temperature(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Iterator[Signal]:
    for track, limit in _thermometers(tracks, drive):
        inside = (track.times_s >= start_s - AROUND_S) & (track.times_s <= end_s + AROUND_S)
        hot = inside & np.isfinite(track.values) & (track.values >= limit)
        if hot.any():
            text = f"{drive} at {track.values[hot].max():.0f} degC, its warning limit is {limit:.0f} degC"
            yield Signal("temperature", drive, text, float(track.times_s[hot][0]))
            return


def _warning(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Iterator[Signal]:
    track = tracks.get("smart", drive, "critical_warning")
    if track is None:
        return
    inside = (track.times_s >= start_s - AROUND_S) & (track.times_s <= end_s + LOG_PERIOD_S) & np.isfinite(track.values)
    times = [
        time
        for time, value in zip(track.times_s[inside], track.values[inside], strict=True)
        if int(value) & TEMPERATURE_BIT
    ]
    if times:
        text = f"{drive} has its critical-warning bit for temperature set"
        yield Signal("critical_warning", drive, text, float(times[0]))


def _counters(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Iterator[Signal]:
    grown, since = [], []
    for (log, name), meaning in COUNTERS.items():
        track = tracks.get(log, drive, name)
        growth, at_s = _growth(track, start_s - AROUND_S, end_s) if track else (0.0, 0.0)
        if growth > 0:
            grown.append(f"{growth:.0f} more {meaning}")
            since.append(at_s)
    if grown:
        yield Signal("counter", drive, f"{drive} counts {', '.join(grown)}", min(since))


def _growth(track: Track, start_s: float, end_s: float) -> tuple[float, float]:
    """(growth up to where the counter contradicts itself, time of the last reading before it), from the last reading before a time to
    the first after another."""
    first = max(int(np.searchsorted(track.times_s, start_s, side="right")) - 1, 0)
    last = int(np.searchsorted(track.times_s, end_s, side="left")) + 1
    times, values = track.times_s[first:last], track.values[first:last]
    good = np.isfinite(values)
    times, values = times[good], values[good]
    falls = np.flatnonzero(np.diff(values) < 0)
    values = values[: falls[0] + 1] if len(falls) else values
    rises = np.flatnonzero(np.diff(values) > 0)
    if not len(rises) or times[rises[0]] > end_s:
        return 0.0, 0.0
    return float(values[-1] - values[0]), float(times[rises[0]])


def _status(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Iterator[Signal]:
    track = tracks.get(STATUS[0], drive, STATUS[1])
    if track is None:
        return
    inside = (track.times_s >= start_s - AROUND_S) & (track.times_s <= end_s + LOG_PERIOD_S)
    slow = inside & np.isfinite(track.values) & (track.values > 0)
    if slow.any():
        text = f"{drive} calls itself throttled (OCP, level {track.values[slow].max():.0f})"
        yield Signal("status", drive, text, float(track.times_s[slow][0]))


def _of_facts(drive: str, facts: Facts) -> Iterator[Signal]:
    grown = facts[drive].grown if drive in facts else ()
    if grown:
        said = ", ".join(text for _, _, text in grown)
        yield Signal("counter", drive, f"{drive} counts between its readings before and after the run {said}")


def _seen(tracks: Tracks, drive: str, name: str) -> float:
    """Growth of a counter in the telemetry of the whole run."""
    tracked = [tracks.get(log, drive, name) for log in ("smart", "smart_ocp")]
    return sum(_growth(track, -math.inf, math.inf)[0] for track in tracked if track)
