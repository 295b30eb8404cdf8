"""A night tells its begin, its end and each candidate whose outcome changed; what hears it is a real HTTP server on loopback."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from daq_bench.bench_model.base.errors import ProfileError
from daq_bench.bench_model.documents.nights import Job, NightRun, Word
from daq_bench.bench_model.documents.struct import checked
from daq_bench.bench_model.nights.outcome import Entry, document
from daq_bench.rig.base.bundle import to_json
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli import main
from daq_bench.rig.nightly import job as nightly_run
from daq_bench.rig.nightly import night as nightly_night
from daq_bench.rig.nightly import notify
from daq_bench.rig.nightly.housekeeping import Keeping
from daq_bench.rig.nightly.job import Where
from daq_bench.rig.nightly.night import Nightly
from daq_bench.rig.nightly.notify import Notify, Teller, begun, body, changed, over, word_before
from daq_bench.rig.nightly.overdue import overdue
from daq_bench.rig.nightly.plan import Plan, load_plan

INVENTORY = Layout().inventory / "lab.yml"
JOBS = (Job("server-a", "snb-100s"), Job("server-b", "snb-100s"))


@dataclass
class Heard:
    """Requests that came to the server, in order; it answers with `statuses` one after another, then with 200."""

    statuses: list[int] = field(default_factory=list)
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    address: str = ""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(content) for method, _, content in self.requests if method == "POST"]


@pytest.fixture
def heard() -> Iterator[Heard]:
    found = Heard()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found.requests.append((self.command, self.path, content))
            self.send_response(found.statuses.pop(0) if found.statuses else 200)
            self.send_header("Location", f"{found.address}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


def run_of(job: Job, word: Word, reason: str = "", target: str = "") -> NightRun:
    (found,) = document([Entry(job, word, reason)], [job], "finished", "n", ("2026-03-01", None), {}).runs
    return NightRun(**{name: getattr(found, name) for name in NightRun.__struct_fields__} | {"target": target})


def stored_night(folder: Path, name: str, started: datetime, state: str, **words: Word) -> Path:
    entries = [
        Entry(job, words[job.candidate.replace("-", "_")], "why")
        for job in JOBS
        if job.candidate.replace("-", "_") in words
    ]
    made = document(entries, JOBS, state, name, (f"{started:%Y-%m-%dT%H:%M:%SZ}", None), {})
    (folder / name).mkdir(parents=True)
    (folder / name / "nightly.json").write_text(to_json(checked(made)), encoding="utf-8")
    return folder / name


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(
        nightly_run, "command", lambda job, where: [sys.executable, "-c", "import sys; sys.exit('error: it burns')"]
    )
    return Where(INVENTORY, tmp_path / "runs")


def test_a_night_tells_its_begin_what_changed_and_its_end_and_then_beats(
    where: Where, tmp_path: Path, heard: Heard
) -> None:
    nights, ago = tmp_path / "nightly", datetime.now(UTC) - timedelta(days=1)
    jobs = (Job("this-machine"), Job("this-machine-twice"))
    older = document(
        [Entry(jobs[0], "PASS", ""), Entry(jobs[1], "ERROR", "")],
        jobs,
        "finished",
        "old",
        (f"{ago:%Y-%m-%dT%H:%M:%SZ}", None),
        {},
    )
    (nights / "old").mkdir(parents=True)
    (nights / "old" / "nightly.json").write_text(to_json(checked(older)), encoding="utf-8")
    told = Notify(heard.address + "/hook", "json", heard.address + "/beat")
    assert Nightly(Plan(jobs, notify=told), where, nights / "new", Console(quiet=True)).carry_out(goes_on=False) == 2
    assert [(method, path) for method, path, _ in heard.requests] == [
        ("POST", "/hook"), ("POST", "/hook"), ("POST", "/hook"), ("GET", "/beat"),
    ]  # fmt: skip
    first, change, last = heard.events
    assert (first["event"], first["night"]) == ("night_begun", "new")
    assert first["text"] == "The night began: 2 runs.\nthis-machine, this-machine-twice"
    assert (change["event"], change["candidate"], change["before"], change["now"]) == (
        "outcome_changed", "this-machine", "PASS", "ERROR",
    )  # fmt: skip
    assert change["text"] == "this-machine: PASS became ERROR. no run began (exit status 1): it burns"
    assert (last["event"], last["exit_status"], [run["outcome"] for run in last["runs"]]) == (
        "night_over",
        2,
        ["ERROR", "ERROR"],
    )
    assert last["text"].splitlines()[:3] == [
        "The night is over. ERROR: 2 runs on 2 candidates (2 ERROR)",
        f"Documents: {nights / 'new'}",
        "this-machine: ERROR. no run began (exit status 1): it burns",
    ]


def test_a_night_that_cannot_be_written_is_told_all_the_same(
    where: Where, tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk ended the night without a word to anybody but the journal."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(nightly_night, "write_atomically", full)
    told = Notify(heard.address, "json", heard.address + "/beat")
    plan = Plan((Job("this-machine"),), notify=told)
    assert Nightly(plan, where, tmp_path / "nightly" / "a", Console(quiet=True)).carry_out(goes_on=False) == 2
    assert [event["event"] for event in heard.events] == ["night_begun", "night_over"]
    assert heard.events[1]["exit_status"] == 2
    assert "its documents cannot be written: " in heard.events[1]["text"]
    assert all(method == "POST" for method, _, _ in heard.requests)


def test_the_first_night_deletes_what_is_old_though_no_run_has_begun(where: Where, tmp_path: Path) -> None:
    """There is no folder of runs yet: housekeeping stopped with a warning, in each night until a run began."""
    plan = Plan((Job("this-machine"),), keeping=Keeping(days=1.0))
    console = Console(file=io.StringIO(), width=200)
    assert Nightly(plan, where, tmp_path / "nightly" / "a", console).carry_out(goes_on=False) == 2
    assert "housekeeping: 0 bundles and nights deleted" in cast(io.StringIO, console.file).getvalue()


def test_a_log_that_cannot_be_written_costs_its_run_alone(where: Where, tmp_path: Path, heard: Heard) -> None:
    folder = tmp_path / "nightly" / "a"
    (folder / "01-this-machine.log").mkdir(parents=True)
    plan = Plan((Job("this-machine"), Job("this-machine-twice")), notify=Notify(heard.address))
    assert Nightly(plan, where, folder, Console(quiet=True)).carry_out(goes_on=False) == 2
    first, second = (run["reason"] for run in heard.events[-1]["runs"])
    assert first.startswith("no run could be begun or read: ") and second.endswith("it burns")


def test_a_night_that_was_stopped_is_over_and_does_not_beat(where: Where, tmp_path: Path, heard: Heard) -> None:
    told = Notify(heard.address, "json", heard.address + "/beat")
    plan = Plan((Job("this-machine"),), time_limit_s=0.0, notify=told)
    assert Nightly(plan, where, tmp_path / "nightly" / "a", Console(quiet=True)).carry_out(goes_on=False) == 130
    assert [event["event"] for event in heard.events] == ["night_begun", "night_over"]
    assert heard.events[1]["exit_status"] == 130
    assert all(method == "POST" for method, _, _ in heard.requests)


@pytest.mark.parametrize(
    ("statuses", "tries", "warning"),
    [
        ([], 1, ""),
        ([500, 429], 3, ""),
        ([503, 502, 500], 3, "HTTP 500"),
        ([404], 1, "HTTP 404"),
        ([302], 1, "HTTP 302"),  # the address is not where it leads
    ],
)
def test_a_message_is_tried_again_where_that_may_help(
    heard: Heard, statuses: list[int], tries: int, warning: str
) -> None:
    said = list[str]()
    heard.statuses = statuses
    teller = Teller(Notify(f"{heard.address}/T0/secret"), said.append, (0.0, 0.0, 0.0))
    teller.tell(begun("n", ["server-a"]))
    teller.end()
    assert [path for _, path, _ in heard.requests] == ["/T0/secret"] * tries
    assert said == ([f"warning: the message of night_begun did not reach 127.0.0.1: {warning}"] if warning else [])


def test_who_does_not_answer_is_named_without_the_secret_and_later_messages_wait_no_more(heard: Heard) -> None:
    said, pauses = list[str](), (0.0, 0.0, 0.0)
    heard.statuses = [500] * 3 + [500]
    teller = Teller(Notify(f"{heard.address}/T0/secret"), said.append, pauses)
    for night in ("one", "two"):
        teller.tell(begun(night, []))
    teller.end()
    assert len(heard.requests) == 3 + 1
    gone = Teller(Notify("http://user:pass@127.0.0.1:9/T0/secret"), said.append, pauses)  # nobody listens on discard
    gone.tell(begun("n", []))
    gone.end()
    assert len(said) == 3 and "127.0.0.1" in said[2]
    assert not any(word in line for line in said for word in ("secret", "pass", "T0"))


def test_a_receiver_that_trickles_holds_no_night_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes within the limit of one read, and the answer never ends; it gives up after 10 s, long after us."""
    monkeypatch.setattr(notify, "TIMEOUT_S", 0.5)
    said = list[str]()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError), listening.accept()[0] as client:
                client.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                for _ in range(200):
                    time.sleep(0.05)
                    client.sendall(b"x")

        threading.Thread(target=serve, daemon=True).start()
        teller = Teller(Notify(f"http://127.0.0.1:{listening.getsockname()[1]}/T0/secret"), said.append, (0.0,))
        teller.tell(begun("n", []))
        teller.end()
    assert len(said) == 1
    assert "did not reach 127.0.0.1: timed out" in said[0]


