"""`provision` and `verify` on this machine: what is not as asked is printed, and has an exit status of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.provision import drift_in

SETTING = {
    "id": "a",
    "role": "r",
    "subject": "s",
    "asked": "9",
    "before": "",
    "applied": "",
    "read_back": "1",
    "detail": "",
}


@pytest.mark.integration
@pytest.mark.usefixtures("own_lock")
def test_verify_of_a_setting_that_is_not_in_force_names_it_and_exits_with_4(tmp_path: Path) -> None:
    lab = YAML(typ="safe").load(Layout().inventory / "lab.yml")
    tuning = lab["all"]["children"]["candidates"]["hosts"]["this-machine"]["bench_candidate"].setdefault("tuning", {})
    in_force = Path("/proc/sys/fs/aio-max-nr").read_text(encoding="ascii").strip()
    tuning["aio_max_nr"] = int(in_force) + 7
    inventory = tmp_path / "lab.yml"
    YAML(typ="safe").dump(lab, inventory)
    argv = [sys.executable, "-m", "daq_bench.rig", "verify", "--inventory", str(inventory)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"aio-max-nr (fs.aio-max-nr) asked for >= {int(in_force) + 7} but reads back {in_force}" in done.stdout
    assert "settings are not as asked" in done.stdout


@pytest.mark.parametrize(
    ("status", "drifted"),
    [("applied", 0), ("unchanged", 0), ("unsupported", 0), ("mismatch", 1), ("refused", 1), ("news", 1), ("", 1)],
)
def test_only_a_setting_that_is_known_to_hold_is_no_drift(tmp_path: Path, status: str, drifted: int) -> None:
    file = tmp_path / "tuning.json"
    file.write_text(json.dumps({"settings": [{**SETTING, "status": status}]}), encoding="utf-8")
    assert len(drift_in(file)) == drifted


@pytest.mark.parametrize("content", [None, "", "[]", '{"settings": []}', '{"settings": [{}]}', "[" * 100_000])
def test_a_record_that_says_nothing_is_an_error_and_not_the_absence_of_drift(tmp_path: Path, content: Any) -> None:
    file = tmp_path / "tuning.json"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(BenchError, match=r"tuning\.json: "):
        drift_in(file)
