"""Shared fixtures: the packages' paths, and one real InfluxDB for the session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
for folder in (TESTS, TESTS.parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from agent_helpers import fake_program  # noqa: E402 - needs the path above
from bench_fixtures import agent, daqwriter, disk, influxd  # noqa: E402
from influx_server import InfluxServer  # noqa: E402
from recorded_tree import FOLDER, Clock, unpack  # noqa: E402

__all__ = ["agent", "daqwriter", "disk", "influxd"]  # fixtures, for pytest to find


@pytest.fixture(scope="session")
def shared_influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    """A server for tests that do not kill it."""
    server = InfluxServer(tmp_path_factory.mktemp("influx"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def own_influx(tmp_path: Path) -> Iterator[InfluxServer]:
    """A server, not yet started, for a test that starts and kills it."""
    server = InfluxServer(tmp_path / "influx")
    yield server
    server.kill()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server with two sockets at its first reading, and an ethtool on PATH."""
    monkeypatch.setenv("PATH", fake_program(tmp_path / "bin", "ethtool", f"exec cat {FOLDER}/ethtool_mlx5.txt\n"))
    return unpack("healthy_0", tmp_path / "root")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The agent's clocks, which stand until they are advanced."""
    return Clock(monkeypatch)
