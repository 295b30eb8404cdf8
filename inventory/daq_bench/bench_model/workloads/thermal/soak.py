"""results/thermal_soak.json: what a thermal soak says of a drive and its cooling. A pure function of the bundle.

Onset, depth and recovery of throttling; the temperature at equilibrium; what the required record would have lost at the rates that
the target was seen to take; and, for each commanded fan speed, where temperature and throughput settled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour import equilibrium, throttling
from daq_bench.bench_model.behaviour.dip_documents import Scenery
from daq_bench.bench_model.behaviour.load_windows import Window
from daq_bench.bench_model.behaviour.service_curve import Loss, constant_rate_loss, worst_record
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.telemetry_tracks import Track
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.workloads.thermal.document import (
    FanLoad,
    FanPoint,
    Heat,
    Lost,
    Onset,
    RecordInSoak,
    Recovery,
    Rule,
    SoakedRates,
    Thermal,
    ThermalSoak,
)

FILE = "results/thermal.json"
SOAK, PROBE = "soak", "after cooling"
METRICS = (
    "thermal.throughput",
    "thermal.onsets_in_record",
    "thermal.equilibrium_temperature",
    "thermal.temperature_headroom",
    "thermal.record_lost_bytes",
    "thermal.record_buffer_needed",
)


def of_bundle(bundle: Path, run: Run) -> ThermalSoak | None:
    """None for a run without a thermal soak."""
    found = find_document(bundle, FILE)
    return document(read(found, Thermal, FILE), Scenery.of_bundle(bundle, run)) if found is not None else None


def document(thermal: Thermal, scenery: Scenery) -> ThermalSoak:
    """The document from results/thermal.json and the run's telemetry."""
    windows = {window.name: window for window in scenery.windows if window.workload == "thermal"}
    soak = windows.get(SOAK)
    if soak is None:
        reason = "the telemetry holds no counter of bytes written for the target's device during the soak"
        return _made(thermal, reasons=dict.fromkeys(METRICS, reason))
    onset = _onset(scenery, soak)
    heat = {drive: _heat(scenery, drive, soak, thermal.rule) for drive in scenery.drives}
    made = _made(
        thermal,
        soak=SoakedRates(soak.length_s, float(np.mean(soak.rates)), list(soak.rates), soak.step_s),
        throttled=_throttled(scenery, soak),
        onset=onset,
        drives_word=scenery.signals(soak),
        drives=heat,
        recovery=_recovery(thermal, scenery, windows, onset),
        record=_record(thermal, scenery, soak, onset),
        fan_sweep=[
            _fan_point(scenery, windows[point.name], point, thermal.rule)
            for point in thermal.fan_sweep.points
            if point.name in windows
        ],
        onsets_in_record=_onsets_in_record(thermal, scenery, soak, onset),
        equilibrium_degC=_worst([one.equilibrium_degC for one in heat.values()], max),
        equilibrium_interval_degC=_warmest(heat.values()),
        headroom_degC=_worst([one.headroom_degC for one in heat.values()], min),
    )
    return replace(made, reasons=_reasons(thermal, scenery, soak, made))


def _made(thermal: Thermal, **found: Any) -> ThermalSoak:
    """The document with what was found; the rest of it is empty."""
    known = {"schema_version": 1, "stopped_by": thermal.soak.stopped_by}
    empty: dict[str, object] = {"drives_word": [], "drives": {}, "fan_sweep": [], "reasons": {}}
    return ThermalSoak(**{**dict.fromkeys(ThermalSoak.__struct_fields__), **known, **empty, **found})


def _worst(values: Sequence[float | None], choose: Callable[[Sequence[float]], float]) -> float | None:
    """Returns the worst value of all drives; None as soon as one of them has none: that one might be the worst."""
    known = [one for one in values if one is not None]
    return float(choose(known)) if known and len(known) == len(values) else None


def _warmest(heat: Iterable[Heat]) -> list[float] | None:
    """The interval of the warmest drive's asymptote: each end is the highest of the drives' ends, since all of them hold together."""
    intervals = [one.equilibrium_interval_degC for one in heat]
    known = [one for one in intervals if one is not None]
    return [max(ends) for ends in zip(*known, strict=True)] if known and len(known) == len(intervals) else None


