"""The places in which a workload's tools run and leave their output: on the target, on the candidate, in the bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError, in_words
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.documents.struct import Kind, as_document, read
from daq_bench.bench_model.documents.tools.checksum import Checksum
from daq_bench.bench_model.documents.tools.daqwriter import RAW_DEVICE, Verify, is_of_drive
from daq_bench.bench_model.documents.tools.minidaq import Minidaq, MinidaqSearch
from daq_bench.bench_model.documents.tools.streams import Streams, VerifyStreams
from daq_bench.bench_model.documents.tools.synthetic import Read, Write
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.load_target import FileTarget, LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.target_failure import TargetFailedError

# daqwriter's exit statuses (native-writer/README.md)
COMPLETE, FAILED, DAMAGED, INTERRUPTED = 0, 1, 3, 130
SAID = {COMPLETE: ("complete", "intact"), FAILED: ("failed",), DAMAGED: ("damaged",)}  # by exit status
SECTOR_BYTES = 512  # unit of the counters in /sys/block/*/stat, whatever the device's block size
READ_SECTORS, WRITTEN_SECTORS, DISCARDED_SECTORS = 2, 6, 13  # their places there
Said = TypeVar("Said", bound=Checksum | Minidaq | MinidaqSearch | Read | Streams | Verify | VerifyStreams | Write)


@dataclass(frozen=True)
class Site:
    """`scratch`: on the target. `work`: the tools' output on the candidate. `raw`: the same in the bundle. `device`: kernel
    name of the drive or array under `scratch`, None where no single one is. `drive`: the target, where it is a whole drive: every file of
    a workload is then the drive from its begin on."""

    machine: Machine
    daqwriter: Path
    scratch: Path
    work: Path
    raw: Path
    device: str | None
    drive: RawDevice | None = None

    @staticmethod
    def of(context: RunContext) -> Site:
        found = context.load_target("")
        drive = found if isinstance(found, RawDevice) else None
        scratch = found.path.parent if drive else context.scratch
        return Site(context.machine, context.daqwriter, scratch, context.places.raw, context.raw, context.device, drive)

    @cached_property
    def jobs(self) -> JobFiles:
        """fio's job files."""
        return JobFiles(self.machine, self.work, self.raw)

    def target(self, name: str) -> LoadTarget:
        """Returns the path that a load writes to which calls its file `name`."""
        return self.drive or FileTarget(self.machine, self.scratch / name)

    def daqwriter_target(self, name: str) -> list[str]:
        """The same as options of daqwriter."""
        target = self.target(name)
        return [f"--target={target.path}", *target.daqwriter_options]

    def run_daqwriter(
        self,
        command: str,
        options: Sequence[str],
        name: str,
        kind: type[Said],
        timeout_s: float,
        accepted: Sequence[int] = (COMPLETE, FAILED),
    ) -> Said:
        """daqwriter's answer, whose document is brought into the bundle as `name`.json.

        An answer with status "failed" is returned, one of damage where `accepted` has DAMAGED. Raises TargetFailedError where it was the
        target that failed, BenchError when daqwriter refused or left no document."""
        argv = [str(self.daqwriter), command, *options, f"--json={self.work / name}.json"]
        what = f"daqwriter {command}"
        completed = self.machine.run(argv, timeout_s=timeout_s)
        said = daqwriter_answer(self.machine, completed, what, self.work, self.raw, name, kind, accepted)
        if is_of_drive(document := as_document(said)):
            raw_drive = document.get("parameters", {}).get("target_kind") == RAW_DEVICE
            raise TargetFailedError("daqwriter", f"{what} ({name})", document["errno"], raw_drive, str(said.error))
        return said

    def device_written_bytes(self, since: int | None = 0) -> int | None:
        """Bytes that the device has written by its own counter, since boot or `since` it stood so; None where no single device is
        beneath."""
        return counted_bytes(self.machine, self.device, WRITTEN_SECTORS, since)

    def device_read_bytes(self, since: int | None = 0) -> int | None:
        """The same of bytes that it has read."""
        return counted_bytes(self.machine, self.device, READ_SECTORS, since)

    @contextmanager
    def removed_afterwards(self, *names: str) -> Iterator[None]:
        """Removes these files of the target, however the block ends. A raw drive has none."""
        try:
            yield
        finally:
            for name in names:
                self.target(name).remove()


def minidaq_options(own: Mapping[str, Any], scale: float) -> list[str]:
    """daqwriter's options for the links of a load and for their writer, by the parameters of a workload."""
    return [
        f"--links={own['links']}",
        f"--superchunk-bytes={own['superchunk_bytes']}",
        f"--superchunk-rate={own['superchunk_rate_hz']:.9g}",
        f"--scale={scale:.9g}",
        f"--ring-size={own['ring_size']}",
        f"--block-size={own['block_size']}",
        f"--io-depth={own['io_depth']}",
        f"--checksum={own['checksum']}",
    ]


def counted_bytes(machine: Machine, device: str | None, field: int, since: int | None = 0) -> int | None:
    if device is None or since is None:
        return None
    counters = [int(text) for text in machine.read_text(Path(f"/sys/block/{device}/stat")).split()]
    if device.startswith("nvme") and not (counters[READ_SECTORS] or counters[WRITTEN_SECTORS]):
        # Some kernels count a multipath drive at the paths alone.
        counters = machine.call("disk_counters", device)
    return counters[field] * SECTOR_BYTES - since


def left(
    machine: Machine, completed: Completed | None, what: str, work: Path, raw: Path, name: str, kind: type[Kind]
) -> Kind:
    """A tool's `work`/`name`.json, brought into `raw` as it is, and read as its type. Raises BenchError, with the tool's own words where
    `completed` has any."""
    file = raw / f"{name}.json"
    try:
        machine.fetch(work / f"{name}.json", file)
        document = strict(file.read_text(encoding="utf-8"))
    except (BenchError, OSError, ValueError) as error:
        if completed:
            completed.check(what)
        raise BenchError(f"{what} left no readable result in {file}: {in_words(error)}") from None
    return read(document, kind, str(file))


def daqwriter_answer(
    machine: Machine,
    completed: Completed,
    what: str,
    work: Path,
    raw: Path,
    name: str,
    kind: type[Said],
    accepted: Sequence[int] = (COMPLETE, FAILED),
) -> Said:
    """The same for daqwriter, whose exit status says too how it ended. `what` names the command in errors."""
    if completed.returncode == INTERRUPTED:
        raise InterruptedRunError(f"{what} was interrupted")
    if completed.returncode not in accepted:
        completed.check(what)
        raise BenchError(f"{what} ended with unexpected exit status {completed.returncode}")
    return agreeing(left(machine, completed, what, work, raw, name, kind), completed)


def agreeing(said: Said, completed: Completed) -> Said:
    """daqwriter's answer, or BenchError where its status is another than daqwriter's exit says: neither can be trusted then."""
    if said.status not in SAID.get(completed.returncode, ()):
        raise BenchError(
            f"daqwriter {said.command} ended with exit status {completed.returncode}, but its document says {said.status!r} "
            f"(error: {said.error or 'none'}). Its result is not used. It printed: {completed.stderr.strip()[-300:] or 'nothing'}"
        )
    return said


def unless_failed(said: Said, what: str) -> Said:
    """The answer, or BenchError with daqwriter's own words where a scan cannot go on without it."""
    if said.status != "complete":
        raise BenchError(f"{what} ended as {said.status}: {said.error or 'no reason given'}")
    return said
