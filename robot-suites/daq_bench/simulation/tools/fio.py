"""fio on the modelled server: its JSON, and its log of bandwidth, as fio 3.33 writes them."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.workloads.shared.fio_job import GLOBAL, JobFile
from daq_bench.simulation.physics.market import OPTANE
from daq_bench.simulation.physics.server import Server
from daq_bench.simulation.tools.daqwriter import options_of

VERSION = "fio-3.33"
WINDOW_MS = 250
PLATEAU_BYTES = 4 * 2**20  # blocks of this size and more reach the array's pace
BULK_BYTES_MIN = 100e9
SEQUENTIAL_BYTES = 128 * 2**10  # blocks of the steady-state test that SS-02 bounds
RANDOM_LIKE_SEQUENTIAL = 2**20  # ~ blocks of this size are as good as in order
READ_S, WRITE_S, OPERATIONS_MAX = (
    (80e-6, 10e-6),
    15e-6,
    1e6,
)  # ~ one operation of NAND, of 3D XPoint; the most that a drive completes
Windows = list[tuple[int, int]]  # (end in ms, KiB/s)


SOAK_MS = 1000  # of a window in a soak's log
IO_ERROR = (
    "fio: io_u error on file {file}: Input/output error: write offset={offset}, buflen={block}\n"
    "fio: pid=4242, err=5/file:io_u.c:1896, func=io_u error, error=Input/output error"
)


class Soak:
    """One fio that writes until its run time is over or its trigger file is there. Whoever waits for it takes it through its seconds;
    `thread` is that of the load, which waits for `ended`."""

    def __init__(self, server: Server, told: dict[str, str]) -> None:
        self.server, self.told = server, told
        self.trigger, self.log_stem = self.told["trigger-file"], self.told["write_bw_log"]
        self.thread, self.ended = threading.current_thread(), threading.Event()
        self.lost: BenchError | None = None  # the way to the candidate
        self.error = ""
        self._runtime_s = round(float(self.told["runtime"].removesuffix("s")) * self._share_of_time())
        self._cap, self._block = float(self.told["rate"]) or float("inf"), int(self.told["bs"])
        self._random = Random(f"soak {server.spec.seed} {self.told['name']}")
        self._began_ms = int(
            1000 * server.clock_s
        )  # later ends are counted from it: a clock that steps does not move them
        self._written: list[int] = []
        self._total = 0
        server.begin_record()

    def _share_of_time(self) -> float:
        short = self.server.spec.has("short_record")
        if short is None or self.server.records_made:
            return 1.0
        self.server.note("short_record")
        self.server.harms["short_soak"] = f"fio left out {short.strength:.1%} of its time, and called it complete"
        return 1.0 - short.strength

    def second(self) -> bool:
        """Says whether it goes on."""
        server = self.server
        could = server.pace() * (1.0 - self._random.random() * 0.01)
        # fio counts what its rate allows from its begin on, so that it makes up for a second in which the target took less.
        pace = min(could, self._cap * (len(self._written) + 1) - self._total)
        pulled = server.has_struck("drive_pulled")
        if pulled:
            server.lose(pulled)
            self.error = IO_ERROR.format(file=self.told["filename"], offset=self._total, block=self._block)
            return False
        server.second(pace, 0.0)
        server.note_soaked(could)
        self._written.append(round(pace))
        self._total += self._written[-1]
        return len(self._written) < self._runtime_s

    def answer(self) -> tuple[int, str, str]:
        """Exit status, JSON and complaint, once it has ended."""
        seconds = len(self._written)
        return (
            (1 if self.error else 0),
            _json(self.told, self._block, self.bytes_written, 1000 * seconds, self._random, 5 if self.error else 0),
            self.error,
        )

    @property
    def log(self) -> str:
        """Fio writes no line for the last window of a run."""
        ends = enumerate(self._written[:-1], start=1)
        return "".join(f"{self._began_ms + SOAK_MS * end}, {rate // 1024}, 1, 0, 0\n" for end, rate in ends)

    @property
    def bytes_written(self) -> int:
        return self._total // self._block * self._block


def asked(words: list[str], files: Mapping[str, str]) -> dict[str, str]:
    """The same of a job file with one section."""
    (told,) = jobs_of(words, files)
    return told


def jobs_of(words: list[str], files: Mapping[str, str]) -> list[dict[str, str]]:
    """The options of a command line `env VARIABLE=value ... fio ... FILE`, and those of each section of the job file in `files` with
    these values."""
    start, path = words.index("fio"), words[-1]
    values = dict(word.split("=", 1) for word in words[1:start])
    job, told = JobFile(Path(path).stem, files[path]), options_of(words[start:])
    chosen = [word.removeprefix("--section=") for word in words[start:] if word.startswith("--section=")]
    sections = chosen or [name for name in job.sections() if name != GLOBAL]
    return [{"name": section, **told, **job.options(values, section)} for section in sections]


def step(server: Server, jobs: list[dict[str, str]]) -> tuple[int, str, str]:
    """A step of the wear experiment: its jobs write at the same time, each its own amount. Exit status, JSON and complaint."""
    random = Random(f"step {server.spec.seed} {server.now_s}")
    server.begin_record()
    size, written, seconds, error = sum(int(told["io_size"]) for told in jobs), 0.0, 0, ""
    share = sum(int(told["io_size"]) for told in jobs if told["rw"] == "randwrite") / size
    slower = 1 / ((1 - share) + share / server.spec.random_share)
    while written < size:
        if pulled := server.has_struck("drive_pulled"):
            server.lose(pulled)
            error = IO_ERROR.format(file=jobs[0]["filename"], offset=0, block=int(jobs[0]["bs"]))
            break
        taken = min(size - written, max(1e6, server.pace() * slower * random.uniform(0.99, 1.0)))
        server.in_bulk = not server.spec.hazards and seconds > 0
        server.second(taken, 0.0)
        written, seconds = written + taken, seconds + 1
    server.in_bulk = False
    server.end_record()
    done = written / size
    found = [
        _job(
            told,
            int(told["bs"]),
            {"read": 0, "write": round(int(told["io_size"]) * done)},
            1000 * max(1, seconds),
            random,
            5 * bool(error),
        )
        for told in jobs
    ]
    return (1 if error else 0), json.dumps({"fio version": VERSION, "time": "simulated", "jobs": found}), error


def points(server: Server, jobs: list[dict[str, str]]) -> tuple[int, str, str]:
    """A round of a steady-state test: its points one after another. Exit status, JSON and complaint."""
    random = Random(f"round {server.spec.seed} {jobs[0]['name']} {server.now_s}")
    server.begin_record()
    found, error = list[dict[str, Any]](), ""
    for told in jobs:
        block, could = int(told["bs"]), list[float]()
        share = {"read": 1.0, "randread": 1.0, "randrw": int(told.get("rwmixread", 0)) / 100}.get(told["rw"], 0.0)
        seconds, total = round(float(told["runtime"].removesuffix("s"))), 0.0
        for second in range(seconds):
            server.in_bulk = not server.spec.hazards and second > 0
            rate = _rate_of(server, told, block, share) * random.uniform(0.99, 1.0)
            if pulled := server.has_struck("drive_pulled"):
                server.lose(pulled)
                error = IO_ERROR.format(file=told["filename"], offset=int(total) // block * block, block=block)
                break
            could.append(rate)
            total += rate
            server.second((1 - share) * rate, share * rate)
            server.scattered_bytes += (1 - share) * rate if "rand" in told["rw"] else 0.0
        if (told["rw"], block) == ("write", SEQUENTIAL_BYTES):
            server.rounds.append(could)
        sides = {"read": int(share * total) // block * block, "write": int((1 - share) * total) // block * block}
        found.append(_job(told, block, sides, 1000 * max(1, len(could)), random, 5 if error else 0))
        if error:
            break
    server.in_bulk = False
    server.end_record()
    return (1 if error else 0), json.dumps({"fio version": VERSION, "time": "simulated", "jobs": found}), error


def _rate_of(server: Server, told: dict[str, str], block: int, read_share: float) -> float:
    """B/s of a point: reads and writes share the drive's time; few operations in flight are limited by the latency of each. A drive that
    is written to at random places comes down from its sequential rate while a quarter of it is written so."""
    spec, flat = server.spec, server.spec.medium == OPTANE
    write = server.pace()
    if "rand" in told["rw"]:
        small = spec.random_share + (1 - spec.random_share) * min(1.0, block / RANDOM_LIKE_SEQUENTIAL)
        worn = math.exp(-server.scattered_bytes / (spec.capacity_bytes / 4))
        write *= small + (1 - small) * worn
    write, read = (max(1e3, one) for one in (write, spec.read_rate))
    in_flight = int(told["iodepth"]) * int(told.get("numjobs", 1))
    latency_s = read_share * READ_S[flat] + (1 - read_share) * WRITE_S
    operations = min(in_flight / latency_s, OPERATIONS_MAX)
    return min(1 / (read_share / read + (1 - read_share) / write), operations * block)


def run(server: Server, told: dict[str, str]) -> tuple[str, str]:
    """(JSON, log of bandwidth) of what one command line asks for."""
    block = int(told["bs"])
    random = Random(f"fio {server.spec.seed} {told['name']} {server.now_s}")
    if "runtime" not in told:  # so many bytes, as fast as they go
        size = int(told.get("io_size", told["size"]))
        milliseconds, written = _so_many(server, size)
        return _json(told, block, written, milliseconds, random), ""
    ramp, runtime = (float(told[name].removesuffix("s")) for name in ("ramp_time", "runtime"))
    for _ in range(round(ramp)):
        server.second(_pace(server, block), 0.0)
    windows: Windows = []
    total = 0.0
    for second in range(round(runtime)):
        pace = _pace(server, block)
        rates = [pace * random.gauss(1, 0.004) for _ in range(1000 // WINDOW_MS)]
        windows += [(1000 * second + WINDOW_MS * (number + 1), round(rate / 1024)) for number, rate in enumerate(rates)]
        taken = sum(rates) / len(rates)
        total += taken
        server.second(taken, 0.0)
    server.scanned.append((block, runtime, total / round(runtime)))
    log = "".join(f"{end}, {rate}, 1, 0, 0\n" for end, rate in windows)
    return _json(told, block, int(total // block * block), round(runtime * 1000), random), log


def _pace(server: Server, block: int) -> float:
    """A block costs some time of its own, so that small ones are slower."""
    share: float = min(1.0, 0.05 + 0.95 * (block / PLATEAU_BYTES) ** 0.5)
    return server.pace() * share


def _so_many(server: Server, size: int) -> tuple[int, int]:
    left, seconds = float(size), 0
    bulk = server.is_sold and size > BULK_BYTES_MIN
    while left > 0:
        taken = min(left, max(server.pace(), 1e6))
        server.in_bulk = bulk and seconds > 0 and taken < left
        server.second(taken, 0.0)
        left -= taken
        seconds += 1
    return 1000 * seconds, size


def _json(told: dict[str, str], block: int, written: int, milliseconds: int, random: Random, error: int = 0) -> str:
    job = _job(told, block, {"read": 0, "write": written}, milliseconds, random, error)
    return json.dumps({"fio version": VERSION, "time": "simulated", "jobs": [job]})


def _job(
    told: dict[str, str], block: int, sides: dict[str, int], milliseconds: int, random: Random, error: int
) -> dict[str, Any]:
    """One job of fio's JSON. `sides`: B read and written."""
    nothing: dict[str, Any] = {
        **dict.fromkeys(("io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios"), 0),
        "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
    }
    in_flight = int(told["iodepth"]) * int(told.get("numjobs", 1)) if "stonewall" in told else 8
    made = {
        name: _side(block, size, milliseconds, random, in_flight)
        if size or (name == "write" and not sides["read"])
        else nothing
        for name, size in sides.items()
    }
    return {
        "jobname": told["name"], "groupid": 0, "error": error, "elapsed": milliseconds // 1000 + 1, "job options": told,
        **made, "trim": nothing, "usr_cpu": 8.0, "sys_cpu": 12.0,
    }  # fmt: skip


def _side(block: int, written: int, milliseconds: int, random: Random, in_flight: int) -> dict[str, Any]:
    rate = written / milliseconds * 1000 if milliseconds else 0.0
    mean_ns = in_flight * block / max(rate, 1.0) * 1e9 * random.uniform(0.95, 1.05)
    percentile = {"50.000000": int(mean_ns), "99.000000": int(1.5 * mean_ns), "99.900000": int(2 * mean_ns)}
    return {
        "io_bytes": written, "io_kbytes": written // 1024, "bw_bytes": round(rate), "bw": round(rate / 1024),
        "iops": rate / block, "runtime": milliseconds, "total_ios": written // block,
        "lat_ns": {
            "min": int(mean_ns / 4), "max": int(3 * mean_ns), "mean": mean_ns, "stddev": mean_ns / 10, "N": written // block,
            "percentile": percentile,
        },
    }  # fmt: skip
