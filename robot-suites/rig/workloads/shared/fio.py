"""fio's command line and its JSON, as far as several workloads share them. Only `bw_bytes` and nanoseconds are read: `bw` is KiB/s."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from rig.candidate.machine import Machine

# verify_state_save: an interrupted fio must not leave a file where the bench was started.
COMMON = ("--direct=1", "--ioengine=libaio", "--verify_state_save=0", "--output-format=json", "--fallocate=none")
SLOWEST_LAYOUT_BYTES_PER_S = 20e6  # bounds the wait: an emulated drive
LATE_ROW_MS = 10  # fio's own allowance for a row that comes early or late (LOG_MSEC_SLACK)
PERCENTILES = (50.0, 99.0, 99.9, 99.99, 99.999)
PERCENTILE_LIST = "--percentile_list=" + ":".join(f"{value:g}" for value in PERCENTILES)


def writing(file: Path) -> list[str]:
    """fio's command line so far: sequential O_DIRECT writes to `file`."""
    return ["fio", f"--filename={file}", "--rw=write", *COMMON]


def lay_out(machine: Machine, file: Path, size_bytes: int) -> None:
    """Writes the whole file once, so that no load pays for the file system's allocation. `size_bytes` is rounded up to whole MiB."""
    block = 2**20
    size = -(-size_bytes // block) * block
    argv = [*writing(file), "--name=layout", f"--bs={block}", f"--size={size}", "--iodepth=8", "--end_fsync=1"]
    machine.run(argv, timeout_s=120 + size / SLOWEST_LAYOUT_BYTES_PER_S).check(f"laying out {file.name} with fio")


def bandwidth_rows(text: str) -> list[list[tuple[float, float]]]:
    """(end of the window in ms, rate in B/s) of each thread; fio's log of bandwidth is `time_ms, KiB/s, direction, ...`.

    Several threads share a log, one after the other: time then starts again."""
    threads: list[list[tuple[float, float]]] = []
    for fields in (line.split(",") for line in text.splitlines() if line.strip()):
        time_ms, rate = float(fields[0]), float(fields[1]) * 1024
        if not threads or time_ms <= threads[-1][-1][0]:
            threads.append([])
        threads[-1].append((time_ms, rate))
    return threads


def without_holes(
    rows: list[tuple[float, float]], window_ms: float, began_ms: float, silent: bool
) -> list[tuple[float, float]]:
    """The rows of one thread with a row for each window, those in between included that fio's log leaves out.

    fio writes no row for a window in which nothing was completed (`silent`: its rate was 0), and one row for all the time
    since the last one when its own helper came late (not `silent`: the row's rate was that of each window)."""
    filled: list[tuple[float, float]] = []
    before = began_ms
    for end_ms, rate in rows:
        left_out = max(1, round((end_ms - before) / window_ms)) - 1
        held = 0.0 if silent else rate
        filled += [(end_ms - number * window_ms, held) for number in range(left_out, 0, -1)]
        filled.append((end_ms, rate))
        before = end_ms
    return filled


def is_silent(
    threads: list[list[tuple[float, float]]], window_ms: float, began_ms: float, written_bytes: float
) -> bool:
    """Whether the windows that the log leaves out were idle: the reading that accounts better for `written_bytes`."""
    missed = {
        silent: abs(
            sum(rate for rows in threads for _, rate in without_holes(rows, window_ms, began_ms, silent))
            * window_ms
            / 1000
            - written_bytes
        )
        for silent in (True, False)
    }
    return missed[True] <= missed[False]


def bandwidth_samples(text: str, window_ms: float, runtime_ms: float, written_bytes: float) -> list[float]:
    """Rate of all threads together in B/s, of each whole window of `runtime_ms`: 0 where nothing was completed."""
    threads = bandwidth_rows(text)
    silent = is_silent(threads, window_ms, 0, written_bytes)
    samples = [0.0] * int((runtime_ms + LATE_ROW_MS) // window_ms)
    for rows in threads:
        for end_ms, rate in without_holes(rows, window_ms, 0, silent):
            number = round(end_ms / window_ms) - 1
            if 0 <= number < len(samples):
                samples[number] += rate
    return samples


def jobs_of(output: str, what: str) -> list[dict[str, Any]]:
    """fio's jobs in the order of its command line. Raises BenchError when fio reports an error or said nothing that can be read."""
    try:
        jobs: list[dict[str, Any]] = json.loads(output[output.index("{") :])["jobs"]
        failed = [f"{job['jobname']} (error {job['error']})" for job in jobs if job["error"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"fio's output of {what} cannot be read ({error!r}); it is kept in results/raw") from None
    if failed:
        raise BenchError(f"fio reports I/O errors in {what}: {', '.join(failed)}")
    return jobs


def direction(job: dict[str, Any], name: str) -> dict[str, Any]:
    """What fio measured of the reads or the writes of a job: rate, operations, runtime, latency in us (null without any)."""
    side = job[name]
    latency = side["lat_ns"]
    percentile = {float(key): value / 1000 for key, value in latency.get("percentile", {}).items()}
    keys = {value: f"p{value:g}".replace(".", "_") for value in PERCENTILES}
    return {
        "bytes": side["io_bytes"],
        "bytes_per_s": side["bw_bytes"],
        "iops": side["iops"],
        "runtime_s": side["runtime"] / 1000,
        "latency_us": {
            "mean": latency["mean"] / 1000,
            "max": latency["max"] / 1000,
            **{name: percentile.get(value) for value, name in keys.items()},
        }
        if side["total_ios"]
        else None,
    }
