"""Tells what follows from a run's telemetry and results, and belongs to no workload."""

from __future__ import annotations

from typing import Literal

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Utc


class HottestSensor(Closed, frozen=True):
    device: str
    sensor: str | None
    degC: float  # noqa: N815 the document's own names


class DriveTemperature(Closed, frozen=True):
    """results/drive_temperature.json, of the target's drives together. An unknown value is None, and `reasons` says why, by metric."""

    schema_version: Literal[1]
    samples: Count
    max_degC: float | None  # noqa: N815
    warning_degC: float | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    critical_degC: float | None  # noqa: N815
    critical_headroom_degC: float | None  # noqa: N815
    reasons: dict[str, str]
    device: str | None = None
    hottest_sensor: HottestSensor | None = None


class Phase(Closed, frozen=True):
    name: str
    hours: Amount


class Cost(Closed, frozen=True):
    """results/cost.json: hours, bytes and energy of a run. `written_bytes_per_drive`: by kernel name. `energy_hours`: the time for which
    the BMC was read."""

    schema_version: Literal[1]
    hours: float
    phases: list[Phase]
    written_bytes: Count | None
    written_bytes_per_drive: dict[str, Count]
    energy_kwh: float | None
    energy_source: str | None
    energy_hours: Amount
    reasons: dict[str, str]
    nand_written_bytes: int | None = None


class OthersOfWindow(Closed, frozen=True):
    """Means of what others took while one load ran. `samples`: of the processes in it. `names`: the programs that took most CPU
    time, or that wrote most where that is the larger share, the first most. `written_fraction`: what they wrote to any storage, over
    what the load wrote to its target."""

    workload: str
    name: str
    start_s: float
    end_s: float
    samples: Count
    cpu_fraction: float
    steal_fraction: float
    written_fraction: float
    names: list[str]


class Others(Closed, frozen=True):
    """results/others.json: the loads of the run during which the processes were watched, in the order of time."""

    schema_version: Literal[1]
    windows: list[OthersOfWindow]


class PowerOfRecord(Closed, frozen=True):
    """The whole server's power during one record. `samples_w`: the readings in it; `mean_w` is weighted by time."""

    started_utc: Utc
    readings: Count
    mean_w: float | None
    w_per_gb_per_s: float | None
    condition: str | None = None
    samples_w: list[float] | None = None


class RecordPower(Closed, frozen=True):
    """results/record_power.json."""

    schema_version: Literal[1]
    records: list[PowerOfRecord]
    reasons: dict[str, str]


Source = Literal["kernel", "counter", "bmc", "drive"]


class HardwareEvent(Closed, frozen=True):
    """`first_s`: when it was seen first, s since `times_from`."""

    device: str
    kind: str
    source: Source
    count: int
    first_s: float
    text: str


class HardwareEvents(Closed, frozen=True):
    """results/hardware_events.json. A count is None where nothing looked; `reasons` says why."""

    schema_version: Literal[1]
    times_from: str
    summary: dict[str, int | None]
    reasons: dict[str, str]
    events: list[HardwareEvent]
    events_left_out: int
    sentences: list[str]
