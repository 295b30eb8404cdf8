"""Brings the target into a named condition, and says with evidence which one it is.

`fresh`: a raw drive is purged (discard, or NVMe Format); a file's predecessor goes and its file system is trimmed, which is as near
to a purge as a file can come. `preconditioned`: fresh, then 128 KiB sequential writes over the span (SNIA SSS PTS 2.0.2,
workload-independent preconditioning), `written_share` times: 2 by the standard. A span larger than a file may be is written as several
files, which all stay until the last is written. bench_model.workloads.preconditioning says what a span must cover."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.evidence.target_failures import in_words
from daq_bench.bench_model.workloads.preconditioning import FRESH, PASSES, PRECONDITIONED, TRIM, bytes_due
from daq_bench.rig.candidate.load_target import FileTarget, LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.fio import direction, ended_well, jobs_of
from daq_bench.rig.workloads.shared.fio_job import JobFiles, Value
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground, Step
from daq_bench.rig.workloads.shared.site import DISCARDED_SECTORS, WRITTEN_SECTORS, counted_bytes
from daq_bench.rig.workloads.shared.target_failure import UnpurgedError

SPAN_SHARE_MIN = 0.9  # [P] what a file can take of a drive: the file system keeps something for itself
BLOCK_BYTES = 128 * 2**10
# ext4 holds no larger file than 16 TiB. In whole groups of blocks, so that what is due of the files is what is due of the span.
FILE_BYTES_MAX = 8 * 10**12 // (64 * BLOCK_BYTES) * (64 * BLOCK_BYTES)
IO_DEPTH = 32
SLOWEST_BYTES_PER_S = 20e6  # slower than any drive that one would qualify: bounds the wait
TRIM_S_MAX = 1800.0
PURGE_S = 20.0  # expected

Announce = Callable[[str, float], None]  # (text, expected seconds)


@dataclass(frozen=True)
class Conditioner:
    """`span_bytes`: the target's part that the measurement uses. `capacity_bytes`: of the whole drive or array, where it is known.

    `announce` is told the running step. `dedicated`: the drive holds only the bench's file
    system, so that a trim of its free space empties it. `device`: kernel name of the drive or array, None where there is no single one.
    `judged`: somebody else says whether the span suffices."""

    target: LoadTarget
    span_bytes: int
    capacity_bytes: int | None
    purge: str  # discard or format
    jobs: JobFiles
    announce: Announce
    dedicated: bool = False
    device: str | None = None
    written_share: float = PASSES
    judged: bool = False
    used_bytes: int = 0

    def bring_to(self, condition: str, label: str, filled: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """One document of evidence. `label` names fio's output; `filled` is called when all is written and nothing removed. Raises
        BenchError when the condition cannot be reached, UnpurgedError for a raw drive that its purge left with data, unless `judged`."""
        started = self._observed("the time", lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        started = str(started).replace("+00:00", "Z")
        purge = self._purge()
        if isinstance(self.target, RawDevice) and purge["zero_share"] < 1 and not self.judged:
            raise UnpurgedError(label, self.target.serial, self.purge, purge["zero_share"])
        written = self._precondition(label, filled) if condition == PRECONDITIONED else None
        return {
            "condition": condition,
            "label": label,
            "started_utc": started,
            "span_bytes": self.span_bytes,
            "capacity_bytes": self.capacity_bytes,
            "share_of_capacity": self.span_bytes / self.capacity_bytes if self.capacity_bytes else None,
            "purge": purge,
            "preconditioning": written,
            "limits": self._limits(condition, purge),
            "used_bytes": self.used_bytes,
            "remarks": self._remarks(condition, purge),
        }

    def _purge(self) -> dict[str, Any]:
        began = self._clock_s()
        if isinstance(self.target, RawDevice):
            self.announce(f"purging drive {self.target.serial} ({self.purge})", 30.0)
            found = self.target.purge(self.purge)
            text = f"whole drive of {found['size_bytes']} B, {found['tool']}"
            return {
                "method": self.purge,
                "text": text,
                "done": True,
                "zero_share": found["zero_share"],
                "seconds": self._clock_s() - began,
            }
        self.announce("trimming the file system", 10.0)
        self.target.remove()
        done, said = _trim(self.target)
        return {"method": TRIM, "text": said, "done": done, "zero_share": None, "seconds": self._clock_s() - began}

    def _precondition(self, label: str, filled: Callable[[], None]) -> dict[str, Any]:
        began, before = self._clock_s(), self._counted(WRITTEN_SECTORS)
        written, busy_s, parts = 0, 0.0, self._parts()
        try:
            for number, (target, size) in enumerate(parts, start=1):
                suffix, part = (f"-{number}", f", part {number} of {len(parts)}") if len(parts) > 1 else ("", "")
                side = self._write(target, size, f"{label}-precondition{suffix}", part)
                written, busy_s = written + side["bytes"], busy_s + side["runtime_s"]
            filled()
        finally:
            for target, _ in parts[1:]:
                target.remove()
        return {
            "passes": int(self.written_share),
            "block_bytes": BLOCK_BYTES,
            "io_depth": IO_DEPTH,
            "bytes_written": written,
            "bytes_per_s": written / busy_s if busy_s else 0.0,
            "seconds": self._clock_s() - began,
            "device_bytes_written": self._counted(WRITTEN_SECTORS, before),
        }

    def _parts(self) -> list[tuple[LoadTarget, int]]:
        """Lists what the span is written to: the target, and files beside it where one would become too large."""
        if isinstance(self.target, RawDevice) or self.span_bytes <= FILE_BYTES_MAX:
            return [(self.target, self.span_bytes)]
        machine, path = self.target.machine, self.target.path
        sizes = [FILE_BYTES_MAX] * (self.span_bytes // FILE_BYTES_MAX)
        if (rest := self.span_bytes % FILE_BYTES_MAX) >= BLOCK_BYTES:
            sizes.append(rest)
        more = [
            (FileTarget(machine, path.with_name(f"{path.stem}-{number}{path.suffix}")), size)
            for number, size in enumerate(sizes[1:], start=2)
        ]
        return [(self.target, sizes[0]), *more]

    def _write(self, target: LoadTarget, size: int, name: str, part: str) -> dict[str, Any]:
        """fio's figures of one part of the span."""
        total = self.written_share * size
        text = f"preconditioning: {self.written_share:g} x {decimal_label(size)} in 128 KiB writes{part}"
        self.announce(text, total / UNIT_BYTES_PER_S)
        values, timeout_s = precondition_values(size, self.written_share), 600 + total / SLOWEST_BYTES_PER_S
        completed = self.jobs.run("precondition", name, target, values, timeout_s)
        (self.jobs.raw / f"{name}.json").write_text(completed.stdout, encoding="utf-8")
        ended_well(completed, "preconditioning with fio")
        return direction(jobs_of(completed.stdout, "the preconditioning")[0], "write")

    def _counted(self, field: int, since: int | None = 0) -> int | None:
        return counted_bytes(self.target.machine, self.device, field, since)

    def _observed(self, what: str, make: Callable[[], Any]) -> Any:
        return self.target.machine.observe(what, make)

    def _clock_s(self) -> float:
        return float(self._observed("the clock", time.monotonic))

    def _limits(self, condition: str, purge: dict[str, Any]) -> list[str]:
        limits = [] if self.judged else self._of_purge(condition, purge)
        short = self.capacity_bytes and self.span_bytes < SPAN_SHARE_MIN * self.capacity_bytes
        if condition == PRECONDITIONED and short and not self.judged:
            limits.append(
                f"Preconditioned over {decimal_label(self.span_bytes)} of {decimal_label(self.capacity_bytes or 0)}: "
                "the standard wants the whole capacity"
            )
        return limits

    def _remarks(self, condition: str, purge: dict[str, Any]) -> list[str]:
        """A target that could not be emptied is no easier to write to than one that was: where the record takes the worse of both
        conditions, that is no limit."""
        return self._of_purge(condition, purge) if self.judged and condition == FRESH else []

    def _of_purge(self, condition: str, purge: dict[str, Any]) -> list[str]:
        if isinstance(self.target, RawDevice):
            return [in_words(self.purge, purge["zero_share"])] if purge["zero_share"] < 1 else []
        if self.dedicated and purge["done"]:
            return []
        trimmed = "its file system was trimmed" if purge["done"] else f"no trim ({purge['text']})"
        return [
            f"The {condition} condition is a file's, not a drive's: {trimmed}, and what else the drive holds is unknown"
        ]


