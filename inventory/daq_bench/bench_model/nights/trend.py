"""The course of each requirement's metric over the runs of a history. Pure: no file, no clock.

Steps stand beside what else changed at the same place. That two things coincide does not show that one caused the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from daq_bench.bench_model.base.units import convert_earlier
from daq_bench.bench_model.documents.verdict import Judgement
from daq_bench.bench_model.nights.bundle_facts import Change, differences
from daq_bench.bench_model.nights.drift import Drift, drift
from daq_bench.bench_model.nights.night import LeftOut, Night
from daq_bench.bench_model.nights.run_history import History
from daq_bench.bench_model.nights.run_temperatures import DRIVE, INLET
from daq_bench.bench_model.nights.steps import FEWEST, Step, standard_errors, steps
from daq_bench.bench_model.nights.warmth import Warmth, warmth

DAY_S = 86400.0
SHARE_KNOWN = 0.8  # [P] of the runs that must know a temperature
Interval = tuple[float, float]


@dataclass(frozen=True)
class Coincidence:
    """A step, the runs on its two sides and what is known to have changed between them."""

    step: Step
    last_before: str
    first_after: str
    changes: tuple[Change, ...]
    worse: bool | None  # None where the requirement asks for one value


@dataclass(frozen=True)
class Track:
    """One requirement over runs, in the newest run's unit; `positions` index the history's nights. `bounds`: in force at each."""

    row: Judgement
    positions: tuple[int, ...]
    values: tuple[float, ...]
    intervals: tuple[Interval | None, ...]
    bounds: tuple[float, ...]
    steps: tuple[Coincidence, ...]
    warmth: Warmth | None
    adjusted: tuple[float, ...]  # empty where no temperature explains anything
    adjusted_steps: tuple[Coincidence, ...]
    drift: Drift | None
    left_out: tuple[LeftOut, ...]

    @property
    def enough(self) -> bool:
        return len(self.values) >= FEWEST


@dataclass(frozen=True)
class Trend:
    """The whole history's. `since_good`: what differs between the last good run and the newest."""

    history: History
    tracks: tuple[Track, ...]
    since_good: tuple[Change, ...]
    changes: tuple[tuple[int, tuple[Change, ...]], ...]  # (position of the run after, what changed before it)


def trend_of(history: History) -> Trend:
    """Deterministic: its random numbers come from the requirement's name."""
    nights = history.nights
    good = history.last_good
    changed = [
        (position, tuple(differences(nights[position - 1].facts, nights[position].facts)))
        for position in range(1, len(nights))
    ]
    return Trend(
        history,
        tuple(_track(row, nights) for row in history.newest.rows),
        tuple(differences(good.facts, history.newest.facts)) if good else (),
        tuple((position, changes) for position, changes in changed if changes),
    )


def _track(row: Judgement, nights: Sequence[Night]) -> Track:
    points = [(position, _point(row, night)) for position, night in enumerate(nights)]
    left_out = [LeftOut(nights[position].id, one) for position, one in points if isinstance(one, str)]
    known = [(position, one) for position, one in points if isinstance(one, _Point)]
    chosen = [nights[position] for position, _ in known]
    measured, intervals = tuple(one.value for _, one in known), tuple(one.interval for _, one in known)
    errors = standard_errors(intervals)
    seed = int.from_bytes(hashlib.sha256(row.id.encode()).digest()[:4])
    found = steps(measured, errors, seed)
    warm = _warmth(measured, chosen)
    adjusted: list[float] = []
    if warm and warm.depends:  # a run that does not know its temperature stays as measured
        degrees = [night.temperatures.get(warm.sensor, warm.reference) for night in chosen]
        adjusted = warm.adjusted(measured, degrees)
    after = steps(adjusted, errors, seed) if adjusted else []
    deciding = after if adjusted else found
    present = deciding[-1].index if deciding else 0
    days = [(night.started - nights[0].started).total_seconds() / DAY_S for night in chosen]
    values = (adjusted or measured)[present:]
    line = drift(days[present:], values, errors[present:], row.comparison, row.scaled_bound)
    return Track(
        row, tuple(position for position, _ in known), measured, intervals, tuple(one.bound for _, one in known),
        tuple(_coincidence(step, row, chosen) for step in found),
        warm, tuple(adjusted), tuple(_coincidence(step, row, chosen) for step in after),
        line, tuple(left_out),
    )  # fmt: skip


@dataclass(frozen=True)
class _Point:
    value: float
    interval: Interval | None
    bound: float


def _point(row: Judgement, night: Night) -> _Point | str:
    """The run's point in the unit of `row`, or why it has no place in the series."""
    own = night.row(row.id)
    if own is None:
        return "its profile has no such requirement"
    if own.definition != row.definition:
        return f"measured something else under this name: {own.metric}, {own.comparison}, {own.statistic}"
    if own.measured is None:
        return own.reason or "not measured"
    try:
        low, high = own.confidence_interval or (own.measured, own.measured)
        found = (own.measured, low, high, own.scaled_bound)
        value, low, high, bound = (convert_earlier(one, own.unit, row.unit) for one in found)
    except ValueError as error:
        return f"its unit cannot be converted: {error}"
    return _Point(value, (low, high) if own.confidence_interval else None, bound)


def _warmth(values: Sequence[float], nights: Sequence[Night]) -> Warmth | None:
    """By the inlet where nearly every run knows it, else by the drives."""
    for sensor in (INLET, DRIVE):
        known = [
            (value, night.temperatures[sensor])
            for value, night in zip(values, nights, strict=True)
            if sensor in night.temperatures
        ]
        if known and len(known) >= SHARE_KNOWN * len(nights):
            return warmth(sensor, [value for value, _ in known], [degrees for _, degrees in known])
    return None


def _coincidence(step: Step, row: Judgement, nights: Sequence[Night]) -> Coincidence:
    before, after = nights[step.index - 1], nights[step.index]
    better = row.larger_is_better
    worse = None if better is None else (step.after < step.before) == better
    return Coincidence(step, before.id, after.id, tuple(differences(before.facts, after.facts)), worse)
