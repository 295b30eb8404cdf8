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


def record_loss(
    service_bytes_per_s: Sequence[float], step_s: float, demand_bytes_per_s: float, buffer_bytes: float
) -> Loss:
    """A record that lasts as long as the series. The buffer is empty at its begin; what finds it full is lost."""
    waiting = held = lost = most = 0.0
    for rate in service_bytes_per_s:
        waiting = max(0.0, waiting + (demand_bytes_per_s - rate) * step_s)
        most = max(most, waiting)
        held = max(0.0, held + (demand_bytes_per_s - rate) * step_s)
        lost += max(0.0, held - buffer_bytes)
        held = min(held, buffer_bytes)
    return Loss(0.0, most, lost)


def worst_record(
    service_bytes_per_s: Sequence[float],
    step_s: float,
    demand_bytes_per_s: float,
    duration_s: float,
    buffer_bytes: float,
) -> Loss | None:
    """The worst record of `duration_s` anywhere in the series; None where the series is shorter."""
    rates = np.asarray(service_bytes_per_s, dtype=float)
    length = round(duration_s / step_s)
    if length < 1 or len(rates) < length:
        return None
    # With an empty buffer at the begin, the window with the least service need not lose most, but every loss is of one of them.
    worst = Loss(0.0, 0.0, 0.0)
    for start in range(len(rates) - length + 1):
        loss = record_loss(rates[start : start + length].tolist(), step_s, demand_bytes_per_s, buffer_bytes)
        if (loss.lost_bytes, loss.backlog_bytes) > (worst.lost_bytes, worst.backlog_bytes):
            worst = Loss(start * step_s, loss.backlog_bytes, loss.lost_bytes)
    return worst


def constant_rate_loss(
    rate_bytes_per_s: float, demand_bytes_per_s: float, duration_s: float, buffer_bytes: float
) -> Loss:
    """A record taken at one and the same rate throughout, such as a throttled one."""
    backlog = max(0.0, (demand_bytes_per_s - rate_bytes_per_s) * duration_s)
    return Loss(0.0, backlog, max(0.0, backlog - buffer_bytes))
