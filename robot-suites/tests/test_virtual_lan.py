"""The LAN between two hosts, both virtual candidates with a cable: perftest over soft RoCE, then iperf3 and netprobe, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from whole_runs import document

from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.settings import Layout
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.virtual_candidate.testing import running_candidate
from daq_bench.workloads.lan.model import perftest

pytestmark = [pytest.mark.virtual, pytest.mark.campaign]

LAYOUT = Layout()
YAML_SAFE = YAML(typ="safe")
ADDRESSES = ("198.18.3.10", "198.18.3.11")  # RFC 2544: benchmarks between hosts
DEVICE = "rxe0"
SHORT = {
    "message_sizes": [4096, 65536], "bidirectional_sizes": [65536], "latency_sizes": [64], "seconds_per_size": 2, "warm_up_s": 1,
}  # fmt: skip
SETTINGS = {
    "pairs": 4, "seconds": 1, "message_size": 65536, "latency_size": 64, "provisioned": False,
    "list": [{"id": "mtu", "untuned": 1500, "tuned": 4200}],  # RoCE: messages of 4096 B instead of 1024 B
}  # fmt: skip
Pair = tuple[VirtualCandidate, VirtualCandidate]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Two machines; each has its end of the cable up, and a soft RoCE device on it."""
    with (
        running_candidate(10**9, "-left", "-right") as left,
        running_candidate(10**9, "-right", "-left") as right,
    ):
        for one, address in zip((left, right), ADDRESSES, strict=True):
            one.run(f"ip address add {address}/24 dev eth1 && ip link set eth1 up")
            one.run(f"modprobe --all rdma_rxe rdma_ucm && rdma link add {DEVICE} type rxe netdev eth1")
        left.run("mkdir /root/scratch")
        yield left, right


