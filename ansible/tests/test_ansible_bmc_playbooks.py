"""The playbooks with a virtual BMC, run as rig runs them: both roles, their refusals, and no secret anywhere."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from bmc_runs import PASSWORD_VARIABLE, BmcBench
from playbook_runs import fake_cpus

from daq_bench.virtual_candidate.ports import free_ports

BIOS = {"bios_power_profile": "maximum-performance", "bios_cstates": "off", "bios_turbo": "on"}


@pytest.fixture
def candidate(bmc_bench: BmcBench) -> Any:
    """Give a test a candidate; its fan guard does not outlive the test."""
    yield bmc_bench
    bmc_bench.guard("release")


def test_provision_verify_and_restore_through_a_bmc_without_a_word_of_the_password(candidate: BmcBench) -> None:
    """Check mode, provision with -vvv, provision again, verify, restore; the BMC's log and its BIOS judge."""
    fake_cpus(candidate.sysfs, {"cpu0": "powersave"})
    candidate.tuning.update(fan_mode="full", cpu_governor="performance", **BIOS)
    bmc, factory = candidate.device, candidate.device.bios.current()

    check = candidate.run("provision.yml", "--check")
    assert check.code == 0, check.output
    assert not candidate.control_state.exists()
    assert bmc.bios.waiting() == {}
    assert bmc.sensors.fan_mode().name == "standard"

    first = candidate.run("provision.yml", "-vvv")
    assert first.code == 0, first.output
    records = candidate.records()
    assert bmc.sensors.fan_mode().name == "full"
    assert (records["fan-mode"]["status"], records["fan-mode"]["before"]) == ("applied", "standard")
    assert "FanA 10000 RPM" in records["fan-speed"]["read_back"]
    assert records["fan-guard"]["status"] == "applied"
    assert 14000 < candidate.guard_status()["remaining_s"] <= 14400
    assert records["bios-power-profile"]["detail"].startswith("waiting for a reboot: ")
    assert bmc.bios.waiting()["CPUC6Report"] == "Disable"
    assert all(isinstance(value, str) for record in records.values() for value in record.values())

    second = candidate.run("provision.yml")
    assert (second.code, second.changed) == (0, 0), second.output

    bmc.power.reset()
    verify = candidate.run("verify.yml", bench_facts_tuning_file="tuning-after.json")
    assert (verify.code, verify.changed) == (0, 0), verify.output
    after = candidate.records("tuning-after.json")
    wanted = ("fan-mode", "fan-speed", "fan-guard", "bios-power-profile", "bios-cstates", "bios-turbo")
    assert {after[name]["status"] for name in wanted} == {"unchanged"}
    assert after["bios-cstates"]["before"] == "CPUC6Report=Auto, PackageCState=Auto"

    written = candidate.everything_written() + check.output + first.output + second.output + verify.output
    assert bmc.password not in written
    assert "PASSWORD" in written  # the variable's name may be told: the search itself works

    restore = candidate.run("restore.yml", "-vvv")
    assert restore.code == 0, restore.output
    assert bmc.password not in restore.output
    assert "waiting for a reboot: CPUC6Report=Auto is pending" in restore.text
    assert bmc.sensors.fan_mode().name == "standard"
    assert not candidate.guard_status()["guard"]
    bmc.power.reset()
    assert bmc.bios.current() == factory
    last = candidate.role("bios", "restore")
    assert (last.code, last.changed) == (0, 0), last.output
    assert [path.name for path in candidate.control_state.iterdir()] == ["fans-guard.log"]


def test_every_play_that_comes_after_a_killed_restart_switches_the_server_on_and_says_so(candidate: BmcBench) -> None:
    """`power` (before the link is made) and `restore` alike; without the note a server that is off is left off."""
    note = candidate.control_state / "restarting.json"
    bmc = candidate.device
    candidate.facts.mkdir(exist_ok=True)
    bmc.power.off()
    left = candidate.run("power.yml", bench_facts_tuning_file="power.json")
    assert left.code == 0, left.output
    assert json.loads((candidate.facts / "power.json").read_text())["power"] == "off"
    assert not bmc.power.is_on()
    for playbook in ("power.yml", "restore.yml"):
        bmc.power.off()
        note.parent.mkdir(exist_ok=True)
        subject = f"BMC 127.0.0.1 port {bmc.redfish_port}"
        note.write_text(json.dumps({"schema_version": 1, "subject": subject, "values": {"since_s": time.time() - 40}}))
        run = candidate.run(playbook, bench_facts_tuning_file="power.json")
        assert run.code == 0, run.output
        assert bmc.power.is_on(), playbook
        assert not note.exists()
        said = run.text + (candidate.facts / "power.json").read_text()
        assert "the server was off and was switched on: a bench that did not live to see it" in said


