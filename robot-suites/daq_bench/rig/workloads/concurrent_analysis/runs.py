"""The analysis reader on a candidate (`agents/daq_bench/analysis_reader`): its calls, and the output that each one leaves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents import struct
from daq_bench.bench_model.workloads.concurrent_analysis.document import Kind, Layout
from daq_bench.bench_model.workloads.concurrent_analysis.reader import AnalysisSet
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.site import left

PREFIX = "concurrent-analysis-"
FAILED = 1
WRITE_BYTES_PER_S_MIN = 1e6  # of one process that generates, on a machine in other use
READ_BYTES_PER_S_MIN = 2e5
CALL_S_MIN = 300.0


@dataclass(frozen=True)
class Storage:
    """Describes where a set lies. `scratch`: the run's folder on it; `devices`: kernel names, of which the counters are read."""

    name: str
    text: str
    scratch: Path
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Reader:
    """`work`: the reader's output on the candidate; `raw`: the same in the bundle."""

    machine: Machine
    command: tuple[str, ...]
    work: Path
    raw: Path

    @staticmethod
    def of(context: RunContext) -> Reader:
        """Raises BenchError when the candidate has no Python with uproot."""
        places, machine = context.places, context.machine
        own = str(machine.observe("the bench's Python", lambda: sys.executable))
        python = Path(own) if machine.is_local else places.analysis_python
        reader = Reader(machine, (str(python), str(places.analysis_reader)), places.raw, context.raw)
        try:
            asked = machine.run([*reader.command, "--help"], timeout_s=CALL_S_MIN)
        except BenchError as error:
            raise BenchError(f"{_remedy(python)} ({error})") from None
        if asked.returncode != 0:
            raise BenchError(f"{_remedy(python)} ({asked.stderr.strip()[-400:] or 'it printed nothing'})")
        return reader

    def run(
        self, command: str, options: list[str], name: str, kind: type[struct.Kind], timeout_s: float
    ) -> struct.Kind:
        """The reader's document, checked and brought into the bundle as `name`.json. Raises BenchError with the reader's own words."""
        argv = [*self.command, command, *options, f"--json={self.work / name}.json"]
        done = self.machine.run(argv, timeout_s=timeout_s)
        if done.returncode == FAILED:
            raise BenchError(f"analysis_reader {command}: {done.stderr.strip()[-2000:]}")
        what = f"analysis_reader {command}"
        return left(self.machine, done.check(what), what, self.work, self.raw, name, kind)

    @contextmanager
    def generated(self, storage: Storage, wanted: SetPlan) -> Iterator[tuple[Path, AnalysisSet]]:
        """(folder, its document) of a new set on `storage`, removed however the block ends."""
        folder = storage.scratch / f"{PREFIX}{wanted.name}"
        options = [
            f"--set={folder}", f"--kind={wanted.kind}", f"--layout={wanted.layout}", f"--compression={wanted.compression}",
            f"--seed={wanted.seed}", f"--processes={wanted.processes}", f"--events={wanted.events}", f"--files={wanted.files}",
            f"--event-bytes={wanted.event_bytes}", f"--cluster-events={wanted.cluster_events}",
        ]  # fmt: skip
        limit_s = CALL_S_MIN + wanted.raw_bytes / WRITE_BYTES_PER_S_MIN
        try:
            yield (
                folder,
                self.run("generate", options, f"analysis-set-{storage.name}-{wanted.name}", AnalysisSet, limit_s),
            )
        finally:
            self.machine.call("analysis_sets", "remove", folder)


def _remedy(python: Path) -> str:
    return (
        f"{python} cannot run the analysis reader: it needs uproot, awkward, distributed, numpy and scipy. `make setup` brings them to "
        "this machine; for a candidate behind SSH name a folder of wheels with bench_analysis_wheels (docs/concurrent-analysis.md)"
    )


@dataclass(frozen=True)
class SetPlan:
    """A set that is to be generated. `event_bytes` in memory."""

    kind: Kind
    layout: Layout
    events: int
    files: int
    event_bytes: int
    cluster_events: int
    compression: str
    seed: int
    processes: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.layout}"

    @property
    def raw_bytes(self) -> int:
        return self.events * self.event_bytes

    @property
    def read_s(self) -> float:
        """The longest that a pass over the set may take."""
        return CALL_S_MIN + self.raw_bytes / READ_BYTES_PER_S_MIN