@pytest.fixture(scope="module")
def inventory(pair: Pair, inventory_of: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, the first one with the second as its peer; the peer is provisioned as docs/network.md asks."""
    hosts: dict[str, Any] = {}

    def folder_alone(candidate: dict[str, Any]) -> None:
        del candidate["targets"]
        candidate["target"] = {"kind": "scratch-file", "directory": "/root/scratch"}
        candidate["tuning"] = {}

    for one in pair:
        lab = YAML_SAFE.load(inventory_of(one.instance, folder_alone))
        hosts |= lab["all"]["children"]["candidates"]["hosts"]
    left, right = (one.instance.name for one in pair)
    hosts[left]["bench_candidate"]["network"] = {
        "interface": "eth1", "address": ADDRESSES[0], "link": "direct",
        "peers": [{"host": right, "interface": "eth1", "address": ADDRESSES[1]}],
    }  # fmt: skip
    file = tmp_path_factory.mktemp("two-hosts") / "lab.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    done = rig("provision", "--candidate", right, "--inventory", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    return file


def rig(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "daq_bench.rig", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=3600, check=False, env=dict(os.environ))


def measured(pair: Pair, inventory: Path, folder: Path, engine: str) -> Path:
    """The bundle of a run with that engine."""
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "lan-100g.yml").document
    scenario |= {"id": f"two-hosts-{engine}", "scale": 0.0001}  # of 64 Gbit/s: this cable's figures mean nothing
    own = scenario["workloads"]["lan"]
    own |= {"engine": engine, "settings": SETTINGS, **SHORT}
    file = folder / f"{scenario['id']}.yml"
    YAML_SAFE.dump(scenario, file)
    done = rig(
        *("qualify", "--yes", "--candidate", pair[0].instance.name, "--inventory", str(inventory), "--scenario", str(file)),
        *("--requirement", "lan-100g", "--runs", str(folder / "runs"), f"--influx-url=http://127.0.0.1:{free_ports(1)[0]}"),
    )  # fmt: skip
    # 3: two emulated machines on a busy host may starve a sensor, which is no fault of the network's measurement.
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    return (folder / "runs" / "latest").resolve()


@pytest.fixture(scope="module")
def over_rdma(pair: Pair, inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(pair, inventory, tmp_path_factory.mktemp("rdma"), "auto")


@pytest.fixture(scope="module")
def over_tcp(pair: Pair, inventory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(pair, inventory, tmp_path_factory.mktemp("tcp"), "tcp")


def test_perftest_is_chosen_where_both_ports_have_a_device(over_rdma: Path, pair: Pair) -> None:
    found = document(over_rdma, "results/lan.json")
    assert (found["engine"], found["network"]["kind"], found["network"]["topologies"]) == ("rdma", "hosts", ["direct"])
    assert [(port["host"], port["rdma_devices"]) for port in found["ports"]] == [
        (one.instance.name, [DEVICE]) for one in pair
    ]
    assert {one["operation"] for one in found["transfers"]} == {
        "ib_write_bw",
        "ib_read_bw",
        "ib_send_bw",
        "ib_read_lat",
    }


def test_what_perftest_prints_is_read(over_rdma: Path) -> None:
    for transfer in document(over_rdma, "results/lan.json")["transfers"]:
        (flow,) = transfer["flows"]
        assert flow["returncode"] == 0, (transfer["id"], flow["stderr"])
        text = (over_rdma / "results" / "raw" / flow["file"]).read_text(encoding="utf-8")
        if flow["tool"] == "ib_read_lat":
            assert perftest.parse_latency(text, transfer["message_bytes"]).mean_us > 0
        else:
            assert perftest.parse_bandwidth(text, transfer["message_bytes"]).bytes_per_s > 0


@pytest.mark.parametrize("engine", ["over_rdma", "over_tcp"])
def test_no_transfer_fails_and_every_setting_is_read_back_on_both_hosts(
    engine: str, request: pytest.FixtureRequest
) -> None:
    bundle: Path = request.getfixturevalue(engine)
    verdict = document(bundle, "verdict.json")
    assert verdict["outcome"] != "PASS"
    decisions = {one["id"]: one["decision"] for one in verdict["requirements"]}
    assert (decisions["LAN-08"], decisions["LAN-09"]) == ("met", "met"), verdict["requirements"]
    records = [one for transfer in document(bundle, "results/lan.json")["transfers"] for one in transfer["settings"]]
    assert {(one["at"], one["read_back"]) for one in records} == {
        (node, mtu) for node in ("node0", "node1") for mtu in ("1500", "4200")
    }


@pytest.mark.parametrize("engine", ["over_rdma", "over_tcp"])
def test_the_receiving_port_counted_it_and_its_hosts_cpu_is_there(engine: str, request: pytest.FixtureRequest) -> None:
    """Headers are in the port's count, and the stretch is not to the tick the tool's."""
    points = document(request.getfixturevalue(engine), "results/lan_analysis.json")["bandwidth"]
    one_way = [one for one in points if not one["bidirectional"]]
    assert len(one_way) >= 2
    for one in one_way:
        assert 0.5 * one["bytes_per_s"] < one["counted_bytes_per_s"] < 2 * one["bytes_per_s"], one["id"]
        assert set(one["cpu_of_peers"]) == {"node1"}


def test_its_bundle_recomputes(over_rdma: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", "check-bundle", str(over_rdma)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_over_tcp_the_same_hosts_use_iperf3_and_netprobe(over_tcp: Path) -> None:
    found = document(over_tcp, "results/lan.json")
    assert found["engine"] == "tcp"
    assert {one["operation"] for one in found["transfers"]} == {"iperf3", "netprobe latency"}


def test_the_hosts_are_as_they_were(over_rdma: Path, over_tcp: Path, pair: Pair) -> None:
    for one in pair:
        assert one.run("cat /sys/class/net/eth1/mtu").strip() == "1500"
        # Whole names: soft RoCE's kernel threads begin with ib_ too.
        assert one.run("pgrep -cx 'ib_(write|send|read)_(bw|lat)|iperf3|netprobe' || test $? = 1").strip() == "0"
