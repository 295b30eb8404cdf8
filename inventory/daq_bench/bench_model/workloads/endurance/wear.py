"""A drive's life as it follows from a bounded amount of writing. Pure.

A drive counts its wear in whole percent and does not say how it rounds, so that a difference of d between two readings
stands for anything from d - 1 to d + 1; a counter of written data has a step as well. Every result here is the interval
that follows; where the wear is below its quantum, the life is bounded from below only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from daq_bench.bench_model.base.load import NOMINAL_BYTES_PER_S, Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.wear_of_run import PERCENT_QUANTUM, PERCENT_SATURATED
from daq_bench.bench_model.workloads.endurance.document import Interval

TB = 1e12
DAYS_PER_YEAR = 365.25
SECONDS_PER_DAY = 86400.0
LIFE_PERCENT = 100.0


@dataclass(frozen=True)
class YearlyLoad:
    """Host bytes per year onto one drive; `low` and `high` where the source leaves it open (real and nominal rate)."""

    name: Literal["supernova", "continuous", "rating"]
    text: str
    low_bytes: float
    high_bytes: float


def supernova_cadence(demand: Demand, records_per_year: float, share: float) -> YearlyLoad:
    """One record of a unit so often, `share` of it onto this drive."""
    real, nominal = (rate * demand.duration_s for rate in (demand.real_bytes_per_s, NOMINAL_BYTES_PER_S))
    text = (
        f"{in_digits(records_per_year, 9)} records a year of {in_digits(demand.duration_s, 9)} s: "
        f"{in_digits(real / TB)} TB each at the real rate, "
        f"{in_digits(nominal / TB)} TB at the nominal one"
    )
    return YearlyLoad("supernova", text, records_per_year * real * share, records_per_year * nominal * share)


def continuous(demand: Demand, share: float) -> YearlyLoad:
    """The demanded rate without a pause."""
    seconds = DAYS_PER_YEAR * SECONDS_PER_DAY
    real, nominal = demand.real_bytes_per_s, NOMINAL_BYTES_PER_S
    text = f"{in_digits(real / 1e9)} GB/s (nominal {in_digits(nominal / 1e9, 9)} GB/s) without a pause"
    return YearlyLoad("continuous", text, seconds * real * share, seconds * nominal * share)


def rated_writes(dwpd: float, capacity_bytes: float) -> YearlyLoad:
    """As many drive writes per day as the maker allows."""
    yearly = dwpd * capacity_bytes * DAYS_PER_YEAR
    return YearlyLoad(
        "rating", f"{in_digits(dwpd, 9)} drive writes a day of {in_digits(capacity_bytes / TB)} TB", yearly, yearly
    )


def wear_percent_per_tb(
    before_percent: float, after_percent: float, written_bytes: float, step_bytes: float
) -> Interval | None:
    """Percent of the life that one TB of host writes costs; None where the two readings do not bound it."""
    difference = after_percent - before_percent
    least, most = (written_bytes - step_bytes) / TB, (written_bytes + step_bytes) / TB
    if least <= 0 or difference < 0 or after_percent >= PERCENT_SATURATED:
        return None
    best = difference / (written_bytes / TB) if difference else None
    return Interval(max(0.0, difference - PERCENT_QUANTUM) / most, best, (difference + PERCENT_QUANTUM) / least)


def years(
    load: YearlyLoad, wear: Interval, percent_left: tuple[float, float] = (LIFE_PERCENT, LIFE_PERCENT)
) -> Interval:
    """Years until `percent_left` (least, most) of the life is written away under `load`."""
    if wear.high is None:
        raise ValueError("a wear without an upper bound bounds no life")
    least, most = percent_left
    middle = (load.low_bytes + load.high_bytes) / 2 / TB
    return Interval(
        low=least / (wear.high * load.high_bytes / TB),
        best=(least + most) / 2 / (wear.best * middle) if wear.best else None,
        high=most / (wear.low * load.low_bytes / TB) if wear.low > 0 else None,
    )


def percent_left(used_percent: float) -> tuple[float, float]:
    """Returns the least and the most life left, in percent, of a drive that reads `used_percent`, whichever way it rounds."""
    return (
        max(0.0, LIFE_PERCENT - used_percent - PERCENT_QUANTUM),
        min(LIFE_PERCENT, max(0.0, LIFE_PERCENT - used_percent + PERCENT_QUANTUM)),
    )


def years_of_total(total_bytes: float, load: YearlyLoad) -> Interval:
    """Years until `total_bytes`, a stated endurance, are written under `load`."""
    low, high = total_bytes / load.high_bytes, total_bytes / load.low_bytes
    return Interval(low, (low + high) / 2, high)


def write_amplification(host_bytes: float, nand_bytes: float, host_step: float, nand_step: float) -> Interval | None:
    """Bytes onto the NAND per byte from the host; None where the writing is within one step of a counter."""
    if host_bytes <= host_step or nand_bytes < 0:
        return None
    return Interval(
        max(0.0, nand_bytes - nand_step) / (host_bytes + host_step),
        nand_bytes / host_bytes,
        (nand_bytes + nand_step) / (host_bytes - host_step),
    )
