"""Has the level of one requirement become worse over the last nights? Pure arithmetic on the values of nights in their order.

Nights of an unchanged machine scatter by more than the repetitions of one night. So the level is the mean of the nights since somebody
accepted it, the spread is that between these nights, and four windows are held against the level: tonight for a collapse, the last 3 nights
for a step, the last 10 and 20 for a creep. The chance of a false alarm is shared among them (Bonferroni). Student's t on their means serves
estimated values, Mann and Whitney's exact rank sums all others.

A night that alarmed is red: it stays out of the level, and counts in spread and rank, since leaving the low nights of a steady machine out
would make the others look steadier than they are. Three red nights or more in a row are a level of their own, not scatter; those that last
until tonight are left out, since nobody knows yet which they are."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy
from numpy.typing import NDArray

from daq_bench.bench_model.nights.steps import MEMORY_MAX, SHORTEST, Values

# [P] by simulation (docs/trend.md): nights at the end that are taken together, and their shares of the chance of a false alarm
WINDOWS = {1: 0.10, 3: 0.60, 10: 0.15, 20: 0.15}
COLLAPSE = (
    2.0  # [P] times what alarms in theory that one night alone must show: single bad nights are no normal scatter
)
RANKED = {3: 0.70, 10: 0.15, 20: 0.15}  # one night among thousands would have to be the worst
KNOWN_FROM = 5  # [P] degrees of freedom from which the spread between nights is known
ASSUMED = 0.05  # [P] of the level: the spread until it is known, more than that of any machine in docs/trend.md
RESOLUTION = 0.001  # [P] of the level: a smaller spread is not believed, however alike the nights are
MEMORY = 2.0  # [P] over the root of the nights: a smaller correlation of neighbouring nights is chance
CLIP = 3.0  # [P] spreads: what one night can add to a window of several
RANKED_NIGHTS = 60  # newest earlier nights of a rank: more would not lower its least chance much


@dataclass(frozen=True)
class Nights:
    """The values of earlier nights, oldest first. `red`: which of them alarmed. `accepted`: place of the first one of the present level.
    `error`: standard error of one night's own value, 0 where it is not known."""

    values: tuple[float, ...]
    red: tuple[bool, ...]
    accepted: int = 0
    error: float = 0.0


@dataclass(frozen=True)
class Shift:
    """The window that shows most: `window` nights, tonight among them, of mean `mean`, against the level of `n` nights. `excess` is the
    shift for the worse in units of what would alarm; `interval` that of mean minus level. `spread` None: by rank."""

    window: int
    mean: float
    level: float
    n: int
    excess: float
    spread: float | None = None  # in Student's t
    assumed: bool = False
    interval: tuple[float, float] | None = None


def by_mean(nights: Nights, tonight: float, worse: int, chance: float) -> Shift | None:
    """By Student's t. `worse`: -1 where a smaller value is worse, else 1. None without an earlier night of the level."""
    values, kinds = np.array(nights.values), _kinds(nights)
    found = [
        one
        for window, share in WINDOWS.items()
        if (one := _of_window(nights, values, kinds, tonight, worse, window, share * chance)) is not None
    ]
    if not found:
        return None
    most = max(found, key=lambda one: one.excess)
    return most if most.excess > 1 else found[0]


def by_rank(nights: Nights, tonight: float, worse: int, chance: float) -> Shift | None:
    """By rank sums; a tie counts against the alarm. None where so few nights can show nothing at this chance."""
    values, kinds = np.array(nights.values), _kinds(nights)
    found = []
    for window, share in RANKED.items():
        end = len(values) - window + 1
        places = slice(nights.accepted, max(end, nights.accepted))
        earlier = values[places][kinds[places] == PLAIN][-RANKED_NIGHTS:]
        last = np.append(values[max(end, 0) :], tonight)
        count = len(earlier)
        if len(last) < window or not count or 1 / math.comb(count + window, window) > share * chance:
            continue
        beaten = int(
            (worse * last[:, None] > worse * earlier[None, :]).sum()
        )  # pairs in which the later night is worse
        p = _rank_chance(count, window, beaten)
        excess = share * chance / p
        found.append(Shift(window, float(last.mean()), float(earlier.mean()), count, excess))
    return max(found, key=lambda one: one.excess, default=None)


