"""The history in InfluxDB: verdicts of runs, and what an outage kept from it. The bundles stay the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from influxdb_client import InfluxDBClient, Point  # type: ignore[attr-defined]
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
from urllib3.exceptions import HTTPError

from bench_model.telemetry_files import CURSOR_FILE, POINTS_FILE, spool_folders
from rig.agent import replay
from rig.bundle import Bundle
from rig.influx_server import DATABASE

TIMEOUT_MS = 5000
DELIVERED = "verdict-delivered"  # file in telemetry/, outside of the sealed evidence


def server_version(influx_url: str) -> str | None:
    """Version of the server at `influx_url`; None when it does not answer."""
    try:
        with InfluxDBClient(url=influx_url, token="", org="", timeout=TIMEOUT_MS) as client:
            version: str = client.version()
            return version
    except (ApiException, HTTPError, OSError):
        return None


def verdict_points(bundle: Bundle) -> list[Point]:
    """The run's verdict and each requirement's as points `bench_verdict`, timed at the end of the run."""
    verdict = bundle.read("verdict.json")
    if verdict is None:
        return []
    finished = datetime.fromisoformat(bundle.run["finished_utc"])
    tags = {"host": bundle.run["candidate"]["name"], "run": bundle.id, "scenario": bundle.run["scenario"]["id"]}
    points = [_point(tags, "overall", finished).field("outcome", verdict["outcome"])]
    for requirement in verdict["requirements"]:
        point = _point(tags, requirement["id"], finished).field("outcome", requirement["outcome"])
        for name in ("measured", "margin_percent"):
            if requirement[name] is not None:
                point.field(name, float(requirement[name]))
        points.append(point)
    return points


def _point(tags: dict[str, str], requirement: str, moment: datetime) -> Point:
    point: Point = Point("bench_verdict").time(moment).tag("requirement", requirement)
    for key, value in tags.items():
        point.tag(key, value)
    return point


def publish_verdict(path: Path, influx_url: str) -> bool:
    """Writes the verdict's points; False when InfluxDB did not take them. Writing them again changes nothing."""
    bundle = Bundle.open(path)
    try:
        with InfluxDBClient(url=influx_url, token="", org="", timeout=TIMEOUT_MS) as client:
            client.write_api(write_options=SYNCHRONOUS).write(bucket=DATABASE, record=verdict_points(bundle))
    except (ApiException, HTTPError, OSError):
        return False
    (path / "telemetry" / DELIVERED).touch()
    return True


def undelivered(path: Path) -> bool:
    """Does the finished run in `path` hold telemetry or a verdict that InfluxDB has not got?"""
    folders = spool_folders(path)
    if not folders or not (path / "verdict.json").exists():
        return False
    return any(map(_is_behind, folders)) or not (path / "telemetry" / DELIVERED).exists()


def _is_behind(folder: Path) -> bool:
    cursor = folder / CURSOR_FILE
    done = json.loads(cursor.read_text(encoding="utf-8"))["delivered_bytes_offset"] if cursor.exists() else 0
    return bool(done < (folder / POINTS_FILE).stat().st_size)


def replay_run(agent: Path, path: Path, influx_url: str) -> bool:
    """Delivers all that InfluxDB has not got of one run; False when something is still missing."""
    replayed = [replay(agent, folder, influx_url).returncode == 0 for folder in spool_folders(path)]
    return all(replayed) and publish_verdict(path, influx_url)


def replay_earlier(agent: Path, runs: Path, influx_url: str) -> Iterator[str]:
    """Delivers what outages kept back, run by run; yields the id of each run that is now complete."""
    for file in sorted(runs.glob("*/run.json")):
        if not file.parent.is_symlink() and undelivered(file.parent):
            if not replay_run(agent, file.parent, influx_url):
                return
            yield file.parent.name
