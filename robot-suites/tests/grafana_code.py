"""What Grafana shows of a panel, by its own published code in Node. For tests with the marker `grafana`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daq_bench.bench_dashboards.interpolation import Choice, Range, interpolated
from daq_bench.bench_dashboards.trial import Server
from daq_bench.rig.base.settings import Layout

Json = dict[str, Any]
MODULES = Layout().build / "grafana" / "node_modules"  # by `make test-grafana`, of tests/grafana/package-lock.json
WIDTH_PIXELS = 1000  # of a panel that does not state how many points it takes


class Grafana:
    """One process; a context that ends it."""

    def __enter__(self) -> Grafana:
        node = shutil.which("node")
        if node is None or not MODULES.is_dir():
            raise RuntimeError(f"node: {node}, packages: {MODULES}: `make test-grafana` installs them")
        script = Path(__file__).parent / "grafana" / "shown.js"
        environment = {**os.environ, "NODE_PATH": str(MODULES)}
        self._process = subprocess.Popen(
            [node, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def _asked(self, request: Json) -> Json:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer: Json = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def interval(self, shown: Range, points: int) -> str:
        """`$__interval` of a panel that takes so many points."""
        found: str = self._asked({"range_ms": [shown.begin_ms, shown.end_ms], "points": points})["interval"]
        return found

    def shown(self, on: Server, panel: Json, choices: Mapping[str, Choice], shown: Range) -> Json:
        """What the panel, by its JSON, shows of what InfluxDB answers to its queries."""
        interval = self.interval(shown, panel.get("maxDataPoints", WIDTH_PIXELS))
        queries = [
            interpolated(one["query"].replace("$__interval", interval), choices, shown) for one in panel["targets"]
        ]
        answers = [on.answer(query) for query in queries]
        return self._asked({"panel": panel, "answers": answers, "range_ms": [shown.begin_ms, shown.end_ms]})
