"""The virtual candidate, booted once: what a guest and its BMC see of hardware, of each hazard, and of each hazard's release."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.instance import Ports
from daq_bench.virtual_candidate.testing import bios_path, fan_readings, settings_path, wait_for_fans
from daq_bench.virtual_candidate.vendors import VENDORS

pytestmark = pytest.mark.virtual

MB = 10**6
REFERENCE, NAND = "VCXP0001", ("VCNA0001", "VCNA0002", "VCNA0003")
VENDOR = VENDORS["supermicro"]


def drives(machine: VirtualCandidate) -> dict[str, dict[str, Any]]:
    """The guest's NVMe drives by serial, as lsblk has them."""
    listed = json.loads(machine.run("lsblk --json --bytes --nodeps -o NAME,SERIAL,SIZE,LOG-SEC,MODEL"))
    return {drive["serial"]: drive for drive in listed["blockdevices"] if drive["name"].startswith("nvme")}


def device(serial: str) -> str:
    return f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}"


def smart(machine: VirtualCandidate, serial: str) -> dict[str, Any]:
    # Exit status 8: the drive's health is failing, as a critical warning says.
    document: dict[str, Any] = json.loads(machine.run(f"smartctl -j -a {device(serial)} || test $? -eq 8"))
    return document["nvme_smart_health_information_log"]


def write_s(machine: VirtualCandidate, serial: str, megabytes: int) -> float:
    """Returns how long the guest takes to write that much to the drive itself, by dd."""
    command = f"dd if=/dev/zero of={device(serial)} bs=1MB count={megabytes} conv=fsync"
    said = machine.run(f"{{ LC_ALL=C {command}; }} 2>&1", timeout_s=120)
    match = re.search(r"copied, ([0-9.e-]+) s", said)
    assert match, said
    return float(match[1])


def wait_until(holds: Callable[[], bool], what: str, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.2)


def test_the_guest_has_two_numa_nodes_and_each_drive_its_own(virtual_machine: VirtualCandidate) -> None:
    assert virtual_machine.run("ls -d /sys/devices/system/node/node[0-9]* | wc -l").strip() == "2"
    lines = virtual_machine.run(
        "for c in /sys/class/nvme/nvme*; do echo $(cat $c/serial) $(cat $c/device/numa_node); done"
    )
    assert dict(line.split() for line in lines.splitlines()) == {
        REFERENCE: "0",
        "VCNA0001": "0",
        "VCNA0002": "1",
        "VCNA0003": "1",
    }


def test_drives_have_their_serials_block_sizes_and_a_model_that_tells(virtual_machine: VirtualCandidate) -> None:
    found = drives(virtual_machine)
    assert set(found) == {REFERENCE, *NAND}
    assert {serial: drive["log-sec"] for serial, drive in found.items()} == {
        REFERENCE: 4096,
        **dict.fromkeys(NAND, 512),
    }
    assert all("QEMU" in drive["model"] for drive in found.values())


def test_smart_counts_what_is_written(virtual_machine: VirtualCandidate) -> None:
    before = smart(virtual_machine, REFERENCE)["data_units_written"]
    write_s(virtual_machine, REFERENCE, 8)
    assert smart(virtual_machine, REFERENCE)["data_units_written"] >= before + 15  # a data unit is 512,000 bytes
    log = json.loads(virtual_machine.run(f"nvme smart-log -o json {device(REFERENCE)}"))
    assert int(log["data_units_written"]) >= before + 15


def test_in_band_and_over_lan_the_bmc_gives_the_same_readings(virtual_machine: VirtualCandidate) -> None:
    in_band = virtual_machine.run("ipmitool sdr type fan; ipmitool sdr type temperature")
    lan = virtual_machine.bmc.ipmitool("sdr", "type", "fan") + virtual_machine.bmc.ipmitool(
        "sdr", "type", "temperature"
    )
    assert "RPM" in lan
    assert in_band.splitlines() == lan.splitlines()
    assert "420 Watts" in virtual_machine.run("ipmitool dcmi power reading")


def test_a_fan_command_in_band_moves_the_fans(virtual_machine: VirtualCandidate) -> None:
    bmc = virtual_machine.bmc
    virtual_machine.run("ipmitool raw 0x30 0x45 0x01 0x01")
    wait_for_fans(bmc, [10000] * 4)
    told = bmc.commands()[-1]
    assert (told["channel"], told["data"]) == (15, "0x01 0x01")  # channel 15: the system interface
    bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x00")
    wait_for_fans(bmc, [5000] * 4)


