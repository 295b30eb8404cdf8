"""The further targets of a simulated comparison: the bench's own code builds, looks at and takes away what the model has for drives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.facts import Tuning
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.bmc import FanDuty
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import Builder
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.run.facilities import FurtherTargets
from daq_bench.simulation.machine import SimulatedMachine
from daq_bench.simulation.physics.server import Server

BUILD_S = 12.0  # ~ of a set, or its end


class SimulatedTargets(FurtherTargets):
    """The further targets of a comparison; what Ansible does with their drives happens in the model."""

    def __init__(self, context: RunContext, server: Server, machine: SimulatedMachine) -> None:
        super().__init__(context)
        self._server, self._machine = server, machine

    def _ansible(self, name: str, directory: Path) -> Any:
        return _Builder(self._server, self._machine, directory, self._context.bundle)


@dataclass(frozen=True)
class _Builder:
    """As rig.candidate.provision.Provisioner builds a set and takes it away."""

    server: Server
    machine: SimulatedMachine
    directory: Path
    bundle: Bundle

    def run(self, action: str, document: str) -> None:
        self.server.idle(BUILD_S)
        if action == "build_target":
            self.machine.build(self.directory)
        self.bundle.write(f"facts/{document}", Tuning([]))


@dataclass(frozen=True)
class SimulatedFacilities:
    """A run on the modelled server can build further targets, and nothing else."""

    made: SimulatedTargets

    def targets(self) -> Builder:
        return self.made

    def peer(self, host: str) -> Machine:
        raise BenchError(f"the model has no host {host!r}")

    def fans(self) -> FanDuty:
        raise BenchError("the model's fans are not commanded")

    def hazards(self, source: str) -> HazardControl:
        raise BenchError("the model's hazards are drawn, not commanded")

    def begin(self) -> None:
        """At once."""