def _onset(scenery: Scenery, soak: Window) -> Onset | None:
    """The first dip that is throttling."""
    for dip, verdict in scenery.throttled_dips(soak, scenery.analysis(soak)):
        levels = (dip.level_bytes_per_s, dip.reference_bytes_per_s, dip.depth_fraction)
        return Onset(dip.start_s, *levels, dip.ended, verdict.confidence)
    return None


def _throttled(scenery: Scenery, window: Window) -> bool | None:
    """By the rate with a drive's word, or by its word alone; None where there is neither and not every drive answers."""
    if _onset(scenery, window) is not None or scenery.signals(window):
        return True
    return None if not scenery.drives or scenery.unanswered(window.start_s, window.end_s) else False


def _heat(scenery: Scenery, drive: str, window: Window, rule: Rule) -> Heat:
    """Temperatures of one drive under one load, against its own limits."""
    track, warning, critical = (
        scenery.tracks.get(scenery.tracks.thermometer(drive), drive, name)
        for name in ("temperature_degc", "warning_degc", "critical_degc")
    )
    end = window.end_s
    level = equilibrium.level_at(track, end, rule.window_s, window.start_s) if track else None
    confidence = 1 - (1 - equilibrium.CONFIDENCE) / len(scenery.drives)  # all drives' intervals hold together
    heading = equilibrium.asymptote(track, window.start_s, end, confidence) if track else None
    hottest = _hottest(track, window) if track else None
    limit = _least(warning)
    return Heat(
        max_degC=hottest,
        warning_degC=limit,
        critical_degC=_least(critical),
        headroom_degC=limit - hottest if limit is not None and hottest is not None else None,
        slope_k_per_min=level.slope_k_per_min if level else None,
        equilibrium_degC=heading.degc if heading else None,
        equilibrium_interval_degC=list(heading.interval) if heading and heading.interval else None,
        equilibrium_more_s=heading.more_s if heading else None,
        equilibrium_reason=(heading.reason or None) if heading else f"no temperature of {drive}",
    )


def _hottest(track: Track, window: Window) -> float | None:
    """None, too, where a reading is no number: that one might be the highest."""
    values = track.between(window.start_s, window.end_s)
    return float(values.max()) if len(values) and np.isfinite(values).all() else None


def _least(limit: Track | None) -> float | None:
    return float(limit.values.min()) if limit and np.isfinite(limit.values).all() else None


def _onsets_in_record(thermal: Thermal, scenery: Scenery, soak: Window, onset: Onset | None) -> int | None:
    """1 where throttling began within the record's length; 0 where every drive answers for that time, and it did not."""
    record_s = thermal.record.duration_s
    onsets = [signal.since_utc_s - soak.start_s for signal in scenery.signals(soak) if signal.since_utc_s is not None]
    onsets += [onset.at_s] if onset else []
    if any(at < record_s for at in onsets):
        return 1
    return None if _no_word_on_record(thermal, scenery, soak) else 0


def _no_word_on_record(thermal: Thermal, scenery: Scenery, soak: Window) -> str:
    """Why nobody knows whether a drive throttled within the record's length; empty where each says that it did not."""
    record_s = thermal.record.duration_s
    if not scenery.drives:
        return "the run names no drive beneath the target"
    silent = scenery.unanswered(soak.start_s, soak.start_s + min(record_s, soak.length_s))
    if silent:
        return f"whether a drive throttled cannot be told: {'; '.join(silent)}"
    if soak.length_s < record_s:
        return f"the soak lasted {soak.length_s:.0f} s, which says nothing of a record of {in_digits(record_s, 9)} s"
    late = throttling.unlocated(scenery.tracks, scenery.drives, scenery.facts)
    return f"at a time that nobody knows a drive counted {'; '.join(late)}" if late else ""


def _record(thermal: Thermal, scenery: Scenery, soak: Window, onset: Onset | None) -> RecordInSoak:
    """The required record against what the target took: throughout at the throttled rate, and the worst stretch of the soak."""
    need, duration = thermal.record.demand_bytes_per_s, thermal.record.duration_s
    buffer = float(scenery.run.candidate.transient_buffer_bytes)
    cap = thermal.load.rate_limit_bytes_per_s
    # A load held below the demand shows what was offered, and not what the target could have taken.
    capped = cap is not None and cap < need
    worst = None if capped else worst_record(soak.rates, soak.step_s, need, duration, buffer)
    throttled = constant_rate_loss(onset.throttled_bytes_per_s, need, duration, buffer) if onset else None
    losses = [loss for loss in (worst, throttled) if loss is not None]
    known = worst is not None or throttled is not None
    return RecordInSoak(
        demand_bytes_per_s=need,
        duration_s=duration,
        buffer_bytes=buffer,
        at_throttled_rate=_lost(throttled),
        worst_in_soak=_lost(worst),
        lost_bytes=max(loss.lost_bytes for loss in losses) if known else None,
        buffer_needed_bytes=max(loss.backlog_bytes for loss in losses) if known else None,
        onset_before_end=onset is not None and onset.at_s < duration,
    )


