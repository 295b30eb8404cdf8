"""Whether the nodes of a network reach each other's ports is tried for real, between addresses of this machine's loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_lan import candidate

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.rig.base.settings import Layout, Profiles
from daq_bench.rig.candidate.host import survey
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate import open_ports
from daq_bench.rig.run import targets
from daq_bench.rig.suite import serving
from daq_bench.rig.suite.scenario import OwnScenario
from daq_bench.workloads.lan.run import ports

METRICS = Layout().inventory / "metrics.yml"
SCENARIO: Any = SimpleNamespace(file="lan.yml")
NETWORK = {
    "interface": "eth0",
    "address": "127.77.1.1",
    "peers": [{"host": "ru-02", "interface": "eth1", "address": "127.77.1.2"}],
}


class Deaf(LocalMachine):
    """A node on which nobody may listen: its own tries are real."""

    def call(self, program: str, *arguments: str | Path, timeout_s: float = 120.0) -> Any:
        asked = json.loads(str(arguments[0]))
        own = {**asked, "own": "127.77.1.99"}
        return super().call(program, json.dumps(own), timeout_s=timeout_s)


def tried(peer: LocalMachine, network: dict[str, Any] | None = None) -> None:
    one = candidate()
    document = {**one.document, "network": NETWORK if network is None else network}
    ports.check_ports(SCENARIO, replace(one, document=document), LocalMachine(), lambda host: {"ru-02": peer}[host])


def test_nodes_that_reach_each_other_pass() -> None:
    tried(LocalMachine())


def test_a_candidate_whose_nodes_are_namespaces_is_not_asked() -> None:
    ports.check_ports(SCENARIO, candidate(), Deaf(), lambda host: pytest.fail(f"{host} was reached"))


def test_a_closed_port_is_refused_with_the_line_of_firewall_cmd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIREWALLD", ["true"])
    monkeypatch.setattr(ports, "TRY_S", 1.0)
    with pytest.raises(RefusedError) as error:
        tried(Deaf())
    said = str(error.value)
    assert (
        "ru-02 (127.77.1.2) cannot be reached from" in said
        and "at TCP 5201, 5202, 5300, 5301: Connection refused" in said
    )
    assert (
        "`firewall-cmd --zone=$(firewall-cmd --get-zone-of-interface=eth1) --add-port=5201/tcp --add-port=5202/tcp"
        in said
    )
    assert "127.77.1.1) cannot" not in said


def test_without_firewalld_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "FIREWALLD", ["false"])
    monkeypatch.setattr(ports, "TRY_S", 1.0)
    with pytest.raises(RefusedError, match="Open these ports on the way to it") as error:
        tried(Deaf())
    assert "firewall" not in str(error.value)


def test_a_port_in_use_and_an_address_of_nobody_are_one_error() -> None:
    own = f"127.77.{os.getpid() % 250}.5"  # of this test alone
    asked = {"own": own, "ports": [5300], "others": [], "try_s": 0, "listen_s": 0}
    with socket.create_server((own, 5300)):
        assert f"{own}, TCP port 5300: Address already in use" in open_ports.main(asked)["error"]
    for _ in range(2):  # it leaves no listener behind
        assert open_ports.main(asked) == {"result": []}
    with pytest.raises(BenchError, match=r"192\.0\.2\.7, TCP port 5201: Cannot assign requested address"):
        tried(LocalMachine(), {**NETWORK, "address": "192.0.2.7"})


def test_an_own_suites_load_is_refused_as_a_scenarios_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The ports are tried before the load begins, and the scenario forgets the refused load."""
    layout, one = Layout(), candidate(NETWORK)
    file = layout.inventory / "lab.yml"
    requirement = load_requirements(layout.inventory / "requirements" / "dune-snb.yml", load_metrics(METRICS))
    scenario = OwnScenario(tmp_path, layout, "Own suite", 1.0)
    profiles = Profiles(one, scenario.empty(), requirement, load_metrics(METRICS), file, METRICS)
    first: Any = SimpleNamespace(
        profiles=profiles,
        machine=LocalMachine(),
        layout=layout,
        directory=tmp_path,
        survey=lambda: (survey(LocalMachine()), 0, 0),
    )
    for name in ("check_target", "check_space", "check_memory", "check_workloads", "check_programs", "reserve_of"):
        monkeypatch.setattr(serving.preflight, name, lambda *_: SimpleNamespace(free_bytes=0))
    asked: list[str] = []

    @contextmanager
    def connected(_: Path, host: str, __: Layout) -> Iterator[LocalMachine]:
        asked.append(host)
        yield Deaf()

    monkeypatch.setattr(targets, "connected", connected)
    monkeypatch.setattr(ports, "TRY_S", 1.0)
    parameters = YAML(typ="safe").load(layout.inventory / "scenarios" / "lan-100g.yml")["workloads"]["lan"]
    own = serving.OwnSuite(None, scenario, layout, None)  # type: ignore[arg-type]  # neither is asked before the peers
    with pytest.raises(RefusedError, match=r"ru-02 \(127.77.1.2\) cannot be reached"):
        own._plan(SimpleNamespace(first=first), None, "lan", {"parameters": parameters, "top": {}})  # type: ignore[arg-type]
    assert asked == ["ru-02"] and "workloads: {}" in scenario.file.read_text(encoding="utf-8")


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")
def test_a_firewalls_rejection_is_told_at_once() -> None:
    """As firewalld rejects: the connection ends with "No route to host", which no second try mends."""
    asked = {"own": "127.77.1.6", "ports": [5300], "others": ["198.18.77.1"], "try_s": 600.0, "listen_s": 0}
    closed = 'ip link set lo up && ip route add unreachable 198.18.77.1 && exec "$@"'
    argv = ["unshare", "--net", "sh", "-c", closed, "sh", sys.executable, open_ports.__file__, json.dumps(asked)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(done.stdout) == {"result": [{"address": "198.18.77.1", "port": 5300, "why": "No route to host"}]}
