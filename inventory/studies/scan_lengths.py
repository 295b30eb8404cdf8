"""Tells how long must a large block size be measured again before its throughput is decided? Seeded synthetic drives, for several
numbers and lengths of repetitions.

`python inventory/studies/scan_lengths.py [--runs N] [--write docs/scenarios-scans.md]` writes the table between the markers of that
document. One block size is judged alone; the repetitions of the others lie between its own, as in a scan of three large sizes. `all
three`: a drive on which all sizes are equally fast must be met with each of them, as the verdict asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from error_rates import BOUND, SEED, Array, Generator, publish
from scipy.signal import lfilter
from scipy.stats import t as student_t

from daq_bench.bench_model.statistics.repetitions import CONFIDENCE

SAMPLE_S = 0.25
START_S = 2.6  # ramp and the tool's own start
SIZES = 3  # large block sizes that take turns
NOISE = 0.02  # [P] for a sample of 250 ms


@dataclass(frozen=True)
class Drive:
    """`make` gives throughput over `count` consecutive samples, of long-run mean 1."""

    name: str
    make: Callable[[Generator, int], Array]


def stalling(generator: Generator, count: int, every_s: float = 120.0, regular: bool = True) -> Array:
    """Nothing is written for 5 s, every `every_s` exactly or on average."""
    number = math.ceil(count * SAMPLE_S / every_s) * 3 + 30
    gaps = np.full(number, every_s) if regular else 5.0 + generator.exponential(every_s - 5.0, number)
    starts = np.cumsum(gaps) - every_s * (10 + generator.random())  # stalls began long before the first sample
    edges = np.arange(count + 1) * SAMPLE_S
    stood = np.interp(edges, np.ravel([starts, starts + 5.0], "F"), 5.0 * np.repeat(np.arange(number + 1), 2)[1:-1])
    writing = 1 - np.diff(stood) / SAMPLE_S
    made: Array = writing / (1 - 5.0 / every_s) * (1 + NOISE * generator.standard_normal(count))
    return made


def wandering(generator: Generator, count: int, memory_s: float = 60.0) -> Array:
    """A first-order wander with a standard deviation of 5 % and a memory of `memory_s`, in noise."""
    correlation = math.exp(-SAMPLE_S / memory_s)
    shocks = generator.standard_normal(count) * math.sqrt(1 - correlation**2)
    shocks[0] = generator.standard_normal()
    made: Array = 1 + 0.05 * lfilter([1], [1, -correlation], shocks) + NOISE * generator.standard_normal(count)
    return made


DRIVES = (
    Drive("stall of 5 s every 120 s", stalling),
    Drive("stall of 5 s, on average every 120 s", partial(stalling, regular=False)),
    Drive("stall of 5 s, on average every 300 s", partial(stalling, every_s=300.0, regular=False)),
    Drive("wander of 5 %, memory 60 s", wandering),
)
PLANS = ((3, 20), (3, 120), (6, 20), (6, 30), (6, 45), (6, 60), (6, 90), (6, 120), (8, 60))
TRUTHS = (1.0, 0.99, 1.05, 1.1)  # long-run throughput over the bound


def scan(drive: Drive, generator: Generator, count: int, seconds: int, sizes: int = SIZES) -> Array:
    """`count` series of each block size out of one drive's time, in turns: [size, repetition, sample]."""
    step, each = round((seconds + START_S) / SAMPLE_S), round(seconds / SAMPLE_S)
    whole = drive.make(generator, count * sizes * step)
    return np.stack(
        [[whole[at * step : at * step + each] for at in range(size, count * sizes, sizes)] for size in range(sizes)]
    )


def repetitions(drive: Drive, generator: Generator, count: int, seconds: int, sizes: int = SIZES) -> Array:
    """`count` series of one block size; the other sizes take the time between."""
    first: Array = scan(drive, generator, count, seconds, sizes)[0]
    return first


def met(means: Array) -> bool:
    """True where Student's t interval over the repetitions and each repetition lie inside the bound. The verdict asks for more, such as an
    interval within each repetition: it errs no more often than this, and leaves more undecided."""
    reach = float(student_t.ppf((1 + CONFIDENCE) / 2, len(means) - 1)) / math.sqrt(len(means))
    return bool(min(means.min(), means.mean() - reach * means.std(ddof=1)) >= BOUND)


def met_percent(drive: Drive, plan: tuple[int, int], runs: int, sizes: int = SIZES) -> list[float]:
    """Percent of the runs in which a drive of each of the `TRUTHS` is called good enough."""
    generator = np.random.Generator(np.random.PCG64([SEED, *plan]))
    found = [repetitions(drive, generator, *plan, sizes).mean(axis=1) for _ in range(runs)]
    return [100 * sum(met(truth * BOUND * means) for means in found) / runs for truth in TRUTHS]


def all_met_percent(drive: Drive, plan: tuple[int, int], runs: int) -> float:
    """Percent of the runs in which a drive at the bound is called good enough with every size."""
    generator = np.random.Generator(np.random.PCG64([SEED, *plan]))
    scans = (scan(drive, generator, *plan).mean(axis=2) for _ in range(runs))
    return 100 * sum(all(met(BOUND * means) for means in sizes) for sizes in scans) / runs


def tables(runs: int) -> Iterator[str]:
    yield f"{runs} drives per line, seed {SEED}; made by `python inventory/studies/scan_lengths.py`.\n"
    yield "| drive | repetitions | wrong PASS at the bound, % | all three, % | 1 % short, % | 5 % above: met, % | 10 % above: met, % |"
    yield "|---|---|---|---|---|---|---|"
    for drive in DRIVES:
        for plan in PLANS:
            at, *other = met_percent(drive, plan, runs)
            shown = " | ".join(f"{one:.1f}" for one in (at, all_met_percent(drive, plan, runs), *other))
            yield f"| {drive.name} | {plan[0]} x {plan[1]} s | {shown} |"


if __name__ == "__main__":
    publish(tables, "wrong PASS against number and length of repetitions")
