"""Many simulated runs: each seed's outcome beside its truth, as one line of JSON. It may be stopped at any time and goes on from its lines.

The lines belong to one state of the sources: where those changed, the campaign begins anew."""

from __future__ import annotations

import gc
import hashlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import REPOSITORY
from daq_bench.bench_model.base.rows import add_rows, rows_in
from daq_bench.simulation.physics.drawing import Spec, compares, soaks, spec_of, takes_raw_drives, wears
from daq_bench.simulation.physics.hazards import Hazard
from daq_bench.simulation.run import simulate
from daq_bench.simulation.truth import truth_of

CHUNK = 4  # seeds that a process takes at a time
NO_ROW_RESTS_ON = ("document.py", "market_document.py", "mutants.py", "sample.py", "__main__.py")
SOURCES = (
    "inventory",
    "robot-suites/daq_bench/rig",
    "robot-suites/daq_bench/simulation",
    "agents/daq_bench/telemetry_agent",
    "agents/daq_bench/candidate_kit",
)
CANARY = Hazard(
    "bit_flips", 2, 20.0, 30.0, 40.0, 0
)  # a fault that must be found, in a server that is well above the demand
HEAT_CANARY = Hazard("throttle_from_start", 0, 0.0, 0.0, 60.0, 0)  # W
SLOW_CANARY, SLOW_FAULT = Hazard("slow_drive", 0, 0.0, 0.0, 0.5, 0), "a drive of half the rate that it was bought for"
PULLED_CANARY, PULLED_FAULT = Hazard("drive_pulled", 1, 20.0, 0.0, 1.0, 0), "a drive that is pulled"
FAULT, HEAT_FAULT = "40 flipped bits in a stored record", "60 W of foreign heat into one drive"
CANARY_SEED = 5
CANARIES_OF_MARKET = {
    "market": 2,
    "market-thermal": 1,
    "market-steady-state": 2,
    "market-saturation": 2,
    "market-endurance": 1,
    "market-raid-vs-3dxp": 25,
}  # a drive, or a set, that is well above the demand by its data sheet
Show = Callable[[int, int], None]


@dataclass(frozen=True)
class Row:
    """One run. `right`: the outcomes that the truth allows; `causes`: what had to be named, and `named` whether it was."""

    seed: int
    scenario: str
    pace: str
    hazards: list[str]
    fired: list[str]
    right: list[str]
    causes: list[str]
    outcome: str
    named: bool
    invented: bool
    reason: str
    cpu_s: float
    capacity_bytes: int = 0  # of the target
    target_kind: str = "filesystem"
    array: str = "single"
    drives: int = 1
    medium: str = ""
    model: str = ""

    @property
    def is_right(self) -> bool:
        return self.outcome in self.right

    @property
    def may_pass(self) -> bool:
        return "PASS" in self.right

    @property
    def wrong_pass(self) -> bool:
        return self.outcome == "PASS" and "PASS" not in self.right

    @property
    def is_good(self) -> bool:
        """A good candidate, of which there is good evidence."""
        return self.right == ["PASS"]

    @property
    def false_alarm(self) -> bool:
        """A good candidate that fails."""
        return self.is_good and self.outcome == "FAIL"

    @property
    def refused_good(self) -> bool:
        return self.is_good and self.outcome != "PASS"


def judged(spec: Spec, work: Path, scenario: str = "record") -> Row:
    """Makes one run in `work` and takes its bundle away again."""
    began = time.process_time()
    run = simulate(spec, work, scenario)
    truth = truth_of(run.server)
    if run.bundle:
        shutil.rmtree(run.bundle.path)
    return Row(
        seed=spec.seed,
        scenario=scenario,
        pace=spec.pace,
        hazards=[one.kind for one in spec.hazards],
        fired=sorted(run.server.fired),
        right=sorted(truth.outcomes),
        causes=[kind for kind, _ in truth.causes],
        outcome=run.outcome,
        named=truth.is_named(run.said),
        invented=not run.agrees,
        reason=run.reasons[0] if run.reasons else "",
        cpu_s=round(time.process_time() - began, 3),
        capacity_bytes=spec.capacity_of(spec.judged),
        target_kind="raw-device" if spec.raw else "filesystem",
        array=spec.array,
        drives=len(spec.judged.drives),
        medium=spec.medium,
        model=spec.drives[spec.judged.drives[0]].model,
    )


