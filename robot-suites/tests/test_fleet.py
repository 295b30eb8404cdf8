"""Several candidates at the same time: which may meet, that they do run together, and what one's fault does to the others."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from ruamel.yaml import YAML

from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.profiles import yaml_source
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.lock import exclusive
from daq_bench.rig.cli import main
from daq_bench.rig.nightly import job as job_module
from daq_bench.rig.nightly.fleet import Fleet
from daq_bench.rig.nightly.job import Where
from daq_bench.rig.nightly.lanes import Board, Stop, lanes_of
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.simulation.laboratory import make_laboratory, name_of

YAML_SAFE = YAML(typ="safe")
TEST_PORT = 18586


def server(**more: Any) -> dict[str, Any]:
    """An entry behind SSH, whose drives are those of `more` or its own."""
    bench = {
        "description": "one of several",
        "identity": {"architectures": ["x86_64"], "cpus_min": 1, "memory_min": "1GiB"},
        "target": {"kind": "scratch-file", "directory": "/var/tmp/bench"},
        "transient_buffer": "1GiB",
        "tuning": {},
        **more,
    }
    return {"ansible_host": "192.0.2.1", "ansible_user": "bench", "bench_candidate": bench}


def bmc(address: str) -> dict[str, Any]:
    return {"bmc": {"address": address, "user": "bench", "password_env": "BENCH_BMC_PASSWORD"}}


def network(peer: str) -> dict[str, Any]:
    other = {"host": peer, "interface": "eth1", "address": "192.0.2.9"}
    return {"network": {"interface": "eth1", "address": "192.0.2.8", "peers": [other]}}


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    hosts = {
        "here": {**server(), "ansible_connection": "local"},
        "here-too": {**server(), "ansible_connection": "local"},
        "a": server(**bmc("192.0.2.10")),
        "a-by-another-name": server(**bmc("192.0.2.10")),
        "b": server(**network("c")),
        "c": server(),
        "d": server(),
    }
    file = tmp_path / "lab.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    return file


def names(inventory: Path, *candidates: str, at_once: int = 8) -> list[list[str]]:
    lanes = lanes_of([Job(name) for name in candidates], inventory, at_once)
    return [[candidates[place] for place in lane] for lane in lanes]


def test_jobs_that_meet_on_a_machine_follow_one_another(inventory: Path) -> None:
    assert names(inventory, "a", "d", "a-by-another-name", "c", "b", "d") == [
        ["a", "a-by-another-name"],
        ["d", "d"],
        ["c", "b"],
    ]


def test_the_control_nodes_own_jobs_come_last_and_alone(inventory: Path) -> None:
    assert names(inventory, "here", "a", "here-too", "d") == [["a"], ["d"], ["here", "here-too"]]


def test_an_entry_that_cannot_be_read_has_a_lane_of_its_own(inventory: Path) -> None:
    assert names(inventory, "nemo", "a", "nemo") == [["nemo", "nemo"], ["a"]]


def test_one_at_a_time_is_the_plan(inventory: Path) -> None:
    assert names(inventory, "here", "a", "d", at_once=1) == [["here", "a", "d"]]


@pytest.fixture
def where(tmp_path: Path, inventory: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    return Where(inventory, tmp_path / "runs")


def script(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Processes in the place of runs; `NAME` is the candidate's."""
    monkeypatch.setattr(
        job_module, "command", lambda job, where: [sys.executable, "-c", source.replace("NAME", repr(job.candidate))]
    )


def fleet(where: Where, folder: Path, *candidates: str, at_once: int = 8, stop: Stop | None = None) -> Fleet:
    jobs = [Job(name) for name in candidates]
    return Fleet(jobs, where, folder / "logs", Console(quiet=True), at_once, stop or Stop())


MEET = """
import pathlib, sys, time
folder = pathlib.Path({folder!r})
(folder / NAME).touch()
until = time.monotonic() + 60
while not all((folder / one).exists() for one in ({others})):
    if time.monotonic() > until:
        sys.exit("error: the others did not come")
    time.sleep(0.01)
sys.exit("error: met")
"""


