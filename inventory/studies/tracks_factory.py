"""Telemetry of a run whose truth is known: a drive under load that may become hot, warn, count, or be disturbed from outside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from daq_bench.audit.good import small_run
from numpy.typing import NDArray
from series_factory import LEVEL, white

from daq_bench.bench_model.behaviour.dip_documents import Scenery
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.events import Event

BEGIN_S = 1_800_000_000.0
DRIVE = "nvme0n1"
LOG_PERIOD_S = 10.0
Samples = NDArray[np.float64]


def track(at: Callable[[float], float], count: int, period_s: float = 1.0) -> Track:
    """Samples of a function of the time since the load's begin."""
    times = np.arange(0.0, count, period_s)
    return Track(BEGIN_S + times, np.array([float(at(time)) for time in times]))


def drive(count: int, hot: tuple[float, float] | None = None, **signals: bool) -> dict[tuple[str, str, str], Track]:
    """A quiet drive with its limits; while `hot` (from, to) it shows the `signals` named: temperature, warning, counter."""

    def during(time: float) -> bool:
        return hot is not None and hot[0] <= time < hot[1]

    def since(time: float) -> float:
        return max(0.0, min(time, hot[1]) - hot[0]) if hot is not None else 0.0

    return {
        ("temperature", DRIVE, "temperature_degc"): track(
            lambda time: 78 if during(time) and signals.get("temperature") else 55, count
        ),
        ("temperature", DRIVE, "warning_degc"): track(lambda _: 75, count),
        ("temperature", DRIVE, "critical_degc"): track(lambda _: 85, count),
        ("smart", DRIVE, "critical_warning"): track(
            lambda time: 2 if during(time) and signals.get("warning") else 0, count, LOG_PERIOD_S
        ),
        ("smart", DRIVE, "media_errors"): track(lambda _: 3, count, LOG_PERIOD_S),
        ("smart", DRIVE, "thermal_management_1_time_s"): track(
            lambda time: 100 + (since(time) if signals.get("counter") else 0), count, LOG_PERIOD_S
        ),
    }


def surroundings(count: int) -> dict[tuple[str, str, str], Track]:
    """All other telemetry in which a cause could show, undisturbed."""
    return {
        ("pcie_link", DRIVE, "bandwidth_bytes_per_s"): track(lambda _: 7.877e9, count, 5.0),
        ("cpu_frequency", "0", "frequency_hz"): track(lambda _: 3.3e9, count),
        ("cpu", "0", "irq_fraction"): track(lambda _: 0.02, count),
        ("cpu", "0", "softirq_fraction"): track(lambda _: 0.05, count),
        ("cpu", "total", "steal_fraction"): track(lambda _: 0.0, count),
        ("pressure", "cpu", "stalled_fraction"): track(lambda _: 0.01, count),
        ("pressure", "memory", "stalled_fraction"): track(lambda _: 0.0, count),
        ("block_device", DRIVE, "read_bytes_per_s"): track(lambda _: 0.0, count),
        ("block_device", "sda", "written_bytes_per_s"): track(lambda _: 1e6, count),
    }


def scenery(
    rates: Samples | None = None,
    tracks: dict[tuple[str, str, str], Track] | None = None,
    events: list[Event] | None = None,
) -> Scenery:
    """One sustained load of a drive, with the telemetry around it."""
    series = white(np.random.default_rng(1), 600) if rates is None else rates
    count = len(series)
    of_run = small_run.drive(DRIVE)
    run = small_run.some_run(
        target=small_run.target(of_run, device=of_run), candidate=small_run.candidate(transient_buffer_bytes=10**10)
    )
    window = Window("thermal", "soak", BEGIN_S, BEGIN_S + count, f"block_device {DRIVE} written_bytes", tuple(series))
    whole = {**drive(count), **surroundings(count), **(tracks or {})}
    return Scenery(run, Tracks(whole), [window], events or [])


def hazard(at_s: float, text: str, **data: Any) -> Event:
    return Event(datetime.fromtimestamp(BEGIN_S + at_s, UTC).isoformat(), "hazard", "test", text, data)


__all__ = ["BEGIN_S", "DRIVE", "LEVEL", "drive", "hazard", "scenery", "surroundings", "track"]
