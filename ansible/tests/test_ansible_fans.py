"""The role fans' module against a virtual BMC: commands to each vendor's BMC, records, refusals."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.bench_bmc.errors import BmcError, password_of
from ansible.module_utils.bench_bmc.fan_control import Asked, Fans, Run, vendor_of
from ansible.module_utils.bench_bmc.fan_guard import GuardControl
from ansible.module_utils.bench_bmc.fans import fallen, settled, speeds
from ansible.module_utils.bench_bmc.first_values import FirstValues, FirstValuesError
from ansible.module_utils.bench_bmc.ipmi import Bmc as Connection
from ansible.module_utils.bench_bmc.ipmi import Ipmi, parse_fans
from bmc_runs import GUARD
from playbook_runs import ANSIBLE

from daq_bench.telemetry_agent.devices.ipmi_text import parse_sensors
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.ports import free_ports
from daq_bench.virtual_candidate.testing import fan_readings

VENDORS: dict[str, Any] = yaml.safe_load((ANSIBLE / "roles/fans/vars/main/vendors.yml").read_text())["__fans_vendors"]
FULL, AUTOMATIC, KEEP = Asked("full", settle_s=10), Asked("automatic"), Asked("keep")


class Server:
    """A server whose fans are set; each property is made anew, as by a new run of the module."""

    def __init__(self, bmc: Bmc, directory: Path) -> None:
        self.bmc, self.directory = bmc, directory / "state"
        self.connection = Connection("127.0.0.1", bmc.ipmi_port, bmc.user, 3, bmc.password, "BENCH_PASSWORD")
        self.guard = GuardControl(str(GUARD), str(self.directory), "")

    def fans(self, vendor: str | None = "") -> Fans:
        """Return the fans; vendor None: nobody looked for it, since nothing is asked."""
        ipmi = Ipmi(self.connection)
        state = FirstValues(str(self.directory / "fans-before.json"), "BMC 127.0.0.1")
        return Fans(ipmi, None if vendor is None else vendor_of(ipmi, vendor, VENDORS), state, self.guard)

    def accepted(self) -> list[str]:
        """Return the commands that the BMC has accepted, without those that only read."""
        return [line for line in self.bmc.accepted() if line != "0x45 0x00"]


def by_id(run: Run) -> dict[str, dict[str, str]]:
    """Return a run's records keyed by setting."""
    return {record["id"]: record for record in run.records}


@pytest.fixture
def server(bmc: Bmc, tmp_path: Path) -> Any:
    """Give a test a server; its guard does not outlive the test."""
    server = Server(bmc, tmp_path)
    yield server
    server.guard.release()


FULL_COMMANDS = {
    "supermicro": ["0x45 0x01 0x01", "0x70 0x66 0x01 0x00 0x64", "0x70 0x66 0x01 0x01 0x64"],
    "dell": ["0x30 0x01 0x00", "0x30 0x02 0xff 0x64"],
}
BACK_COMMANDS = {"supermicro": ["0x45 0x01 0x00"], "dell": ["0x30 0x01 0x01"]}


