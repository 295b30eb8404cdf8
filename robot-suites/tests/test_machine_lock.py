"""The candidate's own lock: another entry, another control node, an owner killed, rebooted away or broken open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.candidate import lock as locks
from daq_bench.rig.candidate import ssh
from daq_bench.rig.candidate.connection import Connection
from daq_bench.rig.candidate.lock import MachineLock, SilentError, all_exclusive, identities, machine_locked
from daq_bench.rig.candidate.machine import LocalMachine, SshMachine
from daq_bench.rig.candidate.provision import PLAYS_ON, end_connections
from daq_bench.rig.candidate.ssh import SshLink
from daq_bench.rig.candidate.travelling import source_of
from daq_bench.rig.on_candidate.machine_lock import NAME, began, machine_id

HOLD = (
    "import sys, time; from daq_bench.rig.candidate.machine import LocalMachine\n"
    "from daq_bench.rig.candidate.lock import machine_locked\n"
    "with machine_locked(LocalMachine(), 'first', 'daq-bench qualify', 900.0): print('held', flush=True); time.sleep(60)"
)
ENTRY = """
all:
  children:
    candidates:
      hosts:
        {name}:
          ansible_host: {host}
          bench_candidate:
            description: d
            identity: {{architectures: [x86_64]}}
            transient_buffer: 1GiB
            tuning: {{}}
            bmc: {{address: {bmc}, user: admin, password_env: P}}
            target: {{kind: raw-device, drive_serial: "{serial}", destroy: true}}
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))


def owner(**changes: Any) -> dict[str, Any]:
    made = {
        "id": "them",
        "text": "process 1 of a on far: daq-bench qualify",
        "node": "far",
        "pid": 1,
        "began": "x",
        "since_s": time.time(),
    }
    return {**made, "returns_s": 900.0, **changes}


def taken(folder: Path, seen_s_ago: float = 0.0, **changes: Any) -> Path:
    """A lock whose holder is not there at present: the machine was rebooted, or its bench is gone."""
    file = folder / NAME
    file.write_text(json.dumps(owner(**changes)), encoding="utf-8")
    os.utime(file, (time.time() - seen_s_ago,) * 2)
    return file


def lock(name: str = "second") -> MachineLock:
    return MachineLock(LocalMachine(), name, "daq-bench verify", 0.0)


