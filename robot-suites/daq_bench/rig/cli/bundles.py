"""`python -m daq_bench.rig judge`, `check-bundle`, `replay`, `report` and `tables`: what is done with the bundle of an ended run."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.bundle.files import strict
from daq_bench.bench_model.bundle.provenance import REPORTS
from daq_bench.bench_model.documents.admission import Admissions, named
from daq_bench.bench_model.documents.run import TelemetryOfRun
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.documents.telemetry import TelemetryAccount
from daq_bench.bench_model.verdict.advice import advice_of
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.rig.base.bundle import Bundle, to_json
from daq_bench.rig.base.influx import INVENTORY_KEY, Influx, chosen
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.connection import variables_of
from daq_bench.rig.checking.agreement import changes_since
from daq_bench.rig.checking.check_bundle import check_bundle
from daq_bench.rig.checking.door import Trust, admit
from daq_bench.rig.checking.own_profiles import Own
from daq_bench.rig.checking.reporting import report_again
from daq_bench.rig.checking.sealing import sealed
from daq_bench.rig.checking.signing import INVENTORY_KEYS, of_checker
from daq_bench.rig.checking.tables import FORMATS, write_tables
from daq_bench.rig.cli.arguments import Command, add_inventory, add_json, add_run, challenge, print_document, say, shown
from daq_bench.rig.cli.runs import closing_words, exit_status, summary_of
from daq_bench.rig.telemetry.history import REPLAYED_ACCOUNT, forget_delivery, influx_of, replay_run, set_aside
from daq_bench.rig.telemetry.influx_server import LocalInflux


def _add_report(command: argparse.ArgumentParser) -> None:
    """Adds the run, and the checker's own trust and profiles: they come from here, never from the bundle."""
    add_run(command)
    _add_own(command)


def _add_own(command: argparse.ArgumentParser) -> None:
    command.add_argument("--scenario", metavar="FILE", help="the checker's own (inventory/scenarios/<id>.yml)")
    command.add_argument("--requirement", metavar="FILE", help="the checker's own (inventory/requirements/<id>.yml)")
    add_inventory(command)


def _own(options: argparse.Namespace) -> Own:
    return Own.named(Layout().inventory, options.scenario, options.requirement)


def _own_inventory(options: argparse.Namespace) -> Path:
    return options.inventory or Layout().inventory / "lab.yml"


def _add_judge(command: argparse.ArgumentParser) -> None:
    add_run(command)
    add_json(command, "the whole verdict, with conclusion, likely_cause and next_step")


def judge(options: argparse.Namespace) -> int:
    """Says what qualify said at the run's end, from the evidence alone, and ends with the same status."""
    verdict = judge_bundle(options.run)
    bundle = Bundle.open(options.run)
    if changes := _changes(bundle):
        told = printable(f"{options.run} was altered since its run ({changes})")
        print(f"warning: {told}: the verdict is of what it holds now. Use a sound copy of it", file=sys.stderr)
    if options.json:
        advice = advice_of(options.run, bundle.run, verdict)
        print(to_json({**as_document(verdict), **summary_of(verdict, advice)}), end="")
    else:
        print("\n".join(map(printable, closing_words(bundle, verdict).strip("\n").split("\n"))))
    return exit_status(bundle, verdict)


def _changes(bundle: Bundle) -> str:
    """Names what is no longer as the sealed run left it; empty for a run that was never sealed, which `judge` says by itself."""
    try:
        return named(changes_since(bundle), "; ") if sealed(bundle.path) else ""
    except BenchError as error:
        return in_words(error)


def _add_check(command: argparse.ArgumentParser) -> None:
    _add_report(command)
    command.add_argument("--challenge", type=challenge, metavar="NONCE", help="the nonce that the run was given")
    add_json(command, "problems, lines, notes and conclusion")


def check(options: argparse.Namespace) -> int:
    """Status 1 for any difference, and where trusted signatures were asked for, for any lack of one."""
    signers = of_checker(_own_inventory(options), ("allowed_signers",)).allowed_signers
    found = check_bundle(options.run, signers, _own(options), options.challenge)
    for problem in found.problems:
        print(problem, file=sys.stderr)
    for line in (*found.lines, *(f"note       {note}" for note in found.notes)):
        say(options, line)
    say(options, f"{options.run}: {found.conclusion}")
    print_document(
        options,
        {
            "run": str(options.run),
            "ok": not found.problems,
            "conclusion": found.conclusion,
            "problems": list(found.problems),
            "lines": list(found.lines),
            "notes": list(found.notes),
        },
    )
    return 1 if found.problems else 0


def _add_admit(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "bundles",
        type=Path,
        nargs="*",
        metavar="RUN",
        help="run bundles; without one, a JSON list of them on standard input",
    )
    _add_own(command)
    add_json(command, "what was found of each")


def _read_bundles(text: str) -> list[Path]:
    try:
        found = strict(text.strip() or "[]")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) and one.strip() for one in found):
        raise BenchError(
            'standard input is no JSON list of run bundles. Write it as ["runs/<run-id>", ...], or name RUN'
        )
    return [Path(one) for one in found]


