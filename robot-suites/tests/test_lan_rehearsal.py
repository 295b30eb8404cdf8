"""The scenario lan-100g-rehearsal as a user runs it: transfers, pairs of settings, event building, figures, and nothing left behind."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from whole_runs import Finished, check_bundle, rehearsed

pytestmark = [
    pytest.mark.integration,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
KINDS = {"bandwidth", "latency", "confirmation", "crowd", "build", "setting"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    with rehearsed(tmp_path_factory, "lan-100g-rehearsal") as run:
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        left = re.findall(r"\bln\d+\w*", listed)
        assert [name for name in left if not Path(f"/proc/{name[2:].split('n')[0]}").exists()] == []
        yield run


def test_the_verdict_is_no_pass_and_what_does_not_depend_on_speed_is_met(finished: Finished) -> None:
    assert finished.decisions("LAN-08", "LAN-09") == ["met", "met"], finished.verdict()["requirements"]
    assert any("no card, cable or switch takes part" in text for text in finished.texts())


def test_every_transfer_is_there_and_every_setting_read_back(finished: Finished) -> None:
    found, analysis = finished.document("results/lan.json"), finished.document("results/lan_analysis.json")
    assert {one["kind"] for one in found["transfers"]} == KINDS
    assert [one["id"] for one in analysis["settings"]] == ["mtu", "tso", "all together"]
    assert {one["latency"]["n"] for one in analysis["settings"]} == {4}
    records = {(one["id"], one["asked"]): one for one in analysis["tuned_settings"]}
    assert records["mtu", "9000"]["read_back"] == "9000" and records["tso", "off"]["read_back"] == "off"


def test_the_report_shows_it_and_the_bundle_is_whole(finished: Finished) -> None:
    text = finished.report()
    for words in ("CPU use against message size", "goodput into each node", "What each setting contributes"):
        assert words in text, words
    check_bundle(finished.bundle)
