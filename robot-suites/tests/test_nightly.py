"""A night's plan, baselines, housekeeping and documents, without a real run; and the units and CI examples that users copy."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "tests"))
from evidence_factory import covers_anything, seal
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError, ProfileError, RefusedError
from daq_bench.bench_model.bundle.provenance import digest_of
from daq_bench.bench_model.documents.admission import Admission
from daq_bench.bench_model.documents.nights import Job, NightDocument
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.outcome import INTERRUPTED, Entry, document, status_of, worse
from daq_bench.bench_model.profiles.yaml_source import check_document
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.lock import exclusive
from daq_bench.rig.checking.door import Trust
from daq_bench.rig.nightly import job as nightly_run
from daq_bench.rig.nightly import night as nightly_night
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.housekeeping import Keeping
from daq_bench.rig.nightly.job import Where, run_job
from daq_bench.rig.nightly.night import Nightly, _entry_of, new_folder, stored_nights
from daq_bench.rig.nightly.overdue import overdue
from daq_bench.rig.nightly.plan import DEFAULT, Plan, load_plan

INVENTORY = Layout().inventory / "lab.yml"
DOCS = Layout().repository / "docs" / "nightly"


def test_the_shipped_plan_is_this_machines_smoke() -> None:
    assert load_plan(INVENTORY).jobs == (Job("this-machine", "dune-snb"),)


def test_candidates_and_scenario_narrow_the_plan() -> None:
    assert load_plan(INVENTORY, ["this-machine-twice"]).jobs == (Job("this-machine-twice"),)
    assert load_plan(INVENTORY, [], "saturation-rehearsal").jobs == (Job("this-machine", "saturation-rehearsal"),)


def altered_inventory(folder: Path, old: str, new: str) -> Path:
    file = folder / "lab.yml"
    text = INVENTORY.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return file


def test_hours_of_the_plan_are_seconds_of_the_night(tmp_path: Path) -> None:
    assert (load_plan(INVENTORY).time_limit_s, load_plan(INVENTORY).run_limit_s) == (21600.0, None)
    plan = load_plan(altered_inventory(tmp_path, "time_limit_h: 6", "run_limit_h: 0.5"))
    assert (plan.time_limit_s, plan.run_limit_s) == (None, 1800.0)
    for wrong in ("0", "-1", ".nan", "null", "soon"):
        with pytest.raises(ProfileError, match="run_limit_h"):
            load_plan(altered_inventory(tmp_path, "time_limit_h: 6", f"run_limit_h: {wrong}"))


def test_without_a_plan_this_machine_runs(tmp_path: Path) -> None:
    assert load_plan(altered_inventory(tmp_path, "bench_nightly:", "other:")).jobs == (DEFAULT,)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("scenaro: dune-snb", "unknown key 'scenaro'. Did you mean scenario?"),
        ("scenario: nemo", "there is no such file. No name is near among the"),
        ("scenario: dune-snb, scale: 7", "value 7 is too large. Write at most 1.2"),
        (
            "scenario: dune-snb}\n        - {candidate: this-machine, scenario: dune-snb",
            "is the same as the run of line",
        ),
    ],
)
def test_a_wrong_plan_is_refused_before_the_night(tmp_path: Path, new: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message.replace("?", r"\?").replace(".", r"\.")):
        load_plan(altered_inventory(tmp_path, "scenario: dune-snb}", f"{new}}}"))


def test_a_baseline_must_be_intact_and_good(tmp_path: Path) -> None:
    baselines = Baselines(tmp_path / "nightly")
    failed, altered, good = (
        write_night(tmp_path / "runs", plan) for plan in (NightPlan(1, lost=1.0), NightPlan(2), NightPlan(3))
    )
    renamed = write_night(tmp_path / "runs", NightPlan(4), folder="best")
    added = write_night(tmp_path / "runs", NightPlan(5))
    (added / "results" / "more.json").write_text("{}", encoding="utf-8")
    (altered / "run.json").write_text((altered / "run.json").read_text(encoding="utf-8") + " ", encoding="utf-8")
    with pytest.raises(RefusedError, match="ended finished with FAIL"):
        baselines.choose(failed)
    for bundle, why in (
        (altered, "run.json: altered since it was sealed"),
        (renamed, "the folder is named 'best'"),
        (added, "results/more.json: added since the run"),
    ):
        with pytest.raises(RefusedError, match=f"was altered since its run .{why}.*Use a sound copy, or another run"):
            baselines.choose(bundle)
    assert baselines.choose(good) == NightPlan(3).run_id
    night = read_night(write_night(tmp_path / "runs", NightPlan(9)))
    found = Baselines(tmp_path / "nightly").of(night, [])
    assert found is not None
    assert found.id == NightPlan(3).run_id
    shutil.rmtree(good)
    with pytest.raises(BenchError, match="is gone or altered"):
        baselines.of(night, [])


@pytest.fixture
def open_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles that nights_factory makes up have nothing that they follow from, so that check-bundle refuses them
    (test_a_night_takes_no_run_that_check_bundle_refuses). Here it is open: these tests are of what comes behind it."""
    for module in (nightly_run, nightly_night):
        monkeypatch.setattr(module, "admit", lambda paths, trust: [Admission(str(path), "unsigned") for path in paths])