@pytest.mark.parametrize(("bmc", "vendor"), [("supermicro", "supermicro"), ("dell", "dell")], indirect=["bmc"])
def test_full_speed_and_back(server: Server, vendor: str) -> None:
    """The vendor is found by its enterprise number; a second run sends nothing; restore ends the guard."""
    pretended = server.fans().apply(FULL, pretend=True)
    assert pretended.changed
    assert "check mode" in by_id(pretended)["fan-mode"]["detail"]
    assert server.accepted() == []
    assert not server.directory.exists()

    first = server.fans().apply(FULL, pretend=False)
    records = by_id(first)
    assert (first.changed, records["fan-mode"]["status"], records["fan-speed"]["status"]) == (
        True,
        "applied",
        "applied",
    )
    assert records["fan-mode"]["read_back"] == "full"
    assert records["fan-speed"]["before"] == "Fan1 5000 RPM, Fan2 5000 RPM, FanA 5000 RPM, FanB 5000 RPM"
    assert records["fan-speed"]["read_back"] == "Fan1 10000 RPM, Fan2 10000 RPM, FanA 10000 RPM, FanB 10000 RPM"
    assert records["fan-guard"]["status"] == "applied"
    assert server.accepted() == FULL_COMMANDS[vendor]
    memory = (server.directory / "fans-before.json").read_text()

    second = server.fans().apply(FULL, pretend=False)
    assert not second.changed
    assert {record["status"] for record in second.records} == {"unchanged"}
    assert (server.directory / "fans-before.json").read_text() == memory
    verified = server.fans().verify(FULL)
    assert {record["status"] for record in verified.records} == {"unchanged"}
    assert server.accepted() == FULL_COMMANDS[vendor]

    back = server.fans().restore(pretend=False)
    assert (back.changed, by_id(back)["fan-mode"]["status"]) == (True, "applied")
    assert server.accepted() == FULL_COMMANDS[vendor] + BACK_COMMANDS[vendor]
    assert server.bmc.sensors.fan_mode().name == "standard"
    assert not server.guard.status()["guard"]
    assert [path.name for path in server.directory.iterdir()] == ["fans-guard.log"]


def test_the_mode_from_before_comes_back_not_just_any_automatic_one(server: Server) -> None:
    """It comes back also when the guard has to do it, and after two provisions."""
    server.bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x02")
    server.fans().apply(FULL, pretend=False)
    server.fans().apply(FULL, pretend=False)
    assert '"0x02"' in Path(server.guard.plan).read_text()
    back = server.fans().restore(pretend=False)
    assert by_id(back)["fan-mode"]["asked"] == "optimal"
    assert server.bmc.sensors.fan_mode().name == "optimal"


def test_the_machine_s_own_ipmi_device_works_the_same(server: Server, tmp_path: Path, monkeypatch: Any) -> None:
    """Without an address, ipmitool gets no connection and no password. The LAN plays its way to the BMC here."""
    lan = " ".join(["ipmitool -I lanplus -C 3 -E -H 127.0.0.1 -U admin -p", str(server.bmc.ipmi_port)])
    (tmp_path / "bin").mkdir()
    in_band = tmp_path / "bin/ipmitool"
    in_band.write_text(f'#!/bin/sh\nIPMI_PASSWORD={server.bmc.password} exec /usr/bin/env PATH=/usr/bin {lan} "$@"\n')
    in_band.chmod(0o755)
    monkeypatch.setattr("ansible.module_utils.bench_bmc.ipmi.find_ipmitool", lambda: str(in_band))
    server.connection = Connection()
    assert by_id(server.fans().apply(FULL, pretend=False))["fan-mode"]["status"] == "applied"
    assert json.loads(Path(server.guard.plan).read_text())["command"] == [str(in_band)]
    server.guard.arm(server.fans().ipmi, server.fans().guard_steps(server.fans().vendor), 0.5)
    deadline = time.monotonic() + 15
    while server.bmc.sensors.fan_mode().name != "standard" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert server.bmc.sensors.fan_mode().name == "standard"


def test_full_speed_that_somebody_else_has_set_is_left_to_him(server: Server) -> None:
    """No guard, no state: the bench gives back only what it took."""
    server.bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")
    run = server.fans().apply(FULL, pretend=False)
    assert not run.changed
    assert "before the bench came" in by_id(run)["fan-mode"]["detail"]
    assert not server.directory.exists()
    automatic = server.fans().apply(AUTOMATIC, pretend=False)
    assert by_id(automatic)["fan-mode"]["status"] == "applied"
    assert not server.fans().apply(AUTOMATIC, pretend=False).changed
    server.fans().restore(pretend=False)
    assert server.bmc.sensors.fan_mode().name == "full"


FANS = ["Fan1", "Fan2", "FanA", "FanB"]


