"""MiniDAQ by request size, copying and zero-copy, against the synthetic write with the same number of writing threads."""

from __future__ import annotations

from functools import partial
from typing import Any

from daq_bench.bench_model.base.units import GIB, MIB, binary_label
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, each, ratio_of
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import UNTIL_LAST_BLOCK, Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings, limit_by_cpu

REQUESTS = [1, 2, 4, 8, 16, 32]  # MiB
QUICK_REQUESTS = [1, 8, 32]
LARGEST_BLOCK_BYTES = 8 * MIB
IN_FLIGHT_BYTES = 32 * MIB  # of each writing thread, on all sides: a drive sees bytes, whatever the block
APPLICATIONS = 2
FILE_BYTES = 16 * GIB  # that all fresh files of a run may take, the same on all sides
PATHS = ("copy", "zero-copy")
NULL = ", null sink"
OPEN = ", until the last block"


def seconds(settings: Settings) -> float:
    return settings.seconds(1.5, 0.6)


def make_point(settings: Settings, tools: Tools, request: int) -> Point:
    duration = seconds(settings)
    timeout_s = START_S + 10 * duration
    block = min(request, LARGEST_BLOCK_BYTES)
    blocks = [f"--block-size={block}", f"--io-depth={IN_FLIGHT_BYTES // block}"]

    def minidaq(path: str) -> list[str]:
        return [
            "--mode=triggered",
            f"--request-size={request}",
            "--unpaced",
            f"--applications={APPLICATIONS}",
            "--links=5",
            f"--data-path={path}",
            *blocks,
            f"--duration={duration}",
            f"--bytes={FILE_BYTES}",
        ]

    write = [*blocks, f"--threads={APPLICATIONS}", f"--duration={duration}"]

    def on_disk(command: str, *options: str) -> Sample:
        return tools.record(command, *options, timeout_s=timeout_s)

    def on_null(command: str, *options: str) -> Sample:
        return tools.run_daqwriter(command, "--sink=null", *options, timeout_s=timeout_s)

    expected = duration + 1.5
    disk = {"write": partial(on_disk, "write", *write, f"--span={FILE_BYTES}")}
    null = {"write": partial(on_null, "write", *write, f"--span={GIB}")}
    for path in PATHS:
        disk[path] = partial(on_disk, "minidaq", *minidaq(path))
        null[path] = partial(on_null, "minidaq", *minidaq(path))
    contenders = [Contender(name, measure, expected) for name, measure in disk.items()]
    # The program's own limit: once is enough to see whether it is far above the drive.
    contenders += [Contender(f"{name}{NULL}", measure, expected, rounds=1) for name, measure in null.items()]
    comparisons = [Comparison(path, path, "write") for path in PATHS]
    comparisons += [Comparison(f"{path}{OPEN}", path, "write", UNTIL_LAST_BLOCK, steers=False) for path in PATHS]
    key = {"request_bytes": request, "block_bytes": block}
    return Point(key, binary_label(request), contenders, comparisons, settings.rounds, settings.most_rounds)


def points(settings: Settings, tools: Tools) -> list[Point]:
    return [make_point(settings, tools, request * MIB) for request in (QUICK_REQUESTS if settings.quick else REQUESTS)]


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "condition": "fresh file, preallocated, on all sides; rates include the final flush",
        "applications": APPLICATIONS,
        "links_per_application": 5,
        "bytes_in_flight_per_thread": IN_FLIGHT_BYTES,
        "seconds_per_measurement": seconds(settings),
    }


def judge(measured: Documents) -> list[Criterion]:
    return [
        each(f"minidaq.{path}", f"MiniDAQ, {path}, against synthetic writes, every request size", ratios, 0.97)
        for path in PATHS
        for ratios in [ratio_of(measured, path)]
    ]


def limit(point: dict[str, Any]) -> str:
    """The limit of the copying path, which has more to do."""
    return limit_by_cpu(point["contenders"]["copy"], 2 * APPLICATIONS, "drive")


PART = Part(
    name="minidaq",
    title="MiniDAQ (2 applications x 5 links) against synthetic writes with 2 threads",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        columns.rate("write", "write"),
        *[
            column
            for path in PATHS
            for column in (
                columns.rate(path, path),
                columns.ratio(f"{path} / write", path),
                columns.ratio(f"{path} / write{OPEN}", f"{path}{OPEN}"),
                columns.value(f"{path}: share of CPU copying", path, "copy_share", "{:.1%}"),
            )
        ],
        *[columns.rate(f"{name}{NULL}", f"{name}{NULL}") for name in ("write", *PATHS)],
    ],
    limit=limit,
    space_bytes=lambda settings: FILE_BYTES,
    extra_s=20.0,
)