def discarded_bytes(machine: Machine, device: str | None) -> int | None:
    """B that were given back to the device since boot, by its own counter; None where there is none (Linux before 4.18)."""
    try:
        return counted_bytes(machine, device, DISCARDED_SECTORS)
    except IndexError:
        return None


def conditioning_step(
    condition: str,
    span_bytes: int | None,
    ground: Ground,
    what: str = "",
    room_bytes: int = 0,
    room: str = "",
    written_share: float = PASSES,
) -> Step:
    """The step of a plan that brings the target into a condition."""
    written: float | None = 0.0
    if condition == PRECONDITIONED:
        written = written_share * span_bytes if span_bytes else None
    seconds = ground.seconds(written)
    return Step(
        f"{what}bringing the target into the condition {condition}",
        None if seconds is None else PURGE_S + seconds,
        written,
        room_bytes,
        room,
    )


def precondition_values(span_bytes: int, written_share: float = PASSES) -> dict[str, Value]:
    """Returns the values of precondition.fio."""
    size, written = bytes_due(span_bytes, BLOCK_BYTES, written_share)
    return {"BLOCK_BYTES": BLOCK_BYTES, "SIZE_BYTES": size, "WRITTEN_BYTES": written, "IO_DEPTH": IO_DEPTH}


def _trim(target: LoadTarget) -> tuple[bool, str]:
    """Runs fstrim on the target's file system; a machine that cannot do it is reported, and is no error."""
    assert isinstance(target, FileTarget)
    machine = target.machine
    found = machine.run(["findmnt", "--noheadings", "--output", "TARGET", "--target", target.path.parent], timeout_s=30)
    mount = found.stdout.strip().splitlines()[-1] if found.returncode == 0 and found.stdout.strip() else ""
    if not mount:
        return False, f"the mount point of {target.path.parent} is not known"
    done = machine.run(["fstrim", "--verbose", mount], timeout_s=TRIM_S_MAX)
    return done.returncode == 0, (
        done.stdout if done.returncode == 0 else done.stderr
    ).strip() or f"fstrim ended with {done.returncode}"
