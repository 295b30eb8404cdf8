"""The fan guard against a real BMC program: judged by the commands that the BMC has logged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.fan_guard import GuardControl
from bmc_runs import GUARD, virtual_bmc

from daq_bench.virtual_candidate.bmc.simulator import Bmc

FULL, AUTOMATIC = "0x45 0x01 0x01", "0x45 0x01 0x00"
WAIT_S = 60.0  # a busy machine's

# A stand-in for the bench: renews its lease, as rig does, until it is killed.
RENEWING = """
import subprocess, sys, time
while True:
    subprocess.run([sys.executable, sys.argv[1], "renew", "--lease", sys.argv[2], "--seconds", "10"], check=True,
                   stdout=subprocess.DEVNULL)
    print("renewed", flush=True)
    time.sleep(0.3)
"""


class Rig:
    """A guard's files, and ways to call it."""

    def __init__(self, directory: Path, bmc: Bmc) -> None:
        self.bmc, self.lease = bmc, directory / "lease.json"
        self.plan, self.log = directory / "plan.json", directory / "guard.log"
        command = ["ipmitool", "-I", "lanplus", "-H", "127.0.0.1", "-p", str(bmc.ipmi_port), "-U", bmc.user]
        command += ["-C", "3", "-N", "1", "-R", "1", "-E"]
        step = {"send": ["0x30", "0x45", "0x01", "0x00"], "optional": False}
        self.plan.write_text(json.dumps({"command": command, "automatic": [step]}))

    def call(self, command: str, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        """Run one command of the guard's."""
        argv = [python, str(GUARD), command, "--lease", str(self.lease), *arguments]
        environment = {**os.environ, "IPMI_PASSWORD": self.bmc.password}
        return subprocess.run(argv, env=environment, text=True, capture_output=True, timeout=60, check=False)

    def start(self, seconds: float) -> dict[str, Any]:
        """Arm it."""
        files = ["--plan", str(self.plan), "--log", str(self.log)]
        done = self.call("start", *files, "--seconds", str(seconds))
        assert done.returncode == 0, done.stderr
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def status(self) -> dict[str, Any]:
        """Ask for its status."""
        status: dict[str, Any] = json.loads(self.call("status").stdout)
        return status

    def full_speed(self) -> None:
        """Set the fans to full speed, as the role does once the guard is armed."""
        self.bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")

    def accepted(self) -> list[str]:
        """Return the fan commands that the BMC has accepted."""
        return self.bmc.accepted()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = WAIT_S) -> float:
    """Return the time until the condition became true; fail when it does not."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"{what} did not happen within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began


def lives(pid: int) -> bool:
    """Return whether a process exists; one that ended and that nobody has reaped yet does not count."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture
def rig(tmp_path: Path, bmc: Bmc) -> Iterator[Rig]:
    """Give a test a guard; release the lease that it leaves."""
    rig = Rig(tmp_path, bmc)
    yield rig
    rig.call("release")


def test_a_bench_that_is_killed_gives_the_fans_back(rig: Rig) -> None:
    """The fans stay as long as the lease is renewed; after SIGKILL of the renewing process the BMC gets the automatic mode."""
    rig.start(30)
    rig.full_speed()
    bench = subprocess.Popen(
        [sys.executable, "-c", RENEWING, str(GUARD), str(rig.lease)], stdout=subprocess.PIPE, text=True
    )
    assert bench.stdout is not None
    for _ in range(10):  # some 4 s, twice the lease's length
        assert bench.stdout.readline() == "renewed\n"
    assert rig.accepted() == [FULL]
    bench.kill()
    bench.wait()
    bench.stdout.close()
    wait_for(lambda: AUTOMATIC in rig.accepted(), "giving the fans back")
    wait_for(lambda: not rig.status()["guard"], "the guard's end")
    assert rig.accepted() == [FULL, AUTOMATIC]
    assert rig.bmc.sensors.fan_mode().name == "standard"
    late = rig.call("renew", "--seconds", "60")
    assert late.returncode == 1
    assert "no lease is in force: the fans were given back; provision again" in late.stderr


def test_a_lease_that_vanishes_counts_as_run_out(rig: Rig) -> None:
    """A lease that is damaged, or of another boot, counts as run out too."""
    for spoil in (
        rig.lease.unlink,
        lambda: rig.lease.write_text("{"),
        lambda: rig.lease.write_text(json.dumps({"boot_id": "another", "expires_boottime_s": 1e12})),
    ):
        rig.start(600)
        rig.full_speed()
        spoil()
        wait_for(lambda: rig.accepted()[-1] == AUTOMATIC, "giving the fans back", 60)
        wait_for(lambda: not rig.status()["guard"], "the guard's end")


