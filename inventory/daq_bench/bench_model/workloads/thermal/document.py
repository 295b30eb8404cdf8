"""The types of results/thermal.json, what the thermal soak did and when, and of what follows from it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.dips import Signal
from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Pair, Positive

StoppedBy = Literal["throttling", "equilibrium", "time limit", "danger"]


class Asked(Closed, frozen=True):
    """The load that was asked for. `rate_limit_bytes_per_s`: null: as fast as the target takes it."""

    block_bytes: Annotated[int, Meta(ge=4096)]
    io_depth: Ordinal
    file_bytes: Annotated[int, Meta(ge=4096)]
    rate_limit_bytes_per_s: int | None
    condition: str


class Rule(Closed, frozen=True):
    window_s: float
    slope_max_k_per_min: float
    min_s: float
    max_s: float
    hold_s: float
    text: str


class Record(Closed, frozen=True):
    demand_bytes_per_s: Positive
    duration_s: Positive


class Sustained(Closed, frozen=True, kw_only=True):
    """`own`: what the load itself says that it wrote: pairs of a time on the candidate's clock and B/s."""

    name: str
    start_utc_s: float
    end_utc_s: float
    own: list[Pair[float]] | UnsetType = UNSET


class Load(Closed, frozen=True, kw_only=True):
    """A load as it ran. `throughput_bytes_per_s`: fio's bw_bytes."""

    name: str
    duty_percent: int | UnsetType = UNSET
    stopped_by: StoppedBy
    start_utc_s: float
    end_utc_s: float
    bytes_written: Count
    throughput_bytes_per_s: Amount


class FanLoad(Load, frozen=True, kw_only=True):
    """The load at a commanded fan speed."""

    duty_percent: int


class CoolDown(Closed, frozen=True):
    start_utc_s: float
    end_utc_s: float


class FanSweep(Closed, frozen=True):
    status: Literal["not asked", "unsupported", "stopped", "done"]
    reason: str | None
    points: list[FanLoad]


class Thermal(Closed, frozen=True):
    """results/thermal.json: what the workload thermal did and when; what follows from it is in results/thermal_soak.json. `sustained`:
    stretches of steady load, on the candidate's clock. `hazards`: what was commanded."""

    schema_version: Literal[1]
    tool: Literal["fio"]
    tool_version: str
    load: Asked
    rule: Rule
    record: Record
    sustained: list[Sustained]
    soak: Load
    cool_down: CoolDown | None
    hazards: list[str]
    fan_sweep: FanSweep


class SoakedRates(Closed, frozen=True):
    """`throughput_bytes_per_s_samples`: one for each `step_s`."""

    duration_s: float
    mean_bytes_per_s: float
    throughput_bytes_per_s_samples: list[float]
    step_s: float


class Onset(Closed, frozen=True):
    """The first dip that is throttling; `at_s` since the soak began."""

    at_s: float
    throttled_bytes_per_s: float
    reference_bytes_per_s: float
    depth_fraction: float
    ended_in_soak: bool
    confidence: str


class Heat(Closed, frozen=True):
    """Temperatures of one drive under one load, against its own limits. `equilibrium_more_s`: how much longer would decide."""

    max_degC: float | None  # noqa: N815 the document's own names
    warning_degC: float | None  # noqa: N815
    critical_degC: float | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    slope_k_per_min: float | None
    equilibrium_degC: float | None  # noqa: N815
    equilibrium_interval_degC: Pair[float] | None  # noqa: N815
    equilibrium_more_s: float | None
    equilibrium_reason: str | None


class Recovery(Closed, frozen=True):
    """After the load had stopped. `probe`: the load after cooling; its fraction is of the rate before the onset."""

    cooling_s: float
    fell_k: float | None
    probe_bytes_per_s: float | None
    probe_fraction: float | None


class Lost(Closed, frozen=True):
    start_s: float
    backlog_bytes: float
    lost_bytes: float


class RecordInSoak(Closed, frozen=True):
    """The required record against what the target took: throughout at the throttled rate, and in the worst stretch of the soak."""

    demand_bytes_per_s: float
    duration_s: float
    buffer_bytes: float
    at_throttled_rate: Lost | None
    worst_in_soak: Lost | None
    lost_bytes: float | None
    buffer_needed_bytes: float | None
    onset_before_end: bool


class FanPoint(Closed, frozen=True):
    """One commanded fan speed. Throughput and speeds of the last window of the rule."""

    name: str
    duty_percent: int
    stopped_by: StoppedBy
    duration_s: float
    throughput_bytes_per_s: float
    throttled: bool
    fan_speeds_rpm: dict[str, float]
    drives: dict[str, Heat]


class ThermalSoak(Closed, frozen=True):
    """results/thermal_soak.json. `soak`: null where the telemetry has no counter of the target. `drives`: by kernel name.
    `throttled`: null where a drive did not answer. `onsets_in_record`: 1 where throttling began within the record's length."""

    schema_version: Literal[1]
    stopped_by: StoppedBy
    soak: SoakedRates | None
    throttled: bool | None
    onset: Onset | None
    drives_word: list[Signal]
    drives: dict[str, Heat]
    recovery: Recovery | None
    record: RecordInSoak | None
    fan_sweep: list[FanPoint]
    onsets_in_record: int | None
    equilibrium_degC: float | None  # noqa: N815
    equilibrium_interval_degC: Pair[float] | None  # noqa: N815
    headroom_degC: float | None  # noqa: N815
    reasons: dict[str, str]