def let_stand_still(server: Server, fan: str) -> None:
    """Stop this fan alone, and wait until the simulator, which looks at its sensors four times a second, has seen it."""
    server.bmc.sensors.stop_fan(fan)
    until_s = time.monotonic() + 60
    while [name for name, rpm in zip(FANS, fan_readings(server.bmc), strict=True) if rpm == 0] != [fan]:
        assert time.monotonic() < until_s
        time.sleep(0.1)


def test_a_fan_that_stands_still_is_named(server: Server) -> None:
    """Full speed with a dead fan is a mismatch, before and afterwards."""
    let_stand_still(server, "FanA")
    record = by_id(server.fans().apply(FULL, pretend=False))["fan-speed"]
    assert (record["status"], record["detail"]) == ("mismatch", "FanA stands still (0 RPM)")
    kept = by_id(server.fans(None).apply(KEEP, pretend=False))["fan-speed"]
    assert kept["detail"] == "FanA stands still (0 RPM)"
    server.bmc.sensors.start_fan("FanA")
    let_stand_still(server, "Fan1")
    record = by_id(server.fans().verify(FULL))["fan-speed"]
    assert record["status"] == "mismatch"
    assert "Fan1 fell from 10000 to 0 RPM; Fan1 stands still (0 RPM)" in record["detail"]


def test_a_mode_that_was_changed_behind_the_bench_is_a_mismatch(server: Server) -> None:
    """The next provision sets it again, under a new guard if the old one is gone."""
    server.fans().apply(FULL, pretend=False)
    server.bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x00")
    records = by_id(server.fans().verify(FULL))
    assert (records["fan-mode"]["status"], records["fan-mode"]["detail"]) == ("mismatch", "asked full, reads standard")
    assert server.fans().apply(FULL, pretend=False).changed
    assert server.bmc.sensors.fan_mode().name == "full"


def test_a_guard_that_was_killed_is_noticed_by_verify_and_mended_by_provision(server: Server) -> None:
    """Without a guard, nothing would give the fans back."""
    server.fans().apply(FULL, pretend=False)
    os.kill(server.guard.status()["pid"], signal.SIGKILL)
    record = by_id(server.fans().verify(FULL))["fan-guard"]
    assert record["status"] == "mismatch"
    assert "no guard is at work" in record["detail"]
    run = server.fans().apply(FULL, pretend=False)
    assert run.changed
    assert "was started again" in by_id(run)["fan-guard"]["detail"]
    assert server.accepted() == FULL_COMMANDS["supermicro"]
    os.kill(server.guard.status()["pid"], signal.SIGKILL)
    server.fans().restore(pretend=False)
    assert server.bmc.sensors.fan_mode().name == "standard"


@pytest.mark.parametrize("bmc", ["hpe", "lenovo"], indirect=True)
def test_a_vendor_without_a_known_way_is_unsupported_and_its_fans_are_read(server: Server) -> None:
    """The record says why and what to do instead; nothing is sent."""
    records = by_id(server.fans().apply(FULL, pretend=False))
    assert records["fan-mode"]["status"] == "unsupported"
    assert "leave fan_mode out" in records["fan-mode"]["detail"]
    assert "Fan1 5000 RPM" in records["fan-speed"]["read_back"]
    assert server.accepted() == []
    assert not server.directory.exists()


@pytest.mark.parametrize("bmc", ["dell"], indirect=True)
def test_a_bmc_that_refuses_the_vendor_s_command_is_recorded_with_its_answer(server: Server) -> None:
    """The test sends another vendor's sequence; iDRAC9 refuses its own since 3.34. No guard and no state stay behind."""
    entry = {**VENDORS["supermicro"], "modes": VENDORS["supermicro"]["modes"]}
    fans = server.fans("dell")
    assert fans.vendor is not None
    fans.vendor.data = {**VENDORS["dell"], "full": entry["full"]}
    record = by_id(fans.apply(FULL, pretend=False))["fan-mode"]
    assert record["status"] == "refused"
    assert "the BMC refused raw 0x30 0x45 0x01 0x01: Invalid command (completion code 0xc1)" in record["detail"]
    assert "iDRAC9 from 3.34 on" in record["detail"]
    assert not server.guard.status()["guard"]
    assert not (server.directory / "fans-before.json").exists()


