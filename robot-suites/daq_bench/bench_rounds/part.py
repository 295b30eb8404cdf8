"""A part of the bench: points to measure, criteria, and columns of its table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_rounds.criteria import Criterion
from daq_bench.bench_rounds.measuring.rounds import Point
from daq_bench.bench_rounds.measuring.tools import Tools

Documents = list[dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """Describes how thoroughly to look. The quick look is for development: its figures are never the claim."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        return 3 if self.quick else 5

    @property
    def most_rounds(self) -> int:
        return 3 if self.quick else 15

    def seconds(self, full: float, quick: float) -> float:
        return quick if self.quick else full


Column = tuple[str, Callable[[dict[str, Any]], str]]


@contextmanager
def nothing_to_hold(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    yield []


@dataclass(frozen=True)
class Part:
    """`hold` keeps what the points need (files, huge pages) while they run, and yields notes for the reader. `derive` makes
    documents of points out of the other parts' documents, where the part measures nothing itself. `extra_s` is for further
    rounds, `space_bytes` the most that its files take at once. `require` refuses before anything is measured. Asking for the
    part `along` brings this one too. `appendix`: Markdown below the table, from the points."""

    name: str
    title: str
    points: Callable[[Settings, Tools], list[Point]]
    conditions: Callable[[Settings], dict[str, Any]]
    judge: Callable[[Documents], list[Criterion]]
    columns: Sequence[Column]
    limit: Callable[[dict[str, Any]], str]
    hold: Callable[[Settings, Tools], AbstractContextManager[list[str]]] = nothing_to_hold
    derive: Callable[[Documents], Documents] | None = None
    space_bytes: Callable[[Settings], int] = lambda settings: 0
    extra_s: float = 0.0
    require: Callable[[Tools], None] = lambda tools: None
    along: str = ""
    appendix: Callable[[Documents], list[str]] = lambda points: []


def busy_cpus(contender: dict[str, Any]) -> float | None:
    """CPUs that a contender kept busy, by its medians."""
    rate, cost = contender["bytes_per_s"]["median"], contender["cpu_s_per_gb"]["median"]
    return None if rate is None or cost is None else float(rate * cost / 1e9)


def limit_by_cpu(contender: dict[str, Any], threads: int, otherwise: str) -> str:
    """`CPU` when the threads, or all the CPUs, had nothing left to give."""
    busy = busy_cpus(contender)
    if busy is None:
        return "failed"
    available = min(threads, os.cpu_count() or 1)
    return f"CPU ({busy:.2f} of {available} busy)" if busy >= 0.9 * available else otherwise
