"""A target that is up and may be written to, as a workload on several targets sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


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


class Targets(Protocol):
    """Makes targets ready and takes them away; raises BenchError that names the target."""

    def reference(self) -> OpenTarget:
        """The run's own target, which is up already."""

    def open(self, name: str) -> OpenTarget: ...

    def close(self, target: OpenTarget) -> None: ...
