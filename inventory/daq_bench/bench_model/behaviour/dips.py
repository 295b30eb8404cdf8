"""Dips of a throughput series: when, how deep, how many bytes were lost, and whether the rate came back.

The rule, on the segments that change_points finds in the logarithm of the rate (whose noise grows with the rate):
1. The reference is the level that the load had reached: it starts with the first segment (with the second where that is higher,
   and the first is the shorter of the two: a slow start is a dip, too), follows every change of less than `DEPTH_MIN` as the mean
   of what was accepted in the last `REFERENCE_S`, and is raised only by a higher level that lasts `RISE_S_MIN` and is more than
   the catching-up after a dip.
2. A segment lower than the reference by `DEPTH_MIN` or more is a dip, together with those that follow until the rate is back to
   within `DEPTH_MIN` of the reference. One of at most `SHORT_SAMPLES` samples must be `TAIL_MARGIN` times as far below the usual
   rate as the noise is above it.
3. A dip that recurs at regular distances is a pattern of the series (a flush, a garbage collection): reported as such, once, where
   it costs less than `DEPTH_MIN` of the bytes. One that costs more is no rhythm that a load can live with: its dips are *recurring* dips.
4. A load that rules 1 to 3 let pass is held against the best level that was sustained for `REFERENCE_S` in the load, in the same load at
   another time of the run, or that was offered: a level lower by `CREEP_MIN` is a *creep* (*from the start*, where it begins with
   the load), and a loss of `LOSS_MIN` of all bytes that no dip accounts for is a *cumulated* loss.
A drift of less than `CREEP_MIN` follows rule 1 and is no dip; a level that never comes back is one that has not ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.documents.dips import LevelChange
from daq_bench.bench_model.statistics.change_points import MOST_SAMPLES, Noise, Segment, noise_of, segments

DEPTH_MIN = 0.10  # [P] share of the reference; less is within what drives vary from minute to minute
REFERENCE_S = 60.0  # [P] noise that grows with the level may cut a level in pieces: one piece is no reference
RISE_S_MIN = 10.0  # [P] a higher level that ends earlier is catching-up
CATCH_UP_MARGIN = 1.2  # surplus after a dip over the bytes lost in it
STALLED = 0.05  # [P] of the usual rate: less is a stall, and how much less does not matter
NOISE_FLOOR = 0.005  # of the rate
SAMPLES_MIN = 20  # fewer say nothing about noise
PATTERN_DIPS_MIN = 5  # [P] so many dips at regular distances are a pattern
PATTERN_JITTER_MAX = 0.25  # [P] standard deviation of the distances over their mean
SHORT_SAMPLES = 2  # a dip so short is one outlier of heavy-tailed noise, or two
TAIL_MARGIN = 1.5  # [P]
CREEP_MIN = 0.25  # [P] share of the best sustained level; docs/detection.md says what a smaller one would call a creep
LOSS_MIN = 0.15  # [P] share of the bytes that the usual rate would have written
USUAL_S, USUAL_PERCENTILE = 5.0, 90.0  # [P] the usual rate is this percentile of the means over so many seconds
DIP, RECURRING, CREEP, FROM_START, CUMULATED = "dip", "recurring", "creep", "from the start", "cumulated"
Values = NDArray[np.float64]
Low = tuple[tuple[int, int], float]  # ((first sample, end sample), reference)


@dataclass(frozen=True)
class Dip:
    """Times in s from the series' begin; `level` and `reference` in B/s; `ended` False: the rate did not come back.

    `kind`: dip, recurring, creep, from the start or cumulated."""

    start_s: float
    end_s: float
    level_bytes_per_s: float
    reference_bytes_per_s: float
    lost_bytes: float
    ended: bool
    kind: str = DIP

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def depth_fraction(self) -> float:
        return 1 - self.level_bytes_per_s / self.reference_bytes_per_s


@dataclass(frozen=True)
class Pattern:
    """A dip that recurs: every `period_s`, with the mean depth and duration of its `dips`."""

    dips: tuple[Dip, ...]
    period_s: float
    costly: bool  # by DEPTH_MIN of the bytes or more: its dips are dips, too

    @property
    def depth_fraction(self) -> float:
        return float(np.mean([dip.depth_fraction for dip in self.dips]))

    @property
    def duration_s(self) -> float:
        return float(np.mean([dip.duration_s for dip in self.dips]))

    @property
    def lost_bytes(self) -> float:
        return sum(dip.lost_bytes for dip in self.dips)


@dataclass(frozen=True)
class Analysis:
    """The findings on one series; `noise` is a share of the rate. `reason` says why it was not analysed; then everything else is empty."""

    dips: tuple[Dip, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    level_changes: tuple[LevelChange, ...] = ()
    noise: Noise | None = None
    step_s: float = 0.0
    reason: str | None = None
    level: float = 0.0  # the best that was sustained, in B/s


def analyse(rates: Sequence[float], step_s: float, reference: float = 0.0) -> Analysis:
    """Dips of a series of mean rates in B/s, one per `step_s` seconds.

    `reference`: the best level that the same load reached at another time, or that was offered to it; 0 where nobody knows."""
    if reference > 0:
        found, rest = _cut(tuple(rates), step_s)
        return found if rest is None else replace(found, dips=_with_shortfalls(found, rest, reference))
    return _by_itself(tuple(rates), step_s)


@lru_cache(maxsize=64)  # several documents follow from one load
def _by_itself(rates: tuple[float, ...], step_s: float) -> Analysis:
    found, rest = _cut(rates, step_s)
    return (
        found
        if rest is None
        else replace(found, dips=_with_shortfalls(found, rest, 0.0), level=best_level(rest, found.step_s))
    )


@lru_cache(maxsize=64)
def _cut(rates: tuple[float, ...], step_s: float) -> tuple[Analysis, _Rest | None]:
    """(dips, patterns and changes of level by rules 1 to 3, what they leave)."""
    values = np.asarray(rates, dtype=float)
    if reason := _unusable(values):
        return Analysis(step_s=step_s, reason=reason), None
    merged = -(-len(values) // MOST_SAMPLES)
    if merged > 1:  # the last samples that fill no whole group are left out
        values = values[: len(values) // merged * merged].reshape(-1, merged).mean(axis=1)
        step_s *= merged
    scale = float(np.percentile(values, 90)) or float(np.max(values))
    logarithm = np.log(np.maximum(values / scale, STALLED))
    noise = noise_of(logarithm, NOISE_FLOOR)
    cut = [Segment(one.start, one.end, float(values[one.start : one.end].mean())) for one in segments(logarithm, noise)]
    low, raised = _low_spans(cut, step_s)
    believed = [(span, level) for span, level in low if not _outlier(logarithm, span)]
    dips = [_dip(values, span, level, step_s) for span, level in believed]
    single, patterns = _patterns(dips, float(values.sum()) * step_s)
    changes = tuple(
        LevelChange(before.end * step_s, before.level, after.level)
        for before, after in pairwise(cut)
        if abs(after.level - before.level) >= DEPTH_MIN * max(before.level, after.level)
    )
    rest = _Rest(values, _filled(values, believed, raised))
    return Analysis(tuple(single), tuple(patterns), changes, noise, step_s), rest


def _unusable(values: Values) -> str | None:
    if len(values) < SAMPLES_MIN:
        return f"{len(values)} samples are fewer than the {SAMPLES_MIN} that tell noise from a dip"
    if not np.isfinite(values).all():
        return "a sample of the rate is no number"
    return "nothing was written" if float(np.max(values)) <= 0 else None


def _low_spans(cut: Sequence[Segment], step_s: float) -> tuple[list[Low], list[Low]]:
    """((first sample, end sample), reference) of each dip, and of each stretch that catches up after one."""
    slow_start = len(cut) > 1 and cut[1].level > cut[0].level and cut[0].length < cut[1].length
    reference = cut[1].level if slow_start else cut[0].level
    accepted: list[Segment] = []
    spans: list[Low] = []
    raised: list[Low] = []
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
            raised.append(((segment.start, segment.end), reference))
            owed = max(0.0, owed - surplus)
    if open_from is not None:
        spans.append(((open_from, cut[-1].end), reference))
    return spans, raised


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


def _outlier(logarithm: Values, span: tuple[int, int]) -> bool:
    """Says whether a short low is no further from the usual rate than heavy-tailed noise reaches above it.

    The samples that follow at once are left out: they may be catching up."""
    start, end = span
    if end - start > SHORT_SAMPLES:
        return False
    usual = float(np.median(logarithm))
    others = np.concatenate([logarithm[:start], logarithm[end + SHORT_SAMPLES :]])
    depth = usual - float(logarithm[start:end].max())
    return depth < TAIL_MARGIN * float(others.max(initial=usual) - usual)


def _dip(values: Values, span: tuple[int, int], reference: float, step_s: float, kind: str = DIP) -> Dip:
    start, end = span
    part = values[start:end]
    lost = float(np.maximum(reference - part, 0.0).sum()) * step_s
    return Dip(start * step_s, end * step_s, float(part.mean()), reference, lost, end < len(values), kind)


@dataclass(frozen=True, eq=False)
class _Rest:
    """The samples, and the same with dips filled up to their references and catching-up cut down to its own."""

    values: Values
    filled: Values


def _filled(values: Values, low: Sequence[Low], raised: Sequence[Low]) -> Values:
    filled = values.copy()
    for (start, end), level in low:
        filled[start:end] = np.maximum(filled[start:end], level)
    for (start, end), level in raised:
        filled[start:end] = np.minimum(filled[start:end], level)
    return filled


def best_level(rest: _Rest, step_s: float) -> float:
    """The highest mean that was sustained for `REFERENCE_S`, or for a quarter of a shorter load."""
    return float(_sustained(rest.filled, step_s).max())


def _sustained(filled: Values, step_s: float) -> Values:
    """Means of every stretch of that length."""
    length = int(np.clip(round(REFERENCE_S / step_s), 1, max(1, len(filled) // 4)))
    return _means(filled, length)


def _means(values: Values, length: int) -> Values:
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray((sums[length:] - sums[:-length]) / length, dtype=np.float64)


def _with_shortfalls(found: Analysis, rest: _Rest, reference: float) -> tuple[Dip, ...]:
    """The dips, and what rule 4 adds to them, in the order of time."""
    more = _creeps(rest, found.step_s, reference) or _cumulated(rest, found.step_s)
    return tuple(sorted([*found.dips, *more], key=lambda dip: dip.start_s))


def _creeps(rest: _Rest, step_s: float, reference: float) -> list[Dip]:
    """Stretches whose sustained level left the best one by `DEPTH_MIN`, and got to be lower by `CREEP_MIN`."""
    level = _sustained(rest.filled, step_s)
    best, margin = max(float(level.max()), reference), (len(rest.filled) - len(level)) // 2
    made = []
    for start, end in _runs(level <= (1 - DEPTH_MIN) * best):
        if level[start:end].min() <= (1 - CREEP_MIN) * best:
            first = 0 if start == 0 else start + margin
            last = len(rest.filled) if end == len(level) else end + margin
            kind = FROM_START if start == 0 else CREEP
            made.append(_dip(rest.filled, (first, last), best, step_s, kind))
    return made


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, end) of each stretch of true ones."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False]))))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _cumulated(rest: _Rest, step_s: float) -> list[Dip]:
    """The whole load, where its mean falls short of its own usual rate although nothing stands out."""
    usual = float(np.percentile(_means(rest.filled, max(1, round(USUAL_S / step_s))), USUAL_PERCENTILE))
    if rest.filled.mean() > (1 - LOSS_MIN) * usual:
        return []
    return [_dip(rest.filled, (0, len(rest.filled)), usual, step_s, CUMULATED)]


def _patterns(dips: Sequence[Dip], written: float) -> tuple[list[Dip], list[Pattern]]:
    """(dips that stand alone or cost too much, patterns). Dips of alike length are one pattern when their distances are alike."""
    single, patterns = list(dips), []
    for group in _alike(dips):
        starts = np.array([dip.start_s for dip in group])
        distances = np.diff(starts)
        if len(group) >= PATTERN_DIPS_MIN and distances.std() <= PATTERN_JITTER_MAX * distances.mean():
            lost = sum(dip.lost_bytes for dip in group)
            costly = lost >= DEPTH_MIN * (written + lost)
            patterns.append(Pattern(tuple(group), float(distances.mean()), costly))
            single = [dip for dip in single if dip not in group]
            if costly:
                single += [replace(dip, kind=RECURRING) for dip in group]
    return sorted(single, key=lambda dip: dip.start_s), patterns


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
