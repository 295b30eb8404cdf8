"""The scenario of an own suite: it grows by a workload with each keyword that loads, before that load begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.documents.run import OWN_SUITE
from daq_bench.bench_model.evidence.demanded_load import check_load
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.rig.base.settings import DEFAULT_PROFILE, Layout, Profiles, Request, profile_file

SEED = 20211


class OwnScenario:
    """`file`: the scenario as it stands. A workload that it lacks parameters of takes them from the shipped rehearsal."""

    def __init__(self, folder: Path, layout: Layout, title: str, scale: float) -> None:
        self.file = folder / f"{OWN_SUITE}.yml"
        self._shipped = load_scenario(profile_file(layout.inventory / "scenarios", DEFAULT_PROFILE)).document
        self._document: dict[str, Any] = {
            "id": OWN_SUITE,
            "title": title,
            "source": "[P] a suite of somebody's own",
            "scale": scale,
            "seed": SEED,
            "workloads": {},
        }
        self._write(self._document)

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(self._document["workloads"])

    def empty(self) -> Scenario:
        """The scenario before its first load."""
        document = self._document
        return Scenario(
            id=document["id"],
            title=document["title"],
            file=self.file,
            scale=document["scale"],
            duration_s=None,
            repetitions=1,
            repetitions_max=1,
            seed=document["seed"],
            workloads={},
            document=document,
        )

    def with_load(self, workload: str, parameters: dict[str, Any], top: dict[str, Any]) -> Scenario:
        """The scenario with one more workload; `top`: its fields of the whole scenario. Raises ProfileError for what no scenario takes."""
        shipped = self._shipped["workloads"].get(workload, {})
        known = {**shipped, **{key: value for key, value in parameters.items() if value is not None}}
        workloads = {**self._document["workloads"], workload: known}
        self._write({**self._document, **top, "workloads": workloads})
        try:
            return load_scenario(self.file, stored=True)
        except BaseException:
            self._write(self._document)
            raise

    def adopt(self, scenario: Scenario) -> None:
        """From here on the run has this load."""
        self._document = scenario.document

    def forget(self) -> None:
        """A load was refused: the scenario is the one before it."""
        self._write(self._document)

    def _write(self, document: dict[str, Any]) -> None:
        with self.file.open("w", encoding="utf-8") as stream:
            YAML().dump(document, stream)


def profiles_of(request: Request, layout: Layout, scenario: Scenario) -> Profiles:
    """The run's profiles. A requirement may ask for what the suite does not measure: it is then not met."""
    inventory_file = request.inventory or layout.inventory / "lab.yml"
    metrics_file = layout.inventory / "metrics.yml"
    candidate = load_candidate(inventory_file, request.candidate)
    if request.target is not None:
        candidate = candidate.aimed_at(request.target)
    metrics = load_metrics(metrics_file)
    asked = request.requirement or candidate.document.get("requirement", DEFAULT_PROFILE)
    requirement = load_requirements(profile_file(layout.inventory / "requirements", asked), metrics)
    check_load(requirement)
    return Profiles(candidate, scenario, requirement, metrics, inventory_file, metrics_file)
