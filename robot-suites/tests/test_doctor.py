"""`daq-bench doctor`: what is missing here and on a candidate, with remedies, and an exit status that says so."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.lock import MachineLock
from daq_bench.rig.candidate.machine import LocalMachine, Machine
from daq_bench.rig.cli import main
from daq_bench.rig.discovery.doctor import PORTABLE, Finding, control_node, readiness
from daq_bench.rig.on_candidate.readiness import active, selinux

ENTRY = """
all: {children: {candidates: {hosts: {there: {VARIABLES, bench_candidate: {
  description: x, identity: {cpus_min: 1}, transient_buffer: 1GiB, tuning: {aio_max_nr: 1048576},
  target: {kind: filesystem, directory: /srv/x, storage: {drives: ["NO-SUCH-SERIAL"], filesystem: xfs}}}}}}}}
"""


def test_an_empty_checkout_lacks_what_is_built_and_says_how_to_get_it(tmp_path: Path) -> None:
    missing = {one.subject: one.remedy for one in control_node(Layout(tmp_path)) if not one.ok}
    assert {"daqwriter", "telemetry agent", "InfluxDB"} <= set(missing)
    assert all("make setup" in missing[name] for name in ("daqwriter", "telemetry agent", "InfluxDB"))


def test_the_writer_for_other_machines_is_missed_by_none_but_candidates_over_ssh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make qualify` of this machine does not build it, and that machine lacks nothing."""
    monkeypatch.setattr(Layout, "portable_daqwriter", tmp_path / "none")
    (found,) = (one for one in control_node(Layout()) if one.subject == PORTABLE)
    assert found.ok
    assert found.found == "not built, and only needed for candidates that are reached over SSH; `make setup` builds it"
    mine = tmp_path / "mine.yml"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    mine.write_text(ENTRY.replace("VARIABLES", f"ansible_host: 127.0.0.1, ansible_port: {port}"), encoding="utf-8")
    assert main(["doctor", "there", f"--inventory={mine}"]) == 1
    said = capsys.readouterr().out
    assert (
        f"MISSING  control node: {PORTABLE}: {tmp_path / 'none'} is not there. Remedy: `make setup` builds it" in said
    )


def test_an_archive_of_other_sources_is_named_with_the_command_that_makes_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `git pull`: the archive that an earlier commit made still lies there."""
    archive = tmp_path / "telemetry_agent.pyz"
    archive.touch()
    monkeypatch.setattr(Layout, "agent", archive)
    (found,) = (one for one in control_node(Layout()) if one.subject == "telemetry agent's sources")
    assert str(found) == (
        f"MISSING  control node: telemetry agent's sources: {archive} is not made of those that lie here now, as after `git pull`. "
        "Remedy: `make agent` makes it anew"
    )


def test_a_program_that_is_not_there_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", "--json"]) == 1
    found = {one["subject"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["ssh"] == {
        **{"where": "control node", "subject": "ssh", "found": "not there", "ok": False},
        "remedy": "install the package openssh-client, or `make setup`",
    }


def test_a_candidate_that_does_not_answer_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    mine = tmp_path / "mine.yml"
    mine.write_text(ENTRY.replace("VARIABLES", f"ansible_host: 127.0.0.1, ansible_port: {port}"), encoding="utf-8")
    assert main(["doctor", "there", f"--inventory={mine}"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if "candidate: there" in line]
    assert len(lines) == 1
    assert lines[0].startswith("MISSING")
    assert "Connection refused" in lines[0]
    assert main(["doctor", "nobody", f"--inventory={mine}"]) == 2
    assert main(["doctor", "--candidate=there", f"--inventory={mine}"]) == 1, "named as for other commands"
    assert lines[0] in capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="examining drives needs root")
def test_a_drive_of_the_entry_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.yml"
    mine.write_text(ENTRY.replace("VARIABLES", "ansible_connection: local"), encoding="utf-8")
    assert main(["doctor", "there", f"--inventory={mine}"]) == 1
    said = capsys.readouterr().out
    assert "MISSING  candidate: drive NO-SUCH-SERIAL: not there. Remedy: put it in" in said
    assert "lsblk" not in said
    assert len(said.splitlines()) <= 10, said
    assert main(["doctor", "there", f"--inventory={mine}", "--all"]) == 1
    assert "ok       candidate: lsblk: there" in capsys.readouterr().out


def found_on(machine: Machine) -> dict[str, Finding]:
    return {one.subject: one for one in readiness(machine, "there")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalMachine:
    """This machine, with a lock folder and a checkout of the test's own."""
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    layout = Layout()
    monkeypatch.setattr(Layout, "state", property(lambda _: tmp_path / "state"))
    return LocalMachine(layout)


