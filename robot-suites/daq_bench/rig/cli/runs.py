"""`python -m daq_bench.rig qualify` and `resume`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from rich.console import Console

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.documents.verdict import INADMISSIBLE, Verdict
from daq_bench.bench_model.nights.outcome import status_of
from daq_bench.bench_model.verdict.advice import Advice, advice_of, lines_of
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.rig.base import terminal
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx, with_tokens
from daq_bench.rig.base.settings import Layout, Request, load_profiles
from daq_bench.rig.base.terminal import agree
from daq_bench.rig.cli.arguments import (
    Command,
    add_jobs,
    add_json,
    add_load,
    add_yes,
    challenge,
    name_list,
    positive,
    print_document,
    say,
    shown,
)
from daq_bench.rig.cli.exits import EXIT, INTERRUPTED, WORST_FIRST
from daq_bench.rig.cli.planning import chosen_targets
from daq_bench.rig.cli.profiles import add_profiles, request_of_options
from daq_bench.rig.nightly.bursts import account, require_together
from daq_bench.rig.nightly.fleet import Fleet
from daq_bench.rig.nightly.job import Where
from daq_bench.rig.nightly.lanes import Stop
from daq_bench.rig.nightly.meeting import Meeting
from daq_bench.rig.nightly.plan import request_of_job
from daq_bench.rig.run.clean_up import not_given_back
from daq_bench.rig.run.planning import plan_run
from daq_bench.rig.run.qualify import Qualification
from daq_bench.rig.run.record import request_of
from daq_bench.rig.telemetry.history import influx_of, replay_earlier


def _add_qualify(command: argparse.ArgumentParser) -> None:
    add_profiles(command)
    add_load(command)
    command.add_argument(
        "--runs", type=Path, default=Layout().runs, metavar="DIRECTORY", help="where run bundles go (runs)"
    )
    command.add_argument(
        "--influx-url",
        metavar="URL",
        help="an InfluxDB of your own, instead of the bench's on 127.0.0.1 (docs/telemetry.md)",
    )
    command.add_argument(
        "--challenge",
        type=challenge,
        metavar="NONCE",
        help="a buyer's nonce, sealed with the run: it was not made before",
    )
    command.add_argument(
        "--candidates",
        type=name_list,
        metavar="A,B",
        help="several candidates, each in a process of its own; --jobs says how many at once",
    )
    add_jobs(command)
    command.add_argument(
        "--together", action="store_true", help="with --candidates: their bursts begin at the same moment"
    )
    command.add_argument(
        "--wait",
        type=positive,
        default=3600.0,
        metavar="SECONDS",
        help="how long a run that is ready for its burst waits for the others (3600)",
    )
    command.add_argument("--keep-tuning", action="store_true", help="leave the candidate tuned at the end")
    add_yes(command)
    add_json(command, "each run's outcome, reasons and bundle")


def qualify(options: argparse.Namespace) -> int:
    """One run for each target of the candidate, or for the one that was asked for."""
    console = Console(stderr=True)
    if options.candidates:
        return _several(options, console)
    if options.together:
        raise BenchError(
            f"{typed('--together', True)} needs candidates. Name them: {typed('--candidates', 'a,b')} {typed('--together', True)}"
        )
    names, directory = chosen_targets(options)
    runs: list[dict[str, Any]] = []
    for number, name in enumerate(names, start=1):
        if len(names) > 1:
            terminal.say(console, f"target {name} ({number} of {len(names)})")
        request = replace(
            request_of_options(options, name),
            scale=options.scale,
            duration_s=options.duration,
            runs=options.runs.resolve(),
            target_directory=directory,
            influx_url=options.influx_url,
            keep_tuning=options.keep_tuning,
            challenge=options.challenge,
            yes=options.yes,
        )
        runs.append(_run(options, request, console))
        if runs[-1]["exit_status"] == INTERRUPTED:
            break
    print_document(options, runs)
    statuses = [run["exit_status"] for run in runs]
    return next((status for status in WORST_FIRST if status in statuses), 0)


def _several(options: argparse.Namespace, console: Console) -> int:
    """Runs of several candidates, each a process of its own; the worst of their outcomes as exit status, as of a night."""
    inventory = (options.inventory or Layout().inventory / "lab.yml").resolve()
    jobs = [
        Job(name, options.scenario, options.requirement, options.target, options.scale, options.duration)
        for name in options.candidates
    ]
    more = ["--keep-tuning"] if options.keep_tuning else []
    more += [f"--challenge={options.challenge}"] if options.challenge else []
    # A misspelt name ends the command before the first run begins; so does what nobody agrees to.
    profiles = [load_profiles(request_of_job(job, inventory), Layout()) for job in jobs]
    asked = [f"{one.candidate.name}: {text}" for one in profiles if (text := plan_run(one, Layout()).consent)]
    agree("; ".join(asked), options.yes, console)
    more += ["--yes"] if options.yes or asked else []
    where = Where(inventory, options.runs.resolve(), options.influx_url, tuple(more))
    scenarios = [one.scenario for one in profiles]
    meeting = None
    if options.together:
        require_together(jobs, scenarios, inventory)
        meeting = Meeting(options.candidates, options.wait)
    logs = Layout().build / "logs" / f"qualify-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    at_once = len(jobs) if meeting else options.jobs
    entries = Fleet(jobs, where, logs, console, at_once, Stop(), meeting).execute("the command")
    for entry in entries:
        say(options, f"{entry.job.name}: {entry.word}{f': {entry.reason}' if entry.reason else ''}")
        for line in lines_of(entry.likely_cause, entry.next_step):
            say(options, f"  {line}")
        if entry.night:
            say(options, f"  {shown(entry.night.path)}")
    print_document(
        options,
        [
            {
                "candidate": entry.job.name,
                "outcome": entry.worst,
                "reason": entry.reason,
                "likely_cause": entry.likely_cause or None,
                "next_step": entry.next_step or None,
                "run": str(entry.night.path) if entry.night else None,
            }
            for entry in entries
        ],
    )
    if meeting and not account(entries, logs, lambda line: say(options, line)):
        say(options, "The bursts did not begin together: what was to be shown by that is not shown (docs/fleet.md)")
        return status_of(entries) or EXIT[INADMISSIBLE]
    return status_of(entries)


def _run(options: argparse.Namespace, request: Request, console: Console) -> dict[str, Any]:
    """One run, what it ends with, and the exit status that follows."""
    bundle, verdict = Qualification(request, Layout(), console).execute()
    say(options, closing_words(bundle, verdict))
    telemetry = bundle.run.telemetry
    if telemetry:
        for run in replay_earlier(Layout().agent, request.runs or Layout().runs, _with_rights(influx_of(telemetry))):
            say(options, f"InfluxDB now also holds the telemetry of {run}")
    advice = advice_of(bundle.path, bundle.run, verdict)
    return {
        "run": shown(bundle.path),
        "candidate": bundle.run.candidate.name,
        "target": request.target,
        "outcome": verdict.outcome,
        "declared_rehearsal": verdict.declared_rehearsal,
        **summary_of(verdict, advice),
        "reasons": list(verdict.reasons),
        "exit_status": exit_status(bundle, verdict),
    }


def _add_resume(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "run", type=Path, help="runs/<run-id> of the interrupted run; `daq-bench list runs` lists them"
    )
    command.add_argument("--influx-url", metavar="URL", help="another InfluxDB than the interrupted run's")
    add_yes(command)
    add_json(command, "the run's outcome, reasons and bundle")


def resume(options: argparse.Namespace) -> int:
    request = request_of(Bundle.open(options.run))
    request = replace(request, influx_url=options.influx_url or request.influx_url, yes=options.yes)
    console = Console(stderr=True)
    terminal.say(console, f"resuming {request.resumes}")
    run = _run(options, request, console)
    print_document(options, run)
    status: int = run["exit_status"]
    return status


class Summary(TypedDict):
    conclusion: str
    likely_cause: str | None
    next_step: str


def summary_of(verdict: Verdict, advice: Advice) -> Summary:
    """The three lines that a person reads first, for programs. `likely_cause` is null where nothing is known beyond the conclusion."""
    return {
        "conclusion": conclude(verdict).line,
        "likely_cause": advice.cause or None,
        "next_step": advice.step.line,
    }


def exit_status(bundle: Bundle, verdict: Verdict) -> int:
    """A declared rehearsal missed no mandatory requirement and did what was asked of it, so it is no failure of the command."""
    if bundle.run.state == "interrupted":
        return INTERRUPTED
    return 0 if verdict.declared_rehearsal else EXIT[verdict.outcome]


def closing_words(bundle: Bundle, verdict: Verdict) -> str:
    """Conclusion, likely cause, next step, outcome, reasons and paths, as `daq-bench qualify` prints them last."""
    found = conclude(verdict)
    # How an interrupted run goes on stands below, with the path that its reader can type.
    advised = advice_of(bundle.path, bundle.run, verdict).lines if bundle.run.state != "interrupted" else ()
    reasons = dict.fromkeys([*found.missed, *verdict.reasons]) if found.missed else verdict.reasons
    stored = f" ({verdict.outcome} in verdict.json)" if found.word != verdict.outcome else ""
    lines = ["", found.line, *advised, "", f"Outcome: {found.word}{stored}", *(f"  - {reason}" for reason in reasons)]
    names = ("report.pdf", "report.html", "verdict.json", "robot/log.html")
    lines += ["", *(f"{name:<15} {shown(bundle.path / name)}" for name in names if (bundle.path / name).exists())]
    if bundle.run.state == "interrupted":
        lines.append(f"`daq-bench resume {shown(bundle.path)}` starts it again")
    if left := not_given_back(bundle):
        lines.append(left)
    if not (bundle.path / "report.pdf").exists():
        lines.append(f"No report was rendered; `daq-bench report {shown(bundle.path)}` renders one from what there is")
    return "\n".join(lines)


def _with_rights(influx: Influx) -> Influx:
    """A token is for the server that somebody named, never for the bench's own."""
    return with_tokens(influx) if influx.configured else influx


COMMANDS = {
    "qualify": Command("qualify a candidate", _add_qualify, qualify, needs_checkout=True),
    "resume": Command(
        "start an interrupted run again, with what it was asked for", _add_resume, resume, needs_checkout=True
    ),
}
