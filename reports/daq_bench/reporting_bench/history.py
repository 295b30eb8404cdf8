"""The cost of what reads all bundles, for a laboratory's thousands of small runs: the index made anew, and each reader that asks it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_rounds.columns import scaled, stated
from daq_bench.bench_rounds.criteria import Criterion, at_most, each
from daq_bench.bench_rounds.measuring.rounds import Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings
from daq_bench.reporting_bench.history_bundles import make_history

SIZES, QUICK_SIZES = (1000, 10_000), (50, 200)
FIRST, READERS = ("rebuild", "lot_rows"), ("earlier", "trend", "site", "lot")
RUNS_OF_ONE = 100
SECONDS_PER_RUN = {
    "rebuild": 0.003,
    "lot_rows": 0.003,
    "lot": 0.0007,
    "earlier": 0.0002,
    "trend": 0.0004,
    "site": 0.0006,
}
START_S, MOST_S = 3.0, 3600.0
READER_S_MAX, READER_BYTES_MAX = 60.0, 10**9
RUN_BYTES = 200_000  # about, with the file system's blocks


def sizes(settings: Settings) -> tuple[int, ...]:
    return QUICK_SIZES if settings.quick else SIZES


def folder_of(tools: Tools, runs: int) -> Path:
    return tools.scratch / f"history-{runs}"


def measured(tools: Tools, what: str, runs: int) -> Sample:
    return tools.trial(what, MOST_S, "daq_bench.reporting_bench.history_trial", what, folder_of(tools, runs))


@contextmanager
def bundles(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    made = [folder_of(tools, runs) for runs in sizes(settings)]
    try:
        for folder, runs in zip(made, sizes(settings), strict=True):
            make_history(folder, runs, max(1, runs // RUNS_OF_ONE))
        yield ["the index is made anew by `rebuild` and `lot_rows`, which run first; the readers find it"]
    finally:
        for folder in made:
            with suppress(FileNotFoundError):
                shutil.rmtree(folder)


def points(settings: Settings, tools: Tools) -> list[Point]:
    return [
        Point({"runs": runs}, f"{runs} runs", [_contender(tools, what, runs) for what in (*FIRST, *READERS)], [], 3, 3)
        for runs in sizes(settings)
    ]


def _contender(tools: Tools, what: str, runs: int) -> Contender:
    seconds = START_S + runs * SECONDS_PER_RUN[what]
    return Contender(what, partial(measured, tools, what, runs), seconds, rounds=1 if what in FIRST else 3)


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "bundles": f"synthetic, {RUNS_OF_ONE} runs of each candidate, 200 lines of telemetry, a profile of the shipped requirements",
        "earlier": "the runs of one candidate, as a night reads them for each run that has ended",
        "lot_rows": "what a lot needs of each bundle is read into the index: the first lot over the folder, without the document",
        "lot": "HTML, PDF and JSON of all runs, which are on drives of one model; no run counts as evidence",
        "trend": "HTML, PDF and JSON of one candidate among all",
    }


def judge(measured_points: Documents) -> list[Criterion]:
    largest = max(measured_points, key=lambda point: int(point["key"]["runs"]), default=None)

    def of(quantity: str) -> dict[str, float | None]:
        return {what: stated(largest, what, quantity) if largest else None for what in (*FIRST, *READERS)}

    return [
        each(
            "history.seconds",
            "seconds of each reader of the largest history, and of the index made anew",
            of("seconds"),
            READER_S_MAX,
            at_most,
        ),
        each("history.memory", "bytes of memory for that", of("max_rss_bytes"), READER_BYTES_MAX, at_most),
    ]


PART = Part(
    name="history",
    title="what reads all bundles of a laboratory",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        *(scaled(f"{what}, s", what, "seconds", 1, 1) for what in (*FIRST, *READERS)),
        *(scaled(f"{what}, MiB", what, "max_rss_bytes", 2**20, 0) for what in (*FIRST, *READERS)),
    ],
    limit=lambda point: "CPU: every CPU for `rebuild` and `lot_rows`, one for the others",
    hold=bundles,
    space_bytes=lambda settings: RUN_BYTES * sum(sizes(settings)),
)