def test_a_machine_in_use_names_its_user_and_one_that_was_left_the_command(here: LocalMachine, tmp_path: Path) -> None:
    assert found_on(here)["lock"] == Finding("candidate", "lock", "free")
    lock = MachineLock(here, "there", "daq-bench qualify", 0.0)
    lock.take()
    held = found_on(here)["lock"]
    assert held.found.startswith(f"in use by process {os.getpid()} of ") and "daq-bench qualify" in held.found
    assert held.remedy.endswith("`daq-bench unlock --candidate there` forgets it")
    mark = (tmp_path / "daq-storage-bench.lock").read_bytes()
    lock.give_back()
    (tmp_path / "daq-storage-bench.lock").write_bytes(mark)  # as a killed bench leaves it
    assert found_on(here)["lock"].found.startswith("left behind by process")
    (tmp_path / "daq-storage-bench.lock").write_bytes(b"{no mark}")
    assert found_on(here)["lock"].ok
    assert MachineLock(here, "there", "x", 0.0).take() == ""  # looking took nothing


def test_a_machine_that_is_still_tuned_is_said_and_does_not_count_as_missing(
    here: LocalMachine, tmp_path: Path
) -> None:
    assert found_on(here)["settings"].found == "not tuned by the bench"
    state = tmp_path / "state" / "there"
    state.mkdir(parents=True)
    (state / "cpu-before.json").write_text("{}", encoding="utf-8")
    found = found_on(here)["settings"]
    assert (
        found.ok and "still tuned by the bench (cpu-before.json); `daq-bench restore --candidate there`" in found.found
    )


def answering(
    here: LocalMachine, monkeypatch: pytest.MonkeyPatch, denied: Sequence[str] = (), unread: str = "", **says: object
) -> dict[str, Finding]:
    """Returns what doctor makes of a candidate's accounts that say something else than this machine's."""
    denials = {"denied": list(denied), "unread": unread}
    account = {"clock_s": time.time(), "selinux": "", "active": [], "free_bytes": {}, "left": [], "held": "", **says}
    monkeypatch.setattr(here, "call", lambda program, *_, **__: denials if program == "denials" else account)
    return found_on(here)


def test_a_clock_that_is_off_and_a_disk_that_is_full_have_their_remedies(
    here: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answering(here, monkeypatch, clock_s=time.time() - 3600, free_bytes={"/opt/x": 10**8, "/var/y": 5 * 10**9})
    assert "clock is -3600" in found["clock"].found and "time server" in found["clock"].remedy
    assert found["room for /opt/x"].remedy == "free 1 GB there"
    assert found["room for /opt/x"].found == "100 MB free"
    assert found["room for /var/y"].ok


def test_what_the_operator_should_know_of_the_system_is_said(
    here: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answering(here, monkeypatch, selinux="enforcing", active=["tuned", "firewalld"])
    assert found["SELinux"].ok and found["SELinux"].found == "enforcing"
    assert "starts it again" in found["tuned"].found
    assert found["firewalld"].ok


def test_denials_of_the_bench_are_missing_with_their_remedy(
    here: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = answering(here, monkeypatch, denied=["fio was denied execute on x\x1b[2J"], selinux="enforcing")["SELinux"]
    assert found.found == "enforcing; denied since yesterday: fio was denied execute on x\\x1b[2J"
    assert found.remedy.startswith("`restorecon -RFv /") and "audit2why" in found.remedy
    unread = answering(here, monkeypatch, unread="no log", selinux="permissive")["SELinux"]
    assert unread.ok and unread.found == "permissive; its denials are not known: no log"


@pytest.mark.parametrize("says", [{"clock_s": "now"}, {"free_bytes": {"/": -1.5}}, {"held": None}, {"more": 1}])
def test_an_account_of_another_form_is_one_error(
    here: LocalMachine, monkeypatch: pytest.MonkeyPatch, says: dict[str, object]
) -> None:
    with pytest.raises(BenchError, match="account of its readiness"):
        answering(here, monkeypatch, **says)


@pytest.mark.parametrize(("text", "word"), [("1", "enforcing"), ("0\n", "permissive"), (None, "")])
def test_selinux_is_read_from_the_kernel(tmp_path: Path, text: str | None, word: str) -> None:
    file = tmp_path / "enforce"
    if text is not None:
        file.write_text(text, encoding="ascii")
    assert selinux(file) == word


def test_services_that_run_are_named_by_systemctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "systemctl"
    tool.write_text(
        "#!/bin/sh\nshift\nfor one; do case $one in\ntuned) echo active;;\ntlp) echo inactive;;\n*) echo unknown;;\nesac; done\nexit 3\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert active(["tuned", "tlp", "irqbalance"]) == ["tuned"]
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert active(["tuned"]) == []
    tool.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert active(["tuned"]) == []