def test_a_released_guard_ends_without_a_command(rig: Rig) -> None:
    """Restore does this once it has itself set the mode from before."""
    status = rig.start(600)
    assert status["guard"] and status["started"]
    rig.full_speed()
    assert rig.call("release").returncode == 0
    assert not rig.status()["guard"]
    wait_for(lambda: not lives(status["pid"]), "the process's end")
    assert rig.accepted() == [FULL]
    assert sorted(path.name for path in rig.lease.parent.glob("lease*")) == []


def test_the_recorded_process_is_the_guard(rig: Rig) -> None:
    """Pid and start time name it for good; arming again does not start a second one."""
    status = rig.start(600)
    fields = Path(f"/proc/{status['pid']}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[19]) == status["start_ticks"]
    again = rig.start(900)
    assert (again["pid"], again["started"]) == (status["pid"], False)
    assert again["remaining_s"] > 600
    arguments = Path(f"/proc/{status['pid']}/cmdline").read_bytes().decode()
    assert rig.bmc.password not in arguments


def test_a_guard_that_was_killed_is_noticed_and_started_again(rig: Rig) -> None:
    """The renewing process gets an error; arming starts a new guard, which then does its work."""
    os.kill(rig.start(600)["pid"], signal.SIGKILL)
    wait_for(lambda: not rig.status()["guard"], "the guard's end")
    done = rig.call("renew", "--seconds", "60")
    assert done.returncode == 1
    assert "no guard is at work (killed?)" in done.stderr
    rig.full_speed()
    assert rig.start(1)["started"]
    wait_for(lambda: AUTOMATIC in rig.accepted(), "giving the fans back", 60)


def test_a_guard_that_is_told_to_end_gives_the_fans_back_first(rig: Rig) -> None:
    """This happens at the shutdown of the machine that the guard runs on."""
    status = rig.start(600)
    rig.full_speed()
    os.kill(status["pid"], signal.SIGTERM)
    wait_for(lambda: AUTOMATIC in rig.accepted(), "giving the fans back", 60)


def test_a_bmc_that_is_away_is_tried_until_it_accepts(tmp_path: Path, plugin_cache: Path) -> None:
    """Each try is in the log; the fans are given back as soon as the BMC is there again."""
    bmc = virtual_bmc(tmp_path, plugin_cache)
    rig = Rig(tmp_path, bmc)
    rig.start(0.5)
    wait_for(lambda: rig.log.exists() and "try 1 failed" in rig.log.read_text(), "the first try", 60)
    busy = rig.call("start", "--plan", str(rig.plan), "--log", str(rig.log), "--seconds", "60")
    assert busy.returncode == 1
    assert "is just giving the fans back" in busy.stderr
    with bmc:
        rig.full_speed()
        wait_for(lambda: AUTOMATIC in rig.accepted(), "giving the fans back", 60)
        wait_for(lambda: not rig.status()["guard"], "the guard's end")
    assert "Unable to establish IPMI v2" in rig.log.read_text()
    assert bmc.password not in rig.log.read_text()


def test_wrong_arguments_are_refused(rig: Rig) -> None:
    """A lease of no length, or of more than a week, is a mistake."""
    for seconds in ("0", "-5", "1e9"):
        done = rig.call("renew", "--seconds", seconds)
        assert done.returncode == 2
        assert "is not between 0 and 604800 s" in done.stderr
    assert rig.call("renew", "--seconds", "5").returncode == 1


@pytest.mark.parametrize("plan", ["", "[]", '{"command": ["ipmitool"]}', '{"command": "ipmitool", "automatic": []}'])
def test_a_plan_that_is_none_is_refused_in_words(rig: Rig, plan: str) -> None:
    """The guard would have nothing to send."""
    rig.plan.write_text(plan)
    done = rig.call("run", "--plan", str(rig.plan), "--log", str(rig.log))
    assert done.returncode == 1
    assert f"{rig.plan} is missing or no plan of a guard; provision again" in done.stderr


@pytest.mark.parametrize("answer", ["", "[]", '{"guard": tru', "Usage: fan_guard"])
def test_an_answer_that_is_no_guard_s_is_refused_in_words(tmp_path: Path, answer: str) -> None:
    """Another program lies in its place, or the disk was full when it was copied."""
    program = tmp_path / "fan_guard.py"
    program.write_text(f"print({answer!r})")
    control = GuardControl(str(program), str(tmp_path), "")
    Path(control.lease).write_text("{}")
    with pytest.raises(BmcError, match=r"fan_guard\.py answers .*, as no fan guard does; provision again"):
        control.status()
