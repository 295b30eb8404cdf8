"""The bench's own InfluxDB and the history in it, against a real server on loopback."""

import http.server
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from agent_helpers import scripted_http
from daq_bench.audit.good.small_run import candidate, drive, scenario, some_run, target
from influx2_server import ORGANISATION, Influx2Server
from msgspec import structs
from ruamel.yaml import YAML

from daq_bench.bench_model.documents.derived import HardwareEvents
from daq_bench.bench_model.documents.run import AskedFor, RequirementOfRun
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.crash_trials.trial import wait_until
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import TOKEN, URL, Influx
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.lock import exclusive
from daq_bench.rig.cli import main
from daq_bench.rig.run.candidate_session import CandidateSession
from daq_bench.rig.run.watch import Watch
from daq_bench.rig.telemetry.agent import replay
from daq_bench.rig.telemetry.history import (
    begin_line,
    judging_line,
    publish,
    replay_earlier,
    server_version,
    set_aside,
    trigger_ns,
    undelivered,
)
from daq_bench.rig.telemetry.influx_counts import counts_document
from daq_bench.rig.telemetry.influx_server import LocalInflux, create_database, free_port
from daq_bench.virtual_candidate.ports import free_ports

T0_NS = 1_769_860_800_000_000_000
VERDICT: dict[str, Any] = {
    "outcome": "INADMISSIBLE",
    "requirements": [
        {
            **{"id": "SNB-01", "outcome": "INADMISSIBLE", "measured": 0, "margin_percent": None},
            **{"decision": "undecided", "scaled_bound": 0},
        },
        # A verdict from before decisions were made.
        {"id": "SNB-07", "outcome": "INADMISSIBLE", "measured": 3.5, "margin_percent": 278.7},
    ],
}


@pytest.fixture
def finished(tmp_path: Path) -> Bundle:
    bundle = Bundle.create(tmp_path, "this-machine", "", "dune-snb")
    bundle.begin(
        some_run(
            state="finished",
            started_utc="2026-01-31T11:58:00.000Z",
            finished_utc="2026-01-31T12:00:00.000Z",
            candidate=candidate("this machine"),
            scenario=scenario("dune-snb"),
            requirement=RequirementOfRun("snb"),
            target=target(drive("nvme0n1", "QEMU NVMe Ctrl", firmware="1.0"), drive("nvme1n1", "other")),
        )
    )
    bundle.write("verdict.json", VERDICT)
    bundle.write("results/snb_record.json", {"repetitions": [{"minidaq": {"started_utc": "2026-01-31T11:59:00.250Z"}}]})
    (bundle.path / "report.html").touch()
    (bundle.path / "telemetry" / "points.lp").touch()
    bundle.event("phase", "provision", 'applying "the" tuning, step=1')
    bundle.event("verdict", "judge", "INADMISSIBLE")
    return bundle


def test_a_second_start_finds_the_running_server(influx: LocalInflux) -> None:
    url = influx.running_url()
    assert url is not None
    assert influx.start(1) == url
    assert server_version(Influx(url)) == "1.8.10"


def test_every_listener_is_on_loopback(influx: LocalInflux) -> None:
    pid = (influx.directory / "influxd.pid").read_text(encoding="ascii")
    sockets = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if "socket" in str(link.readlink())}
    listening = 0
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening += 1
                assert fields[1].startswith("0100007F:"), f"{table}: {fields[1]} is not 127.0.0.1"
    assert listening >= 2  # HTTP and RPC


def test_a_port_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert free_port(taken) != taken
        server = LocalInflux(Layout().influxd, tmp_path / "second")
        url = server.start(taken)
        assert url != f"http://127.0.0.1:{taken}"
        assert server.stop() is True
    assert server.running_url() is None
    assert server.stop() is False


def test_the_server_of_another_checkout_is_never_taken_for_ones_own(tmp_path: Path) -> None:
    """A copied folder brings the pid of the server that it was copied from along; a moved one keeps its server."""
    program = tmp_path / "influxd"
    shutil.copy("/bin/sleep", program)
    original, copy, moved = (LocalInflux(program, tmp_path / name / "influxdb") for name in ("one", "two", "three"))
    original.directory.mkdir(parents=True)
    with subprocess.Popen([program, "600"], cwd=original.directory) as process:
        try:
            (original.directory / "influxd.pid").write_text(str(process.pid), encoding="ascii")
            (original.directory / "url").write_text("http://127.0.0.1:8086", encoding="ascii")
            shutil.copytree(original.directory, copy.directory)
            assert original.running_pid() == process.pid
            assert (copy.running_pid(), copy.running_url(), copy.stop()) == (None, None, False)
            original.directory.parent.rename(moved.directory.parent)
            assert (original.running_pid(), moved.running_pid()) == (None, process.pid)
            assert process.poll() is None
            assert moved.stop() is True
        finally:
            process.kill()


