"""Dips of a throughput series: when, how deep, how many bytes were lost, and whether the rate came back.

The rule, on the segments that change_points finds in the logarithm of the rate (whose noise grows with the rate):
1. The reference is the level that the load had reached: it starts with the first segment (with the second where that is higher,
   and the first is the shorter of the two: a slow start is a dip, too), follows every change of less than `DEPTH_MIN` as the mean
   of what was accepted in the last `REFERENCE_S`, and is raised only by a higher level that lasts `RISE_S_MIN` and is more than
   the catching-up after a dip.
2. A segment lower than the reference by `DEPTH_MIN` or more is a dip, together with those that follow until the rate is back to
   within `DEPTH_MIN` of the reference.
3. A dip that recurs at regular distances is a pattern of the series (a flush, a garbage collection): reported as such, once.
A slow drift follows rule 1 and is no dip; a level that never comes back is one that has not ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bench_model.change_points import MOST_SAMPLES, Noise, Segment, noise_of, segments

DEPTH_MIN = 0.10  # [P] share of the reference; less is within what drives vary from minute to minute
REFERENCE_S = 60.0  # [P] noise that grows with the level may cut a level in pieces: one piece is no reference
RISE_S_MIN = 10.0  # [P] a higher level that ends earlier is catching-up
CATCH_UP_MARGIN = 1.2  # surplus after a dip over the bytes lost in it
STALLED = 0.05  # [P] of the usual rate: less is a stall, and how much less does not matter
NOISE_FLOOR = 0.005  # of the rate
SAMPLES_MIN = 20  # fewer say nothing about noise
PATTERN_DIPS_MIN = 5  # [P] so many dips at regular distances are a pattern
PATTERN_JITTER_MAX = 0.25  # [P] standard deviation of the distances over their mean


@dataclass(frozen=True)
class Dip:
    """Times in s from the series' begin; `level` and `reference` in B/s; `ended` False: the rate did not come back."""

    start_s: float
    end_s: float
    level_bytes_per_s: float
    reference_bytes_per_s: float
    lost_bytes: float
    ended: bool

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def depth_fraction(self) -> float:
        return 1 - self.level_bytes_per_s / self.reference_bytes_per_s


@dataclass(frozen=True)
class Pattern:
    """A dip that recurs: every `period_s`, `count` times, with the mean depth and duration of its dips."""

    count: int
    period_s: float
    depth_fraction: float
    duration_s: float
    lost_bytes: float


@dataclass(frozen=True)
class LevelChange:
    at_s: float
    before_bytes_per_s: float
    after_bytes_per_s: float


