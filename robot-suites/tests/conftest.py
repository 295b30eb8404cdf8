"""Fixtures of the rig's tests: a real InfluxDB of their own, and a folder on a file system that takes O_DIRECT."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ansible.module_utils
import pytest
from ruamel.yaml import YAML

from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.instance import Instance
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.virtual_candidate.testing import entry_of, start_bmc, virtual_machine

sys.path.append(str(Path(__file__).resolve().parents[2] / "agents" / "tests"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "ansible" / "library"))
sys.path.append(str(Path(__file__).parent))  # plain modules beside the tests
sys.path.append(str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))  # analysis_factory

from bench_fixtures import disk
from influx2_server import ORGANISATION, Influx2Server

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parents[2] / "ansible" / "module_utils"))

__all__ = ["disk", "start_bmc", "virtual_machine"]  # fixtures, for pytest to find

Change = Callable[[dict[str, Any]], None]  # of the `bench_candidate` of an inventory
TEST_PORT = free_ports(1)[0]  # of this process: several run beside each other, and beside a server of the user


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


@pytest.fixture(scope="session")
def inventory_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Instance, Change], Path]:
    """A function that writes the shipped virtual candidate's inventory for an instance of the tests, with its ports and keys.

    `change` says what else differs."""

    def write(at: Instance, change: Change) -> Path:
        host = entry_of(at)
        change(host["bench_candidate"])
        file = tmp_path_factory.mktemp("inventory") / "lab.yml"
        YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": {at.name: host}}}}}, file)
        return file

    return write


@pytest.fixture(scope="module")
def own_lock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Locks of the module's own: a run of the user's on the same machine does not keep the tests from theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path_factory.mktemp("locks")))
        yield


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests keep no key of the user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port whose connections are taken and never answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def take() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        for one in kept:
            one.close()
