"""Cost per byte against numbers of applications and targets, and from it what a server needs for 25, 50 and 100 GB/s."""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any

from daq_bench.bench_model.base.units import GB, GIB
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings, limit_by_cpu

PATHS = ("copy", "zero-copy")
APPLICATIONS, TARGETS = (1, 2, 4), (1, 2, 4)
NULL, FILES = "null sink", "files"
TARGET_BYTES = 2 * GIB  # of each target's file
RATES_GB_PER_S = (25, 50, 100)
# How often each byte crosses the memory's bus: the network card writes it, the checksum reads it, the drive reads it; the copy reads
# it (with the checksum, once) and writes it with non-temporal stores, which read nothing first.
CROSSINGS = {"copy": 4, "zero-copy": 3}
CORE_BUSY = 0.8  # share of a core that may be planned: the rest is for interrupts, telemetry and uneven arrival
MEMORY_BUSY = 0.7  # of a memory channel's peak, which no mix of reads and writes reaches
DDR5_CHANNEL_BYTES_PER_S = 38.4 * GB  # DDR5-4800: 4.8e9 transfers/s of 8 B (JEDEC JESD79-5)
# PCI Express 4.0: 16e9 transfers/s, 128 of 130 bits are data (PCIe Base Specification 4.0, 4.2.2); some 85 % of these are payload
# with packets of 256 B and their acknowledgements.
PCIE4_LANE_BYTES_PER_S = 16e9 * 128 / 130 / 8 * 0.85


def seconds(settings: Settings) -> float:
    return settings.seconds(3.0, 1.0)


def points(settings: Settings, tools: Tools) -> list[Point]:
    duration = seconds(settings)

    def null(path: str, applications: int) -> Sample:
        return tools.run_daqwriter(
            "minidaq", "--sink=null", "--unpaced", f"--applications={applications}", f"--data-path={path}",
            f"--duration={duration}", timeout_s=START_S + 4 * duration,
        )  # fmt: skip

    def files(path: str, targets: int) -> Sample:
        return tools.record_on(
            targets, "minidaq", "--unpaced", f"--bytes={targets * TARGET_BYTES}", f"--data-path={path}", "--ring-size=16MiB",
            f"--duration={duration}", timeout_s=START_S + 20 * duration,
        )  # fmt: skip

    made = []
    for where, measure, counts in ((NULL, null, APPLICATIONS), (FILES, files, TARGETS)):
        for count in counts:
            contenders = [Contender(path, partial(measure, path, count), duration + 2.5) for path in PATHS]
            compared = [Comparison("copy / zero-copy", *PATHS, "cpu_s_per_gb")]
            key = {"where": where, "count": count}
            thing = "application" if where == NULL else "target"
            label = f"{where}, {count} {thing}{'s' * (count > 1)}"
            made.append(Point(key, label, contenders, compared, settings.rounds, settings.most_rounds))
    return made


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "superchunk_bytes": 5568,
        "links_per_application": 10,
        "checksum": "crc32",
        "targets": "files of one drive, one application each",
        "seconds_per_measurement": seconds(settings),
    }


def limit(point: dict[str, Any]) -> str:
    return limit_by_cpu(
        point["contenders"]["zero-copy"],
        2 * point["key"]["count"],
        "memory" if point["key"]["where"] == NULL else "drive",
    )


def judge(measured: Documents) -> list[Criterion]:
    return []


def needs(measured: Documents, cpus: int) -> list[dict[str, Any]]:
    """Cores, memory and lanes for each of `RATES_GB_PER_S` by either path, from the dearest cost per byte measured with at most as many
    applications as there are CPUs: further ones share a core, and say nothing of a server that has one for each. Empty when
    a measurement that it needs is missing."""
    made = []
    for path in PATHS:
        costs = {
            where: [
                columns.median_of(point, path, "cpu_s_per_gb")
                for point in measured
                if point["key"]["where"] == where and point["key"]["count"] <= cpus
            ]
            for where in (NULL, FILES)
        }
        known = {where: [cost for cost in found if cost is not None] for where, found in costs.items()}
        if any(not found or len(known[where]) < len(found) for where, found in costs.items()):
            return []
        for rate in RATES_GB_PER_S:
            lanes = rate * GB / PCIE4_LANE_BYTES_PER_S
            memory = CROSSINGS[path] * rate * GB
            made.append(
                {
                    "rate_gb_per_s": rate,
                    "path": path,
                    "cores_memory_only": math.ceil(max(known[NULL]) * rate / CORE_BUSY),
                    "cores": math.ceil(max(known[FILES]) * rate / CORE_BUSY),
                    "memory_bytes_per_s": memory,
                    "ddr5_4800_channels": math.ceil(memory / (MEMORY_BUSY * DDR5_CHANNEL_BYTES_PER_S)),
                    "pcie4_lanes_each_way": math.ceil(lanes),
                }
            )
    return sorted(made, key=lambda row: (row["rate_gb_per_s"], row["path"]))


def table_of_needs(measured: Documents) -> list[str]:
    """Markdown, with its assumptions; one line where it cannot be told."""
    rows = needs(measured, os.cpu_count() or 1)
    if not rows:
        return ["No budget: not everything that it takes was measured."]
    head = (
        "rate, GB/s", "path", "cores, drives' I/O included", "of them without a drive", "memory traffic, GB/s",
        "channels of DDR5-4800", "lanes of PCIe 4.0, in and out each",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = (
            row["rate_gb_per_s"], row["path"], row["cores"], row["cores_memory_only"], f"{row['memory_bytes_per_s'] / GB:.0f}",
            row["ddr5_4800_channels"], row["pcie4_lanes_each_way"],
        )  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return [
        *lines,
        "",
        f"Assumed: cores like this machine's, at most {CORE_BUSY:.0%} busy, and the dearest measured cost per byte (emulated source "
        "included, as a receiver would cost about as much or more); links of 10 GB/s whose card writes each byte to memory once, so "
        f"that a byte crosses the bus {CROSSINGS['zero-copy']} times, and {CROSSINGS['copy']} times when it is copied; memory at "
        f"{MEMORY_BUSY:.0%} of its peak; {PCIE4_LANE_BYTES_PER_S / GB:.2f} GB/s of payload for each PCIe 4.0 lane; every thread beside "
        "its memory and drives (no byte crosses between sockets). Nothing here was measured at these rates.",
    ]


PART = Part(
    name="budget",
    title="Cost per byte by numbers of applications and targets",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        *[columns.rate(path, path) for path in PATHS],
        *[columns.ranged(f"{path}, CPU s/GB", path, "cpu_s_per_gb", "{:.4f}") for path in PATHS],
        columns.ratio("cost, copy / zero-copy", "copy / zero-copy"),
    ],
    limit=limit,
    appendix=table_of_needs,
    space_bytes=lambda settings: max(TARGETS) * TARGET_BYTES,
    extra_s=20.0,
)
