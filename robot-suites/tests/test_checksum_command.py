"""`daqwriter checksum` keeps to its schema, complete and interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from agent_helpers import wait_for

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout

COMMAND = [str(Layout().daqwriter), "checksum", "--working-set", "1MiB", "--sizes", "1000,64KiB"]
INTERRUPTED = 130


def cpu_s(pid: int) -> float:
    """The CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("interrupt", [False, True])
def test_the_result_keeps_to_its_schema(tmp_path: Path, interrupt: bool) -> None:
    file = tmp_path / "checksum.json"
    length = ["--time", "0.1", "--repetitions", "500"] if interrupt else ["--time", "0.002"]
    with subprocess.Popen([*COMMAND, *length, "--json", str(file)]) as process:
        if interrupt:
            wait_for(lambda: cpu_s(process.pid) >= 1, "a second of its work", 120)  # signals are handled long before
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == (INTERRUPTED if interrupt else 0)
    document = json.loads(file.read_text(encoding="utf-8"))
    check_document(document, "daqwriter-checksum", str(file))
    assert document["status"] == ("interrupted" if interrupt else "complete")