@pytest.mark.parametrize("how", ["unsealed", "contradictory"])
def test_what_is_not_sealed_or_contradicts_itself_is_no_baseline_and_no_pass_of_a_night(
    tmp_path: Path, how: str
) -> None:
    runs, night = tmp_path / "runs", NightPlan(2)
    bundle = write_night(runs, night)
    chosen = Baselines(tmp_path / "nightly")
    chosen.choose(bundle)
    if how == "unsealed":
        (bundle / "MANIFEST.sha256").unlink()
    else:
        verdict = json.loads((bundle / "verdict.json").read_text(encoding="utf-8"))
        (bundle / "verdict.json").write_text(json.dumps({**verdict, "reasons": ["All is well"]}), encoding="utf-8")
        seal(bundle)
    with pytest.raises(BenchError, match="MANIFEST.sha256" if how == "unsealed" else "contradicts itself"):
        Baselines(tmp_path / "other").choose(bundle)
    with pytest.raises(BenchError, match="is gone or altered"):
        chosen.of(read_night(write_night(runs, NightPlan(9))), [])
    entry = nightly_run._entry(Job("server-a"), bundle, nightly_run.Ended(0, 60.0, ""), 1, Trust())
    assert (entry.outcome, entry.night) == ("ERROR", None)
    assert ("is not sealed" if how == "unsealed" else "contradicts itself") in entry.reason


@pytest.mark.parametrize("stored", ["PASS", "interrupted"])
def test_a_night_that_goes_on_judges_what_it_had_finished_again(tmp_path: Path, stored: str) -> None:
    failed = write_night(tmp_path, NightPlan(1, lost=1.0))
    entry = Entry(Job("server-a"), stored, "", read_night(failed))
    (kept,) = document([entry], [entry.job], "finished", "n", ("2026-03-01", None), {}).runs
    assert _entry_of(kept).outcome == worse(stored, "FAIL")
    (failed / "MANIFEST.sha256").unlink()
    again = _entry_of(kept)
    assert again.outcome == worse(stored, "ERROR") and "does not count: is not sealed" in again.reason


def test_without_a_choice_the_last_good_run_of_the_same_task_is_the_baseline(tmp_path: Path) -> None:
    plans = [NightPlan(1), NightPlan(2), NightPlan(3, lost=1.0), NightPlan(4, scale=0.5)]
    earlier = [read_night(write_night(tmp_path, plan)) for plan in plans]
    found = Baselines(tmp_path / "nightly").of(read_night(write_night(tmp_path, NightPlan(9))), earlier)
    assert found is not None
    assert found.id == NightPlan(2).run_id


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    return Where(INVENTORY, tmp_path / "runs")


