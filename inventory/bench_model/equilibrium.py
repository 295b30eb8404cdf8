"""Thermal equilibrium, by one stated rule: the straight line through the temperature's last stretch is level enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_model.telemetry_tracks import Track

COVER_MIN = 0.9  # of the stretch must have samples, and it must have been observed for its whole length


@dataclass(frozen=True)
class Level:
    """The last stretch of a temperature: its mean, and the slope of the least-squares line through it."""

    mean_degc: float
    slope_k_per_min: float


def level_at(track: Track, end_s: float, window_s: float, not_before_s: float) -> Level | None:
    """The level over the `window_s` before `end_s`; None where samples after `not_before_s` do not fill it."""
    start = end_s - window_s
    inside = (track.times_s >= start) & (track.times_s <= end_s)
    times, values = track.times_s[inside], track.values[inside]
    if start < not_before_s or len(times) < 3 or times[-1] - times[0] < COVER_MIN * window_s:
        return None
    slope, _ = np.polyfit(times - times[0], values, 1)
    return Level(float(values.mean()), float(slope) * 60)


def settled(level: Level | None, slope_max_k_per_min: float) -> bool:
    return level is not None and abs(level.slope_k_per_min) <= slope_max_k_per_min


def rule(window_s: float, slope_max_k_per_min: float) -> str:
    return (
        f"the least-squares line through the last {window_s:g} s of the temperature of each of the target's drives "
        f"rises or falls by at most {slope_max_k_per_min:g} K per minute"
    )
