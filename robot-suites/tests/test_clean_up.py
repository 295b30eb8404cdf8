"""A run gives back everything that it has taken, in a fixed order, whatever breaks meanwhile.

The parts of the candidate are fakes that write down what is asked of them; bundle, signals, clean-up and the run's own order are real."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from daq_bench.audit.good.small_run import some_run, target
from rich.console import Console

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.run import Git
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout, Request
from daq_bench.rig.run import measuring, qualify, suites, targets, watch
from daq_bench.rig.run.clean_up import CleanUp, Place


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    made = Bundle.create(tmp_path, "server", "", "trial")
    made.begin(some_run())
    return made


def broken(text: str) -> Callable[[], None]:
    def step() -> None:
        raise BenchError(text)

    return step


def recorded(bundle: Bundle) -> list[str]:
    return [one.text for one in bundle.events() if (one.kind, one.source) == ("error", "clean-up")]


def test_what_was_acquired_last_goes_first_and_a_failure_keeps_no_other_from_its_turn(bundle: Bundle) -> None:
    done: list[str] = []
    said: list[str] = []
    with CleanUp(bundle, said.append, is_local=True) as clean_up:
        clean_up.add(Place.TUNING, lambda: done.append("restore"))
        clean_up.add(Place.TUNING, broken("the guard is gone"))
        clean_up.add(Place.TUNING, lambda: done.append("lease"))
        assert done == []
    assert done == ["lease", "restore"]
    assert recorded(bundle) == ["tuning: the guard is gone"]
    assert said == ["warning: tuning could not be cleaned up: the guard is gone"]


@pytest.mark.parametrize(
    ("is_local", "last"), [(True, [Place.TUNING, Place.AGENT]), (False, [Place.AGENT, Place.TUNING])]
)
def test_the_places_keep_their_order_whatever_was_acquired_first(
    bundle: Bundle, is_local: bool, last: list[Place]
) -> None:
    for order in (list(Place), list(reversed(Place))):
        done: list[Place] = []
        with CleanUp(bundle, print, is_local=is_local) as clean_up:
            for place in order:
                clean_up.add(place, partial(done.append, place))
        assert done == [Place.RETURN, Place.TARGETS, Place.BMC_AGENT, *last]


def test_every_clean_up_may_fail_and_each_failure_is_recorded_in_its_turn(bundle: Bundle) -> None:
    with CleanUp(bundle, lambda text: None, is_local=True) as clean_up:
        for place in Place:
            clean_up.add(place, broken("no"))
    assert recorded(bundle) == [f"{place.value}: no" for place in Place]


def test_a_full_disk_keeps_nothing_from_being_given_back(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*words: object, **more: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "event", full)
    done: list[str] = []
    said: list[str] = []
    with CleanUp(bundle, said.append, is_local=True) as clean_up:
        clean_up.add(Place.AGENT, lambda: done.append("agent"))
        clean_up.add(Place.TUNING, lambda: done.append("restore"))
        clean_up.add(Place.TARGETS, full)
    assert done == ["restore", "agent"]
    assert said == ["warning: target could not be cleaned up: [Errno 28] No space left on device"]


def test_a_restoration_that_cannot_write_beside_the_bundle_works_in_memory(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second try has Ansible's own files there too."""
    tried: list[Path] = []

    @dataclass
    class Ansible:
        facts: Path
        scratch: Path | None = None

        def run(self, playbook: str) -> None:
            tried.append(self.facts)
            if self.facts == bundle.path / "facts":
                raise OSError(28, "No space left on device")
            assert self.scratch == self.facts and self.facts.is_dir()

    session = SimpleNamespace(reconnect=lambda: None, ansible=lambda facts, run, path: Ansible(facts))
    monkeypatch.setattr(bundle, "event", lambda *words, **more: (_ for _ in ()).throw(OSError(28, "full")))
    measuring._restore(session, bundle)  # type: ignore[arg-type]
    assert len(tried) == 2 and not tried[1].exists()


