"""The profiles of simulated runs: scenario, requirements and metrics are read once, the inventory's entry is made for each server."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.requirements import RequirementProfile
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Profiles, Request, load_profiles
from daq_bench.rig.run.record import copy_profiles
from daq_bench.simulation.facts import TUNING
from daq_bench.simulation.machine import CPU, DIRECTORY, TARGETS
from daq_bench.simulation.physics.drawing import Group, Spec, spec_of

OWN = Path(__file__).resolve().parent / "profiles"
SCENARIOS = {
    "record": str(OWN / "scenarios" / "simulated-record.yml"),
    "thermal": str(OWN / "scenarios" / "simulated-thermal.yml"),
    "snb-100s": "snb-100s",
    "market": "snb-100s",
    "market-thermal": "thermal",
    "market-steady-state": "steady-state",
    "market-saturation": "saturation",
    "market-endurance": "endurance",
    "market-raid-vs-3dxp": "raid-vs-3dxp",
}
REQUIREMENTS = {  # every other scenario names its own
    "record": str(OWN / "requirements" / "simulated-record.yml"),
    "thermal": str(OWN / "requirements" / "simulated-thermal.yml"),
}


@dataclass(frozen=True)
class Kit:
    """The four profiles of one simulated run. `files`: those of the folder profiles/ of every bundle of this
    scenario; its lab.yml is its own."""

    candidate: Candidate
    scenario: Scenario
    requirement: RequirementProfile
    metrics: dict[str, ResultMetric]
    files: dict[Path, bytes]

    def copy_into(self, bundle: Bundle, lab: str) -> None:
        for name, content in {**self.files, Path("lab.yml"): lab.encode()}.items():
            file = bundle.path / "profiles" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def profiles_of(kit: Kit, lab: Path) -> Profiles:
    layout = Layout()
    return Profiles(kit.candidate, kit.scenario, kit.requirement, kit.metrics, lab, layout.inventory / "metrics.yml")


def kit_of(spec: Spec, scenario: str, lab: Path) -> Kit:
    """Writes the server's inventory into `lab` and loads everything."""
    write_lab(spec, lab)
    shared, files = _shared(scenario)
    candidate = load_candidate(lab, spec.name)
    return Kit(candidate, shared.scenario, shared.requirement, shared.metrics, files)


def write_lab(spec: Spec, lab: Path) -> None:
    entry = {"ansible_connection": "ssh", "bench_candidate": entry_of(spec)}
    with lab.open("w", encoding="utf-8") as file:
        YAML().dump({"all": {"children": {"candidates": {"hosts": {spec.name: entry}}}}}, file)


def entry_of(spec: Spec) -> dict[str, Any]:
    """The inventory's entry, as who bought this server would write it."""
    target = _target_of(spec, spec.own, DIRECTORY)
    if spec.raw:
        target = {"kind": "raw-device", "drive_serial": spec.drives[0].serial, "destroy": True}
    targets: dict[str, Any] = {"target": target}
    if spec.sets:
        beside = {one.name: {"comparison_only": True, **_target_of(spec, one, TARGETS / one.name)} for one in spec.sets}
        targets = {"targets": {spec.own.name: target, **beside}}
    return {
        "description": "A server that exists only as a model",
        "identity": {
            "architectures": ["x86_64"],
            "cpu_model": CPU.split()[1],
            "cpus_min": 32,
            "memory_min": "60GiB",
            "drives": [{"serial": one.serial, "model": one.model, "firmware": one.firmware} for one in spec.drives],
        },
        **targets,
        "transient_buffer": spec.transient_buffer,
        "tuning": dict(TUNING),
    }


def _target_of(spec: Spec, group: Group, directory: Path) -> dict[str, Any]:
    serials = [spec.drives[number].serial for number in group.drives]
    storage: dict[str, Any] = {"drives": serials, "destroy": True, "purge": "discard", "filesystem": spec.filesystem}
    if group.level is not None:
        storage["raid"] = {"level": group.level, "chunk": group.chunk}
    return {"kind": "filesystem", "directory": str(directory), "storage": storage}


@cache
def _shared(scenario: str) -> tuple[Profiles, dict[Path, bytes]]:
    """Returns what all runs of one scenario share; its files are put together once, by the bench's own code."""
    with tempfile.TemporaryDirectory(prefix="daq-simulation-") as name:
        lab = Path(name) / "lab.yml"
        write_lab(spec_of(0, scenario), lab)  # any server of it does
        request = Request(
            "simulated", scenario=SCENARIOS[scenario], requirement=REQUIREMENTS.get(scenario), inventory=lab
        )
        profiles = load_profiles(request, Layout())
        bundle = Bundle(Path(name) / "bundle")
        folder = bundle.path / "profiles"
        folder.mkdir(parents=True)
        copy_profiles(bundle, profiles)
        files = (file for file in sorted(folder.rglob("*")) if file.is_file())
        return profiles, {file.relative_to(folder): file.read_bytes() for file in files}
