"""`daq-bench discover` against a real sshd, drives and BMC: the booted virtual candidate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.host import check_identity, survey
from daq_bench.rig.candidate.machine import SshMachine, machine_of
from daq_bench.rig.candidate.provision import drift_in
from daq_bench.rig.cli import main
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.virtual_candidate.candidate import VirtualCandidate

pytestmark = pytest.mark.virtual


def words_of(machine: VirtualCandidate, known_hosts: Path, *more: str) -> list[str]:
    at = machine.instance
    return [
        *(
            "discover",
            "--host=root@127.0.0.1",
            f"--port={at.ports.ssh}",
            f"--key={at.ssh / 'id_ed25519'}",
            "--name=found",
        ),
        f"--ssh-args=-o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes",
        *more,
    ]


def bmc_of(machine: VirtualCandidate) -> list[str]:
    at = machine.instance
    return [
        *("--bmc=admin@127.0.0.1", f"--bmc-redfish-port={at.ports.redfish}", f"--bmc-ipmi-port={at.ports.ipmi}"),
        *(f"--bmc-ca-file={at.tls / 'ca.pem'}", f"--bmc-password-file={at.password_file}", "--bmc-cipher-suite=3"),
    ]


def listing(machine: SshMachine) -> str:
    """Every file of the guest's disk that is newer than its boot, but for logs and what sshd itself keeps."""
    find = "find / -xdev -newer /proc/1 -type f -not -path '/var/log/*' -not -path '/run/*' -printf '%p %s\\n' | sort"
    return machine.run(["sh", "-c", find], 120).check("find").stdout


def test_the_virtual_candidates_entry_validates_and_nothing_was_written(
    virtual_machine: VirtualCandidate, tmp_path: Path, inventory_of: Callable[..., Path]
) -> None:
    at, mine = virtual_machine.instance, tmp_path / "mine.yml"
    link = machine_of(connection_of(inventory_of(at, lambda candidate: None), at.name), tmp_path / "ssh")
    assert isinstance(link, SshMachine)
    link.link.open()
    try:
        before = listing(link)
        assert main(words_of(virtual_machine, at.ssh / "known_hosts", *bmc_of(virtual_machine), f"--out={mine}")) == 0
        assert listing(link) == before
        text = mine.read_text(encoding="utf-8")
        assert at.password_file.read_text(encoding="utf-8").strip() not in text
        assert "destroy: true" not in text
        assert main(["validate", f"--inventory={mine}", "--candidate=found"]) == 0
        candidate = load_candidate(mine, "found")
        assert all(check.ok for check in check_identity(candidate, survey(link), directory_is_there=False))
    finally:
        link.link.close()
    drives = [serial for target in candidate.targets for serial in target.serials]
    assert sorted(drives) == ["VCNA0001", "VCNA0002", "VCNA0003", "VCXP0001"]
    assert candidate.own_run_targets == ["scratch"]
    assert candidate.document["bmc"]["vendor"] == "supermicro"
    assert "# - /dev/vda: serial none" in text
    assert "vda is mounted at /" in text


@pytest.mark.campaign  # a whole run in an emulator: six minutes
def test_the_virtual_candidates_entry_qualifies_unchanged(virtual_machine: VirtualCandidate, tmp_path: Path) -> None:
    at, mine, runs = virtual_machine.instance, tmp_path / "mine.yml", tmp_path / "runs"
    assert main(words_of(virtual_machine, at.ssh / "known_hosts", *bmc_of(virtual_machine), f"--out={mine}")) == 0
    before = mine.read_bytes()
    influx = LocalInflux(Layout().influxd, tmp_path / "influxdb")
    url = influx.start(18497)
    try:
        words = [
            "--candidate=found",
            f"--inventory={mine}",
            f"--runs={runs}",
            f"--influx-url={url}",
            "--duration=5",
            "--json",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "daq_bench.rig", "qualify", "--yes", *words],
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
    finally:
        influx.stop()
    # 3: an emulator on a busy machine leaves gaps in its telemetry, which says nothing of the entry. Neither FAIL nor ERROR will do.
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (run,) = json.loads(done.stdout)
    assert (run["candidate"], run["target"], run["outcome"]) == ("found", "scratch", "INADMISSIBLE")
    assert mine.read_bytes() == before
    document = json.loads((runs / "latest" / "run.json").read_text(encoding="utf-8"))
    assert (document["scenario"]["id"], document["state"]) == ("snb-emulated", "finished")
    assert drift_in(runs / "latest" / "facts" / "tuning-verified.json") == []


def test_a_wrong_host_key_and_a_key_that_is_not_let_in_are_refused(
    virtual_machine: VirtualCandidate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = virtual_machine.instance
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    wrong = tmp_path / "known_hosts"
    public = key.with_suffix(".pub").read_text(encoding="utf-8").split()[:2]
    wrong.write_text(f"[127.0.0.1]:{at.ports.ssh} {' '.join(public)}\n", encoding="utf-8")
    assert main(words_of(virtual_machine, wrong)) == 2
    assert "Host key verification failed" in capsys.readouterr().err
    assert main([*words_of(virtual_machine, at.ssh / "known_hosts"), f"--key={key}"]) == 2
    said = capsys.readouterr()
    assert "Permission denied" in said.err
    assert said.out == ""