@dataclass(frozen=True)
class Analysis:
    """What one series shows; `noise` is a share of the rate. `reason` says why it was not analysed; then everything else is empty."""

    dips: tuple[Dip, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    level_changes: tuple[LevelChange, ...] = ()
    noise: Noise | None = None
    step_s: float = 0.0
    reason: str | None = None


def analyse(rates: Sequence[float], step_s: float) -> Analysis:
    """Dips of a series of mean rates in B/s, one per `step_s` seconds."""
    values = np.asarray(rates, dtype=float)
    if len(values) < SAMPLES_MIN:
        return Analysis(
            step_s=step_s, reason=f"{len(values)} samples are fewer than the {SAMPLES_MIN} that tell noise from a dip"
        )
    if float(np.max(values)) <= 0:
        return Analysis(step_s=step_s, reason="nothing was written")
    merged = -(-len(values) // MOST_SAMPLES)
    if merged > 1:  # the last samples that fill no whole group are left out
        values = values[: len(values) // merged * merged].reshape(-1, merged).mean(axis=1)
        step_s *= merged
    scale = float(np.percentile(values, 90)) or float(np.max(values))
    logarithm = np.log(np.maximum(values / scale, STALLED))
    noise = noise_of(logarithm, NOISE_FLOOR)
    cut = [Segment(one.start, one.end, float(values[one.start : one.end].mean())) for one in segments(logarithm, noise)]
    dips = [_dip(values, span, reference, step_s, cut) for span, reference in _low_spans(cut, step_s)]
    single, patterns = _patterns(dips)
    changes = tuple(
        LevelChange(before.end * step_s, before.level, after.level)
        for before, after in pairwise(cut)
        if abs(after.level - before.level) >= DEPTH_MIN * max(before.level, after.level)
    )
    return Analysis(tuple(single), tuple(patterns), changes, noise, step_s)


def _low_spans(cut: Sequence[Segment], step_s: float) -> list[tuple[tuple[int, int], float]]:
    """((first sample, end sample), reference) of each dip."""
    slow_start = len(cut) > 1 and cut[1].level > cut[0].level and cut[0].length < cut[1].length
    reference = cut[1].level if slow_start else cut[0].level
    accepted: list[Segment] = []
    spans: list[tuple[tuple[int, int], float]] = []
    open_from: int | None = None
    owed = 0.0  # samples x rate that a paced load still has to catch up
    for segment in cut:
        if segment.level <= (1 - DEPTH_MIN) * reference:
            open_from = segment.start if open_from is None else open_from
            owed += (reference - segment.level) * segment.length
            continue
        if open_from is not None:
            spans.append(((open_from, segment.start), reference))
            open_from = None
        surplus = (segment.level - reference) * segment.length
        if segment.level < (1 + DEPTH_MIN) * reference:
            accepted.append(segment)
            reference, owed = _recent_level(accepted, step_s), 0.0
        elif segment.length * step_s >= RISE_S_MIN and surplus > CATCH_UP_MARGIN * owed:
            accepted = [segment]
            reference, owed = segment.level, 0.0
        else:
            owed = max(0.0, owed - surplus)
    if open_from is not None:
        spans.append(((open_from, cut[-1].end), reference))
    return spans


def _recent_level(accepted: Sequence[Segment], step_s: float) -> float:
    """Mean of the last `REFERENCE_S` of the accepted segments."""
    wanted = max(1, round(REFERENCE_S / step_s))
    total, samples = 0.0, 0
    for segment in reversed(accepted):
        taken = min(segment.length, wanted - samples)
        total, samples = total + taken * segment.level, samples + taken
        if samples == wanted:
            break
    return total / samples


def _dip(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    span: tuple[int, int],
    reference: float,
    step_s: float,
    cut: Sequence[Segment],
) -> Dip:
    start, end = span
    part = values[start:end]
    lost = float(np.maximum(reference - part, 0.0).sum()) * step_s
    return Dip(start * step_s, end * step_s, float(part.mean()), reference, lost, ended=end < cut[-1].end)


def _patterns(dips: Sequence[Dip]) -> tuple[list[Dip], list[Pattern]]:
    """(dips that stand alone, patterns). All dips of alike depth are one pattern when their distances are alike."""
    single, patterns = list(dips), []
    for group in _alike(dips):
        starts = np.array([dip.start_s for dip in group])
        distances = np.diff(starts)
        if len(group) >= PATTERN_DIPS_MIN and distances.std() <= PATTERN_JITTER_MAX * distances.mean():
            patterns.append(
                Pattern(
                    count=len(group),
                    period_s=float(distances.mean()),
                    depth_fraction=float(np.mean([dip.depth_fraction for dip in group])),
                    duration_s=float(np.mean([dip.duration_s for dip in group])),
                    lost_bytes=sum(dip.lost_bytes for dip in group),
                )
            )
            single = [dip for dip in single if dip not in group]
    return single, patterns


def _alike(dips: Sequence[Dip]) -> list[list[Dip]]:
    """Dips that ended, grouped by their length: within a factor of two of the group's first."""
    groups: list[list[Dip]] = []
    for dip in dips:
        if dip.ended:
            for group in groups:
                if 0.5 <= dip.duration_s / group[0].duration_s <= 2:
                    group.append(dip)
                    break
            else:
                groups.append([dip])
    return groups
