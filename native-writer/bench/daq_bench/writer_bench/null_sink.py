"""The program without a drive: the full rate of one readout unit without loss, and how near copying with checksum comes to copying."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds import columns
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, ratio_of
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings, limit_by_cpu

CHECKSUMS = ("crc32", "adler32", "off")
COPY = "non-temporal copy"
PACED, UNPACED, ALL_CORES = "paced, 10 links x 166 kHz", "unpaced", "unpaced, an application per CPU"
PATHS = {"copy": "copied", "zero-copy": "zero-copy"}  # of the data, and how it is said
LEAST_OF_COPY = {"copy": 0.85, "zero-copy": 1.5}  # against all cores' non-temporal copy


def copy_sample(document: dict[str, Any], argv: tuple[str, ...], all_cores: bool = False) -> Sample:
    """The non-temporal copy of one core or of all, from the rows for DRAM of `daqwriter checksum`; beside it what all cores copy,
    check, and do of both at once."""
    if document["status"] != "complete":
        raise BenchError(f"daqwriter checksum is {document['status']}")
    rows = {(row["operation"], row["threads"]): row["bytes_per_s"]["median"] for row in document["memory"]}
    cores = max((threads for _, threads in rows), default=1)
    whose, place = (
        ("all cores'", ("non-temporal-copy", cores)) if all_cores else ("one core's", ("non-temporal-copy", 1))
    )
    if place not in rows:
        raise BenchError(f"daqwriter checksum has no row for {whose} non-temporal copy")
    of_all = {f"{name}_bytes_per_s": rate for (name, threads), rate in rows.items() if threads == cores}
    return Sample(rows[place], more={**of_all, "all_cores": cores}, argv=argv)


def points(settings: Settings, tools: Tools) -> list[Point]:
    long_s, short_s = settings.seconds(100.0, 5.0), settings.seconds(4.0, 1.0)

    def minidaq(checksum: str, duration: float, *options: str, path: str = "copy") -> Sample:
        return tools.run_daqwriter(
            "minidaq",
            "--sink=null",
            "--links=10",
            f"--data-path={path}",
            f"--duration={duration}",
            f"--checksum={checksum}",
            *options,
            timeout_s=START_S + 2 * duration,
        )

    def copying(all_cores: bool = False) -> Sample:
        return copy_sample(
            *tools.checksum("--sizes=64KiB", "--threads=1", "--variants=zlib", timeout_s=START_S), all_cores
        )

    # A virtual CPU can stand still for longer than the 72 ms that the default rings bridge; servers have the memory.
    paced = Contender("crc32", partial(minidaq, "crc32", long_s, "--ring-size=256MiB"), long_s + 4)
    unpaced = [Contender(name, partial(minidaq, name, short_s, "--unpaced"), short_s + 2) for name in CHECKSUMS]
    everywhere = f"--applications={os.cpu_count() or 1}"
    of_all = [
        Contender(path, partial(minidaq, "crc32", short_s, "--unpaced", everywhere, path=path), short_s + 2)
        for path in PATHS
    ]
    return [
        Point({"paced": True, "duration_s": long_s}, PACED, [paced], [], 1, 1),
        Point(
            {"paced": False, "duration_s": short_s},
            UNPACED,
            [*unpaced, Contender(COPY, copying, 5.0)],
            [Comparison(name, name, COPY) for name in CHECKSUMS],
            settings.rounds,
            settings.most_rounds,
        ),
        Point(
            {"paced": False, "duration_s": short_s, "applications": os.cpu_count() or 1},
            ALL_CORES,
            [*of_all, Contender(COPY, partial(copying, all_cores=True), 6.0)],
            [Comparison(path, path, COPY) for path in PATHS],
            settings.rounds,
            settings.most_rounds,
        ),
    ]


def conditions(settings: Settings) -> dict[str, Any]:
    return {"sink": "null: no I/O", "links": 10, "superchunk_bytes": 5568}


def judge(measured: Documents) -> list[Criterion]:
    paced = [point for point in measured if point["label"] == PACED]

    def of_paced(quantity: str) -> dict[str, float | None]:
        return {point["label"]: columns.median_of(point, "crc32", quantity) for point in paced}

    unpaced = [point for point in measured if point["label"] == UNPACED]
    ratios = {f"unpaced, {name}": ratio for name in CHECKSUMS for ratio in ratio_of(unpaced, name).values()}
    of_all = [point for point in measured if point["label"] == ALL_CORES]
    return [
        each("null-sink.lost", "superchunks lost at 9.243 GB/s with crc32", of_paced("lost_superchunks"), 0, at_most),
        each("null-sink.achieved", "share of the due rate that the source achieved", of_paced("achieved_fraction"), 1),
        each("null-sink.copy", "unpaced throughput against one core's non-temporal copy", ratios, 0.80),
        *[
            each(
                f"null-sink.all.{path}",
                f"crc32 on all cores, {said}, against all cores' non-temporal copy",
                ratio_of(of_all, path),
                LEAST_OF_COPY[path],
            )
            for path, said in PATHS.items()
        ],
    ]


def limit(point: dict[str, Any]) -> str:
    if point["key"]["paced"]:
        return "nothing: the rate is set"
    if point["label"] == ALL_CORES:
        return limit_by_cpu(point["contenders"]["zero-copy"], 2 * point["key"]["applications"], "memory")
    return limit_by_cpu(point["contenders"]["crc32"], 2, "one core's path to memory")


PART = Part(
    name="null-sink",
    title="MiniDAQ without a drive",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        columns.rate("crc32", "crc32"),
        columns.rate("adler32", "adler32"),
        columns.rate("off", "off"),
        *[columns.rate(f"crc32, {said}", path) for path, said in PATHS.items()],
        columns.rate(COPY, COPY),
        columns.rate(f"{COPY}, all cores", COPY, "non-temporal-copy_bytes_per_s"),
        columns.rate("copy with crc32, all cores", COPY, "crc32-copy_bytes_per_s"),
        columns.rate("crc32, all cores", COPY, "crc32_bytes_per_s"),
        *[columns.ratio(f"{name} / {COPY}", name) for name in CHECKSUMS],
        *[columns.ratio(f"{said} / {COPY}", path) for path, said in PATHS.items()],
        columns.value("lost", "crc32", "lost_superchunks", "{:.0f}"),
        columns.value("achieved", "crc32", "achieved_fraction", "{:.6f}"),
        columns.value("crc32, CPU s/GB", "crc32", "cpu_s_per_gb", "{:.4f}"),
    ],
    limit=limit,
    extra_s=15.0,
)