def test_a_fault_of_the_bench_is_raised_only_when_all_is_given_back(bundle: Bundle) -> None:
    done: list[str] = []
    clean_up = CleanUp(bundle, print, is_local=True)
    clean_up.add(Place.AGENT, lambda: done.append("agent"))
    clean_up.add(Place.TARGETS, lambda: {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        clean_up.close()
    assert done == ["agent"]


def test_nothing_is_given_back_twice_and_nothing_registered_too_late(bundle: Bundle) -> None:
    done: list[str] = []
    with CleanUp(bundle, print, is_local=True) as clean_up:
        clean_up.add(Place.AGENT, lambda: done.append("agent"))
        clean_up.close()
    assert done == ["agent"]
    with pytest.raises(KeyError):
        clean_up.add(Place.AGENT, lambda: done.append("too late"))


def test_an_exception_that_nobody_expected_does_not_leave_the_machine_tuned(bundle: Bundle) -> None:
    done: list[str] = []
    with pytest.raises(SystemExit), CleanUp(bundle, print, is_local=True) as clean_up:
        clean_up.add(Place.TUNING, lambda: done.append("restore"))
        raise SystemExit(1)
    assert done == ["restore"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_cut_a_clean_up_short(bundle: Bundle, number: signal.Signals) -> None:
    done: list[str] = []
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    clean_up = CleanUp(bundle, print, is_local=True)
    clean_up.add(Place.AGENT, lambda: done.append("agent"))
    clean_up.add(Place.TARGETS, lambda: os.kill(os.getpid(), number))
    clean_up.close()
    assert done == ["agent"]
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


@dataclass
class Fakes:
    """The candidate's parts; `done` is what was asked of them, in order."""

    is_local: bool = True
    is_raw: bool = False
    breaks: tuple[str, ...] = ()
    interrupted: bool = False
    done: list[str] = field(default_factory=list)

    def note(self, what: str, result: Any = None) -> Any:
        self.done.append(what)
        if self.interrupted and what.startswith(("load", "end ", "remove ", "restore")):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        if what in self.breaks:
            raise BenchError(f"{what} broke")
        return result

    def session(self, name: str) -> Any:
        """A fake of CandidateSession; `name` is also the target's folder."""
        target = SimpleNamespace(is_raw=self.is_raw and name == "first", storage=None, name="")
        entry = SimpleNamespace(name="server", target=target, document={})
        daqwriter = SimpleNamespace(daqwriter=Path("daqwriter"))
        machine = SimpleNamespace(
            is_local=self.is_local,
            lock=SimpleNamespace(demand_held=lambda: self.note("is locked")),
            call=lambda _, command, folder, *run: self.note(
                f"{command} {Path(folder).parts[0]}", {"removed": [], "failed": None}
            ),
            places=lambda *_: daqwriter,
        )
        ansible = SimpleNamespace(run=lambda playbook, *_, **__: self.note(playbook))
        return SimpleNamespace(
            layout=Layout(), machine=machine, directory=Path(name), influx_token="",
            profiles=SimpleNamespace(candidate=entry, scenario=None, inventory_file=Path("lab.yml")),
            at=self.session, find_raw_drive=lambda: None, reconnect=lambda: None,
            prepare_agent=lambda *_: (self.agent("agent"), []), bmc_agent=lambda *_: self.agent("bmc"),
            ansible=lambda *_: ansible, survey=lambda **_: (None, 0.0, 0.0),
            await_return=lambda: self.note("await return"), forget_run=lambda _: self.note("forget the run"), denied=lambda *_: "",
        )  # fmt: skip

    def agent(self, name: str) -> Any:
        return SimpleNamespace(
            start=lambda: self.note(f"start {name}"), alive=lambda: True,
            stop=lambda: self.note(f"end {name}", 0), kill=lambda: self.note(f"kill {name}"),
        )  # fmt: skip

    def lease(self) -> Any:
        return SimpleNamespace(start=lambda: self.note("lease"), stop=lambda keep: self.note(f"end lease, keep {keep}"))

    def put_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = SimpleNamespace(release=lambda: self.note("release first", {}))
        facts = SimpleNamespace(note=lambda *_: None, document=lambda **_: {})
        for module, name, fake in (
            (targets, "compared_names", lambda _: ["first", "second", "third"]),
            (targets, "ClockLog", lambda: facts),
            (targets, "_check_raw", lambda *_: raw),
            (targets, "target_of", lambda *_: target()),
            (targets.preflight, "check_target", lambda *_: SimpleNamespace(filesystem="ext4", free_bytes=1, memory="")),
            (targets.preflight, "check_direct_io", lambda *_: None),
            (targets.preflight, "reserve_of", lambda *_: 0),
            (targets.preflight, "check_space", lambda *_: None),
            (watch, "counts_document", lambda *_: self.note("count in InfluxDB", {})),
            (measuring, "FirmwareLog", lambda *_: facts),
            (measuring, "fan_lease", lambda *_: self.lease()),
            (measuring, "environment_of", lambda _: {}),
            (measuring, "bmc_secret", lambda *_: {}),
            (measuring, "server_version", lambda _: None),
            (measuring, "versions", lambda _: {}),
            (measuring, "git_state", lambda *_: Git(None, None)),
            (suites, "run_suites", lambda *_: self.note("load")),
        ):
            monkeypatch.setattr(module, name, fake)


ACQUIRED = ["provision", "lease", "verify", "create first", "start agent", "start bmc", "load", "verify", "is locked"]
TARGETS = ["remove first", "remove second", "remove third"]
ENDED = ["end agent", "count in InfluxDB", "forget the run"]


def measured(fakes: Fakes, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, *, keep_tuning: bool = False) -> list[str]:
    """Returns all that was asked of the candidate in a measurement and the clean-up after it."""
    fakes.put_in(monkeypatch)
    session = fakes.session("first")
    seen = watch.Watch(session, bundle, Influx("http://127.0.0.1:1"), None, lambda text: None)
    clean_up = CleanUp(bundle, lambda text: None, is_local=fakes.is_local)
    try:
        loads = suites.ScenarioSuites()
        measuring.measure(
            targets.Targets(session), seen, bundle, Path("first"), clean_up, loads, keep_tuning=keep_tuning
        )
    except BenchError as error:
        assert fakes.breaks, error
    clean_up.close()
    return fakes.done


@pytest.mark.parametrize("is_local", [True, False])
def test_a_run_is_taken_back_in_order(bundle: Bundle, monkeypatch: pytest.MonkeyPatch, is_local: bool) -> None:
    restored = ["end lease, keep False", "restore"]
    last = [*restored, *ENDED] if is_local else [*ENDED, *restored]
    done = measured(Fakes(is_local=is_local), bundle, monkeypatch)
    assert done == [*ACQUIRED, "await return", *TARGETS, "end bmc", *last]
    assert recorded(bundle) == []


@pytest.mark.parametrize(
    ("broken_step", "acquired", "given_back"),
    [
        ("provision", 1, [*TARGETS, "restore"]),
        ("lease", 2, [*TARGETS, "end lease, keep False", "restore"]),
        ("create first", 4, [*TARGETS, "end lease, keep False", "restore"]),
        ("start agent", 5, [*TARGETS, "end lease, keep False", "restore"]),
        # An agent of the BMC that did not come up has an account, too.
        ("start bmc", 6, [*TARGETS, "end bmc", "end lease, keep False", "restore", *ENDED]),
        ("load", 7, [*TARGETS, "end bmc", "end lease, keep False", "restore", *ENDED]),
        # The lock on the candidate was lost with its connection: nothing that was measured since counts.
        ("is locked", 9, [*TARGETS, "end bmc", "end lease, keep False", "restore", *ENDED]),
    ],
)
def test_a_run_that_breaks_gives_back_what_it_had_and_nothing_else(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, broken_step: str, acquired: int, given_back: list[str]
) -> None:
    done = measured(Fakes(breaks=(broken_step,)), bundle, monkeypatch)
    assert done == [*ACQUIRED[:acquired], "await return", *given_back]


def test_a_tuning_that_is_kept_is_not_restored_and_its_lease_is_prolonged(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = measured(Fakes(), bundle, monkeypatch, keep_tuning=True)
    assert "restore" not in done
    assert "end lease, keep True" in done


def test_a_raw_drive_is_released_once_it_may_have_been_written_to(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = measured(Fakes(is_raw=True), bundle, monkeypatch)
    at = done.index("await return")
    assert done[at + 1 : at + 4] == ["release first", "remove second", "remove third"]
    assert (bundle.path / "facts" / "raw-device-released.json").exists()


def test_a_raw_drive_that_was_never_opened_is_left_alone(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "release first" not in measured(Fakes(is_raw=True, breaks=("provision",)), bundle, monkeypatch)


def test_an_agent_that_does_not_end_is_killed_and_not_counted(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    done = measured(Fakes(breaks=("end agent",)), bundle, monkeypatch)
    assert done[-2:] == ["end agent", "kill agent"]
    assert recorded(bundle) == ["telemetry: end agent broke"]


def test_whatever_of_the_candidate_fails_the_rest_is_given_back(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ("await return", *TARGETS, "end bmc", "end lease, keep False", "restore", "end agent")
    done = measured(Fakes(breaks=every), bundle, monkeypatch)
    assert done == [*ACQUIRED, *every, "kill agent"]
    assert recorded(bundle) == [
        "reboot: await return broke", *(f"target {name}: remove {name} broke" for name in ("first", "second", "third")),
        "telemetry of the BMC: end bmc broke", "tuning: end lease, keep False broke", "tuning: restore broke",
        "telemetry: end agent broke",
    ]  # fmt: skip


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_locks_are_released_last_also_when_signals_arrive_during_load_and_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    fakes = Fakes(interrupted=interrupted)
    fakes.put_in(monkeypatch)

    @contextmanager
    def held(what: str, value: object) -> Iterator[Any]:
        fakes.note(f"take {what}")
        try:
            yield value
        finally:
            fakes.note(f"release {what}")

    session = fakes.session("first")
    seen = []
    for name, fake in (
        ("check", lambda _: None),
        ("all_exclusive", lambda *_: held("lock", None)),
        ("connected", lambda *_, **__: held("connection", session.machine)),
        ("machine_locked", lambda *_: held("machine", "")),
        ("CandidateSession", lambda *_: session),
        ("first_run", lambda *_: some_run()),
        ("derive", lambda _: fakes.note("derive")),
        ("conclude", lambda bundle, *_: seen.append(bundle) or fakes.note("conclude", {})),
    ):
        monkeypatch.setattr(qualify, name, fake)
    monkeypatch.setattr(targets.Targets, "preflight", lambda _: SimpleNamespace(clock_s=0.0))
    request = Request(
        candidate="this-machine", target=None, scenario=None, requirement=None, inventory=None, runs=tmp_path,
        influx_url="http://127.0.0.1:1",
    )  # fmt: skip
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    bundle, _ = qualify.Qualification(request, Layout(), Console(file=StringIO())).execute()
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    assert (bundle.run.state, seen) == ("interrupted" if interrupted else "finished", [bundle])
    acquired = [one for one in ACQUIRED if one not in ("verify", "is locked")] if interrupted else ACQUIRED
    expected = ["take lock", "take connection", "take machine", *(f"remove-stale {one.split()[1]}" for one in TARGETS)]
    expected += ["provision", "lease", "verify", *acquired[acquired.index("create first") :]]
    expected += ["await return", *TARGETS, "end bmc", "end lease, keep False", "restore", *ENDED, "derive", "conclude"]
    assert fakes.done == [*expected, "release machine", "release connection", "release lock"]
