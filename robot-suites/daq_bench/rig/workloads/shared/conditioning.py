"""Brings the target into a named condition, and says with evidence which one it is.

`fresh`: a raw drive is purged (discard, or NVMe Format); a file's predecessor goes and its file system is trimmed, which is as near
to a purge as a file can come. `preconditioned`: fresh, then 128 KiB sequential writes over twice the capacity (SNIA SSS PTS 2.0.2,
workload-independent preconditioning); of a file, twice its span, which leaves the rest of the drive as it was and says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.rig.candidate.load_target import FileTarget, LoadTarget, RawDevice
from daq_bench.rig.workloads.shared.fio import COMMON, direction, ended_well, jobs_of

FRESH, PRECONDITIONED = "fresh", "preconditioned"
PASSES = 2
SPAN_SHARE_MIN = 0.9  # [P] what a file can take of a drive: the file system keeps something for itself
BLOCK_BYTES = 128 * 2**10
IO_DEPTH = 32
SLOWEST_BYTES_PER_S = 20e6  # slower than any drive that one would qualify: bounds the wait
TRIM_S_MAX = 1800.0

Announce = Callable[[str, float], None]  # (text, expected seconds)


@dataclass(frozen=True)
class Conditioner:
    """`span_bytes`: the target's part that the measurement uses. `capacity_bytes`: of the whole drive or array, where it is known.

    `raw`: the bundle's folder for fio's output. `announce` is told the running step. `dedicated`: the drive holds only the bench's file
    system, so that a trim of its free space empties it."""

    target: LoadTarget
    span_bytes: int
    capacity_bytes: int | None
    purge: str  # discard or format
    raw: Path
    announce: Announce
    dedicated: bool = False

    def bring_to(self, condition: str, label: str) -> dict[str, Any]:
        """One document of evidence. `label` names fio's output. Raises BenchError when the condition cannot be reached."""
        started = self._observed("the time", lambda: datetime.now(UTC).isoformat(timespec="seconds"))
        started = str(started).replace("+00:00", "Z")
        purge = self._purge()
        written = self._precondition(label) if condition == PRECONDITIONED else None
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
        return {"method": "fstrim", "text": said, "done": done, "zero_share": None, "seconds": self._clock_s() - began}

    def _precondition(self, label: str) -> dict[str, Any]:
        total = PASSES * self.span_bytes
        self.announce(f"preconditioning: {PASSES} x {decimal_label(self.span_bytes)} in 128 KiB writes", total / 1e9)
        began = self._clock_s()
        argv = precondition_arguments(self.target.path, self.span_bytes)
        completed = self.target.run(argv, timeout_s=600 + total / SLOWEST_BYTES_PER_S)
        (self.raw / f"{label}-precondition.json").write_text(completed.stdout, encoding="utf-8")
        ended_well(completed, "preconditioning with fio")
        write = direction(jobs_of(completed.stdout, "the preconditioning")[0], "write")
        seconds = self._clock_s() - began
        return {
            "passes": PASSES,
            "block_bytes": BLOCK_BYTES,
            "io_depth": IO_DEPTH,
            "bytes_written": write["bytes"],
            "bytes_per_s": write["bytes_per_s"],
            "seconds": seconds,
        }

    def _observed(self, what: str, make: Callable[[], Any]) -> Any:
        return self.target.machine.observe(what, make)

    def _clock_s(self) -> float:
        return float(self._observed("the clock", time.monotonic))

    def _limits(self, condition: str, purge: dict[str, Any]) -> list[str]:
        limits = []
        if isinstance(self.target, RawDevice):
            if purge["zero_share"] < 1:
                limits.append(
                    f"After the purge ({self.purge}) {purge['zero_share']:.0%} of the sampled places read as zeros: "
                    "whether the drive gave all of its blocks back is not known"
                )
        elif not (self.dedicated and purge["done"]):
            trimmed = "its file system was trimmed" if purge["done"] else f"no trim ({purge['text']})"
            limits.append(
                f"The {condition} condition is a file's, not a drive's: {trimmed}, and what else the drive holds is unknown"
            )
        if (
            condition == PRECONDITIONED
            and self.capacity_bytes
            and self.span_bytes < SPAN_SHARE_MIN * self.capacity_bytes
        ):
            limits.append(
                f"Preconditioned over {decimal_label(self.span_bytes)} of {decimal_label(self.capacity_bytes)}: "
                "the standard wants the whole capacity"
            )
        return limits


def seconds_for(condition: str, span_bytes: int) -> float:
    """Expected duration, for the progress display."""
    return 20.0 + (PASSES * span_bytes / 1e9 if condition == PRECONDITIONED else 0.0)


def precondition_arguments(path: Path, span_bytes: int) -> list[str]:
    """Returns fio's command line: the whole span, twice. Its default buffers are random, and scrambled at each write."""
    size = span_bytes // BLOCK_BYTES * BLOCK_BYTES
    return [
        "fio",
        f"--filename={path}",
        *COMMON,
        "--name=precondition",
        "--rw=write",
        f"--bs={BLOCK_BYTES}",
        f"--size={size}",
        f"--loops={PASSES}",
        f"--iodepth={IO_DEPTH}",
        "--end_fsync=1",
    ]


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
