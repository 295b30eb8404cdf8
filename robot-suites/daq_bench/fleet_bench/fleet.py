"""The control node's time and memory against the number of candidates that run at once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from daq_bench.bench_rounds.columns import scaled, stated
from daq_bench.bench_rounds.criteria import Criterion, at_most, each, exponent
from daq_bench.bench_rounds.measuring.rounds import Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Documents, Part, Settings

SIZES, QUICK_SIZES = (1, 8, 37, 75, 150), (2, 8)
FLEET, STAGED = "fleet", "fleet-staged"
BUNDLE_BYTES = 4 << 20  # of a simulated run, staged and left
TRIAL_S, MOST_S, STAGING_S = 15.0, 600.0, 3600.0
EXPONENT_MAX = 1.1  # the cost grows with this power of the candidates at most; 1 is linear
BYTES_PER_CANDIDATE_MAX = 2 << 20
FIT_FROM_S = 0.05  # of CPU; below, the start and the clock's grain are measured


def sizes(settings: Settings) -> tuple[int, ...]:
    return QUICK_SIZES if settings.quick else SIZES


def measured(tools: Tools, candidates: int) -> Sample:
    with tempfile.TemporaryDirectory(dir=tools.scratch) as folder:
        words = (str(candidates), folder, tools.scratch / STAGED)
        return tools.trial(f"a fleet of {candidates}", MOST_S, "daq_bench.fleet_bench.trial", *words)


@contextmanager
def staged(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    """The bundles that the candidates' processes leave, simulated before anything is measured, in a process that ends."""
    folder = tools.scratch / STAGED
    argv = [sys.executable, "-m", "daq_bench.simulation.laboratory", str(folder), str(max(sizes(settings)))]
    try:
        tools.shell.run(argv, STAGING_S).check("the candidates' simulated runs")
        yield ["every bundle is of a simulated run, and says so"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def points(settings: Settings, tools: Tools) -> list[Point]:
    return [
        Point(
            {"candidates": size},
            f"{size} candidates",
            [Contender(FLEET, partial(measured, tools, size), TRIAL_S)],
            [],
            3,
            3,
        )
        for size in sizes(settings)
    ]


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "candidates": "simulated, all at the same time: in the place of each run a process that prints five lines in five seconds "
        "and leaves a sealed bundle that was simulated before",
        "cpu_s": "of the command's own process: inventory, profiles, lanes, locks, waiting, the live table, each bundle read and judged",
    }


def linear(measured_points: Documents) -> float | None:
    """Exponent of the CPU time in the candidates; None also where a size failed."""
    pairs = [(point["key"]["candidates"], stated(point, FLEET, "cpu_s")) for point in measured_points]
    return None if any(cpu is None for _, cpu in pairs) else exponent(pairs, FIT_FROM_S)


def bytes_per_candidate(measured_points: Documents) -> float | None:
    """Growth of the memory from the smallest fleet to the largest, for each candidate more; None where a size failed."""
    known = [(point["key"]["candidates"], stated(point, FLEET, "max_rss_bytes")) for point in measured_points]
    pairs = sorted((size, used) for size, used in known if used is not None)
    if len(pairs) < max(2, len(known)):
        return None
    (few, least), (many, most) = pairs[0], pairs[-1]
    return float((most - least) / (many - few))


def judge(measured_points: Documents) -> list[Criterion]:
    grown, memory = {"all": linear(measured_points)}, {"all": bytes_per_candidate(measured_points)}
    return [
        each("fleet.linear", "exponent of the control node's CPU time in the candidates", grown, EXPONENT_MAX, at_most),
        each("fleet.memory", "bytes of its memory for each candidate more", memory, BYTES_PER_CANDIDATE_MAX, at_most),
    ]


PART = Part(
    name="fleet",
    title="a fleet's own cost on the control node",
    points=points,
    conditions=conditions,
    judge=judge,
    columns=[
        scaled("s", FLEET, "seconds", 1, 1),
        scaled("CPU s", FLEET, "cpu_s", 1, 2),
        scaled("MiB", FLEET, "max_rss_bytes", 2**20, 0),
    ],
    limit=lambda point: "nothing: it waits",
    hold=staged,
    space_bytes=lambda settings: 2 * BUNDLE_BYTES * max(sizes(settings)),
)
