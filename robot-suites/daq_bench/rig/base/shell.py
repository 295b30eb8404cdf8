"""Runs commands on a candidate. A command never outlives its caller: on any exception its process group is ended."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.output import EndlessOutputError, taken

# A bench that is killed (SIGKILL, out of memory) takes its load with it: the kernel sends SIGTERM to what it started.
UNTIL_PARENT_DIES = ("setpriv", "--pdeathsig", "TERM", "--")
GRACE_S = 15.0  # daqwriter drains for at most 5 s after SIGINT; the rest is margin for a slow disk

# A limit only ends a command that hangs; it is no judgement. The shortest question (`fio --version`) takes half a minute on a machine whose
# disks and processors are under the load that the bench puts on them, or that is emulated.
HANG_S_MIN = 300.0

# The variables of our environment that a child may see. All others are meant for other programs: above all secrets, by any name.
PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "VIRTUAL_ENV",
    "SSH_AUTH_SOCK",
    "KRB5CCNAME",
)
PASSED_PREFIXES = ("LC_", "PYTHON", "XDG_", "LD_", "ASAN_", "LSAN_", "TSAN_", "UBSAN_", "COVERAGE_", "DAQ_BENCH_")
SECRET_WORDS = ("TOKEN", "PASSWORD", "SECRET")


def environment_for_children(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables that any program needs to run; the caller adds those of its own program."""
    return {
        name: value
        for name, value in environment.items()
        if (name in PASSED or name.startswith(PASSED_PREFIXES))
        and not any(word in name.upper() for word in SECRET_WORDS)
    }


def program_of(words: Sequence[str | Path]) -> str:
    """The program that a command line starts, for messages: behind `env` and its variables."""
    named = [str(word) for word in words if "=" not in str(word)] if str(words[0]) == "env" else [""]
    return named[1] if len(named) > 1 else str(words[0])


@dataclass(frozen=True)
class Completed:
    """Describes how a command ended; `stdout` and `stderr` are whole."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    def check(self, what: str) -> Completed:
        """Returns self, or raises BenchError that names the command, its exit status and the end of its output."""
        if self.returncode != 0:
            said = (self.stderr.strip() or self.stdout.strip() or "it printed nothing")[-2000:]
            raise BenchError(
                f"{what} failed with exit status {self.returncode}: {said}\nCommand: {shlex.join(self.argv)}"
            )
        return self


class Shell(Protocol):
    """Runs a workload's commands: on this machine, or on a candidate over SSH behind the same protocol."""

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        """Runs `argv` to its end. Raises BenchError when it cannot start or exceeds `timeout_s`."""


class LocalShell:
    """Commands on this machine, each in a session of its own so that the whole group can be ended, and without our secrets."""

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = tuple(str(word) for word in argv)
        program = program_of(words)
        if shutil.which(program) is None:
            raise BenchError(f"{program} is not there, or cannot be run. `make setup` installs what the bench needs")
        try:
            process = subprocess.Popen(
                (*UNTIL_PARENT_DIES, *words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                env={**environment_for_children(), **(env or {})},
            )
        except OSError as error:
            raise BenchError(f"{program} cannot be started: {error.strerror}") from None
        try:
            stdout, stderr = taken(process, timeout_s)
        except EndlessOutputError as error:
            end_group(process)
            raise BenchError(f"{program} was stopped: {error}. Command: {shlex.join(words)[:500]}") from None
        except subprocess.TimeoutExpired:
            end_group(process)
            raise BenchError(
                f"{program} did not end within {timeout_s:.0f} s and was stopped: {shlex.join(words)}"
            ) from None
        except (
            BaseException
        ):  # KeyboardInterrupt, or Robot Framework's own signal handler: end the child, then go on up
            end_group(process)
            raise
        return Completed(words, process.returncode, stdout, stderr)


def end_group(process: subprocess.Popen[bytes] | subprocess.Popen[str], grace_s: float = GRACE_S) -> None:
    """Asks the process group to end (SIGINT: tools clean up), then kills the rest of it after `grace_s`."""
    for number, wait_s in ((signal.SIGINT, grace_s), (signal.SIGTERM, 2.0)):
        if process.poll() is None and _signal_group(process.pid, number):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(wait_s)
    # Also when the leader has gone: its children may ignore SIGINT, as a shell's background jobs do.
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: int) -> bool:
    """Returns False when no process of the group is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
