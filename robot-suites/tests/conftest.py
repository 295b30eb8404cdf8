"""Fixtures of the rig's tests: a real InfluxDB of their own, and a folder on a file system that takes O_DIRECT."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.influx_server import LocalInflux
from rig.settings import Layout
from virtual_candidate.testing import start_bmc, virtual_machine

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


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder on the checkout's own file system: the system's temporary folder may be in memory."""
    parent = Layout().build / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=parent))
    yield folder
    shutil.rmtree(folder)
