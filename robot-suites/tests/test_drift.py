"""`provision` and `verify` on this machine: what is not as asked is printed, and has an exit status of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.provision import drift_in
from daq_bench.rig.cli.candidate import planned_in

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


@pytest.fixture
def wanting_more(tmp_path: Path) -> tuple[Path, int]:
    """An inventory that asks of this machine for a higher aio-max-nr than is in force, which is the number."""
    lab = YAML(typ="safe").load(Layout().inventory / "lab.yml")
    tuning = lab["all"]["children"]["candidates"]["hosts"]["this-machine"]["bench_candidate"].setdefault("tuning", {})
    in_force = int(Path("/proc/sys/fs/aio-max-nr").read_text(encoding="ascii"))
    tuning["aio_max_nr"] = in_force + 7
    inventory = tmp_path / "lab.yml"
    YAML(typ="safe").dump(lab, inventory)
    return inventory, in_force


def called(*argv: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "daq_bench.rig", *argv]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.integration
@pytest.mark.usefixtures("own_lock")
def test_verify_of_a_setting_that_is_not_in_force_names_it_once_and_exits_with_4(
    wanting_more: tuple[Path, int],
) -> None:
    inventory, in_force = wanting_more
    done = called("verify", f"--inventory={inventory}")
    assert done.returncode == 4, done.stdout + done.stderr
    (line,) = re.findall(r"^drift +(aio-max-nr.*)$", done.stdout, re.MULTILINE)
    assert line == f"aio-max-nr (fs.aio-max-nr) asked for >= {in_force + 7} but reads back {in_force}"
    assert "settings are not as asked" in done.stdout


@pytest.mark.integration
@pytest.mark.usefixtures("own_lock")
def test_a_provision_that_only_tells_prints_a_line_for_each_change(wanting_more: tuple[Path, int]) -> None:
    inventory, in_force = wanting_more
    done = called("provision", f"--inventory={inventory}", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    *planned, last = done.stdout.splitlines()
    assert f"aio-max-nr (fs.aio-max-nr): {in_force}; {in_force + 7} would be written" in planned
    assert all("would be" in line for line in planned) and "nothing was changed" in last
    assert int(Path("/proc/sys/fs/aio-max-nr").read_text(encoding="ascii")) == in_force


def test_what_would_be_lost_is_printed_as_the_play_says_it() -> None:
    said = (
        "TASK [storage : Tell what would be destroyed and made] ***\nok: [snb-01] => \n    msg:\n"
        "    - would destroy drive S1 (/dev/nvme0n1, P5510), which carries\n        nothing\n    - would erase signatures only\n\n"
        "TASK [Show what was found] ***\nok: [snb-01] => \n    msg:\n    - 'unchanged   irqbalance (irqbalance): stopped'\n\n"
    )
    assert planned_in(said) == [
        "would destroy drive S1 (/dev/nvme0n1, P5510), which carries nothing",
        "would erase signatures only",
    ]


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
