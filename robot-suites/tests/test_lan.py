"""The LAN workload: what is refused beforehand, what nodes are asked to do, and the real thing in network namespaces, with nothing left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import wait_for
from small_runs import refusal

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.telemetry_tracks import Tracks
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.on_candidate import network_nodes
from daq_bench.rig.on_candidate.network import meeting, rdma
from daq_bench.rig.on_candidate.network.namespaces import NodesError, rows_of
from daq_bench.rig.on_candidate.network.places import Host, Namespaces
from daq_bench.rig.on_candidate.network.settings import Settings
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.workloads.lan import run as lan
from daq_bench.workloads.lan.document import Point, Trial
from daq_bench.workloads.lan.model import analysis as model
from daq_bench.workloads.lan.plan import ALL, SIDES, Parameters, plan
from daq_bench.workloads.lan.run.site import LanSite
from daq_bench.workloads.lan.run.tools import Load, Setting, Tools

LAYOUT = Layout()
TOOLS = [tool for tool in ("iperf3", "ethtool", "ip", "tc") if shutil.which(tool) is None]
needs_network = pytest.mark.skipif(
    bool(TOOLS) or os.geteuid() != 0, reason=f"needs root and {', '.join(TOOLS) or 'iproute2'}"
)
needs_netprobe = pytest.mark.skipif(not LAYOUT.netprobe.exists(), reason="netprobe is not built")
EMULATED = {"nodes": 4, "rate_bytes_per_s": 25e6, "queue_bytes": 512 << 10}


def scenario(name: str = "lan-100g-rehearsal", repetitions: int = 6, **changes: Any) -> Scenario:
    loaded = load_scenario(LAYOUT.inventory / "scenarios" / f"{name}.yml")
    return replace(loaded, repetitions=repetitions, workloads={"lan": {**loaded.workloads["lan"], **changes}})


def candidate(network: dict[str, Any] | None = None) -> Candidate:
    found = load_candidate(LAYOUT.inventory / "lab.yml", "this-machine")
    return replace(found, document={**found.document, "network": network}) if network else found


refused = partial(refusal, lan.check)


def settings(**changes: Any) -> dict[str, Any]:
    return {**scenario().workloads["lan"]["settings"], **changes}


def left() -> list[str]:
    """Namespaces and links of programs that are gone."""
    said = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    said += subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [name for name, pid in re.findall(r"\b(ln(\d+)[bnp]\d*)", said) if not Path(f"/proc/{pid}").exists()]


def named(pid: int) -> list[str]:
    """Namespaces of a program that runs."""
    said = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return re.findall(rf"\bln{pid}n\d+", said)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LanSite]:
    raw = tmp_path / "raw"
    raw.mkdir()
    yield LanSite(LocalMachine(), (), LAYOUT.netprobe, tmp_path, raw, EMULATED)
    assert left() == [], "network namespaces were left behind"


def nodes(plan: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    argv = LocalMachine().program("network_nodes", json.dumps(plan))
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def namespaces(count: int = 2, topology: str = "switch") -> dict[str, Any]:
    return {
        "kind": "namespaces",
        "topology": topology,
        "nodes": count,
        "rate_bytes_per_s": 25e6,
        "queue_bytes": 512 << 10,
    }


def test_what_cannot_be_measured_is_refused_with_the_remedy() -> None:
    assert "no `network` with peers in the inventory" in refused(scenario("lan-100g"))
    assert "cannot be carried by ports of" in refused(scenario(need_size=20 * 10**9))
    assert "an even number of 4 or more" in refused(scenario(settings=settings(pairs=3)))
    assert "stands there twice" in refused(scenario(settings=settings(list=[{"id": "mtu", "tuned": 9000}] * 2)))
    assert "no whole number of seconds" in refused(scenario(seconds_per_size=1.5))
    twice = {
        "interface": "eth0",
        "address": "10.0.0.1",
        "peers": [{"host": "a", "interface": "eth0", "address": "10.0.0.1"}],
    }
    assert "two nodes have the same address" in refused(scenario("lan-100g"), candidate(twice))


def test_a_network_of_namespaces_is_said_and_of_the_full_scenario_nothing() -> None:
    assert lan.limits(scenario("lan-100g")) == []
    assert ["namespaces" in text for text in lan.limits(scenario())] == [True]


def test_perftest_is_asked_for_the_measured_time_and_both_margins() -> None:
    tools = Tools(Path("netprobe"), 2, devices={"node0": "mlx5_0", "node1": "mlx5_1"})

    def load(kind: str, operation: str, size: int, both: bool = False) -> Load:
        return tools.load(Point.between_two(kind, "switch", operation, size, both), 40)  # type: ignore[arg-type]

    one = load("bandwidth", "ib_write_bw", 65536)
    words = one.clients[0].argv
    assert (
        words[words.index("--duration") + 1] == "44"
        and words[words.index("--margin") + 1] == "2"
        and "--all" not in words
    )
    assert words[-1] == "{node1}" and one.servers[0].argv[:3] == ["ib_write_bw", "--ib-dev", "mlx5_1"]
    read = load("bandwidth", "ib_read_bw", 65536).clients[0]
    assert (read.source, read.sink) == ("node1", "node0")  # a read's payload comes to the one that asks
    assert "--report_gbits" not in load("latency", "ib_read_lat", 64).clients[0].argv
    both = load("bandwidth", "ib_write_bw", 65536, both=True)
    assert "-b" in both.clients[0].argv and "-b" in both.servers[0].argv


def test_each_setting_is_tuned_alone_where_the_others_are_not() -> None:
    one = Setting("mtu", [{"id": "mtu", "value": "0"}], [{"id": "mtu", "value": "9000"}])
    two = Setting("cpu-governor", [{"id": "cpu-governor", "files": {"/x": "powersave"}}], [])
    states = {
        name: [lan.in_force(Trial(name, 1, side, True, "latency"), [one, two]) for side in SIDES]
        for name in ("mtu", "cpu-governor", ALL)
    }
    off = [*one.untuned, *two.untuned]
    assert states == {
        "mtu": [off, [*one.tuned, *two.untuned]], "cpu-governor": [off, one.untuned], ALL: [off, one.tuned],
    }  # fmt: skip
    asked = Parameters.of(scenario().workloads["lan"])
    made = [one.trial for one in plan(asked, 6, "tcp", ["direct"], 2, ["mtu"]) if one.trial]
    firsts = {each.pair: each.side for each in reversed(made)}
    assert firsts == {1: "untuned", 2: "tuned", 3: "untuned", 4: "tuned"} and len(made) == 4 * 2 * 2 * 2


def test_a_setting_whose_value_is_zero_is_set() -> None:
    """`rx-usecs: 0` is a value, and no setting that is left as it is found."""
    (asked,) = Parameters.of({**scenario().workloads["lan"], "settings": settings(list=[
        {"id": "rx-usecs", "tuned": 0},
    ])}).settings.listed  # fmt: skip
    assert Setting.of(asked) == Setting("rx-usecs", [], [{"id": "rx-usecs", "value": "0"}])


def test_what_provisioning_applied_is_read_from_its_own_memory(tmp_path: Path) -> None:
    saved = {
        "cpu-governor": {"values": {"/sys/g": "powersave"}},
        "queue-scheduler": {"values": {"/sys/q": "mq-deadline"}},
    }
    (tmp_path / "tuning-before.json").write_text(json.dumps({"settings": saved}), encoding="utf-8")
    found = LanSite(LocalMachine(), (), Path("p"), tmp_path, tmp_path, EMULATED)
    assert found.provisioned() == {"cpu-governor": {"/sys/g": "powersave"}}
    assert replace(found, state=tmp_path / "none").provisioned() == {}


@needs_network
@needs_netprobe
def test_real_transfers_in_namespaces_stay_below_the_ports_rate_and_are_analysed(site: LanSite) -> None:
    tools = Tools(LAYOUT.netprobe, 1, in_flight=2)
    asked = [
        Point.between_two("bandwidth", "switch", "iperf3", 65536),
        Point.between_two("bandwidth", "direct", "iperf3", 65536, bidirectional=True),
        Point.between_two("latency", "switch", "netprobe latency", 64),
        Point("crowd", "crowd", "switch", "many to one", False, 65536, 4, None),
        Point("build", "build", "switch", "all builders", False, 20_000, 3, None),
    ]
    transfers = [site.carry_out(tools.load(one, 1), 1) for one in asked]
    document = {
        "need_bytes_per_s": 1.0, "transfers": transfers, "network": {"kind": "namespaces"}, "left_out": [],
    }  # fmt: skip
    found = model.document(document, lambda name: (site.raw / name).read_text(encoding="utf-8"), Tracks())
    assert found["judged"]["failed_transfers"] == 0, [
        one["reason"] for kind in ("bandwidth", "latency", "crowd", "build") for one in found[kind]
    ]
    one_way, both = found["bandwidth"]
    assert 0 < one_way["bytes_per_s"] < 1.25 * 25e6 and both["reverse_bytes_per_s"] > 0
    assert 0 < one_way["counted_bytes_per_s"] < 1.25 * 25e6  # the port's own counter agrees
    assert found["crowd"][0]["port_bytes_per_s"] < 1.25 * 25e6 and 1 / 3 <= found["crowd"][0]["fairness"] <= 1
    assert set(found["build"][0]["into"]) == {"node0", "node1", "node2"}
    assert found["latency"][0]["latency_us"]["p50"] > 0 and found["latency"][0]["n"] > 10


@needs_network
def test_settings_are_read_back_hold_and_go_with_the_network(site: LanSite) -> None:
    asked = [
        {"id": "mtu", "value": "9000"},
        {"id": "tso", "value": "off"},
        {"id": "txqueuelen", "value": "77"},
        {"id": "rx-ring", "value": "max"},
    ]
    records = {(one["id"], one["at"]): one for one in site.try_settings(asked)}
    for name, before, after in (("mtu", "1500", "9000"), ("tso", "on", "off"), ("txqueuelen", "1000", "77")):
        for node in ("node0", "node1"):
            one = records[name, node]
            assert (one["before"], one["read_back"], one["held"], one["restored"]) == (before, after, True, True), one
    assert records["rx-ring", "node0"]["status"] == "unsupported"
    refused_one = site.try_settings([{"id": "mtu", "value": "1"}])[0]
    assert refused_one["status"] == "refused" and "mtu" in refused_one["detail"]


@pytest.fixture
def port() -> Iterator[str]:
    """A port of this machine that tests may change."""
    name = f"lt{os.getpid() % 10000}"
    subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"], check=True)
    for end in (name, f"{name}p"):
        subprocess.run(["ip", "link", "set", end, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)


def mtu_of(port: str) -> str:
    return Path(f"/sys/class/net/{port}/mtu").read_text(encoding="ascii").strip()


def host_plan(port: str, journal: Path, processes: list[dict[str, Any]], seconds: float = 30) -> dict[str, Any]:
    network = {"kind": "host", "node": "node0", "interface": port, "addresses": {"node0": "127.0.0.1"}}
    return {
        "network": network, "settings": [{"id": "mtu", "value": 1400}], "processes": processes, "timeout_s": seconds,
        "journal": str(journal),
    }  # fmt: skip


SLEEP = {"name": "sleep", "at": "node0", "role": "client", "argv": ["sleep", "30"]}


@needs_network
def test_a_real_ports_setting_is_put_back_also_when_a_client_hangs(port: str, tmp_path: Path) -> None:
    done = nodes(host_plan(port, tmp_path / "journal", [SLEEP], seconds=1))
    assert "sleep did not end within 1 s" in json.loads(done.stdout)["error"]
    assert mtu_of(port) == "1500" and not (tmp_path / "journal").exists()


@needs_network
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_setting_outlives_no_signal(port: str, tmp_path: Path, number: int) -> None:
    journal = tmp_path / "journal"
    argv = LocalMachine().program("network_nodes", json.dumps(host_plan(port, journal, [SLEEP])))
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 60
        while mtu_of(port) != "1400" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert mtu_of(port) == "1400" and journal.exists()
        running.send_signal(number)
        running.wait(120)
    if number == signal.SIGKILL:  # nothing could be done then; the next start does it
        assert mtu_of(port) == "1400"
        nodes({**host_plan(port, journal, []), "settings": []})
    assert mtu_of(port) == "1500" and not journal.exists()


@needs_network
def test_namespaces_that_a_killed_run_left_are_removed_by_the_next() -> None:
    plan = {"network": namespaces(), "processes": [{**SLEEP}], "timeout_s": 30}
    argv = LocalMachine().program("network_nodes", json.dumps(plan))
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as running:
        wait_for(lambda: len(named(running.pid)) == 2, "the run's namespaces", 60)
        running.kill()
        running.wait(120)
    assert left() != []
    nodes({"network": namespaces(), "processes": [], "timeout_s": 5})
    assert left() == []


@needs_network
@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            {"network": {"kind": "host", "node": "node0", "interface": "none9", "addresses": {}}},
            "there is no interface none9",
        ),
        ({"network": namespaces(), "processes": [{**SLEEP, "at": "node7"}]}, "there is no node7 among node0, node1"),
        (
            {"network": namespaces(), "processes": [{**SLEEP, "argv": ["ib_no_such"]}]},
            "ib_no_such is not there: install perftest",
        ),
        ({"network": namespaces(3, "direct")}, "3 nodes cannot be wired together directly"),
        ({"network": namespaces(), "settings": [{"id": "luck", "value": 1}]}, "there is no setting luck"),
        (
            {
                "network": namespaces(),
                "processes": [{**SLEEP, "role": "server", "argv": ["iperf3", "--port", "x"]}],
                "ready_s": 3,
            },
            "sleep ended at once",
        ),
    ],
)
def test_bad_input_is_one_clear_error_and_leaves_nothing(plan: dict[str, Any], words: str) -> None:
    done = nodes({"processes": [], "timeout_s": 5, **plan})
    assert words in json.loads(done.stdout)["error"] and done.stderr == ""
    assert left() == []


@needs_network
def test_a_port_that_is_not_up_is_named(port: str, tmp_path: Path) -> None:
    subprocess.run(["ip", "link", "set", port, "down"], check=True)
    assert (
        f"{port} is not up (operstate down)" in json.loads(nodes(host_plan(port, tmp_path / "j", [])).stdout)["error"]
    )


@needs_network
def test_a_peer_that_does_not_answer_is_a_failed_transfer_with_iperf3s_words(site: LanSite) -> None:
    one = Tools(LAYOUT.netprobe, 1).load(Point.between_two("bandwidth", "switch", "iperf3", 65536), 1)
    done = site.carry_out(replace(one, servers=()), 1)
    document = {"need_bytes_per_s": 1.0, "transfers": [done], "network": {"kind": "namespaces"}, "left_out": []}
    found = model.document(document, lambda name: (site.raw / name).read_text(encoding="utf-8"), Tracks())
    assert "Connection refused" in found["bandwidth"][0]["reason"] and found["judged"]["failed_transfers"] == 1


@needs_netprobe
def test_netprobe_survives_strangers_and_ends_with_its_last_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    argv = [str(LAYOUT.netprobe), "serve", f"--listen={at}", "--connections=3"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        measure = [
            str(LAYOUT.netprobe),
            "latency",
            f"--peer={at}",
            "--seconds=0.3",
            "--warm-up=0",
            "--message-size=100",
            "--json=-",
        ]
        first = subprocess.run(measure, capture_output=True, text=True, timeout=120, check=True)
        host, _, number = at.rpartition(":")
        with socket.create_connection((host, int(number))) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: not yours\r\n\r\n")
            assert stranger.recv(100) == b""
        build = [
            str(LAYOUT.netprobe),
            "build",
            f"--source={at}",
            "--fragment-size=5000",
            "--in-flight=7",
            "--seconds=0.3",
            "--json=-",
        ]
        second = subprocess.run(build, capture_output=True, text=True, timeout=120, check=True)
        assert server.wait(120) == 0 and server.stderr and "this is no request of netprobe" in server.stderr.read()
    found, built = json.loads(first.stdout), json.loads(second.stdout)
    check_document(found, "netprobe-latency", "netprobe latency")
    check_document(built, "netprobe-build", "netprobe build")
    assert found["round_trips"] == found["round_trip_us"]["count"] > 0
    assert built["events"] == built["sources"][0]["fragments"] > 0


@needs_netprobe
@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["latency", "--peer=nowhere"], 2, "give HOST:PORT"),
        (["latency", "--peer=127.0.0.1:1", "--connect=0.2"], 1, "cannot be reached"),
        (["latency", "--peer=127.0.0.1:1", "--message-size=3"], 2, "give 24 to"),
        (["build", "--source=127.0.0.1:1", "--in-flight=0", "--connect=0.2"], 2, "give 1 to 1024 events"),
        (["latency", "--peer=127.0.0.1:1", "--seconds=0"], 2, "--seconds 0: give 0.001 to 86400"),
        (["serve", "--listen=192.0.2.1:5301"], 2, "Give an address of this machine"),
    ],
)
def test_netprobe_refuses_with_the_option_and_the_remedy(argv: list[str], status: int, words: str) -> None:
    done = subprocess.run([str(LAYOUT.netprobe), *argv], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status and words in done.stderr and done.stdout == ""


def test_rdma_that_is_asked_for_and_not_there_is_an_error_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LanSite(LocalMachine(), (), Path("p"), tmp_path, tmp_path, EMULATED)
    ports = [{"node": f"node{n}", "rdma_devices": ["rxe0"] if n else []} for n in range(2)]
    monkeypatch.setattr(LanSite, "describe", lambda self: ports)
    with pytest.raises(BenchError, match="node0 has no RDMA device at its port"):
        lan.Campaign(
            replace(found, emulated={**EMULATED, "nodes": 2}), scenario(engine="rdma"), "switch", lambda *_: None
        )


def card(at: Path, device: str, interface: str, **counters: int) -> None:
    """Makes the kernel's files of an RDMA device: addresses (the first has none), and counters where it counts."""
    port = at / device / "ports" / "1"
    (port / "gid_attrs" / "ndevs").mkdir(parents=True)
    (port / "gid_attrs" / "ndevs" / "0").symlink_to(at / "unreadable")
    (port / "gid_attrs" / "ndevs" / "1").write_text(f"{interface}\n", encoding="ascii")
    (port / "counters").mkdir()
    for name, value in counters.items():
        (port / "counters" / name).write_text(f"{value}\n", encoding="ascii")


