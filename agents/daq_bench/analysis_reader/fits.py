"""Least-squares fit of a resonance on an exponential background to a mass histogram; every bin's expectation is an exact integral."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.special import erf

from daq_bench.analysis_reader.shape import BINS, HIGH, LOW

Floats = npt.NDArray[np.float64]
EDGES: Floats = np.linspace(LOW, HIGH, BINS + 1)
NAMES = ("signal", "mass", "width", "background", "slope")
PASSES = (
    3  # each weighs the bins with the expectation of the one before, which takes away the bias of weights from counts
)
FEWEST = 300  # fewer pairs than this hold no peak to fit


def expected(edges: Floats, signal: float, mass: float, width: float, background: float, slope: float) -> Floats:
    """Entries of each bin: `signal` in all under the peak, `background` in all from LOW to HIGH. GeV."""
    peak = signal * 0.5 * erf((edges - mass) / (math.sqrt(2) * width))
    whole = 1 - math.exp(-(HIGH - LOW) / slope)
    tail = background * (1 - np.exp(-(edges - LOW) / slope)) / whole
    found: Floats = np.diff(peak + tail)
    return found


def fit(counts: npt.NDArray[np.int64]) -> dict[str, Any] | None:
    """{<name>: {value, error}, chi2, degrees}; None where there is too little, or no minimum was found.

    Deterministic: equal counts give equal numbers."""
    total = float(counts.sum())
    if total < FEWEST:
        return None
    middle = float(EDGES[int(np.argmax(counts))]) + (HIGH - LOW) / BINS / 2
    start = [0.2 * total, middle, 2.0, 0.8 * total, 20.0]
    bounds = ([0, LOW, 0.2, 0, 2.0], [2 * total, HIGH, 20.0, 2 * total, 500.0])
    weights = np.sqrt(np.maximum(counts, 1.0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)
            for _ in range(PASSES):
                values, covariance = curve_fit(
                    expected, EDGES, counts, start, weights, absolute_sigma=True, bounds=bounds
                )
                start, weights = list(values), np.sqrt(np.maximum(expected(EDGES, *values), 0.1))
    except (RuntimeError, OptimizeWarning):
        return None
    errors = np.sqrt(np.diag(covariance))
    found: dict[str, Any] = {
        name: {"value": float(value), "error": float(error)}
        for name, value, error in zip(NAMES, values, errors, strict=False)
    }
    chi2 = float((((counts - expected(EDGES, *values)) / weights) ** 2).sum())
    return {**found, "chi2": chi2, "degrees": BINS - len(NAMES)}
