"""The agent's own health as a measurement: each collector's success, duration and staleness, and the point
accounting.

Promise: reported like any sensor, so that a gap in the data can be told from a quiet machine. A collector
that this machine does not support is reported once, with supported=false. Points without the tag `collector`
concern the agent. Where two agents serve one run, each one's points bear its name in the tag `instance`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Callable, Optional

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.collector import Reading, reading_now

Snapshot = Mapping[str, Mapping[str, Optional[FieldValue]]]
AGENT = ""  # the snapshot's key of the agent itself


class AgentStatus:
    """Collector of the measurement `telemetry_agent`; `snapshot` gives the fields by collector name."""

    name = "agent_status"

    def __init__(self, period_s: float, snapshot: Callable[[], Snapshot], instance: str = "") -> None:
        self.period_s = period_s
        self._own_tags = (("instance", instance),) if instance else ()
        self._snapshot = snapshot
        self._reported_unsupported: set[str] = set()

    def read(self) -> Reading:
        """The snapshot as one JSON text."""
        fresh = {}
        for collector, fields in self._snapshot().items():
            if fields.get("supported") is False:
                if collector in self._reported_unsupported:
                    continue
                self._reported_unsupported.add(collector)
            fresh[collector] = fields
        return reading_now({"snapshot": json.dumps(fresh)})

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per collector and one for the agent; a value that is not known yet is left out."""
        points = []
        for collector, found in json.loads(reading.texts["snapshot"]).items():
            fields: dict[str, FieldValue] = {key: value for key, value in found.items() if value is not None}
            tags = (("collector", collector),) if collector != AGENT else ()
            points.append(Point("telemetry_agent", (*tags, *self._own_tags), fields, reading.time_ns))
        return points
