"""`restore` has an exit status of its own for firmware settings that did not go back; in the words of the playbook and its filter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig import cli
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.arguments import Command
from daq_bench.rig.cli.candidate import FirmwareLeftError, firmware_left

ANSIBLE = Layout().repository / "ansible"


def record(name: str, status: str = "refused", detail: str = "") -> dict[str, str]:
    return {"id": name, "subject": "firmware", "status": status, "read_back": "Disabled", "detail": detail}


def said(*records: dict[str, str]) -> str:
    """The error of the rig: the playbook's message, made as the playbook makes it."""
    spec = importlib.util.spec_from_file_location("bench_records", ANSIBLE / "filter_plugins" / "bench_records.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lines = " | ".join(module.tuning_lines(records))
    text = (ANSIBLE / "playbooks" / "restore.yml").read_text(encoding="utf-8")
    assert "not restored: {{ __bench_left | tuning_lines | join(' | ') }}. Remedy: " in text
    return f"playbook restore failed on a: Task failed: Action failed: not restored: {lines}. Remedy: remove the cause (whole output: x)"


@pytest.mark.parametrize(
    ("records", "names"),
    [
        ([record("bios-Sriov")], ["Sriov"]),
        ([record("bios-Sriov", detail="it was refused: no"), record("bios-ProcX2Apic", "mismatch")], ["Sriov", "ProcX2Apic"]),
        ([record("bios-Sriov"), record("cpu-governor", "mismatch")], []),
        ([record("fan-mode")], []),
        ([record("bios", detail="BMC a: it does not answer")], []),  # nobody asked the firmware
    ],
)  # fmt: skip
def test_only_what_the_firmware_alone_left_counts(records: list[dict[str, str]], names: list[str]) -> None:
    assert firmware_left(said(*records)) == names


@pytest.mark.parametrize(
    "text", ["", "not restored: ", "refused bios-Sriov (firmware): x", "playbook restore failed: unreachable"]
)
def test_another_fault_is_none_of_the_firmware(text: str) -> None:
    assert firmware_left(text) == []


@pytest.mark.parametrize(
    ("error", "status"), [(FirmwareLeftError("the firmware kept Sriov"), 5), (BenchError("another"), 2)]
)
def test_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BenchError, status: int, tmp_path: Path
) -> None:
    def fails(options: object) -> int:
        raise error

    command = cli.COMMANDS["restore"]
    monkeypatch.setitem(cli.COMMANDS, "restore", Command(command.help, command.arguments, fails))
    assert cli.main(["restore", "--runs", str(tmp_path)]) == status
    assert capsys.readouterr().err == f"error: {error}\n"
