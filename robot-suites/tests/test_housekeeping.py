"""A night deletes some bundles and never deletes others: old passes, everything by age, and the oldest beyond a size."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nights_factory import NightPlan, write_night

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.nights.night import read_night
from daq_bench.bench_model.nights.run_history import bundles_in
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.housekeeping import NIGHT_LOCK, Housekeeping, Keeping
from daq_bench.rig.nightly.plan import load_declared

NOW = datetime.now(UTC)
DIES_AT = 1000  # the removal of a file, of some 2,400: in the middle of a bundle
CLEANS = """
import os, pathlib, signal, sys
from daq_bench.rig.nightly.baselines import Baselines
from daq_bench.rig.nightly.housekeeping import NIGHT_LOCK, Housekeeping, Keeping
runs, nights, dies_at = *map(pathlib.Path, sys.argv[1:3]), int(sys.argv[3])
removals = iter(range(1, dies_at))
def count(event, arguments):
    if event == "os.remove" and next(removals, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
Housekeeping(runs, nights, Keeping(days=30), Baselines(nights), [], print).run([])
"""


class House:
    """Folders of runs and nights that a test fills, and a night that has just ended."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.nights = folder / "runs", folder / "nightly"
        self.tonight = [self.night(0), self.bundle(0, "tonight")]
        self.said: list[str] = []

    def bundle(self, days: float, name: str, *, written: float | None = None) -> Path:
        """A bundle without a seal that began so many days ago."""
        path = self.runs / f"{NOW - timedelta(days=days):%Y%m%dT%H%M%SZ}-{name}"
        (path / "telemetry").mkdir(parents=True)
        (path / "run.json").write_text("{}", encoding="utf-8")
        (path / "telemetry" / "points.lp").write_bytes(bytes(100_000))
        return self.at(path, days if written is None else written)

    def night(self, days: float) -> Path:
        path = self.nights / f"{NOW - timedelta(days=days):%Y%m%dT%H%M%SZ}-nightly"
        path.mkdir(parents=True)
        (path / "nightly.json").write_text("{}", encoding="utf-8")
        (path / "01-a.log").write_text("what it printed", encoding="utf-8")
        return self.at(path, days)

    def at(self, path: Path, days: float) -> Path:
        seconds = (NOW - timedelta(days=days)).timestamp()
        for one in (*path.rglob("*"), path):
            os.utime(one, (seconds, seconds))
        return path

    def keep(self, compared: Collection[str] = (), **limits: object) -> list[str]:
        keeping, baselines = Keeping(**limits), Baselines(self.nights)  # type: ignore[arg-type]
        return Housekeeping(self.runs, self.nights, keeping, baselines, self.tonight, self.said.append, compared).run(
            []
        )

    def names(self) -> set[str]:
        return {path.name for folder in (self.runs, self.nights) for path in folder.iterdir() if path.is_dir()}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_old_passes_are_deleted_and_nothing_else(house: House) -> None:
    plans = [
        NightPlan(1), NightPlan(2), NightPlan(3, lost=1.0), NightPlan(4), NightPlan(5, outcome="INADMISSIBLE"), NightPlan(6),
        NightPlan(7), NightPlan(8), NightPlan(0, scenario="other"),
    ]  # fmt: skip
    bundles = {plan.number: write_night(house.runs, plan) for plan in plans}
    for bundle in bundles.values():
        house.at(bundle, 3)
    Baselines(house.nights).choose(bundles[1])
    (bundles[4] / "facts" / "smart-before.json").write_text("{}", encoding="utf-8")  # differs from its manifest
    known = [read_night(bundle) for number, bundle in bundles.items() if number != 4]
    before = house.names()
    keeping = Keeping(passes=2)
    gone = Housekeeping(
        house.runs, house.nights, keeping, Baselines(house.nights), house.tonight, house.said.append
    ).run(known)
    assert sorted(gone) == sorted([bundles[2].name, bundles[6].name])
    assert house.names() == before - set(gone)


def test_nothing_is_deleted_that_the_plan_does_not_ask(house: House) -> None:
    house.bundle(4000, "old")
    before = house.names()
    assert house.keep() == []
    assert house.names() == before
    assert not Keeping(named=frozenset({"x"}))


def test_what_is_older_goes_whatever_its_outcome_but_for_what_somebody_needs(house: House) -> None:
    young, old = house.bundle(9, "young"), [house.bundle(11, "killed"), house.night(12)]
    claim, running = house.bundle(400, "claim"), house.bundle(40, "endurance", written=1)
    newest = house.bundle(30, "latest")
    (house.runs / "latest").symlink_to(newest.name)
    sealed = {number: write_night(house.runs, NightPlan(number)) for number in (1, 2, 3)}
    for path in sealed.values():
        house.at(path, 100)
    Baselines(house.nights).choose(sealed[1])
    (sealed[2] / "facts" / "smart-before.json").write_text('{"devices": []}', encoding="utf-8")
    house.at(sealed[2], 100)
    foreign = house.runs / "20200101T000000Z-notes"
    foreign.mkdir()
    unnamed = house.at(house.bundle(99, "x").rename(house.runs / "of-my-own"), 99)
    ahead = house.at(house.bundle(50, "ahead"), -3)
    gone = set(house.keep(days=10, named=frozenset({claim.name})))
    assert gone == {path.name for path in (*old, sealed[3])}
    for path in (young, claim, running, newest, sealed[1], sealed[2], foreign, unnamed, ahead, *house.tonight):
        assert path.exists(), path.name
    assert not any(path.exists() for path in (*old, sealed[3]))


def test_where_all_is_old_the_clock_may_have_jumped_and_a_person_looks_first(house: House) -> None:
    old = [house.bundle(500, "a"), house.night(501)]
    assert house.keep(days=30) == []
    assert all(path.exists() for path in old)
    assert "all 2 bundles and nights before tonight's are older than keep_days, 30" in house.said[0]
    house.bundle(1, "b")
    assert sorted(house.keep(days=30)) == sorted(path.name for path in old)


def test_beyond_the_size_the_oldest_go_first_until_the_rest_fits(house: House) -> None:
    oldest, old, young = house.bundle(30, "a"), house.bundle(20, "b"), house.bundle(10, "c")
    kept = house.bundle(40, "claim")
    all_bytes = sum(one.lstat().st_blocks * 512 for folder in (house.runs, house.nights) for one in folder.rglob("*"))
    gb = (all_bytes - 150_000) / 1e9  # two of 100 kB each have to go
    assert house.keep(gb=gb, named=frozenset({kept.name})) == [oldest.name, old.name]
    assert young.exists() and kept.exists()
    assert house.said == []


def test_a_size_that_only_what_must_stay_exceeds_is_said(house: House) -> None:
    house.bundle(30, "a")
    assert len(house.keep(gb=1e-6)) == 1
    assert "keep_gb allows 0.000001" in house.said[0]
    assert all(path.exists() for path in house.tonight)


def test_a_bench_that_dies_while_it_deletes_leaves_no_half_bundle(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.bundle(1, "young")
    old = [house.bundle(50, "a"), house.bundle(60, "b")]

    def dies(path: Path) -> None:
        (path / "run.json").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", dies)
        with pytest.raises(KeyboardInterrupt):
            house.keep(days=30)
    assert [path.name for path in bundles_in([house.runs]) if path in old] == [old[0].name]  # the oldest went first
    assert house.keep(days=30) == [old[0].name]
    assert not list(house.runs.glob(".deleting-*"))


def test_what_cannot_be_removed_is_named_keeps_nothing_else_and_is_tried_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.bundle(1, "young")
    stuck, old, remove = house.bundle(60, "stuck"), house.bundle(50, "old"), shutil.rmtree

    def refuses(path: Path) -> None:
        if path.name.endswith("-stuck"):
            raise OSError(30, "Read-only file system", str(path))
        remove(path)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", refuses)
        assert sorted(house.keep(days=30)) == sorted([stuck.name, old.name])
        assert house.keep(days=30) == []
    assert len(house.said) == 2 and all("Read-only file system" in one and stuck.name in one for one in house.said)
    assert not old.exists() and len(list(house.runs.glob(".deleting-*"))) == 1
    assert house.keep(days=30) == []
    assert not list(house.runs.glob(".deleting-*"))


def test_what_still_goes_on_is_never_deleted_however_old_and_large(house: House, tmp_path: Path) -> None:
    """A soak of three weeks that somebody else drives, one whose reports are being rendered, and another night."""
    soak, killed = house.bundle(21, "soak", written=0.01), house.bundle(20, "killed")
    rendering = house.at(write_night(house.runs, NightPlan(1)), 0.01)
    other, ended = house.night(19), house.night(18)
    with (other / NIGHT_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (soak / "results.json.part").symlink_to(tmp_path / "vanished")
        assert sorted(house.keep(days=0.001, gb=1e-6)) == sorted([killed.name, ended.name])
    for path in (soak, rendering, other, *house.tonight):
        assert path.exists(), path.name


def test_the_run_that_a_job_was_compared_with_last_stays(house: House) -> None:
    house.bundle(1, "young")
    last, before = house.bundle(50, "last-good"), house.bundle(51, "before")
    assert house.keep(compared={last.name}, days=30, gb=1e-6)[0] == before.name
    assert last.exists() and not before.exists()


def test_links_and_names_that_are_no_moment_are_left_alone(house: House, tmp_path: Path) -> None:
    """Each leads to a bundle elsewhere, or has a bundle's document: nothing of them is deleted, and none ends the night."""
    elsewhere = tmp_path / "elsewhere"
    kept = house.bundle(90, "archive").rename(elsewhere)
    old = house.bundle(50, "old")
    (old / "telemetry" / "more").symlink_to(elsewhere)
    for one in (old / "telemetry" / "more", old / "telemetry"):
        os.utime(one, (0, 0), follow_symlinks=False)
    link = house.runs / "20200101T000000Z-link"
    link.symlink_to(elsewhere)
    (house.runs / ".deleting-link").symlink_to(elsewhere)
    (house.runs / ".deleting-file").write_text("", encoding="utf-8")
    (house.runs / "latest").symlink_to("20200101T000000Z-gone")
    odd = house.at(house.bundle(80, "x").rename(house.runs / "20261399T250000Z-odd"), 80)
    house.bundle(1, "young")
    assert house.keep(days=30) == [old.name]
    assert (kept / "run.json").exists() and (kept / "telemetry" / "points.lp").exists()
    assert link.is_symlink() and odd.exists() and not old.exists()
    assert house.said == [] and not list(house.runs.glob(".deleting-*"))


def test_two_nights_that_clean_up_at_once_are_no_error(house: House) -> None:
    """The second leaves out a run that the first has deleted or is deleting."""
    house.bundle(1, "young")
    old = [house.bundle(50 + number, f"old-{number}") for number in range(30)]
    start, gone = threading.Barrier(2), dict[int, list[str]]()

    def clean(number: int) -> None:
        start.wait()
        gone[number] = house.keep(days=30)

    both = [threading.Thread(target=clean, args=(number,)) for number in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(gone[0] + gone[1]) == sorted(path.name for path in old)
    assert house.said == [] and not list(house.runs.glob(".deleting-*"))


def test_a_bench_killed_in_the_middle_of_a_bundle_leaves_whole_ones_or_none(house: House, tmp_path: Path) -> None:
    """SIGKILL, while a bundle of many files is removed; the next night removes the rest."""
    house.bundle(1, "young")
    old = [house.bundle(50 + number, f"old-{number}") for number in range(8)]
    for path in old:
        for number in range(300):
            (path / "telemetry" / str(number)).write_bytes(b"x")
        house.at(path, 50)
    cleaner = subprocess.run([sys.executable, "-c", CLEANS, house.runs, house.nights, str(DIES_AT)], check=False)
    assert cleaner.returncode == -signal.SIGKILL and list(house.runs.glob(".deleting-*"))
    assert any(path.exists() for path in old) and not all(path.exists() for path in old)
    for path in bundles_in([house.runs]):
        assert (path / "run.json").exists()
        assert path not in old or len(list((path / "telemetry").iterdir())) == 301
    house.keep(days=30)
    assert not any(path.exists() for path in old) and not list(house.runs.glob(".deleting-*"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("keep_days: 0", "keep_days"),
        ("keep_days: soon", "keep_days"),
        ("keep_gb: 0", "keep_gb"),
        ("keep_gb: .nan", "keep_gb"),
        ("keep: 20260131T000000Z-a", "keep"),
        ("keep: [1]", "keep"),
        ("keep_nights: 3", "keep_nights"),
    ],
)
def test_a_limit_that_is_none_is_refused_by_its_name(tmp_path: Path, line: str, named: str) -> None:
    with pytest.raises(BenchError, match=named):
        load_declared(plan(tmp_path, line))


def test_the_plan_says_what_stays(tmp_path: Path) -> None:
    text = "keep_days: 400\n      keep_gb: 500\n      keep: [20260131T000000Z-a]"
    assert load_declared(plan(tmp_path, text)).keeping == Keeping(None, 400, 500, frozenset({"20260131T000000Z-a"}))


def plan(folder: Path, line: str) -> Path:
    file = folder / "lab.yml"
    file.write_text(
        f"all:\n  vars:\n    bench_nightly:\n      runs: [{{candidate: a}}]\n      {line}\n", encoding="utf-8"
    )
    return file
