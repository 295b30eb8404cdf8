"""The run of an own suite, in a process of its own: the suite's keywords ask it over a pipe, a line of JSON each way.

So the run is given back whatever becomes of Robot Framework: the kernel ends this process politely when the suite's dies."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from robot.rebot import rebot

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError, RefusedError, in_words
from daq_bench.bench_model.verdict.conclusion import conclude
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout, Request
from daq_bench.rig.base.terminal import agree, printable_lines
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import differences
from daq_bench.rig.checking.extraction import failed_target, measured
from daq_bench.rig.run import preflight
from daq_bench.rig.run.clean_up import CLEAN_UP
from daq_bench.rig.run.facilities import live_facilities
from daq_bench.rig.run.planning import plan_run
from daq_bench.rig.run.qualify import Qualification
from daq_bench.rig.run.readings import compare
from daq_bench.rig.run.record import planned_run
from daq_bench.rig.run.targets import Targets, check_peers
from daq_bench.rig.suite.scenario import OwnScenario, profiles_of
from daq_bench.rig.workloads.registry import WORKLOADS

RESTORE, END = "restore", "end"
AGREE = "Nothing was written. Agree with `yes=True` of Provision Candidate, or ask for less"
NO_LOAD = "the suite put no load on the candidate. Call a keyword that does: Record Burst, Write, Scan Block Sizes"
WIDTH = 200
Answer = dict[str, Any]


class Channel:
    """Requests of the suite's process, and our answers. `said`: what the run printed for people since the last answer."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers
        self.said = StringIO()
        self.transcript: list[str] = []

    def ask(self) -> Answer:
        """Returns the next request. Raises InterruptedRunError when the suite's process is gone."""
        line = self._requests.readline()
        if not line:
            raise InterruptedRunError("the suite's process ended before its run was given back")
        found: Answer = json.loads(line)
        return found

    def answer(self, **answer: Any) -> None:
        text = printable_lines(self.said.getvalue())
        self.said.seek(0)
        self.said.truncate()
        self.transcript.append(text)
        with suppress(BrokenPipeError):  # the suite's process is gone, which the next `ask` says
            print(json.dumps({**answer, "said": text}), file=self._answers, flush=True)


class OwnSuite:
    """The loads of the candidate: the requests of a suite, one after another (rig.run.suites.Loads)."""

    def __init__(self, channel: Channel, scenario: OwnScenario, layout: Layout, request: Request) -> None:
        self._channel, self._scenario, self._layout, self._request = channel, scenario, layout, request
        self._broken = ""
        self._restoring = False

    def load(self, targets: Targets, bundle: Bundle, environment: Mapping[str, str]) -> None:
        os.environ.update(environment)
        machine = targets.first.machine
        if wrong := differences(compare(RunContext.of(bundle, machine))):
            raise BenchError(f"this is not the candidate that the inventory declares: {wrong}")
        self._channel.answer(ok={"bundle": str(bundle.path)})
        self._serve(RESTORE, {"load": lambda asked: self._load(targets, bundle, asked), "event": _event(bundle)})
        self._restoring = True
        if self._broken:
            raise BenchError(self._broken)
        if not self._scenario.workloads:
            raise BenchError(NO_LOAD)

    def given_back(self, bundle: Bundle) -> None:
        if not self._restoring:
            return
        left = [one.text for one in bundle.events() if (one.kind, one.source) == ("error", CLEAN_UP)]
        if left:
            self._channel.answer(error=f"could not be given back: {'; '.join(left)}")
        else:
            self._channel.answer(ok={})
        try:
            asked = self._serve(END, {"event": _event(bundle)})
        except (InterruptedRunError, KeyboardInterrupt):
            return  # everything was given back: what was measured stands, without the suite's own output
        _store_output(bundle, asked.get("output"))
        (bundle.path / "robot" / "console.txt").write_text("".join(self._channel.transcript), encoding="utf-8")

    def _serve(self, last: str, can: Mapping[str, Callable[[Answer], Answer]]) -> Answer:
        """Answers requests until the one called `last`, which is returned unanswered."""
        while True:
            asked = self._channel.ask()
            if asked["do"] == last:
                return asked
            try:
                self._channel.answer(ok=can[asked["do"]](asked))
            except InterruptedRunError:
                raise
            except RefusedError as error:  # before anything was written: the run goes on without
                self._channel.answer(error=str(error).replace(f"{self._scenario.file.parent}/", ""))
            except (BenchError, OSError) as error:
                self._broken = self._broken or in_words(error)
                self._channel.answer(error=in_words(error))

    def _load(self, targets: Targets, bundle: Bundle, asked: Answer) -> Answer:
        name = asked["workload"]
        if name in self._scenario.workloads:
            raise RefusedError(
                f"this run has measured {name} already, and a bundle holds one result of each kind. Nothing was written. Provision "
                "the candidate anew in another suite, which makes another bundle"
            )
        self._plan(targets, bundle, name, asked)
        if failure := failed_target(bundle):
            raise RefusedError(failure)
        context = RunContext.of(bundle, targets.first.machine)
        with live_facilities(context) as facilities:
            measured(replace(context, facilities=facilities), WORKLOADS[name])
        if (result := bundle.read(WORKLOADS[name].result)) is None:
            raise RefusedError(failed_target(bundle))
        return result

    def _plan(self, targets: Targets, bundle: Bundle, name: str, asked: Answer) -> None:
        """Refuses what a run of a scenario would be refused for, then states the load in the bundle before it begins."""
        first = targets.first
        try:
            scenario = self._scenario.with_load(name, asked["parameters"], asked["top"])
        except BenchError as error:
            raise RefusedError(str(error)) from None
        profiles = replace(first.profiles, scenario=scenario)
        try:
            candidate, found = profiles.candidate, first.survey()[0]
            target = preflight.check_target(candidate, found, first.directory)
            reserve = 0 if candidate.target.is_raw else preflight.reserve_of(candidate, target.free_bytes)
            preflight.check_space(scenario, first.directory, target.free_bytes, reserve)
            preflight.check_memory(candidate, scenario, found.host.memory_bytes or 0)
            preflight.check_workloads(scenario, candidate, found)
            preflight.check_programs(scenario, self._layout)
            check_peers(first, scenario)
            surveys = {candidate.target.name: found}
            plan = plan_run(profiles, self._layout, surveys, directory=self._request.target_directory)
            agree(plan.consent, self._request.yes, Console(file=self._channel.said, width=WIDTH), AGREE)
        except BaseException:
            self._scenario.forget()
            raise
        self._scenario.adopt(scenario)
        told = planned_run(bundle.id, profiles, found.host, bundle.run.target)
        copy_scenario = bundle.path / "profiles" / "scenarios" / scenario.file.name
        copy_scenario.write_bytes(scenario.file.read_bytes())
        bundle.save_run(
            scenario=told.scenario,
            demand=told.demand,
            declared_limits=told.declared_limits,
            scaled_down=told.scaled_down,
        )


