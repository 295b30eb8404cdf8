"""fio's command line and its JSON, as far as several workloads share them. Only `bw_bytes` and nanoseconds are read: `bw` is KiB/s."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench_model.errors import BenchError
from rig.machine import Machine

# verify_state_save: an interrupted fio must not leave a file where the bench was started.
COMMON = ("--direct=1", "--ioengine=libaio", "--verify_state_save=0", "--output-format=json", "--fallocate=none")
SLOWEST_LAYOUT_BYTES_PER_S = 20e6  # bounds the wait: an emulated drive
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