def test_a_bmc_that_is_gone_keeps_nothing_else_from_being_restored(candidate: BmcBench) -> None:
    """The governor goes back; restore fails, names the BMC, and keeps what it remembers."""
    fake_cpus(candidate.sysfs, {"cpu0": "powersave"})
    candidate.tuning.update(fan_mode="full", cpu_governor="performance")
    assert candidate.role("fans", "main").code == 0
    assert candidate.role("cpu", "main").code == 0
    governor = candidate.sysfs / "devices/system/cpu/cpu0/cpufreq/scaling_governor"
    assert governor.read_text() == "performance"
    port, candidate.entry["ipmi_port"] = candidate.entry["ipmi_port"], free_ports(1)[0]
    gone = candidate.run("restore.yml")
    assert gone.code != 0
    assert f"127.0.0.1 port {candidate.entry['ipmi_port']}, user admin: it does not answer" in gone.text
    assert "not restored: refused fan-mode" in gone.text
    assert governor.read_text() == "powersave"
    assert candidate.guard_status()["guard"]
    candidate.entry["ipmi_port"] = port
    assert candidate.role("fans", "restore").code == 0
    assert candidate.device.sensors.fan_mode().name == "standard"


REFUSALS: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "variable not set": (
        "fans", {}, {PASSWORD_VARIABLE: ""},
        f"the environment variable {PASSWORD_VARIABLE} (bench_candidate.bmc.password_env) is not set on the control node",
    ),
    "wrong password, IPMI": ("fans", {}, {PASSWORD_VARIABLE: "wrong-password"}, "it refuses this user and password (IPMI)"),
    "wrong password, Redfish": ("bios", {}, {PASSWORD_VARIABLE: "wrong-password"}, "(Redfish): it refuses this user and"),
    "certificate not trusted": ("bios", {"redfish_ca_file": ""}, {}, "its certificate is not trusted"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_a_play_stops_with_one_clear_message(candidate: BmcBench, case: str) -> None:
    """The message has cause and remedy, never a password; the BMC gets no command."""
    role, entry, environment, message = REFUSALS[case]
    candidate.tuning.update(fan_mode="full", **BIOS)
    candidate.entry.update(entry)
    candidate.environment.update(environment)
    run = candidate.role(role, "main", "-vvv")
    assert run.code != 0
    assert message in run.text
    assert candidate.device.password not in run.output
    assert "wrong-password" not in run.output
    assert "Traceback" not in run.output
    assert not candidate.control_state.exists()


@pytest.mark.parametrize(("role", "record"), [("fans", "fan-mode"), ("bios", "bios")])
def test_a_bmc_that_is_silent_after_the_load_is_a_mismatch_and_before_it_an_error(
    candidate: BmcBench, role: str, record: str
) -> None:
    """Before a load it would cost hours to find it silent; after it the rest of the candidate is still read back."""
    candidate.tuning.update(BIOS, fan_mode="full")
    candidate.entry.update(zip(("ipmi_port", "redfish_port"), free_ports(2), strict=True))
    before = candidate.role(role, "verify")
    assert before.code != 0
    assert "BMC 127.0.0.1" in before.text
    after = candidate.role(role, "verify", bench_after_load=True)
    assert after.code == 0, after.output
    told = candidate.role_records()[record]
    assert (told["status"], told["read_back"]) == ("mismatch", "")
    assert "BMC 127.0.0.1" in told["detail"]
    assert told["asked"] in ("full", "an answer")


def test_a_certificate_that_is_not_verified_is_said_in_the_evidence(candidate: BmcBench) -> None:
    """`insecure: true` works, with a warning record."""
    candidate.tuning.update(BIOS)
    candidate.entry.update(insecure=True, redfish_ca_file="")
    run = candidate.role("bios", "main", "--check")
    assert run.code == 0, run.output
    record = candidate.role_records()["bmc-certificate"]
    assert "warning: bmc.insecure is true" in record["detail"]


def test_a_password_from_ansible_vault_is_hidden_as_well(candidate: BmcBench) -> None:
    """bench_bmc_password needs no environment variable, and is not printed either."""
    candidate.environment.clear()
    candidate.entry.pop("password_env")
    run = candidate.role("fans", "verify", "-vvv", bench_bmc_password=candidate.device.password)
    assert run.code == 0, run.output
    assert candidate.device.password not in run.output
    assert "Fan1 5000 RPM" in candidate.role_records()["fan-speed"]["read_back"]


def test_the_machine_that_the_bench_runs_on_is_never_restarted(candidate: BmcBench) -> None:
    """The play refuses it before anything is touched."""
    candidate.tuning.update(BIOS, bios_reboot="allowed")
    run = candidate.run("provision.yml")
    assert run.code != 0
    assert "a restart would end the bench itself; set bios_reboot: never" in run.text
    assert candidate.device.commands() == []


def test_without_a_bmc_both_roles_say_so_and_go_on(candidate: BmcBench) -> None:
    """A setting that nobody asks for is unchanged; one that is asked for is unsupported, with the reason."""
    candidate.entry = {}
    candidate.tuning.update(fan_mode="full", bios_turbo="on")
    assert candidate.role("bios", "main").code == 0
    records = candidate.role_records()
    assert (records["bios-turbo"]["status"], records["bios-cstates"]["status"]) == ("unsupported", "unchanged")
    assert "no BMC address in the inventory entry (bench_candidate.bmc)" in records["bios-turbo"]["detail"]
    assert records["bios-version"]["status"] == "unsupported"
    assert candidate.role("fans", "main").code == 0
    assert "and no IPMI device on the machine" in candidate.role_records()["fan-mode"]["detail"]