def _event(bundle: Bundle) -> Callable[[Answer], Answer]:
    """Notes the begin and the end of a test."""

    def note(asked: Answer) -> Answer:
        bundle.event("test", asked["source"], asked["text"], **asked["data"])
        return {}

    return note


def _store_output(bundle: Bundle, output: str | None) -> None:
    """Puts the suite's output so far into the bundle, with the log and the xunit file that follow from it."""
    if output is None:
        return
    folder = bundle.path / "robot"
    (folder / "output.xml").write_bytes(Path(output).read_bytes())
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        rebot(
            str(folder / "output.xml"),
            outputdir=str(folder),
            log="log.html",
            xunit="xunit.xml",
            report=None,
            stdout=nowhere,
            stderr=nowhere,
        )


def serve(channel: Channel) -> Answer:
    """Runs one own suite; returns how it ended."""
    asked, layout = channel.ask(), Layout()
    if not layout.is_checkout:
        raise BenchError(
            "Provision Candidate needs a checkout of the bench: its roles and native programs are in no wheel. Start robot inside of one "
            "that `make setup` has set up"
        )
    options: dict[str, Any] = {
        name: Path(value) if name in PATHS else value for name, value in asked["request"].items()
    }
    request = Request(**options)
    console = Console(file=channel.said, width=WIDTH)
    with tempfile.TemporaryDirectory(prefix="daq-bench-own-suite-") as folder:
        scenario = OwnScenario(Path(folder), layout, asked["title"], request.scale or 1.0)
        profiles = profiles_of(request, layout, scenario.empty())
        own = OwnSuite(channel, scenario, layout, request)
        bundle, verdict = Qualification(replace(request, scale=None), layout, console, profiles, own).execute()
    run = bundle.run
    return {
        "bundle": str(bundle.path),
        "state": run.state,
        "reason": run.state_reason,
        "line": conclude(verdict).line,
    }


PATHS = ("inventory", "runs", "target_directory")


def main() -> int:
    """Serves one suite on standard input and output. Other output goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    channel = Channel(sys.stdin, answers)
    try:
        final = serve(channel)
    except (BenchError, OSError) as error:
        channel.answer(final={"state": "refused", "reason": in_words(error)})
        return 2
    except KeyboardInterrupt:
        channel.answer(final={"state": "refused", "reason": "interrupted before the run began"})
        return 130
    channel.answer(final=final)
    return 0
