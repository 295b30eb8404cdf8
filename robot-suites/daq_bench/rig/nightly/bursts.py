"""Runs whose bursts begin together: which can, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.nights.outcome import Entry
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.base.bundle import to_json, write_atomically
from daq_bench.rig.nightly.lanes import lanes_of
from daq_bench.rig.nightly.skew import Skew, begun, document, skews

BURST = "snb_record"
FILE = "together.json"


def require_together(jobs: Sequence[Job], scenarios: Sequence[Scenario], inventory: Path) -> None:
    """Raises RefusedError for jobs whose bursts cannot begin at the same moment."""
    if len(jobs) < 2:
        raise RefusedError(
            f"{typed('--together', True)} needs two candidates or more. Name them: {typed('--candidates', 'a,b')}"
        )
    for job, scenario in zip(jobs, scenarios, strict=True):
        if BURST not in scenario.workloads:
            raise RefusedError(
                f"{scenario.file}: workloads: {job.candidate} has no burst in it ({BURST}). Choose a scenario that records one"
            )
    for lane in lanes_of(jobs, inventory, len(jobs)):
        if len(lane) > 1:
            who = ", ".join(jobs[place].candidate for place in lane)
            raise RefusedError(
                f"{who} meet on a machine (a BMC, a drive, a peer, or the control node itself), so that their runs follow one another. "
                "Leave out all but one of them"
            )


def account(entries: Sequence[Entry], logs: Path, say: Callable[[str], None]) -> bool:
    """Says and writes how far apart the bursts began. Returns whether all of them were given one trigger and say when they began."""
    found, unknown = [], dict[str, str]()
    for entry in entries:
        candidate = entry.job.candidate
        if entry.night is None:
            unknown[candidate] = entry.reason
            continue
        try:
            found += list(begun(candidate, entry.night.path))
        except BenchError as error:
            unknown[candidate] = str(error)
    known = skews(found)
    write_atomically(logs / FILE, to_json(document(known, unknown)))
    for one in known:
        say(one.words)
    for candidate, reason in unknown.items():
        say(f"{candidate}: {reason}")
    return bool(known) and not unknown and all(_whole(one) for one in known)


def _whole(one: Skew) -> bool:
    return len(one.candidates) > 1 and not one.without
