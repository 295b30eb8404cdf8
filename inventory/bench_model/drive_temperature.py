"""How near the target drive came to its own warning and critical temperatures, from the telemetry in the bundle.

The limits are the drive's (NVMe Identify Controller, WCTEMP and CCTEMP, as the kernel's hwmon gives them), never numbers of ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench_model.line_protocol import Point, points_of

MEASUREMENT = "temperature"
METRIC = "snb_record.drive_temperature_headroom"
CRITICAL_METRIC = "snb_record.drive_critical_temperature_headroom"


def of_bundle(bundle: Path, run: dict[str, Any]) -> dict[str, Any]:
    """results/drive_temperature.json for the drives of the run's target."""
    names = [drive["name"] for drive in run["target"]["drives"]]
    return document(bundle / "telemetry" / "points.lp", names)


def document(points_file: Path, drives: list[str]) -> dict[str, Any]:
    """results/drive_temperature.json over the target's drives, given by kernel name.

    `headroom_degC` is null, and `reasons` says why, when it cannot be known."""
    points = points_of(points_file, {MEASUREMENT}) if points_file.exists() else []
    return from_points(points, drives)


def from_points(points: Iterable[Point], drives: list[str]) -> dict[str, Any]:
    of_drives = [point for point in points if point.tags.get("device") in drives]
    warning, critical = (_samples(of_drives, limit) for limit in ("warning_degc", "critical_degc"))
    missing = {METRIC: (warning, "warning"), CRITICAL_METRIC: (critical, "critical")}
    return {
        "schema_version": 1,
        "device": ", ".join(drives) or None,
        "samples": len(warning),
        "max_degC": max((degrees for degrees, _ in warning), default=None),
        "warning_degC": min((limit for _, limit in warning), default=None),
        "headroom_degC": min((limit - degrees for degrees, limit in warning), default=None),
        "critical_degC": min((limit for _, limit in critical), default=None),
        "critical_headroom_degC": min((limit - degrees for degrees, limit in critical), default=None),
        "reasons": {metric: _reason(drives, name) for metric, (samples, name) in missing.items() if not samples},
    }


def _samples(points: Iterable[Point], limit: str) -> list[tuple[float, float]]:
    """(temperature, the drive's limit at that moment) of each reading that has both."""
    return [
        (float(point.fields["temperature_degc"]), float(point.fields[limit]))
        for point in points
        if {"temperature_degc", limit} <= point.fields.keys()
    ]


def _reason(drives: list[str], limit: str) -> str:
    if not drives:
        return f"the target, which no drive carries, reports no temperature together with its {limit} limit"
    many = len(drives) > 1
    which = f"drives {', '.join(drives)} report" if many else f"drive {drives[0]} reports"
    return f"the {which} no temperature together with {'their' if many else 'its'} {limit} limit"
