"""A workload's plan: its steps, each with the time that it takes, the bytes that it writes and the room that it needs meanwhile.

Progress, preflight, `daq-bench plan` and docs/scenarios.md follow from it. Sizes, counts and times come from the functions that the run
itself takes them from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import binary_label, decimal_label
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario

# The demand of one readout unit (DUNE paper, section 1): what a drive that passes takes, so that one of which no rate is known is
# planned with it. A slower drive takes longer; a faster one is written more wherever a step lasts for a time.
UNIT_BYTES_PER_S = Demand(10, 5568, 166000.0, 1.0, 1.0).real_bytes_per_s

WRITE_BYTES_PER_S_MIN = 20e6  # slower than any drive that one would qualify: bounds the wait
START_S = 0.6  # until fio or daqwriter writes


@dataclass(frozen=True)
class Need:
    """An amount of space or memory that a workload needs at a time, with how it comes about."""

    size_bytes: int
    arithmetic: str


def rings(key: str, number: int, size_bytes: int) -> Need:
    """RAM for so many rings of `size_bytes` B, the value of the parameter `key`."""
    need = number * size_bytes
    return Need(need, f"{key}: {number} rings of {binary_label(size_bytes)} need {decimal_label(need)}")


@dataclass(frozen=True)
class Ground:
    """The target as a plan knows it. `capacity_bytes`: of the drive or array; `room_bytes`: what is free on it; None: not known.

    `rate_bytes_per_s`: what the target takes. `spent_bytes`: by earlier runs, of the scenario's write budget. `copies`: drive writes per
    byte."""

    capacity_bytes: int | None = None
    room_bytes: int | None = None
    rate_bytes_per_s: float = UNIT_BYTES_PER_S
    raw: bool = False
    candidate: Candidate | None = None
    spent_bytes: int = 0
    copies: int = 1

    def seconds(self, size_bytes: float | None) -> float | None:
        """How long the target takes for so much; None where that is not known."""
        return None if size_bytes is None else size_bytes / self.rate_bytes_per_s

    def written(self, seconds: float, offered_bytes_per_s: float | None = None) -> float:
        """Bytes that are written in `seconds`: what the target takes, or what is offered where that is less."""
        rate = self.rate_bytes_per_s
        return seconds * (rate if offered_bytes_per_s is None else min(rate, offered_bytes_per_s))


ANYWHERE = Ground()


@dataclass(frozen=True)
class Step:
    """One part of a workload. `times`: how often it is made; the other figures are of one time. None: not known before the target is.

    `bytes_written`: to the target, at most where a run may end earlier. `room_bytes` with `arithmetic`: kept there meanwhile.
    `on`: name of the target that is written, where it is not the run's own."""

    name: str
    duration_s: float | None
    bytes_written: float | None = 0.0
    room_bytes: int = 0
    arithmetic: str = ""
    on: str = ""
    times: int = 1


Planned = Callable[[Scenario, Ground], Sequence[Step]]


def duration_of(steps: Sequence[Step]) -> float | None:
    return _total([(one.duration_s, one.times) for one in steps])


def written_by(steps: Sequence[Step]) -> float | None:
    """Bytes of all steps; None where one is not known."""
    return _total([(one.bytes_written, one.times) for one in steps])


def _total(parts: Sequence[tuple[float | None, int]]) -> float | None:
    known = [value * times for value, times in parts if value is not None]
    return float(sum(known)) if len(known) == len(parts) else None


def need_of(steps: Sequence[Step]) -> Need:
    """The most room that any step needs: each gives back what it took."""
    largest = max(steps, key=lambda one: one.room_bytes, default=Step("none", 0.0, arithmetic="no workload"))
    return Need(largest.room_bytes, largest.arithmetic)
