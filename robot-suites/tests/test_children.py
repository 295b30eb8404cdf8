"""The environment and the time limits of the bench's child processes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import HANG_S_MIN, LocalShell, environment_for_children
from daq_bench.rig.candidate import machine as machines
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.candidate.provision import bmc_secret
from daq_bench.rig.telemetry.influx_server import LocalInflux

CANARIES = {
    "INFLUX_TOKEN": "canary-1", "DAQ_BENCH_INFLUX_TOKEN": "canary-2", "DAQ_BENCH_INFLUX_READ_TOKEN": "canary-3",
    "LAB_BMC_PASSWORD": "canary-4", "BMC": "canary-5", "AWS_ACCESS_KEY_ID": "canary-6", "LC_SECRET": "canary-7",
}  # fmt: skip


@pytest.fixture(autouse=True)
def canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CANARIES.items():
        monkeypatch.setenv(name, value)


def test_a_command_gets_no_secret_but_what_it_is_given() -> None:
    said = LocalShell().run(["env"], timeout_s=60, env={"BMC": "canary-5"}).stdout
    assert "canary-5" in said
    assert [value for value in CANARIES.values() if value in said] == ["canary-5"]
    assert f"PATH={os.environ['PATH']}" in said


def test_a_secret_is_left_out_whatever_it_is_called() -> None:
    assert not CANARIES.keys() & environment_for_children().keys()
    assert environment_for_children({"DAQ_BENCH_LOCK_DIR": "/x", "LC_ALL": "C"}) == {
        "DAQ_BENCH_LOCK_DIR": "/x",
        "LC_ALL": "C",
    }


@pytest.mark.parametrize(
    ("bmc", "secret"),
    [
        (None, {}),
        ({}, {}),  # reached in band alone
        ({"address": "10.0.0.7", "user": "u", "password_env": "LAB_BMC_PASSWORD"}, {"LAB_BMC_PASSWORD": "canary-4"}),
        ({"address": "10.0.0.7", "user": "u", "password_env": "NOT_SET"}, {}),
    ],
)
def test_the_bmcs_password_is_looked_for_only_where_the_inventory_names_one(
    bmc: dict[str, str] | None, secret: dict[str, str]
) -> None:
    here = load_candidate(Layout().inventory / "lab.yml", "this-machine")
    document = here.document if bmc is None else {**here.document, "bmc": bmc}
    assert bmc_secret(Layout(), replace(here, document=document)) == secret


@pytest.mark.integration
def test_the_benchs_influxdb_inherits_no_token(tmp_path: Path) -> None:
    server = LocalInflux(Layout().influxd, tmp_path)
    server.start(18990)
    try:
        known = Path(f"/proc/{server.running_pid()}/environ").read_text(encoding="utf-8", errors="replace")
        assert "PATH=" in known
        assert [value for value in CANARIES.values() if value in known] == []
    finally:
        server.stop()


def test_a_short_limit_ends_no_question_on_a_slow_machine_and_a_hang_still_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`fio --version` with its limit of 20 s ended a run of 18 minutes; here a question takes longer than what it was given."""
    assert HANG_S_MIN >= 300
    assert LocalMachine().run(["sh", "-c", "sleep 0.5; echo fio-3"], timeout_s=0.1).stdout == "fio-3\n"
    monkeypatch.setattr(machines, "HANG_S_MIN", 0.2)
    with pytest.raises(BenchError, match="did not end within"):
        LocalMachine().run(["sleep", "60"], timeout_s=0.1)
