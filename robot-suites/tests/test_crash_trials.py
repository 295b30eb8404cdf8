"""The trials of a killed bench: seeds, the moment of the kill, the judge and its canary, the table; and one trial for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.verdict import ERROR, FAIL, PASS
from daq_bench.crash_trials import campaign, document, judge
from daq_bench.crash_trials.__main__ import strike_all
from daq_bench.crash_trials.campaign import Row, canary, place_of, trial
from daq_bench.crash_trials.candidate import missing
from daq_bench.crash_trials.hazards import AT_REST, Hazard, Struck, strike
from daq_bench.crash_trials.processes import KINDS, VARIABLE, Moment, kill_at, marked
from daq_bench.crash_trials.trial import Bench, Killed, Place, Spec, phase_of, spec_of
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.journal import SUFFIX
from daq_bench.rig.checking.extraction import RAW
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.simulation.truth import REFUSED

# Seeds whose trials taught something; each must end with nothing to object.
LEARNT = {
    0: "a killed bench left the run's folder on the candidate and a socket's folder here, whatever came after it",
    1: "check-bundle called a file foreign that fio had left just before Robot was killed",
    16: "the same, and the run that went on ended in ERROR",
}
SHORT = Spec(0, Moment("rig", 1, 0.0), mend_first=True)


def row(seed: int, **more: object) -> Row:
    values: dict[str, object] = {
        "seed": seed, "kind": "fio", "phase": "block_scan", "victim": "fio", "outcome": "ERROR", "resumed": "PASS",
        "objections": [], "seconds": 1.0,
    }  # fmt: skip
    return Row(**{**values, **more})  # type: ignore[arg-type]


def test_a_seed_is_a_trial_and_eight_in_a_row_kill_each_kind() -> None:
    assert [spec_of(seed) for seed in range(64)] == [spec_of(seed) for seed in range(64)]
    assert {spec_of(seed).moment.kind for seed in range(40, 48)} == set(KINDS)
    assert len({spec_of(seed).mend_first for seed in range(16)}) == 2


def test_no_kill_is_ever_the_candidates_fault_and_none_in_the_load_passes() -> None:
    for kind in KINDS:
        for phase in document.PHASES:
            assert FAIL not in judge.allowed(kind, phase)
    for kind in ("fio", "daqwriter", "robot"):
        assert judge.allowed(kind, "snb_record") == {ERROR}
    assert judge.allowed("influxd", "snb_record") == {PASS}


def test_the_process_of_its_kind_dies_at_its_moment(tmp_path: Path) -> None:
    token = f"test-{os.getpid()}"
    victim = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "ansible-playbook"], env={**os.environ, VARIABLE: token}
    )
    try:
        began = time.monotonic()
        said = kill_at(Moment("ansible", 1, 0.3), lambda: marked(token), lambda: victim.poll() is None)
        assert "ansible-playbook" in said
        assert victim.wait(120) == -9
        assert time.monotonic() - began >= 0.3
        assert kill_at(Moment("ansible", 1, 0.0), lambda: marked(token), lambda: victim.poll() is None) == ""
    finally:
        victim.kill()
        victim.wait()


def test_a_command_that_lies_about_its_verdict_is_objected_to(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text('{"outcome": "PASS"}', encoding="utf-8")
    passed = Killed(tmp_path, 0, "", "fio", "block_scan", frozenset())
    assert judge.outcome(passed, "fio") == ["PASS where ERROR is right"]
    assert judge.outcome(Killed(tmp_path, 3, "", "influxd", "verify", frozenset()), "influxd") == [
        "exit status 3 with the verdict PASS"
    ]
    assert judge.outcome(Killed(None, 2, "Traceback", "fio", "verify", frozenset()), "fio") == [
        "the command ended with a traceback"
    ]
    assert judge.outcome(Killed(None, -9, "", "rig", "verify", frozenset()), "rig") == []


def test_the_phase_is_the_last_one_that_was_announced(tmp_path: Path) -> None:
    assert phase_of(None) == phase_of(tmp_path) == "before the bundle"
    events = [{"kind": "phase", "source": name} for name in ("provision", "identity")] + [
        {"kind": "test", "source": "x"}
    ]
    text = "".join(json.dumps(one) + "\n" for one in events)
    (tmp_path / "events.jsonl").write_text(text + '{"kind": "phase", "sou', encoding="utf-8")
    assert phase_of(tmp_path) == "identity"


def test_the_table_counts_trials_and_objections() -> None:
    rows = [row(0), row(1, objections=["left tuned"]), row(4, kind="rig", phase="provision"), row(5, victim="")]
    text = document.table(rows)
    assert "4 trials, seeds 0 to 1, 4 to 5: a process was killed in 3; the judge objected in 1 (seeds: 1)." in text
    assert "| fio |  |  |  | 2/1 |" in text
    assert "| rig |  | 1 |" in text


def hazard(kind: str, right: str, **more: Any) -> Hazard[Place]:
    return Hazard(kind, "as told", frozenset({right}), (), lambda place: None, **more)


def struck(kind: str, outcome: str, right: str, *objections: str, seed: int = 0) -> Struck:
    return Struck(kind, seed, [right], outcome, list(objections))


def test_the_table_of_hazards_counts_wrong_passes_false_alarms_and_what_was_left() -> None:
    hazards = [hazard("nothing", PASS, harmless=True), hazard("pulled", FAIL)]
    rows = [
        struck("nothing", PASS, PASS), struck("nothing", FAIL, PASS, "FAIL where PASS is right", seed=1),
        struck("pulled", FAIL, FAIL), struck("pulled", FAIL, FAIL, "nobody names EIO", seed=1),
        struck("pulled", PASS, FAIL, "PASS where FAIL is right", seed=2),
        struck("pulled", ERROR, FAIL, "ERROR where FAIL is right", seed=3),
    ]  # fmt: skip
    text = document.hazard_table(hazards, rows)
    assert "| nothing | as told | PASS | 2 | 1 | 1 |" in text
    assert "| pulled | as told | FAIL | 4 | 2 | 1 |" in text
    assert "6 runs. Another outcome than the right one: 3 of 6 (95 %: at most 85 %)." in text
    assert "Wrong PASS: 1 of 4 that must not pass (95 %: at most 75 %)." in text
    assert "Wrong PASS" not in document.hazard_table(hazards[1:], rows)  # where nothing can pass, that says nothing
    assert "False alarm: 1 of 2 in which nothing harms the candidate (95 %: at most 97 %)." in text
    assert "- pulled, seed 2: PASS: PASS where FAIL is right" in text
    assert "0 runs. Another outcome than the right one: 0 of 0.\n" in document.hazard_table(hazards, [])


def test_the_shipped_page_takes_the_tables_of_both_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaves the other's, and the trials', as they are; a page without its marks stays unchanged."""
    page = tmp_path / "crash-trials.md"
    page.write_bytes(document.DOCUMENT.read_bytes())
    monkeypatch.setattr(document, "DOCUMENT", page)
    before = page.read_text(encoding="utf-8")
    for level in ("light", "virtual"):
        document.write_hazards(level, [hazard(f"planted-{level}", PASS)], [])
    document.write([row(7)])
    text = page.read_text(encoding="utf-8")
    assert text.count("planted-light") == text.count("planted-virtual") == text.count("1 trials, seeds 7") == 1
    assert text.count(document.END) == before.count(document.END) == 3
    assert text.index("1 trials") < text.index("planted-light") < text.index("planted-virtual")
    first_end_lost = text.replace(document.END, "", 1)
    for spoilt in ("no marks", first_end_lost, f"{text}{document.BEGIN}"):
        page.write_text(spoilt, encoding="utf-8")
        with pytest.raises(SystemExit, match="has no lines"):
            document.write([row(7)])
        assert page.read_text(encoding="utf-8") == spoilt
    assert [file.name for file in tmp_path.iterdir()] == [page.name]


