"""Checks every profile in inventory/, not only those of one run: a colleague's typing error shows before the night."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench_model.evidence.demanded_load import check_load
from bench_model.profiles.candidates import load_candidate
from bench_model.profiles.common import plain
from bench_model.profiles.metrics import load_metrics
from bench_model.profiles.requirements import check_yields, load_requirements
from bench_model.profiles.scenarios import check_scenario_metrics, load_scenario
from bench_model.profiles.yaml_source import read_yaml
from rig.base.settings import Layout, profile_file
from rig.run.suites import suite_files


def validate_all(layout: Layout, inventory_file: Path | None = None) -> Iterator[str]:
    """One line per profile that is right. Raises ProfileError at the first that is not."""
    folder = layout.inventory
    metrics = load_metrics(folder / "metrics.yml")
    yield f"metrics.yml: {len(metrics)} result metrics"
    inventory = inventory_file or folder / "lab.yml"
    hosts = plain(read_yaml(inventory).data)["all"]["children"]["candidates"]["hosts"]
    for name in hosts:
        yield f"{inventory.name}: candidate {name}: {load_candidate(inventory, name).description}"
    for file in sorted((folder / "scenarios").glob("*.yml")):
        scenario = load_scenario(file)
        check_scenario_metrics(scenario, metrics)
        suite_files(layout.repository, scenario)
        if wanted := scenario.document.get("requirement"):
            profile = load_requirements(profile_file(folder / "requirements", wanted), metrics)
            check_yields(profile, scenario)
            check_load(profile, scenario)
        yield f"scenarios/{file.name}: {scenario.title}"
    for file in sorted((folder / "requirements").glob("*.yml")):
        profile = load_requirements(file, metrics)
        check_load(profile)
        yield f"requirements/{file.name}: {len(profile.requirements)} requirements"
