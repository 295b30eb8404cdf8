"""`daqwriter checksum` keeps to its schema, complete and interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout

COMMAND = [str(Layout().daqwriter), "checksum", "--working-set", "1MiB", "--sizes", "1000,64KiB"]
INTERRUPTED = 130


@pytest.mark.parametrize("interrupt", [False, True])
def test_the_result_keeps_to_its_schema(tmp_path: Path, interrupt: bool) -> None:
    file = tmp_path / "checksum.json"
    length = ["--time", "0.1", "--repetitions", "500"] if interrupt else ["--time", "0.002"]
    with subprocess.Popen([*COMMAND, *length, "--json", str(file)]) as process:
        if interrupt:
            time.sleep(2)  # it handles signals, and has measured something, long before
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == (INTERRUPTED if interrupt else 0)
    document = json.loads(file.read_text(encoding="utf-8"))
    check_document(document, "daqwriter-checksum", str(file))
    assert document["status"] == ("interrupted" if interrupt else "complete")
