"""What Grafana shows of a panel, by its own published code in Node. For tests with the marker `grafana`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
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

    def asked(self, on: Server, panel: Json, choices: Mapping[str, Choice], shown: Range) -> Json:
        """The panel with what InfluxDB answers to its queries."""
        interval = self.interval(shown, panel.get("maxDataPoints", WIDTH_PIXELS))
        queries = [
            interpolated(one["query"].replace("$__interval", interval), choices, shown) for one in panel["targets"]
        ]
        answers = [on.answer(query) for query in queries]
        return {"panel": panel, "answers": answers, "range_ms": [shown.begin_ms, shown.end_ms]}

    def shown(self, on: Server, panel: Json, choices: Mapping[str, Choice], shown: Range) -> Json:
        """What the panel, by its JSON, shows of them."""
        return self._asked(self.asked(on, panel, choices, shown))

    def heat(self, panel: Json, answers: list[list[Json]], shown: Range) -> dict[int, int]:
        """How many values a heat map draws in which row."""
        request = {"panel": panel, "answers": answers, "range_ms": [shown.begin_ms, shown.end_ms]}
        rows: Counter[int] = Counter()
        for cell in self._asked(request)["cells"]:
            rows[cell["y"]] += cell["count"]
        return dict(rows)


DRAWING = Layout().build / "grafana-pictures" / "draw.js"  # by `make grafana-pictures`
PICTURES = Layout().build / "grafana-pictures"
BEGIN = (
    "<!doctype html><meta charset=utf-8><link rel=stylesheet href=draw.css>"
    "<style>body{background:#111217;margin:0;overflow:hidden}</style><div id=board></div>"
)


def draw(panels: list[Json], name: str, height: int, events: Sequence[Json] = ()) -> str:
    """Draws the panels, and the events over them, in Chromium into build/grafana-pictures/NAME.png; returns the page's DOM. Raises
    RuntimeError for an error of it."""
    chromium = shutil.which("chromium")
    if chromium is None or not DRAWING.is_file():
        raise RuntimeError(f"chromium: {chromium}, {DRAWING}: `make grafana-pictures` builds it")
    settings = "<script>window.grafanaBootData={settings:{featureToggles:{}}};window.BOARD="
    data = json.dumps(panels).replace("</", "<\\/")
    page = PICTURES / f"{name}.html"
    data += ";window.EVENTS=" + json.dumps(list(events))
    page.write_text(f"{BEGIN}{settings}{data}</script><script src=draw.js></script>", encoding="utf-8")
    argv = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--virtual-time-budget=10000",
            f"--window-size=1440,{height}", f"--screenshot={page.with_suffix('.png')}", "--dump-dom", "--enable-logging=stderr",
            f"--user-data-dir={PICTURES}/chromium", page.as_uri()]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    failed = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "Uncaught" in line]
    if failed:
        raise RuntimeError("\n".join(failed))
    return done.stdout
