"""Tools that several tests share: recorded machines, declared metrics, an agent process, a scripted HTTP server."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from daq_bench.telemetry_agent.base.line_parser import parse_line
from daq_bench.telemetry_agent.base.point import Point
from daq_bench.telemetry_agent.reading.collector import Collector, Reading

TESTS = Path(__file__).resolve().parent
AGENTS = TESTS.parent
FIXTURES = TESTS / "fixtures"
METRICS = AGENTS.parent / "inventory" / "metrics.yml"
PYTHON_TYPES = {"integer": int, "float": float, "boolean": bool, "string": str}
T0_NS = 1_700_000_000_000_000_000
Fields = dict[str, Any]
PATIENCE_S = 60.0  # for what ends by itself: a slow machine decides no test


def machine(name: str, step: int) -> Path:
    """Root of a machine: "vm" (recorded) or "server" (made by hand); step 0 comes before step 1."""
    return FIXTURES / f"{name}_{step}"


def two_readings(make: Callable[[Path], Collector], name: str, apart_s: float = 2.0) -> list[Point]:
    """Points of the second reading of a recorded machine."""
    first, second = make(machine(name, 0)), make(machine(name, 1))
    before = Reading(T0_NS, 100.0, first.read().texts)
    after = Reading(T0_NS + int(apart_s * 1e9), 100.0 + apart_s, second.read().texts)
    return second.parse(after, before)


def by_tag(points: Iterable[Point], tag: str) -> dict[str, Fields]:
    """Fields by the value of one tag."""
    return {dict(point.tags)[tag]: dict(point.fields) for point in points}


def fake_program(directory: Path, name: str, script: str) -> str:
    """A PATH on which this shell script goes by the name given; called again, it is another script."""
    directory.mkdir(exist_ok=True)
    program = directory / name
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return f"{directory}:{os.environ['PATH']}"


@lru_cache(maxsize=1)
def declared_measurements() -> dict[str, Any]:
    """Returns the measurements of inventory/metrics.yml, which takes a second to read."""
    measurements: dict[str, Any] = yaml.safe_load(METRICS.read_text(encoding="utf-8"))["measurements"]
    return measurements


def undeclared(point: Point, extra_tags: frozenset[str] = frozenset()) -> list[str]:
    """Returns the parts of a point that inventory/metrics.yml does not declare; empty when all is well."""
    declared = declared_measurements().get(point.measurement)
    if declared is None:
        return [f"measurement {point.measurement}"]
    wrong = [f"tag {key}" for key, _ in point.tags if key not in declared["tags"] and key not in extra_tags]
    for name, value in point.fields.items():
        field = declared["fields"].get(name)
        if field is None:
            wrong.append(f"field {name}")
        elif type(value) is not PYTHON_TYPES[field["type"]]:
            wrong.append(f"type of {name}: {type(value).__name__}, declared {field['type']}")
    return wrong


def spooled(directory: Path) -> list[Point]:
    """Every point of a spool."""
    text = (directory / "points.lp").read_text(encoding="utf-8")
    assert text.endswith("\n"), "a spool holds whole lines"
    return [parse_line(line) for line in text.splitlines()]


def load(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = 15.0) -> None:
    """Wait until a condition holds, or fail saying what was waited for."""
    until_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until_s, f"{what}: not within {limit_s:g} s"
        time.sleep(0.05)


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The agent's command line, to its end."""
    command = [sys.executable, "-m", "daq_bench.telemetry_agent", *arguments]
    env = {**os.environ, "PYTHONPATH": str(AGENTS), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=40, check=False)


class AgentProcess:
    """A running agent; `wait_ready` has returned when it is constructed by `running_agent`."""

    def __init__(self, spool_dir: Path, arguments: Iterable[str]) -> None:
        self.spool_dir = spool_dir
        command = [sys.executable, "-m", "daq_bench.telemetry_agent", "run", "--spool-dir", str(spool_dir), *arguments]
        env = {**os.environ, "PYTHONPATH": str(AGENTS)}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def terminate(self) -> Any:
        """SIGTERM; returns its summary."""
        self.process.send_signal(signal.SIGTERM)
        _, self.stderr = self.process.communicate(timeout=30)
        assert self.process.returncode == 0, self.stderr
        return load(self.spool_dir / "summary.json")

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def spooled_lines(self) -> int:
        """Lines in the spool by now."""
        path = self.spool_dir / "points.lp"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def delivered(self) -> int:
        """Points delivered by now, by the cursor."""
        path = self.spool_dir / "cursor.json"
        return int(load(path)["delivered_points"]) if path.exists() else 0


@contextmanager
def running_agent(spool_dir: Path, *arguments: str) -> Iterator[AgentProcess]:
    """An agent which is certainly gone afterwards."""
    agent = AgentProcess(spool_dir, arguments)
    try:
        yield agent
    finally:
        agent.kill()


def assert_adds_up(points: dict[str, int]) -> None:
    """The accounting of a summary whose spool never failed."""
    assert points["collected"] == points["spooled"] > 0
    assert points["spooled"] == points["delivered"] + points["rejected"] + points["undelivered"]
    assert min(points.values()) >= 0


@contextmanager
def scripted_http(answer: Callable[[bytes, str], tuple[int, str]], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A loopback server which answers each POST as `answer(body, path)` says; gives its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = answer(body, self.path + " " + self.headers.get("Authorization", ""))
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(text)))
            with contextlib.suppress(ConnectionError):  # a client under test that stopped waiting
                self.end_headers()
                self.wfile.write(text.encode())

        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who does not trust it goes away
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
