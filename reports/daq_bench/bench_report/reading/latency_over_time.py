"""Reads the table of latencies over time that daqwriter puts beside a record's distribution.

Promise: it holds as many superchunks as the distribution, in rows of one length, or the error names the field."""

from __future__ import annotations

from itertools import pairwise

from msgspec import UNSET

from daq_bench.bench_model.documents.tools.minidaq import LatencyOverTime, Minidaq
from daq_bench.bench_report.base.errors import BundleError
from daq_bench.bench_report.reading.dataset.record import RECORD


def latency_over_time_of(minidaq: Minidaq, repetition: int) -> LatencyOverTime | None:
    """None where the record of this repetition (from 1) has none: it is older, or stored nothing."""
    found = minidaq.latency_over_time
    if found is UNSET or not found.counts:
        return None
    where = f"{RECORD}: repetitions[{repetition - 1}].minidaq.latency_over_time"
    if any(after <= before for before, after in pairwise(found.from_us)):
        raise BundleError(f"{where}.from_us", "the edges must increase")
    for number, row in enumerate(found.counts):
        if len(row) != len(found.from_us):
            raise BundleError(f"{where}.counts[{number}]", f"{len(row)} counts for {len(found.from_us)} columns")
    counted, stated = sum(map(sum, found.counts)), minidaq.latency_us.count
    if counted != stated:
        raise BundleError(f"{where}.counts", f"{counted} superchunks, where latency_us counts {stated}")
    return found
