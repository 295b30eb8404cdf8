"""A candidate may be broken, chatty or hostile: each of its answers is what its command said, or one error, and nothing hangs or grows."""

import io
import json
import os
import random
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.rig.base.output import EndlessOutputError, dropped, taken
from daq_bench.rig.base.shell import Completed, LocalShell
from daq_bench.rig.base.terminal import printable_lines, say
from daq_bench.rig.candidate import answers, lock, ssh
from daq_bench.rig.candidate.connection import Connection
from daq_bench.rig.candidate.lock import MachineLock
from daq_bench.rig.candidate.machine import SshMachine, answer_of
from daq_bench.rig.candidate.ssh import SshLink, UnreachableError

CHATTY = "echo 'Welcome to [bold]server[/]'; printf 'no end of line'; echo 'last login' >&2; trap 'echo bye; echo bye >&2' EXIT"


class LoginShell(SshLink):
    """A candidate whose login shell is one of this machine: sshd gives it the command's words just so."""

    def __init__(self, folder: Path, first: str = CHATTY) -> None:
        super().__init__(Connection("ssh", "server"), folder / "no-link")
        self._first = first

    def _through_master(self) -> list[str]:
        return ["sh", "-c", f'{self._first}\neval "$1"', "login"]


@pytest.fixture
def link(tmp_path: Path) -> LoginShell:
    return LoginShell(tmp_path)


def test_a_chatty_login_shell_spoils_no_answer(link: LoginShell) -> None:
    done = link.run(["sh", "-c", "printf 'a\\nb'; echo e >&2; exit 3"], 60, ["probe"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "a\nb", "e\n")
    fed = link.feed(["sh", "-c", "cat; echo e >&2"], b"x" * 200_000)
    assert (fed.returncode, fed.stdout, fed.stderr) == (0, "x" * 200_000, "e\n")


@pytest.mark.parametrize("bad", ["exit 0", "echo '{}'; exit 0"])
def test_an_answer_without_its_frame_is_none(tmp_path: Path, bad: str) -> None:
    with pytest.raises(BenchError, match=r"probe on candidate server gave no whole answer: it has 0 of the 2 marks"):
        LoginShell(tmp_path, bad).run(["true"], 60, ["probe"])


def test_a_login_shell_that_refuses_is_quoted(tmp_path: Path) -> None:
    done = LoginShell(tmp_path, "echo 'This account is not available' >&2; exit 1").run(["true"], 60, ["probe"])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "This account is not available\n")


def test_endless_output_ends_in_one_error(link: LoginShell) -> None:
    with pytest.raises(BenchError, match=r"smartctl on candidate server was stopped: it printed more than 128 MiB"):
        link.run(["yes"], 60, ["smartctl"])
    with pytest.raises(BenchError, match="yes was stopped: it printed more than 128 MiB"):
        LocalShell().run(["yes"], 60)


def test_no_more_is_kept_than_asked_for() -> None:
    with subprocess.Popen(["sh", "-c", "exec yes >&2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with pytest.raises(EndlessOutputError, match="1 MiB"):
            taken(process, 60, bytes_max=2**20)
        with pytest.raises(subprocess.TimeoutExpired):
            taken(process, 0.0)
        assert not dropped(process, 0.0)
        process.kill()
        assert dropped(process, 60)


def test_a_file_comes_whole_whatever_the_shell_says(link: LoginShell, tmp_path: Path) -> None:
    there, here = tmp_path / "points.lp", tmp_path / "here.lp"
    data = random.Random(1).randbytes(3 * 2**20 + 7)
    for content in (data, b""):
        there.write_bytes(content)
        link.fetch([], str(there), here, "server:points.lp")
        assert here.read_bytes() == content


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(answers.FETCH_BYTES_MAX + 1)


def absent(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (fifo, "it is not there, or no plain file"),
        (endless, "it is not there, or no plain file"),
        (absent, "it is not there, or no plain file"),
        (large, "it has 9.7 GB; 9.7 GB are the most that is taken"),
    ],
)
def test_what_is_no_file_of_ours_is_not_fetched(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    (tmp_path / "there").mkdir()
    make(tmp_path / "there" / "points.lp")
    (tmp_path / "here").mkdir()
    with pytest.raises(BenchError, match=f"server:points.lp cannot be fetched: {why}"):
        LoginShell(tmp_path).fetch(
            [], str(tmp_path / "there" / "points.lp"), tmp_path / "here" / "p", "server:points.lp"
        )
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("exec sleep 600", "it did not answer in time"),
        ("exec yes", "the answer does not begin within 65536 B"),
        ("exit 0", "the answer ended too early"),
        (
            """printf '%s999\\n%s' "$(echo "$1" | grep -o '[0-9a-f]\\{32\\}')" short; exit 0""",
            "the answer ended too early",
        ),
        (
            """printf '%s999\\n%s' "$(echo "$1" | grep -o '[0-9a-f]\\{32\\}')" short; exec sleep 600""",
            "it did not answer in time",
        ),
        ("""printf '%s-5\\n' "$(echo "$1" | grep -o '[0-9a-f]\\{32\\}')"; exit 0""", "-5"),
    ],
)
def test_a_lying_or_silent_candidate_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, why: str
) -> None:
    monkeypatch.setattr(answers, "SILENCE_S_MAX", 0.5)
    (tmp_path / "here").mkdir()
    with pytest.raises(BenchError, match=f"server:p cannot be fetched: {why}"):
        LoginShell(tmp_path, first).fetch([], "/p", tmp_path / "here" / "p", "server:p")
    assert list((tmp_path / "here").iterdir()) == []


