"""Faults that a run can cause on purpose, on a candidate whose hardware is emulated. Real hardware has no such switch, and is refused."""

from __future__ import annotations

from pathlib import Path

from bench_model.base.errors import BenchError
from bench_model.profiles.candidates import Candidate
from virtual_candidate import instance
from virtual_candidate.hazards import Hazards


def hazards_of(candidate: Candidate, base: Path = instance.DEFAULT_BASE) -> Hazards:
    """Returns the hazards of the virtual candidate of that name below `base`. Raises BenchError for real hardware, or when it is not up."""
    if not candidate.virtual:
        raise BenchError(
            f"{candidate.name} is no virtual candidate: the bench causes faults on emulated hardware only (bench_candidate.virtual)"
        )
    found = instance.load(base / candidate.name)
    if found is None:
        raise BenchError(f"virtual candidate {candidate.name} is not up. `make virtual-up` starts it")
    return Hazards(found)
