"""The target of a load: a file in the run's folder, or a whole drive. Every command that writes is started through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.rig.base.shell import Completed, program_of
from daq_bench.rig.candidate.machine import CALL_S_MAX, Machine, answer_of

REFUSED = 2  # daqwriter's exit status when nothing was started
CAUTION = "who has it open for writing is not fully known"  # daqwriter says so and goes on
PURGE_S_MAX = 4 * 3600.0  # NVMe Format of a large drive takes its time


class LoadTarget(ABC):
    """`path` is the target that tools are given; `daqwriter_options` are the options that daqwriter needs besides it."""

    machine: Machine
    path: Path

    @property
    def daqwriter_options(self) -> tuple[str, ...]:
        return ()

    def guarded(self, argv: Sequence[str | Path]) -> list[str]:
        """The whole command line for a command that writes to `path`."""
        return list(map(str, argv))

    @abstractmethod
    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        """Runs a command that writes to `path`. Raises BenchError when it cannot start, RefusedError when it must not."""

    @abstractmethod
    def remove(self) -> None:
        """Removes the file that a measurement wrote, if there is one."""


@dataclass(frozen=True)
class FileTarget(LoadTarget):
    """A file in the run's own folder on the target."""

    machine: Machine
    path: Path

    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        return self.machine.run(argv, timeout_s)

    def remove(self) -> None:
        self.machine.remove(self.path)


def guarded(daqwriter: str | Path, serial: str, destroy: bool, path: str | Path) -> list[str]:
    """The words before a command that may write to a whole drive."""
    consent = [f"--allow-serial={serial}", *([f"--destroy={serial}"] if destroy else [])]
    return [str(daqwriter), "guard", f"--target={path}", *consent, "--"]


@dataclass(frozen=True)
class RawDevice(LoadTarget):
    """A whole drive, named by its serial. Every command on it is started by `daqwriter guard`, whose claim lasts as long as the command."""

    machine: Machine
    serial: str
    path: Path
    destroy: bool
    daqwriter: Path

    @property
    def daqwriter_options(self) -> tuple[str, ...]:
        allow = f"--allow-serial={self.serial}"
        return (allow, f"--destroy={self.serial}") if self.destroy else (allow,)

    def size_bytes(self, run: Callable[[Sequence[str | Path], float], Completed] | None = None) -> int:
        """Returns the capacity that the drive reports, once the guard let it pass. Raises RefusedError."""
        said = self._guarded(["blockdev", "--getsize64", self.path], CALL_S_MAX, run or self.machine.run)
        return int(said.check("blockdev").stdout)

    def guarded(self, argv: Sequence[str | Path]) -> list[str]:
        return [*guarded(self.daqwriter, self.serial, self.destroy, self.path), *map(str, argv)]

    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        completed = self._guarded(argv, timeout_s, self.machine.run)
        return Completed(tuple(map(str, argv)), completed.returncode, completed.stdout, completed.stderr)

    def purge(self, method: str) -> dict[str, Any]:
        """Empties the whole drive by `discard` or `format`: {tool, size_bytes, zero_share, samples}."""
        return self._program("purge", method, timeout_s=PURGE_S_MAX)

    def release(self) -> dict[str, Any]:
        """Gives the drive back without a signature that could be taken for a file system or an array."""
        return self._program("release")

    def remove(self) -> None:
        """Does nothing: data on a raw drive has no name; `release` clears it at the end of the run."""

    def _guarded(
        self,
        argv: Sequence[str | Path],
        timeout_s: float,
        run: Callable[[Sequence[str | Path], float], Completed],
    ) -> Completed:
        """Raises RefusedError when the guard did not start `argv`: the guard then says so and exits with its own status."""
        done = run(self.guarded(argv), timeout_s)
        refusals = [one for one in done.stderr.splitlines() if one.startswith("daqwriter: ") and CAUTION not in one]
        if done.returncode == REFUSED and refusals:
            raise RefusedError(f"{program_of(argv)} was not started: {refusals[-1]}")
        return done

    def _program(self, command: str, *more: str, timeout_s: float = CALL_S_MAX) -> dict[str, Any]:
        words = self.machine.program("raw_device", command, self.serial, self.path, *more)
        found: dict[str, Any] = answer_of("raw_device", self._guarded(words, timeout_s, self.machine.run))
        return found
