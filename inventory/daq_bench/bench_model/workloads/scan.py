"""Rules that the scans over one file share: which of their points count."""

from __future__ import annotations

from typing import Literal

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.workloads.model import RUNTIME_MIN
from daq_bench.bench_model.workloads.plan import DEVICE_SHARE_MIN

Tool = Literal["fio", "daqwriter"]


def why_masked(runtime_s: float, seconds: float, said: str, said_bytes: float, device_bytes: int | None) -> str | None:
    """Why a point does not count; None when it does. `said`: what a tool says it did with `said_bytes`. `device_bytes`: by
    the device's own counter, None where there is none."""
    if runtime_s < RUNTIME_MIN * seconds:
        return f"ran for {runtime_s:.2f} s of {in_digits(seconds, 9)} s"
    if device_bytes is not None and device_bytes < DEVICE_SHARE_MIN * said_bytes:
        return f"the device counted {device_bytes} B of the {said_bytes} B that {said}"
    return None
