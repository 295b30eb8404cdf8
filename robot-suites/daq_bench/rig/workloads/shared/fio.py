"""fio's JSON and its logs, as far as several workloads share them. Only `bw_bytes` and nanoseconds are read: `bw` is KiB/s."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.evidence.target_failures import answers_of_drive
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import WRITE_BYTES_PER_S_MIN
from daq_bench.rig.workloads.shared.target_failure import TargetFailedError

Rows = list[tuple[float, float]]  # (end in ms, rate in B/s)
Span = tuple[float, float, float]  # begin and end in ms since the begin of the run, rate in B/s
WINDOWS_MAX = 20_000_000  # two months of 250 ms
BEYOND_MS_MAX = 60_000.0  # how late fio's helper may write a row behind the end of a run
UNACCOUNTED_SHARE = 0.05  # [P] of a run's bytes that rounded rates and times may leave without a row
LATE_ROW_MS = 10  # fio's own allowance for a row that comes early or late (LOG_MSEC_SLACK)
# fio on one request that was answered with an error; "full resid" (nothing was transferred) has no such line
REFUSED_REQUEST = re.compile(r"fio: io_u error on file .+: (?P<error>[^:]+): \w+ offset=\d+, buflen=\d+")
NAME_OF_ERROR = {os.strerror(number): name for number, name in errno.errorcode.items()}
TOLD_MAX = 200  # characters of a complaint that a tool's own words make
FIGURE_MAX = 1e18  # bytes, operations, ns: beyond it nothing was counted
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.999)  # at most: a job file may ask for fewer


def time_of(seconds: float) -> str:
    """A length in fio's words: it reads no fraction of a second."""
    return f"{seconds}s" if seconds == int(seconds) else f"{round(1000 * seconds)}ms"