def test_the_same_machine_under_another_name_is_refused_with_owner_and_age_until_he_is_dead(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True, env=os.environ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(
            RefusedError,
            match=rf"process {holder.pid} of .* daq-bench qualify, for \d+ s .*daq-bench unlock --candidate second",
        ):
            lock().take()
        with pytest.raises(RefusedError, match="its owner lives"):
            lock().break_open()
        holder.kill()
    with machine_locked(LocalMachine(), "second", "daq-bench verify", 0.0) as said:
        assert "left behind by process" in said
    assert (tmp_path / NAME).read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("gone", [True, False])
def test_a_connection_that_outlived_its_bench_is_ended_and_no_other(tmp_path: Path, gone: bool) -> None:
    """The network was cut: sshd holds the connection, and below it the lock, for hours. Only sshd's own process is ended."""
    sshd = tmp_path / "sshd"
    shutil.copy(os.path.realpath("/bin/sh"), sshd)
    file, dead = tmp_path / NAME, subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    file.write_text(
        json.dumps(owner(node=machine_id(), pid=dead.pid if gone else os.getpid(), began=began(os.getpid())))
    )
    hold = f"import fcntl, time; file = open({str(file)!r}); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    script = f"trap 'kill $!; exit' TERM; {sys.executable} -c \"$1\" & wait"
    with subprocess.Popen([sshd, "-c", script, "sshd", hold], stdout=subprocess.PIPE, text=True) as connection:
        assert connection.stdout is not None
        assert connection.stdout.readline() == "held\n"
        try:
            if gone:
                taking = lock()
                assert "left behind by process 1 of a on far" in taking.take()
                taking.give_back()
                assert connection.wait(120) is not None
            else:
                with pytest.raises(RefusedError, match="it is in use by process"):
                    lock().take()
                assert connection.poll() is None
        finally:
            connection.terminate()


class Hung(SshLink):
    """Connected to a candidate on which no command returns; like a master's, the streams stay open when the client is ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Connection("ssh", "server"), folder / "no-link")
        self.never = folder / "never"

    def _through_master(self) -> list[str]:
        return ["sh", "-c", f"sleep 60 & echo $! > {self.never}; wait"]


def test_a_candidate_on_which_no_command_returns_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "HOLD_S_MAX", 0.5)
    monkeypatch.setattr(locks, "GRACE_S", 0.5)
    link = Hung(tmp_path)
    try:
        with pytest.raises(
            SilentError, match=r"'server' cannot be locked: it did not answer within .* s, and the command"
        ):
            MachineLock(SshMachine(link), "server", "daq-bench verify", 0.0).take()
    finally:
        os.kill(int(link.never.read_text(encoding="ascii")), signal.SIGKILL)


def test_what_a_given_up_playbook_left_is_ended_on_its_own_candidate_alone(tmp_path: Path) -> None:
    """The command line is ssh's, as a shared connection shows itself, too."""
    shown = {"task": ["ssh"], "shared": ["ssh: /tmp/x [mux]"], "other": ["ssh"], "sleep": ["sleep"]}
    made = {
        name: subprocess.Popen(
            [*words, "60"],
            executable="/bin/sleep",
            env={PLAYS_ON: "b" if name == "other" else "a", "PATH": os.environ["PATH"]},
        )
        for name, words in shown.items()
    }
    try:
        end_connections("a")
        assert [made[name].wait(60) for name in ("task", "shared")] == [-signal.SIGTERM] * 2
        assert [made[name].poll() for name in ("other", "sleep")] == [None, None]
    finally:
        for process in made.values():
            process.kill()
            process.wait()


def test_an_owner_on_another_control_node_keeps_it_through_a_reboot_but_not_for_ever(tmp_path: Path) -> None:
    taken(tmp_path)
    with pytest.raises(RefusedError, match="may be waiting for a reboot"):
        lock().take()
    taken(tmp_path, seen_s_ago=901)
    with machine_locked(LocalMachine(), "second", "w", 0.0) as said:
        assert "on far" in said


def test_an_operator_breaks_the_lock_of_an_owner_who_is_gone_and_only_that(tmp_path: Path) -> None:
    file = taken(tmp_path)
    assert "process 1 of a on far" in lock().break_open()
    assert file.read_text(encoding="utf-8") == ""
    taken(tmp_path, node=machine_id(), pid=os.getpid(), began=began(os.getpid()))
    with pytest.raises(RefusedError, match="its owner lives"):
        lock().break_open()


def test_a_dead_process_of_this_control_node_is_no_owner(tmp_path: Path) -> None:
    """Also when its number was given to another process since."""
    taken(tmp_path, node=machine_id(), pid=os.getpid(), began="another boot:1")
    lock().break_open()
    taken(tmp_path, node=machine_id(), pid=2**22 + 1, began="x")
    with machine_locked(LocalMachine(), "second", "w", 0.0) as said:
        assert said


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 5000, b"{}", b'{"id": 1, "pid": null}'])
def test_what_no_bench_wrote_locks_nobody_out(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with machine_locked(LocalMachine(), "c", "w", 0.0):
        pass


def test_a_link_and_a_pipe_of_that_name_are_refused_at_once(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole", encoding="utf-8")
    (tmp_path / NAME).symlink_to(victim)
    with pytest.raises(RefusedError):
        lock().take()
    assert victim.read_text(encoding="utf-8") == "whole"
    (tmp_path / NAME).unlink()
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(RefusedError, match="no regular file"):
        lock().take()


def test_the_program_that_travels_holds_until_its_input_closes(tmp_path: Path) -> None:
    """As over ssh: a closed input is a dead bench or network, whose owner stays written; `release` gives the lock back."""
    argv = [sys.executable, "-c", source_of("machine_lock"), "hold", json.dumps(owner())]
    for words, left in ((b"", True), (b"release\n", False)):
        (tmp_path / NAME).unlink(missing_ok=True)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as holder:
            assert holder.stdout is not None
            assert json.loads(holder.stdout.readline()) == {"result": ""}
            with pytest.raises(RefusedError, match="it is in use by process 1 of a on far"):
                lock().take()
            holder.communicate(words, timeout=120)
        assert bool((tmp_path / NAME).read_text(encoding="utf-8")) is left


def entry(folder: Path, name: str, bmc: str = "10.0.0.7", serial: str = "S1", host: str = "10.0.0.1") -> Any:
    file = folder / f"{name}.yml"
    file.write_text(ENTRY.format(name=name, bmc=bmc, serial=serial, host=host), encoding="utf-8")
    return load_candidate(file, name)


@pytest.mark.parametrize(
    ("second", "what"), [({"serial": "S2"}, "bmc 10.0.0.7"), ({"bmc": "10.0.0.8"}, "its drive S1")]
)
def test_a_second_entry_for_the_same_bmc_or_drive_is_refused_here(
    tmp_path: Path, second: dict[str, str], what: str
) -> None:
    with all_exclusive(entry(tmp_path, "one"), "daq-bench qualify"):
        with (
            pytest.raises(RefusedError, match=what),
            all_exclusive(entry(tmp_path, "two", **second), "daq-bench provision"),
        ):
            pytest.fail("the machine was given twice")
        with all_exclusive(entry(tmp_path, "three", bmc="10.0.0.9", serial="S3"), "daq-bench provision"):
            pass


def test_an_identity_never_leads_out_of_the_locks_folder(tmp_path: Path) -> None:
    with all_exclusive(entry(tmp_path, "one", serial="../../x"), "w"):
        pass
    assert "its drive ../../x" in identities(entry(tmp_path, "one", serial="../../x"))
    assert all(file.parent == tmp_path for file in tmp_path.rglob("*.lock"))


def test_no_host_is_an_option_of_ssh(tmp_path: Path) -> None:
    """Whatever a group variable or a template made of it: after `--` ssh takes it for a destination."""
    for words in (SshLink(Connection("ssh", "c", host="-oProxyCommand=touch x"), tmp_path / "s")._ssh("-O", "check"),):
        assert words.index("--") == len(words) - 2
        done = subprocess.run(
            [words[0], "-G", *words[words.index("--") :]], capture_output=True, text=True, check=False
        )
        assert "proxycommand touch" not in done.stdout.lower()
