"""The scenario lan-100g-rehearsal as a user runs it: transfers, pairs of settings, event building, figures, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from rig.base.settings import Layout
from rig.telemetry.influx_server import free_port

pytestmark = [
    pytest.mark.integration,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]

LAYOUT = Layout()
PORT = 18646
Finished = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """One whole run: (bundle, how the command ended)."""
    runs, disk = tmp_path_factory.mktemp("lan-rehearsal") / "runs", LAYOUT.build / "tests" / "lan-rehearsal"
    command = [
        sys.executable,
        "-m",
        "rig",
        "qualify",
        "--scenario=lan-100g-rehearsal",
        f"--runs={runs}",
        f"--target={disk}",
    ]
    command.append(f"--influx-url=http://127.0.0.1:{free_port(PORT)}")  # nothing answers there: the run does without
    own_locks = {**os.environ, "DAQ_BENCH_LOCK_DIR": str(tmp_path_factory.mktemp("locks"))}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, env=own_locks)
    left = re.findall(
        r"\bln\d+\w*", subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    )
    assert [name for name in left if not Path(f"/proc/{name[2:].split('n')[0]}").exists()] == []
    yield (runs / "latest").resolve(), ended
    shutil.rmtree(disk)


def read(finished: Finished, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((finished[0] / name).read_text(encoding="utf-8"))
    return loaded


def test_the_verdict_is_no_pass_and_what_does_not_depend_on_speed_is_met(finished: Finished) -> None:
    verdict, done = read(finished, "verdict.json"), finished[1]
    assert verdict["outcome"] in ("INADMISSIBLE", "FAIL"), done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    decisions = {one["id"]: one["decision"] for one in verdict["requirements"]}
    assert (decisions["LAN-08"], decisions["LAN-09"]) == ("met", "met"), verdict["requirements"]
    assert any("no card, cable or switch takes part" in finding["text"] for finding in verdict["findings"])


def test_every_transfer_is_there_and_every_setting_read_back(finished: Finished) -> None:
    found, analysis = read(finished, "results/lan.json"), read(finished, "results/lan_analysis.json")
    assert {one["kind"] for one in found["transfers"]} == {
        "bandwidth",
        "latency",
        "confirmation",
        "crowd",
        "build",
        "setting",
    }
    assert [one["id"] for one in analysis["settings"]] == ["mtu", "tso", "all together"]
    assert {one["latency"]["n"] for one in analysis["settings"]} == {4}
    records = {(one["id"], one["asked"]): one for one in analysis["tuned_settings"]}
    assert records["mtu", "9000"]["read_back"] == "9000" and records["tso", "off"]["read_back"] == "off"


def test_the_report_shows_it_and_the_bundle_is_whole(finished: Finished) -> None:
    text = " ".join("".join(page.extract_text() for page in PdfReader(finished[0] / "report.pdf").pages).split())
    for words in ("CPU use against message size", "goodput into each node", "What each setting contributes"):
        assert words in text, words
    command = [sys.executable, "-m", "rig", "check-bundle", str(finished[0])]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