def lay_out(jobs: JobFiles, name: str, target: LoadTarget, size_bytes: int) -> None:
    """Writes all that the load `name` will use of the target once, so that it does not pay for the file system's allocation.

    `size_bytes` is rounded up to whole MiB."""
    block = 2**20
    size = -(-size_bytes // block) * block
    timeout_s = 120 + size / WRITE_BYTES_PER_S_MIN
    completed = jobs.run("layout", f"layout-{name}", target, {"SIZE_BYTES": size}, timeout_s)
    ended_well(completed, f"laying out {target.path.name} with fio")


def ended_well(completed: Completed, what: str) -> Completed:
    """fio's end, if it is a good one. Raises TargetFailedError where the target answered a request as a failed drive does, in fio's own
    report of that request and as a job's error; else BenchError, as Completed.check."""
    if completed.returncode != 0 and (failure := _of_drive(completed, what)):
        raise failure
    return completed.check(what)


def _of_drive(completed: Completed, what: str) -> TargetFailedError | None:
    raw_drive = any(word.startswith("TARGET=/dev/") for word in completed.argv)
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

    A row's rate is the mean over the time since fio's helper looked last, and the row's time is when it looked: a helper that comes late
    counts from then on. So each row has the weight of its own time, whichever windows that touches. Where nothing was completed since
    the last look fio writes no row; such a look takes a window at least, so that a shorter way back to the row before is all the row's.
    A longer one may hold idle looks or a single late one: the bytes tell. The last time of a run has no row: its bytes are those that
    no other row accounts for."""

    threads: list[Rows]  # (end of the time in ms, rate in B/s)
    window_ms: float
    began_ms: float
    runtime_ms: float
    written_bytes: float

    def __post_init__(self) -> None:
        """Raises BenchError for a log or a run time that fio cannot have written: it would be filled without end."""
        ends = [end_ms for rows in self.threads for end_ms, _ in rows]
        longest = WINDOWS_MAX * self.window_ms
        if not 0 <= self.runtime_ms <= longest:
            raise BenchError(f"fio's run time of {self.runtime_ms} ms is not positive; it is kept in results/raw")
        if not all(0 <= end_ms - self.began_ms <= self.runtime_ms + BEYOND_MS_MAX for end_ms in ends):
            raise BenchError("fio's log of bandwidth has a row outside of its run; it is kept in results/raw")

    def filled(self, rows: Rows) -> Rows:
        """One thread's rate in each whole window of the run."""
        window = self.window_ms
        rates = [0.0] * int(self._run_ms // window)
        for start_ms, end_ms, rate in [*self._spans(rows, self._silent), *self._tail(rows)]:
            for number in range(int(start_ms // window), min(len(rates), math.ceil(end_ms / window))):
                within_ms = min(end_ms, (number + 1) * window) - max(start_ms, number * window)
                rates[number] += rate * (within_ms / window)
        return [(self.began_ms + (number + 1) * window, rate) for number, rate in enumerate(rates)]

    def _since_began(self, end_ms: float) -> float:
        """A time since the begin of the run; one that is as near to a window's end as fio takes for punctual is that end."""
        since_ms = end_ms - self.began_ms
        punctual_ms = round(since_ms / self.window_ms) * self.window_ms
        return punctual_ms if abs(since_ms - punctual_ms) <= LATE_ROW_MS else since_ms

    @property
    def _run_ms(self) -> float:
        return self._since_began(self.began_ms + self.runtime_ms)

    def _spans(self, rows: Rows, silent: bool) -> Iterator[Span]:
        """The time that each row speaks of; what was looked at behind the end of the run was written before it."""
        before_ms = 0.0
        for row_ms, rate in rows:
            end_ms = self._since_began(row_ms)
            idle = silent and end_ms - before_ms >= self._two_looks_ms
            start_ms = end_ms - self.window_ms if idle else before_ms
            within_ms = min(end_ms, self._run_ms)
            if within_ms > start_ms:
                yield start_ms, within_ms, rate * ((end_ms - start_ms) / (within_ms - start_ms))
            before_ms = end_ms

    def _tail_ms(self, rows: Rows) -> float:
        """The time between the thread's last row and the end of the run; 0 where it is more than a late look explains. Then rows are
        lost or the target was silent, and what was written is in no window, so that it contradicts the rate."""
        tail_ms = max(0.0, self._run_ms - self._since_began(rows[-1][0]))
        return tail_ms if tail_ms < self._two_looks_ms else 0.0

    @property
    def _two_looks_ms(self) -> float:
        """The least time of two looks."""
        return 2 * (self.window_ms - LATE_ROW_MS)

    def _tail(self, rows: Rows) -> Iterator[Span]:
        if tail_ms := self._tail_ms(rows):
            yield self._run_ms - tail_ms, self._run_ms, self._tail_rate

    def _unaccounted(self, silent: bool) -> float:
        spans = (span for rows in self.threads for span in self._spans(rows, silent))
        return self.written_bytes - sum(rate * (end_ms - start_ms) for start_ms, end_ms, rate in spans) / 1000

    @cached_property
    def _room(self) -> float:
        """The most bytes that may have been written behind the last rows."""
        fastest = (self._tail_ms(rows) * max(rate for _, rate in rows) for rows in self.threads)
        return sum(fastest) / 1000 + UNACCOUNTED_SHARE * self.written_bytes

    @cached_property
    def _silent(self) -> bool:
        """Idle windows are what the log leaves out, unless more bytes then lack a row than the last windows can have held."""
        return self._unaccounted(True) <= self._room

    @cached_property
    def _tail_rate(self) -> float:
        """Returns each thread's rate behind its last row, B/s. Bytes that have no room there stay without a window."""
        tail_ms = sum(map(self._tail_ms, self.threads))
        left = min(max(0.0, self._unaccounted(self._silent)), self._room)
        return left / (tail_ms / 1000) if tail_ms else 0.0


def bandwidth_samples(
    text: str, window_ms: float, runtime_ms: float, written_bytes: float, threads: int = 0
) -> list[float]:
    """Rate of all threads together in B/s, of each whole window of `runtime_ms`: 0 where nothing was completed. Nothing is known of any
    window where there is no log, or one in which time starts again more often than there were `threads` (0: unknown)."""
    windows = Windows(bandwidth_rows(text), window_ms, 0, runtime_ms, written_bytes)
    if threads and len(windows.threads) > threads:
        return []
    found = [[rate for _, rate in windows.filled(rows)] for rows in windows.threads]
    return [math.fsum(rates) for rates in zip(*found, strict=True)]


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
    """fio's JSON, behind whatever it said before. Raises ValueError for other text, BenchError for a fio that is too old."""
    document: dict[str, Any] = strict(output[output.index("{") :], doubled_keys=True)
    demand_readable(document, what, needed)
    return document


def number(part: dict[str, Any], name: str) -> float:
    """One of fio's figures, which are never negative. Raises ValueError, KeyError."""
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
