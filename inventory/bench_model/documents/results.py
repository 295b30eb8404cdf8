"""Results of workloads, and what is derived from them, as far as they have types."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from bench_model.documents.struct import Amount, Closed, Count, Struct


class DriveTemperature(Struct, frozen=True):
    """results/drive_temperature.json."""

    schema_version: Literal[1]
    samples: int
    max_degC: float | None  # noqa: N815 the document's own names
    warning_degC: float | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    critical_degC: float | None  # noqa: N815
    critical_headroom_degC: float | None  # noqa: N815
    reasons: dict[str, str]


class Reasoned(Struct, frozen=True):
    """A derived document whose metrics may be null, each with its reason."""

    schema_version: Literal[1]
    reasons: dict[str, str]


class HardwareEvent(Struct, frozen=True):
    """`first_s`: when it was seen first, s since `times_from`."""

    device: str
    kind: str
    source: Literal["kernel", "counter", "bmc"]
    count: int
    first_s: float
    text: str


class HardwareEvents(Struct, frozen=True):
    """results/hardware_events.json. A count is null where nothing looked; `reasons` says why."""

    schema_version: Literal[1]
    times_from: str
    summary: dict[str, int | None]
    reasons: dict[str, str]
    events: list[HardwareEvent]
    events_left_out: int
    sentences: list[str]


class WriteLatency(Closed, frozen=True):
    """us, submission to completion."""

    p50: float
    p99: float
    p99_9: float
    max: float
    mean: float


class WritePoint(Closed, frozen=True):
    """Sequential writes with one block size. Throughput in B/s of all threads, its samples one per window of `sample_s`. CPU in percent of
    one CPU, of several threads the mean. `device_bytes_written`: by the device's own counter, ramp included. `reason`: why the point is
    masked, and not drawn."""

    block_bytes: Annotated[int, Meta(ge=512)]
    throughput_bytes_per_s: Amount
    iops: Amount
    bytes_written: Count
    runtime_s: Amount
    throughput_bytes_per_s_samples: list[Amount]
    latency_us: WriteLatency
    cpu_user_percent: float
    cpu_system_percent: Amount
    device_bytes_written: int | None
    admissible: bool
    reason: str | None