def test_a_busy_candidate_is_skipped_with_its_holder(where: Where, tmp_path: Path) -> None:
    with exclusive("this-machine", "daq-bench qualify by somebody"):
        (entry,) = run_job(Job("this-machine"), where, tmp_path / "log", lambda: "")
    assert entry.outcome == "skipped"
    assert "daq-bench qualify by somebody" in entry.reason


def test_a_run_that_never_began_is_an_error_with_what_it_said(where: Where, tmp_path: Path) -> None:
    (entry,) = run_job(Job("this-machine", duration_s=86400.0), where, tmp_path / "log", lambda: "")
    assert entry.outcome == "ERROR"
    assert "is too small: the record of" in entry.reason


def script(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """A process in the place of a run."""
    monkeypatch.setattr(nightly_run, "command", lambda job, where: [sys.executable, "-c", source])


def test_a_stop_reaches_the_run_as_sigterm(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    ready = tmp_path / "ready"
    script(
        monkeypatch,
        f"import signal, sys, time, pathlib\nsignal.signal(15, lambda *a: (pathlib.Path({str(told)!r}).touch(), sys.exit(130)))\n"
        f"pathlib.Path({str(ready)!r}).touch()\ntime.sleep(600)",
    )
    (entry,) = run_job(Job("this-machine"), where, tmp_path / "log", lambda: "enough" if ready.exists() else "")
    assert told.exists()
    assert (entry.outcome, entry.reason) == (INTERRUPTED, "stopped before its run began: enough")


def test_one_broken_run_does_not_keep_the_next_from_starting(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, "import sys; sys.exit('error: the disk is on fire')")
    plan = Plan((Job("this-machine"), Job("this-machine-twice")))
    folder = tmp_path / "nightly" / "a"
    assert Nightly(plan, where, folder, Console(quiet=True)).execute() == 2
    found = json.loads((folder / "nightly.json").read_text(encoding="utf-8"))
    check_document(found, "nightly", "nightly.json")
    assert [run["reason"] for run in found["runs"]] == ["no run began (exit status 1): the disk is on fire"] * 2
    assert (found["state"], found["exit_status"]) == ("finished", 2)
    assert (tmp_path / "nightly" / "latest").resolve() == folder
    with pytest.raises(RefusedError, match="there is nothing to resume"):
        Nightly(plan, where, folder, Console(quiet=True)).resume()


def test_after_the_time_limit_the_others_are_not_begun_and_a_resumed_night_does_them(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, "import time; time.sleep(60)")
    plan = Plan((Job("this-machine"), Job("this-machine-twice")), time_limit_s=1.0)
    folder = tmp_path / "nightly" / "a"
    assert Nightly(plan, where, folder, Console(quiet=True)).execute() == 130
    assert "not begun: the night's time limit was reached" in (folder / "summary.txt").read_text(encoding="utf-8")
    script(monkeypatch, "print('error: now it runs')")
    night = Nightly(replace(plan, time_limit_s=None), where, folder, Console(quiet=True))
    night.resume()
    assert night.execute() == 2
    found = json.loads((folder / "nightly.json").read_text(encoding="utf-8"))
    assert [run["reason"] for run in found["runs"]] == ["no run began (exit status 0): now it runs"] * 2


def test_a_night_that_is_killed_was_interrupted_whatever_had_passed_by_then(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_door: None
) -> None:
    """Each run copies the night's folder while it runs: a SIGKILL would leave the same."""
    covers_anything("night")
    monkeypatch.setattr(Nightly, "_render", lambda self: None)
    folder, left = tmp_path / "nightly" / "a", tmp_path / "left"
    sources = {
        "this-machine": f"import shutil; shutil.copytree({str(folder)!r}, {str(left / 'in-first' / 'a')!r})\n"
        f"RUNS = {str(where.runs)!r}\n{leaves()}",
        "this-machine-twice": f"import shutil; shutil.copytree({str(folder)!r}, {str(left / 'in-second' / 'a')!r})\n"
        "print('error: the disk is on fire')",
    }
    monkeypatch.setattr(nightly_run, "command", lambda job, where: [sys.executable, "-c", sources[job.candidate]])
    plan = Plan((Job("this-machine"), Job("this-machine-twice")))
    assert Nightly(plan, where, folder, Console(quiet=True)).execute() == 2
    for name, outcomes, words in (
        ("in-first", ["interrupted", "interrupted"], "interrupted: 2 runs on 2 candidates (2 interrupted)"),
        ("in-second", ["PASS", "interrupted"], "interrupted: 2 runs on 2 candidates (1 interrupted, 1 PASS)"),
    ):
        killed = left / name / "a"
        found = read_document(killed)
        assert (found.state, found.outcome, found.exit_status) == ("running", "interrupted", 130)
        assert [run.worst for run in found.runs] == outcomes
        assert "the night still runs, or was killed" in found.runs[1].reason
        assert (killed / "summary.txt").read_text(encoding="utf-8").splitlines()[0] == words == found.headline
        assert "was killed: nothing runs" in overdue(killed.parent, 26.0, lambda text: None)
        night = Nightly(plan, where, killed, Console(quiet=True))
        sources["this-machine"] = f"RUNS = {str(where.runs)!r}\n{leaves()}"
        sources["this-machine-twice"] = "print('error: now it runs')"
        assert night.carry_out(goes_on=True) == 2
        assert [run.worst for run in read_document(killed).runs] == ["PASS", "ERROR"]


def test_a_disk_that_is_full_for_a_while_costs_no_run_of_the_night(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, refused = nightly_night.write_atomically, list[Path]()

    def full_at_first(path: Path, text: str) -> None:
        if len(refused) < 2:  # before the first run, and after it
            refused.append(path)
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, text)

    monkeypatch.setattr(nightly_night, "write_atomically", full_at_first)
    status, found = execute(leaves())
    assert (status, found.state, found.outcome, len(refused)) == (0, "finished", "PASS", 2)


def test_a_run_that_takes_too_long_costs_its_own_slot_alone(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"this-machine": "import time; time.sleep(600)", "this-machine-twice": "print('error: now it runs')"}
    monkeypatch.setattr(nightly_run, "command", lambda job, where: [sys.executable, "-c", sources[job.candidate]])
    plan = Plan((Job("this-machine"), Job("this-machine-twice")), run_limit_s=0.9)
    folder = tmp_path / "nightly" / "a"
    assert Nightly(plan, where, folder, Console(quiet=True)).execute() == 2
    found = json.loads((folder / "nightly.json").read_text(encoding="utf-8"))
    check_document(found, "nightly", "nightly.json")
    late = "stopped before its run began: it was stopped, as it took more than 0.00025 h (run_limit_h)"
    assert [(run["outcome"], run["reason"]) for run in found["runs"]] == [
        ("ERROR", late),
        ("ERROR", "no run began (exit status 0): now it runs"),
    ]
    assert found["state"] == "finished"


def test_a_hung_and_a_dead_server_cost_their_own_slots_and_a_sound_one_its_turn(
    where: Where, tmp_path: Path, mute_port: int
) -> None:
    """Real runs: one server's sshd takes the connection and never speaks, the next has none, and the third answers, and is not the one
    that was ordered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        dead_port = server.getsockname()[1]
    target = {"kind": "scratch-file", "directory": str(tmp_path / "scratch")}
    ordered = {
        "description": "as ordered",
        "identity": {"cpus_min": 1000},
        "target": target,
        "transient_buffer": "1GiB",
        "tuning": {},
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    ways = {
        name: {"ansible_host": "127.0.0.1", "ansible_port": port}
        for name, port in (("hung", mute_port), ("dead", dead_port))
    }
    hosts = {name: {**way, "bench_candidate": ordered} for name, way in {**ways, "sound": local}.items()}
    inventory = tmp_path / "lab.yml"
    YAML(typ="safe").dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, inventory)
    plan, folder = Plan(tuple(Job(name) for name in hosts), run_limit_s=600.0), tmp_path / "nightly" / "a"
    assert Nightly(plan, replace(where, inventory=inventory), folder, Console(quiet=True)).execute() == 2
    found = {run.job.candidate: run for run in read_document(folder).runs}
    for name, words in (
        ("hung", "timed out during banner exchange"),
        ("dead", "Connection refused"),
        ("sound", "CPU"),
    ):
        assert found[name].outcome == "ERROR" and words in found[name].reason, found[name].reason


@pytest.mark.parametrize(
    ("restore", "said"),
    [
        ("import sys; sys.exit(0)", "a restore after it put the machine back"),
        (
            "import sys; sys.exit(2)",
            "a restore after it failed (exit status 2): `daq-bench restore --candidate this-machine` once the machine answers",
        ),
        (
            "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
            "a restore after it failed (exit status -9): `daq-bench restore --candidate this-machine` once the machine answers",
        ),
    ],
)
def test_a_run_that_does_not_hear_is_killed_and_its_machine_restored(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restore: str, said: str
) -> None:
    monkeypatch.setattr(nightly_run, "CLEAN_UP_S_MAX", 0.6)
    monkeypatch.setattr(nightly_run, "LATE_S_MAX", 0.6)
    pid = tmp_path / "pid"
    script(
        monkeypatch,
        "import os, pathlib, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
        f"pathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntime.sleep(600)",
    )
    monkeypatch.setattr(nightly_run, "restore_command", lambda job, where: [sys.executable, "-c", restore])
    began = "late" if "600" not in restore else ""
    (entry,) = run_job(
        Job("this-machine"), where, tmp_path / "log", lambda: "enough" if began and pid.exists() else "", limit_s=3.0
    )
    assert entry.reason.endswith(f"it did not end by itself within 0.01 min and was killed; {said}")
    assert entry.outcome == (INTERRUPTED if began else "ERROR")
    assert not Path(f"/proc/{pid.read_text(encoding='ascii')}").exists()


def test_the_restore_of_a_killed_run_is_the_benchs_own(where: Where) -> None:
    argv = nightly_run.restore_command(Job("this-machine"), where)
    words = ["restore", "--candidate", "this-machine", "--inventory", str(INVENTORY), "--runs", str(where.runs)]
    assert argv[argv.index("daq_bench.rig") + 1 :] == words


def leaves(*, then: str = "", **plan: object) -> str:
    """Source of a process that leaves a bundle as a run of now does, or as `plan` says, and then does something else."""
    told = ", ".join(f"{key}={value!r}" for key, value in {"candidate": "this-machine", "number": 0, **plan}.items())
    now = "number" not in plan
    return (
        f"import os, sys, time\nsys.path[:0] = {sys.path!r}\nfrom datetime import UTC, datetime\nfrom pathlib import Path\n"
        "from nights_factory import NightPlan, write_night\n"
        f"def plan():\n    return NightPlan({told}{', started=datetime.now(UTC)' if now else ''})\n"
        # Two nights may begin in one second, and a run's id holds seconds.
        f"while {now} and (Path(RUNS) / plan().run_id).exists():\n    time.sleep(0.05)\n"
        f"write_night(Path(RUNS), plan())\n{then}"
    )


Execute = Callable[..., tuple[int, NightDocument]]


@pytest.fixture
def night(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """Carries out a night of one run, in whose place `source` runs; its exit status and document."""
    covers_anything("night")
    monkeypatch.setattr(Nightly, "_render", lambda self: None)

    def executed(source: str, keep: int | None = None) -> tuple[int, NightDocument]:
        script(monkeypatch, f"RUNS = {str(where.runs)!r}\n{source}")
        folder = new_folder(tmp_path / "nightly")
        plan = Plan((Job("this-machine"),), keeping=Keeping(passes=keep))
        status = Nightly(plan, where, folder, Console(quiet=True)).carry_out(goes_on=False)
        return status, read_document(folder)

    return executed


@pytest.fixture
def execute(night: Execute, open_door: None) -> Execute:
    return night


def read_document(folder: Path) -> NightDocument:
    return read(json.loads((folder / "nightly.json").read_text(encoding="utf-8")), NightDocument, "nightly.json")


def test_a_night_takes_no_run_that_check_bundle_refuses(night: Execute) -> None:
    status, found = night(leaves(then="sys.exit(0)"))
    assert (status, [run.outcome for run in found.runs]) == (2, ["ERROR"])
    assert "does not pass check-bundle (profiles/lab.yml: is missing" in found.runs[0].reason


@pytest.mark.parametrize("then", ["sys.exit(2)", "sys.exit(1)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_worse_than_its_bundles_say_left_something_undone(execute: Execute, then: str) -> None:
    status, found = execute(leaves(then=then))
    assert status == 2
    assert [run.outcome for run in found.runs] == ["PASS", "ERROR"]
    assert "of which its bundles say nothing" in found.runs[1].reason


@pytest.mark.parametrize(("lost", "words"), [(0.0, ["PASS", "ERROR"]), (1.0, ["FAIL", "ERROR"])])
def test_a_candidate_that_was_not_given_back_is_an_error_beside_its_run_with_the_command(
    execute: Execute, where: Where, tmp_path: Path, lost: float, words: list[str]
) -> None:
    """It stopped answering in the restoration: its record stands, and it is still tuned."""
    status, found = execute(leaves(lost=lost, left=("tuning", "telemetry"), then=f"sys.exit({int(lost)})"))
    assert (status, [run.outcome for run in found.runs]) == (2, words)
    assert found.runs[1].reason.endswith(
        "Not everything could be given back (tuning, telemetry). `daq-bench restore --candidate this-machine` does it once the cause is "
        "removed"
    )
    assert "daq-bench restore --candidate this-machine" in (
        tmp_path / "nightly" / found.nightly / "summary.txt"
    ).read_text(encoding="utf-8")


def test_a_run_that_broke_says_itself_what_it_left(execute: Execute) -> None:
    status, found = execute(leaves(state="error", left=("tuning",), then="sys.exit(2)"))
    assert (status, [run.outcome for run in found.runs]) == (2, ["ERROR"])
    assert "(tuning). `daq-bench restore --candidate this-machine` does it" in found.runs[0].reason


@pytest.mark.parametrize(("lost", "then", "words"), [(0.0, "sys.exit(0)", ["PASS"]), (1.0, "sys.exit(1)", ["FAIL"])])
def test_an_exit_status_that_the_bundles_explain_adds_nothing(
    execute: Execute, lost: float, then: str, words: list[str]
) -> None:
    assert [run.outcome for run in execute(leaves(lost=lost, then=then))[1].runs] == words


@pytest.mark.parametrize("end", ["sys.exit(2)", "sys.exit(0)"])
def test_a_bundle_that_was_copied_in_meanwhile_is_no_run_of_the_night(execute: Execute, end: str) -> None:
    status, found = execute(leaves(number=3, then=end))
    assert status == 2
    assert [run.run_id for run in found.runs] == [None]
    assert "no run began" in found.runs[0].reason


def test_a_regression_stays_one_until_somebody_accepts_it(execute: Execute, where: Where, tmp_path: Path) -> None:
    for number in range(8):
        write_night(where.runs, NightPlan(number, candidate="this-machine", rate=10.5))
    for _ in range(2):
        status, found = execute(leaves(rate=9.3))
        assert (status, found.outcome, found.runs[0].baseline) == (
            1,
            "regression",
            NightPlan(7, candidate="this-machine").run_id,
        )
    assert found.runs[0].run is not None
    Baselines(tmp_path / "nightly").choose(Path(found.runs[0].run))
    assert execute(leaves(rate=9.3))[0] == 0


def test_a_run_with_a_date_ahead_of_now_is_neither_forgotten_nor_the_newest(execute: Execute, where: Where) -> None:
    ahead = NightPlan(0, candidate="this-machine", rate=10.5, started=datetime.now(UTC) + timedelta(days=9))
    write_night(where.runs, ahead)
    status, found = execute(leaves(rate=9.3), keep=1)
    assert (status, found.runs[0].outcome, found.deleted) == (2, "ERROR", [])
    assert f"clock jumped: {ahead.run_id}" in found.runs[0].reason
    assert found.runs[0].run is not None and Path(found.runs[0].run).is_dir()


def test_a_baseline_that_is_set_during_the_night_counts_and_is_kept(
    execute: Execute, where: Where, tmp_path: Path
) -> None:
    old, new = (NightPlan(number, candidate="this-machine") for number in (1, 2))
    for plan in (old, new):
        bundle, at_s = write_night(where.runs, plan), plan.start.timestamp()
        for file in (*bundle.rglob("*"), bundle):
            os.utime(file, (at_s, at_s))
    chosen = (
        "from daq_bench.rig.nightly.baselines import Baselines\n"
        f"Baselines(Path({str(tmp_path / 'nightly')!r})).choose(Path(RUNS) / {old.run_id!r})"
    )
    status, found = execute(leaves(then=chosen), keep=1)
    assert (status, found.runs[0].baseline, found.deleted) == (0, old.run_id, [new.run_id])
    assert (where.runs / old.run_id).is_dir()


def test_two_that_set_baselines_at_once_lose_none(tmp_path: Path) -> None:
    plans = [NightPlan(number, candidate=f"server-{number}") for number in range(6)]
    both = Baselines(tmp_path / "nightly"), Baselines(tmp_path / "nightly")
    bundles = [write_night(tmp_path / "runs", plan) for plan in plans]
    threads = [
        threading.Thread(target=lambda one, some: [one.choose(bundle) for bundle in some], args=(one, bundles[at::2]))
        for at, one in enumerate(both)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert both[0].paths() == set(bundles)


@pytest.mark.parametrize("change", [{"candidate": "server-b"}, {"scale": 0.5}, {"scenario": "other"}, {"lost": 1.0}])
def test_a_stored_baseline_of_another_task_is_none(tmp_path: Path, change: dict[str, Any]) -> None:
    runs, folder = tmp_path / "runs", tmp_path / "nightly"
    Baselines(folder).choose(write_night(runs, NightPlan(1)))
    file = folder / "baselines.json"
    other = write_night(runs, replace(NightPlan(2), **change))
    stored = json.loads(file.read_text(encoding="utf-8"))
    for one in stored["baselines"].values():
        one |= {"run": str(other), "run_id": other.name, "manifest_sha256": digest_of(other / "MANIFEST.sha256")}
    file.write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(BenchError, match="set another: daq-bench baseline"):
        Baselines(folder).of(read_night(write_night(runs, NightPlan(9))), [])


def test_a_night_that_goes_on_knows_a_run_that_was_put_in_the_place_of_its_own(tmp_path: Path) -> None:
    own = write_night(tmp_path, NightPlan(1))
    entry = Entry(Job("server-a"), "PASS", "", read_night(own))
    (kept,) = document([entry], [entry.job], "interrupted", "n", ("2026-03-01", None), {}).runs
    shutil.rmtree(own)
    write_night(tmp_path, NightPlan(5, candidate="server-b"), own.name)
    again = _entry_of(kept)
    assert (again.outcome, again.night) == ("ERROR", None) and "is now run" in again.reason


def test_baselines_that_are_damaged_in_the_night_cost_the_housekeeping_and_not_the_nights_end(
    execute: Execute, where: Where, tmp_path: Path
) -> None:
    folder = tmp_path / "nightly"
    damage = f"(Path({str(folder)!r}) / 'baselines.json').write_text('torn')\nsys.exit(0)"
    status, found = execute(leaves(then=damage), keep=1)
    assert (status, found.state) == (2, "finished")
    assert "baselines.json cannot be read" in found.runs[0].reason


@pytest.mark.parametrize("content", ["{", "[" * 200_000, '{"schema_version": NaN}', "null", "[]", '{"a": 1, "a": 1}'])
def test_an_earlier_night_that_cannot_be_read_is_named_and_ends_no_later_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "nightly.json").write_text(content, encoding="utf-8")
    said: list[str] = []
    assert stored_nights(tmp_path, said.append) == []
    (line,) = said
    assert f"{tmp_path}/a/nightly.json cannot be read" in line and "what that night found is not known" in line
    (tmp_path / "baselines.json").write_text(content, encoding="utf-8")
    with pytest.raises(BenchError, match=r"baselines\.json cannot be read .*Remove it"):
        Baselines(tmp_path)


def test_two_nights_at_once_have_folders_of_their_own_and_none_goes_on_with_one_that_runs(
    where: Where, tmp_path: Path
) -> None:
    assert new_folder(tmp_path / "nights") != new_folder(tmp_path / "nights")
    folder = tmp_path / "nights" / "a"
    night = Nightly(Plan((Job("this-machine"),)), where, folder, Console(quiet=True))
    with pytest.raises(BenchError, match="holds no night"):
        night.carry_out(goes_on=True)
    assert not folder.exists()
    folder.mkdir()
    with night._alone(), pytest.raises(RefusedError, match="is a night that still runs"):
        Nightly(Plan((Job("this-machine"),)), where, folder, Console(quiet=True)).carry_out(goes_on=False)


def test_a_stop_between_two_runs_interrupts_the_night() -> None:
    skipped = Entry(Job("server-b"), "skipped", "not begun: the night was stopped by SIGTERM")
    assert status_of([Entry(Job("server-a"), "PASS", ""), skipped]) == 130
    assert status_of([Entry(Job("server-a"), "PASS", ""), replace(skipped, reason="held by somebody")]) == 3


def test_the_systemd_units_are_sound() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed on this machine")
    units = [
        str(file)
        for folder in (DOCS, DOCS.parent / "prometheus")
        for kind in ("service", "timer")
        for file in folder.glob(f"*.{kind}")
    ]
    assert len(units) == 7
    done = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_ci_examples_are_sound_yaml_and_run_what_there_is() -> None:
    yaml = YAML(typ="safe")
    gitlab = yaml.load(DOCS / "gitlab-ci.yml")
    assert gitlab["nightly"]["artifacts"]["reports"]["junit"] == "nightly/latest/xunit.xml"
    assert gitlab["nightly"]["allow_failure"]["exit_codes"] == [3]
    github = yaml.load(DOCS / "github-actions.yml")
    assert [step for step in github["jobs"]["nightly"]["steps"] if "rig nightly" in step.get("run", "")]
    jenkins = (DOCS / "Jenkinsfile").read_text(encoding="utf-8")
    assert jenkins.count("{") == jenkins.count("}")
    for text in (
        jenkins,
        (DOCS / "gitlab-ci.yml").read_text(encoding="utf-8"),
        (DOCS / "github-actions.yml").read_text(encoding="utf-8"),
    ):
        assert ".venv/bin/python -m daq_bench.rig nightly" in text