def test_a_throttled_drive_is_slow_and_warns_until_it_is_released(virtual_machine: VirtualCandidate) -> None:
    serial = NAND[0]
    virtual_machine.hazards.throttle(serial, 10 * MB)
    assert virtual_machine.status()["hazards"]["throttled"] == {serial: 10 * MB}
    assert smart(virtual_machine, serial)["critical_warning"] == 2
    assert smart(virtual_machine, NAND[1])["critical_warning"] == 0
    slow_s = write_s(virtual_machine, serial, 30)
    assert slow_s > 2  # 30 MB at 10 MB/s, less what the limit lets through at its start
    virtual_machine.hazards.release_throttle(serial)
    assert smart(virtual_machine, serial)["critical_warning"] == 0
    assert write_s(virtual_machine, serial, 30) < slow_s / 2
    assert virtual_machine.status()["hazards"]["throttled"] == {}


def test_temperatures_rise_and_fall(virtual_machine: VirtualCandidate) -> None:
    hazards, bmc = virtual_machine.hazards, virtual_machine.bmc

    def reading(name: str) -> str:
        return next(line for line in virtual_machine.run("ipmitool sdr").splitlines() if line.startswith(name))

    hazards.raise_inlet(47)
    hazards.raise_bay("VCNA0002", 75)
    wait_until(lambda: "47 degrees" in reading("Inlet") and "75 degrees" in reading("Bay3"), "temperatures up")
    assert reading("Inlet").split("|")[2].strip() == "cr"  # above its critical threshold of 45 degrees
    assert hazards.in_force()["raised_temperatures_c"] == {"Inlet Temp": 47, "Bay3 Temp": 75}
    hazards.release_inlet()
    hazards.release_bay("VCNA0002")
    wait_until(lambda: "24 degrees" in reading("Inlet") and "39 degrees" in reading("Bay3"), "temperatures down")
    assert "Temperature" in bmc.ipmitool("sel", "list")


def test_a_stopped_fan_is_seen_in_band(virtual_machine: VirtualCandidate) -> None:
    virtual_machine.hazards.stop_fan("FanA")
    wait_until(lambda: "| 0 RPM" in virtual_machine.run("ipmitool sdr get FanA -c; ipmitool sdr type fan"), "0 RPM")
    assert virtual_machine.status()["hazards"]["stopped_fans"] == ["FanA"]
    virtual_machine.hazards.release_fan("FanA")
    wait_for_fans(virtual_machine.bmc, [5000] * 4)


def test_writes_fail_and_work_again(virtual_machine: VirtualCandidate) -> None:
    serial = NAND[1]
    virtual_machine.hazards.fail_writes(serial)
    with pytest.raises(BenchError, match="Input/output error"):
        virtual_machine.run(f"dd if=/dev/zero of={device(serial)} bs=1MB count=1 conv=fsync")
    virtual_machine.run(f"dd if={device(serial)} of=/dev/null bs=1M count=1 iflag=direct")
    virtual_machine.hazards.release_writes(serial)
    write_s(virtual_machine, serial, 1)


def test_a_pulled_drive_is_gone_and_comes_back_with_its_content(virtual_machine: VirtualCandidate) -> None:
    serial = NAND[2]
    virtual_machine.run(f"echo 'still here' | dd of={device(serial)} conv=fsync status=none")
    virtual_machine.hazards.pull(serial)
    assert serial not in drives(virtual_machine)
    assert virtual_machine.status()["hazards"]["pulled"] == [serial]
    virtual_machine.hazards.put_back(serial)
    wait_until(lambda: serial in drives(virtual_machine), "the drive is back")
    first = virtual_machine.run(f"head -c 10 {device(serial)}")
    assert first == "still here"


def test_another_drive_in_a_slot_has_its_own_serial_and_the_content(virtual_machine: VirtualCandidate) -> None:
    serial, another, hazards = NAND[2], "VCNA0009", virtual_machine.hazards
    virtual_machine.run(f"echo 'still here' | dd of={device(serial)} conv=fsync status=none")
    for wrong in (NAND[1], serial, "", "lower", "V" * 21):
        with pytest.raises(BenchError, match="is no serial of another drive"):
            hazards.swap(serial, wrong)
    assert serial in drives(virtual_machine)
    for _ in range(2):  # the second time it is there already
        hazards.swap(serial, another)
        wait_until(lambda: another in drives(virtual_machine), "the other drive is there")
        assert serial not in drives(virtual_machine)
    assert virtual_machine.status()["hazards"]["swapped"] == {serial: another}
    assert virtual_machine.run(f"head -c 10 {device(another)}") == "still here"
    hazards.pull(serial)  # the slot is named by the drive that belongs there
    assert another not in drives(virtual_machine)
    hazards.release_all()
    wait_until(lambda: serial in drives(virtual_machine), "the drive is back")
    assert (hazards.in_force()["swapped"], hazards.in_force()["pulled"]) == ({}, [])


