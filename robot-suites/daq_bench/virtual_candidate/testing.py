"""Fixtures for tests against the virtual candidate; a conftest.py takes them in by importing them.

Each test process has an instance of its own, on free ports, beside a user's; the cached image is shared."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.hardware import DEFAULT_VENDOR
from daq_bench.virtual_candidate.instance import DEFAULT_BASE, Instance, Ports
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.virtual_candidate.vendors import Vendor

LAB = Path(__file__).resolve().parents[3] / "inventory" / "lab.yml"
PREFIX = "test-"  # then the test process's pid


def entry_of(at: Instance) -> dict[str, Any]:
    """The shipped inventory's entry of the virtual candidate, with the instance's ports and keys.

    Its firmware is asked for nothing: a reboot takes a minute under emulation, and the tests of the bios role have one."""
    lab = YAML(typ="safe").load(LAB)
    host: dict[str, Any] = lab["all"]["children"]["candidates"]["hosts"]["virtual"]
    known = f"-o UserKnownHostsFile='{at.ssh / 'known_hosts'}' -o StrictHostKeyChecking=yes"
    host |= {"ansible_port": at.ports.ssh, "ansible_ssh_common_args": known}
    host["ansible_ssh_private_key_file"] = str(at.ssh / "id_ed25519")
    candidate = host["bench_candidate"]
    candidate["bmc"] |= {"ipmi_port": at.ports.ipmi, "redfish_port": at.ports.redfish}
    candidate["bmc"] |= {"redfish_ca_file": str(at.tls / "ca.pem"), "password_file": str(at.password_file)}
    candidate["tuning"] = {"aio_max_nr": 1048576, "queue_scheduler": "none", "fan_mode": "full"}
    return host


def clear_left_overs() -> None:
    """Ends the instances of test processes that were killed."""
    for folder in DEFAULT_BASE.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and processes.identity_of(int(pid)) is None:
            VirtualCandidate(Instance(DEFAULT_BASE, folder.name)).down()


def bios_path(vendor: Vendor) -> str:
    return f"/redfish/v1/Systems/{vendor.system}/Bios"


def settings_path(bmc: Bmc, vendor: Vendor) -> str:
    """The path as a client finds it: by the link in the BIOS resource."""
    document = bmc.redfish(bios_path(vendor))[1]
    return str(document["@Redfish.Settings"]["SettingsObject"]["@odata.id"])


def fan_readings(bmc: Bmc) -> list[int]:
    """RPM of the four fans, over IPMI."""
    lines = bmc.ipmitool("sdr", "type", "fan").splitlines()
    return [int(line.split("|")[4].split()[0]) for line in lines]


def wait_for_fans(bmc: Bmc, wanted: list[int]) -> None:
    """Waits until the fans read as wanted, at most 10 s: ipmi_sim looks at the sensor files four times a second."""
    deadline = time.monotonic() + 10
    while (readings := fan_readings(bmc)) != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert readings == wanted


@contextmanager
def running_candidate(drive_bytes: int, suffix: str = "", wired_to: str | None = None) -> Iterator[VirtualCandidate]:
    """A virtual candidate of this test process that is up; at the end it is taken down, and nothing of it may be left.

    `wired_to`: the suffix of another one of this process."""
    clear_left_overs()
    ports = Ports(*free_ports(4))
    own = f"{PREFIX}{os.getpid()}"
    other = own + wired_to if wired_to is not None else None
    candidate = VirtualCandidate(Instance(name=own + suffix, ports=ports, drive_bytes=drive_bytes, wired_to=other))
    candidate.up()
    try:
        yield candidate
    finally:
        candidate.down()
        (candidate.instance.cache / f"{candidate.instance.name}.lock").unlink()  # nobody uses this name again
    assert not candidate.instance.directory.exists()
    assert processes.strays(candidate.instance.directory) == []


@pytest.fixture(scope="session")
def virtual_machine() -> Iterator[VirtualCandidate]:
    """A virtual candidate that is up, shared by the session's tests: each of them leaves it unchanged."""
    with running_candidate(10**9) as candidate:
        yield candidate


@pytest.fixture
def start_bmc(tmp_path: Path) -> Iterator[Callable[..., Bmc]]:
    """A function that starts a BMC without a machine: `start_bmc(vendor="dell")`. It ends with the test."""
    with ExitStack() as stack:

        def start(vendor: str = DEFAULT_VENDOR) -> Bmc:
            lan, redfish, system = free_ports(3)
            bmc = Bmc(tmp_path / f"bmc-{lan}", lan, redfish, system, vendor, cache=DEFAULT_BASE / "cache")
            return stack.enter_context(bmc)

        yield start
