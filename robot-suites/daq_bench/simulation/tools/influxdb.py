"""An InfluxDB that holds what the agent delivered, and answers the questions by which the bench counts it; or one that is down."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.spool_content import read_content
from daq_bench.rig.base.influx import Influx, InfluxError

DOWN = "connection refused"


class SimulatedInflux(Influx):
    """`spool` and `delivered_bytes`: what came to it."""

    def of(self, spool: Path, delivered_bytes: int, down: bool) -> SimulatedInflux:
        object.__setattr__(self, "_down", down)
        held: dict[str, list[dict[str, Any]]] = defaultdict(list)
        content = read_content(spool / "points.lp", delivered_bytes)
        for (measurement, tags), times in content.before.items():
            row = {"tags": dict(tags), "columns": ["time", "count"], "values": [[0, len(set(times))]]}
            held[measurement].append(row)
        object.__setattr__(self, "_held", dict(held))
        return self

    def query(self, statement: str, timeout_s: float = 60.0) -> list[dict[str, Any]]:
        if self._down:  # type: ignore[attr-defined]
            raise InfluxError(DOWN)
        held: dict[str, list[dict[str, Any]]] = self._held  # type: ignore[attr-defined]
        if statement.startswith("SHOW RETENTION"):
            columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"]
            return [{"columns": columns, "values": [["autogen", "0s", "168h0m0s", 1, True]]}]
        if statement.startswith("SHOW MEASUREMENTS"):
            return [{"values": [[name] for name in sorted(held)]}]
        measurement = statement.split('FROM "', 1)[1].split('"', 1)[0]
        return held.get(measurement, [])
