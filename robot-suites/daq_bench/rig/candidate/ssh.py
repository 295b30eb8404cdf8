"""The SSH link to a candidate: one master connection that OpenSSH multiplexes. Commands end with the bench, however it ends.

Only OpenSSH's own client is used, with the options of the inventory: host keys are checked, and passwords are never asked for."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.shell import GRACE_S, HANG_S_MIN, UNTIL_PARENT_DIES, Completed, environment_for_children
from daq_bench.rig.candidate.connection import Connection

CONNECT_S_MAX = 30.0
HOLD_S_MAX = 60.0  # Python's start on a slow candidate
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
            raise BenchError(f"the connection to {self._where()}, was lost: the bench's own ssh has ended") from None
        return self._ssh("-o", "ControlMaster=no")

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
                self._said.seek(0)
                said = self._said.read().decode("utf-8", "replace").strip() or "no answer"
                self.close()
                raise UnreachableError(f"{self._where()}, cannot be reached by ssh: {said}")
            time.sleep(0.05)
        for port, host, to in self._forwards:
            self._forward(port, host, to)

    def up(self) -> bool:
        return self.control.exists() and self._control("check").returncode == 0

    def _control(self, command: str, *options: str) -> subprocess.CompletedProcess[str]:
        argv = self._ssh("-O", command, *options)
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CONNECT_S_MAX,
            check=False,
            env=environment_for_children(),
        )

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
            raise BenchError(
                f"{self._where()}, forwards no port: {done.stderr.strip()} (AllowTcpForwarding of its sshd)"
            )
        return on_candidate or int(done.stdout.strip())

    def run(self, words: Sequence[str], timeout_s: float, shown: Sequence[str]) -> Completed:
        """Runs `words` on the candidate under the supervisor. Raises BenchError on a lost connection or after `timeout_s`."""
        remote = shlex.join([self.connection.python, "-c", SUPERVISOR, *words])
        process, lifeline = self._start(remote)
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._end(process, lifeline)
            raise BenchError(
                f"{shown[0]} did not end within {timeout_s:.0f} s on {self._where()}, and was stopped"
            ) from None
        except BaseException:  # KeyboardInterrupt, or Robot Framework's own signal handler
            self._end(process, lifeline)
            raise
        os.close(lifeline)
        if process.returncode == LOST:
            raise BenchError(f"the connection to {self._where()}, was lost: {stderr.strip() or 'ssh says no more'}")
        return Completed(tuple(shown), process.returncode, stdout, stderr)

    def _start(self, remote: str) -> tuple[subprocess.Popen[str], int]:
        """The ssh client, and the descriptor that keeps the command alive: the kernel closes it when this process is killed."""
        inner, lifeline = os.pipe()
        try:
            process = subprocess.Popen(
                [*UNTIL_PARENT_DIES, *self._through_master(), remote],
                stdin=inner,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                env=environment_for_children(),
            )
        except BaseException:
            os.close(lifeline)
            raise
        finally:
            os.close(inner)
        return process, lifeline

    @staticmethod
    def _end(process: subprocess.Popen[str], lifeline: int) -> None:
        """Closes the lifeline, gives the command time to clean up on the candidate, then ends the client."""
        os.close(lifeline)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=GRACE_S + 5)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def fetch(self, words: Sequence[str], local: Path, what: str) -> None:
        """Stores the standard output of `words` in the file `local`, which appears whole or not at all."""
        temporary = local.with_name(f".{local.name}.part")
        try:
            with temporary.open("wb") as file:
                argv = [*self._through_master(), shlex.join(words)]
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.PIPE,
                    check=False,
                    env=environment_for_children(),
                )
            if done.returncode != 0:
                raise BenchError(f"{what} cannot be fetched: {done.stderr.decode('utf-8', 'replace').strip()}")
            temporary.replace(local)
        finally:
            temporary.unlink(missing_ok=True)

    def feed(self, words: Sequence[str], data: bytes, timeout_s: float = HANG_S_MIN) -> Completed:
        """Runs `words` with `data` as standard input. Raises BenchError on a lost connection or after `timeout_s`."""
        argv = [*self._through_master(), shlex.join(words)]
        try:
            done = subprocess.run(
                argv, input=data, capture_output=True, timeout=timeout_s, check=False, env=environment_for_children()
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"{self._where()}, did not take {len(data)} bytes within {timeout_s:.0f} s") from None
        stdout, stderr = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
        if done.returncode == LOST:
            raise BenchError(f"the connection to {self._where()}, was lost: {stderr.strip() or 'ssh says no more'}")
        return Completed(tuple(words), done.returncode, stdout, stderr)

    def stream(self, words: Sequence[str], local: Path) -> subprocess.Popen[bytes]:
        """Starts `words` and writes its standard output into `local` until the process is ended."""
        argv = [*UNTIL_PARENT_DIES, *self._through_master(), shlex.join(words)]
        with local.open("wb") as file:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=environment_for_children(),
            )

    def hold(self, remote: str) -> tuple[subprocess.Popen[bytes], str]:
        """Starts `remote`, which lives until its standard input closes, and returns it with the first line that it says.

        The kernel closes that input when this process is killed."""
        argv = [*self._through_master(), remote]
        holder = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment_for_children(),
        )
        assert holder.stdout is not None
        readable, _, _ = select.select([holder.stdout], [], [], HOLD_S_MAX)
        return holder, holder.stdout.readline().decode("utf-8", "replace") if readable else ""

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
