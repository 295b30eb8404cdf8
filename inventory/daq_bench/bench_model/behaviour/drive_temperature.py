"""Tells how near the target drive came to its own warning and critical temperatures, from the telemetry in the bundle.

The limits are the drive's (NVMe Identify Controller, WCTEMP and CCTEMP, as the kernel's hwmon gives them, else as the drive's own health
log does), never numbers of ours. They are about the composite temperature; the hottest of a drive's sensors is shown beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.derived import DriveTemperature, HottestSensor
from daq_bench.bench_model.documents.run import Run
from daq_bench.candidate_kit import plausible

KERNELS, DRIVES_OWN, HEALTH = "temperature", "smart_temperature", "smart"
MINUTES = "warning_temperature_time_min"  # of the health log: what the drive counted itself
LIMITS = ("warning_degc", "critical_degc")
READINGS = ("temperature_degc", *LIMITS)
METRIC = "snb_record.drive_temperature_headroom"
CRITICAL_METRIC = "snb_record.drive_critical_temperature_headroom"


def of_bundle(bundle: Path, run: Run) -> DriveTemperature:
    """results/drive_temperature.json for the drives of the run's target."""
    points = points_of_bundle(bundle, {KERNELS, DRIVES_OWN, HEALTH}, (*READINGS, MINUTES))
    return from_points(points, run.target.names)


def from_points(points: Iterable[Point], drives: list[str]) -> DriveTemperature:
    """The document over the target's drives, given by kernel name.

    `headroom_degC` is null, and `reasons` says why, when it cannot be known."""
    of_target = [point for point in points if point.tags.get("device") in drives]
    counted = _minutes_above(of_target)
    every = [one for one in of_target if one.measurement != HEALTH and "temperature_degc" in one.fields]
    stated = [one for one in map(_with_limits, every) if _is_reading(one)]
    of_drives = _best_watched(stated)
    hottest = max(_finite(stated), key=lambda point: float(point.fields["temperature_degc"]), default=None)
    unreadable = _unreadable(stated)
    warning, critical = (
        [] if unreadable else _samples(of_drives, f"{limit}_degc", drives) for limit in ("warning", "critical")
    )
    headroom = min((limit - degrees for degrees, limit in warning), default=None)
    if (
        counted and headroom is not None and headroom > 0
    ):  # no sensor saw it: it lies, or hides what happens between its readings
        unreadable, warning, critical = counted, [], []
    missing = {METRIC: (warning, "warning"), CRITICAL_METRIC: (critical, "critical")}
    return DriveTemperature(
        schema_version=1,
        device=", ".join(drives) or None,
        samples=len(warning),
        max_degC=max((degrees for degrees, _ in warning), default=None),
        hottest_sensor=_sensor(hottest) if hottest else None,
        warning_degC=min((limit for _, limit in warning), default=None),
        headroom_degC=min((limit - degrees for degrees, limit in warning), default=None),
        critical_degC=min((limit for _, limit in critical), default=None),
        critical_headroom_degC=min((limit - degrees for degrees, limit in critical), default=None),
        reasons={
            metric: unreadable or _reason(drives, name) for metric, (samples, name) in missing.items() if not samples
        },
    )


def _with_limits(point: Point) -> Point:
    """Without an invalid limit, as older agents wrote it: 0, or below."""
    none = [name for name in LIMITS if name in point.fields and _no_limit(float(point.fields[name]))]
    if not none:
        return point
    fields = {name: value for name, value in point.fields.items() if name not in none}
    return Point(point.measurement, point.tags, fields, point.time_ns)


def _no_limit(value: float) -> bool:
    return math.isfinite(value) and not plausible.is_limit(value)


def _is_reading(point: Point) -> bool:
    """True for a plausible reading, not for 0, 273 K and the like; true also for no number, which is reported."""
    value = float(point.fields["temperature_degc"])
    return not math.isfinite(value) or plausible.is_running_degrees(value)


def _sensor(point: Point) -> HottestSensor:
    label = point.tags.get("label") or point.tags.get("sensor")
    return HottestSensor(point.tags["device"], label, float(point.fields["temperature_degc"]))


def _best_watched(points: list[Point]) -> list[Point]:
    """Returns, for each drive, the kernel's readings (every second) where they come with limits; else those of its health log."""
    limited = {point.tags["device"] for point in points if point.measurement == KERNELS and _limits(point)}
    return [point for point in points if (point.measurement == KERNELS) == (point.tags["device"] in limited)]


def _finite(points: Iterable[Point]) -> list[Point]:
    return [point for point in points if math.isfinite(float(point.fields["temperature_degc"]))]


def _unreadable(points: Iterable[Point]) -> str:
    """Says which reading is no number: it might be the highest, or the lowest limit. Empty where each is one."""
    for point in points:
        for name in READINGS:
            if name in point.fields and not math.isfinite(float(point.fields[name])):
                return f"{point.measurement}: {name} of drive {point.tags['device']} is {point.fields[name]} at {point.time_ns} ns"
    return ""


def _minutes_above(points: Iterable[Point]) -> str:
    """Says which drive counted minutes above its own warning temperature during the run; empty where none did."""
    first: dict[str, float] = {}
    for point in points:
        if point.measurement == HEALTH and MINUTES in point.fields:
            name, minutes = point.tags["device"], float(point.fields[MINUTES])
            if minutes > first.setdefault(name, minutes):
                return (
                    f"drive {name} counted {in_digits(minutes - first[name], 15)} minutes above its warning temperature during the run, "
                    "and its sensor shows none: it cannot be believed"
                )
    return ""


def _limits(point: Point) -> bool:
    return not set(LIMITS).isdisjoint(point.fields)


def _samples(points: Iterable[Point], limit: str, drives: list[str]) -> list[tuple[float, float]]:
    """(temperature, the drive's limit at that moment) of each reading that has both; none where a drive of the target has no such
    reading, since that one might be the warmest."""
    having = [point for point in points if {"temperature_degc", limit} <= point.fields.keys()]
    if {point.tags["device"] for point in having} != set(drives):
        return []
    return [(float(point.fields["temperature_degc"]), float(point.fields[limit])) for point in having]


def _reason(drives: list[str], limit: str) -> str:
    if not drives:
        return f"the target, which no drive carries, reports no temperature together with its {limit} limit"
    if len(drives) > 1:
        return f"one or more of the drives {', '.join(drives)} report no temperature together with their {limit} limit"
    return f"the drive {drives[0]} reports no temperature together with its {limit} limit"
