"""The bench's knowledge of a workload before it runs: its plan, what it refuses, its shortcomings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from daq_bench.bench_model.base.units import GB
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.plan import ANYWHERE, Ground, Need, Planned, duration_of, need_of

RESERVE_BYTES = 1 * GB  # left free on the target's file system: a machine with a full disk is no fit test bed
Report = Callable[[str, int, int, float], None]  # (text, step, steps, expected seconds)
Run = Callable[[RunContext, Report], Document]
Check = Callable[[RunContext, Any], None]  # raises AssertionError; it takes the result as its type
Reach = Callable[[str], Machine]  # links to a machine by its name in the inventory
Note = tuple[str, Document]  # an event's text and its data


def _accept(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    """Accepts: there is nothing to check beyond space and memory."""


def _no_peers(scenario: Scenario, candidate: Candidate, machine: Machine, reach: Reach) -> None:
    """Accepts: no other machine takes part."""


def _no_memory(scenario: Scenario) -> Need:
    return Need(0, "no buffers")


def _no_limits(scenario: Scenario) -> list[str]:
    return []


def _no_notes(result: object) -> Iterable[Note]:
    return ()


class Row(Protocol):
    @property
    def reason(self) -> str | None: ...


def at_least_half(what: str, rows: Sequence[Row]) -> None:
    """Raises AssertionError when most rows do not count, so that no curve can be drawn from them."""
    reasons = [row.reason for row in rows if row.reason]
    if 2 * len(reasons) > len(rows):
        raise AssertionError(f"most {what} do not count: {', '.join(sorted(set(reasons)))}")


@dataclass(frozen=True)
class Workload:
    (
        """A suite `robot-suites/suites/<name>.robot`, its parameters `workloads.<name>` of a scenario, its `results/<name>.json`.

    `plan`: its steps. `memory`: RAM for buffers, which the candidate must declare. `check`: raises RefusedError, before anything is
    written, for a load that cannot work on this candidate. `check_peers`: the same for what other machines have to answer.
    `limits`: one sentence for each respect in which the scenario asks for no real measurement, whatever a requirement profile demands
    (bench_model.evidence.demanded_load); they forbid a PASS and stand on the report's first page.
    `raw`: it can load a drive that has no file system. `program`: this project's program that it needs besides daqwriter.

    `run`: loads the candidate and returns the result; `action`: its suite's keyword for that, in words that say what is done.
    All that the result rests on comes from the run's scenario, from the context's
    machine, and from that machine's `observe` for values that no command gives: then the result can be extracted again from the journal
    (rig.checking.extraction), without the context's facilities. `checks`: keywords of its suite, which show that the result is whole.
    `notes`: BUSY episodes and losses in the result that become events of the run."""
        ""
    )

    name: str
    plan: Planned
    run: Run
    action: str
    memory: Callable[[Scenario], Need] = _no_memory
    check: Callable[[Scenario, Candidate, Survey], None] = _accept
    check_peers: Callable[[Scenario, Candidate, Machine, Reach], None] = _no_peers
    limits: Callable[[Scenario], list[str]] = _no_limits
    raw: bool = False
    program: str = ""  # of the build, besides daqwriter, by its file's name
    checks: tuple[Check, ...] = ()
    notes: Callable[[Any], Iterable[Note]] = _no_notes
    stem: str = ""  # of the result's file where it is not the name

    def need(self, scenario: Scenario, ground: Ground = ANYWHERE) -> Need:
        """The most that it keeps on the target at a time."""
        return need_of(self.plan(scenario, ground))

    def seconds(self, scenario: Scenario, ground: Ground = ANYWHERE) -> float | None:
        """Expected duration; None where it takes the whole of a target whose size is not known."""
        return duration_of(self.plan(scenario, ground))

    @property
    def result(self) -> str:
        return f"results/{self.stem or self.name}.json"
