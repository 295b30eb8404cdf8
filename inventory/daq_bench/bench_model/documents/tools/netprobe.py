"""Tells what `netprobe latency` and `netprobe build` (agents/network_probe) write."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import Latency

Message = Annotated[int, Meta(ge=24)]  # B, header included


class Cpu(Closed, frozen=True):
    user_s: float
    system_s: float


class Probe(Closed, frozen=True, kw_only=True):
    """Holds the settings of both commands. `measured_s`: without the warm-up."""

    schema_version: Literal[1]
    tool: Literal["netprobe"]
    version: str
    status: Literal["complete", "interrupted"]
    started_utc: str
    seconds: Positive
    warm_up_s: Amount
    measured_s: Amount
    cpu: Cpu


class NetprobeLatency(Probe, frozen=True, kw_only=True):
    """Round trips of one message at a time over TCP."""

    command: Literal["latency"]
    message_bytes: Message
    round_trips: Count
    segments_sent_again: Count
    round_trip_us: Latency


class FragmentSource(Closed, frozen=True):
    source: str
    fragments: Count
    segments_sent_again: Count
    fragment_us: Latency


class NetprobeBuild(Probe, frozen=True, kw_only=True):
    """Events built of a fragment of every source."""

    command: Literal["build"]
    fragment_bytes: Message
    in_flight: Ordinal
    events: Count
    event_us: Latency
    sources: Annotated[list[FragmentSource], Meta(min_length=1)]
