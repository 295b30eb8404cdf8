"""Seeded throughput series whose truth is known, for the tests and studies of detection. Rates in B/s, one per second."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

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


def ar_half(rng: np.random.Generator, count: int) -> Values:
    return LEVEL * (1 + memory(rng, count, 0.5, 0.05))


def ar_strong(rng: np.random.Generator, count: int) -> Values:
    return LEVEL * (1 + memory(rng, count, 0.8, 0.05))


def drift(rng: np.random.Generator, count: int) -> Values:
    """A loss of 20 % per hour, as of a drive that slowly warms or fills."""
    return LEVEL * (1 - 0.2 * np.arange(count) / 3600 + rng.normal(0.0, 0.05, count))


def flush(rng: np.random.Generator, count: int) -> Values:
    """Every 10 s one second at 60 %, as of a cache that is written out."""
    rates: Values = LEVEL * (1 - 0.4 * (np.arange(count) % 10 == 5) + rng.normal(0.0, 0.03, count))
    return rates


def long_flush(rng: np.random.Generator, count: int) -> Values:
    """Every 40 s four seconds at half of the rate."""
    return LEVEL * (1 - 0.5 * (np.arange(count) % 40 < 4) + rng.normal(0.0, 0.03, count))


BACKGROUNDS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "white noise, 5 %": white,
    "AR(1), 0.5, 5 %": ar_half,
    "AR(1), 0.8, 5 %": ar_strong,
    "drift of 20 % per hour, noise 5 %": drift,
    "flush of 1 s every 10 s, 40 %": flush,
    "flush of 4 s every 40 s, 50 %": long_flush,
}


def with_dip(series: Values, start: int, length: int, depth: float) -> Values:
    """The series with its rate reduced by a share over some samples."""
    changed = series.copy()
    changed[start : start + length] *= 1 - depth
    return changed
