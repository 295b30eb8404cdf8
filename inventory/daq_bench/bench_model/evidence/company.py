"""May a miss be held against the candidate, or did others take the machine while it was measured?

Only what a load's pace decides is excused: rates, times, superchunks that were lost or late, and the share that was read back where nothing
but these is missing from it. Damaged data, temperatures and wear are the candidate's own however busy it is. What excuses is the
telemetry of the processes within a load (`behaviour.others`), which `check-bundle` extracts again: no document, no excuse. It makes a miss
INADMISSIBLE and never a PASS, so that whoever loads a machine to hide its weakness gains no purchase by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from daq_bench.bench_model.base.units import dimension
from daq_bench.bench_model.documents.derived import Others, OthersOfWindow
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.measured import found_at
from daq_bench.bench_model.profiles.metrics import ResultMetric

NOT_ALONE = "The machine was not alone"  # how the cause of an excused miss begins
OTHERS_MAX = 0.10  # [P] of the CPUs, of the CPU time (stolen), or of what the load wrote: more, and a miss has another possible cause
RECORD = "results/snb_record.json"
PACE = ("rate", "time", "operations")
LATE_OR_LOST = ("lost_superchunks", "busy_episodes", "transient_buffer_needed")
VERIFIED, DAMAGED = "verified_fraction", "repetitions[].damaged_superchunks"


@dataclass(frozen=True)
class Company:
    """The load during which others took most. `share` of what is judged, in `text` with the names."""

    share: float
    text: str

    @property
    def excuses(self) -> bool:
        return self.share > OTHERS_MAX

    @property
    def cause(self) -> str:
        """The first line of a verdict on a miss that is not held against the candidate."""
        return (
            f"{NOT_ALONE}: {self.text}. Beyond {OTHERS_MAX:.0%} a miss is not held against the candidate: end what else runs "
            "there, and run again"
        )


def company(others: Others | None, file: str) -> Company | None:
    """Returns the load of a result's own workload during which others took most; None where nobody watched the processes during one.

    A scan's loads are not watched one by one: others during any load of the run excuse what a scan missed."""
    if others is None:
        return None
    return max((_of(one) for one in _loads_of(file, others.windows)), key=lambda one: one.share, default=None)


def _loads_of(file: str, windows: Sequence[OthersOfWindow]) -> Sequence[OthersOfWindow]:
    if file == RECORD:
        return [one for one in windows if one.workload == "daqwriter" and one.name.startswith("record")]
    return [one for one in windows if one.workload == PurePath(file).stem] or windows


def rests_on_pace(metric: ResultMetric, results: Mapping[str, Document]) -> bool:
    """Says whether other people's work on the machine can make the metric worse."""
    if metric.name.endswith(VERIFIED):
        return found_at(DAMAGED, results.get(metric.file, {})) == [0] * len(
            found_at(metric.path, results[metric.file]) or [None]
        )
    return dimension(metric.unit) in PACE or metric.name.endswith(LATE_OR_LOST)


def _of(one: OthersOfWindow) -> Company:
    who = f" ({', '.join(one.names)})" if one.names else ""
    found = (
        (one.cpu_fraction, f"other processes took {one.cpu_fraction:.0%} of all CPUs{who}"),
        (one.steal_fraction, f"the hypervisor took {one.steal_fraction:.0%} of the CPU time for others"),
        (one.written_fraction, f"other processes wrote {one.written_fraction:.0%} of what the load wrote{who}"),
    )
    share, text = max(found)
    return Company(share, f"{text} during {one.workload} {one.name}")
