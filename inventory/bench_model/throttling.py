"""Thermal throttling, found from several signals together.

A drop of the rate is a dip and no more. It is throttling when a drive under the load says so itself while it lasts: by a temperature
at or above its own warning limit (WCTEMP), by the temperature bit of its critical warning, or by a counter of its thermal
management. One such signal: confidence medium; two or more: high. What the BMC sees in the drive's bay is no signal of the drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench_model.dips import Dip
from bench_model.telemetry_tracks import Tracks

TEMPERATURE_BIT = 0x02  # NVMe base specification, SMART / Health Information log, critical warning bit 1
AROUND_S = 3.0  # [P] dips and sensors are sampled each second, not at one instant
LOG_PERIOD_S = 10.0  # a drive's log is read this rarely: its signal may come so much later than the dip begins
COUNTERS = {
    "thermal_management_1_transitions": "transitions to light throttling (TMT1)",
    "thermal_management_2_transitions": "transitions to heavy throttling (TMT2)",
    "thermal_management_1_time_s": "seconds of light throttling (TMT1)",
    "thermal_management_2_time_s": "seconds of heavy throttling (TMT2)",
    "warning_temperature_time_min": "minutes above the warning temperature",
    "critical_temperature_time_min": "minutes above the critical temperature",
}


@dataclass(frozen=True)
class Signal:
    """One thing that a drive said of itself. `kind`: temperature, critical_warning or counter."""

    kind: str
    drive: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """Whether a dip is throttling. `silent`: the kinds that were watched and said nothing."""

    throttling: bool
    confidence: str  # high, medium or none
    signals: tuple[Signal, ...]
    silent: tuple[str, ...]


def watched(tracks: Tracks, drives: Sequence[str]) -> list[str]:
    """The kinds of signals that the telemetry holds of at least one of the drives."""
    kinds = []
    if any(_limit(tracks, drive) is not None for drive in drives):
        kinds.append("temperature")
    if any(tracks.get("smart", drive, "critical_warning") for drive in drives):
        kinds.append("critical_warning")
    if any(tracks.get("smart", drive, counter) for drive in drives for counter in COUNTERS):
        kinds.append("counter")
    return kinds


def judge(tracks: Tracks, drives: Sequence[str], start_s: float, end_s: float) -> Verdict:
    """What the drives said of themselves while a dip lasted, times on the candidate's clock."""
    signals = signals_between(tracks, drives, start_s, end_s)
    kinds = {signal.kind for signal in signals}
    silent = tuple(kind for kind in watched(tracks, drives) if kind not in kinds)
    confidence = "high" if len(kinds) > 1 else "medium" if kinds else "none"
    return Verdict(bool(kinds), confidence, tuple(signals), silent)


def judge_dip(tracks: Tracks, drives: Sequence[str], dip: Dip, begin_s: float) -> Verdict:
    """The same for a dip of a series that began at `begin_s`."""
    return judge(tracks, drives, begin_s + dip.start_s, begin_s + dip.end_s)


def signals_between(tracks: Tracks, drives: Sequence[str], start_s: float, end_s: float) -> list[Signal]:
    found = []
    for drive in drives:
        found += [
            signal
            for signal in (
                _temperature(tracks, drive, start_s, end_s),
                _warning(tracks, drive, start_s, end_s),
                _counters(tracks, drive, start_s, end_s),
            )
            if signal is not None
        ]
    return found


def _limit(tracks: Tracks, drive: str) -> float | None:
    limit, degrees = (tracks.get("temperature", drive, name) for name in ("warning_degc", "temperature_degc"))
    return float(np.min(limit.values)) if limit and degrees else None


def _temperature(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Signal | None:
    limit, track = _limit(tracks, drive), tracks.get("temperature", drive, "temperature_degc")
    if limit is None or track is None:
        return None
    hottest = track.max(start_s - AROUND_S, end_s + AROUND_S)
    if hottest is None or hottest < limit:
        return None
    return Signal("temperature", drive, f"{drive} at {hottest:.0f} degC, its warning limit is {limit:.0f} degC")


def _warning(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Signal | None:
    track = tracks.get("smart", drive, "critical_warning")
    if track is None:
        return None
    values = track.between(start_s - AROUND_S, end_s + LOG_PERIOD_S)
    if not any(int(value) & TEMPERATURE_BIT for value in values):
        return None
    return Signal("critical_warning", drive, f"{drive} has its critical-warning bit for temperature set")


def _counters(tracks: Tracks, drive: str, start_s: float, end_s: float) -> Signal | None:
    grown = []
    for name, meaning in COUNTERS.items():
        track = tracks.get("smart", drive, name)
        growth = track.growth(start_s - AROUND_S, end_s) if track else None
        if growth is not None and growth > 0:
            grown.append(f"{growth:.0f} more {meaning}")
    return Signal("counter", drive, f"{drive} counts {', '.join(grown)}") if grown else None
