"""The cost of reports: for one run with a spool of 10^5 to 10^7 points, for ten such runs, and how it grows with the points."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import GIB
from daq_bench.bench_model.bundle.column_file import FILE
from daq_bench.bench_rounds.columns import scaled, stated
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, exponent
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings
from daq_bench.reporting_bench import report_bundle

SIZES, QUICK_SIZES = (10**5, 10**6, 10**7), (10**4, 10**5)
RUNS = 10
REPORT, FROM_SPOOL, COLUMNS, JUDGE, CHECK, TREND = (
    "report", "report without column file", "making the column file", "judge", "check-bundle", "trend of ten runs",
)  # fmt: skip
TRIAL = {
    REPORT: "report",
    FROM_SPOOL: "report",
    COLUMNS: "columns",
    JUDGE: "judge",
    CHECK: "check",
    TREND: "trend",
}
SECONDS_PER_POINT = {REPORT: 1e-6, FROM_SPOOL: 4e-6, COLUMNS: 4e-6, JUDGE: 1e-7, CHECK: 6e-5, TREND: 1e-5}
START_S, MOST_S = 12.0, 3600.0
SMOKE_S_MAX, TEN_S_MAX, TEN_BYTES_MAX = 10.0, 60.0, 2 * GIB
EXPONENT_MAX = 1.1  # the cost grows with this power of the points at most; 1 is linear
FIT_FROM_S = 0.2  # below, starting and the clock's grain are measured
POINT_BYTES = 260  # about, for a line and its columns
SMOKE_POINTS = 10**4


def sizes(settings: Settings) -> tuple[int, ...]:
    return QUICK_SIZES if settings.quick else SIZES


def measured(tools: Tools, what: str, points: int) -> Sample:
    roots = [folder_of(tools, points, what != FROM_SPOOL)]
    if what == TREND:
        roots = [tools.scratch / f"ten-{points}-{number}" for number in range(RUNS)]
    return tools.trial(what, MOST_S, "daq_bench.reporting_bench.report_trial", TRIAL[what], *roots)


def folder_of(tools: Tools, points: int, columns: bool) -> Path:
    """A run keeps its name, of which there is one: each has a folder around it."""
    return tools.scratch / f"bundle-{points}{'' if columns else '-spool'}" / report_bundle.RUN


@contextmanager
def bundles(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    """Yields one bundle of each size, and ten of the largest, which share their telemetry by hard links."""
    made: list[Path] = []
    try:
        for points in dict.fromkeys((SMOKE_POINTS, *sizes(settings))):
            whole, bare = folder_of(tools, points, True), folder_of(tools, points, False)
            made += [whole, bare]
            report_bundle.make(whole, points, columns=True)
            linked(whole, bare)
            (bare / FILE).unlink()
        for number in range(RUNS):
            made.append(tools.scratch / f"ten-{sizes(settings)[-1]}-{number}")
            linked(folder_of(tools, sizes(settings)[-1], True), made[-1])
            report_bundle.make_another_night(made[-1], number)
        yield ["the ten runs share one spool by hard links: it is read from memory where it has room for it"]
    finally:
        for folder in made:
            with suppress(FileNotFoundError):
                shutil.rmtree(folder.parent if folder.name == report_bundle.RUN else folder)


def linked(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=lambda one, other: Path(other).hardlink_to(one))


def points(settings: Settings, tools: Tools) -> list[Point]:
    found = []
    every = dict.fromkeys((SMOKE_POINTS, *sizes(settings)))
    for size in every:
        names = [REPORT, FROM_SPOOL, COLUMNS, JUDGE] + ([TREND, CHECK] if size == sizes(settings)[-1] else [])
        contenders = [
            Contender(
                name,
                partial(measured, tools, name, size),
                START_S + size * SECONDS_PER_POINT[name],
                rounds=1 if name == CHECK else 3,
            )
            for name in names
        ]
        comparisons = [Comparison(FROM_SPOOL, FROM_SPOOL, REPORT, "seconds", steers=False)]
        found.append(Point({"points": size}, f"{size:.0e} points", contenders, comparisons, 3, 3))
    return found


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "bundle": "synthetic: line protocol as the agent writes it, half of it of measurements that reports draw",
        "seconds": "wall time within one process for each trial, imports included",
        "memory": "peak of the process, pages of mapped files among it, and that of its largest helper",
        CHECK: "both seals, every derived document, the verdict, the columns, and all reports rendered again; once",
    }


def linear(measured_points: Documents) -> float | None:
    """Exponent of the time that reading a spool takes in its points."""
    return exponent(
        [(point["key"]["points"], stated(point, COLUMNS, "seconds")) for point in measured_points], FIT_FROM_S
    )


def judge(measured_points: Documents) -> list[Criterion]:
    smallest, largest = (
        next((point for point in measured_points if point["key"]["points"] == wanted), None)
        for wanted in (SMOKE_POINTS, max((point["key"]["points"] for point in measured_points), default=0))
    )
    ten = {f"{RUNS} runs": stated(largest, TREND, "seconds") if largest else None}
    memory = {f"{RUNS} runs": stated(largest, TREND, "max_rss_bytes") if largest else None}
    smoke = {"smoke run": stated(smallest, REPORT, "seconds") if smallest else None}
    return [
        each("report.smoke", "seconds for the report of a smoke run", smoke, SMOKE_S_MAX, at_most),
        each(
            "report.ten",
            f"seconds for the trend report of {RUNS} runs of the largest size",
            ten,
            TEN_S_MAX,
            at_most,
        ),
        each("report.memory", "bytes of memory for that", memory, TEN_BYTES_MAX, at_most),
        each(
            "report.linear",
            "exponent of the cost in the points",
            {"all": linear(measured_points)},
            EXPONENT_MAX,
            at_most,
        ),
    ]


PART = Part(
    name="report",
    title="reports on runs with much telemetry",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        scaled("report, s", REPORT, "seconds", 1, 1),
        scaled("MiB", REPORT, "max_rss_bytes", 2**20, 0),
        scaled("without column file, s", FROM_SPOOL, "seconds", 1, 1),
        scaled("column file, s", COLUMNS, "seconds", 1, 2),
        scaled("judge, s", JUDGE, "seconds", 1, 2),
        scaled("check-bundle, s", CHECK, "seconds", 1, 0),
        scaled("trend of ten runs, s", TREND, "seconds", 1, 1),
        scaled("MiB ", TREND, "max_rss_bytes", 2**20, 0),
    ],
    limit=lambda point: "one CPU (two where a spool is read in blocks)",
    hold=bundles,
    space_bytes=lambda settings: 2 * POINT_BYTES * sizes(settings)[-1],
)
