"""Seeded throughput series whose truth is known, for the tests and studies of detection. Rates in B/s, one per second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.bundle.telemetry_tracks import Track

LEVEL = 5e9
Values = NDArray[np.float64]


def memory(rng: np.random.Generator, count: int, phi: float, sigma: float) -> Values:
    """First-order autoregressive noise with standard deviation `sigma`."""
    shocks = rng.normal(0.0, sigma * np.sqrt(1 - phi**2), count)
    noise = np.empty(count)
    noise[0] = rng.normal(0.0, sigma)
    for index in range(1, count):
        noise[index] = phi * noise[index - 1] + shocks[index]
    return noise


def white(rng: np.random.Generator, count: int) -> Values:
    return LEVEL * (1 + rng.normal(0.0, 0.05, count))


def remembering(phi: float) -> Callable[[np.random.Generator, int], Values]:
    return lambda rng, count: LEVEL * (1 + memory(rng, count, phi, 0.05))


def drift(rng: np.random.Generator, count: int) -> Values:
    """A loss of 20 % per hour, as from a drive that slowly warms or fills."""
    return LEVEL * (1 - 0.2 * np.arange(count) / 3600 + rng.normal(0.0, 0.05, count))


def flush(rng: np.random.Generator, count: int) -> Values:
    """Every 10 s one second at 60 %, as from a cache that is written out."""
    rates: Values = LEVEL * (1 - 0.4 * (np.arange(count) % 10 == 5) + rng.normal(0.0, 0.03, count))
    return rates


def long_flush(rng: np.random.Generator, count: int) -> Values:
    """Every 40 s four seconds at half of the rate."""
    return LEVEL * (1 - 0.5 * (np.arange(count) % 40 < 4) + rng.normal(0.0, 0.03, count))


def heavy_tails(rng: np.random.Generator, count: int) -> Values:
    """Student's t with three degrees of freedom and a standard deviation of 5 %."""
    rates: Values = np.maximum(LEVEL * (1 + 0.05 * rng.standard_t(3, count) / np.sqrt(3)), 0.0)
    return rates


BACKGROUNDS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "white noise, 5 %": white,
    "AR(1), 0.5, 5 %": remembering(0.5),
    "AR(1), 0.8, 5 %": remembering(0.8),
    "Student's t, 3 degrees of freedom, 5 %": heavy_tails,
    "drift of 20 % per hour, noise 5 %": drift,
    "flush of 1 s every 10 s, 40 %": flush,
    "flush of 4 s every 40 s, 50 %": long_flush,
}


def _recurring(rng: np.random.Generator) -> Values:
    series = white(rng, 900)
    for start in range(40, 900, 60):
        series[start : start + 20] *= 0.5
    return series


def _steps(rng: np.random.Generator) -> Values:
    return white(rng, 2000) * np.repeat(np.maximum(0.92 ** np.arange(20), 0.2), 100)


def _ramp(rng: np.random.Generator) -> Values:
    return white(rng, 1800) * np.linspace(1, 0.35, 1800)


def _late_ramp(rng: np.random.Generator) -> Values:
    return white(rng, 3600) * np.interp(np.arange(3600), [0, 3000, 3600], [1, 1, 0.35])


def _late_recovery(rng: np.random.Generator) -> Values:
    return white(rng, 900) * np.where(np.arange(900) < 600, 0.5, 1.0)


def _sawtooth(rng: np.random.Generator) -> Values:
    """A sawtooth, as from a drive that regulates its temperature by its rate."""
    return white(rng, 900) * (1 - 0.6 * (np.arange(900) % 40) / 40)


# Losses that no single change of level shows.
LOSSES: dict[str, Callable[[np.random.Generator], Values]] = {
    "20 s at 50 % every 60 s": _recurring,
    "steps of 8 % down to 20 %": _steps,
    "ramp down to 35 %": _ramp,
    "even, then down to 35 % in 10 min": _late_ramp,
    "at 50 % for the first 10 min": _late_recovery,
    "sawtooth from 100 to 40 % every 40 s": _sawtooth,
}


def approach(
    rng: np.random.Generator, constant_s: float, length_s: float, noise: float, fast: float = 0.0, rise_k: float = 40.0
) -> tuple[float, Track]:
    """(the temperature that it is heading for, readings of 1 K each second). `fast`: share of the rise that takes 3 min only."""
    times = np.arange(0.0, length_s)
    top = 70 + rng.uniform(-0.5, 0.5)
    left = (1 - fast) * np.exp(-times / constant_s) + fast * np.exp(-times / 180)
    return top, Track(times, np.round(top - rise_k * left + rng.normal(0.0, noise, len(times))))


def with_dip(series: Values, start: int, length: int, depth: float) -> Values:
    """The series with its rate reduced by a share over some samples."""
    changed = series.copy()
    changed[start : start + length] *= 1 - depth
    return changed
