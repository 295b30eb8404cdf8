"""Processes beside a measurement: started with the bench and ended with it; their CPU time and memory by the kernel.

CPU time is user + system of all threads, in the kernel's ticks (10 ms): over 30 s that resolves 0.03 % of a core."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import KIB
from daq_bench.rig.base.shell import UNTIL_PARENT_DIES, end_group

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


@dataclass(frozen=True)
class CpuTime:
    """Seconds of CPU time: a process' own, and that of children that it has waited for."""

    own_s: float
    children_s: float

    def since(self, earlier: CpuTime) -> CpuTime:
        return CpuTime(self.own_s - earlier.own_s, self.children_s - earlier.children_s)


def parse_cpu_time(stat: str) -> CpuTime:
    """From /proc/PID/stat; its second column, the name in brackets, may hold anything."""
    columns = stat.rpartition(")")[2].split()
    user, system, children_user, children_system = (int(column) for column in columns[11:15])
    return CpuTime((user + system) / TICKS_PER_S, (children_user + children_system) / TICKS_PER_S)


def parse_memory(status: str, name: str) -> int:
    """A line of /proc/PID/status in kB, such as VmHWM (the peak) or VmRSS (now), bytes."""
    for line in status.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * KIB
    raise BenchError(f"/proc/PID/status has no line {name}: the process has ended")


def parse_busy(stat: str) -> tuple[int, int]:
    """From /proc/stat: ticks in which the CPUs did something, and all ticks. Waiting for a drive is idle; stolen time is busy."""
    user, nice, system, idle, iowait, irq, softirq, steal = (
        int(column) for column in stat.split("\n", 1)[0].split()[1:9]
    )
    busy = user + nice + system + irq + softirq + steal
    return busy, busy + idle + iowait


def cpu_time(pid: int) -> CpuTime:
    return parse_cpu_time(_read(pid, "stat"))


def peak_memory(pid: int) -> int:
    return parse_memory(_read(pid, "status"), "VmHWM")


def present_memory(pid: int) -> int:
    return parse_memory(_read(pid, "status"), "VmRSS")


def _read(pid: int, name: str) -> str:
    try:
        return (PROC / str(pid) / name).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BenchError(f"process {pid} ended while it was measured: {error.strerror}") from None


class Busy:
    """Measures how busy all CPUs of this machine are since the object was made."""

    def __init__(self) -> None:
        self._busy, self._all = self._now()

    @staticmethod
    def _now() -> tuple[int, int]:
        return parse_busy((PROC / "stat").read_text(encoding="ascii"))

    def share(self) -> float:
        """0 to 1, of all CPUs."""
        busy, total = self._now()
        return (busy - self._busy) / max(1, total - self._all)


@dataclass
class Running:
    """A process under way, in a session of its own; `output` is a pipe from it, its errors go to `log`."""

    process: subprocess.Popen[str]
    argv: tuple[str, ...]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def require(self) -> None:
        """Raises BenchError when the process has ended before it should."""
        status = self.process.poll()
        if status is not None:
            self.fail(f"ended with exit status {status}")

    def fail(self, what: str) -> None:
        said = self.log.read_text(encoding="utf-8", errors="replace").strip()[-1000:] or "it printed nothing"
        raise BenchError(f"{what}: {said}\nCommand: {shlex.join(self.argv)}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def finish(self, timeout_s: float) -> str:
        """Waits for its end and returns the rest of what it printed; BenchError unless it ended with 0."""
        try:
            text, _ = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"did not end within {timeout_s:.0f} s\nCommand: {shlex.join(self.argv)}") from None
        if self.process.returncode:
            self.fail(f"ended with exit status {self.process.returncode}")
        return text


@contextmanager
def running(
    argv: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None, grace_s: float = 10.0
) -> Iterator[Running]:
    """Starts `argv`; on leaving, whatever still runs of it is ended."""
    words = tuple(str(word) for word in argv)
    with log.open("w", encoding="utf-8") as errors:
        try:
            process = subprocess.Popen(
                (*UNTIL_PARENT_DIES, *words),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env={**os.environ, **(env or {})},
            )
        except OSError as error:
            raise BenchError(f"{words[0]} cannot be started: {error.strerror}") from None
    try:
        yield Running(process, words, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)  # a stopped process would not see what follows
        end_group(process, grace_s)
        if process.stdout:
            process.stdout.close()
