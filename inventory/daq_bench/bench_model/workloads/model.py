"""One interface for each workload: its MODEL says what covers its plan, how much load it counts, and which documents belong to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, Struct
from daq_bench.bench_model.workloads.plan import Coverage, Held, Plan

COUNTED_MIN = 0.99  # [P] share of what was asked for, as of the source's superchunks
RUNTIME_MIN = 0.97  # [P] of the time that was asked for: of a point, and of a soak

Maker = Callable[
    [Path, Run], Document | Struct | None
]  # from a bundle and its run.json; None: the run has nothing to do with it


def of_result(file: str, document: Callable[[Document], Document]) -> Maker:
    """Makes a document of another one of the run alone; none where the run has no such other."""
    return lambda bundle, _: document(found) if (found := find_document(bundle, file)) is not None else None


@dataclass(frozen=True)
class Asked:
    """The parameters of one workload, sizes in bytes, and those of its scenario."""

    own: Mapping[str, Any]
    scale: float
    duration_s: float
    repetitions: int

    def rate(self, group: str | None = None) -> float:
        """B/s of the paced load at scale 1, all links."""
        paced = self.own[group] if group else self.own
        return float(paced["links"] * paced["superchunk_bytes"] * paced["superchunk_rate_hz"])


@dataclass(frozen=True)
class Count:
    """`path` of a number in results/<workload>.json, `[]` for each of a list, and the least that it must be.

    `least` gets what was asked and all that stands beside and above the number; None: nothing is asked of this one."""

    path: str
    least: Callable[[Asked, Document], float | None]
    share: float = COUNTED_MIN


def stated(*keys: str) -> Callable[[Asked, Document], float]:
    """The parameter itself, which the result repeats."""

    def least(asked: Asked, _: Document) -> float:
        found: Any = asked.own
        for key in keys:
            found = found[key]
        return float(found)

    return least


@dataclass(frozen=True)
class Beside:
    """A document of the workload besides what its run leaves, or the one that this follows from. `make`: makes it at a run's end, and
    again when the bundle is checked. `held`: holds it against plan and result, where a verdict rests on both. `kind`: its type."""

    file: str
    make: Maker | None = None
    held: Held | None = None
    kind: type[Struct] | None = None


def most_repetitions(plan: Plan, metric: str) -> int:
    return plan.repetitions_max


def once(plan: Plan, metric: str) -> int:
    return 1


@dataclass(frozen=True)
class Model:
    """All that evidence asks of one workload. `result`: the type of its result. `times`: how often, at most, a plan measures what a
    metric is of: the repetitions by which it is decided. `times_field`: the workload's own field for that; empty: the scenario's
    `repetitions`."""

    coverage: Coverage
    counts: tuple[Count, ...]
    beside: tuple[Beside, ...] = ()
    times: Callable[[Plan, str], int] = most_repetitions
    times_field: Callable[[str], str] = lambda metric: ""
    result: type[Struct] = field(kw_only=True)