def test_a_campaign_of_hazards_goes_on_from_its_rows_and_a_torn_one_is_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hazards, file, made = [hazard("one", PASS), hazard("other", FAIL)], tmp_path / "rows.jsonl", []

    def befall(what: Hazard[Place], seed: int) -> Struck:
        made.append((what.kind, seed))
        if made[-1] == ("one", 1):
            raise KeyboardInterrupt
        return struck(what.kind, PASS, PASS, seed=seed)

    with pytest.raises(KeyboardInterrupt):
        strike_all(hazards, range(2), file, befall)
    assert made == [("one", 0), ("other", 0), ("one", 1)]
    with file.open("a", encoding="utf-8") as stream:
        stream.write('{"kind": "one", "se')
    made[:] = [("", 0)]
    strike_all(hazards, range(2), file, lambda what, seed: struck(what.kind, PASS, PASS, seed=seed))
    assert [(one.kind, one.seed) for one in campaign.rows_of(file, Struck)] == [
        ("one", 0), ("other", 0), ("one", 1), ("other", 1),
    ]  # fmt: skip
    assert "other, seed 1: PASS (PASS is right; 0 s): nothing to object" in capsys.readouterr().out


def test_a_second_campaign_and_one_beside_the_leavings_of_a_killed_one_are_refused(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    refused = pytest.raises(BenchError, match=r"another campaign runs in .*a clone of its own")
    with campaign.alone(trials), refused, campaign.alone(trials):
        raise AssertionError
    with campaign.alone(trials):
        pass
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "drive.img").touch()
    with pytest.raises(BenchError, match="is left of a campaign that was killed"), place_of(tmp_path / "left"):
        raise AssertionError
    assert (tmp_path / "left" / "drive.img").exists()


