"""`daq-bench doctor`: what is missing here and on a candidate, with remedies, and an exit status that says so."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import main
from daq_bench.rig.discovery.doctor import control_node

ENTRY = """
all: {children: {candidates: {hosts: {there: {VARIABLES, bench_candidate: {
  description: x, identity: {cpus_min: 1}, transient_buffer: 1GiB, tuning: {aio_max_nr: 1048576},
  target: {kind: filesystem, directory: /srv/x, storage: {drives: ["NO-SUCH-SERIAL"], filesystem: xfs}}}}}}}}
"""


def test_an_empty_checkout_lacks_what_is_built_and_says_how_to_get_it(tmp_path: Path) -> None:
    missing = {one.subject: one.remedy for one in control_node(Layout(tmp_path)) if not one.ok}
    assert {"daqwriter", "telemetry agent", "InfluxDB"} <= set(missing)
    assert all("make setup" in missing[name] for name in ("daqwriter", "telemetry agent", "InfluxDB"))


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


@pytest.mark.skipif(os.geteuid() != 0, reason="examining drives needs root")
def test_a_drive_of_the_entry_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.yml"
    mine.write_text(ENTRY.replace("VARIABLES", "ansible_connection: local"), encoding="utf-8")
    assert main(["doctor", "there", f"--inventory={mine}"]) == 1
    said = capsys.readouterr().out
    assert "MISSING  candidate: drive NO-SUCH-SERIAL: not there. Remedy: put it in" in said
    assert "ok       candidate: lsblk: there" in said
