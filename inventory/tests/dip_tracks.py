"""A load whose rate dips, and tracks that change with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from series_factory import white, with_dip
from tracks_factory import track

from daq_bench.bench_model.bundle.telemetry_tracks import Track

COUNT = 600
HOT = (300.0, 400.0)


def dipped(seed: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
    return with_dip(white(np.random.default_rng(seed), COUNT), 300, 100, 0.5)


def disturbed(before: float, during: float, period_s: float = 1.0) -> Track:
    return track(lambda time: during if HOT[0] <= time < HOT[1] else before, COUNT, period_s)


def errors(per_s_before: float, per_s_during: float) -> Track:
    """A counter that is read every 5 s."""
    return track(
        lambda time: 7 + per_s_before * time + (per_s_during - per_s_before) * max(0.0, min(time, HOT[1]) - HOT[0]),
        COUNT,
        5.0,
    )
