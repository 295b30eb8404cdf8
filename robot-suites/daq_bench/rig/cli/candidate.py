"""`python -m daq_bench.rig provision`, `verify`, `restore`, `unlock` and `clean`: a candidate's tuning and lock, without a run."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.rig.base.settings import Layout, Profiles, load_profiles, target_directory
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.host import require_target_directory, survey
from daq_bench.rig.candidate.lock import MachineLock, SilentError, all_exclusive, machine_locked
from daq_bench.rig.candidate.machine import Machine, machine_of
from daq_bench.rig.candidate.provision import drift_in
from daq_bench.rig.cli.arguments import Command, add_json, no_arguments, print_document, say, shown
from daq_bench.rig.cli.exits import DRIFT
from daq_bench.rig.cli.profiles import add_profiles, request_of_options
from daq_bench.rig.run.candidate_session import CandidateSession, connected, reboot_s
from daq_bench.rig.run.clean_up import Say, remove_scratch, take_back
from daq_bench.rig.run.preflight import check_drives

LEFT = re.compile(
    r"(?:^|\| )(?:refused|mismatch) +(\S+) \("
)  # of the playbook restore: the filter tuning_lines, joined by |
MESSAGE = re.compile(r"^ok: \[.*\] => ?\n((?: {4}.*\n)+)", re.MULTILINE)  # of a task `debug`
CHECKED, WOULD = re.compile(r"^\w+ +(.*)\. check mode: "), "would "
FIRMWARE = "bios-"  # before an attribute's name


def _add_tuning(command: argparse.ArgumentParser) -> None:
    add_profiles(command)
    add_json(command, "each target's facts and drift")


def _add_provision(command: argparse.ArgumentParser) -> None:
    _add_tuning(command)
    command.add_argument("--check", action="store_true", help="only tell what would be changed and erased")


def _add_restore(command: argparse.ArgumentParser) -> None:
    _add_tuning(command)
    command.add_argument(
        "--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="where run bundles are (runs)"
    )


def ansible(options: argparse.Namespace) -> int:
    """provision, verify and restore without a run, for each target; the facts go to build/facts/<candidate>."""
    layout = Layout()
    profiles = load_profiles(request_of_options(options), layout)
    names = compared_names(profiles.scenario)[:1] or profiles.candidate.own_run_targets
    if options.command == "restore":
        names = names[:1]  # one restore undoes what was built for any of them
    pretend = options.command == "provision" and options.check
    done = [
        _ansible(options, load_profiles(request_of_options(options, name), layout), layout, pretend) for name in names
    ]
    print_document(options, done)
    return DRIFT if any(one["drift"] for one in done) else 0


def _ansible(options: argparse.Namespace, profiles: Profiles, layout: Layout, pretend: bool) -> dict[str, Any]:
    """Runs the playbook; returns, and prints, the settings that are not as asked. `restore` takes back what killed runs left."""
    command, candidate = options.command, profiles.candidate
    facts = layout.build / "facts" / candidate.name / candidate.target.name / ("check" if pretend else "")
    directory = target_directory(layout, candidate)
    facts.mkdir(parents=True, exist_ok=True)
    what, file = (
        f"daq-bench {command} in {layout.repository}",
        "tuning-verified.json" if command == "verify" else "tuning.json",
    )
    kept: list[str] = []
    with all_exclusive(candidate, what), ExitStack() as stack:
        there = _reached(stack, command, profiles, layout)
        if there:
            try:
                left_behind = stack.enter_context(machine_locked(there, candidate.name, what, reboot_s(candidate)))
            except SilentError as error:
                _goes_on_without(command, error)
                there, left_behind = None, ""
            if left_behind:
                print(printable(left_behind), file=sys.stderr)
            if command == "provision" and there:
                check_drives(candidate, survey(there))
            if command == "restore" and there:
                kept = _take_back(there, candidate, layout, options.runs.resolve(), partial(say, options))
        if candidate.connection == "local" and candidate.target.storage is None and not candidate.target.is_raw:
            require_target_directory(directory)
        elif command == "provision" and candidate.target.kind == "scratch-file" and not pretend and there:
            there.call("scratch", "folder", directory)
        # Ansible connects by itself: what concerns the BMC can be restored when the candidate is dead.
        machine = machine_of(connection_of(profiles.inventory_file, candidate.name), facts / "no-link", layout)
        session = CandidateSession(layout, profiles, machine, directory)
        session.find_raw_drive()
        try:
            said = session.ansible(facts, command).run(command, file, check=pretend, bench_agent_arguments=[])
        except BenchError as error:
            if command == "restore" and not kept and (names := firmware_left(str(error))):
                raise FirmwareLeftError(
                    f"the firmware of {candidate.name} did not take back {', '.join(names)}: {error}"
                ) from None
            raise
    if kept:
        raise BenchError(f"{'; '.join(kept)}. Everything else was put back")
    named = candidate.target.name and command != "restore"
    of = f"{candidate.name}, target {candidate.target.name}" if named else candidate.name
    what = f"{command} (check only)" if pretend else command
    wrong = drift_in(facts / file) if command != "restore" and not pretend else []
    for line in wrong:
        say(options, f"drift      {printable(line)}")
    for line in planned_in(said) if pretend else ():
        say(options, printable(line))
    found = f"; {len(wrong)} settings are not as asked" if wrong else "; nothing was changed" if pretend else ""
    say(options, f"{what} of {of} is done{found}; facts and Ansible's output are in {shown(facts)}")
    target = candidate.target.name
    return {"command": command, "candidate": candidate.name, "target": target, "drift": wrong, "facts": shown(facts)}


def planned_in(said: str) -> list[str]:
    """Returns what a playbook in check mode would erase, make or set; its whole output has a hundred lines for each of them."""
    lines = [line for block in MESSAGE.findall(said) for line in YAML(typ="safe").load(dedent(block))["msg"]]
    return [CHECKED.sub(r"\1; ", line) for line in lines if WOULD in line]


class FirmwareLeftError(BenchError):
    """Everything was put back but firmware settings, which the message names; they are remembered for another try."""


def firmware_left(said: str) -> list[str]:
    """Returns the firmware's settings that a restoration names as not put back; none where others are left, too, or the BMC was silent."""
    _, found, left = said.partition("not restored: ")
    names = [one[1] for one in LEFT.finditer(left)] if found else []
    return [name.removeprefix(FIRMWARE) for name in names] if all(name.startswith(FIRMWARE) for name in names) else []


