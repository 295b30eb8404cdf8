"""Command line: qualify, resume, provision, verify, restore, validate, judge, check-bundle, report, replay, influx, nightly, baseline.

Exit status of qualify: 0 PASS, or a declared rehearsal in which nothing mandatory was missed; 1 FAIL; 2 ERROR; 3 INADMISSIBLE for a
reason that nobody declared (telemetry gap, source too slow, wrong machine); 130 interrupted.
Exit status of provision and verify: 0 every setting is as asked (or the machine has none); 4 drift: one is not; 2 the command failed."""

from __future__ import annotations

import argparse
import shutil
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bench_model.base.errors import BenchError
from bench_model.bundle.provenance import REPORTS
from bench_model.profiles.compared_targets import compared_names
from bench_model.verdict import verdict as outcomes
from bench_model.verdict.judging import judge_bundle
from rig.base.bundle import Bundle, to_json
from rig.base.influx import INVENTORY_KEY, Influx, chosen, with_tokens
from rig.base.settings import Layout, Profiles, Request, load_profiles, profile_file, target_directory
from rig.candidate.connection import connection_of, variables_of
from rig.candidate.host import require_target_directory, survey
from rig.candidate.lock import all_exclusive
from rig.candidate.machine import Machine, machine_of
from rig.candidate.machine_lock import MachineLock, machine_locked
from rig.candidate.provision import drift_in
from rig.checking import agreement
from rig.checking.check_bundle import check_bundle, printable
from rig.checking.own_profiles import Own
from rig.checking.reporting import report_again
from rig.checking.signing import INVENTORY_KEYS, of_checker
from rig.nightly import cli as nightly_cli
from rig.run.candidate_session import CandidateSession, connected, reboot_s
from rig.run.preflight import check_drives
from rig.run.qualify import Qualification
from rig.run.resume import request_of
from rig.run.validation import validate_all
from rig.telemetry.history import REPLAYED_ACCOUNT, forget_delivery, influx_of, replay_earlier, replay_run
from rig.telemetry.influx_server import LocalInflux

EXIT = {outcomes.PASS: 0, outcomes.FAIL: 1, outcomes.ERROR: 2, outcomes.INADMISSIBLE: 3}
DRIFT = 4
INTERRUPTED = 130
WORST_FIRST = (INTERRUPTED, EXIT[outcomes.ERROR], EXIT[outcomes.FAIL], EXIT[outcomes.INADMISSIBLE])


def positive(text: str) -> float:
    """A number above zero, for argparse."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not above zero")
    return value


def scale(text: str) -> float:
    """A share of one unit's load, for argparse."""
    value = positive(text)
    if value > 1.2:
        raise argparse.ArgumentTypeError(f"{text} is above 1.2; 1 is the whole load of one readout unit")
    return value


