"""`daq-bench watch`: runs that are going on, runs whose process is dead, and files that are not what they should be.

Whether a run lives is asked of real processes that hold its candidate's lock; the last test watches a real run."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from daq_bench.audit.good.small_run import candidate, drive, scenario, some_run, target
from test_qualify import command, settings_now

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.run import DemandOfRun
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.crash_trials.processes import inside, words_of
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.lock import exclusive, lock_path
from daq_bench.rig.checking.sealing import seal_evidence, seal_reports
from daq_bench.rig.cli import main
from daq_bench.rig.run.onlooker import DEAD, GOING_ON, UNREADABLE, Onlooker, Sight
from daq_bench.rig.run.qualify import DRIVES_A_RUN

LAYOUT = Layout()
LOST = "SNB-01"
HOLD = (
    "import sys, time; from daq_bench.rig.candidate.lock import exclusive\n"
    "with exclusive(sys.argv[1], sys.argv[2]): print('held', flush=True); time.sleep(600)"
)
HANG_S = 300.0


@pytest.fixture(autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path_factory.mktemp("locks")))


@contextmanager
def holder(name: str, what: str = f"{DRIVES_A_RUN} --scenario s in /bench") -> Iterator[subprocess.Popen[str]]:
    """A process that holds the candidate's lock, as the one that drives its run does."""
    with subprocess.Popen([sys.executable, "-c", HOLD, name, what], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def begun(runs: Path, name: str, ago_s: float = 0.0, **changes: Any) -> Bundle:
    """A run that has just begun on the candidate `name`, or a while ago, with the shipped requirements."""
    moment = datetime.now(UTC) - timedelta(seconds=ago_s)
    bundle = Bundle.create(runs, name, "", "burst", now=lambda: moment)
    started = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    asked: dict[str, Any] = {
        "candidate": candidate(name),
        "scenario": scenario("burst", scale=0.5),
        "started_utc": started,
    }
    bundle.begin(some_run(**asked | changes))
    (bundle.path / "profiles" / "requirements").mkdir()
    for file in ("metrics.yml", "requirements/dune-snb.yml"):
        (bundle.path / "profiles" / file).write_bytes((LAYOUT.inventory / file).read_bytes())
    return bundle


def sights(runs: Path) -> list[Sight]:
    return Onlooker(runs, LAYOUT).look()


def only(runs: Path) -> Sight:
    (one,) = sights(runs)
    return one


def said(runs: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Returns what one look prints where there is no terminal."""
    assert main(["watch", "--runs", str(runs), "--once", *words]) == 0
    return capsys.readouterr().out


def record(offered: int, time_s: float) -> str:
    fields = f"offered_bytes={offered}i,stored_bytes={offered * 9 // 10}i,backlog_bytes={offered // 10}i,busy_count=1i,lost_superchunks=3i"
    return f"daqwriter,command=minidaq,phase=record {fields},buffer_bytes=800000000i {int(time_s * 1e9)}\n"


def test_without_a_run_one_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(tmp_path, capsys) == f"No run is going on in {tmp_path}. `daq-bench qualify` starts one\n"
    assert json.loads(said(tmp_path, capsys, "--json")) == {"runs": []}


def test_what_is_no_folder_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for name, why in (("file", "it is a file"), ("nothing", "there is no such folder")):
        assert main(["watch", "--runs", str(tmp_path / name), "--once"]) == 2
        assert f"{name} holds no runs ({why}). Name the folder" in capsys.readouterr().err


def test_a_folder_that_may_not_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    runs.chmod(0o000)
    user = os.geteuid()
    if user == 0:
        for folder in (tmp_path, *tmp_path.parents[:-2]):  # pytest's own are closed to other users
            folder.chmod(folder.stat().st_mode | 0o011)
        os.seteuid(65534)
    try:
        assert main(["watch", "--runs", str(runs), "--once"]) == 2
    finally:
        os.seteuid(user)
        runs.chmod(0o755)
    assert "runs: Permission denied" in capsys.readouterr().err


def test_a_run_lives_as_long_as_its_process(tmp_path: Path) -> None:
    with holder("server") as process:
        bundle = begun(tmp_path, "server")
        bundle.event("phase", "provision", "applying the tuning", step=1, steps=1)
        alive = only(tmp_path)
        assert (alive.state, alive.candidate, alive.scenario, alive.scale) == (GOING_ON, "server", "burst", 0.5)
        assert (alive.phase, alive.step, alive.next_step) == ("provision", "applying the tuning", ())
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # nobody has waited for it yet: it has a number still
        dead = only(tmp_path)
    assert (dead.state, dead.phase, dead.elapsed_s, dead.telemetry_age_s) == (DEAD, "provision", None, None)
    assert dead.next_step == (
        f"`daq-bench resume {bundle.path}` starts it again",
        "`daq-bench restore --candidate server` gives the machine back without a new run",
    )


def test_a_process_that_began_after_the_run_does_not_drive_it(tmp_path: Path) -> None:
    """The kernel gives numbers again."""
    begun(tmp_path, "server", ago_s=3600)
    with holder("server"):
        assert only(tmp_path).state == DEAD


def test_whoever_holds_the_lock_for_something_else_does_not_drive_the_run(tmp_path: Path) -> None:
    with holder("server", "daq-bench restore in /bench"):
        begun(tmp_path, "server")
        assert only(tmp_path).state == DEAD


@pytest.mark.parametrize(
    "words", ["", "\0\xff", "process 99999999999999: daq-bench qualify", "process -1: daq-bench qualify"]
)
def test_words_of_a_lock_that_no_bench_wrote_let_no_run_live(tmp_path: Path, words: str) -> None:
    begun(tmp_path, "server")
    lock_path("server").write_text(words, encoding="latin-1")
    assert only(tmp_path).state == DEAD


def test_two_runs_at_once_and_none_that_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path, "one", ago_s=7200)  # its candidate has a later run: it was taken back by that
    ended = begun(tmp_path, "three", state="finished", finished_utc=now_utc())
    seal_evidence(ended.path)
    seal_reports(ended.path)
    with holder("one"), holder("two"):
        lost = [{"condition": "fresh", "minidaq": {"superchunks": {"lost": 7}}}]
        for name in ("one", "two"):
            bundle = begun(tmp_path, name)
            bundle.event("phase", "identity", f"comparing {name}", step=1, steps=1)
            bundle.write("results/snb_record.json", {"repetitions": lost})
        assert {one.candidate: (one.state, one.step) for one in sights(tmp_path)} == {
            "one": (GOING_ON, "comparing one"),
            "two": (GOING_ON, "comparing two"),
        }
        text = said(tmp_path, capsys)
    so_far = [line.rstrip() for line in text.splitlines() if line.startswith("so far")]
    assert so_far == ["so far     SNB-01 7, asked = 0"] * 2  # without its words: they share the screen
    assert "one: burst at scale 0.5" in text
    assert "two: burst at scale 0.5" in text
    assert "three" not in text


def test_a_finished_run_that_was_never_sealed_is_not_resumed(tmp_path: Path) -> None:
    bundle = begun(tmp_path, "server", state="finished", finished_utc=now_utc())
    assert only(tmp_path).next_step[0] == f"`daq-bench judge {bundle.path}` says what it measured"


def test_phases_count_from_their_events_however_late_somebody_looks(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server", started_utc=now_utc())
        bundle._now = lambda: datetime.now(UTC) + timedelta(seconds=-30)
        bundle.event("phase", "provision", "applying", step=1, steps=1)
        bundle._now = lambda: datetime.now(UTC) + timedelta(seconds=-20)
        bundle.event("phase", "block_scan", "block size 8 MiB", step=12, steps=14)
        onlooker = Onlooker(tmp_path, LAYOUT)
        onlooker.look()
        (one,) = onlooker.look()
    assert (one.phase, one.step_number, one.steps) == ("block_scan", 12, 14)
    assert one.last_event_age_s == pytest.approx(20, abs=15)
    assert (one.phase_number, one.phases, one.left_s, one.foreseen_s) == (
        None,
    ) * 4  # this bundle says not what was asked for


def test_rates_backlog_and_losses_are_the_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demand = DemandOfRun.of(Demand(10, 5568, 166000, 0.5, 10))
    with holder("server"):
        bundle = begun(tmp_path, "server", demand=demand)
        bundle._now = lambda: datetime.now(UTC) - timedelta(seconds=60)
        bundle.event("phase", "snb_record", "record 2 of 3", step=2, steps=3)
        now_s = time.time()
        bundle.workload_file.write_text(
            "".join(record(i * 10**8, now_s - 2 + i / 10) for i in range(1, 21)), encoding="utf-8"
        )
        one = only(tmp_path)
        assert one.rates_bytes_per_s == {
            "offered": pytest.approx(1e9, rel=1e-3),
            "stored": pytest.approx(0.9e9, rel=1e-3),
        }
        assert one.demand_bytes_per_s == pytest.approx(10 * 5568 * 166000 * 0.5)
        assert (one.backlog_bytes, one.backlog_percent, one.busy, one.lost_superchunks) == (2 * 10**8, 25.0, 1, 3)
        assert (one.step_number, one.steps) == (2, 3)
        bundle.workload_file.write_text(
            "".join(record(i * 10**8, now_s - 32 + i / 10) for i in range(1, 21)), encoding="utf-8"
        )
        text = said(tmp_path, capsys)
    assert " ".join(text.split()).count("0:3") == 3, text  # rate, backlog and lost say how old they are
    assert "demand 4.621 GB/s" in " ".join(text.split())
    assert "3 superchunks of the present record, 0:3" in text


def test_records_of_a_candidate_behind_ssh_come_with_its_telemetry(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server", candidate=candidate("server", connection="ssh"))
        bundle.event("phase", "snb_record", "record 1 of 1", step=1, steps=1)
        other = f"cpu,core=total,host=server busy_fraction=0.5 {time.time_ns()}\n" * 50
        lines = (record(i * 10**8, time.time() + i / 10) + other for i in range(1, 12))
        (bundle.path / "telemetry" / "points.lp").write_text("".join(lines), encoding="utf-8")
        one = only(tmp_path)
    assert one.rates_bytes_per_s["offered"] == pytest.approx(1e9, rel=1e-3)
    assert (one.lost_superchunks, one.backlog_bytes) == (3, 110_000_000)


def test_during_a_scan_the_drives_counters_are_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server", target=target(drive("vda"), device=drive("vda")))
        bundle.event("phase", "block_scan", "block size 8 MiB", step=12, steps=14)
        points = bundle.path / "telemetry" / "points.lp"
        line = "block_device,device=vda,host=server written_bytes_per_s=2.5e9 {}\n"
        points.write_text(line.format(time.time_ns()), encoding="utf-8")
        assert only(tmp_path).rates_bytes_per_s == {"vda writes": 2.5e9}
        points.write_text(line.format(time.time_ns() - 70 * 10**9), encoding="utf-8")
        assert "vda writes 2.500 GB/s, 1:1" in said(tmp_path, capsys)


def test_a_record_of_an_earlier_step_is_none_of_this_one(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        bundle.workload_file.write_text(
            "".join(record(i * 10**8, time.time() - 90 + i / 10) for i in range(9)), encoding="utf-8"
        )
        bundle.event("phase", "snb_record", "trimming the file system", step=1, steps=1)
        one = only(tmp_path)
    assert (one.rates_bytes_per_s, one.backlog_bytes, one.lost_superchunks) == ({}, None, None)


def temperature(
    device: str, degc: object, age_s: float, warning: object = None, measurement: str = "temperature"
) -> str:
    limit = "" if warning is None else f",warning_degc={warning}"
    return f"{measurement},device={device},label=Composite temperature_degc={degc}{limit} {int((time.time() - age_s) * 1e9)}\n"


def test_the_drive_nearest_to_its_own_limit_is_the_hottest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server", target=target(drive("nvme0n1"), drive("nvme1n1")))
        points = bundle.path / "telemetry" / "points.lp"
        points.write_text(
            temperature("nvme0n1", 69.0, 5, 70.0) + temperature("nvme0n1", 50.0, 0, 70.0) + temperature("nvme1n1", 60.0, 0, 90.0)
            + temperature("sda", 99.0, 0, 70.0) + 'temperature,device=nvme1n1 temperature_degc="hot" 5\nnonsense\n'
            + "\xff 99999999999999999999\nx y=1 9223372036854775807\n",
            encoding="latin-1",
        )  # fmt: skip
        hottest = only(tmp_path).hottest
        assert hottest is not None
        assert (hottest.device, hottest.degc, hottest.warning_degc, hottest.period_s) == ("nvme0n1", 50.0, 70.0, 1.0)
        assert "nvme0n1 50 degC, 20 K below its own warning limit" in said(tmp_path, capsys)
        points.write_text(temperature("nvme1n1", 95.0, 200, 90.0, "smart_temperature"), encoding="utf-8")
        one = only(tmp_path)
        assert one.telemetry_age_s == pytest.approx(200, abs=100)
        assert "nvme1n1 95 degC, 5 K ABOVE its own warning limit, 3:" in said(tmp_path, capsys)


def test_a_requirement_has_a_value_so_far_and_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        onlooker = Onlooker(tmp_path, LAYOUT)
        assert {one.measured for one in onlooker.look()[0].requirements} == {None}
        counts = {"fresh": 7, "preconditioned": 0}  # the worse condition's count is shown, also where it came first
        lost = [{"condition": name, "minidaq": {"superchunks": {"lost": count}}} for name, count in counts.items()]
        bundle.write("results/snb_record.json", {"repetitions": lost})
        found = {one.id: one for one in onlooker.look()[0].requirements}
        assert (found[LOST].measured, found[LOST].comparison, found[LOST].bound) == (7.0, "equal", 0.0)
        assert [one.id for one in found.values() if one.measured is not None] == [LOST]
        text = " ".join(said(tmp_path, capsys).split())
        assert "so far SNB-01 No superchunk is lost during the record: 7, asked = 0" in text
        assert "not yet SNB-02, SNB-03" in text
        assert {"PASS", "FAIL", "missed", "met"}.isdisjoint(text.split())
        (bundle.path / "results" / "snb_record.json").write_text('{"repetitions": [', encoding="utf-8")
        torn = onlooker.look()[0]
        assert {one.measured for one in torn.requirements} == {None}
        assert "results/snb_record.json is not valid JSON" in torn.faults[0]


NOT_EVENTS = (b"\xff\xfe\0garbage\n", b'{"kind": "phase"}\n', b"[" * 5000 + b"\n", b'{"time_utc": 5}\n', b"null\n")


def test_lines_that_are_no_events_hide_no_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        bundle.event("phase", "identity", "comparing", step="x", steps=[3])
        with bundle.events_file.open("ab") as file:
            file.write(b"".join(NOT_EVENTS) + b'{"time_utc": "2026-01-01T00:0')  # the last is still being written
        one = only(tmp_path)
        assert (one.phase, one.step, one.step_number) == ("identity", "comparing", None)
        assert one.faults == (f"{len(NOT_EVENTS)} lines of events.jsonl are no events; they are left out",)
        assert "5 lines of events.jsonl are no events" in said(tmp_path, capsys)


def test_an_events_file_that_was_cut_is_read_again(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        onlooker = Onlooker(tmp_path, LAYOUT)
        bundle.event("phase", "identity", "comparing the candidate with the inventory", step=1, steps=1)
        onlooker.look()
        bundle.events_file.write_text("", encoding="utf-8")
        bundle.event("phase", "verify", "back", step=1, steps=1)
        assert onlooker.look()[0].phase == "verify"


def test_a_file_full_of_phases_is_read_soon(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        line = (
            '{{"time_utc": "2026-01-31T12:00:00.000Z", "kind": "phase", "source": "{}", "text": "x", "data": {{}}}}\n'
        )
        bundle.events_file.write_text("".join(line.format(number) for number in range(20_000)), encoding="utf-8")
        assert only(tmp_path).step == "x"


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _link(file: Path) -> None:
    file.symlink_to("/dev/zero")


def _folder(file: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize(
    "name", ["events.jsonl", "telemetry/points.lp", "telemetry/workload.lp", "results/snb_record.json"]
)
@pytest.mark.parametrize("make", [_pipe, _link, _folder])
def test_what_is_no_plain_file_hangs_nobody(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        make(bundle.path / name)
        one = only(tmp_path)
    assert one.state == GOING_ON
    if name in ("events.jsonl", "results/snb_record.json"):
        assert any("cannot be opened as a plain file" in text for text in one.faults)


def test_endless_lines_are_read_piece_by_piece(tmp_path: Path) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        for name in ("events.jsonl", "telemetry/points.lp", "telemetry/workload.lp"):
            with (bundle.path / name).open("wb") as file:
                file.truncate(8 << 30)  # a hole: it takes no room
        onlooker = Onlooker(tmp_path, LAYOUT)
        for _ in range(3):
            assert onlooker.look()[0].state == GOING_ON


def test_a_run_that_cannot_be_read_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, content in enumerate(('{"schema_version": 1', "\x1b[2J", '{"schema_version": 1}')):
        folder = tmp_path / f"20260101T00000{number}Z-broken"
        folder.mkdir()
        (folder / "run.json").write_text(content, encoding="utf-8")
    with holder("server"):
        begun(tmp_path, "server")
        found = sights(tmp_path)
        assert [one.state for one in found] == [UNREADABLE] * 3 + [GOING_ON]
        text = said(tmp_path, capsys)
    assert "fault" in text
    assert "server: burst" in text


EVIL = "evil\x1b[2J\x9b31m\u202e\r\n"


def test_no_control_character_reaches_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder(EVIL):
        bundle = begun(tmp_path, "server", candidate=candidate(EVIL), target=target(name=EVIL), scenario=scenario(EVIL))
        bundle.event("phase", EVIL, EVIL, step=1, steps=1)
        text = said(tmp_path, capsys)
        assert "evil\\x1b[2J\\x9b31m\\u202e\\r\\n" in "".join(text.split())
        raw = said(tmp_path, capsys, "--json")
    for shown in (text, raw):
        assert all(one.isprintable() or one == "\n" for one in shown)
    assert json.loads(raw)["runs"][0]["candidate"] == EVIL


def test_a_page_is_80_columns_wide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with holder("s" * 90):
        bundle = begun(tmp_path, "s" * 90, target=target(name="t" * 90))
        bundle.event("phase", "snb_record", "x" * 300, step=1, steps=2)
        lines = said(tmp_path, capsys).splitlines()
    assert max(map(len, lines)) == 80
    assert "".join(lines).replace(" ", "").count("x") >= 300


def test_a_look_changes_nothing_and_takes_no_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = begun(tmp_path, "server")
    bundle.event("phase", "identity", "comparing", step=1, steps=1)

    def state() -> dict[str, tuple[int, int]]:
        return {str(file): (file.lstat().st_mtime_ns, file.lstat().st_size) for file in tmp_path.rglob("*")}

    before = state()
    said(tmp_path, capsys)
    assert state() == before
    assert list(lock_path("server").parent.iterdir()) == []  # also no file for a lock
    with exclusive("server", "a run"):
        said(tmp_path, capsys)
    with exclusive("server", "another"):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_the_terminal_clean(tmp_path: Path, number: signal.Signals) -> None:
    with ExitStack() as stack:
        stack.enter_context(holder("server"))
        begun(tmp_path, "server").event("phase", "identity", "comparing", step=1, steps=1)
        terminal, theirs = pty.openpty()
        stack.callback(os.close, terminal)
        argv = [sys.executable, "-m", "daq_bench.rig", "watch", "--runs", str(tmp_path)]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        process = stack.enter_context(
            subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        )
        stack.callback(process.kill)
        os.close(theirs)
        shown, deadline = b"", time.monotonic() + HANG_S
        while b"comparing" not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)
        process.send_signal(number)
        while select.select([terminal], [], [], HANG_S)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
        assert process.wait(HANG_S) == 0
    assert b"\x1b[?25l" in shown
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l"), "the cursor stays hidden"
    assert b"\x1b[?1049h" not in shown, "the screen of before is hidden"
    assert b"Traceback" not in shown
    assert b"\n" in shown[shown.rfind(b"SNB-11") :], "the prompt stands in the page's last line"


@pytest.mark.parametrize("judged", [True, False])
def test_whoever_watches_is_told_how_the_last_run_has_ended(tmp_path: Path, judged: bool) -> None:
    with holder("server"):
        bundle = begun(tmp_path, "server")
        argv = [sys.executable, "-m", "daq_bench.rig", "watch", "--runs", str(tmp_path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("server: burst at scale 0.5")
            bundle.save_run(state="interrupted", state_reason="it was stopped", finished_utc=now_utc())
            if judged:
                bundle.write("verdict.json", Verdict(1, "INADMISSIBLE", ["it was stopped"], 0.5, False, [], []))
            seal_evidence(bundle.path)
            rest = process.communicate(timeout=HANG_S)[0]
    assert process.returncode == 0
    how = ": INADMISSIBLE: it was stopped" if judged else " without a verdict: interrupted, it was stopped"
    assert rest.endswith(f"{bundle.path} has ended{how}\n")


@pytest.mark.integration
def test_a_real_run_is_watched_from_another_process_and_its_death_is_seen(tmp_path: Path, disk: Path) -> None:
    """All processes of the run are stopped in its record, so that the look has its time however slow the machine is."""
    before, children = settings_now(), dict[int, str]()
    deadline = time.monotonic() + HANG_S
    argv = command(tmp_path, disk, "http://127.0.0.1:1", "--scale", "0.01", "--duration", "20")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            onlooker, found = Onlooker(tmp_path / "runs", LAYOUT), list[Sight]()
            while not (found and "stored" in found[0].rates_bytes_per_s and found[0].telemetry_age_s is not None):
                assert run.poll() is None, run.communicate()[1]
                assert time.monotonic() < deadline, found
                time.sleep(0.2)
                found = onlooker.look()
            children.update(inside(run.pid))
            for pid in (run.pid, *children):
                os.kill(pid, signal.SIGSTOP)
            stopped = time.monotonic()
            seen = watched(tmp_path / "runs")
            assert (seen["state"], seen["candidate"], seen["scenario"], seen["scale"]) == (
                GOING_ON,
                "this-machine",
                "short",
                0.01,
            )
            assert (seen["phase"], seen["phase_number"], seen["phases"]) == ("snb_record", 3, 7)
            assert seen["step"].startswith("record 1 of 1")
            assert seen["demand_bytes_per_s"] == pytest.approx(92428800)
            assert seen["rates_bytes_per_s"]["offered"] > 0
            assert seen["lost_superchunks"] >= 0
            assert 0 <= seen["backlog_percent"] <= 100
            assert seen["foreseen_s"] > 20
            assert 0 < seen["left_s"] < seen["foreseen_s"]
            assert seen["elapsed_s"] > 0
            assert {one["measured"] for one in seen["requirements"]} == {None}
            assert seen["faults"] == []
            time.sleep(max(0.0, stopped + 4 - time.monotonic()))
            later = watched(tmp_path / "runs")
            assert later["rates_age_s"] > 3 * later["period_s"]
            assert later["telemetry_age_s"] > 3 * later["period_s"]
        finally:
            run.kill()
            for pid in children:  # they have been told to end with their parent, and do so when they go on
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            run.communicate(timeout=HANG_S)
    while any(words_of(pid) == words for pid, words in children.items()):
        assert time.monotonic() < deadline, children
        time.sleep(0.1)
    dead = watched(tmp_path / "runs")
    assert (dead["state"], dead["phase"], dead["rates_bytes_per_s"]) == (DEAD, "snb_record", {})
    resume = dead["next_step"][0].split("`")[1].split()
    assert (resume[:2], resume[2]) == (["daq-bench", "resume"], str((tmp_path / "runs" / "latest").resolve()))
    mend = dead["next_step"][1].split("`")[1].split()
    done = subprocess.run(
        [sys.executable, "-m", "daq_bench.rig", *mend[1:]], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert settings_now() == before


def watched(runs: Path) -> dict[str, Any]:
    """The only run of the folder, as another process sees it."""
    argv = [sys.executable, "-m", "daq_bench.rig", "watch", "--once", "--json", "--runs", str(runs)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (one,) = json.loads(done.stdout)["runs"]
    return dict(one)