def cells(server: Influx, query: str) -> list[dict[str, Any]]:
    """Rows by column."""
    return [
        dict(zip(series["columns"], row, strict=True)) for series in server.query(query) for row in series["values"]
    ]


def test_verdict_run_and_events_reach_the_history_once(server: Influx, finished: Bundle) -> None:
    """On 1.8 and on 2, in the policy that outlives the raw telemetry; what happened after the agent's end too."""
    assert undelivered(finished.path)
    assert publish(finished.path, server) is None
    assert publish(finished.path, server) is None
    assert not undelivered(finished.path)
    where = f"WHERE run = '{finished.id}'"
    of_run = f"WHERE of_run = '{finished.id}'"
    verdicts = {row["requirement"]: row for row in cells(server, f'SELECT * FROM "history"."bench_verdict" {of_run}')}
    assert {name: row["outcome"] for name, row in verdicts.items()} == dict.fromkeys(verdicts, "INADMISSIBLE")
    assert [
        [verdicts[name].get(key) for key in ("measured", "bound", "margin_percent", "decision")]
        for name in ("SNB-01", "SNB-07", "overall")
    ] == [[0, 0, None, "undecided"], [3.5, None, 278.7, None], [None, None, None, None]]
    assert {row["model"] for row in verdicts.values()} == {"QEMU NVMe Ctrl"}
    assert {row["report"] for row in verdicts.values()} == {f"{finished.id}/report.html"}
    (run,) = cells(server, f'SELECT * FROM "history"."bench_run" {where}')
    assert (run["host"], run["profile"], run["firmware"], run["duration_s"]) == ("this machine", "snb", "1.0", 120)
    began = datetime(2026, 1, 31, 11, 58, tzinfo=UTC)
    assert run["started_ns"] == int(began.timestamp()) * 10**9
    assert run["trigger_ns"] - run["started_ns"] == 60_250_000_000
    events = cells(server, """SELECT * FROM "history"."bench_event" WHERE host = 'this machine'""")
    assert [row.get("run") for row in events] == [None, finished.id], (
        "a night makes new series of busy and verdict alone"
    )
    assert [(row["kind"], row["host"]) for row in events] == [("phase", "this machine"), ("verdict", "this machine")]
    assert events[0]["text"] == 'applying "the" tuning, step=1'
    declared = YAML(typ="safe").load(Layout().inventory / "metrics.yml")["measurements"]
    for name, row in (("bench_run", run), ("bench_verdict", verdicts["SNB-01"]), ("bench_event", events[0])):
        assert set(row) - {"time"} <= {*declared[name]["tags"], *declared[name]["fields"]}, name
    assert cells(server, f'SELECT * FROM "bench_verdict" {where}') == []


def test_a_run_that_has_begun_is_the_newest_until_its_verdict_comes(influx: LocalInflux, finished: Bundle) -> None:
    """It makes no series of its own: begin and verdict are points of one."""
    own = Influx(influx.start(), configured=False)
    finished.save_run(scenario=scenario("begun", scale=1.0))

    def newest() -> tuple[Any, int]:
        where = f"WHERE run = '{finished.id}' AND scenario = 'begun'"
        (row,) = cells(own, f'SELECT last("word") AS "word", "outcome" FROM "history"."bench_run" {where}')
        series = own.query(f'SELECT "word" FROM "history"."bench_run" {where} GROUP BY *')
        return (row["time"], row["word"], row["outcome"]), len(series)

    own.write(own.history, begin_line(finished))
    began, ended = (int(datetime(2026, 1, 31, *at, tzinfo=UTC).timestamp()) * 10**9 for at in ((11, 58), (12, 0)))
    assert newest() == ((began, "BEGUN", None), 1)
    own.write(own.history, judging_line(finished))
    assert newest() == ((ended, "JUDGING", None), 1)
    assert publish(finished.path, own) is None
    assert newest() == ((ended, "INADMISSIBLE", "INADMISSIBLE"), 1)
    own.write(own.history, begin_line(finished))
    assert newest() == ((ended, "INADMISSIBLE", "INADMISSIBLE"), 1), "told again, it takes the place of nothing"