def test_candidates_run_together_and_the_control_node_after_them(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    alone = f"if NAME == 'here':\n    import os; sys.exit('error: ' + ' '.join(sorted(os.listdir({str(meeting)!r}))))\n"
    script(monkeypatch, "import sys\n" + alone + MEET.format(folder=str(meeting), others="'a', 'c', 'd'"))
    entries = fleet(where, tmp_path, "here", "a", "c", "d").execute("the test")
    assert [entry.job.candidate for entry in entries] == ["here", "a", "c", "d"]
    assert [entry.reason.removeprefix("no run began (exit status 1): ") for entry in entries] == [
        "a c d",
        "met",
        "met",
        "met",
    ]


def test_no_more_than_asked_for_run_at_once(where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = tmp_path / "busy"
    busy.mkdir()
    script(
        monkeypatch,
        f"import os, sys, time\nme = os.path.join({str(busy)!r}, NAME)\nopen(me, 'w').close()\n"
        f"seen = 0\nfor _ in range(50):\n    seen = max(seen, len(os.listdir({str(busy)!r})))\n    time.sleep(0.01)\n"
        "os.remove(me)\nsys.exit(f'error: {seen}')",
    )
    entries = fleet(where, tmp_path, "a", "b", "d", at_once=2).execute("the test")
    assert max(int(entry.reason.split()[-1]) for entry in entries) <= 2


def test_a_stop_reaches_all_that_run_and_nothing_else_begins(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    script(
        monkeypatch,
        "import signal, sys, time, pathlib\nsignal.signal(15, lambda *a: sys.exit(130))\n"
        f"(pathlib.Path({str(begun)!r}) / NAME).touch()\ntime.sleep(60)",
    )

    class OnceBothRun(Stop):
        def __call__(self) -> str:
            return "enough" if len(list(begun.iterdir())) == 2 else ""

    since = time.monotonic()
    entries = fleet(where, tmp_path, "a", "b", "d", at_once=2, stop=OnceBothRun()).execute("the test")
    assert time.monotonic() - since < 50
    assert sorted(entry.outcome for entry in entries) == ["interrupted", "interrupted", "skipped"]
    assert len(list(begun.iterdir())) == 2


def test_a_busy_candidate_is_skipped_and_the_others_run(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, "import sys; sys.exit('error: ran')")
    with exclusive("a", "daq-bench qualify by somebody"):
        entries = fleet(where, tmp_path, "a", "d").execute("the test")
    assert [entry.outcome for entry in entries] == ["skipped", "ERROR"]
    assert "daq-bench qualify by somebody" in entries[0].reason


def test_a_fault_of_ours_in_one_lane_lets_the_others_end(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(monkeypatch, "import sys; sys.exit('error: ran')")
    ended: list[str] = []

    def compared(entry: Any) -> Any:
        if entry.job.candidate == "a":
            raise ValueError("a fault of ours")
        ended.append(entry.job.candidate)
        return entry

    with pytest.raises(ValueError, match="a fault of ours"):
        fleet(where, tmp_path, "a", "d").execute("the test", compared=compared)
    assert ended == ["d"]


def test_a_misspelt_candidate_ends_the_command_before_the_first_run(
    tmp_path: Path, inventory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["qualify", "--candidates", "a,nemo", "--inventory", str(inventory), "--runs", str(tmp_path / "runs")]
    assert main(words) == 2
    assert "has no candidate 'nemo'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts, and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@pytest.fixture
def black_hole() -> Iterator[int]:
    """The port of a server whose queue is full: the kernel drops each further attempt, and nothing ever answers."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        with pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", port), timeout=0.5)
        yield port


def test_servers_that_never_answer_cost_a_fleet_their_own_slots_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: int, black_hole: int
) -> None:
    """Real runs through real ssh. Each says so itself, long before any limit of a night; nothing of them is left, and no lock."""
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    here = {**server(), "ansible_host": "127.0.0.1"}
    hosts = {
        "silent": {**here, "ansible_port": silent}, "black-hole": {**here, "ansible_port": black_hole},
        "closed": {**here, "ansible_port": 1},
    }  # fmt: skip
    file = tmp_path / "lab.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    entries = fleet(Where(file, tmp_path / "runs"), tmp_path, *hosts, at_once=2).execute("the test")
    assert [entry.outcome for entry in entries] == ["ERROR"] * 3
    for entry, said in zip(entries, ("banner exchange", "timed out", "refused"), strict=True):
        assert f"candidate {entry.job.candidate} at bench@127.0.0.1" in entry.reason
        assert "cannot be reached by ssh" in entry.reason and said in entry.reason
        assert entry.reason.splitlines() == [entry.reason]
        with exclusive(entry.job.candidate, "the test"):
            pass
    ports = {str(port).encode() for port in (silent, black_hole)}
    left = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert [words for words in map(words_of, left) if words[:1] == [b"ssh"] and ports & set(words)] == []


def words_of(file: Path) -> list[bytes]:
    try:
        return file.read_bytes().split(b"\0")
    except OSError:  # it has ended meanwhile
        return []


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5"])
def test_a_number_of_jobs_is_one_or_more(capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    with pytest.raises(SystemExit):
        main(["nightly", "--jobs", jobs])
    assert "is not a whole number of 1 or more" in capsys.readouterr().err


def test_the_board_says_who_waits_who_runs_and_how_it_ended(tmp_path: Path) -> None:
    console = Console(record=True, width=100, file=(tmp_path / "out").open("w"))
    board = Board([Job("a"), Job("b"), Job("[bold]c")], console)
    log = tmp_path / "log"
    log.write_text("identity\nrecord: 3 of 100 s\r\n\n", encoding="utf-8")
    board.begins(1, log)
    board.ended(2, [])
    console.print(board._table())
    said = console.export_text()
    assert "waiting" in said and "running" in said and "[bold]c" in said
    assert "record: 3 of 100 s" in said


STARTS = """
import pathlib, sys
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.simulation.laboratory import make_laboratory, name_of
print(LocalInflux(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])).start(int(sys.argv[3])))
"""


def test_runs_that_begin_at_the_same_moment_share_one_influxdb(tmp_path: Path) -> None:
    """A real one: four processes ask for it at once, one starts it."""
    words = [sys.executable, "-c", STARTS, str(Layout().influxd), str(tmp_path), str(TEST_PORT)]
    starters = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        said = [one.communicate(timeout=120)[0].strip() for one in starters]
    finally:
        LocalInflux(Layout().influxd, tmp_path).stop()
    assert len(set(said)) == 1 and said[0].startswith("http://127.0.0.1:")
    assert (tmp_path / "influxd.log").read_text(encoding="utf-8").count("InfluxDB starting") == 1


LABORATORY = 150


@pytest.fixture
def laboratory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    hosts = {f"server-{number:03d}": server(**bmc(f"192.0.2.{number // 2}")) for number in range(LABORATORY)}
    file = tmp_path / "laboratory.yml"
    YAML_SAFE.dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    return Where(file, tmp_path / "runs")


def test_a_laboratory_of_150_with_runs_that_break_hang_and_are_refused(
    laboratory: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated ones. Two entries each share a BMC: they never run at the same moment. Every seventh breaks by a signal, one is held by
    somebody else, and one hangs until the fleet is told to stop."""
    busy = tmp_path / "busy"
    busy.mkdir()
    program = f"""
number=${{1#server-}}; lock={busy}/$((10#$number / 2))
mkdir "$lock" || {{ echo "error: it met another on its machine"; exit 1; }}
[ "$1" = server-149 ] && {{ trap 'rmdir "$lock"; exit 130' TERM; touch {tmp_path}/hangs; while :; do sleep 0.1; done; }}
[ $((10#$number % 7)) = 0 ] && {{ rmdir "$lock"; kill -9 $$; }}
rmdir "$lock"; echo "error: $1 ran"; exit 1
"""
    monkeypatch.setattr(job_module, "command", lambda job, where: ["bash", "-c", program, "run", job.candidate])
    names = [f"server-{number:03d}" for number in range(LABORATORY)]
    ended: list[int] = []

    class OnceTheOthersEnded(Stop):
        def __call__(self) -> str:
            return "the test is over" if ended and ended[-1] == LABORATORY - 1 and (tmp_path / "hangs").exists() else ""

    with exclusive("server-010", "daq-bench qualify by somebody"):
        jobs = [Job(name) for name in names]
        made = Fleet(jobs, laboratory, tmp_path / "logs", Console(quiet=True), LABORATORY, OnceTheOthersEnded())
        entries = made.execute("the test", ended=lambda found: ended.append(len(found)))
    assert [entry.job.candidate for entry in entries] == names
    assert ended == list(range(1, LABORATORY + 1))
    outcome = {entry.job.candidate: entry for entry in entries}
    assert outcome["server-149"].outcome == "interrupted"
    assert outcome["server-010"].outcome == "skipped" and "by somebody" in outcome["server-010"].reason
    for number, name in enumerate(names[:-1]):
        if name != "server-010":
            wanted = "(exit status -9): it said nothing" if number % 7 == 0 else f"(exit status 1): {name} ran"
            assert outcome[name].reason == f"no run began {wanted}"


def test_an_inventory_of_hundreds_is_parsed_once(laboratory: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each candidate would make a fleet's cost grow with the square of its size."""
    parsed: list[Path] = []
    real = yaml_source.parsed
    monkeypatch.setattr(yaml_source, "parsed", lambda file, text: (parsed.append(file), real(file, text))[1])
    yaml_source._kept.clear()
    lanes = lanes_of([Job(f"server-{number:03d}") for number in range(LABORATORY)], laboratory.inventory, LABORATORY)
    assert len(lanes) == LABORATORY / 2 and all(len(lane) == 2 for lane in lanes)
    assert len(parsed) == 1
    laboratory.inventory.write_text(
        laboratory.inventory.read_text(encoding="utf-8").replace("server-000", "server-999"), encoding="utf-8"
    )
    assert len(lanes_of([Job("server-999"), Job("server-001")], laboratory.inventory, 2)) == 1
    assert len(parsed) == 2  # a changed text is read as it is now


@pytest.mark.parametrize("height", [3, 10, 24, 25])
def test_a_table_of_150_fits_the_terminal_and_shows_first_what_did_not_pass(tmp_path: Path, height: int) -> None:
    console = Console(record=True, width=80, height=height, file=(tmp_path / "out").open("w"))
    board = Board([Job(f"server-{number:03d}") for number in range(LABORATORY)], console)
    log = tmp_path / "log"
    log.write_text("record\n", encoding="utf-8")
    for place in range(140):
        board.begins(place, log)
    board._ended |= dict.fromkeys(range(100), "PASS") | {7: "ERROR", 99: "FAIL"}
    console.print(board._table())
    lines = console.export_text().rstrip("\n").split("\n")
    assert len(lines) < max(height, 6)
    assert (
        "server-007" in lines[1] and "ERROR" in lines[1] and "server-099" in (lines[2] if height > 6 else "server-099")
    )
    counted = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", lines[-1])}
    assert lines[-1].startswith("and ") and sum(counted.values()) + len(lines) - 2 == LABORATORY
    assert counted["PASS"] == 98 and counted["waiting"] == 10


# `qualify` as a fleet starts it, with a shell in the place of each run: the candidate's name, its staged bundle, the folder of runs.
COMMAND = """
import sys
from daq_bench.rig.cli import main
from daq_bench.rig.nightly import job
job.command = lambda one, where: ["bash", "-c", sys.argv[1], "run", one.candidate, f"{sys.argv[2]}/{one.candidate}", str(where.runs)]
sys.exit(main(["qualify", "--json", *sys.argv[3:]]))
"""
LEAVE = 'name=$(ls "$2"); cp -r "$2/$name" "$3/.$name" && mv "$3/.$name" "$3/$name"'


def qualify_words(lab: Where, program: str, staged: Path, number: int) -> list[str]:
    candidates = ",".join(f"server-{one:03d}" for one in range(number))
    options = [
        "--candidates",
        candidates,
        "--jobs",
        str(number),
        "--inventory",
        str(lab.inventory),
        "--runs",
        str(lab.runs),
    ]
    return [sys.executable, "-c", COMMAND, program, str(staged), *options]


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    """A simulated bundle, whose candidate is server-0000."""
    make_laboratory(tmp_path / "made", 1)
    return tmp_path / "made"


def test_the_command_over_candidates_that_hang_crash_are_killed_or_have_no_room(
    laboratory: Where, staged: Path, tmp_path: Path
) -> None:
    """server-000 and -001 share a BMC. The bundle of -004 is cut short, as on a full disk; -005 may not write at all."""
    staged.joinpath(name_of(0)).rename(staged / "server-002")
    program = f"""
case $1 in
server-000|server-001) mkdir {tmp_path}/bmc || exit 9; sleep 0.5; rmdir {tmp_path}/bmc; echo "error: alone"; exit 1;;
server-002) {LEAVE};;
server-003) echo "error: it broke"; exit 2;;
server-004) own=$3/20260101T000000Z-server-004-x; mkdir -p $own; printf '{{"candidate": {{"name": "server-004"}}, "run' > $own/run.json
    echo "error: No space left on device"; exit 2;;
server-005) echo x > /proc/nowhere;;
server-006) kill -9 $$;;
server-007) trap 'exit 130' TERM; touch {tmp_path}/hangs; while :; do sleep 0.1; done;;
esac
"""
    laboratory.runs.mkdir()
    command = subprocess.Popen(
        qualify_words(laboratory, program, staged, 8), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 120
        while (
            not ((tmp_path / "hangs").exists() and list(laboratory.runs.glob("*-server-004-*")))
            and time.monotonic() < until
        ):
            time.sleep(0.1)
        time.sleep(5)  # the others end within it, or are told to: either is an outcome below
        command.send_signal(signal.SIGTERM)
        said, errors = command.communicate(timeout=120)
    finally:
        command.kill()
    outcome = {one["candidate"]: (one["outcome"], one["reason"]) for one in json.loads(said)}
    assert len(outcome) == 8, errors
    assert outcome["server-000"] == outcome["server-001"] == ("ERROR", "no run began (exit status 1): alone")
    assert outcome["server-002"][0] in ("ERROR", "INADMISSIBLE")  # its simulated bundle names another candidate
    assert outcome["server-003"] == ("ERROR", "no run began (exit status 2): it broke")
    assert outcome["server-004"][0] == "ERROR"
    assert "nowhere" in outcome["server-005"][1]
    assert outcome["server-006"] == ("ERROR", "no run began (exit status -9): it said nothing")
    assert outcome["server-007"][0] == "interrupted" and "SIGTERM" in outcome["server-007"][1]
    assert command.returncode == 130  # somebody stopped it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_in_the_middle_of_the_command_leaves_no_process_and_no_lock(
    laboratory: Where, tmp_path: Path, number: signal.Signals
) -> None:
    """With 60 candidates at once and 32 open files allowed: the command holds none open for each run."""
    begun = tmp_path / "begun"
    begun.mkdir()
    program = f"trap 'exit 130' TERM; echo $$ > {begun}/$1; while :; do sleep 0.1; done"
    words = qualify_words(laboratory, program, tmp_path, 60)
    command = subprocess.Popen(
        ["prlimit", "--nofile=32:32", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + 120
        while len(list(begun.iterdir())) < 30 and time.monotonic() < until:  # of each two that share a BMC one waits
            time.sleep(0.1)
        command.send_signal(number)
        said, errors = command.communicate(timeout=120)
    finally:
        command.kill()
    assert said.startswith("["), said
    outcomes = [one["outcome"] for one in json.loads(said)]
    assert sorted(outcomes) == ["interrupted"] * 30 + ["skipped"] * 30, errors
    pids = [int(file.read_text(encoding="utf-8")) for file in begun.iterdir()]
    assert len(pids) == 30
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    for one in range(60):
        with exclusive(f"server-{one:03d}", "the test"):
            pass
