"""Findings from the sums over a fleet, taken some times a second: offered, delivered, whether the backlog grows, when it is gone. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.base.errors import BenchError

GROWTH_MAX = 0.02  # of the offered rate: less cannot be told from none within a window
SAMPLES_MIN = 8


@dataclass(frozen=True)
class Moment:
    """Numbers of points: those collected since the start, and those among them that were stored or refused."""

    at_s: float
    collected: int
    settled: int

    @property
    def backlog(self) -> int:
        return self.collected - self.settled


@dataclass(frozen=True)
class Flow:
    """Points per second within a window; `growth` is the backlog's, as a share of what was offered."""

    offered_per_s: float
    settled_per_s: float
    growth: float
    backlog_max: int

    @property
    def sustained(self) -> bool:
        return self.growth <= GROWTH_MAX


def moments(series: Sequence[Sequence[float]]) -> list[Moment]:
    """Makes moments of rows of monotonic_s, collected, spooled, delivered, rejected."""
    return [Moment(row[0], int(row[1]), int(row[3] + row[4])) for row in series]


def flow(found: Sequence[Moment], from_s: float, to_s: float) -> Flow:
    """The flow between two monotonic times. The backlog's growth is that between the medians of the window's first and last quarter, since
    every agent's own rises and falls with each delivery."""
    window = [moment for moment in found if from_s <= moment.at_s <= to_s]
    if len(window) < SAMPLES_MIN:
        raise BenchError(
            f"{len(window)} samples of the backlog in {to_s - from_s:.1f} s, at least {SAMPLES_MIN} are needed"
        )
    first, last = window[0], window[-1]
    elapsed_s = last.at_s - first.at_s
    offered, settled = last.collected - first.collected, last.settled - first.settled
    if not offered:
        raise BenchError("no point was offered within the window")
    quarter = len(window) // 4
    early, late = window[:quarter], window[-quarter:]
    rise = statistics.median(one.backlog for one in late) - statistics.median(one.backlog for one in early)
    apart_s = statistics.fmean(one.at_s for one in late) - statistics.fmean(one.at_s for one in early)
    return Flow(
        offered_per_s=offered / elapsed_s,
        settled_per_s=settled / elapsed_s,
        growth=rise / apart_s / (offered / elapsed_s),
        backlog_max=max(one.backlog for one in window),
    )


def caught_up_after_s(
    found: Sequence[Moment], from_s: float, stopped_s: float, resumed_s: float, to_s: float
) -> float | None:
    """Seconds from the server's return until the backlog was no larger again than at its largest between `from_s` and the outage;
    None when that did not happen before `to_s`, when sampling ended."""
    usual = max((one.backlog for one in found if from_s <= one.at_s < stopped_s), default=None)
    if usual is None:
        raise BenchError("no sample of the backlog before the outage")
    for one in found:
        if resumed_s <= one.at_s <= to_s and one.backlog <= usual:
            return one.at_s - resumed_s
    return None