def test_up_again_finds_it_up_and_refuses_other_settings(virtual_machine: VirtualCandidate) -> None:
    assert virtual_machine.up() is False
    with pytest.raises(BenchError, match="other settings \\(vendor\\)"):
        VirtualCandidate(replace(virtual_machine.instance, vendor="dell")).up()
    assert virtual_machine.status()["up"] is True


def test_a_taken_ssh_port_is_refused_and_nothing_is_left(virtual_machine: VirtualCandidate) -> None:
    taken = virtual_machine.instance.ports.ssh
    other = VirtualCandidate(replace(virtual_machine.instance, name="test-port", ports=Ports(ssh=taken)))
    with pytest.raises(BenchError, match=rf"port {taken}/tcp .* --ssh-port"):
        other.up()
    assert not other.instance.directory.exists()


def test_every_listening_socket_is_on_loopback(virtual_machine: VirtualCandidate) -> None:
    ports = virtual_machine.instance.ports
    for port in (ports.ssh, ports.redfish, ports.system):
        with socket.socket() as probe:  # taken on loopback, free on the machine's other addresses
            probe.bind(("127.0.0.2", port))


def test_bios_attributes_come_into_force_when_the_guest_restarts(virtual_machine: VirtualCandidate) -> None:
    bmc = virtual_machine.bmc
    assert bmc.redfish(settings_path(bmc, VENDOR), "PATCH", {"Attributes": {"TurboMode": "Disable"}})[0] == 200
    assert bmc.redfish(bios_path(VENDOR))[1]["Attributes"]["TurboMode"] == "Enable"
    virtual_machine.run("echo kept > /var/lib/over-a-restart; sync")
    boot = virtual_machine.boot_id()
    virtual_machine.run("systemctl reboot")
    virtual_machine.wait(after_boot=boot)
    assert bmc.redfish(bios_path(VENDOR))[1]["Attributes"]["TurboMode"] == "Disable"
    assert virtual_machine.run("cat /var/lib/over-a-restart") == "kept\n"
    assert bmc.power.actions()[-1] == "guest-reset"


def test_a_power_cut_and_a_cold_boot_with_a_drive_missing(virtual_machine: VirtualCandidate) -> None:
    bmc, hazards = virtual_machine.bmc, virtual_machine.hazards
    virtual_machine.run("echo kept > /var/lib/over-a-cut; sync; ipmitool raw 0x30 0x45 0x01 0x01")
    boot = virtual_machine.boot_id()
    hazards.cut_power()
    assert "is off" in bmc.ipmitool("chassis", "power", "status")
    assert hazards.in_force()["power_on"] is False
    assert fan_readings(bmc) == [10000] * 4  # the BMC has its standby supply
    with pytest.raises(BenchError):
        virtual_machine.run("true", timeout_s=15)
    hazards.pull(NAND[2])
    bmc.ipmitool("chassis", "power", "on")
    virtual_machine.wait(after_boot=boot)
    assert set(drives(virtual_machine)) == {REFERENCE, *NAND[:2]}
    assert virtual_machine.run("cat /var/lib/over-a-cut") == "kept\n"
    assert "10000 RPM" in virtual_machine.run("ipmitool sdr type fan")
    virtual_machine.run("ipmitool raw 0x30 0x45 0x01 0x00")  # as the next test file expects them
    wait_for_fans(bmc, [5000] * 4)
    hazards.release_all()
    wait_until(lambda: NAND[2] in drives(virtual_machine), "the drive is back")
    assert hazards.in_force()["pulled"] == []


def test_a_service_that_died_is_noticed(virtual_machine: VirtualCandidate) -> None:
    """Last: it takes the BMC's Redfish service away."""
    processes.stop(virtual_machine.instance.record("redfish"))
    status = virtual_machine.status()
    assert (status["up"], status["processes"]["redfish"]) == (False, False)
