"""`daqwriter streams` and `verify` of what it leaves: their JSON keeps to its schemas, whole, damaged and without a drive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import LocalShell

LAYOUT = Layout()
DAMAGED = 3


def daqwriter(folder: Path, command: str, schema: str, *options: str) -> tuple[int, dict[str, Any]]:
    result = folder / f"{schema}.json"
    argv = [str(LAYOUT.daqwriter), command, f"--json={result}", *options]
    completed = LocalShell().run(argv, timeout_s=60)
    document: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    check_document(document, schema, str(result))
    return completed.returncode, document


@pytest.mark.parametrize("variant", ["zlib", "thread-per-chunk", "pool-cv", "pool-busy", "fused", "off"])
def test_a_run_is_described_and_read_back(disk: Path, variant: str) -> None:
    target = f"--target={disk / 'events'}"
    options = ["--bytes=20MB", "--event-size=300KiB", "--file-size=4MiB", f"--checksum-variant={variant}"]
    status, document = daqwriter(disk, "streams", "daqwriter-streams", target, *options)
    assert (status, document["status"]) == (0, "complete")
    status, document = daqwriter(disk, "verify", "daqwriter-verify-streams", target)
    assert (status, document["status"]) == (0, "intact")


def test_damage_is_described(disk: Path) -> None:
    events = disk / "events"
    daqwriter(disk, "streams", "daqwriter-streams", f"--target={events}", "--bytes=5MB", "--event-size=100KiB")
    first = sorted(events.glob("*.events"))[0]
    with first.open("r+b") as file:
        file.seek(5000)
        file.write(b"\x00")
    status, document = daqwriter(disk, "verify", "daqwriter-verify-streams", f"--target={events}")
    assert (status, document["status"]) == (DAMAGED, "damaged")
    assert document["faults"]


def test_the_null_sink_is_described(disk: Path) -> None:
    status, document = daqwriter(disk, "streams", "daqwriter-streams", "--sink=null", "--duration=0.1", "--rate=1GB")
    assert (status, document["status"]) == (0, "complete")