PLAIN, LASTING = 0, -1  # kinds of nights; a level of its own has a number from 1 on


def _kinds(nights: Nights) -> NDArray[np.int64]:
    """Long runs of red nights are levels of their own. One that lasts until tonight is left out: nobody knows yet what it is."""
    found = np.zeros(len(nights.red), dtype=np.int64)
    end = 0
    for number, (is_red, group) in enumerate(itertools.groupby(nights.red), start=1):
        begin, end = end, end + len(list(group))
        if is_red and end == len(nights.red):
            found[begin:end] = LASTING
        elif is_red and end - begin >= SHORTEST:
            found[begin:end] = number
    return found


def _of_window(
    nights: Nights, values: Values, kinds: NDArray[np.int64], tonight: float, worse: int, window: int, chance: float
) -> Shift | None:
    end = len(values) - window + 1  # the earlier nights before the window
    red = np.array(nights.red, dtype=bool)
    level = values[nights.accepted : max(end, 0)][~red[nights.accepted : max(end, 0)]]
    if not len(level):
        return None
    mean = float(level.mean())
    squares, freedom = 0.0, 0
    for first, last in ((0, min(nights.accepted, end)), (nights.accepted, end)):
        for kind in np.unique(kinds[first:last]) if red[first:last].any() else ([PLAIN] if last > first else []):
            if kind == LASTING:
                continue
            own = values[first:last][kinds[first:last] == kind]
            of_level = own[~red[first:last][kinds[first:last] == kind]] if kind == PLAIN else own
            if len(of_level):
                squares += float(((own - of_level.mean()) ** 2).sum())
                freedom += len(own) - 1
    known = freedom >= KNOWN_FROM
    least = max(nights.error, (RESOLUTION if known else ASSUMED) * abs(mean))
    spread = max(math.sqrt(squares / freedom) if freedom else 0.0, least)
    if spread <= 0:
        return None
    last_nights = np.append(values[end:], tonight)
    if window > 1:
        last_nights = np.clip(last_nights, mean - CLIP * spread, mean + CLIP * spread)
    shift = float(last_nights.mean()) - mean
    memory = _memory(level - mean)
    inflated = (1 + memory) / (1 - memory) / len(level) + _variance_of_mean(window, memory)
    reach = _quantile(chance, freedom if known else 0) * spread * math.sqrt(inflated)
    if window == 1 and known:
        reach *= COLLAPSE
    interval = (shift - reach, shift + reach)
    return Shift(window, mean + shift, mean, len(level), worse * shift / reach, spread, not known, interval)


def _memory(deviations: Values) -> float:
    """Correlation of neighbouring nights (corrected after Kendall 1954), where it is more than chance; nights of no memory have none."""
    count, power = len(deviations), float(deviations @ deviations)
    if count <= KNOWN_FROM or power <= 0:
        return 0.0
    found = (count * float(deviations[1:] @ deviations[:-1]) / power + 1) / (count - 3)
    return min(found, MEMORY_MAX) if found > MEMORY / math.sqrt(count) else 0.0


@cache
def _variance_of_mean(window: int, memory: float) -> float:
    """Variance of the mean of `window` neighbours of a first-order autoregressive process of variance 1."""
    return (1 + 2 * sum((1 - lag / window) * memory**lag for lag in range(1, window))) / window


@cache
def _rank_chance(earlier: int, window: int, beaten: int) -> float:
    """Mann and Whitney's exact chance of so many pairs or more, in which the later night is worse than the earlier one."""
    ways = np.zeros((window + 1, window * earlier + 1))  # of choosing so many later nights, with so many pairs
    ways[0, 0] = 1.0
    for worse_than in range(earlier + 1):
        for chosen in range(1, window + 1):
            ways[chosen, worse_than:] += ways[chosen - 1, : window * earlier + 1 - worse_than]
    return float(ways[window, beaten:].sum() / ways[window].sum())


@cache
def _quantile(chance: float, freedom: int) -> float:
    """The quantile of Student's t, and the normal one for no degrees of freedom: the spread is assumed then, not estimated."""
    return float(scipy.stats.t.isf(chance, freedom) if freedom else scipy.stats.norm.isf(chance))
