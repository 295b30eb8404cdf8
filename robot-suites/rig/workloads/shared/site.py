"""Where a workload's tools run and leave their output: one folder on the target, one on the candidate, one in the bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError, InterruptedRunError
from bench_model.profiles.yaml_source import check_document
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
        schema: str,
        timeout_s: float,
        accepted: Sequence[int] = (COMPLETE, FAILED),
    ) -> dict[str, Any]:
        """daqwriter's result document, checked and brought into the bundle as `name`.json.

        A document with status "failed" is returned (an I/O error of the drive is evidence about the candidate), one of damage where
        `accepted` has DAMAGED; BenchError is raised when daqwriter refused or left no document."""
        argv = [str(self.daqwriter), command, *options, f"--json={self.work / name}.json"]
        completed = self.machine.run(argv, timeout_s=timeout_s)
        if completed.returncode == INTERRUPTED:
            raise InterruptedRunError(f"daqwriter {command} was interrupted")
        if completed.returncode not in accepted:
            completed.check(f"daqwriter {command}")
            raise BenchError(f"daqwriter {command} ended with unexpected exit status {completed.returncode}")
        return self._document(completed, name, schema)

    def _document(self, completed: Completed, name: str, schema: str) -> dict[str, Any]:
        file = self.raw / f"{name}.json"
        try:
            self.machine.fetch(self.work / f"{name}.json", file)
            document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except (BenchError, OSError, ValueError) as error:
            completed.check("daqwriter")
            raise BenchError(f"daqwriter left no readable result in {file}: {error}") from None
        check_document(document, schema, str(file))
        return agreeing(document, completed)

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
