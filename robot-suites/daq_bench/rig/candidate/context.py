"""The context of a keyword library, rebuilt from the run bundle alone: Robot Framework runs in its own process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.behaviour import cost
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.verdict.sequential import Stopping
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.facilities import Facilities
from daq_bench.rig.candidate.load_target import FileTarget, LoadTarget, RawDevice
from daq_bench.rig.candidate.machine import Machine, Places, machine_from_environment


@dataclass(frozen=True)
class RunContext:
    """One run as a workload sees it: candidate, scenario in force, scratch folder, tools. `facilities`: None where no run is under way."""

    bundle: Bundle
    machine: Machine
    facilities: Facilities | None = None

    @staticmethod
    def open(bundle: str) -> RunContext:
        return RunContext.of(Bundle.open(Path(bundle)), machine_from_environment())

    @staticmethod
    def of(bundle: Bundle, machine: Machine) -> RunContext:
        context = RunContext(bundle, machine)
        if "cpu_isolated" in context.candidate.document["tuning"]:
            context.machine.isolate()
        return context

    @cached_property
    def candidate(self) -> Candidate:
        run = self.bundle.run
        candidate = load_candidate(self.bundle.path / "profiles" / "lab.yml", run.candidate.name)
        return candidate.aimed_at(run.target.name)

    @cached_property
    def scenario(self) -> Scenario:
        told = self.bundle.run.scenario
        file = self.bundle.path / "profiles" / "scenarios" / f"{told.id}.yml"
        return load_scenario(file, stored=True).altered(told.scale, told.duration_s)

    @property
    def demand(self) -> Demand:
        return self.scenario.demand

    @property
    def target_path(self) -> Path:
        """The run's own folder on the target, or the raw drive."""
        return Path(self.bundle.run.target.path)

    @property
    def scratch(self) -> Path:
        """The run's own folder on the target; the run removes it at its end, however it ends. Raises BenchError on a raw drive."""
        if self.candidate.target.is_raw:
            raise BenchError(
                f"{self.target_path} is a raw drive and has no folder; the workload should ask for a load target"
            )
        return self.target_path

    def load_target(self, name: str) -> LoadTarget:
        """Returns the place that a measurement writes to: the file `name` in the run's folder, or the raw drive."""
        target = self.candidate.target
        if target.is_raw and target.drive_serial:
            return RawDevice(self.machine, target.drive_serial, self.target_path, target.destroy, self.daqwriter)
        return FileTarget(self.machine, self.scratch / name)

    @property
    def raw(self) -> Path:
        """The bundle's folder for the tools' own output."""
        return self.bundle.path / "results" / "raw"

    @cached_property
    def places(self) -> Places:
        """The run's folders on the candidate."""
        return self.machine.places(self.bundle.run.candidate.name, self.bundle.path)

    @property
    def device(self) -> str | None:
        """Kernel name of the drive under the scratch folder."""
        device = self.bundle.run.target.device
        return device.name if device else None

    @property
    def daqwriter(self) -> Path:
        return self.places.daqwriter

    def stopping(self, workload: str, stages: int = 1) -> Stopping:
        """Returns the rule that tells `workload` after each repetition of each stage whether to go on (bench_model.verdict.sequential)."""
        profiles, run = self.bundle.path / "profiles", self.bundle.run
        metrics = load_metrics(profiles / "metrics.yml")
        profile = load_requirements(profiles / "requirements" / f"{run.requirement.id}.yml", metrics, stored=True)

        def cost_so_far() -> Document:
            found: Document = self.machine.observe(
                "the cost so far", lambda: cost.so_far(self.bundle.path, run, time.time())
            )
            return found

        return Stopping.of(self.scenario, profile, metrics, f"results/{workload}.json", run, cost_so_far, stages)

    def phase(self, source: str, text: str, step: int, steps: int, expected_s: float) -> None:
        """Announces what runs now: the progress display, the report's shading and InfluxDB's annotations read it."""
        self.bundle.event("phase", source, text, step=step, steps=steps, expected_s=expected_s)
