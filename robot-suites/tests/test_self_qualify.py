"""The campaign: rows that survive an interruption, the truth's edges, mutants that are seen, the page, and the seeds that once erred."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.simulation import campaign
from daq_bench.simulation.__main__ import BEGIN, END, SHIPPED, renewed
from daq_bench.simulation.campaign import CANARY, CANARY_SEED, Campaign, Row, canary, judged
from daq_bench.simulation.document import Measured, text_of
from daq_bench.simulation.mutants import Seen, cases_of, chosen_specs, trial
from daq_bench.simulation.physics.drawing import spec_of
from daq_bench.simulation.physics.hazards import Hazard

SHORT = range(40, 52)
# Seeds whose runs taught something; each must end right.
LEARNT = {  # seed of the server -> what befell it (written out, since another list of hazards draws others) and what it taught
    15: (
        Hazard("hot_sensor_stuck", 3, 42.1, 15.0, 67.9283, 3),
        "a hot drive with a stuck sensor: it passed until its own count of minutes above its limit was held against the sensor",
    ),
    3141: (
        Hazard("trailer_lost", 2, 20.0, 10.0, 1.0, 0),
        "a record without its trailer: INADMISSIBLE, since its read-back knew of no losses, until the missing trailer alone counted",
    ),
    6125: (
        Hazard("hot_sensor_stuck", 3, 4.0, 47.6, 22.5972, 0),
        "hot for 17 s behind a stuck sensor, too short for its minutes: it passed until a reading that never moves had to be possible",
    ),
    783: (Hazard("hot_sensor_stuck", 3, 42.1, 48.6, 37.2853, 0), "the same on a single drive"),
}


OTHERS = "what others wrote was taken for what a record would have got: it passed until the load's own account was held against it"
LEARNT_OF_SOAK = {
    6: (Hazard("other_load", 1, 700.0, 200.0, 0.35, 0), OTHERS),
    8: (Hazard("other_load", 1, 700.0, 200.0, 0.35, 0), OTHERS),
}


def row(seed: int, **more: object) -> Row:
    values: dict[str, object] = {
        "seed": seed, "scenario": "record", "pace": "ample", "hazards": [], "fired": [], "right": ["PASS"], "causes": [],
        "outcome": "PASS", "named": True, "invented": False, "reason": "", "cpu_s": 0.1,
    }  # fmt: skip
    return Row(**{**values, **more})  # type: ignore[arg-type]


def silent(done: int, total: int) -> None:
    """Shows nothing."""


def test_a_short_campaign_is_right_in_every_run(tmp_path: Path) -> None:
    rows = Campaign(SHORT, "record", tmp_path / "rows.jsonl", 1).run(silent)
    assert [one.seed for one in rows] == list(SHORT)
    assert [one for one in rows if not one.is_right or one.invented] == []
    assert any(one.is_good for one in rows)
    assert any("PASS" not in one.right for one in rows)
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.jsonl"]


def test_a_short_campaign_of_soaks_is_right_in_every_run(tmp_path: Path) -> None:
    rows = Campaign(range(0, 9), "thermal", tmp_path / "rows.jsonl", 1).run(silent)
    assert [one for one in rows if not one.is_right or one.invented] == []
    assert {one.outcome for one in rows} >= {"PASS", "FAIL", "INADMISSIBLE"}


@pytest.mark.parametrize("seed", LEARNT_OF_SOAK)
def test_seeds_of_soaks_that_once_erred_end_right(tmp_path: Path, seed: int) -> None:
    hazard, why = LEARNT_OF_SOAK[seed]
    found = judged(replace(spec_of(seed, "thermal"), hazards=(hazard,)), tmp_path, "thermal")
    assert found.is_right, (found, why)
    assert found.named, (found, why)


@pytest.mark.parametrize("seed", LEARNT)
def test_seeds_that_once_erred_end_right(tmp_path: Path, seed: int) -> None:
    hazard, why = LEARNT[seed]
    found = judged(replace(spec_of(seed), hazards=(hazard,)), tmp_path)
    assert found.is_right, (found, why)


def test_a_campaign_goes_on_from_its_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    one = Campaign(range(0, 3), "record", file, 1)
    assert one.rows() == []
    done = [row(0), row(2)]
    with file.open("a") as stream:
        stream.write("".join(json.dumps(vars(each)) + "\n" for each in done) + '{"seed": 1, "scen')
    assert one.rows() == done
    assert [each.seed for each in one.run(silent)] == [0, 1, 2]  # the torn row is made again, and spoils none
    other = Campaign(range(0, 3), "snb-100s", file, 1)
    assert other.rows() == []  # another scenario: begun anew


def test_rows_of_other_sources_are_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        json.dumps({"fingerprint": "0" * 64, "scenario": "record"}) + "\n" + json.dumps(vars(row(0))) + "\n"
    )
    assert Campaign(range(0, 1), "record", file, 1).rows() == []


def test_a_canary_that_is_not_found_stops_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert canary(tmp_path).outcome == "FAIL"
    monkeypatch.setattr(campaign, "CANARY", replace(CANARY, strength=1.0))  # falls into padding: nothing to find
    with pytest.raises(BenchError, match="the canary was not found"):
        canary(tmp_path)
    assert spec_of(CANARY_SEED).pace == "ample"


def test_the_canary_of_a_soak_is_heat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert canary(tmp_path, "thermal").outcome == "FAIL"
    monkeypatch.setattr(campaign, "HEAT_CANARY", replace(campaign.HEAT_CANARY, strength=0.0))
    with pytest.raises(BenchError, match="60 W of foreign heat into one drive ended in PASS"):
        canary(tmp_path, "thermal")


def test_mutants_of_the_soak_are_seen(tmp_path: Path) -> None:
    kinds = ("other_load", "short_record")
    specs = [
        spec
        for spec in chosen_specs(0, "thermal")
        if spec.pace in ("early", "warm", "at") or (spec.hazards and spec.hazards[0].kind in kinds)
    ]
    seen = {one.name: one for one in trial(list(cases_of(specs, tmp_path, "thermal")))}
    for name in ("TH-01", "TH-03", "TH-04"):
        assert seen[f"{name} dropped"].kinds
        assert seen[f"{name} shifted"].kinds
    assert (seen["TH-02 dropped"].kinds, seen["TH-02 dropped"].held_by) == ([], ("TH-01",))
    assert set(seen["gaps_of_plan off"].kinds) == {"other_load"}
    assert seen["load off"].held_by == ("_gaps_of_plan",)
    assert "source off" not in seen


def test_mutants_are_seen_where_nothing_else_holds(tmp_path: Path) -> None:
    wanted = {"firmware_changed", "sysctl_reset", "drive_sensor_silent", "bmc_hangs", "misplaced_writes"}
    specs = [spec for spec in chosen_specs(1) if spec.hazards and spec.hazards[0].kind in wanted]
    seen = {one.name: one for one in trial(list(cases_of(specs, tmp_path)))}
    assert seen["firmware_findings off"].kinds == ["firmware_changed"]
    assert seen["tuning off"].kinds == ["sysctl_reset"]
    assert seen["stated off"].kinds == ["drive_sensor_silent"]
    assert seen["telemetry off"].kinds == ["bmc_hangs"]
    held = seen["SNB-04 dropped"]  # others object to the same harm; without them it decides alone
    assert (held.kinds, held.held_by, held.then) == ([], ("_gaps_of_plan",), ["misplaced_writes"])
    assert not seen["clock off"].is_explained  # no run here has a wrong clock


def test_the_page_counts_what_the_rows_say() -> None:
    wrong = row(
        1, right=["FAIL"], causes=["lost"], outcome="PASS", hazards=["slow_drive"], fired=["slow_drive"], named=False
    )
    rows = [row(0), wrong, row(2, outcome="FAIL"), row(3, right=["FAIL"], outcome="FAIL", causes=["lost"])]
    text = text_of(Measured(rows, 0, "record", row(9, outcome="FAIL"), [Seen("SNB-01 dropped", "requirement")], 3))
    assert "Wrong PASS: 1 of 2 runs" in text
    assert "40 flipped bits" in text
    soaked = text_of(Measured(rows, 0, "thermal", row(9, outcome="FAIL"), [Seen("TH-01 dropped", "requirement")], 3))
    assert "Wrong PASS: 1 of 2 runs" in soaked
    assert "60 W of foreign heat" in soaked
    assert "bit_flips" not in soaked
    assert "| false alarm (a good candidate fails) | 1 | 2 | 50.00 % |" in text
    assert "- Wrong PASS: 1 (by cause: lost 1)\n  Seeds 1\n" in text
    assert "- Good candidate that did not pass: 1" in text
    assert "Neither seen nor explained: SNB-01 dropped." in text
    assert all(len(line) <= 140 or line.startswith("|") for page in (text, soaked) for line in page.splitlines())


@pytest.mark.parametrize("scenario", ["record", "thermal", "market", *(f"market-{name}" for name in SHIPPED[1:])])
def test_a_page_keeps_what_was_written_by_hand(tmp_path: Path, scenario: str) -> None:
    page = tmp_path / "page.md"
    for text in ("the first\n", "the second\n"):
        assert renewed(Namespace(scenario=scenario, page=page), text) == page
    before, measured, after = re.split(f"{BEGIN}|{END}", page.read_text(encoding="utf-8"))
    assert before.startswith("# Self-qualification")
    assert measured == "\n\nthe second\n\n"
    assert after.startswith("\n\n")
    assert "## What the model leaves out" in after


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("by hand\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no lines"):
        renewed(Namespace(scenario="record", page=page), "the first\n")
    assert page.read_text(encoding="utf-8") == "by hand\n"
