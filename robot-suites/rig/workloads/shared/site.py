"""The folders in which a workload's tools run and leave their output: on the target, on the candidate, in the bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError, InterruptedRunError, in_words
from bench_model.bundle.files import strict
from bench_model.documents.struct import Kind, read
from rig.base.shell import Completed
from rig.candidate.context import RunContext
from rig.candidate.machine import Machine

# daqwriter's exit statuses (native-writer/README.md)
COMPLETE, FAILED, DAMAGED, INTERRUPTED = 0, 1, 3, 130
SAID = {COMPLETE: ("complete", "intact"), FAILED: ("failed",), DAMAGED: ("damaged",)}  # by exit status
SECTOR_BYTES = 512  # unit of the counters in /sys/block/*/stat, whatever the device's block size


@dataclass(frozen=True)
class Site:
    """`scratch`: on the target. `work`: the tools' output on the candidate. `raw`: the same in the bundle. `device`: kernel
    name of the drive or array under `scratch`, None where no single one is."""

    machine: Machine
    daqwriter: Path
    scratch: Path
    work: Path
    raw: Path
    device: str | None

    @staticmethod
    def of(context: RunContext) -> Site:
        return Site(
            context.machine, context.daqwriter, context.scratch, context.places.raw, context.raw, context.device
        )

    def run_daqwriter(
        self,
        command: str,
        options: Sequence[str],
        name: str,
        kind: type[Kind],
        timeout_s: float,
        accepted: Sequence[int] = (COMPLETE, FAILED),
    ) -> dict[str, Any]:
        """daqwriter's result document, checked and brought into the bundle as `name`.json.

        A document with status "failed" is returned (an I/O error of the drive is evidence about the candidate), one of damage where
        `accepted` has DAMAGED; BenchError is raised when daqwriter refused or left no document."""
        argv = [str(self.daqwriter), command, *options, f"--json={self.work / name}.json"]
        completed = self.machine.run(argv, timeout_s=timeout_s)
        return daqwriter_document(
            self.machine, completed, f"daqwriter {command}", self.work, self.raw, name, kind, accepted
        )

    def device_written_bytes(self) -> int | None:
        """Bytes that the device has written since boot, by its own counter; None where no single device is beneath."""
        if self.device is None:
            return None
        fields = self.machine.read_text(Path(f"/sys/block/{self.device}/stat")).split()
        return int(fields[6]) * SECTOR_BYTES

    @contextmanager
    def removed_afterwards(self, *names: str) -> Iterator[None]:
        """Removes these files of the target, however the block ends."""
        try:
            yield
        finally:
            for name in names:
                self.machine.remove(self.scratch / name)


def left_document(
    machine: Machine, completed: Completed | None, what: str, work: Path, raw: Path, name: str, kind: type[Kind]
) -> dict[str, Any]:
    """Returns a tool's `work`/`name`.json, brought into `raw` and checked. Raises BenchError, with the tool's own words where
    `completed` has any."""
    document: dict[str, Any] = _brought(machine, completed, what, work, raw, name)
    read(document, kind, str(raw / f"{name}.json"))
    return document


def left(
    machine: Machine, completed: Completed | None, what: str, work: Path, raw: Path, name: str, kind: type[Kind]
) -> Kind:
    """The same as its type."""
    return read(_brought(machine, completed, what, work, raw, name), kind, str(raw / f"{name}.json"))


def _brought(machine: Machine, completed: Completed | None, what: str, work: Path, raw: Path, name: str) -> Any:
    file = raw / f"{name}.json"
    try:
        machine.fetch(work / f"{name}.json", file)
        return strict(file.read_text(encoding="utf-8"))
    except (BenchError, OSError, ValueError) as error:
        if completed:
            completed.check(what)
        raise BenchError(f"{what} left no readable result in {file}: {in_words(error)}") from None


def daqwriter_document(
    machine: Machine,
    completed: Completed,
    what: str,
    work: Path,
    raw: Path,
    name: str,
    kind: type[Kind],
    accepted: Sequence[int] = (COMPLETE, FAILED),
) -> dict[str, Any]:
    """The same for daqwriter, whose exit status says too how it ended. `what` names the command in errors."""
    if completed.returncode == INTERRUPTED:
        raise InterruptedRunError(f"{what} was interrupted")
    if completed.returncode not in accepted:
        completed.check(what)
        raise BenchError(f"{what} ended with unexpected exit status {completed.returncode}")
    return agreeing(left_document(machine, completed, what, work, raw, name, kind), completed)


def agreeing(document: dict[str, Any], completed: Completed) -> dict[str, Any]:
    """daqwriter's document, or BenchError where its status is another than daqwriter's exit says: neither can be trusted then."""
    if document["status"] not in SAID.get(completed.returncode, ()):
        raise BenchError(
            f"daqwriter {document['command']} ended with exit status {completed.returncode}, but its document says {document['status']!r} "
            f"(error: {document['error'] or 'none'}). Its result is not used. It printed: {completed.stderr.strip()[-300:] or 'nothing'}"
        )
    return document


def unless_failed(document: dict[str, Any], what: str) -> dict[str, Any]:
    """The document, or BenchError with daqwriter's own words where a scan cannot go on without it."""
    if document["status"] != "complete":
        raise BenchError(f"{what} ended as {document['status']}: {document['error'] or 'no reason given'}")
    return document
