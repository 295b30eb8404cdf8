"""The SSH link to a candidate: one master connection that OpenSSH multiplexes. Commands end with the bench, however it ends.

Only OpenSSH's own client is used, with the options of the inventory: host keys are checked, and passwords are never asked for."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.output import EndlessOutputError, dropped, taken
from daq_bench.rig.base.shell import (
    GRACE_S,
    HANG_S_MIN,
    UNTIL_PARENT_DIES,
    Completed,
    environment_for_children,
    program_of,
)
from daq_bench.rig.candidate.answers import BEGIN, FETCH, FETCH_BYTES_MAX, Answer, AnswerError, Frame, Mirror
from daq_bench.rig.candidate.connection import Connection

CONNECT_S_MAX = 30.0
HOLD_S_MAX = 60.0  # Python's start on a slow candidate
SAID_BYTES_MAX = 2**10  # ssh's own reason comes last, behind a server's banner, which may be long
LOST = 255  # ssh's own exit status for a failed connection
SUPERVISOR = (Path(__file__).resolve().parent.parent / "on_candidate" / "supervise.py").read_text(encoding="utf-8")
# A dead network is noticed within 15 s; a slow candidate answers in time, since its kernel and sshd only need to wake up.
KEEPALIVE = ("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=20")


class UnreachableError(BenchError):
    """No connection came about: `what` in ssh's own words; `remedy` is for a candidate of an inventory."""

    remedy = (
        "Correct ansible_host, ansible_port, ansible_user or the key in the inventory; "
        "`ssh-keyscan` shows a host key that is not known yet"
    )

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what}. {self.remedy}")


