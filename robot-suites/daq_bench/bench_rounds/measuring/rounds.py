"""Interleaved repetitions: A B, B A, A B, ... over all points of a part in turn, so that a disturbance of the machine meets
each point in one pair at most. Points whose ratios scatter get further rounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_rounds.measuring.ratios import summary, wants_more
from daq_bench.bench_rounds.measuring.sample import Sample

SUMMARISED = ("bytes_per_s", "cpu_s_per_gb", "max_rss_bytes")


class Progress(Protocol):
    def begin(self, text: str, expected_s: float) -> None:
        """`text` runs now and takes about `expected_s`."""


@dataclass(frozen=True)
class Contender:
    """One side of a comparison. `rounds`: how often at most; None is every round."""

    name: str
    measure: Callable[[], Sample]
    expected_s: float
    rounds: int | None = None


@dataclass(frozen=True)
class Comparison:
    """A ratio of two contenders' `quantity`. Ratios that steer decide whether further rounds are needed."""

    name: str
    numerator: str
    denominator: str
    quantity: str = "bytes_per_s"
    steers: bool = True


@dataclass
class Repetition:
    round: int
    position: int
    contender: str
    load_average: float
    sample: Sample | None
    error: str | None

    def document(self) -> dict[str, Any]:
        return {**vars(self), "sample": self.sample.document() if self.sample else None}


@dataclass
class Point:
    """The measurements under one set of parameters: `key` names these, for machines and for people."""

    key: dict[str, Any]
    label: str
    contenders: Sequence[Contender]
    comparisons: Sequence[Comparison]
    rounds: int
    most_rounds: int
    repetitions: list[Repetition] = field(default_factory=list)
    rounds_done: int = 0
    stopped_by: str = "rounds"

    def errors(self) -> dict[str, str]:
        """Each contender's failure. One is enough, and it is not run again: a contender that fails now and then supports no claim."""
        return {one.contender: one.error for one in self.repetitions if one.error}

    def expected_s(self) -> float:
        return sum(one.expected_s * min(self.rounds, one.rounds or self.rounds) for one in self.contenders)

    def measure(self, progress: Progress) -> None:
        """One round; the order of the contenders turns with every round."""
        number = self.rounds_done
        self.rounds_done += 1
        failed = self.errors()
        order = [c for c in self.contenders if c.name not in failed and (c.rounds is None or number < c.rounds)]
        for position, contender in enumerate(order if number % 2 == 0 else order[::-1]):
            progress.begin(f"{self.label}, round {number + 1}: {contender.name}", contender.expected_s)
            load = os.getloadavg()[0]
            try:
                self.repetitions.append(Repetition(number, position, contender.name, load, contender.measure(), None))
            except BenchError as error:
                self.repetitions.append(Repetition(number, position, contender.name, load, None, str(error)))

    def fail(self, error: str) -> None:
        """The point lacks something that it needs: counts every contender that has not run yet as failed."""
        begun = {one.contender for one in self.repetitions}
        for position, contender in enumerate(self.contenders):
            if contender.name not in begun:
                load = os.getloadavg()[0]
                self.repetitions.append(Repetition(0, position, contender.name, load, None, error))

    def samples(self, contender: str) -> dict[int, Sample]:
        """The contender's samples by round."""
        return {one.round: one.sample for one in self.repetitions if one.contender == contender and one.sample}

    def ratios(self, comparison: Comparison) -> list[float]:
        """One per round in which both sides yielded the quantity; none when a side failed."""
        if self.errors().keys() & {comparison.numerator, comparison.denominator}:
            return []
        above, below = self.samples(comparison.numerator), self.samples(comparison.denominator)
        pairs = [
            (above[number].quantity(comparison.quantity), below[number].quantity(comparison.quantity))
            for number in sorted(above.keys() & below.keys())
        ]
        return [one / other for one, other in pairs if one is not None and other]

    def wants_more(self) -> bool:
        steering = [self.ratios(one) for one in self.comparisons if one.steers]
        return any(wants_more(ratios, self.most_rounds) for ratios in steering if ratios)

    def document(self) -> dict[str, Any]:
        contenders = {}
        for contender in self.contenders:
            samples = self.samples(contender.name).values()
            names = [*SUMMARISED, *sorted({name for sample in samples for name in sample.more})]
            values = {name: [v for sample in samples if (v := sample.quantity(name)) is not None] for name in names}
            contenders[contender.name] = {name: summary(found) for name, found in values.items()}
        return {
            "key": self.key,
            "label": self.label,
            "errors": self.errors(),
            "rounds": self.rounds_done,
            "stopped_by": self.stopped_by,
            "contenders": contenders,
            "ratios": {one.name: summary(self.ratios(one)) for one in self.comparisons},
            "repetitions": [one.document() for one in self.repetitions],
        }


def run_points(
    points: Sequence[Point], progress: Progress, extra_s: float, now: Callable[[], float] = time.monotonic
) -> None:
    """The planned rounds of every point, then further ones, one per wanting point in turn, for at most `extra_s`."""
    for number in range(max(point.rounds for point in points)):
        for point in points:
            if number < point.rounds:
                point.measure(progress)
    deadline = now() + extra_s
    while wanting := [point for point in points if point.wants_more()]:
        for point in wanting:
            if now() >= deadline:
                for late in wanting:
                    late.stopped_by = "time"
                return
            point.measure(progress)
    for point in points:
        if point.rounds_done > point.rounds:
            point.stopped_by = "limit" if point.rounds_done == point.most_rounds else "spread"
