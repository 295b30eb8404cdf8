"""The candidate and the profiles that several commands are told, and `python -m daq_bench.rig validate`, which checks all of them: a
colleague's typing error shows before the night."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.evidence.demanded_load import check_load
from daq_bench.bench_model.profiles.candidates import Candidate, Target, absent_files_of, candidate_names
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

SHOWN_MAX = 6  # entries of one kind; a laboratory has many more
KINDS = {"candidate": "candidate", "scenario": "scenario", "requirement": "requirement profile", "metric": "metric"}


@dataclass(frozen=True)
class Valid:
    """A profile that is right. `line` says it for a list of all, `danger` what runs of a candidate destroy; `count`: how many of its kind
    it stands for."""

    kind: str
    name: str
    line: str
    danger: str = ""
    count: int = 1


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


def validate_all(layout: Layout, inventory_file: Path | None = None) -> Iterator[Valid]:
    """Each profile that is right. Raises ProfileError at the first that is not."""
    folder = layout.inventory
    metrics = load_metrics(folder / "metrics.yml")
    yield Valid("metric", "metrics.yml", f"metrics.yml: {len(metrics)} result metrics", count=len(metrics))
    inventory = inventory_file or folder / "lab.yml"
    for name in candidate_names(inventory):
        candidate = load_profiles(Request(name, inventory=inventory), layout).candidate
        check_storage(layout, candidate)
        danger = _danger(candidate)
        line = f"{inventory.name}: candidate {name}: {candidate.description}; {danger or 'erases nothing'}"
        yield Valid("candidate", name, line, danger)
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
        yield Valid("scenario", file.stem, f"scenarios/{file.name}: {scenario.title}")
    for file in sorted((folder / "requirements").glob("*.yml")):
        profile = load_requirements(file, metrics)
        check_load(profile)
        yield Valid("requirement", file.stem, f"requirements/{file.name}: {len(profile.requirements)} requirements")


def missing_files(layout: Layout, inventory_file: Path | None = None) -> dict[str, list[str]]:
    """One line per file that an entry of the inventory, which is valid, names and this machine does not have, by candidate."""
    inventory = inventory_file or layout.inventory / "lab.yml"
    return {
        name: [str(one) for one in absent_files_of(inventory, name, layout.home, os.environ)]
        for name in candidate_names(inventory)
    }


def _in_short(entries: Sequence[Valid]) -> Iterator[str]:
    """Yields the candidates that lose data, then how many profiles of each kind are right."""
    dangerous = [one for one in entries if one.danger]
    for one in dangerous[:SHOWN_MAX]:
        yield f"{one.name} {one.danger}"
    if len(dangerous) > SHOWN_MAX:
        yield f"and {len(dangerous) - SHOWN_MAX} more candidates ERASE drives (--verbose names them)"
    counts = Counter[str]()
    for one in entries:
        counts[one.kind] += one.count
    if harmless := [one.name for one in entries if one.kind == "candidate" and not one.danger]:
        named = ", ".join(harmless[:SHOWN_MAX]) + (", ..." if len(harmless) > SHOWN_MAX else "")
        yield f"{named}: erase nothing"
    counted = (f"{counts[kind]} {name}{'s' * (counts[kind] != 1)}" for kind, name in KINDS.items())
    yield f"valid    {', '.join(counted)} (--verbose lists them)"


def _missing_in_short(missing: Mapping[str, Sequence[str]], chosen: str) -> Iterator[str]:
    """Yields all missing files of the chosen candidate, and the first of any other."""
    for name, lines in missing.items():
        shown = lines if name == chosen else lines[:1]
        yield from shown
        if rest := len(lines) - len(shown):
            yield f"{rest} more file{'s' * (rest != 1)} that {name} names (--verbose lists them)"


def _danger(candidate: Candidate) -> str:
    """`ERASES S1, S2 (RAID 0)`: what runs of it destroy; empty: nothing."""
    lost = [
        f"{', '.join(target.erased)}{f' (RAID {raid})' if (raid := _level(target)) else ''}"
        for target in candidate.targets
        if target.erased
    ]
    return f"ERASES {'; '.join(dict.fromkeys(lost))}" if lost else ""


def _level(target: Target) -> str:
    return str((target.storage or {}).get("raid", {}).get("level", ""))


def validate(options: argparse.Namespace) -> int:
    chosen = load_profiles(request_of_options(options), Layout())
    entries = []
    for one in validate_all(Layout(), options.inventory):
        entries.append(one)
        if options.verbose:
            say(options, one.line)
    if not options.verbose:
        for line in _in_short(entries):
            say(options, line)
    names = compared_names(chosen.scenario)[:1] or chosen.candidate.own_run_targets
    plans = [plan_run(load_profiles(request_of_options(options, name or None), Layout()), Layout()) for name in names]
    for plan in plans:
        for line in plan.lines() if options.verbose else plan.lines_in_short():
            say(options, line)
    lost = dict.fromkeys(serial for one in plans for serial in one.erases)
    missing = missing_files(Layout(), options.inventory)
    every = [line for lines in missing.values() for line in lines]
    for line in every if options.verbose else _missing_in_short(missing, chosen.candidate.name):
        say(options, f"MISSING  {line}")
    say(options, f"OK: {len(entries)} entries are valid; this run erases {', '.join(lost) or 'nothing'}")
    print_document(options, {"valid": [one.line for one in entries], "missing": every, "plan": together(plans)})
    return 0


def _add_validate(command: argparse.ArgumentParser) -> None:
    add_profiles(command)
    command.add_argument(
        "--verbose", action="store_true", help="list every entry, the whole plan and each missing file"
    )
    add_json(command, "what is valid")


COMMANDS = {
    "list": Command(
        "list candidates, scenarios, requirements, targets, metrics or runs", catalogue.add_arguments, catalogue.run
    ),
    "validate": Command("check the inventory, scenario, requirement and metrics", _add_validate, validate),
}
