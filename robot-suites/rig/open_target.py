"""A target that is up and may be written to, as a workload on several targets sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench_model.errors import BenchError
from rig.context import RunContext


@dataclass(frozen=True)
class OpenTarget:
    """A target that is there to be measured. `document` is as run.json's `target`; `device` the drive or array, `drives` beneath."""

    name: str
    scratch: Path
    document: dict[str, Any]

    @property
    def device(self) -> str | None:
        device = self.document["device"]
        return device["name"] if device else None

    @property
    def drives(self) -> list[str]:
        return [drive["name"] for drive in self.document["drives"]]


class Builder(Protocol):
    """Makes targets ready and takes them away; raises BenchError that names the target."""

    def open(self, name: str) -> OpenTarget: ...

    def close(self, target: OpenTarget) -> None: ...


class Targets(Builder, Protocol):
    """As a workload has them."""

    def reference(self) -> OpenTarget:
        """The run's own target, which is up already."""


@dataclass(frozen=True)
class ObservedTargets:
    """The targets of a run, in its workload's journal. `builder` is there while the run lasts."""

    context: RunContext
    builder: Builder | None

    def reference(self) -> OpenTarget:
        context = self.context
        own = {**context.bundle.run["target"], "layout": context.candidate.target.storage, "tuning_wrong": []}
        return OpenTarget(context.candidate.target.name, context.scratch, own)

    def open(self, name: str) -> OpenTarget:
        def opened() -> dict[str, Any]:
            made = self._made().open(name)
            return {"scratch": str(made.scratch), "document": made.document}

        said = self.context.machine.observe(f"target {name}", opened)
        return OpenTarget(name, Path(said["scratch"]), said["document"])

    def close(self, target: OpenTarget) -> None:
        self.context.machine.observe(f"target {target.name} taken away", lambda: self._made().close(target))

    def _made(self) -> Builder:
        if self.builder is None:
            raise BenchError("this run's suite makes no further targets ready")
        return self.builder