def test_a_history_that_takes_no_begin_is_told_once(finished: Bundle) -> None:
    """Where the run has told already that InfluxDB takes nothing, it does not wait for it once more."""
    said: list[str] = []
    for problem in (None, "it does not answer"):
        watch = Watch(cast(CandidateSession, None), finished, None, problem, said.append)
        watch.tell_begin(Influx("http://127.0.0.1:1"))
        watch.tell_end()
    assert len(said) == 1 and said[0].startswith("warning: InfluxDB's history does not know that the run has begun (")


def test_a_begin_that_influxdb_did_not_take_is_told_again(
    tmp_path: Path, finished: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is down when the run begins: a run that is killed later must be known all the same."""
    monkeypatch.setattr("daq_bench.rig.run.watch.TELL_AGAIN_S", 0.1)
    server, (port,) = LocalInflux(Layout().influxd, tmp_path / "influxdb"), free_ports(1)
    own = Influx(server.start(port), configured=False)
    server.stop()
    finished.save_run(telemetry=own.told(), scenario=scenario("late", scale=1.0))
    watch = Watch(cast(CandidateSession, None), finished, own, None, lambda text: None)
    watch.tell_begin(own)
    try:
        assert server.start(port) == own.url
        query = """SELECT "word" FROM "history"."bench_run" WHERE scenario = 'late'"""
        assert wait_until(lambda: [row["word"] for row in cells(own, query)] == ["BEGUN"], 60)
        watch.tell_end()
        assert [row["word"] for row in cells(own, query)] == ["BEGUN", "JUDGING"]
        assert publish(finished.path, own) is None
        assert [row["word"] for row in cells(own, query)] == ["BEGUN", "INADMISSIBLE"]
    finally:
        server.stop()


AWKWARD = 'Größe "5 °C", a=b, \\x1b \\'


def test_a_cause_and_a_step_keep_their_words_in_influxdb(influx: LocalInflux, finished: Bundle) -> None:
    """Quotes, commas, backslashes, a line's end. A bench that wrote no advice has none; told again, a cause that is gone is empty."""
    own = Influx(influx.start(), configured=False)

    def told() -> tuple[Any, Any]:
        assert publish(finished.path, own) is None
        (row,) = cells(
            own, f"""SELECT * FROM "history"."bench_run" WHERE run = '{finished.id}' AND scenario = 'words'"""
        )
        return row.get("likely_cause"), row.get("next_step")

    finished.save_run(scenario=scenario("words", scale=1.0), request=AskedFor(target_directory='/srv/"ü", a=b\\\nc'))
    assert told() == (None, None), "its verdict is of a form that this bench cannot advise on"
    finished.write("verdict.json", as_document(Verdict(1, "FAIL", [], 1.0, False, [], [])))
    events = HardwareEvents(1, "", {}, {}, [], 0, [f"{AWKWARD}\nand more"])
    finished.write("results/hardware_events.json", as_document(events))
    step = (
        "Do not accept the candidate as it is: it failed under the load. After a change, qualify it again: `daq-bench qualify "
        """--candidate 'this machine' --scenario words --requirement snb --target '/srv/"ü", a=b\\ c' --scale 1`"""
    )
    assert told() == told() == (f"{AWKWARD} and more", step)
    finished.write("results/hardware_events.json", as_document(structs.replace(events, sentences=[])))
    assert told() == ("", step)


def test_what_influxdb_lost_is_noticed_and_delivered_again(influx: LocalInflux, finished: Bundle) -> None:
    """An acknowledged point that is gone has no name in the account; a replay of everything brings it back."""
    lines = [f"cpu,host=h,run={finished.id} busy_fraction=0.5 {T0_NS + number}\n" for number in range(100)]
    (finished.path / "telemetry" / "points.lp").write_text("".join(lines), encoding="utf-8")
    points = {"collected": 100, "spooled": 100}
    summary = {
        "state": "finished",
        "points": points,
        "collectors": [],
        "influx": {"outages": []},
        "spool": {},
        "workload": None,
    }
    own = Influx(influx.start(), configured=False)
    finished.save_run(telemetry=own.told())
    finished.write("telemetry/influx-counts.json", counts_document(own, finished, "2026-01-31T12:00:00Z"))
    earlier = {"cursor": 0, "influx": {"outage_count": 0, "outages": []}}
    finished.write("telemetry/summary.json", {**summary, **earlier})
    words = [sys.executable, "-m", "daq_bench.rig", "replay", str(finished.path), "--influx-url", own.url]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*words, *more], capture_output=True, text=True, timeout=120, check=False)

    first = run()
    assert (first.returncode, "InfluxDB holds 100 of the bundle's 100 points" in first.stdout) == (0, True), (
        first.stderr
    )
    own.query(f"DELETE FROM cpu WHERE time < {T0_NS + 3}")
    lost = run()
    assert lost.returncode == 2
    assert "+3 points that nothing explains" in lost.stderr
    assert "--all` delivers all" in lost.stderr
    assert run("--all").returncode == 0
    (account,) = [finished.read("telemetry/account-after-replay.json")]
    assert account is not None
    assert account["measurements"]["cpu"]["present"] == 100


