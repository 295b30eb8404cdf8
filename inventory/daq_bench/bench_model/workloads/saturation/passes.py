"""One pass of a saturation run as its tool told it: whether its account of bytes is whole, and its rate against bytes written.

`unusable` and `contradictions` look at every number before anything is computed from it: a document may have been altered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.base.numbers import is_number
from daq_bench.bench_model.documents.struct import Document

SAMPLES_MAX = 2000  # [P] a longer series is averaged down: each is then a two-thousandth of the pass
GAP_SAMPLES_MAX = 5  # [P] intervals without a sample, as of telemetry
SAMPLES_SHARE_MIN = 0.9  # [P] of the intervals that the pass's time holds
END_S_MAX = 0.05  # [P] s, or one interval, by which the last sample may miss the end of the writing
FRESH = "fresh"
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """`rates` in B/s, one for each sample; `bytes` and `times` (s) written and passed by its begin, with the end as one more."""

    rates: Values
    bytes: Values
    times: Values
    step_s: float

    def rate(self, start: int, end: int) -> float:
        """Mean over the samples `start` to `end` (excluded), B/s."""
        return float((self.bytes[end] - self.bytes[start]) / (self.times[end] - self.times[start]))

    def reached(self, places: Values, last: bool) -> Values:
        """Says when so many bytes had been written: the first moment, or the last at which it was no more (s)."""
        side = np.searchsorted(self.bytes, places, side="right" if last else "left")
        high = np.clip(side, 1, len(self.bytes) - 1)
        low = high - 1
        width = self.bytes[high] - self.bytes[low]
        part = np.divide(places - self.bytes[low], width, out=np.ones_like(places), where=width > 0)
        found = self.times[low] + np.clip(part, 0.0, 1.0) * (self.times[high] - self.times[low])
        return np.asarray(found, dtype=np.float64)


def asked_bytes(parameters: Document, capacity_bytes: int) -> int:
    """Bytes that one pass writes of a drive of `capacity_bytes`, or of so much free room: whole blocks."""
    block: int = parameters["block_size"]
    asked = parameters.get("span_size", int(capacity_bytes * float(parameters.get("free_share", 1))))
    return int(asked) // block * block


def unusable(one: dict[str, Any]) -> str:
    """Why a pass has no figures; empty where it has."""
    wrong = next(contradictions(one), None)
    if wrong is not None:
        return wrong
    if one["status"] != "complete" or one["ended_by"] not in ("bytes", "span"):
        return f"the pass ended as {one['status']!r}, by {one['ended_by']!r}: {one['error'] or 'no reason given'}"
    if one["written_bytes"] < one["asked_bytes"]:
        return f"{one['written_bytes']} B of {one['asked_bytes']} B were written"
    if why := not_fresh(one):
        return why
    return next(holes(one), "") or one["reason"] or ""


def contradictions(one: dict[str, Any]) -> Iterator[str]:
    """In what a pass's numbers contradict one another, or are not numbers."""
    numbers = ("asked_bytes", "written_bytes", "capacity_bytes", "write_s")
    odd = [name for name in numbers if not is_number(one[name]) or one[name] < 0]
    if odd:
        yield f"{', '.join(odd)} of the pass is no number of 0 or more"
        return
    if not 0 < one["asked_bytes"] <= one["capacity_bytes"]:
        yield f"{one['asked_bytes']} B were asked for of a capacity of {one['capacity_bytes']} B"
    if one["written_bytes"] > one["asked_bytes"]:
        yield f"{one['written_bytes']} B were written, and {one['asked_bytes']} B asked for"
    yield from _of_series(one, one["series"])


def _of_series(one: dict[str, Any], series: dict[str, Any]) -> Iterator[str]:
    times, amounts, step = series["t_s"], series["written_bytes"], series["interval_s"]
    if len(times) != len(amounts) or not is_number(step) or step <= 0:
        yield f"the series has {len(times)} times and {len(amounts)} amounts, {step!r} s apart"
        return
    if not times:
        yield "the series has no sample"
        return
    if not all(is_number(at) for at in times) or not all(type(part) is int and part >= 0 for part in amounts):
        yield "a sample of the series is no number"
        return
    if times[0] <= 0 or any(after <= before for before, after in pairwise(times)):
        yield "the samples of the series are not in the order of time, or one stands there twice"
    if sum(amounts) != one["written_bytes"]:
        yield f"the samples of the series add up to {sum(amounts)} B, and {one['written_bytes']} B were written"
    if abs(times[-1] - one["write_s"]) > max(step, END_S_MAX):
        yield f"the last sample ends after {times[-1]:.3f} s, and the writing after {one['write_s']:.3f} s"


def holes(one: dict[str, Any]) -> Iterator[str]:
    """Says where the series lacks samples. It must not contradict itself."""
    times, step = one["series"]["t_s"], one["series"]["interval_s"]
    gap = float(np.diff([0.0, *times]).max())
    if gap > GAP_SAMPLES_MAX * step:
        yield f"no sample was taken for {gap:.3g} s, {gap / step:.0f} times the interval"
    planned = one["write_s"] / step
    if len(times) < SAMPLES_SHARE_MIN * planned - 1:
        yield f"{len(times)} of about {planned:.0f} samples are there"


def not_fresh(one: dict[str, Any]) -> str:
    """Why nothing says that no byte of the target had been written before; empty where its purge says so."""
    state = one["conditioning"]
    purge = state["purge"]
    if one["condition"] != FRESH or state["condition"] != FRESH:
        return f"the target was not fresh: {one['condition']!r} by daqwriter, {state['condition']!r} before"
    if one["target_kind"] == "raw-device" and (purge["done"] is not True or purge["zero_share"] != 1):
        share = purge["zero_share"]
        read = "nothing of it was read back" if share is None else f"{share:.0%} of the places read back were empty"
        return f"the drive was not shown to be fresh: {read} after {purge['method']}"
    return ""


def trace_of(one: dict[str, Any]) -> Trace:
    """The rate of a pass whose account is whole. A last interval of less than half the usual length, the drain, is no sample."""
    interval = one["series"]["interval_s"]
    times, amounts = _merged(one["series"]["t_s"], one["series"]["written_bytes"], interval)
    group = math.ceil((len(times) - 1) / SAMPLES_MAX)
    keep = np.arange(0, len(times), group)
    if 2 * (len(times) - 1 - keep[-1]) >= group > 1:  # the rest is long enough for a sample
        keep = np.append(keep, len(times) - 1)
    ends, whole = times[keep], amounts[keep]
    spans = np.diff(ends)
    return Trace(np.diff(whole) / spans, whole, ends, float(spans.mean()))


def _merged(times: Sequence[float], amounts: Sequence[int], interval: float) -> tuple[Values, Values]:
    """Ends of samples (s) and bytes by then, from 0 on, without ends that follow another within half an interval."""
    ends, whole, total = [0.0], [0.0], 0
    for at, part in zip(times, amounts, strict=True):
        total += part
        if at - ends[-1] >= interval / 2:
            ends.append(at)
            whole.append(float(total))
    if len(ends) == 1:  # all of it within one sample
        return np.asarray([0.0, times[-1]]), np.asarray([0.0, float(total)])
    return np.asarray(ends), np.asarray(whole)
