"""A record against time."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_model.documents.tools import minidaq
from daq_bench.bench_report.base.errors import BundleError

RECORD = "results/snb_record.json"


@dataclass(frozen=True)
class Series:
    """Data offered and stored per interval; `t_s` is each interval's end, from the record's start."""

    t_s: tuple[float, ...]
    offered_bytes_per_s: tuple[float, ...]
    stored_bytes_per_s: tuple[float, ...]
    backlog_bytes: tuple[float, ...]


def series_of(found: minidaq.RecordSeries, repetition: int) -> Series:
    """The rates of one repetition, from 1. Raises BundleError where lists that belong together do not."""
    times, where = tuple(found.t_s), f"{RECORD}: repetitions[{repetition - 1}].minidaq.series"
    columns = [tuple(map(float, one)) for one in (found.offered_bytes, found.stored_bytes, found.backlog_bytes)]
    for column in columns:
        if len(column) != len(times):
            raise BundleError(where, f"{len(column)} values for {len(times)} times")
    for time, before in zip(times, (0.0, *times), strict=False):
        if time <= before:
            raise BundleError(f"{where}.t_s", f"times must increase, but {time} does not")
    times, (offered, stored, backlog) = _without_splinter(times, columns)
    # divides by the true length of each interval: the last one may be shorter, and the others' lengths vary slightly
    lengths = [time - before for before, time in zip((0.0, *times), times, strict=False)]
    return Series(
        t_s=times,
        offered_bytes_per_s=tuple(value / length for value, length in zip(offered, lengths, strict=True)),
        stored_bytes_per_s=tuple(value / length for value, length in zip(stored, lengths, strict=True)),
        backlog_bytes=backlog,
    )


def _without_splinter(
    times: tuple[float, ...], columns: list[tuple[float, ...]]
) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
    """Joins a last interval of under half the usual length to the one before: a rate over a millisecond means nothing."""
    if len(times) < 3 or times[-1] - times[-2] >= 0.5 * times[-1] / len(times):
        return times, columns
    offered, stored, backlog = columns
    joined = [(*column[:-2], column[-2] + column[-1]) for column in (offered, stored)]
    return (*times[:-2], times[-1]), [*joined, (*backlog[:-2], backlog[-1])]
