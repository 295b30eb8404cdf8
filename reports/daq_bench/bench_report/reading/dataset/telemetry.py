"""Telemetry of the run, read for figures: phases, the agents' account, the host's series."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from daq_bench.bench_model.documents.struct import Struct

ALL_CPUS = "All CPUs"


@dataclass(frozen=True)
class Phase:
    """A part of the run, in seconds from the run's start."""

    name: str
    start_s: float
    end_s: float


class Collector(Struct, frozen=True):
    name: str
    status: str = "not recorded"
    detail: str | None = None
    period_s: float | None = None
    points: int | None = None
    longest_gap_s: float | None = None


class Summary(Struct, frozen=True):
    """telemetry/summary.json, but for its counts."""

    collectors: tuple[Collector, ...] = ()


@dataclass(frozen=True)
class Accounting:
    """Describes where every telemetry point went, and how long each collector was silent at most."""

    counts: tuple[tuple[str, str, float], ...]  # (label, dotted name in summary.json, value)
    collectors: tuple[Collector, ...]


Samples = NDArray[np.float64]
Track = tuple[Samples, Samples]  # times in s from the run's start, values


@dataclass(frozen=True)
class HostSeries:
    """Telemetry of the host in seconds from the run's start; empty where nothing was collected."""

    disk_write_bytes_per_s: dict[str, Track]
    cpu_percent: dict[str, dict[str, Track]]  # core, or ALL_CPUS alone -> mode -> share of its time
    temperature_celsius: dict[str, Track]
    torn: bool
    power_w: dict[str, Track] = field(default_factory=dict)  # of the whole server, by its BMC
    disk_write_latency_s: dict[str, Track] = field(default_factory=dict)  # mean of the writes between two readings
