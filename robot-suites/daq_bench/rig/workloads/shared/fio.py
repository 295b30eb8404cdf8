"""fio's command line and its JSON, as far as several workloads share them. Only `bw_bytes` and nanoseconds are read: `bw` is KiB/s."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.evidence.target_failures import answers_of_drive
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.target_failure import TargetFailedError

# verify_state_save: an interrupted fio must not leave a file where the bench was started.
# thread: jobs that are processes have a session each, and write on when fio itself is killed.
COMMON = (
    "--direct=1",
    "--ioengine=libaio",
    "--verify_state_save=0",
    "--output-format=json",
    "--fallocate=none",
    "--thread",
)
SLOWEST_LAYOUT_BYTES_PER_S = 20e6  # bounds the wait: an emulated drive
Rows = list[tuple[float, float]]  # (end of a window in ms, rate in B/s)
WINDOWS_MAX = 20_000_000  # two months of 250 ms
BEYOND_MS_MAX = 60_000.0  # how late fio's helper may write a row behind the end of a run
UNACCOUNTED_SHARE = 0.05  # [P] of a run's bytes that rounded rates and times may leave without a row
LATE_ROW_MS = 10  # fio's own allowance for a row that comes early or late (LOG_MSEC_SLACK)
# fio on one request that was answered with an error; "full resid" (nothing was transferred) has no such line
REFUSED_REQUEST = re.compile(r"fio: io_u error on file .+: (?P<error>[^:]+): \w+ offset=\d+, buflen=\d+")
NAME_OF_ERROR = {os.strerror(number): name for number, name in errno.errorcode.items()}
TOLD_MAX = 200  # characters of a complaint that a tool's own words make
FIGURE_MAX = 1e18  # bytes, operations, ns: beyond it nothing was counted
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.999)
PERCENTILE_LIST = "--percentile_list=" + ":".join(f"{value:g}" for value in PERCENTILES)


def time_of(seconds: float) -> str:
    """A length in fio's words: it reads no fraction of a second."""
    return f"{seconds}s" if seconds == int(seconds) else f"{round(1000 * seconds)}ms"


def writing(file: Path) -> list[str]:
    """fio's command line so far: sequential O_DIRECT writes to `file`."""
    return ["fio", f"--filename={file}", "--rw=write", *COMMON]