class SshLink:
    """The link to one candidate. `open` starts the master in this process; other processes use it through `control`."""

    def __init__(self, connection: Connection, control: Path) -> None:
        self.connection = connection
        self.control = control
        self._master: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._forwards: list[tuple[int, str, int]] = []

    def _ssh(self, *options: str) -> list[str]:
        connection = self.connection
        return [
            *("ssh", "-T", "-o", "BatchMode=yes", *KEEPALIVE, "-o", f"ControlPath={self.control}"),
            *("-p", str(connection.port), *options, *connection.options, "--", connection.destination),
        ]

    def _through_master(self) -> list[str]:
        """ssh's words for a command over the link. Raises BenchError where the master is gone: ssh would connect anew by itself, and nobody
        would notice that the candidate's lock was lost with the old connection."""
        try:
            with socket.socket(socket.AF_UNIX) as knock:
                knock.connect(str(self.control))
        except OSError:
            raise BenchError(f"the connection to {self._name()} was lost: the bench's own ssh has ended") from None
        return self._ssh("-o", "ControlMaster=no")

    def _name(self) -> str:
        """For messages of a run, which a bundle keeps: nobody but its laboratory learns the address."""
        return f"candidate {self.connection.name}"

    def _where(self) -> str:
        return f"candidate {self.connection.name} at {self.connection.destination}, port {self.connection.port}"

    def open(self) -> None:
        """Connects. Raises BenchError in ssh's own words when that fails."""
        self.close()
        self.control.parent.mkdir(parents=True, exist_ok=True)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - the master writes into it as long as it lives; close() closes it
        argv = [*UNTIL_PARENT_DIES, *self._ssh("-N", "-o", "ControlMaster=yes", "-o", "ControlPersist=no")]
        self._master = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,
            env=environment_for_children(),
        )
        deadline = time.monotonic() + CONNECT_S_MAX
        while not self.up():
            if self._master.poll() is not None or time.monotonic() > deadline:
                self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - SAID_BYTES_MAX))
                said = self._said.read(SAID_BYTES_MAX).decode("utf-8", "replace") or "no answer"
                self.close()
                raise UnreachableError(f"{self._where()}, cannot be reached by ssh: {' '.join(said.split())}")
            time.sleep(0.05)
        for port, host, to in self._forwards:
            self._forward(port, host, to)

    def up(self) -> bool:
        return self.control.exists() and self._control("check").returncode == 0

    def _control(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Raises BenchError where the master, or the candidate behind it, does not answer."""
        argv = self._ssh("-O", command, *options)
        try:
            return subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=CONNECT_S_MAX,
                check=False,
                env=environment_for_children(),
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"{self._name()} did not answer within {CONNECT_S_MAX:.0f} s (ssh -O {command})") from None

    def ensure(self) -> None:
        """Connects again when the candidate was rebooted; its forwarded ports are the same as before."""
        if not self.up():
            self.open()

    def forward_back(self, host: str, port: int) -> int:
        """Lets the candidate reach host:port of ours on a port of its own loopback, which is returned. Raises BenchError."""
        chosen = self._forward(0, host, port)
        self._forwards.append((chosen, host, port))
        return chosen

    def _forward(self, on_candidate: int, host: str, port: int) -> int:
        done = self._control("forward", "-R", f"127.0.0.1:{on_candidate}:{host}:{port}")
        if done.returncode != 0:
            raise BenchError(f"{self._name()} forwards no port: {done.stderr.strip()} (AllowTcpForwarding of its sshd)")
        return on_candidate or int(done.stdout.strip())

    def run(self, words: Sequence[str], timeout_s: float, shown: Sequence[str]) -> Completed:
        """Runs `words` on the candidate under the supervisor. Raises BenchError on a lost connection or after `timeout_s`."""
        frame = Frame()
        process, lifeline = self._start(frame.around([self.connection.python, "-c", SUPERVISOR, *words]))
        try:
            stdout, stderr = taken(process, timeout_s)
        except EndlessOutputError as error:
            self._end(process, lifeline)
            raise BenchError(f"{program_of(shown)} on {self._name()} was stopped: {error}") from None
        except subprocess.TimeoutExpired:
            self._end(process, lifeline)
            raise BenchError(
                f"{program_of(shown)} did not end within {timeout_s:.0f} s on {self._name()}, and was stopped"
            ) from None
        except BaseException:  # KeyboardInterrupt, or Robot Framework's own signal handler
            self._end(process, lifeline)
            raise
        os.close(lifeline)
        if process.returncode == LOST:
            raise BenchError(
                f"the connection to {self._name()} was lost: {frame.without(stderr).strip() or 'ssh says no more'}"
            )
        return self._completed(frame, shown, process.returncode, stdout, stderr)

    def _completed(self, frame: Frame, shown: Sequence[str], status: int, stdout: str, stderr: str) -> Completed:
        """Returns what the command itself said. Raises BenchError where it succeeded and its answer is not whole."""
        try:
            return Completed(tuple(shown), status, frame.within(stdout), frame.within(stderr))
        except ValueError as error:
            if status != 0:  # its shell could not begin, and says why
                return Completed(tuple(shown), status, "", frame.without(stderr))
            raise BenchError(f"{program_of(shown)} on {self._name()} gave no whole answer: {error}") from None

    def _start(self, remote: str) -> tuple[subprocess.Popen[bytes], int]:
        """The ssh client, and the descriptor that keeps the command alive: the kernel closes it when this process is killed."""
        inner, lifeline = os.pipe()
        try:
            process = self._client(remote, inner)
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(inner)
        return process, lifeline

    def _client(
        self, remote: str, given: int = subprocess.DEVNULL, said: int = subprocess.PIPE
    ) -> subprocess.Popen[bytes]:
        """Starts an ssh client that ends with this process; `given` is its standard input, `said` its standard error."""
        return subprocess.Popen(
            [*UNTIL_PARENT_DIES, *self._through_master(), remote],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env=environment_for_children(),
        )

    @staticmethod
    def _end(process: subprocess.Popen[bytes], lifeline: int) -> None:
        """Closes the lifeline, gives the command time to clean up on the candidate, then ends the client."""
        os.close(lifeline)
        if not dropped(process, GRACE_S + 5):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def fetch(self, before: Sequence[str], path: str, local: Path, what: str) -> None:
        """Stores the candidate's file in the file `local`, which appears whole or not at all; `before`: words that make us root.

        Raises BenchError for what is no plain file, has no room here, or does not come in time."""
        temporary = local.with_name(f".{local.name}.part")
        mark = uuid.uuid4().hex
        process = self._client(shlex.join([*before, "sh", "-c", FETCH, mark, path]))
        answer = Answer(process)
        try:
            size = answer.number_after(mark)
            room = shutil.disk_usage(local.parent).free
            if size > min(FETCH_BYTES_MAX, room):
                raise AnswerError(
                    f"it has {size / 1e9:.1f} GB; {FETCH_BYTES_MAX / 1e9:.1f} GB are the most that is taken, and {local.parent} has "
                    f"room for {room / 1e9:.1f} GB"
                )
            with temporary.open("wb") as file:
                answer.copy(size, file)
            temporary.replace(local)
        except AnswerError as error:
            said = "" if answer.begun else _last_line(process)
            raise BenchError(f"{what} cannot be fetched: {said or error}") from None
        finally:
            temporary.unlink(missing_ok=True)
            _killed(process)

    def feed(self, words: Sequence[str], data: bytes, timeout_s: float = HANG_S_MIN) -> Completed:
        """Runs `words` with `data` as standard input. Raises BenchError on a lost connection or after `timeout_s`."""
        frame = Frame()
        process = self._client(frame.around(words), subprocess.PIPE)
        try:
            stdout, stderr = taken(process, timeout_s, data)
        except EndlessOutputError as error:
            raise BenchError(f"{words[0]} on {self._name()} was stopped: {error}") from None
        except subprocess.TimeoutExpired:
            raise BenchError(f"{self._name()} did not take {len(data)} bytes within {timeout_s:.0f} s") from None
        finally:
            _killed(process)
        if process.returncode == LOST:
            raise BenchError(
                f"the connection to {self._name()} was lost: {frame.without(stderr).strip() or 'ssh says no more'}"
            )
        return self._completed(frame, words, process.returncode, stdout, stderr)

    def stream(self, words: Sequence[str], local: Path) -> Mirror:
        """Starts `words` and writes its standard output into `local` until the mirror is ended."""
        mark = uuid.uuid4().hex
        process = self._client(shlex.join(["sh", "-c", BEGIN, mark, *words]), said=subprocess.DEVNULL)
        return Mirror(process, mark, local)

    def hold(self, words: Sequence[str]) -> tuple[subprocess.Popen[bytes], str]:
        """Starts `words`, which live until their standard input closes, and returns the process with the first line that it says.

        The kernel closes that input when this process is killed."""
        mark = uuid.uuid4().hex
        holder = subprocess.Popen(
            [*self._through_master(), shlex.join(["sh", "-c", BEGIN, mark, *words])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment_for_children(),
        )
        try:
            answer = Answer(holder, HOLD_S_MAX)
            answer.line_after(mark)
            return holder, answer.line()
        except AnswerError:
            return holder, ""

    def close(self) -> None:
        """Ends the master that this process started; commands that still run over it end with it."""
        if self._master is None:
            return
        if self._master.poll() is None:
            self._master.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._master.wait(5)
        if self._master.poll() is None:
            self._master.kill()
            self._master.wait()
        self._master = None
        self.control.unlink(missing_ok=True)
        if self._said:
            self._said.close()


def _last_line(process: subprocess.Popen[bytes]) -> str:
    """Returns the last words of a process that failed by itself, nothing of one that still runs."""
    try:
        process.wait(1)
        lines = taken(process, 1)[1].strip().splitlines()
    except (subprocess.TimeoutExpired, EndlessOutputError, ValueError):
        return ""
    return lines[-1][:1000] if lines and process.returncode != 0 else ""


def _killed(process: subprocess.Popen[bytes]) -> None:
    """No client of ours outlives its caller; what it ran on the candidate ends with its connection."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