def _chunk(seeds: Sequence[int], scenario: str, work: str) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="runs-", dir=work) as folder:
        return [judged(spec_of(seed, scenario), Path(folder), scenario) for seed in seeds]


def _begin_worker() -> None:
    """Interruptions are left to us. A run makes millions of small objects and hardly a cycle, so that cycles are looked for less often."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000, 20, 20)


@cache  # of the sources at the campaign's begin
def fingerprint() -> str:
    """SHA-256 of the sources on which a row depends."""
    found = hashlib.sha256()
    for folder in SOURCES:
        for file in sorted((REPOSITORY / folder).rglob("*")):
            if file.name in NO_ROW_RESTS_ON and file.parent.name == "simulation":
                continue
            if file.suffix in (".py", ".yml") and "tests" not in file.parts and "studies" not in file.parts:
                found.update(f"{file.relative_to(REPOSITORY)}\n".encode() + file.read_bytes())
    return found.hexdigest()


@dataclass(frozen=True)
class Campaign:
    """`seeds` in their order; `file` holds the rows that are made already."""

    seeds: Sequence[int]
    scenario: str
    file: Path
    jobs: int

    def rows(self) -> list[Row]:
        """The rows that there are, of these seeds. Begins the file anew where it is of other sources."""
        state = {"fingerprint": fingerprint(), "scenario": self.scenario}
        found = rows_in(self.file)
        if not found or found[0] != state:
            self.file.unlink(missing_ok=True)
            add_rows(self.file, [state])
            return []
        wanted = set(self.seeds)
        rows = {row.seed: row for row in (msgspec.convert(line, Row) for line in found[1:]) if row.seed in wanted}
        return [rows[seed] for seed in self.seeds if seed in rows]

    def run(self, show: Show) -> list[Row]:
        """Makes the rows that are missing. An interruption leaves whole lines; the next call goes on."""
        done = {row.seed for row in self.rows()}
        left = [seed for seed in self.seeds if seed not in done]
        work = self.file.parent / "work"
        if work.exists():
            shutil.rmtree(work)
        work.mkdir(parents=True)
        chunks = [left[at : at + CHUNK] for at in range(0, len(left), CHUNK)]
        try:
            with ProcessPoolExecutor(self.jobs, initializer=_begin_worker) as pool:
                try:
                    self._gather(pool, chunks, str(work), len(done), show)
                except KeyboardInterrupt:
                    pool.shutdown(wait=True, cancel_futures=True)  # seconds: each ends its few runs and clears up
                    raise
        finally:
            shutil.rmtree(work)
        return self.rows()

    def _gather(
        self, pool: ProcessPoolExecutor, chunks: Sequence[Sequence[int]], work: str, done: int, show: Show
    ) -> None:
        pending = [pool.submit(_chunk, chunk, self.scenario, work) for chunk in chunks]
        for future in as_completed(pending):
            rows = future.result()
            add_rows(self.file, map(asdict, rows))
            done += len(rows)
            show(done, len(self.seeds))


def fault_of(scenario: str) -> tuple[Hazard, str]:
    """The canary's hazard, and what it is."""
    if takes_raw_drives(scenario):
        return SLOW_CANARY, SLOW_FAULT
    if compares(scenario):
        return replace(SLOW_CANARY, drive=1), SLOW_FAULT
    if wears(scenario):
        return PULLED_CANARY, PULLED_FAULT
    return (HEAT_CANARY, HEAT_FAULT) if soaks(scenario) else (CANARY, FAULT)


def canary(work: Path, scenario: str = "record") -> Row:
    """A fault that nobody can overlook. Raises BenchError where it is not found: then the campaign sees nothing."""
    hazard, fault = fault_of(scenario)
    seed = CANARIES_OF_MARKET.get(scenario, CANARY_SEED)
    row = judged(replace(spec_of(seed, scenario), hazards=(hazard,)), work, scenario)
    if row.outcome != "FAIL" or not row.named:
        raise BenchError(f"the canary was not found: {fault} ended in {row.outcome} ({row.reason})")
    return row
