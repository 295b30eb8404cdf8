"""Runs the programs that collectors and candidate programs ask (smartctl, nvme, ipmitool, ethtool).

Promise: a call always returns within its limit and about a second. A program that the kernel holds fast (a drive
or BMC that does not answer makes it unkillable) is left behind, never waited for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

KILLED_S_MAX = 1.0
SAID_S_MAX = 240  # ends a hang; the caller's limit is longer
SHOWN_CHARACTERS = 200  # of an answer that is not understood


class Answer(NamedTuple):
    """The output of a program, as bytes, and its exit status."""

    status: int
    output: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Its output as text; what is not UTF-8 is replaced."""
        return self.output.decode("utf-8", "replace")

    @property
    def reason(self) -> str:
        """Its last words, which are the cause of a failure."""
        said = self.errors.decode("utf-8", "replace").strip() or self.text.strip()
        lines = said.splitlines()
        return lines[-1].strip()[:SHOWN_CHARACTERS] if lines else f"exit status {self.status}"


def find_tool(name: str) -> str | None:
    """Its path, also where only root's PATH has it."""
    return shutil.which(
        name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    )


def shown(text: str) -> str:
    """The beginning of an answer, for an error."""
    return repr(text.strip()[:SHOWN_CHARACTERS])


def run_tool(argv: Sequence[str], timeout_s: float, called: str | None = None) -> Answer:
    """Run to the end. Raises TimeoutError, which speaks of the program as `called`.

    The exit status is the caller's business: many tools report a finding and no failure with it."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,  # ipmitool would ask a terminal for a password that is not given
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        stuck = "" if _ended(process) else ", and cannot be ended"
        raise TimeoutError(f"{called or Path(argv[0]).name}: no answer within {timeout_s:g} s{stuck}") from None
    return Answer(process.returncode, output, errors)


def ask(*words: str, timeout_s: float) -> Answer | None:
    """The answer of a tool; None where it is not installed, or gives none in time."""
    program = find_tool(words[0])
    try:
        return run_tool([program, *words[1:]], timeout_s) if program else None
    except TimeoutError:
        return None


def said(*words: str) -> str:
    """A tool's output. Raises OSError where it is not there, and subprocess.SubprocessError where it fails or hangs."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, timeout=SAID_S_MAX).stdout.decode(
        "utf-8", "replace"
    )


def _ended(process: subprocess.Popen[bytes]) -> bool:
    process.kill()
    try:
        process.communicate(timeout=KILLED_S_MAX)
    except subprocess.TimeoutExpired:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return False
    return True
