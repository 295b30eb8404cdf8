"""One run of the storage application (`daqwriter streams`): what it is worth as a measurement, and why it is not. Pure.

A run is evidence only for the load that was asked for: the busiest stream must have had its share, the source must not have been the
limit, and the run must have lasted."""

from __future__ import annotations

import math
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.tools.streams import Stream, Streams

RUN_SHARE_MIN = 0.97  # [P] of the time asked for, where the time was to end the run
SHORT_RUN_SHARE_MIN = 0.25  # [P] of it, where the amount of data ended the run
SHARE_TOLERANCE = 0.02  # [P] beyond what chance does to so many events
SHARE_DEVIATIONS = 4.0
SOURCE_HELD_MIN = 0.02  # [P] a source that full queues held back for less of its time was itself the limit
KEPT_MIN = 0.999  # [P] share of a pace that was kept


def unpaced(said: Streams, seconds: float) -> dict[str, Any]:
    """A run as fast as the application goes: its rate, the final flush included, and `reason` where it does not count."""
    time, source = said.time, said.source
    return {
        "bytes_per_s": said.bytes_per_s_with_flush,
        "written_bytes": said.totals.written_bytes,
        "emission_s": time.emission_s,
        "held_share": source.held_share,
        "busiest_share": busiest(said).achieved_share,
        "fallback_share": _share(said.totals.fallback_events, said.totals.written_events),
        "cpu_seconds_per_gb": said.cpu.seconds_per_gb,
        "failed": said.status == "failed",
        "reason": _why_ended(said, seconds) or _wrong_shares(said) or _source_bound(said),
    }


def paced(said: Streams, seconds: float) -> dict[str, Any]:
    """A run at a pace. `kept`: share of what was due that the application took; null when the source itself was late."""
    source, totals = said.source, said.totals
    achieved = source.achieved_fraction
    reason = _why_ended(said, seconds) if said.status != "failed" else None
    reason = reason or _wrong_shares(said)
    if reason is None and achieved is None:
        reason = "daqwriter does not say what share of the pace was offered"
    elif reason is None and achieved is not None and achieved < KEPT_MIN and source.held_s == 0:
        reason = f"the source offered only {achieved:.2%} of what was due, and no full queue held it back"
    return {
        "due_bytes": source.due_bytes,
        "offered_bytes": totals.offered_bytes,
        "written_bytes": totals.written_bytes,
        "achieved_fraction": achieved,
        "kept": None if reason else _share(totals.written_bytes, source.due_bytes),
        "held_s": source.held_s,
        "backlog_high_bytes": max(said.series.backlog_bytes, default=0),
        "abandoned_events": sum(stream.abandoned_events for stream in said.streams),
        "latency_us_p99": said.latency_us.p99,
        "cpu_seconds_per_gb": said.cpu.seconds_per_gb,
        "streams": [
            {
                "share": stream.share,
                "achieved_share": stream.achieved_share,
                "written_bytes": stream.written_bytes,
                "files": stream.closed_files,
                "cpu_s": stream.user_s + stream.system_s,
                "checksum_and_copy_s": stream.checksum_and_copy_s,
                "queue_high_water": stream.queue_high_water,
                "held_s": stream.held_s,
            }
            for stream in said.streams
        ],
        "elapsed_s": said.time.write_s,
        "failed": said.status == "failed",
        "error": said.error,
        "reason": reason,
    }


def busiest(said: Streams) -> Stream:
    """The stream that was to have the most."""
    return max(said.streams, key=lambda stream: stream.share)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _why_ended(said: Streams, seconds: float) -> str | None:
    if said.status != "complete":
        return f"the run ended as {said.status}: {said.error or 'no reason given'}"
    emission_s = said.time.emission_s
    least = {"duration": RUN_SHARE_MIN, "bytes": SHORT_RUN_SHARE_MIN}.get(said.ended_by)
    if least is None:
        return f"the run was ended by {said.ended_by}"
    if emission_s < least * seconds:
        by = ", since run_size was reached" if said.ended_by == "bytes" else ""
        return f"the run lasted {emission_s:.2f} s of {in_digits(seconds, 9)} s{by}"
    return None


def _wrong_shares(said: Streams) -> str | None:
    """The load is the unbalanced one only if the busiest stream had its share, give or take chance."""
    stream, events = busiest(said), said.totals.written_events
    if not events:
        return "no event was written"
    share, achieved = stream.share, stream.achieved_share
    spread = said.parameters.event_spread
    # Bytes scatter more than events: their sizes do too (uniform, so by spread / sqrt 3 of the mean).
    deviation = math.sqrt(share * (1 - share) / events * (1 + spread**2 / 3))
    if abs(achieved - share) > SHARE_TOLERANCE + SHARE_DEVIATIONS * deviation:
        return f"the busiest stream had {achieved:.1%} of the bytes instead of {share:.1%}"
    return None


def _source_bound(said: Streams) -> str | None:
    held = said.source.held_share
    if held < SOURCE_HELD_MIN:
        return f"the emulated source was the limit: full queues held it back for only {held:.1%} of the time"
    return None