HOSTILE = "\x1b[2J<!channel> @all & [click](http://evil.example)"


@pytest.mark.parametrize("form", ["json", "slack", "mattermost", "teams"])
def test_each_form_is_what_its_receiver_takes_and_foreign_words_call_nobody(form: Any) -> None:
    message = changed("n", run_of(JOBS[0], "FAIL", HOSTILE), "PASS")
    found = json.loads(body(message, form))
    if form == "json":
        assert (found["event"], found["before"], found["now"], found["scenario"]) == (
            "outcome_changed",
            "PASS",
            "FAIL",
            "snb-100s",
        )
        assert set(found) == set(notify.Message.__struct_fields__)
        return
    if form == "teams":
        (attachment,) = found["attachments"]
        assert (found["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
        card = attachment["content"]
        assert (card["type"], card["version"], card["body"][0]["type"]) == ("AdaptiveCard", "1.2", "TextBlock")
        text = card["body"][0]["text"]
    else:
        assert set(found) == {"text"}
        text = found["text"]
    assert text.startswith("server-a / snb-100s: PASS became FAIL. ")
    assert "\x1b" not in text and "@all" not in text
    assert ("<!channel>" in text) is (form != "slack")


def test_a_long_night_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    runs = [run_of(Job(f"server-{number}"), "FAIL", "reason " * 20) for number in range(100)]
    text = json.loads(body(over("n", runs, "FAIL: 100 runs", 1, tmp_path), "slack"))["text"]
    assert len(text) < 3100 and text.startswith("The night is over. FAIL: 100 runs\n")
    assert str(tmp_path) in text


def test_a_skipped_job_is_compared_with_the_worst_of_its_targets() -> None:
    words = {JOBS[0]: {"a": "PASS", "b": "FAIL"}}
    assert word_before(run_of(JOBS[0], "skipped"), words) == "FAIL"
    assert word_before(run_of(JOBS[0], "PASS", target="a"), words) == "PASS"
    assert word_before(run_of(JOBS[0], "PASS", target="c"), words) is None
    assert word_before(run_of(JOBS[1], "PASS"), words) is None


def inventory_with(folder: Path, lines: str) -> Path:
    file = folder / "lab.yml"
    text = INVENTORY.read_text(encoding="utf-8")
    assert "      time_limit_h: 6\n" in text
    file.write_text(text.replace("      time_limit_h: 6\n", lines), encoding="utf-8")
    return file


def test_addresses_come_from_files_that_others_cannot_read(tmp_path: Path) -> None:
    secret = tmp_path / "hook"
    secret.write_text("https://hooks.example/T0/secret\n", encoding="utf-8")
    secret.chmod(0o600)
    plan = load_plan(inventory_with(tmp_path, f"      notify: {{webhook_file: {secret}, form: slack}}\n"))
    assert plan.notify == Notify("https://hooks.example/T0/secret", "slack", "")
    assert "secret" not in repr(plan)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ("https://hooks.example/x", 0o644, "others can read"),
        ("", 0o600, "holds no address"),
        ("ftp://hooks.example/x", 0o600, "holds no address"),
        ("https:///x", 0o600, "holds no address"),
        ("https://hooks.example:port/x", 0o600, "holds no address"),
        ("https://hooks.example/x\nhttps://other.example/y", 0o600, "holds no address"),
        ("file:///etc/passwd", 0o600, "holds no address"),
        (None, 0o600, "cannot be read: "),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used_ends_the_command_with_its_line(
    tmp_path: Path, content: str | None, mode: int, words: str
) -> None:
    secret = tmp_path / "hook"
    if content is not None:
        secret.write_text(content, encoding="utf-8")
        secret.chmod(mode)
    with pytest.raises(ProfileError, match=words) as caught:
        load_plan(inventory_with(tmp_path, f"      notify: {{heartbeat_file: {secret}}}\n"))
    assert caught.value.place.line > 1 and "hooks.example/x" not in str(caught.value)


def test_a_folder_is_no_address_and_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="is no regular file"):
        load_plan(inventory_with(tmp_path, f"      notify: {{webhook_file: {tmp_path}}}\n"))
    with pytest.raises(ProfileError, match="form"):
        load_plan(inventory_with(tmp_path, "      notify: {form: irc}\n"))


def silent(text: str) -> None:
    assert not text


@pytest.mark.parametrize(
    ("hours_ago", "state", "held", "words"),
    [
        (3, "finished", False, ""),
        (3, "interrupted", False, ""),
        (3, "running", True, ""),
        (3, "running", False, "was killed: nothing runs and it has not ended"),
        (30, "finished", False, "no night has begun for 30 h; the last one, n1, began "),
        (30, "running", True, "no night has begun for 30 h"),
        (-5, "finished", False, "no night has begun for 40 h; the last one, n0"),  # of a clock that jumped
    ],
)
def test_a_night_is_missing_that_did_not_begin_in_time_or_was_killed(
    tmp_path: Path, hours_ago: float, state: str, held: bool, words: str
) -> None:
    now = datetime.now(UTC)
    stored_night(tmp_path, "n0", now - timedelta(hours=40, minutes=1), "finished", server_a="PASS")
    folder = stored_night(tmp_path, "n1", now - timedelta(hours=hours_ago), state, server_a="PASS")
    (folder / ".lock").touch()
    with (folder / ".lock").open() as stream:
        if held:
            fcntl.flock(stream, fcntl.LOCK_EX)
        found = overdue(tmp_path, 26.0, silent)
    assert (words in found) if words else not found


def test_the_command_tells_of_a_missing_night(tmp_path: Path, heard: Heard, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "hook"
    secret.write_text(f"{heard.address}/hook", encoding="utf-8")
    secret.chmod(0o600)
    inventory = inventory_with(tmp_path, f"      notify: {{webhook_file: {secret}}}\n")
    asked = ["nightly", "--overdue-h", "26", "--inventory", str(inventory), "--output", str(tmp_path / "nightly")]
    assert main(asked) == 3
    (event,) = heard.events
    assert event["event"] == "night_missing" and "no night has begun that" in event["text"]
    assert "night missing: no night has begun that" in capsys.readouterr().err
    stored_night(tmp_path / "nightly", "n1", datetime.now(UTC), "finished", server_a="PASS")
    assert main(asked) == 0
    assert len(heard.events) == 1 and not os.path.lexists(tmp_path / "nightly" / "latest")
