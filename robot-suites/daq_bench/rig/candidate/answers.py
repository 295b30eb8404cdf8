"""Answers of a candidate: framed, so that a chatty login shell spoils none, and bounded in size and time: it may be broken or hostile."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from daq_bench.rig.base.output import PIPE_BYTES

# Before and behind the command's own words stands a mark that its login shell cannot know.
AROUND = 'printf %s "$0"; printf %s "$0" >&2; "$@"; s=$?; printf %s "$0"; printf %s "$0" >&2; exit $s'
BEGIN = 'printf "%s\\n" "$0"; exec "$@"'
# The size comes first, and no more is sent: our tools' files are no pipes, devices or links.
FETCH = (
    'if [ -h "$1" ] || [ ! -f "$1" ]; then printf "%s%s\\n" "$0" "it is not there, or no plain file"; exit 1; fi; '
    'size=$(stat -c %s -- "$1") && printf "%s%s\\n" "$0" "$size" && exec head -c "$size" -- "$1"'
)
FETCH_BYTES_MAX = 9 * 2**30  # the agent's points.lp has up to 8 GiB
LINE_BYTES_MAX = 2**16
SILENCE_S_MAX = 60.0  # a slow candidate under load; the link itself is watched by keepalives
SLOWEST_BYTES_PER_S = 1e6
END_S_MAX = 5.0
FOREVER_S = 1e6  # nothing new may be printed for a long time


class AnswerError(Exception):
    """An answer does not come, or is not what was asked for."""


class Frame:
    """The marks around one command's words."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex

    def around(self, words: Sequence[str]) -> str:
        """The command line for the candidate's login shell."""
        return shlex.join(["sh", "-c", AROUND, self._mark, *words])

    def within(self, text: str) -> str:
        """Returns what the command itself printed. Raises ValueError where a mark is missing."""
        parts = text.split(self._mark)
        if len(parts) != 3:
            raise ValueError(f"it has {len(parts) - 1} of the 2 marks around it")
        return parts[1]

    def without(self, text: str) -> str:
        """The text of a command that did not come to its end."""
        return text.replace(self._mark, "")


class Answer:
    """A process's output, read piece by piece."""

    def __init__(self, process: subprocess.Popen[bytes], silence_s: float | None = None) -> None:
        assert process.stdout is not None
        self._handle = process.stdout.fileno()
        self._silence_s = SILENCE_S_MAX if silence_s is None else silence_s
        self._kept = b""
        self.begun = False  # what comes is the command's own, no login shell's

    def line_after(self, mark: str) -> str:
        """Returns the rest of the line behind `mark`; drops what came before. Raises AnswerError."""
        deadline = time.monotonic() + self._silence_s
        while mark.encode() not in self._kept:
            self._more(deadline)
        self._kept = self._kept.partition(mark.encode())[2]
        self.begun = True
        return self.line()

    def line(self) -> str:
        """Raises AnswerError for a line that does not end."""
        deadline = time.monotonic() + self._silence_s
        while b"\n" not in self._kept:
            self._more(deadline)
        found, _, self._kept = self._kept.partition(b"\n")
        return found.decode("utf-8", "replace")

    def number_after(self, mark: str) -> int:
        """Returns the number that the line behind `mark` is. Raises AnswerError, in the line's words, for any other line."""
        said = self.line_after(mark)
        if not (said.isascii() and said.isdigit() and len(said) < 20):
            raise AnswerError(said[:200] or "it has no size")
        return int(said)

    def some(self, size: int) -> bytes:
        """Returns what comes next, at most `size` bytes. Raises AnswerError at the end."""
        found, self._kept = self._kept[:size], self._kept[size:]
        return found or self._read(time.monotonic() + self._silence_s, min(size, PIPE_BYTES))

    def copy(self, size: int, file: BinaryIO) -> None:
        """Writes the next `size` bytes. Raises AnswerError when they do not come."""
        deadline = time.monotonic() + self._silence_s + size / SLOWEST_BYTES_PER_S
        left = size - file.write(self._kept[:size])
        while left:
            part = self._read(min(deadline, time.monotonic() + self._silence_s), min(left, 2**20))
            left -= file.write(part)

    def _more(self, deadline: float) -> None:
        if len(self._kept) > LINE_BYTES_MAX:
            raise AnswerError(f"the answer does not begin within {LINE_BYTES_MAX} B")
        self._kept += self._read(deadline, PIPE_BYTES)

    def _read(self, deadline: float, size: int) -> bytes:
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise AnswerError("it did not answer in time")
        part = os.read(self._handle, size)
        if not part:
            raise AnswerError("the answer ended too early")
        return part


class Mirror:
    """Writes what a process prints behind `mark` into a file, until it is ended or has printed more than a file of ours can have."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str, local: Path) -> None:
        self._process = process
        local.write_bytes(b"")
        self._thread = threading.Thread(target=self._copy, args=(mark, local), name="mirror", daemon=True)
        self._thread.start()

    def _copy(self, mark: str, local: Path) -> None:
        left = FETCH_BYTES_MAX
        answer = Answer(self._process, FOREVER_S)
        try:
            answer.line_after(mark)
            with local.open("ab", buffering=0) as file:
                while left > 0:
                    left -= file.write(answer.some(left))
        except (AnswerError, OSError):  # it was ended, or the bundle's disk is full, which ends the run elsewhere
            pass
        finally:
            self._process.kill()

    def wait(self) -> None:
        """Returns when no more is written."""
        self._thread.join()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()
        if self._process.stdout:
            self._process.stdout.close()
