"""Curves of several candidates laid over each other, from their runs' results.

Promise: a curve is the median of all runs of its candidate that are used (repetitions included), with the lowest and the highest of
them; no run is chosen. A kind of curve is there where at least two candidates have its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, log10
from statistics import median
from typing import Final

from daq_bench.bench_model.documents.comparison import Curve, CurveKind, CurveOf
from daq_bench.bench_model.workloads.block_scan import BlockScan
from daq_bench.bench_model.workloads.latency_under_load import LatencyUnderLoad
from daq_bench.bench_model.workloads.saturation.document import SaturationAnalysis
from daq_bench.bench_model.workloads.snb_record import SnbRecord
from daq_bench.bench_report.comparison.bundles import Source
from daq_bench.bench_report.comparison.contenders import grouped
from daq_bench.bench_report.figures.written import summed, written_of

Series = list[tuple[float, float]]  # x and y of one pass over the axis
LEAST = 2  # candidates
STRETCHES = 60  # of what was written
TAIL = 99.9  # percentile of the latency against the offered rate
BLOCKS: Final = "rate-by-block-size"
LATENCY: Final = "latency-of-the-record"
LOAD: Final = "latency-under-load"
WRITTEN: Final = "rate-against-written"


def curves(sources: Sequence[Source]) -> list[Curve]:
    """One entry for each kind of curve. Runs that count are used; where none counts, those that are INADMISSIBLE."""
    used = [one for one in sources if one.counts] or [one for one in sources if one.outcome == "INADMISSIBLE"]
    of_name = grouped(used)
    found = list[Curve]()
    for name, read in READERS.items():
        passes = {key: [each for run in runs for each in read(run)] for key, runs in of_name.items()}
        if name == WRITTEN:
            passes = _on_one_grid(passes)
        drawn = [_candidate(key, each, len(of_name[key])) for key, each in passes.items() if any(each)]
        if len(drawn) >= LEAST:
            found.append(Curve(name, drawn))
    return found


def _candidate(name: str, passes: Sequence[Series], runs: int) -> CurveOf:
    """[x, median, lowest, highest] at each x that any pass has."""
    at: dict[float, list[float]] = {}
    for one in passes:
        for x, y in one:
            at.setdefault(x, []).append(y)
    points = [[x, median(values), min(values), max(values)] for x, values in sorted(at.items())]
    return CurveOf(name, runs, len(passes), points)


def _blocks(source: Source) -> list[Series]:
    """Rate by block size, B/s by B, of the scan's own tool."""
    scan = source.result("block_scan", BlockScan)
    return [[(one.block_bytes, one.throughput_bytes_per_s) for one in scan.points if one.admissible]] if scan else []


def _record(source: Source) -> list[Series]:
    """Latency from arrival to durable by percentile, us, of each record."""
    record = source.result("snb_record", SnbRecord)
    return [list(one.minidaq.latency_us.points_us.items()) for one in record.repetitions] if record else []


def _load(source: Source) -> list[Series]:
    """The tail of the latency, us, by the offered rate, B/s."""
    found = source.result("latency_under_load", LatencyUnderLoad)
    if found is None:
        return []
    points = [one for one in found.points if one.admissible]
    tails = [
        (one.asked_bytes_per_s, {each.percentile: each.us for each in one.percentiles}.get(TAIL)) for one in points
    ]
    return [[(rate, us) for rate, us in tails if us is not None]]


def _written(source: Source) -> list[Series]:
    """Rate, B/s, after each sample by all bytes written: the passes over the whole target, else the scan's repetitions of its largest
    block one after the other."""
    whole, scan = source.result("saturation_analysis", SaturationAnalysis), source.result("block_scan", BlockScan)
    if whole:
        rows = whole.repetitions
        return [summed(row.throughput_bytes_per_s_samples, row.step_s) for row in rows if row.step_s is not None]
    return [written_of(scan)[0]] if scan else []


def _on_one_grid(passes: Mapping[str, list[Series]]) -> dict[str, list[Series]]:
    """Mean rates over stretches of one round size, each placed at its end, so that those of all runs lie at the same places."""
    size = _round_size(max((one[-1][0] for each in passes.values() for one in each if one), default=0.0) / STRETCHES)
    return {key: [_stretched(one, size) for one in each] for key, each in passes.items()}


def _stretched(one: Series, size: float) -> Series:
    parts: dict[int, list[float]] = {}
    for written, rate in one:
        parts.setdefault(ceil(written / size), []).append(rate)
    return [(number * size, sum(rates) / len(rates)) for number, rates in parts.items()]


def _round_size(least: float) -> float:
    """1, 2 or 5 times a power of ten, no smaller than `least`."""
    power = 10.0 ** floor(log10(max(least, 1.0)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


READERS: Mapping[CurveKind, Callable[[Source], list[Series]]] = {
    BLOCKS: _blocks, LOAD: _load, LATENCY: _record, WRITTEN: _written,
}  # fmt: skip
