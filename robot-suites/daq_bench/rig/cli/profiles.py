"""The candidate and the profiles that several commands are told, and `python -m daq_bench.rig validate`, which checks all of them: a
colleague's typing error shows before the night."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from daq_bench.bench_model.evidence.demanded_load import check_load
from daq_bench.bench_model.profiles.candidates import Candidate, Target, candidate_names
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.requirements import check_yields, load_requirements
from daq_bench.bench_model.profiles.scenarios import check_scenario_metrics, load_scenario
from daq_bench.rig.base import catalogue
from daq_bench.rig.base.module_utils import check_storage
from daq_bench.rig.base.settings import Layout, Request, load_profiles, profile_file
from daq_bench.rig.cli.arguments import Command, add_json, print_document, say
from daq_bench.rig.nightly.plan import load_declared, request_of_job
from daq_bench.rig.run.planning import plan_run, together
from daq_bench.rig.run.suites import suite_files


def add_profiles(command: argparse.ArgumentParser) -> None:
    """The arguments that tell a command the candidate and the profiles."""
    command.add_argument("--candidate", default="this-machine", help="host of the inventory (this-machine)")
    command.add_argument(
        "--scenario", help="id in inventory/scenarios, or a YAML file (the candidate's, else dune-snb)"
    )
    command.add_argument(
        "--requirement", help="id in inventory/requirements, or a YAML file (the candidate's, else dune-snb)"
    )
    command.add_argument("--inventory", type=Path, metavar="FILE", help="inventory (inventory/lab.yml)")


def request_of_options(options: argparse.Namespace, target: str | None = None) -> Request:
    return Request(
        candidate=options.candidate,
        target=target,
        scenario=options.scenario,
        requirement=options.requirement,
        inventory=options.inventory,
    )


def validate_all(layout: Layout, inventory_file: Path | None = None) -> Iterator[str]:
    """One line per profile that is right. Raises ProfileError at the first that is not."""
    folder = layout.inventory
    metrics = load_metrics(folder / "metrics.yml")
    yield f"metrics.yml: {len(metrics)} result metrics"
    inventory = inventory_file or folder / "lab.yml"
    for name in candidate_names(inventory):
        candidate = load_profiles(Request(name, inventory=inventory), layout).candidate
        check_storage(layout, candidate)
        yield f"{inventory.name}: candidate {name}: {candidate.description}; {_danger(candidate)}"
    night = load_declared(inventory)
    for job in night.jobs if night.declared else ():
        load_profiles(request_of_job(job, inventory), layout)
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


def _danger(candidate: Candidate) -> str:
    """`ERASES S1, S2 (RAID 0)`: what a run of it destroys."""
    lost = [
        f"{', '.join(target.erased)}{f' (RAID {raid})' if (raid := _level(target)) else ''}"
        for target in candidate.targets
        if target.erased
    ]
    return f"ERASES {'; '.join(lost)}" if lost else "erases nothing"


def _level(target: Target) -> str:
    return str((target.storage or {}).get("raid", {}).get("level", ""))


def validate(options: argparse.Namespace) -> int:
    chosen = load_profiles(request_of_options(options), Layout())
    lines = []
    for line in validate_all(Layout(), options.inventory):
        say(options, line)
        lines.append(line)
    names = compared_names(chosen.scenario)[:1] or chosen.candidate.own_run_targets
    plans = [plan_run(load_profiles(request_of_options(options, name or None), Layout()), Layout()) for name in names]
    for line in (line for one in plans for line in one.lines()):
        say(options, line)
    lost = dict.fromkeys(serial for one in plans for serial in one.erases)
    say(options, f"OK: {len(lines)} entries are valid; this run erases {', '.join(lost) or 'nothing'}")
    print_document(options, {"valid": lines, "plan": together(plans)})
    return 0


def _add_validate(command: argparse.ArgumentParser) -> None:
    add_profiles(command)
    add_json(command, "what is valid")


COMMANDS = {
    "list": Command(
        "list candidates, scenarios, requirements, targets, metrics or runs", catalogue.add_arguments, catalogue.run
    ),
    "validate": Command("check the inventory, scenario, requirement and metrics", _add_validate, validate),
}
