"""Rounds of a comparison as results/raid_vs_3dxp.json holds them, with figures of the test's choice. The report's tests use it too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

START_S = 1_800_000_000.0
IDLE_S, VISIT_S, PACED_S = 10.0, 60.0, 30.0
ROUND_S = IDLE_S + 2 * VISIT_S
Rate = Callable[[int, str], float]  # (round, target) -> B/s
SERIALS = {"reference": ["XP1"], "nand-raid0": ["NA1", "NA2", "NA3"], "nand-raid5": ["NA1", "NA2", "NA3"]}
AMPLIFICATION = {"reference": 1.0, "nand-raid0": 1.0, "nand-raid5": 1.5}
BYTES = 64 * 10**9
PACE = (
    10 * (5568 * 166_000.0) * 0.13
)  # B/s: links, superchunks, and the share of a readout unit that the scenario asks for


def target(name: str) -> dict[str, Any]:
    drives = [
        {"name": f"nvme{number}n1", "model": "Drive", "serial": serial, "size_bytes": 4 * 10**12}
        for number, serial in enumerate(SERIALS[name])
    ]
    level = {"nand-raid0": 0, "nand-raid5": 5}.get(name)
    raid = {} if level is None else {"raid": {"level": level, "chunk": "128KiB"}}
    data = {None: 1, 0: 3, 5: 2}[level]
    return {
        "name": name,
        "kind": "filesystem",
        "directory": f"/srv/{name}",
        "path": f"/srv/{name}/daq-bench-run",
        "filesystem": "xfs",
        "device": {"name": "md0" if raid else "nvme0n1", "size_bytes": data * 4 * 10**12, "members": []},
        "drives": drives,
        "layout": {"drives": SERIALS[name], "destroy": True, "filesystem": "xfs", **raid},
        "tuning_wrong": [],
    }


def visit(name: str, position: int, begin_s: float, rate: float, p99_9_us: float) -> dict[str, Any]:
    drives = [drive["name"] for drive in target(name)["drives"]]
    written_s = begin_s + BYTES / rate
    return {
        "target": name,
        "position": position,
        "write": {
            "begin_s": begin_s,
            "end_s": written_s,
            "bytes_written": BYTES,
            "throughput_bytes_per_s": rate,
            "throughput_bytes_per_s_samples": [rate, rate],
            "latency_us": {"p50": 1.0, "p99": 2.0, "max": 3.0},
            "process_cpu_s": 3.2,
            "machine_kernel_cpu_s": 6.4 * AMPLIFICATION[name],
            "machine_cpu_s": 10.0,
            "machine_interval_s": 10.0,
            "md_threads_cpu_s": {"md0_raid5": 1.28} if name == "nand-raid5" else {},
            "device_bytes_written": {drive: int(BYTES * AMPLIFICATION[name] / len(drives)) for drive in drives},
            "failed": False,
            "admissible": True,
            "reason": None,
        },
        "paced": {
            "begin_s": written_s,
            "end_s": written_s + PACED_S,
            "offered_bytes_per_s": PACE,
            "achieved_fraction": 1.0,
            "offered_superchunks": int(PACE * PACED_S / 5568),
            "lost_superchunks": 0,
            "busy_episodes": 0,
            "latency_us": {
                "p50": p99_9_us / 4,
                "p90": p99_9_us / 3,
                "p99": p99_9_us / 2,
                "p99_9": p99_9_us,
                "p99_99": None,
                "max": 2 * p99_9_us,
            },
            "failed": False,
            "admissible": True,
            "reason": None,
        },
    }


def found(
    rate: Rate, rounds: int = 6, sets: tuple[str, ...] = ("nand-raid0", "nand-raid5"), tail: Rate | None = None
) -> dict[str, Any]:
    """Each set in a group of its own; `tail`: the p99.9 of the paced record, us."""
    measured, at_s = [], START_S
    for group, name in enumerate(sets, start=1):
        for turn in range(1, rounds + 1):
            names = ["reference", name] if turn % 2 else [name, "reference"]
            visits = [
                visit(one, place, at_s + IDLE_S + place * VISIT_S, rate(turn, one), tail(turn, one) if tail else 1e5)
                for place, one in enumerate(names)
            ]
            idle = {"begin_s": at_s, "end_s": at_s + IDLE_S}
            measured.append(
                {"group": group, "round": turn, "reference_first": turn % 2 == 1, "idle": idle, "visits": visits}
            )
            at_s += ROUND_S
    return {
        "schema_version": 1,
        "reference": "reference",
        "sets": list(sets),
        "judged_set": sets[0],
        "write": {"write_size": BYTES, "block_size": 8 * 2**20, "threads": 1, "io_depth": 4},
        "paced": {"offered_bytes_per_s": PACE, "seconds": PACED_S},
        "targets": {name: target(name) for name in ("reference", *sets)},
        "rounds": measured,
        "limits": [],
        "invalid": [],
        "reasons": {},
    }


def power(document: Mapping[str, Any], watts: Mapping[str, float], idle_w: float = 200.0) -> list[tuple[float, float]]:
    """A reading each second: idle power at rest, `watts` more while a target is written to."""
    readings = []
    for one in document["rounds"]:
        readings += [(one["idle"]["begin_s"] + second, idle_w) for second in range(10)]
        for each in one["visits"]:
            readings += [(each["write"]["begin_s"] + second, idle_w + watts[each["target"]]) for second in range(10)]
    return readings
