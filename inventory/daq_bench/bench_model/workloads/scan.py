"""Rules that the scans over one file share: which of their points count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.workloads.model import RUNTIME_MIN
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN, too_few_samples

Tool = Literal["fio", "daqwriter"]
SAMPLE_S = 0.25  # averaging window of the throughput samples that the report's spread comes from


def why_masked(
    runtime_s: float, seconds: float, samples: Sequence[float], said: str, said_bytes: float, device_bytes: int | None
) -> str | None:
    """Why a point does not count; None when it does. `samples`: B/s, one of each SAMPLE_S; a target that pauses for longer than the point
    lasts leaves no sample. `said`: what a tool says it did with `said_bytes`. `device_bytes`: by the device's own counter, None where it
    has no counter."""
    if runtime_s < RUNTIME_MIN * seconds:
        return f"ran for {runtime_s:.2f} s of {in_digits(seconds, 9)} s"
    if device_bytes is not None and device_bytes < DEVICE_SHARE_MIN * said_bytes:
        return f"the device counted {device_bytes} B of the {said_bytes} B that {said}"
    return too_few_samples(samples, runtime_s, SAMPLE_S)
