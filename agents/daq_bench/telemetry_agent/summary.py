"""`summary.json`: the accounting of a run; `replay.json`: that of a later replay, which leaves the run's own alone.

Promise: collected == spooled + thinned + unspooled, spooled == delivered + rejected + undelivered; thinned is 0 unless the
spool reached its limits, and unspooled is 0 unless its disk failed or stayed full. `thinned_delivered` of the
thinned are in InfluxDB all the same. A run that was killed leaves state "running"; its replay says "interrupted".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daq_bench.telemetry_agent.delivery.delivery import Delivery
from daq_bench.telemetry_agent.spool.tally import Ledger

Counts = Mapping[str, Mapping[str, int]]
SUMMARY_FILE, REPLAY_FILE = "summary.json", "replay.json"
RUNNING, FINISHED, INTERRUPTED = "running", "finished", "interrupted"


def point_counts(
    collected: int, spooled: int, delivered: int, rejected: int, thinned: int = 0, thinned_delivered: int = 0
) -> dict[str, int]:
    """The `points` section."""
    return {
        "collected": collected,
        "spooled": spooled,
        "thinned": thinned,
        "thinned_delivered": thinned_delivered,
        "unspooled": collected - spooled - thinned,
        "delivered": delivered,
        "rejected": rejected,
        "undelivered": spooled - delivered - rejected,
    }


def influx_section(url: str | None, database: str | None, delivery: Delivery | None) -> dict[str, Any]:
    """The `influx` section; without delivery everything stays in the spool."""
    section: dict[str, Any] = {"enabled": delivery is not None, "url": url, "database": database}
    nothing: list[dict[str, str]] = []
    section.update(
        delivery.outages.summary()
        if delivery
        else {"reachable_at_end": False, "last_error": None, "outage_count": 0, "outages": nothing}
    )
    return section


def load_summary(directory: Path, name: str = SUMMARY_FILE) -> dict[str, Any] | None:
    """The summary in a spool directory, or None when there is none; ValueError when it is no summary."""
    path = directory / name
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if not isinstance(document, dict):
        raise ValueError(f"{path}: not a summary")
    return document


def after_replay(
    old: dict[str, Any] | None, ledger: Ledger, delivery: Delivery, url: str, database: str
) -> dict[str, Any]:
    """`old` with the counts and influx section of a replay; the run's outages stay before the new ones."""
    new: dict[str, Any] = dict(
        old or {"schema_version": 1, "started_utc": None, "finished_utc": None, "collectors": []}
    )
    if old is None or old.get("state") == RUNNING:
        new["state"] = INTERRUPTED
    measurements = ledger.measurements()
    if new["state"] == FINISHED and old is not None:
        measurements = _as_the_run_knew(measurements, old.get("measurements", {}))
    # A killed agent's last count may lag behind what reached the file: the file decides.
    found = {key: sum(entry[key] for entry in measurements.values()) for key in ledger.totals()}
    if new["state"] == FINISHED and old is not None:
        found["collected"] = max(found["collected"], old["points"]["collected"])
    cursor = delivery.cursor
    new["points"] = point_counts(
        found["collected"], found["spooled"], cursor.delivered_points, cursor.rejected_points,
        found["thinned"], found["thinned_delivered"],
    )  # fmt: skip
    new["measurements"] = measurements
    influx = influx_section(url, database, delivery)
    earlier = old["influx"] if old else {"outage_count": 0, "outages": []}
    influx["outages"] = earlier["outages"] + influx["outages"]
    influx["outage_count"] += earlier["outage_count"]
    new["influx"] = influx
    new["replayed"] = True
    return new


def _as_the_run_knew(found: Counts, known: Counts) -> dict[str, dict[str, int]]:
    """Adds the points that the run made but could neither store nor name in the file: only its own summary counts them."""
    merged = {name: dict(entry) for name, entry in found.items()}
    for name, entry in known.items():
        mine = merged.setdefault(name, dict.fromkeys(entry, 0))
        for key in ("collected", "thinned"):
            mine[key] = max(mine[key], entry[key])
    return merged