class Replaced(Bench):
    """A bench whose `qualify` is another program."""

    phase_s_max = 1.0

    def __init__(self, folder: Path, *argv: str) -> None:
        super().__init__("none", {}, folder, LocalInflux(Path("none"), folder / "influxdb"))
        self.argv = list(argv)

    def qualify(self) -> list[str]:
        return self.argv

    def wait_for_load(self, phase: str) -> None:
        raise AssertionError


@pytest.mark.parametrize(
    ("program", "outcome", "objected"),
    [
        ("raise SystemExit(2)", "REFUSED", ""),
        ("raise SystemExit(0)", "exit status 0 without a verdict", "exit status 0"),
        ("raise KeyError", "exit status 1 without a verdict", "traceback"),
        ("import time; time.sleep(60)", "exit status -15 without a verdict", "did not end within 2 s"),
    ],
)
def test_the_judge_of_a_hazard_believes_no_older_bundle_and_no_run_that_hangs(
    tmp_path: Path, program: str, outcome: str, objected: str
) -> None:
    place = Replaced(tmp_path, sys.executable, "-c", program)
    older = place.runs / "older"
    older.mkdir(parents=True)
    (older / "verdict.json").write_text('{"outcome": "REFUSED", "reasons": []}', encoding="utf-8")
    (place.runs / "latest").symlink_to("older")
    undone: list[str] = []
    at_rest: Hazard[Bench] = Hazard(
        "swap", "", frozenset({REFUSED}), (), lambda _: None, lambda _: undone.append("undone"), phase=AT_REST
    )
    found = strike(place, at_rest, 0)
    assert (found.outcome, undone) == (outcome, ["undone"])
    assert objected in "; ".join(found.objections) and bool(found.objections) == bool(objected)


def test_a_seed_draws_the_moment_in_which_a_hazard_strikes() -> None:
    moments = [hazard("one", PASS).delay_s(seed, 20.0) for seed in range(50)]
    assert moments == [hazard("one", PASS).delay_s(seed, 20.0) for seed in range(50)]
    assert 0 <= min(moments) < 4 < 16 < max(moments) <= 20
    assert moments != [hazard("other", PASS).delay_s(seed, 20.0) for seed in range(50)]


needs_light = pytest.mark.skipif(bool(missing()), reason=missing() or "light candidates can be made")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A candidate of the module's own. Its drive lies on the checkout's disk, since the temporary folder may be in memory."""
    with place_of(Layout().build / "tests" / f"crash-{os.getpid()}") as made:
        yield made


def runs(place: Place, kind: str, words: str, but: str = "nothing") -> bool:
    """Says whether a process of the kind runs whose command line has `words`, and not `but`."""
    return any(words in line and but not in line for line in place.look(kind).values())


def kill_once(monkeypatch: pytest.MonkeyPatch, holds: Callable[[], bool]) -> None:
    """Lets the trial kill as soon as `holds`, whatever its moment says: the phase is then the same on a slow machine."""
    real = kill_at

    def then(moment: Moment, look: Callable[[], dict[int, str]], alive: Callable[[], bool]) -> str:
        real(Moment(moment.kind, 1, 0.0), dict, lambda: alive() and not holds())
        return real(moment, look, alive)

    monkeypatch.setattr("daq_bench.crash_trials.trial.kill_at", then)


@needs_light
@pytest.mark.integration
def test_the_judge_sees_what_is_planted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    canary(place)
    monkeypatch.setattr(campaign.judge, "is_as_before", lambda candidate: [])
    with pytest.raises(BenchError, match="the canary was not found"):
        canary(place)


@needs_light
@pytest.mark.integration
def test_a_bench_that_is_killed_in_its_load_is_mended_and_goes_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent goes on on the candidate, whose tuning, folders and scratch files are left; then `restore`, then `resume`."""
    kill_once(monkeypatch, lambda: runs(place, "daqwriter", "daqwriter minidaq", but="--dry-run"))
    found = trial(place, SHORT)
    assert (found.phase, found.objections, found.resumed) == ("snb_record", [], "PASS")


@needs_light
@pytest.mark.integration
@pytest.mark.campaign
def test_a_file_that_fio_left_when_robot_was_killed_is_no_foreign_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 1 kills by the clock, which may be too early; here fio's first output lies in the bundle, and no result names it yet."""
    before = place.newest()

    def left() -> bool:
        bundle = place.newest()
        raw = bundle / RAW if bundle not in (None, before) else None
        return raw is not None and raw.is_dir() and any(not file.name.endswith(SUFFIX) for file in raw.iterdir())

    kill_once(monkeypatch, left)
    found = trial(place, Spec(1, Moment("robot", 1, 0.0), mend_first=True))
    assert (found.phase, found.objections, found.outcome) == ("block_scan", [], "ERROR")


@needs_light
@pytest.mark.integration
@pytest.mark.campaign
@pytest.mark.parametrize("seed", LEARNT)
def test_seeds_that_once_erred_end_right(place: Place, seed: int) -> None:
    assert trial(place, spec_of(seed)).objections == []
