"""How near the target drive came to its own warning temperature, from the telemetry in the bundle.

The limit is the drive's (NVMe Identify Controller, WCTEMP, as the kernel's hwmon gives it), never a number of ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench_model.line_protocol import Point, points_of

MEASUREMENT = "temperature"
METRIC = "snb_record.drive_temperature_headroom"


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
    device = ", ".join(drives) or None
    samples = [
        (float(point.fields["temperature_degc"]), float(point.fields["warning_degc"]))
        for point in points
        if point.tags.get("device") in drives and {"temperature_degc", "warning_degc"} <= point.fields.keys()
    ]
    if not samples:
        return {
            "schema_version": 1,
            "device": device,
            "samples": 0,
            "max_degC": None,
            "warning_degC": None,
            "headroom_degC": None,
            "reasons": {METRIC: _reason(drives)},
        }
    return {
        "schema_version": 1,
        "device": device,
        "samples": len(samples),
        "max_degC": max(degrees for degrees, _ in samples),
        "warning_degC": min(warning for _, warning in samples),
        "headroom_degC": min(warning - degrees for degrees, warning in samples),
        "reasons": {},
    }


def _reason(drives: list[str]) -> str:
    if not drives:
        return "the target, which no drive carries, reports no temperature together with its warning limit"
    many = len(drives) > 1
    which = f"drives {', '.join(drives)} report" if many else f"drive {drives[0]} reports"
    return f"the {which} no temperature together with {'their' if many else 'its'} warning limit"