def challenge(text: str) -> str:
    """A nonce, for argparse."""
    try:
        return agreement.challenge(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m rig", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(dest="command", required=True)
    qualify = commands.add_parser("qualify", help="qualify a candidate")
    _add_profiles(qualify)
    qualify.add_argument(
        "--scale", type=scale, help="share of the real load, instead of the scenario's (1: one whole unit)"
    )
    qualify.add_argument(
        "--duration", type=positive, metavar="SECONDS", help="length of the record in s, instead of the scenario's"
    )
    qualify.add_argument(
        "--target",
        metavar="NAME|DIRECTORY",
        help="one of the candidate's targets, or a folder instead of the inventory's",
    )
    qualify.add_argument(
        "--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="where run bundles go (runs)"
    )
    qualify.add_argument(
        "--influx-url",
        metavar="URL",
        help="an InfluxDB of your own, instead of the bench's on 127.0.0.1 (docs/telemetry.md)",
    )
    qualify.add_argument(
        "--challenge",
        type=challenge,
        metavar="NONCE",
        help="a buyer's nonce, sealed with the run: it was not made before",
    )
    qualify.add_argument("--keep-tuning", action="store_true", help="leave the candidate tuned at the end")
    resume = commands.add_parser("resume", help="start an interrupted run again, with what it was asked for")
    resume.add_argument("run", type=Path, help="runs/<run-id> of the interrupted run")
    resume.add_argument("--influx-url", metavar="URL", help="another InfluxDB than the interrupted run's")
    for name, text in (
        ("provision", "apply the tuning and leave it in force"),
        ("verify", "read the tuning back"),
        ("restore", "put the candidate back to how it was before provisioning"),
    ):
        command = commands.add_parser(name, help=text)
        _add_profiles(command)
        if name == "provision":
            command.add_argument("--check", action="store_true", help="only tell what would be changed and erased")
    _add_profiles(commands.add_parser("unlock", help="forget a lock on the candidate whose owner is gone"))
    commands.add_parser("clean", help="refuse while a candidate is still to be restored; keep what must outlive build/")
    _add_profiles(commands.add_parser("validate", help="check the inventory, scenario, requirement and metrics"))
    for name, text in (
        ("judge", "recompute the verdict of a run from its bundle"),
        (
            "check-bundle",
            "check a bundle's seals and signatures; recompute its verdict and every number of its reports",
        ),
        ("replay", "deliver what InfluxDB has not got of a run"),
        ("report", "render report.html and report.pdf again from the bundle"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("run", type=Path, help="runs/<run-id>")
        if name in ("check-bundle", "report"):
            _add_own(command)
        if name == "check-bundle":
            command.add_argument(
                "--challenge", type=challenge, metavar="NONCE", help="the nonce that the run was given"
            )
        if name == "replay":
            command.add_argument(
                "--all", action="store_true", help="also what InfluxDB has acknowledged, because it lost it since"
            )
            command.add_argument("--influx-url", metavar="URL", help="where to; default: the bench's own server")
            _add_inventory(command)
    nightly_cli.add_to(commands)
    influx = commands.add_parser("influx", help="the bench's own InfluxDB on 127.0.0.1")
    influx.add_argument("action", choices=["start", "stop", "status"])
    return top


def _add_profiles(command: argparse.ArgumentParser) -> None:
    command.add_argument("--candidate", default="this-machine", help="host of the inventory (this-machine)")
    command.add_argument(
        "--scenario", help="id in inventory/scenarios, or a YAML file (the candidate's, else dune-snb)"
    )
    command.add_argument(
        "--requirement", help="id in inventory/requirements, or a YAML file (the candidate's, else dune-snb)"
    )
    command.add_argument("--inventory", type=Path, metavar="FILE", help="inventory (inventory/lab.yml)")


def _add_own(command: argparse.ArgumentParser) -> None:
    """Adds the checker's own trust and profiles: they come from here, never from the bundle."""
    command.add_argument("--scenario", metavar="FILE", help="the checker's own (inventory/scenarios/<id>.yml)")
    command.add_argument("--requirement", metavar="FILE", help="the checker's own (inventory/requirements/<id>.yml)")
    _add_inventory(command)


def _add_inventory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--inventory", type=Path, metavar="FILE", help="the caller's own (inventory/lab.yml)")


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; every error that a user can mend is one message without a traceback."""
    options = parser().parse_args(arguments)
    try:
        return int(COMMANDS[options.command](options))
    except BenchError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return EXIT[outcomes.ERROR]
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _request(options: argparse.Namespace, target: str | None = None) -> Request:
    return Request(
        candidate=options.candidate,
        target=target,
        scenario=options.scenario,
        requirement=options.requirement,
        inventory=options.inventory,
    )


def qualify(options: argparse.Namespace) -> int:
    """One run for each target of the candidate, or for the one that was asked for."""
    console = Console(stderr=True)
    names, directory = chosen_targets(options)
    statuses = []
    for number, name in enumerate(names, start=1):
        if len(names) > 1:
            console.print(f"target {name} ({number} of {len(names)})", highlight=False)
        request = replace(
            _request(options, name),
            scale=options.scale,
            duration_s=options.duration,
            runs=options.runs.resolve(),
            target_directory=directory,
            influx_url=options.influx_url,
            keep_tuning=options.keep_tuning,
            challenge=options.challenge,
        )
        statuses.append(_run(request, console))
        if statuses[-1] == INTERRUPTED:
            break
    return next((status for status in WORST_FIRST if status in statuses), 0)


def _run(request: Request, console: Console) -> int:
    """One run, what it ends with, and the exit status that follows."""
    bundle, verdict = Qualification(request, Layout(), console).execute()
    print(closing_words(bundle, verdict))
    telemetry = bundle.run.get("telemetry")
    if telemetry:
        for run in replay_earlier(Layout().agent, request.runs or Layout().runs, _with_rights(influx_of(telemetry))):
            print(f"InfluxDB now also holds the telemetry of {run}")
    return exit_status(bundle, verdict)


def resume(options: argparse.Namespace) -> int:
    request = request_of(Bundle.open(options.run))
    if options.influx_url:
        request = replace(request, influx_url=options.influx_url)
    console = Console(stderr=True)
    console.print(f"resuming {request.resumes}", highlight=False)
    return _run(request, console)


def chosen_targets(options: argparse.Namespace) -> tuple[list[str], Path | None]:
    """Names of the targets to run on, and the folder that replaces the inventory's. Raises BenchError."""
    profiles = load_profiles(_request(options), Layout())
    candidate, compared = profiles.candidate, compared_names(profiles.scenario)
    known = [target.name for target in candidate.targets]
    if compared:
        if options.target not in (None, compared[0]):
            raise BenchError(
                f"scenario {profiles.scenario.id!r} measures its targets in one run ({', '.join(compared)}), so that TARGET="
                f"{options.target} chooses nothing. Leave it out, or change the scenario's `reference` and `sets`"
            )
        return compared[:1], None
    if options.target is None:
        return candidate.own_run_targets, None
    if options.target in known:
        return [options.target], None
    if len(known) > 1 or candidate.connection != "local":
        raise BenchError(f"candidate {candidate.name!r} has no target {options.target!r}. Known: {', '.join(known)}")
    return known, Path(options.target).resolve()


def exit_status(bundle: Bundle, verdict: dict[str, Any]) -> int:
    """A declared rehearsal in which nothing mandatory was missed did what was asked of it, so it is no failure of the command."""
    if bundle.run["state"] == "interrupted":
        return INTERRUPTED
    return 0 if verdict["declared_rehearsal"] else EXIT[verdict["outcome"]]


def closing_words(bundle: Bundle, verdict: dict[str, Any]) -> str:
    """Outcome, reasons and paths, as `make qualify` prints them last."""
    lines = ["", f"Outcome: {verdict['outcome']}", *(f"  - {reason}" for reason in verdict["reasons"])]
    if verdict["declared_rehearsal"]:
        lines.append(
            "This was a rehearsal: nothing mandatory was missed, but its evidence does not count as a qualification."
        )
    names = ("report.pdf", "report.html", "verdict.json", "robot/log.html")
    lines += ["", *(f"{name:<15} {_shown(bundle.path / name)}" for name in names if (bundle.path / name).exists())]
    if bundle.run.get("state") == "interrupted":
        lines.append(f"`make resume RUN={_shown(bundle.path)}` starts it again")
    if not (bundle.path / "report.pdf").exists():
        lines.append(f"No report was rendered; `make report RUN={_shown(bundle.path)}` renders one from what there is")
    return "\n".join(lines)


def _shown(path: Path) -> str:
    """Relative to where the user stands, if the file is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def validate(options: argparse.Namespace) -> int:
    load_profiles(_request(options), Layout())
    for line in validate_all(Layout(), options.inventory):
        print(line)
    return 0


def ansible(options: argparse.Namespace) -> int:
    """provision, verify and restore without a run, for each target; the facts go to build/facts/<candidate>."""
    layout = Layout()
    profiles = load_profiles(_request(options), layout)
    names = compared_names(profiles.scenario)[:1] or profiles.candidate.own_run_targets
    if options.command == "restore":
        names = names[:1]  # one restore undoes what was built for any of them
    pretend = options.command == "provision" and options.check
    wrong = [
        _ansible(options.command, load_profiles(_request(options, name), layout), layout, pretend) for name in names
    ]
    return DRIFT if any(wrong) else 0


def clean(options: argparse.Namespace) -> int:
    """Before build/ is removed: refuses while a candidate is still to be restored, keeps what must outlive build/."""
    layout = Layout()
    left = layout.to_put_back()
    if left:
        names = ", ".join(sorted({file.parent.name for file in left}))
        raise BenchError(
            f"nothing was removed: candidates are still tuned by the bench: {names} ({', '.join(map(_shown, left))}). "
            "`make restore CANDIDATE=<name>` puts each back; remove the file of a machine that is gone for good"
        )
    for folder in sorted(layout.build_state.glob("*/")):
        kept = layout.state / folder.name
        if any(folder.rglob("*.json")):  # the accounts of write budgets
            if kept.exists():
                raise BenchError(
                    f"{_shown(folder)} and {_shown(kept)} both hold accounts. Merge them by hand, then clean again"
                )
            layout.state.mkdir(exist_ok=True)
            shutil.move(folder, kept)
            print(f"kept {_shown(kept)}")
    return 0


def unlock(options: argparse.Namespace) -> int:
    """Forgets a lock on the candidate whose owner is gone."""
    layout = Layout()
    profiles = load_profiles(_request(options), layout)
    name = profiles.candidate.name
    with all_exclusive(profiles.candidate, "make unlock"), connected(profiles.inventory_file, name, layout) as machine:
        print(f"{name}: {printable(MachineLock(machine, name, 'make unlock', 0.0).break_open())}")
    return 0


def _ansible(command: str, profiles: Profiles, layout: Layout, pretend: bool) -> list[str]:
    """Runs the playbook; returns, and prints, the settings that are not as asked."""
    candidate = profiles.candidate
    facts = layout.build / "facts" / candidate.name / candidate.target.name / ("check" if pretend else "")
    directory = target_directory(layout, candidate)
    facts.mkdir(parents=True, exist_ok=True)
    what, file = (
        f"make {command} in {layout.repository}",
        "tuning-verified.json" if command == "verify" else "tuning.json",
    )
    with all_exclusive(candidate, what), ExitStack() as stack:
        there = _reached(stack, command, profiles, layout)
        if there:
            left_behind = stack.enter_context(machine_locked(there, candidate.name, what, reboot_s(candidate)))
            if left_behind:
                print(left_behind, file=sys.stderr)
            if command == "provision":
                check_drives(candidate, survey(there))
        if candidate.connection == "local" and candidate.target.storage is None and not candidate.target.is_raw:
            require_target_directory(directory)
        elif command == "provision" and candidate.target.kind == "scratch-file" and not pretend and there:
            there.call("scratch", "folder", directory)
        # Ansible connects by itself: what concerns the BMC can be restored when the candidate is dead.
        machine = machine_of(connection_of(profiles.inventory_file, candidate.name), facts / "no-link", layout)
        session = CandidateSession(layout, profiles, machine, directory)
        session.find_raw_drive()
        said = session.ansible(facts, command).run(command, file, check=pretend, bench_agent_arguments=[])
    if pretend:
        print(said)
    named = candidate.target.name and command != "restore"
    of = f"{candidate.name}, target {candidate.target.name}" if named else candidate.name
    what = f"{command} (check only)" if pretend else command
    wrong = drift_in(facts / file) if command != "restore" and not pretend else []
    for line in wrong:
        print(f"drift      {printable(line)}")
    found = f"; {len(wrong)} settings are not as asked" if wrong else ""
    print(f"{what} of {of} is done{found}; facts and Ansible's output are in {_shown(facts)}")
    return wrong


def _reached(stack: ExitStack, command: str, profiles: Profiles, layout: Layout) -> Machine | None:
    """The candidate's machine; None where only `restore` goes on without it, since the BMC may be all that answers."""
    name = profiles.candidate.name
    try:
        return stack.enter_context(connected(profiles.inventory_file, name, layout))
    except BenchError as error:
        if command != "restore":
            raise
        print(f"warning: {printable(str(error))}; restoring what can be restored without it", file=sys.stderr)
        return None


def judge(options: argparse.Namespace) -> int:
    verdict = judge_bundle(options.run)
    print(to_json(verdict), end="")
    return EXIT[verdict["outcome"]]


def check(options: argparse.Namespace) -> int:
    """Status 1 for any difference, and where trusted signatures were asked for, for any lack of one."""
    signers = of_checker(_own_inventory(options), ("allowed_signers",)).allowed_signers
    found = check_bundle(options.run, signers, _own(options), options.challenge)
    for problem in found.problems:
        print(problem, file=sys.stderr)
    for line in (*found.lines, *(f"note       {note}" for note in found.notes)):
        print(line)
    print(f"{options.run}: {found.conclusion}")
    return 1 if found.problems else 0


def _own(options: argparse.Namespace) -> Own:
    """The checker's own profiles, each by its id or as a YAML file."""
    folder = Layout().inventory
    scenario = profile_file(folder / "scenarios", options.scenario) if options.scenario else None
    requirement = profile_file(folder / "requirements", options.requirement) if options.requirement else None
    return Own(scenario, requirement)


def _own_inventory(options: argparse.Namespace) -> Path:
    return options.inventory or Layout().inventory / "lab.yml"


def replay(options: argparse.Namespace) -> int:
    bundle = Bundle.open(options.run)
    telemetry = bundle.run.get("telemetry")
    if telemetry is None:
        raise BenchError(f"{options.run} has no telemetry: the run ended before the agent started")
    influx = chosen(options.influx_url) or _server_of(bundle, telemetry, _own_inventory(options))
    if options.all:
        forget_delivery(bundle.path)
    problem = replay_run(Layout().agent, bundle.path, influx)
    if problem:
        raise BenchError(f"InfluxDB at {influx.url} did not take everything: {problem}.{_next_step(bundle, influx)}")
    account = bundle.read(REPLAYED_ACCOUNT) or {"sentence": "", "invalid": []}
    if account["invalid"]:
        again = f"make replay RUN={_shown(bundle.path)} ALL=1"
        raise BenchError(
            f"InfluxDB at {influx.url} took everything, but: {'; '.join(account['invalid'])}. If it lost some, `{again}` delivers all"
        )
    print(f"InfluxDB at {influx.url} holds all telemetry and the verdict of {bundle.id}")
    if account["sentence"]:
        print(account["sentence"])
    return 0


def _next_step(bundle: Bundle, influx: Influx) -> str:
    if not influx.configured:
        return " Start it (`make influx-start`) and replay again"
    if influx.token:
        return ""
    again = f"make replay RUN={_shown(bundle.path)} INFLUX_URL={influx.url}"
    return f" It got no token, because only the bundle names this server: if it is yours, `{again}` sends yours"


def _server_of(bundle: Bundle, telemetry: dict[str, Any], inventory: Path) -> Influx:
    """Returns the server for a run's telemetry when nobody names another: its own, if it had one named, else the bench's.

    Anybody can write a bundle: a server that the operator's own inventory does not name too never gets the operator's token."""
    used = influx_of(telemetry)
    if used.configured:
        named = _named_in(inventory, str(bundle.run["candidate"]["name"]))
        return named if named and named.url == used.url else used
    running = LocalInflux(Layout().influxd, Layout().build / "influxdb").running_url()
    return replace(used, url=running) if running else used


def _named_in(inventory: Path, candidate: str) -> Influx | None:
    """The server that the operator's inventory names for a candidate; None also for a candidate that it does not have."""
    try:
        return chosen(None, variables_of(inventory, candidate, (INVENTORY_KEY,)).get(INVENTORY_KEY))
    except BenchError:
        return None


def _with_rights(influx: Influx) -> Influx:
    """A token is for the server that somebody named, never for the bench's own."""
    return with_tokens(influx) if influx.configured else influx


def report(options: argparse.Namespace) -> int:
    """Renders again, and seals (with SIGN_KEY= signs) what was rendered; a report never covers up an alteration."""
    bundle = Bundle.open(options.run)
    here = of_checker(_own_inventory(options), INVENTORY_KEYS)
    for line in report_again(bundle, here.key, here.allowed_signers, _own(options)):
        print(printable(line), file=sys.stderr)
    for name in REPORTS:
        print(_shown(bundle.path / name))
    return 0


def influx(options: argparse.Namespace) -> int:
    server = LocalInflux(Layout().influxd, Layout().build / "influxdb")
    if options.action == "start":
        print(f"InfluxDB is running at {server.start()}")
    elif options.action == "stop":
        print("InfluxDB stopped" if server.stop() else "InfluxDB was not running")
    else:
        url = server.running_url()
        print(f"InfluxDB is running at {url}" if url else "InfluxDB is not running")
        return 0 if url else 1
    return 0


COMMANDS = {
    "qualify": qualify,
    "resume": resume,
    "provision": ansible,
    "verify": ansible,
    "restore": ansible,
    "unlock": unlock,
    "clean": clean,
    "validate": validate,
    "judge": judge,
    "check-bundle": check,
    "replay": replay,
    "report": report,
    "influx": influx,
    **nightly_cli.COMMANDS,
}
