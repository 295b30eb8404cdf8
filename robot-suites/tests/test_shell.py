"""Commands never outlive their caller, and a failure names the command and what it said."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_helpers import wait_for

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.shell import LocalShell

SHELL = LocalShell()


def runs(pid: int) -> bool:
    """Says whether the process is there, and not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_output_and_status_come_back() -> None:
    done = SHELL.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout_s=10)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(BenchError, match=r"the step failed with exit status 3: err\nCommand: sh -c"):
        done.check("the step")


def test_a_command_that_is_not_there_is_named_with_the_remedy() -> None:
    with pytest.raises(BenchError, match="no-such-tool is not there, or cannot be run"):
        SHELL.run(["no-such-tool"], timeout_s=10)


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(BenchError, match="did not end within 1 s"):
        SHELL.run(["sh", "-c", f"sleep 600 & echo $! > {pid_file}; wait"], timeout_s=1)
    pid = int(pid_file.read_text(encoding="ascii"))
    wait_for(lambda: not runs(pid), "the child's end", 60)


def test_a_command_ends_with_a_bench_that_was_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"from daq_bench.rig.base.shell import LocalShell; LocalShell().run(['sh', '-c', 'echo $$ > {pid_file}; exec sleep 600'], 900)"
    with subprocess.Popen([sys.executable, "-c", script]) as bench:
        deadline = time.monotonic() + 60
        while not (pid_file.exists() and pid_file.read_text(encoding="ascii").strip()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        pid = int(pid_file.read_text(encoding="ascii"))
        assert runs(pid)
        bench.kill()
    deadline = time.monotonic() + 60
    while runs(pid):
        assert time.monotonic() < deadline, "the command outlived the bench that started it"
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A job in the background of a script starts with SIGINT ignored, and so would its children; `qualify` sets it too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_reaches_the_command_so_that_it_can_clean_up(tmp_path: Path) -> None:
    script = f"trap 'touch {tmp_path}/cleaned; exit 0' INT; while :; do sleep 0.05; done"
    interrupt = threading.Timer(0.5, lambda: os.kill(os.getpid(), 2))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        SHELL.run(["bash", "-c", script], timeout_s=30)
    assert (tmp_path / "cleaned").exists()