def _take_back(machine: Machine, candidate: Candidate, layout: Layout, runs: Path, say: Say) -> list[str]:
    """Takes back what would keep the candidate busy or full. A target that is not mounted holds nothing of ours.

    A file system that has failed must not keep the settings from being put back: returns what cannot be removed from one that stays."""
    kept = []
    for one in (replace(candidate, target=target) for target in candidate.targets if not target.is_raw):
        failed = remove_scratch(machine, [target_directory(layout, one)], say)
        kept += failed if one.target.storage is None else []  # what the bench has made is undone with all that is on it
    take_back(machine, runs, say)
    return kept


def _reached(stack: ExitStack, command: str, profiles: Profiles, layout: Layout) -> Machine | None:
    """The candidate's machine; None where only `restore` goes on without it, since the BMC may be all that answers."""
    name = profiles.candidate.name
    try:
        return stack.enter_context(connected(profiles.inventory_file, name, layout, to_change=command == "provision"))
    except BenchError as error:
        _goes_on_without(command, error)
        return None


def _goes_on_without(command: str, error: BenchError) -> None:
    if command != "restore":
        raise error
    print(f"warning: {printable(str(error))}; restoring what can be restored without it", file=sys.stderr)


def unlock(options: argparse.Namespace) -> int:
    """Removes a stale lock from the candidate."""
    layout = Layout()
    profiles = load_profiles(request_of_options(options), layout)
    name = profiles.candidate.name
    with (
        all_exclusive(profiles.candidate, "daq-bench unlock"),
        connected(profiles.inventory_file, name, layout) as machine,
    ):
        print(f"{name}: {printable(MachineLock(machine, name, 'daq-bench unlock', 0.0).break_open())}")
    return 0


def clean(options: argparse.Namespace) -> int:
    """Before build/ is removed: refuses while a candidate is still to be restored, keeps what must outlive build/."""
    layout = Layout()
    left = layout.to_put_back()
    if left:
        names = ", ".join(sorted({file.parent.name for file in left}))
        raise BenchError(
            f"nothing was removed: candidates are still tuned by the bench: {names} ({', '.join(map(shown, left))}). "
            "`daq-bench restore --candidate <name>` puts each back; remove the file of a machine that is gone for good"
        )
    for folder in sorted(layout.build_state.glob("*/")):
        kept = layout.state / folder.name
        if any(folder.rglob("*.json")):  # the accounts of write budgets
            if kept.exists():
                raise BenchError(
                    f"{shown(folder)} and {shown(kept)} both hold accounts. Merge them by hand, then clean again"
                )
            layout.state.mkdir(exist_ok=True)
            shutil.move(folder, kept)
            print(f"kept {shown(kept)}")
    return 0


COMMANDS = {
    "provision": Command("apply the tuning and leave it in force", _add_provision, ansible, needs_checkout=True),
    "verify": Command("read the tuning back", _add_tuning, ansible, needs_checkout=True),
    "restore": Command(
        "put the candidate back to how it was before provisioning", _add_restore, ansible, needs_checkout=True
    ),
    "unlock": Command("remove a stale lock from the candidate", add_profiles, unlock, needs_checkout=True),
    "clean": Command(
        "prepare build/ for deletion: keep what must outlive it; refuse while a candidate is not restored yet",
        no_arguments,
        clean,
        needs_checkout=True,
    ),
}