def test_a_run_that_loaded_nothing_has_no_trigger(finished: Bundle) -> None:
    (finished.path / "results" / "snb_record.json").unlink()
    assert trigger_ns(finished) is None
    finished.write("results/thermal.json", {"sustained": [{"start_utc_s": 1000.5}, {"start_utc_s": 999.25}]})
    assert trigger_ns(finished) == 999_250_000_000


def test_a_run_whose_candidate_is_being_qualified_delivers_for_itself(
    server: Influx, finished: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several candidates are qualified at once: whoever ends first leaves the others' runs alone."""
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    runs, candidate = finished.path.parent, finished.run.candidate.name
    with exclusive(candidate, "daq-bench qualify"):
        assert list(replay_earlier(Layout().agent, runs, server)) == []
    assert undelivered(finished.path)
    assert list(replay_earlier(Layout().agent, runs, server)) == [finished.path.name]


TORN = b'bench_event,run=r,kind=phase,source=qualify text="Gr\xc3'


def test_a_line_that_influxdb_refuses_is_set_aside_and_keeps_back_nothing_else(
    server: Influx, finished: Bundle
) -> None:
    """As a full disk tears one, within a character."""
    event = 'bench_event,run=r,kind=phase,source=qualify text="after" 1769860800000000009\n'
    finished.workload_file.write_bytes(TORN + b"\n" + event.encode() * 3)
    assert publish(finished.path, server) is None
    told = set_aside(finished.path)
    assert told.startswith("InfluxDB refused 1 lines of the history for good; ") and not undelivered(finished.path)
    kept = (finished.path / "telemetry" / "verdict-delivered").read_text(encoding="utf-8").splitlines()
    assert (
        kept[0].startswith("# HTTP 400: ")
        and kept[1].startswith("bench_event,host=this\\ machine,kind=phase")
        and len(kept) == 2
    )
    assert "after" in [
        row["text"] for row in cells(server, """SELECT text FROM "history"."bench_event" WHERE host = 'this machine'""")
    ]
    finished.workload_file.write_bytes(event.encode())
    assert publish(finished.path, server) is None
    assert set_aside(finished.path) == ""


def test_a_field_of_another_type_costs_its_own_line(influx: LocalInflux, finished: Bundle) -> None:
    """Somebody wrote the run's length as a text there: the run's point is refused, its verdicts and events are not."""
    own = Influx(influx.start(), "conflicts", configured=False)
    create_database(own.url, own.database)
    at_ns = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()) * 10**9  # in its shard
    own.write(own.history, f'bench_run,host=other duration_s="2 min" {at_ns}')
    assert publish(finished.path, own) is None
    kept = (finished.path / "telemetry" / "verdict-delivered").read_text(encoding="utf-8")
    assert "field type conflict" in kept and "\nbench_run," in kept and "bench_verdict," not in kept
    assert len(cells(own, 'SELECT outcome FROM "history"."bench_verdict"')) == 3


def test_a_proxy_that_takes_small_bodies_alone_keeps_back_no_verdict(finished: Bundle) -> None:
    """As nginx does, with a page; and whatever does not pass alone stays undelivered."""
    event = 'bench_event,run=r,kind=phase,source=qualify text="x" {}\n'
    finished.workload_file.write_text("".join(event.format(nth) for nth in range(100)), encoding="utf-8")
    for limit_bytes, problem in ((1500, None), (10, "HTTP 413: <html>")):
        taken: list[bytes] = []

        def answer(body: bytes, _path: str, limit: int = limit_bytes, taken: list[bytes] = taken) -> tuple[int, str]:
            if len(body) > limit:
                return 413, "<html><title>413 Request Entity Too Large</title></html>"
            taken.append(body)
            return 204, ""

        with scripted_http(answer) as url:
            told = publish(finished.path, Influx(url))
        assert told is None if problem is None else str(told).startswith(problem)
        assert b"\n".join(taken).count(b"bench_event,") == (0 if problem else 100)
        assert set_aside(finished.path) == ""


