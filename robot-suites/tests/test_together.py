"""Bursts that begin together: who waits for which other, that nobody waits for ever, and how far apart they were by their own records."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.trigger import FILE, VARIABLE, await_trigger
from daq_bench.rig.cli import main
from daq_bench.rig.nightly import job as job_module
from daq_bench.rig.nightly.bursts import account, require_together
from daq_bench.rig.nightly.fleet import Fleet
from daq_bench.rig.nightly.job import Where
from daq_bench.rig.nightly.lanes import Stop
from daq_bench.rig.nightly.meeting import Meeting, held
from daq_bench.rig.nightly.skew import begun, skews

SNB = load_scenario(Layout().inventory / "scenarios" / "snb-100s.yml")


@pytest.fixture(autouse=True)
def no_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daq_bench.rig.nightly.meeting.LEAD_S", 0.0)


class Candidates:
    """Runs of one meeting, each in a thread of its own."""

    def __init__(self, folder: Path, meeting: Meeting) -> None:
        self.bundles = {name: Bundle.create(folder, name, "", "test") for name in meeting.members}
        self._threads: list[threading.Thread] = []

    def come(self, *names: str) -> None:
        for name in names:
            self._threads.append(threading.Thread(target=await_trigger, args=(self.bundles[name], name), daemon=True))
            self._threads[-1].start()

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def told(self, name: str, burst: int = 1) -> tuple[list[str], dict[str, str]]:
        said = (self.bundles[name].read(FILE) or {})["bursts"][burst - 1]
        return sorted(said["with"]), said["without"]


@pytest.fixture
def meeting() -> Meeting:
    return Meeting(("a", "b", "c"), 3600.0)


@pytest.fixture
def candidates(tmp_path: Path, meeting: Meeting, monkeypatch: pytest.MonkeyPatch) -> Any:
    with held(meeting) as address:
        monkeypatch.setenv(VARIABLE, address)
        assert Path(address).parent.stat().st_mode & 0o077 == 0
        yield Candidates(tmp_path, meeting)
    assert not Path(address).exists()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_are_told_the_same_moment_and_each_other(candidates: Candidates, meeting: Meeting) -> None:
    candidates.come("a", "b")
    until(lambda: len(meeting._ready) == 2)
    assert candidates.bundles["a"].read(FILE) is None
    candidates.come("c")
    candidates.wait()
    assert [candidates.told(name) for name in "abc"] == [(["b", "c"], {}), (["a", "c"], {}), (["a", "b"], {})]
    assert len({candidates.bundles[name].read(FILE)["bursts"][0]["begin_s"] for name in "abc"}) == 1


def test_one_whose_run_ended_releases_the_others_and_is_named(candidates: Candidates, meeting: Meeting) -> None:
    candidates.come("a", "b")
    until(lambda: len(meeting._ready) == 2)
    meeting.left("c")
    candidates.wait()
    assert candidates.told("a") == (["b"], {"c": "its run ended before this burst"})


def test_one_that_ended_before_anybody_came_is_not_waited_for(candidates: Candidates, meeting: Meeting) -> None:
    meeting.left("c")
    meeting.left("b")
    candidates.come("a")
    candidates.wait()
    assert candidates.told("a") == ([], dict.fromkeys("bc", "its run ended before this burst"))


def test_one_that_is_late_begins_alone_and_everybody_is_told(candidates: Candidates, meeting: Meeting) -> None:
    now = [0.0]
    meeting.clock, meeting.wait_s_max = (lambda: now[0]), 60.0
    candidates.come("a", "b")
    until(lambda: len(meeting._ready) == 2)
    now[0] = 59.9
    time.sleep(0.5)
    assert candidates.bundles["a"].read(FILE) is None
    now[0] = 60.0
    candidates.wait()
    assert candidates.told("b") == (["a"], {"c": "it was not ready within 60 s"})
    candidates.come("c")
    candidates.wait()
    assert candidates.told("c") == ([], dict.fromkeys("ab", "begins alone: it was not ready within 60 s"))


def test_a_second_burst_waits_for_those_who_have_one(candidates: Candidates, meeting: Meeting) -> None:
    candidates.come("a", "b", "c")
    candidates.wait()
    candidates.come("a")
    until(lambda: len(meeting._ready) == 1)
    candidates.come("b")
    until(lambda: len(meeting._ready) == 2)
    meeting.left("c")  # it had enough after one
    candidates.wait()
    assert candidates.told("a", 2) == (["b"], {"c": "its run ended before this burst"})


def test_strangers_and_noise_neither_end_nor_release_a_meeting(candidates: Candidates, meeting: Meeting) -> None:
    import socket

    for said in (b"", b"\n", b"{", b"[]\n", b'{"candidate": null}\n', b'{"candidate": "nemo"}\n', b"\xff" * 5000):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(os.environ[VARIABLE])
            link.sendall(said)
    candidates.come("a", "b")
    until(lambda: len(meeting._ready) == 2)
    candidates.come("c")
    candidates.wait()
    assert candidates.told("c") == (["a", "b"], {})


def test_one_that_hangs_up_while_it_waits_holds_nobody(candidates: Candidates, meeting: Meeting) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.environ[VARIABLE])
        link.sendall(b'{"candidate": "c"}\n')
        until(lambda: len(meeting._ready) == 1)
    candidates.come("a", "b")
    candidates.wait()
    assert candidates.told("a") == (["b", "c"], {})  # c's end is told by its run: see the account


def test_a_fleet_that_is_gone_breaks_the_run_and_lets_none_begin_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(BenchError, match="the fleet that was to give the trigger is gone"):
        await_trigger(Bundle.create(tmp_path, "a", "", "test"), "a")


def test_without_a_fleet_a_burst_begins_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    bundle = Bundle.create(tmp_path, "a", "", "test")
    await_trigger(bundle, "a")
    assert bundle.read(FILE) is None


def recorded(folder: Path, name: str, begins: list[float], difference_s: float | None, **changes: Any) -> Path:
    """A bundle of one candidate whose bursts began at these times by its own clock, which is `difference_s` ahead."""
    bundle = folder / name
    (bundle / "facts").mkdir(parents=True)
    (bundle / "results").mkdir()
    others = [one for one in ("a", "b", "c") if one != name]
    told = {"begin_s": 0.0, "with": others, "without": {}, "waited_s": 0.0, **changes}
    readings = [
        {"when": f"{when} the {what}", "difference_s": difference_s, "uncertainty_s": 0.002}
        for when, what in (("before", "run"), ("before", "load"), ("after", "load"))
    ]  # fmt: skip
    documents = {
        FILE: {"schema_version": 1, "bursts": [told] * len(begins)},
        "facts/clock.json": {"schema_version": 1, "same_clock": difference_s is None, "readings": [] if difference_s is None else readings},
        "results/snb_record.json": {"repetitions": [
            {"minidaq": {"started_utc": f"2026-01-31T12:00:{begin:06.3f}Z", "time": {"prepare_s": 0.1}}} for begin in begins
        ]},
    }  # fmt: skip
    for file, document in documents.items():
        (bundle / file).write_text(json.dumps(document), encoding="utf-8")
    return bundle


def test_skew_is_of_the_records_on_one_clock(tmp_path: Path) -> None:
    """b's clock is 5 s ahead: by its own clock it seems to begin five seconds later than it did."""
    found = [
        *begun("a", recorded(tmp_path, "a", [10.0, 40.0], None)),
        *begun("b", recorded(tmp_path, "b", [15.25, 45.0], 5.0)),
        *begun("c", recorded(tmp_path, "c", [10.1, 40.5], 0.0)),
    ]
    one, two = skews(found)
    assert (one.skew_s, one.first, one.last) == (pytest.approx(0.25), "a", "b")
    assert (two.skew_s, two.last) == (pytest.approx(0.5), "c")
    assert one.uncertainty_s == pytest.approx(
        0.051 + 0.053
    )  # half the preparation of each, b's clock, a millisecond each
    assert "a, b, c began within 0.250 s (known to 0.104 s; a first, b last)" in one.words


