"""The candidate and the profiles that several commands are told, and `python -m rig validate`, which checks them all."""

from __future__ import annotations

import argparse
from pathlib import Path

from rig.base.settings import Layout, Request, load_profiles
from rig.cli.arguments import Command
from rig.run.validation import validate_all


def add_profiles(command: argparse.ArgumentParser) -> None:
    """The arguments by which a command is told whom it is about, and by which profiles."""
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


def validate(options: argparse.Namespace) -> int:
    load_profiles(request_of_options(options), Layout())
    for line in validate_all(Layout(), options.inventory):
        print(line)
    return 0


COMMANDS = {"validate": Command("check the inventory, scenario, requirement and metrics", add_profiles, validate)}
