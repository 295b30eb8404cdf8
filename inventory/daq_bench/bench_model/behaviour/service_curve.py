"""The bytes that a paced record would have lost at the rates that a target took: arrivals against service, with a buffer between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Loss:
    """The losses of one record: the most that waited, what the buffer could not hold, and when the record began in the series."""

    start_s: float
    backlog_bytes: float  # without a limit: the buffer that this record would have needed
    lost_bytes: float  # with the declared buffer


def worst_record(
    service_bytes_per_s: Sequence[float],
    step_s: float,
    demand_bytes_per_s: float,
    duration_s: float,
    buffer_bytes: float,
) -> Loss | None:
    """The worst record of `duration_s` anywhere in the series; None where the series is shorter. The buffer is empty at a record's begin;
    what finds it full is lost. A rate that is no number empties it."""
    rates = np.asarray(service_bytes_per_s, dtype=float)
    length = round(duration_s / step_s)
    if length < 1 or len(rates) < length:
        return None
    # With an empty buffer at the begin, the window with the least service need not lose most, but every loss is of one of them: all go
    # on by one step at once. fmax and fmin leave out what is no number.
    short = (demand_bytes_per_s - rates) * step_s
    starts = len(rates) - length + 1
    waiting, held, lost, most = (np.zeros(starts) for _ in range(4))
    for step in range(length):
        more = short[step : step + starts]
        waiting = np.fmax(0.0, waiting + more)
        most = np.fmax(most, waiting)
        held = np.fmax(0.0, held + more)
        lost += np.fmax(0.0, held - buffer_bytes)
        held = np.fmin(held, buffer_bytes)
    start = int(np.lexsort((-most, -lost))[0])  # of equals the first: the sort keeps their order
    if not (lost[start] or most[start]):
        return Loss(0.0, 0.0, 0.0)
    return Loss(start * step_s, float(most[start]), float(lost[start]))


def constant_rate_loss(
    rate_bytes_per_s: float, demand_bytes_per_s: float, duration_s: float, buffer_bytes: float
) -> Loss:
    """A record taken at one and the same rate throughout, such as a throttled one."""
    backlog = max(0.0, (demand_bytes_per_s - rate_bytes_per_s) * duration_s)
    return Loss(0.0, backlog, max(0.0, backlog - buffer_bytes))
