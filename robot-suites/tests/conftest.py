"""Fixtures of the rig's tests: a real InfluxDB of their own, and a folder on a file system that takes O_DIRECT."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.influx import Influx
from rig.influx_server import LocalInflux
from rig.settings import Layout
from virtual_candidate.testing import start_bmc, virtual_machine

sys.path.append(str(Path(__file__).resolve().parents[2] / "agents" / "tests"))
sys.path.append(str(Path(__file__).parent))  # plain modules beside the tests

from influx2_server import ORGANISATION, Influx2Server

__all__ = ["start_bmc", "virtual_machine"]  # fixtures, for pytest to find

TEST_PORT = 18086  # well away from a server that the user may run


@pytest.fixture(scope="session")
def influx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalInflux]:
    """A running InfluxDB on loopback with an empty data folder; ended by its pid."""
    if not Layout().influxd.exists():
        pytest.fail(f"{Layout().influxd} is missing; `make setup` builds it")
    server = LocalInflux(Layout().influxd, tmp_path_factory.mktemp("influxdb"))
    server.start(TEST_PORT)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def influx2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influx2Server]:
    """A running InfluxDB 2 with its buckets; a test that uses it carries the marker influx2."""
    server = Influx2Server(tmp_path_factory.mktemp("influxdb2"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["1.8", pytest.param("2", marks=pytest.mark.influx2)])
def server(request: pytest.FixtureRequest) -> Influx:
    """The same test against either kind of server, with all rights."""
    if request.param == "1.8":
        local: LocalInflux = request.getfixturevalue("influx")
        return Influx(local.start(TEST_PORT))
    two: Influx2Server = request.getfixturevalue("influx2")
    every = [(action, bucket) for action in ("read", "write") for bucket in ("bench", "bench/history")]
    return Influx(two.url, organisation=ORGANISATION, token=two.token(*every))


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder on the checkout's own file system: the system's temporary folder may be in memory."""
    parent = Layout().build / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    yield folder
    shutil.rmtree(folder)