def _lost(loss: Loss | None) -> Lost | None:
    return None if loss is None else Lost(**vars(loss))


def _recovery(thermal: Thermal, scenery: Scenery, windows: dict[str, Window], onset: Onset | None) -> Recovery | None:
    """After the load had stopped: how long the drives stayed warm, and what they took afterwards."""
    cooling, probe = thermal.cool_down, windows.get(PROBE)
    if cooling is None:
        return None
    start, end = cooling.start_utc_s, cooling.end_utc_s
    cooled = [
        _cooled_s(scenery.tracks.get(scenery.tracks.thermometer(drive), drive, "temperature_degc"), start, end)
        for drive in scenery.drives
    ]
    rate = float(np.mean(probe.rates)) if probe else None
    fell_k = max((fell for fell, _ in filter(None, cooled)), default=None)
    return Recovery(
        end - start, fell_k, rate, rate / onset.reference_bytes_per_s if rate is not None and onset else None
    )


def _cooled_s(track: Track | None, start_s: float, end_s: float) -> tuple[float, float] | None:
    """(K that a drive lost, s) between two times."""
    if track is None:
        return None
    values = track.between(start_s, end_s)
    return (float(values[0] - values[-1]), end_s - start_s) if len(values) > 1 else None


def _fan_point(scenery: Scenery, window: Window, point: FanLoad, rule: Rule) -> FanPoint:
    last = window.end_s - rule.window_s
    speeds = {
        sensor: track.mean(last, window.end_s)
        for sensor, track in scenery.tracks.of("ipmi_sensor", "speed_rpm").items()
    }
    settled_rates = window.rates[-max(1, round(rule.window_s / window.step_s)) :]
    return FanPoint(
        name=point.name,
        duty_percent=point.duty_percent,
        stopped_by=point.stopped_by,
        duration_s=window.length_s,
        throughput_bytes_per_s=float(np.mean(settled_rates)),
        throttled=_onset(scenery, window) is not None or bool(scenery.signals(window)),
        fan_speeds_rpm={sensor: speed for sensor, speed in sorted(speeds.items()) if speed is not None},
        drives={drive: _heat(scenery, drive, window, rule) for drive in scenery.drives},
    )


def _reasons(thermal: Thermal, scenery: Scenery, soak: Window, made: ThermalSoak) -> dict[str, str]:
    reasons = {}
    if made.onsets_in_record is None:
        reasons["thermal.onsets_in_record"] = _no_word_on_record(thermal, scenery, soak)
    blind = [drive for drive, one in made.drives.items() if one.max_degC is None]
    if made.headroom_degC is None:
        reasons["thermal.temperature_headroom"] = (
            f"no temperature of {', '.join(blind)}"
            if blind
            else "not every drive of the target states its warning temperature"
        )
    if made.equilibrium_degC is None:
        reasons["thermal.equilibrium_temperature"] = (
            f"no temperature of {', '.join(blind)}"
            if blind
            else "; ".join(
                f"{name}: {one.equilibrium_reason}" for name, one in made.drives.items() if one.equilibrium_reason
            )
        )
    if not made.drives:
        for metric in ("thermal.temperature_headroom", "thermal.equilibrium_temperature"):
            reasons[metric] = "the run names no drive beneath the target"
    if made.record is not None and made.record.lost_bytes is None:
        text = (
            "the load was held below the record's demand and never throttled, so that it does not show what the target can take"
            if thermal.load.rate_limit_bytes_per_s
            else f"the soak was shorter than the record of {in_digits(thermal.record.duration_s, 9)} s"
        )
        reasons |= dict.fromkeys(("thermal.record_lost_bytes", "thermal.record_buffer_needed"), text)
    return reasons