def test_a_run_that_is_damaged_keeps_no_later_one_back(
    influx: LocalInflux, finished: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose telemetry cannot be delivered, though the server takes what comes, and one whose results cannot be read."""
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    runs = tmp_path / "several"
    for name in ("20260101", "20260102", "20260103"):
        shutil.copytree(finished.path, runs / name, symlinks=True)
    (runs / "20260101" / "telemetry" / "points.lp").unlink()
    (runs / "20260101" / "telemetry" / "points.lp").mkdir()
    (runs / "20260102" / "results" / "snb_record.json").write_text("{", encoding="utf-8")
    assert list(replay_earlier(Layout().agent, runs, Influx(influx.start(), configured=False))) == ["20260103"]


def test_a_replay_that_takes_too_long_is_told_and_goes_on_later(finished: Bundle) -> None:
    """A server that is slow, and an hour's worth of points and more."""
    (finished.path / "telemetry" / "points.lp").write_text("cpu,host=a busy_fraction=1 1\n", encoding="utf-8")
    done = replay(Layout().agent, finished.path / "telemetry", Influx("http://127.0.0.1:9"), timeout_s=0.01)
    assert (done.returncode, "the next replay goes on there" in done.stderr) == (1, True)


def test_without_a_server_the_verdict_stays_undelivered(finished: Bundle) -> None:
    problem = publish(finished.path, Influx(f"http://127.0.0.1:{free_ports(1)[0]}"))
    assert "does not answer" in str(problem)
    assert undelivered(finished.path)


def test_a_server_without_the_history_is_told_how_to_get_it(influx: LocalInflux, finished: Bundle) -> None:
    other = replace(Influx(influx.start()), database="bare")
    other.query('CREATE DATABASE "bare"')
    problem = str(publish(finished.path, other))
    assert "retention policy not found: history" in problem
    assert 'CREATE RETENTION POLICY "history" ON "bare" DURATION INF REPLICATION 1' in problem
    assert undelivered(finished.path)


@pytest.mark.influx2
def test_a_bucket_for_the_history_that_is_missing_is_named(influx2: Influx2Server, finished: Bundle) -> None:
    influx2.ask("POST", "buckets", {"orgID": influx2.organisation_id(), "name": "bare", "retentionRules": []})
    token = influx2.token(("write", "bare"), ("read", "bare"))
    problem = str(publish(finished.path, Influx(influx2.url, "bare", ORGANISATION, token)))
    assert "on 2.x: a bucket named bare/history" in problem


class Eavesdropper(http.server.BaseHTTPRequestHandler):
    """A server that takes everything and keeps what it was told in headers."""

    authorizations: ClassVar[list[str | None]]

    def do_POST(self) -> None:
        self.authorizations.append(self.headers.get("Authorization"))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(401)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.mark.parametrize("named_by", ["the bundle alone", "the inventory too", "the environment"])
def test_a_token_goes_only_to_a_server_that_the_operator_names(
    finished: Bundle, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, named_by: str
) -> None:
    """A bundle is anybody's: the address in its run.json must not draw the laboratory's token to it."""
    kind = type("Kept", (Eavesdropper,), {"authorizations": []})
    with http.server.HTTPServer(("127.0.0.1", 0), kind) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{listening.server_port}"
        own = f"bench_influxdb: {{url: '{url}'}}" if named_by == "the inventory too" else "bench_run: own"
        (inventory := tmp_path / "lab.yml").write_text(f"all: {{hosts: {{mine: {{{own}}}}}}}\n", encoding="utf-8")
        finished.save_run(candidate=candidate("mine"), telemetry=Influx(url).told())
        monkeypatch.setenv(TOKEN, "the-laboratorys-own")
        if named_by == "the environment":
            monkeypatch.setenv(URL, url)
        try:
            assert main(["replay", str(finished.path), "--inventory", str(inventory)]) == 2
        finally:
            listening.shutdown()
            thread.join()
    trusted = named_by != "the bundle alone"
    assert kind.authorizations
    assert set(kind.authorizations) == {"Token the-laboratorys-own" if trusted else None}
    assert (f"--influx-url {url}` sends yours" in capsys.readouterr().err) is not trusted
