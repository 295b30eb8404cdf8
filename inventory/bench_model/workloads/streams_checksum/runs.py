"""One run of the storage application (`daqwriter streams`): what it is worth as a measurement, and why it is not. Pure.

A run is evidence only for the load that was asked for: the busiest stream must have had its share, the source must not have been the
limit, and the run must have lasted."""

from __future__ import annotations

import math
from typing import Any

from bench_model.bundle.evidence import Document

RUN_SHARE_MIN = 0.97  # [P] of the time asked for, where the time was to end the run
SHORT_RUN_SHARE_MIN = 0.25  # [P] of it, where the amount of data ended the run
SHARE_TOLERANCE = 0.02  # [P] beyond what chance does to so many events
SHARE_DEVIATIONS = 4.0
SOURCE_HELD_MIN = 0.02  # [P] a source that full queues held back for less of its time was itself the limit
KEPT_MIN = 0.999  # [P] share of a pace that was kept


def unpaced(document: Document, seconds: float) -> dict[str, Any]:
    """A run as fast as the application goes: its rate, the final flush included, and `reason` where it does not count."""
    time, source = document["time"], document["source"]
    return {
        "bytes_per_s": document["bytes_per_s_with_flush"],
        "written_bytes": document["totals"]["written_bytes"],
        "emission_s": time["emission_s"],
        "held_share": source["held_share"],
        "busiest_share": busiest(document)["achieved_share"],
        "fallback_share": _share(document["totals"]["fallback_events"], document["totals"]["written_events"]),
        "cpu_seconds_per_gb": document["cpu"]["seconds_per_gb"],
        "failed": document["status"] == "failed",
        "reason": _why_ended(document, seconds) or _wrong_shares(document) or _source_bound(document),
    }


def paced(document: Document, seconds: float) -> dict[str, Any]:
    """A run at a pace. `kept`: share of what was due that the application took; null when the source itself was late."""
    source, totals = document["source"], document["totals"]
    achieved = source["achieved_fraction"]
    reason = _why_ended(document, seconds) if document["status"] != "failed" else None
    reason = reason or _wrong_shares(document)
    if reason is None and achieved < KEPT_MIN and source["held_s"] == 0:
        reason = f"the source offered only {achieved:.2%} of what was due, and no full queue held it back"
    return {
        "due_bytes": source["due_bytes"],
        "offered_bytes": totals["offered_bytes"],
        "written_bytes": totals["written_bytes"],
        "achieved_fraction": achieved,
        "kept": None if reason else _share(totals["written_bytes"], source["due_bytes"]),
        "held_s": source["held_s"],
        "backlog_high_bytes": max(document["series"]["backlog_bytes"], default=0),
        "abandoned_events": sum(stream["abandoned_events"] for stream in document["streams"]),
        "latency_us_p99": document["latency_us"]["p99"],
        "cpu_seconds_per_gb": document["cpu"]["seconds_per_gb"],
        "streams": [
            {
                "share": stream["share"],
                "achieved_share": stream["achieved_share"],
                "written_bytes": stream["written_bytes"],
                "files": stream["closed_files"],
                "cpu_s": stream["user_s"] + stream["system_s"],
                "checksum_and_copy_s": stream["checksum_and_copy_s"],
                "queue_high_water": stream["queue_high_water"],
                "held_s": stream["held_s"],
            }
            for stream in document["streams"]
        ],
        "elapsed_s": document["time"]["write_s"],
        "failed": document["status"] == "failed",
        "error": document["error"],
        "reason": reason,
    }


def busiest(document: Document) -> dict[str, Any]:
    """The stream that was to have the most."""
    found: dict[str, Any] = max(document["streams"], key=lambda stream: float(stream["share"]))
    return found


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _why_ended(document: Document, seconds: float) -> str | None:
    if document["status"] != "complete":
        return f"the run ended as {document['status']}: {document['error'] or 'no reason given'}"
    emission_s = document["time"]["emission_s"]
    least = {"duration": RUN_SHARE_MIN, "bytes": SHORT_RUN_SHARE_MIN}.get(document["ended_by"])
    if least is None:
        return f"the run was ended by {document['ended_by']}"
    if emission_s < least * seconds:
        by = ", since run_size was reached" if document["ended_by"] == "bytes" else ""
        return f"the run lasted {emission_s:.2f} s of {seconds:g} s{by}"
    return None


def _wrong_shares(document: Document) -> str | None:
    """The load is the unbalanced one only if the busiest stream had its share, give or take chance."""
    stream, events = busiest(document), document["totals"]["written_events"]
    if not events:
        return "no event was written"
    share, achieved = stream["share"], stream["achieved_share"]
    spread = document["parameters"]["event_spread"]
    # Bytes scatter more than events: their sizes do too (uniform, so by spread / sqrt 3 of the mean).
    deviation = math.sqrt(share * (1 - share) / events * (1 + spread**2 / 3))
    if abs(achieved - share) > SHARE_TOLERANCE + SHARE_DEVIATIONS * deviation:
        return f"the busiest stream had {achieved:.1%} of the bytes instead of {share:.1%}"
    return None


def _source_bound(document: Document) -> str | None:
    held = document["source"]["held_share"]
    if held < SOURCE_HELD_MIN:
        return f"the emulated source was the limit: full queues held it back for only {held:.1%} of the time"
    return None