def admissions(options: argparse.Namespace) -> int:
    """Status 1 where one of them has a fault. Who signed a run, and by which profiles, is said and is no fault."""
    bundles = options.bundles or _read_bundles(sys.stdin.read())
    found = admit(bundles, _trust(options))
    for one in found:
        say(
            options,
            printable(f"{one.bundle}: {one.refusal or ', '.join(one.marks) or 'signed by a key that you trust'}"),
        )
    print_document(options, as_document(Admissions(found)))
    return 1 if any(one.problems for one in found) else 0


def _trust(options: argparse.Namespace) -> Trust:
    signers = of_checker(_own_inventory(options), ("allowed_signers",)).allowed_signers
    return Trust(signers, _own(options))


def _add_replay(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument(
        "--all", action="store_true", help="also what InfluxDB has acknowledged, because it lost it since"
    )
    command.add_argument("--influx-url", metavar="URL", help="where to; default: the bench's own server")
    add_inventory(command)


def replay(options: argparse.Namespace) -> int:
    bundle = Bundle.open(options.run)
    telemetry = bundle.run.telemetry
    if telemetry is None:
        raise BenchError(f"{options.run} has no telemetry: the run ended before the agent started")
    influx = chosen(options.influx_url) or _server_of(bundle, telemetry, _own_inventory(options))
    if options.all:
        forget_delivery(bundle.path)
    problem = replay_run(Layout().agent, bundle.path, influx)
    if problem:
        raise BenchError(f"InfluxDB at {influx.url} did not take everything: {problem}.{_next_step(bundle, influx)}")
    account = bundle.find(REPLAYED_ACCOUNT, TelemetryAccount)
    if account and account.invalid:
        again = f"daq-bench replay {shown(bundle.path)} --all"
        raise BenchError(
            f"InfluxDB at {influx.url} took everything, but: {'; '.join(account.invalid)}. If it lost some, `{again}` delivers all"
        )
    print(f"InfluxDB at {influx.url} holds all telemetry and the verdict of {bundle.id}")
    if account:
        print(account.sentence)
    if refused := set_aside(bundle.path):
        print(f"warning: {refused}")
    return 0


def _next_step(bundle: Bundle, influx: Influx) -> str:
    if not influx.configured:
        return " Start it (`daq-bench influx start`) and replay again"
    if influx.token:
        return ""
    again = f"daq-bench replay {shown(bundle.path)} --influx-url {influx.url}"
    return f" It got no token, because only the bundle names this server: if it is yours, `{again}` sends yours"


def _server_of(bundle: Bundle, telemetry: TelemetryOfRun, inventory: Path) -> Influx:
    """Returns the server for a run's telemetry when nobody names another: its own, if it had one named, else the bench's.

    Anybody can write a bundle: a server that the operator's own inventory does not name too never gets the operator's token."""
    used = influx_of(telemetry)
    if used.configured:
        named = _named_in(inventory, bundle.run.candidate.name)
        return named if named and named.url == used.url else used
    running = LocalInflux(Layout().influxd, Layout().influx_data).running_url()
    return replace(used, url=running) if running else used


def _named_in(inventory: Path, candidate: str) -> Influx | None:
    """The server that the operator's inventory names for a candidate; None also for a candidate that it does not have."""
    try:
        return chosen(None, variables_of(inventory, candidate, (INVENTORY_KEY,)).get(INVENTORY_KEY))
    except BenchError:
        return None


def _add_rendering(command: argparse.ArgumentParser) -> None:
    _add_report(command)
    add_json(command, "the files")


def report(options: argparse.Namespace) -> int:
    """Renders again, and seals (with SIGN_KEY= signs) what was rendered; a report never covers up an alteration."""
    bundle = Bundle.open(options.run)
    here = of_checker(_own_inventory(options), INVENTORY_KEYS)
    for line in report_again(bundle, here.key, here.allowed_signers, _own(options)):
        print(printable(line), file=sys.stderr)
    files = [shown(bundle.path / name) for name in REPORTS]
    say(options, "\n".join(files))
    print_document(options, {"run": str(options.run), "files": files})
    return 0


def _add_tables(command: argparse.ArgumentParser) -> None:
    add_run(command)
    _add_own(command)
    command.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="a new folder for the tables")
    command.add_argument("--format", choices=FORMATS, default="csv", help="csv; parquet needs pyarrow")
    add_json(command, "the files")


def tables(options: argparse.Namespace) -> int:
    (door,) = admit([options.run], _trust(options))
    written = write_tables(options.run, options.output, options.format, door)
    files = [str(options.output / name) for name in written]
    say(options, "\n".join(files))
    if beside := [door.refusal] if door.refusal else door.marks:
        print(printable(f"warning: {options.run}: {', '.join(beside)}"), file=sys.stderr)
    print_document(
        options, {"run": str(options.run), "files": files, "marks": list(door.marks), "problems": door.problems}
    )
    return 0


COMMANDS = {
    "judge": Command("recompute the verdict of a run from its bundle", _add_judge, judge),
    "check-bundle": Command(
        "check a bundle's seals and signatures; recompute its verdict and every number of its reports",
        _add_check,
        check,
    ),
    "admit": Command(
        "say whether each run may be ranked, and which marks documents show beside it", _add_admit, admissions
    ),
    "replay": Command("send the telemetry of a run that InfluxDB lacks", _add_replay, replay, needs_checkout=True),
    "tables": Command("write a run's numbers as CSV or Parquet tables", _add_tables, tables),
    "report": Command("render report.html and report.pdf again from the bundle", _add_rendering, report),
}
