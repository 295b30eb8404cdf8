"""`python -m daq_bench.rig plan`: what a request will cost, and whether it can end in PASS, before anything is touched."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.rig.base.settings import Layout, load_profiles
from daq_bench.rig.cli.arguments import Command, add_json, add_load, print_document, say
from daq_bench.rig.cli.profiles import add_profiles, request_of_options
from daq_bench.rig.run.plan_table import renew_table
from daq_bench.rig.run.planning import RunPlan, plan_run, together


def _rate(text: str) -> float:
    """B/s, for argparse."""
    try:
        if text.strip().removesuffix("/s").replace(".", "").isdecimal():
            raise ValueError(f"{text!r} has no unit. Write for example 5GB")
        found = parse_size(text.removesuffix("/s"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return float(found)


def _add_plan(command: argparse.ArgumentParser) -> None:
    add_profiles(command)
    add_load(command)
    command.add_argument(
        "--rate", type=_rate, metavar="SIZE", help="what the target takes per second, such as 5GB, where it is known"
    )
    command.add_argument(
        "--table", type=Path, metavar="PAGE", help="renew the table of all scenarios in PAGE (docs/scenarios.md)"
    )
    add_json(command, "duration_s, bytes_written, drive_writes, can_pass, reasons, and each run of it")


def plans_of(options: argparse.Namespace) -> Iterator[RunPlan]:
    """One for each target, as `qualify` runs them, by the inventory alone."""
    names, directory = chosen_targets(options)
    for name in names:
        request = replace(request_of_options(options, name), scale=options.scale, duration_s=options.duration)
        yield plan_run(load_profiles(request, Layout()), Layout(), None, options.rate, directory)


def plan(options: argparse.Namespace) -> int:
    if options.table:
        if not options.table.is_file():
            what = "is a folder" if options.table.is_dir() else "is not there"
            raise BenchError(f"--table {options.table}: {what}. Name the page that has the table")
        renew_table(options.table, Layout())
        return 0
    plans = list(plans_of(options))
    for one in plans:
        for line in one.lines():
            say(options, line)
    print_document(options, together(plans))
    return 0


def chosen_targets(options: argparse.Namespace) -> tuple[list[str], Path | None]:
    """Names of the targets to run on, and the folder that replaces the inventory's. Raises BenchError."""
    profiles = load_profiles(request_of_options(options), Layout())
    candidate, compared = profiles.candidate, compared_names(profiles.scenario)
    known = candidate.target_names
    if compared:
        if options.target not in (None, compared[0]):
            raise BenchError(
                f"scenario {profiles.scenario.id!r} measures its targets in one run ({', '.join(compared)}), so that "
                f"{typed('--target', options.target)} chooses nothing. Leave it out, or change the scenario's `reference` and `sets`"
            )
        return compared[:1], None
    if options.target is None:
        return candidate.own_run_targets, None
    if options.target in known:
        return [options.target], None
    if len(known) > 1 or candidate.connection != "local":
        raise BenchError(
            f"candidate {candidate.name!r} has no target {options.target!r}. {nearest(options.target, known)}"
        )
    if "/" not in options.target and not Path(options.target).is_dir():
        raise BenchError(
            f"candidate {candidate.name!r} has no target {options.target!r} ({', '.join(known) or 'its only target has no name'}), "
            f"and there is no folder of that name. Correct it, or write "
            f"{typed('--target', f'./{options.target}')} for a folder that shall be made"
        )
    return candidate.own_run_targets, Path(options.target).resolve()


COMMANDS = {
    "plan": Command(
        "say what a request costs, and whether it can end in PASS, without touching the candidate", _add_plan, plan
    )
}
