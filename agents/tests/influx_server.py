"""A real InfluxDB 1.8 for tests: loopback only, own directory, free ports, ended by its process id.

Promise: `start` returns when the server answers /ping; `kill` is SIGKILL, after which `start` continues with
the same data and port. The binary comes from INFLUXD_BIN; without it there is an error saying so, never a
skipped test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from daq_bench.virtual_candidate.ports import free_ports

BINARY_VARIABLE = "INFLUXD_BIN"
START_S_MAX = 20.0

CONFIG = """reporting-disabled = true
bind-address = "127.0.0.1:0"
[meta]
  dir = "{directory}/meta"
[data]
  dir = "{directory}/data"
  wal-dir = "{directory}/wal"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{http_port}"
  log-enabled = false
[subscriber]
  enabled = false
[continuous_queries]
  enabled = false
"""


class InfluxServer:
    """One influxd process with its directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (self.http_port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.http_port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, or start again after `kill`."""
        binary = os.environ.get(BINARY_VARIABLE)
        if not binary or not Path(binary).is_file():
            raise RuntimeError(f"{BINARY_VARIABLE}={binary!r}: set it to an influxd 1.8 binary (see agents/README.md)")
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "influxdb.conf"
        text = CONFIG.format(directory=self.directory, http_port=self.http_port)
        config.write_text(text, encoding="utf-8")
        with (self.directory / "influxd.log").open("ab") as log:
            self._process = subprocess.Popen([binary, "-config", str(config)], stdout=log, stderr=log)
        self._wait_ready()

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP: it takes connections and answers nothing, as a server whose disk hangs."""
        if self._process:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        if self._process:
            self._process.send_signal(signal.SIGCONT)

    def query(self, statement: str, database: str = "") -> list[dict[str, Any]]:
        """Rows of an InfluxQL statement, times in ns; its errors (which come as HTTP 200) are raised."""
        body = urllib.parse.urlencode({"q": statement, "db": database, "epoch": "ns"}).encode()
        with urllib.request.urlopen(f"{self.url}/query", body, timeout=10) as answer:
            document = json.load(answer)
        result = document["results"][0] if "results" in document else document
        if "error" in result:
            raise RuntimeError(f"{statement}: {result['error']}")
        return [
            {**dict(zip(series["columns"], row, strict=True)), **series.get("tags", {})}
            for series in result.get("series", [])
            for row in series["values"]
        ]

    def _wait_ready(self) -> None:
        until_s = time.monotonic() + START_S_MAX
        while time.monotonic() < until_s:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/ping", timeout=1) as answer:
                    if answer.status == 204:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        self.kill()
        log = (self.directory / "influxd.log").read_text(errors="replace")
        raise RuntimeError(f"influxd did not answer at {self.url} within {START_S_MAX:g} s: {log[-2000:]}")