def lay_out(target: LoadTarget, size_bytes: int) -> None:
    """Writes all that a load will use of the target once, so that no load pays for the file system's allocation.

    `size_bytes` is rounded up to whole MiB."""
    block = 2**20
    size = -(-size_bytes // block) * block
    argv = [*writing(target.path), "--name=layout", f"--bs={block}", f"--size={size}", "--iodepth=8", "--end_fsync=1"]
    completed = target.run(argv, timeout_s=120 + size / SLOWEST_LAYOUT_BYTES_PER_S)
    ended_well(completed, f"laying out {target.path.name} with fio")


def ended_well(completed: Completed, what: str) -> Completed:
    """fio's end, if it is a good one. Raises TargetFailedError where the target answered a request as a failed drive does, in fio's own
    report of that request and as a job's error; else BenchError, as Completed.check."""
    if completed.returncode != 0 and (failure := _of_drive(completed, what)):
        raise failure
    return completed.check(what)


def _of_drive(completed: Completed, what: str) -> TargetFailedError | None:
    raw_drive = any(word.startswith("--filename=/dev/") for word in completed.argv)
    known = answers_of_drive("fio", raw_drive)
    try:
        ended = {errno.errorcode.get(job["error"]) for job in document_of(completed.stdout, what)["jobs"]}
    except (BenchError, LookupError, TypeError, ValueError):
        return None  # nothing says that fio ended for that reason
    for line in completed.stderr.splitlines():
        name = NAME_OF_ERROR.get(told["error"]) if (told := REFUSED_REQUEST.fullmatch(line.strip())) else None
        if name in known & ended:
            return TargetFailedError("fio", what, name, raw_drive, line.strip()[:TOLD_MAX])
    return None


def bandwidth_rows(text: str) -> list[Rows]:
    """(end of the window in ms, rate in B/s) of each thread; fio's log of bandwidth is `time_ms, KiB/s, direction, ...`.

    Several threads share a log, one after the other: time then starts again."""
    threads: list[Rows] = []
    for fields in (line.split(",") for line in text.splitlines() if line.strip()):
        time_ms, rate = float(fields[0]), float(fields[1]) * 1024
        if not threads or time_ms <= threads[-1][-1][0]:
            threads.append([])
        threads[-1].append((time_ms, rate))
    return threads


@dataclass(frozen=True)
class Windows:
    """fio's log of bandwidth against the bytes that fio counted: one rate for each window of each thread.

    fio writes no row for a window in which nothing was completed (its rate was 0), one row for all the time since the last one when its
    own helper came late (the row's rate was that of each window), and no row for the last window of a run, whose bytes are those that
    no other row accounts for."""

    threads: list[Rows]  # (end of the window in ms, rate in B/s)
    window_ms: float
    began_ms: float
    runtime_ms: float
    written_bytes: float

    def __post_init__(self) -> None:
        """Raises BenchError for a log or a run time that fio cannot have written: it would be filled without end."""
        ends = [end_ms for rows in self.threads for end_ms, _ in rows]
        longest = WINDOWS_MAX * self.window_ms
        if not 0 <= self.runtime_ms <= longest:
            raise BenchError(f"fio's run time of {self.runtime_ms} ms is none; it is kept in results/raw")
        if not all(0 <= end_ms - self.began_ms <= self.runtime_ms + BEYOND_MS_MAX for end_ms in ends):
            raise BenchError("fio's log of bandwidth has a row outside of its run; it is kept in results/raw")

    def filled(self, rows: Rows) -> Rows:
        """The rows of one thread with one for each window of the run."""
        found = self._between(rows, self._silent)
        last = rows[-1][0] if rows else self.began_ms
        return [
            *found,
            *((last + number * self.window_ms, self._tail_rate) for number in range(1, self._tail(rows) + 1)),
        ]

    def _between(self, rows: Rows, silent: bool) -> Rows:
        filled: Rows = []
        before = self.began_ms
        for end_ms, rate in rows:
            left_out = max(1, round((end_ms - before) / self.window_ms)) - 1
            held = 0.0 if silent else rate
            filled += [(end_ms - number * self.window_ms, held) for number in range(left_out, 0, -1)]
            filled.append((end_ms, rate))
            before = end_ms
        return filled

    def _tail(self, rows: Rows) -> int:
        """Whole windows between the thread's last row and the end of the run."""
        last = rows[-1][0] if rows else self.began_ms
        return max(0, int((self.began_ms + self.runtime_ms + LATE_ROW_MS - last) // self.window_ms))

    def _unaccounted(self, silent: bool) -> float:
        logged = sum(rate for rows in self.threads for _, rate in self._between(rows, silent))
        return self.written_bytes - logged * self.window_ms / 1000

    @cached_property
    def _silent(self) -> bool:
        """Idle windows are what the log leaves out, unless more bytes then lack a row than the last windows can have held."""
        room = sum(self._tail(rows) * max(rate for _, rate in rows) for rows in self.threads) * self.window_ms / 1000
        return self._unaccounted(True) <= room + UNACCOUNTED_SHARE * self.written_bytes

    @cached_property
    def _tail_rate(self) -> float:
        """Returns each thread's rate in each window behind its last row, B/s."""
        windows = sum(map(self._tail, self.threads))
        return max(0.0, self._unaccounted(self._silent)) / (windows * self.window_ms / 1000) if windows else 0.0


def bandwidth_samples(text: str, window_ms: float, runtime_ms: float, written_bytes: float) -> list[float]:
    """Rate of all threads together in B/s, of each whole window of `runtime_ms`: 0 where nothing was completed."""
    windows = Windows(bandwidth_rows(text), window_ms, 0, runtime_ms, written_bytes)
    if not windows.threads:
        return []  # no log: nothing is known of any window
    samples = [0.0] * int((runtime_ms + LATE_ROW_MS) // window_ms)
    for rows in windows.threads:
        for end_ms, rate in windows.filled(rows):
            number = round(end_ms / window_ms) - 1
            if 0 <= number < len(samples):
                samples[number] += rate
    return samples


def demand_readable(document: Any, what: str, needed: Sequence[str] = ("bw_bytes", "lat_ns")) -> None:
    """Raises BenchError that names fio's version where its JSON lacks the rate in bytes or the latency in nanoseconds."""
    jobs = document.get("jobs") if isinstance(document, dict) else None
    for job in jobs if isinstance(jobs, list) else []:
        sides = [job[name] for name in ("read", "write") if isinstance(job, dict) and isinstance(job.get(name), dict)]
        lacking = [key for key in needed if any(key not in side for side in sides)]
        if lacking:
            raise BenchError(
                f"{document.get('fio version', 'fio of an unknown version')} ({what}) reports no {' and no '.join(lacking)}: the bench"
                " reads what fio writes from 3.2 on. Install a newer fio on the candidate; the output is kept in results/raw"
            )


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Whatever is amiss with fio's output of `what` becomes one BenchError; it is read as a whole or not at all."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        told = f"{type(error).__name__}: {error}"[:TOLD_MAX]
        raise BenchError(f"fio's output of {what} cannot be read ({told}); it is kept in results/raw") from None


def document_of(output: str, what: str, needed: Sequence[str] = ("bw_bytes", "lat_ns")) -> dict[str, Any]:
    """fio's JSON, behind whatever it said before. Raises ValueError for what is none, BenchError for a fio that is too old."""
    document: dict[str, Any] = strict(output[output.index("{") :], doubled_keys=True)
    demand_readable(document, what, needed)
    return document


def number(part: dict[str, Any], name: str) -> float:
    """One of fio's figures, none of which is negative. Raises ValueError, KeyError."""
    value = part[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < FIGURE_MAX:
        raise ValueError(f"{name} is {str(value)[:40]!r}: a number that is not negative was expected")
    return value


def version_on(machine: Machine) -> str:
    return machine.run(["fio", "--version"], timeout_s=20).check("fio").stdout.strip()


def whole(part: dict[str, Any], name: str) -> int:
    """The same of a count."""
    value = number(part, name)
    if not isinstance(value, int):
        raise ValueError(f"{name} is {value!r}: a whole number was expected")
    return value


def jobs_of(output: str, what: str) -> list[dict[str, Any]]:
    """fio's jobs in the order of its command line. Raises BenchError when fio reports an error or said nothing that can be read."""
    with readable(what):
        jobs: list[dict[str, Any]] = document_of(output, what)["jobs"]
        failed = [f"{job['jobname']} (error {job['error']})" for job in jobs if job["error"]]
    if failed:
        raise BenchError(f"fio reports I/O errors in {what}: {', '.join(failed)[:TOLD_MAX]}")
    return jobs


def direction(job: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns fio's figures for the reads or the writes of a job: rate, operations, runtime, latency in us (null without any). Raises
    BenchError for what is no figure."""
    with readable(f"{name}s"):
        side = job[name]
        latency = side["lat_ns"]
        percentile = percentiles_us(latency)
        keys = {value: f"p{value:g}".replace(".", "_") for value in PERCENTILES}
        return {
            "bytes": number(side, "io_bytes"),
            "bytes_per_s": number(side, "bw_bytes"),
            "iops": number(side, "iops"),
            "runtime_s": number(side, "runtime") / 1000,
            "latency_us": {
                "mean": number(latency, "mean") / 1000,
                "max": number(latency, "max") / 1000,
                **{name: percentile.get(value) for value, name in keys.items()},
            }
            if number(side, "total_ios")
            else None,
        }


def percentiles_us(latency: dict[str, Any]) -> dict[float, float]:
    """fio's percentiles, percent: us. Raises ValueError, TypeError, AttributeError."""
    found = latency.get("percentile", {})
    return {float(key): number(found, key) / 1000 for key in found}