DAMAGED: dict[str, tuple[str, Any]] = {
    "no clock": ("facts/clock.json", None),
    "no comparison of clocks": ("facts/clock.json", {"same_clock": False, "readings": []}),
    "a clock that says nothing": ("facts/clock.json", {"same_clock": False, "readings": [{"when": "x"}] * 2}),
    "no record": ("results/snb_record.json", None),
    "a record without a start": ("results/snb_record.json", {"repetitions": [{"minidaq": {}}]}),
    "a null for a start": (
        "results/snb_record.json",
        {"repetitions": [{"minidaq": {"started_utc": None, "time": {"prepare_s": 0}}}]},
    ),
    "no trigger": (FILE, None),
    "a trigger that says nothing": (FILE, {"bursts": [{}]}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_record_that_does_not_say_when_it_began_is_named_and_never_called_together(
    tmp_path: Path, damage: str
) -> None:
    bundle = recorded(tmp_path, "a", [10.0], 0.0)
    name, content = DAMAGED[damage]
    (bundle / name).unlink()
    if content is not None:
        (bundle / name).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(BenchError, match=r"a (holds no|does not say|was given no)"):
        list(begun("a", bundle))


def test_one_whose_record_is_missing_is_named_in_the_groups_skew(tmp_path: Path) -> None:
    found = [*begun("a", recorded(tmp_path, "a", [10.0], 0.0)), *begun("b", recorded(tmp_path, "b", [10.1], 0.0))]
    (one,) = skews(found)
    assert one.without == {"c": "its record does not say when it began"}


def test_the_account_of_a_fleet_of_which_one_broke(tmp_path: Path) -> None:
    from types import SimpleNamespace

    entries: list[Any] = [
        SimpleNamespace(job=Job(name), night=SimpleNamespace(path=recorded(tmp_path, name, [10.0], 0.0)), reason="") for name in "ab"
    ]  # fmt: skip
    said: list[str] = []
    broke: Any = SimpleNamespace(job=Job("c"), night=None, reason="no run began")
    assert not account([*entries, broke], tmp_path, said.append)
    assert said[-1] == "c: no run began"
    assert json.loads((tmp_path / "together.json").read_text(encoding="utf-8"))["unknown"] == {"c": "no run began"}
    third: Any = SimpleNamespace(
        job=Job("c"), night=SimpleNamespace(path=recorded(tmp_path, "c", [10.2], 0.0)), reason=""
    )
    assert account([*entries, third], tmp_path, said.append)


MEMBER = """
import pathlib, sys
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.trigger import await_trigger
if NAME == 'd':
    sys.exit('error: its drive is not there')
bundle = Bundle.create(pathlib.Path({folder!r}), NAME, '', 'test')
await_trigger(bundle, NAME)
said = bundle.read('facts/together.json')['bursts'][0]
sys.exit('error: with ' + ' '.join(sorted(said['with'])) + ' without ' + ' '.join(said['without']))
"""


def inventory(folder: Path, *names: str, **more: Any) -> Path:
    entry = {
        "description": "one of several", "identity": {"architectures": ["x86_64"], "cpus_min": 1, "memory_min": "1GiB"},
        "target": {"kind": "scratch-file", "directory": "/var/tmp/bench"}, "transient_buffer": "1GiB", "tuning": {}, **more,
    }  # fmt: skip
    hosts = {name: {"ansible_host": "192.0.2.1", "ansible_user": "bench", "bench_candidate": entry} for name in names}
    file = folder / "lab.yml"
    file.write_text(json.dumps({"all": {"children": {"candidates": {"hosts": hosts}}}}), encoding="utf-8")
    return file


def test_processes_of_a_fleet_meet_and_one_that_breaks_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    source = MEMBER.replace("{folder!r}", repr(str(tmp_path / "bundles")))
    monkeypatch.setattr(
        job_module, "command", lambda job, where: [sys.executable, "-c", source.replace("NAME", repr(job.candidate))]
    )
    names = ("a", "b", "d")
    where = Where(inventory(tmp_path, *names), tmp_path / "runs")
    fleet = Fleet(
        [Job(name) for name in names], where, tmp_path / "logs", Console(quiet=True), 3, Stop(), Meeting(names, 60.0)
    )
    said = [entry.reason.removeprefix("no run began (exit status 1): ") for entry in fleet.execute("the test")]
    assert said == ["with b without d", "with a without d", "its drive is not there"]


def test_who_cannot_begin_together_is_refused_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bmc = {"bmc": {"address": "192.0.2.10", "user": "bench", "password_env": "BENCH_BMC_PASSWORD"}}
    with pytest.raises(RefusedError, match="a, b meet on a machine"):
        require_together([Job("a"), Job("b")], [SNB, SNB], inventory(tmp_path, "a", "b", **bmc))
    scans = load_scenario(Layout().inventory / "scenarios" / "scans-rehearsal.yml")
    with pytest.raises(RefusedError, match="b has no burst in it"):
        require_together([Job("a"), Job("b")], [SNB, scans], inventory(tmp_path, "a", "b"))
    with pytest.raises(RefusedError, match="two candidates or more"):
        require_together([Job("a")], [SNB], inventory(tmp_path, "a"))
    require_together([Job("a"), Job("b")], [SNB, SNB], inventory(tmp_path, "a", "b"))
    assert main(["qualify", "--together"]) == 2
    assert "--together needs candidates" in capsys.readouterr().err
