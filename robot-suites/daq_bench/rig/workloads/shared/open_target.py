"""The targets of a workload that measures several, in its journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.run import FurtherTarget
from daq_bench.bench_model.documents.struct import as_document, read
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import Builder, OpenTarget


class Targets(Builder, Protocol):
    """As a workload has them."""

    def reference(self) -> OpenTarget:
        """The run's own target, which is up already."""


@dataclass(frozen=True)
class ObservedTargets:
    """The run's own target and the further ones that its facilities build."""

    context: RunContext

    def reference(self) -> OpenTarget:
        context = self.context
        own = FurtherTarget.of(context.bundle.run.target, context.candidate.target.storage, [])
        return OpenTarget(context.candidate.target.name, context.scratch, own)

    def open(self, name: str) -> OpenTarget:
        def opened() -> dict[str, Any]:
            made = self._made().open(name)
            return {"scratch": str(made.scratch), "document": as_document(made.document)}

        said = self.context.machine.observe(f"target {name}", opened)
        return OpenTarget(name, Path(said["scratch"]), read(said["document"], FurtherTarget, f"target {name}"))

    def close(self, target: OpenTarget) -> None:
        self.context.machine.observe(f"target {target.name} taken away", lambda: self._made().close(target))

    def _made(self) -> Builder:
        if self.context.facilities is None:
            raise BenchError("no further target can be made ready: no run is under way")
        return self.context.facilities.targets()
