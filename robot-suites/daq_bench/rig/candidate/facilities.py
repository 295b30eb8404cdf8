"""The facilities of a run besides its machine: further targets, peers, fans, hazards. Extracting a result again does not need them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from daq_bench.bench_model.documents.run import FurtherTarget
from daq_bench.rig.candidate.bmc import FanDuty
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.machine import Machine


@dataclass(frozen=True)
class OpenTarget:
    """A target that can be measured. `document`: as run.json's `target`; `device`: the drive or array; `drives`: those beneath it."""

    name: str
    scratch: Path
    document: FurtherTarget

    @property
    def device(self) -> str | None:
        device = self.document.device
        return device.name if device else None

    @property
    def drives(self) -> list[str]:
        return [drive.name for drive in self.document.drives]


class Builder(Protocol):
    """Makes targets ready and takes them away; raises BenchError that names the target."""

    def open(self, name: str) -> OpenTarget: ...

    def close(self, target: OpenTarget) -> None: ...


class Facilities(Protocol):
    """Each raises BenchError, with the reason, where this run's candidate has nothing of the kind."""

    def targets(self) -> Builder: ...

    def peer(self, host: str) -> Machine:
        """Opens a link to another host of the inventory; it is closed at the workload's end."""

    def fans(self) -> FanDuty: ...

    def hazards(self, source: str) -> HazardControl:
        """Commands faults on emulated hardware; its events name `source`."""

    def begin(self) -> None:
        """Returns when the burst shall begin: at once, or with other candidates' (`rig.candidate.trigger`)."""
