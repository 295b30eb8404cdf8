"""What a workload loads: a file in the run's folder, or a whole drive. A command that writes is started through it, never beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.base.errors import RefusedError
from rig.base.shell import Completed
from rig.candidate.machine import Machine
from rig.on_candidate.raw_device import REFUSED

PURGE_S_MAX = 4 * 3600.0  # NVMe Format of a large drive takes its time


class LoadTarget(ABC):
    """`path` is what tools are given as their target; `daqwriter_options` is what daqwriter needs besides it."""

    machine: Machine
    path: Path

    @property
    def daqwriter_options(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        """Runs a command that writes to `path`. Raises BenchError when it cannot start, RefusedError when it must not."""

    @abstractmethod
    def remove(self) -> None:
        """Takes away what a measurement wrote, as far as that has a name."""


@dataclass(frozen=True)
class FileTarget(LoadTarget):
    """A file in the run's own folder on the target."""

    machine: Machine
    path: Path

    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        return self.machine.run(argv, timeout_s)

    def remove(self) -> None:
        self.machine.remove(self.path)


@dataclass(frozen=True)
class RawDevice(LoadTarget):
    """A whole drive, named by its serial. Every command on it begins with the guard (on_candidate/raw_device.py)."""

    machine: Machine
    serial: str
    path: Path
    destroy: bool
    daqwriter: Path | None  # None: not on the candidate yet, so that its interlock cannot be asked

    @property
    def daqwriter_options(self) -> tuple[str, ...]:
        allow = f"--allow-serial={self.serial}"
        return (allow, f"--destroy={self.serial}") if self.destroy else (allow,)

    def check(self) -> dict[str, Any]:
        """{path, size_bytes, signatures} of the drive. Raises BenchError with every objection."""
        return self._call("check")

    def run(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        """The guard, then `argv` in its place, which holds the drive for as long as it runs."""
        completed = self.machine.run(
            self.machine.program("raw_device", *self._arguments("run"), self.path, *argv), timeout_s
        )
        if completed.returncode == REFUSED:
            raise RefusedError(f"{argv[0]} was not started: {completed.stderr.strip()}")
        return Completed(tuple(map(str, argv)), completed.returncode, completed.stdout, completed.stderr)

    def purge(self, method: str) -> dict[str, Any]:
        """Empties the whole drive by `discard` or `format`: {tool, size_bytes, zero_share, samples}."""
        return self._call("purge", method, timeout_s=PURGE_S_MAX)

    def release(self) -> dict[str, Any]:
        """Gives the drive back without a signature that could be taken for anything."""
        return self._call("release")

    def remove(self) -> None:
        """What is on a raw drive has no name; `release` is for the end of the run."""

    def _arguments(self, command: str) -> list[str]:
        return [command, self.serial, "yes" if self.destroy else "no", str(self.daqwriter or "")]

    def _call(self, command: str, *more: str, timeout_s: float = 120.0) -> dict[str, Any]:
        found: dict[str, Any] = self.machine.call("raw_device", *self._arguments(command), *more, timeout_s=timeout_s)
        return found