def test_rdma_devices_are_found_by_their_addresses_and_their_counters_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bond's, a VLAN's and a soft RoCE device hang at no PCI function of the interface."""
    card(tmp_path, "mlx5_bond_0", "bond0", port_rcv_data=250, port_xmit_data=1000)
    card(tmp_path, "rxe0", "eth1")
    monkeypatch.setattr(rdma, "INFINIBAND", tmp_path)
    assert [rdma.devices_of(name) for name in ("bond0", "eth1", "eth0")] == [["mlx5_bond_0"], ["rxe0"], []]
    host = Host({"node": "node0", "interface": "bond0", "addresses": {}})
    assert host.rdma() == {}
    (host.device,) = rdma.ports_of("bond0")
    assert host.rdma() == {"rdma_rx_bytes": 1000, "rdma_tx_bytes": 4000}  # in words of 4 octets
    (host.device,) = rdma.ports_of("eth1")
    assert host.rdma() == {}  # soft RoCE counts nothing
    assert rdma.ports_of("eth0") == []


def hosts(address: str = "127.0.0.1") -> list[Host]:
    addresses = {"node0": address, "node1": "127.0.0.2", "node2": "127.0.0.3"}
    return [Host({"node": name, "interface": "lo", "addresses": addresses}) for name in addresses]


def test_hosts_begin_when_the_last_of_them_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "PORT", free_ports(1)[0])
    begun: list[float] = []

    def one(host: Host, late_s: float) -> None:
        time.sleep(late_s)
        host.meet()
        begun.append(time.monotonic())

    def stranger() -> None:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", meeting.PORT), timeout=5) as link:
                    link.sendall(b"GET / HTTP/1.0\n")
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    since = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        pool.submit(stranger)
        for done in [pool.submit(one, host, late_s) for host, late_s in zip(hosts(), (0.2, 0.0, 0.6), strict=True)]:
            done.result(timeout=120)
    assert min(begun) - since >= 0.6


def test_hosts_that_do_not_meet_say_who_was_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "PORT", free_ports(1)[0])
    monkeypatch.setattr(meeting, "S_MAX", 0.3)
    first, second, _ = hosts()
    with pytest.raises(NodesError, match=r"did not meet: node1, node2 was not ready within 0\.3 s"):
        first.meet()
    with pytest.raises(NodesError, match=r"node0 \(127\.0\.0\.1, TCP port .* cannot be reached"):
        second.meet()
    with pytest.raises(NodesError, match=r"Correct network\.address in the inventory"):
        hosts("192.0.2.1")[0].meet()  # RFC 5737: nobody's


def test_a_server_counts_as_ready_when_it_listens() -> None:
    code = "import socket, sys; sys.stdin.readline(); s = socket.create_server(('127.0.0.1', 0)); sys.stdin.readline()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert network_nodes.listens(server.pid) is False
        server.stdin.write("\n")
        server.stdin.flush()
        deadline = time.monotonic() + 60
        while not network_nodes.listens(server.pid):
            assert time.monotonic() < deadline
        server.kill()
    assert network_nodes.listens(server.pid) is False


def test_tools_that_do_not_connect_are_started_again_and_those_that_fail_otherwise_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LanSite(LocalMachine(), (), Path("p"), tmp_path, tmp_path, EMULATED)
    tools = Tools(Path("p"), 1, devices={"node0": "mlx5_0", "node1": "mlx5_0"})
    transfer = tools.load(Point.between_two("latency", "direct", "ib_read_lat", 64), 1)
    rejected, broken = "Event: RDMA_CM_EVENT_REJECTED; error: 8.", "Failed to modify QP to RTR"

    def attempts_of(*said: str) -> int:
        left_over = list(said)

        def run(*_: Any) -> list[dict[str, Any]]:
            text = left_over.pop(0) if left_over else ""
            one = {"name": "transfer", "returncode": 1 if text else 0, "stdout": "", "stderr": text}
            return [{"processes": [one], "window": None, "settings": []}]

        monkeypatch.setattr(LanSite, "_run", run)
        return int(found.carry_out(transfer, 1)["attempts"])

    assert [attempts_of(), attempts_of(rejected), attempts_of(*[rejected] * 9), attempts_of(broken)] == [1, 2, 3, 1]


# `tc -s -j qdisc show dev v0` of iproute2 6.1 on a veth with the bench's shaper, and on `lo`
QUEUES = (
    '[{"kind":"tbf","handle":"81ad:","root":true,"refcnt":3,"options":{"rate":125000,"burst":262144,"lat":360448},'
    '"bytes":0,"packets":0,"drops":7,"overlimits":0,"requeues":0,"backlog":0,"qlen":0}]'
)


def answering(answer: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts programs in place of iproute2's that print `answer`."""
    for name in ("tc", "rdma"):
        (folder / name).write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(f"{rows_of.__module__}.SEARCH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def switched(monkeypatch: pytest.MonkeyPatch) -> Namespaces:
    monkeypatch.setattr(f"{rows_of.__module__}.remove_left_behind", lambda letters: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return Namespaces({"nodes": 2, "topology": "switch", "queue_bytes": 1})


def test_a_switch_s_drops_are_those_of_its_ports(
    switched: Namespaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(QUEUES, tmp_path, monkeypatch)
    assert switched.queue_drops() == 14
    answering("[]", tmp_path, monkeypatch)
    assert switched.queue_drops() == 0


@pytest.mark.parametrize(
    "answer", [QUEUES[:-20], "qdisc tbf 81ad: root refcnt 3 rate 1Mbit", "{}", "[1]", "[" * 99_999]
)
def test_an_answer_of_iproute2_that_is_no_list_is_refused_in_words(
    answer: str, switched: Namespaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is cut off, of a tc without -j, or of another program. Without RDMA's listeners the transfer waits a while instead."""
    answering(answer, tmp_path, monkeypatch)
    with pytest.raises(
        NodesError, match=r"tc -s -j qdisc show dev .* lists no rows in JSON, but .* install iproute2 5"
    ):
        switched.queue_drops()
    with pytest.raises(NodesError, match="rdma -j resource show cm_id lists no rows in JSON"):
        rows_of("rdma", "-j", "resource", "show", "cm_id")


def test_a_queue_without_drops_is_refused_in_words(
    switched: Namespaces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering('[{"kind":"tbf","root":true}]', tmp_path, monkeypatch)
    with pytest.raises(NodesError, match="states no drops of a queue: install iproute2 5"):
        switched.queue_drops()


@pytest.mark.parametrize("text", ["", '[["eth0", "mtu"', '[["eth0", "mtu"]]', "{}x", "[7]"])
def test_a_journal_that_was_cut_off_says_that_settings_are_left(text: str, tmp_path: Path) -> None:
    journal = tmp_path / "settings.json"
    journal.write_text(text, encoding="utf-8")
    host = Host({"node": "node0", "interface": "eth0", "addresses": {}})
    with pytest.raises(NodesError, match=r"settings\.json does not name the settings to put back: set them by hand"):
        Settings(host, [], journal)
    assert journal.exists()