def test_the_mirror_holds_the_file_alone_and_no_more_than_a_file_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = LoginShell(tmp_path, "echo Welcome; printf 'no end of line'")
    local = tmp_path / "points.lp"
    mirror = link.stream(["sh", "-c", "printf 'm f=1 1\\nm f=2 2\\n'"], local)
    mirror.wait()
    mirror.end()
    assert local.read_text(encoding="utf-8") == "m f=1 1\nm f=2 2\n"
    monkeypatch.setattr(answers, "FETCH_BYTES_MAX", 100_000)
    mirror = link.stream(["cat", "/dev/zero"], local)
    mirror.wait()
    mirror.end()
    assert local.stat().st_size == 100_000


def test_a_master_that_never_answers_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the socket and says nothing, as one that is stopped."""
    monkeypatch.setattr(ssh, "CONNECT_S_MAX", 0.5)
    control = tmp_path / "ssh"
    with socket.socket(socket.AF_UNIX) as master:
        master.bind(str(control))
        master.listen()
        link = SshLink(Connection("ssh", "server", host="127.0.0.1"), control)
        with pytest.raises(BenchError, match=r"candidate server did not answer within 0 s \(ssh -O check\)"):
            link.up()


def test_a_lock_is_taken_through_a_chatty_shell_and_given_back(
    link: LoginShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    lock = MachineLock(SshMachine(link), "server", "qualify", 0.0)
    assert lock.take() == ""
    (file,) = tmp_path.glob("*.lock")
    assert json.loads(file.read_text(encoding="utf-8"))["pid"] == os.getpid()
    lock.demand_held()
    lock.give_back()
    assert file.read_text(encoding="utf-8").strip("\0 \n") in ("", "{}", "null")


NEXT = "daq-bench provision, next target"


class Rebooted(LoginShell):
    """The link after a reboot of the candidate: what ran over it has ended; `back` says whether it can be reached again."""

    opened, back = 0, True

    def open(self) -> None:
        self.opened += 1
        if not self.back:
            raise UnreachableError("candidate server cannot be reached by ssh: no answer")


def mark_in(folder: Path) -> str:
    (file,) = folder.glob("*.lock")
    return file.read_text(encoding="utf-8").strip("\0 \n")


@pytest.fixture
def rebooted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rebooted:
    monkeypatch.setenv("DAQ_BENCH_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(lock, "_given_up", set())
    return Rebooted(tmp_path)


def locked_before_a_reboot(link: Rebooted, what: str = "restore") -> MachineLock:
    lock = MachineLock(SshMachine(link), "server", what, 900.0)
    assert lock.take() == ""
    assert lock._holder is not None
    os.killpg(lock._holder.pid, signal.SIGKILL)
    lock._holder.wait()
    return lock


def test_after_a_reboot_the_mark_is_taken_away_over_a_new_connection(rebooted: Rebooted, tmp_path: Path) -> None:
    lock = locked_before_a_reboot(rebooted)
    assert "restore" in mark_in(tmp_path)
    lock.give_back()
    assert (mark_in(tmp_path), rebooted.opened) == ("", 1)


def test_a_lock_whose_connection_lives_needs_no_other(rebooted: Rebooted, tmp_path: Path) -> None:
    lock = MachineLock(SshMachine(rebooted), "server", "restore", 900.0)
    lock.take()
    lock.give_back()
    assert (mark_in(tmp_path), rebooted.opened) == ("", 0)


def test_the_mark_of_a_candidate_that_stays_away_keeps_its_own_bench_from_nothing(
    rebooted: Rebooted, tmp_path: Path
) -> None:
    """`provision` of two targets is one process: the second was refused, "in use by process N", N being itself."""
    rebooted.back = False
    locked_before_a_reboot(rebooted, "provision, first target").give_back()
    assert "first target" in mark_in(tmp_path)
    lock = MachineLock(SshMachine(rebooted), "server", NEXT, 900.0)
    assert "its lock was left behind by process" in lock.take()
    assert NEXT in mark_in(tmp_path)
    lock.give_back()
    assert mark_in(tmp_path) == ""


def test_a_mark_that_another_took_meanwhile_stays_his(rebooted: Rebooted, tmp_path: Path) -> None:
    lock = locked_before_a_reboot(rebooted)
    (file,) = tmp_path.glob("*.lock")
    his = json.dumps({**json.loads(mark_in(tmp_path)), "id": "his", "node": "far", "text": "process 1 of him on far"})
    file.write_text(his, encoding="utf-8")
    lock.give_back()
    assert mark_in(tmp_path) == his
    with pytest.raises(RefusedError, match="it is in use by process 1 of him on far"):
        MachineLock(SshMachine(rebooted), "server", NEXT, 900.0).take()


@pytest.mark.parametrize(
    "line", ["[]", "null", "7", '{"error": "x", "owner": {"node": []}}', "{}", "[" * 60000, "no JSON"]
)
def test_a_lock_that_answers_nonsense_is_one_error(tmp_path: Path, line: str) -> None:
    file = tmp_path / "line"
    file.write_text(line + "\n", encoding="utf-8")
    mark = """$(echo "$1" | grep -o '[0-9a-f]\\{32\\}' | head -1)"""
    first = f'echo "{mark}"; cat {file}; exit 0'
    with pytest.raises(BenchError, match="candidate 'server' cannot be locked: it said nothing"):
        MachineLock(SshMachine(LoginShell(tmp_path, first)), "server", "qualify", 0.0).take()


def test_5000_harmed_answers_are_documents_or_one_error() -> None:
    choice = random.Random(37)
    whole = json.dumps({"result": {"host": {"cpus": 8, "text": "a"}, "devices": [1.5, None, True]}})
    refused = 0
    for _ in range(5000):
        text = list(whole)
        for _ in range(choice.randrange(4)):
            text[choice.randrange(len(text))] = choice.choice(['"', "{", "}", "[", "\x1b", "9", "", "\ud800", ","])
        try:
            answer_of("probe", Completed(("probe",), choice.choice([0, 0, 0, 1]), "".join(text), ""))
        except BenchError as error:
            refused += 1
            assert len(str(error)) < 3000
    assert 1000 < refused < 5000
    for text in ("", "[1]", "null", "NaN", "[" * 100_000, '{"error": {"a": 1}}', json.dumps({"error": "x" * 10**6})):
        with pytest.raises(BenchError):
            answer_of("probe", Completed(("probe",), 0, text, ""))


def test_no_foreign_word_is_markup_and_none_moves_the_cursor() -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=40)
    for text in (
        "mdadm: [/dev/md0] is busy",
        "a [bold]b[/bold] :smile:",
        "x\x1b[2J\x1b]0;t\x07\r\u202e",
        "one\ntwo\tthree",
    ):
        say(console, f"warning: target could not be cleaned up: {text}")
    said = shown.getvalue()
    assert "[/dev/md0] is busy" in said and "a [bold]b[/bold] :smile:" in said
    assert "x\\x1b[2J\\x1b]0;t\\x07\\r\\u202e" in said and "\x1b" not in said
    assert printable_lines("one\ntwo\tthree") == "one\ntwo\tthree"


def test_a_long_banner_hides_no_reason_of_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH prints a server's banner before its own reason: 70 kB of it filled the terminal and the log, and the reason was cut off."""
    program = tmp_path / "ssh"
    program.write_text(
        "#!/bin/sh\n"
        "yes 'Authorised use only' | head -c 70000 >&2\n"
        "echo 'root@server: Permission denied (publickey).' >&2\n"
        "exit 255\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(UnreachableError, match=r"Permission denied \(publickey\)\.") as raised:
        SshLink(Connection("ssh", "server", "server"), tmp_path / "control").open()
    assert len(str(raised.value)) < 2000
