"""fio on the modelled server: its JSON, and its log of bandwidth, as fio 3.33 writes them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from simulation.physics.server import Server
from simulation.tools.daqwriter import options_of

VERSION = "fio-3.33"
WINDOW_MS = 250
PLATEAU_BYTES = 4 * 2**20  # blocks of this size and more reach the array's pace
Windows = list[tuple[int, int]]  # (end in ms, KiB/s)


def run(server: Server, argv: list[str]) -> tuple[str, str]:
    """(JSON, log of bandwidth) of one command line."""
    told = options_of(argv)
    block = int(told["bs"])
    random = Random(f"fio {server.spec.seed} {told['name']} {server.now_s}")
    if "runtime" not in told:  # so many bytes, as fast as they go
        size = int(told["size"]) * int(told.get("loops", "1"))
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
    log = "".join(f"{end}, {rate}, 1, 0, 0\n" for end, rate in windows)
    return _json(told, block, int(total // block * block), round(runtime * 1000), random), log


def _pace(server: Server, block: int) -> float:
    """A block costs some time of its own, so that small ones are slower."""
    share: float = min(1.0, 0.05 + 0.95 * (block / PLATEAU_BYTES) ** 0.5)
    return server.pace() * share


def _so_many(server: Server, size: int) -> tuple[int, int]:
    left, seconds = float(size), 0
    while left > 0:
        taken = min(left, max(server.pace(), 1e6))
        server.second(taken, 0.0)
        left -= taken
        seconds += 1
    return 1000 * seconds, size


def _json(told: dict[str, str], block: int, written: int, milliseconds: int, random: Random) -> str:
    rate = written / milliseconds * 1000 if milliseconds else 0.0
    mean_ns = 8 * block / max(rate, 1.0) * 1e9 * random.uniform(0.95, 1.05)
    percentile = {"50.000000": int(mean_ns), "99.000000": int(1.5 * mean_ns), "99.900000": int(2 * mean_ns)}
    side = {
        "io_bytes": written, "io_kbytes": written // 1024, "bw_bytes": round(rate), "bw": round(rate / 1024),
        "iops": rate / block, "runtime": milliseconds, "total_ios": written // block,
        "lat_ns": {
            "min": int(mean_ns / 4), "max": int(3 * mean_ns), "mean": mean_ns, "stddev": mean_ns / 10, "N": written // block,
            "percentile": percentile,
        },
    }  # fmt: skip
    nothing: dict[str, Any] = {
        **dict.fromkeys(("io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios"), 0),
        "lat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0},
    }
    job = {
        "jobname": told["name"], "groupid": 0, "error": 0, "elapsed": milliseconds // 1000 + 1, "job options": told,
        "read": nothing, "write": side, "trim": nothing, "usr_cpu": 8.0, "sys_cpu": 12.0,
    }  # fmt: skip
    return json.dumps({"fio version": VERSION, "time": "simulated", "jobs": [job]})