REFUSALS = {
    "wrong password": ({"password": "wrong-password"}, ["it refuses this user and password", "BENCH_PASSWORD"]),
    "unknown user": ({"user": "nobody"}, ["user nobody", "it refuses this user and password"]),
    "wrong cipher suite": ({"cipher_suite": 17}, ["it refuses cipher suite 17", "bmc.cipher_suite (ipmitool -C): 3"]),
    "unknown name": ({"address": "bmc.invalid"}, ["its name cannot be resolved", "bmc.address"]),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_bmc_that_cannot_be_entered_is_refused_with_cause_and_remedy(server: Server, case: str) -> None:
    """Address, port and user stand in the message; the password never does."""
    change, parts = REFUSALS[case]
    server.connection = dataclasses.replace(server.connection, **change)
    with pytest.raises(BmcError) as caught:
        server.fans("supermicro").apply(KEEP, pretend=False)
    text = str(caught.value)
    for part in [*parts, f"port {server.bmc.ipmi_port}", "Remedy"]:
        assert part in text
    assert server.connection.password not in text + repr(server.connection)


def test_a_bmc_that_does_not_answer_is_refused_with_what_to_check(server: Server) -> None:
    """The cipher suite is hinted at, since some BMCs keep silent for a wrong one."""
    (port,) = free_ports(1)
    server.connection = dataclasses.replace(server.connection, port=port)
    with pytest.raises(BmcError, match=f"127.0.0.1 port {port}, user admin: it does not answer .*cipher_suite: 3"):
        server.fans("supermicro").apply(KEEP, pretend=False)


def test_an_unknown_vendor_is_refused_by_name(server: Server) -> None:
    """It is refused both when the inventory names it and when the BMC's enterprise number is in no entry."""
    with pytest.raises(
        BmcError, match=r"bmc.vendor is acme; known to the role fans: dell, gigabyte, hpe, lenovo, nvidia"
    ):
        server.fans("acme")
    ipmi = Ipmi(server.connection)
    with pytest.raises(BmcError, match=r"manufacturer ID 10876 is of no known vendor; set bmc.vendor to one of dell"):
        vendor_of(ipmi, "", {"dell": VENDORS["dell"]})


def test_the_password_comes_from_where_the_inventory_says_or_is_refused() -> None:
    """A variable that is not set is named."""
    assert password_of("", "NAME", {"NAME": "x"}) == "x"
    assert password_of("vault", "NAME", {}) == "vault"
    with pytest.raises(BmcError, match=r"the environment variable NAME .* is not set"):
        password_of("", "NAME", {})
    with pytest.raises(BmcError, match="has no password_env"):
        password_of("", "", {})


def test_a_state_file_of_another_bmc_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    """Values of one server must never be written to another."""
    path = tmp_path / "fans-before.json"
    state = FirstValues(str(path), "BMC 10.0.0.1")
    state.values["mode"] = "standard"
    state.save()
    with pytest.raises(
        FirstValuesError, match=r"holds the values of BMC 10.0.0.1, the inventory now names BMC 10.0.0.2"
    ):
        FirstValues(str(path), "BMC 10.0.0.2")
    path.write_text("{")
    with pytest.raises(FirstValuesError, match="not a readable state file"):
        FirstValues(str(path), "BMC 10.0.0.1")


def test_speeds_are_read_and_judged() -> None:
    """Redundancy sensors are no fans; a missing reading is not 0 RPM; 5 % and the sensor's steps are allowed for."""
    text = "FAN1,6000,RPM,ok\nFAN2,,,ns\nFan Redundancy,0x01,,ok\nFAN3,0,RPM,cr\nPSU Fan,Fully Redundant,ok\n"
    fans = parse_fans(text)
    assert fans == {"FAN1": 6000.0, "FAN2": None, "FAN3": 0.0}
    assert parse_fans("Fan_SYS0_2,4700,% RPM,ok\nTemp_CPU0,54,% degrees C,ok\n") == {"Fan_SYS0_2": 4700.0}
    assert speeds(fans) == "FAN1 6000 RPM, FAN2 no reading, FAN3 0 RPM"
    assert parse_fans("FAN,6000,RPM,ok\nFAN,0,RPM,cr\nFAN,,,ns\n") == {"FAN": 6000.0, "FAN #2": 0.0, "FAN #3": None}
    assert fallen({"a": 6000.0, "b": None, "c": 0.0}, {"a": 5750.0, "b": None, "c": 0.0}) == []
    assert fallen({"a": 6000.0}, {"a": None}) == ["a fell from 6000 to 0 RPM"]
    assert settled({"a": 9900.0}, {"a": 10000.0})
    assert not settled({"a": 8000.0}, {"a": 10000.0})


@pytest.mark.parametrize(
    ("printed", "status", "fans"),
    [
        ("FAN1,5400,RPM,ok\\n", 1, {"FAN1": 5400.0}),  # what ipmitool has read counts, whatever it failed at besides
        ("FAN1,,,ns\\n", 1, None),
        ("", 1, None),
        ("FAN1,,,ns\\n", 0, {"FAN1": None}),
    ],
)
def test_fans_that_were_read_count_beside_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, status: int, fans: dict[str, float | None] | None
) -> None:
    program = tmp_path / "ipmitool"
    program.write_text(f"#!/bin/sh\nprintf '{printed}'\necho 'Get Device ID command failed: 0xc9' >&2\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ipmi = Ipmi(Connection())
    if fans is None:
        with pytest.raises(BmcError, match="Get Device ID command failed: 0xc9"):
            ipmi.fans()
    else:
        assert ipmi.fans() == fans


def test_every_vendor_s_entry_is_complete() -> None:
    """Each entry has a source, and a way there and a way back, or the reason why there is none."""
    for key, data in VENDORS.items():
        assert data["source"], key
        if "unsupported" in data:
            assert "full" not in data, key
            continue
        assert data["known_for"], key
        assert data["full"] and data["automatic"], key
        sent = [step["send"] for name in ("full", "automatic") for step in data[name]]
        assert all(0 <= byte <= 0xFF for send in sent for byte in send), key


def test_the_role_reads_each_fan_as_the_agent_does() -> None:
    """A share of full speed taken for RPM made a fan at 43 % one that had nearly stopped."""
    # StarlingX' hardware monitor (Wind River, ipmiClient.h) flags all sensors; HPE's E930t states shares (its iLO 6).
    text = """\
Fan_SYS0_2,4700,% RPM,ok,29.1,Fan Device,Fan
Fan_SYS0_3,0,% RPM,Lower Critical,29.2,Fan Device,Fan
Fan_SYS0_4,43.512,% RPM,ok,29.3,Fan Device,Fan
Fan_SYS0_5,100,% RPM,ok,29.4,Fan Device,Fan
Fan 1 DutyCycle,21.952,percent,ok,29.5,Fan Device,Fan
FAN1,6000,RPM,ok,29.6,Fan Device,Fan
FAN1,5900,RPM,ok,29.6,Fan Device,Fan
"""
    readings, faults = parse_sensors(text)
    assert faults == []
    assert parse_fans(text) == {one.sensor: one.value for one in readings if one.unit == "RPM"}
    assert parse_fans(text) == {"Fan_SYS0_2": 4700.0, "Fan_SYS0_3": 0.0, "FAN1": 6000.0, "FAN1 #2": 5900.0}
