"""One qualification from lock to report. Whatever happens, the agent is stopped, scratch files are removed, the tuning is
put back, and the bundle says in which state the run ended."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from bench_model.base.errors import BenchError, InterruptedRunError
from bench_model.bundle.column_file import write_columns
from bench_model.bundle.telemetry_files import BMC, OWN, SUMMARY_FILE
from bench_model.evidence import derived, telemetry_account
from bench_model.profiles.compared_targets import compared_names
from bench_model.verdict.judging import judge_bundle
from rig.base.bundle import Bundle, now_utc, write_text_atomically
from rig.base.influx import INVENTORY_KEY, Influx, check, chosen
from rig.base.settings import Layout, Profiles, Request, load_profiles, target_directory
from rig.base.shell import LocalShell
from rig.candidate.connection import variables_of
from rig.candidate.fan_lease import FanLease, fan_lease
from rig.candidate.host import Survey, require_target_directory
from rig.candidate.load_target import RawDevice
from rig.candidate.lock import all_exclusive
from rig.candidate.machine import environment_of
from rig.candidate.machine_lock import machine_locked
from rig.candidate.provision import bmc_secret
from rig.checking.reporting import render_and_seal, signing_for
from rig.checking.sealing import seal_evidence
from rig.checking.signing import Signer
from rig.on_candidate.scratch import PREFIX as SCRATCH_PREFIX
from rig.run import preflight
from rig.run.candidate_session import CandidateSession, connected, reboot_s
from rig.run.clock import FILE as CLOCK_FILE
from rig.run.clock import ClockLog
from rig.run.further_targets import INVENTORY_VARIABLE, described_targets
from rig.run.progress import Observer, Plan, ProgressDisplay
from rig.run.record import copy_profiles, git_state, run_document, target_document, versions
from rig.run.resume import request_document
from rig.run.suites import run_suites, suite_files
from rig.telemetry.agent import Agent
from rig.telemetry.history import publish, server_version
from rig.telemetry.influx_counts import counts_document
from rig.telemetry.influx_server import DEFAULT_PORT, LocalInflux
from rig.telemetry.remote_agent import RemoteAgent
from rig.workloads.registry import workloads_of

PLAYBOOK_S = 12.0  # a playbook's duration on the machines seen so far; only for the display


class Qualification:
    """One run on one target of one candidate. `execute` returns the verdict."""

    def __init__(self, request: Request, layout: Layout, console: Console) -> None:
        self._request, self._layout, self._console = request, layout, console
        self._shell = LocalShell()
        self._profiles: Profiles = load_profiles(request, layout)
        suite_files(layout.repository, self._profiles.scenario)
        self._runs = request.runs or layout.runs
        self._agent: Agent | RemoteAgent | None = None
        self._bmc_agent: Agent | None = None  # where the BMC is read from here
        self._lease: FanLease | None = None
        self._provisioning = False
        self._raw: RawDevice | None = None  # from when it may have been written to
        self._further: list[CandidateSession] = []  # the targets besides the first, where a run measures several
        self._clock = ClockLog()
        candidate = self._profiles.candidate.name
        asked = variables_of(self._profiles.inventory_file, candidate, (INVENTORY_KEY,)).get(INVENTORY_KEY)
        self._influx: Influx | None = chosen(request.influx_url, asked)
        self._influx_problem: str | None = None
        self._signer = Signer.of(signing_for(self._profiles.inventory_file, candidate).key)

    def execute(self) -> tuple[Bundle, dict[str, Any]]:
        """Runs everything under the candidate's lock. Raises BenchError only for what stops a run before it began."""
        candidate = self._profiles.candidate
        directory = target_directory(self._layout, candidate, self._request.target_directory)
        if self._influx is not None:
            self._influx_problem = check(self._influx)
        what = f"make qualify SCENARIO={self._profiles.scenario.id} in {self._layout.repository}"
        with (
            all_exclusive(candidate, what),
            connected(self._profiles.inventory_file, candidate.name, self._layout) as machine,
            machine_locked(machine, candidate.name, what, reboot_s(candidate)) as left_behind,
        ):
            if left_behind:
                self._say(left_behind)
            session = CandidateSession(self._layout, self._profiles, machine, directory)
            session.find_raw_drive()
            self._further = [session.at(name) for name in compared_names(self._profiles.scenario)[1:]]
            for one in (session, *self._further):
                for folder, size in machine.call("scratch", "remove-stale", one.directory):
                    self._say(f"removed {folder} ({size / 1e9:.1f} GB), left behind by a run that was killed")
            found = self._preflight(session)
            bundle = Bundle.create(self._runs, candidate.name, candidate.target.name, self._profiles.scenario.id)
            self._say(f"run {bundle.id}")
            with interrupts_as_exceptions():
                return bundle, self._run(session, bundle, found)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _preflight(self, session: CandidateSession) -> Survey:
        """Makes all checks that can refuse a run before the machine is tuned."""
        found = self._preflight_target(session)
        preflight.check_drives(self._profiles.candidate, found)
        for further in self._further:
            candidate, seen = further.profiles.candidate, self._preflight_target(further)
            preflight.check_candidate(candidate, seen, self._profiles.inventory_file)
        candidate = self._profiles.candidate
        preflight.check_candidate(candidate, found, self._profiles.inventory_file)
        preflight.check_memory(candidate, self._profiles.scenario, found.host["memory_bytes"])
        preflight.check_workloads(self._profiles.scenario, candidate, found)
        preflight.check_programs(self._profiles.scenario, self._layout)
        return found

    def _preflight_target(self, session: CandidateSession) -> Survey:
        """One target: its room and its file system. One that provisioning builds is looked at again after it."""
        candidate, machine = session.profiles.candidate, session.machine
        built = candidate.target.storage is not None
        if machine.is_local and not built and not candidate.target.is_raw:
            require_target_directory(session.directory)
        found, before_s, after_s = session.survey()
        if not machine.is_local:
            preflight.check_clock(found, before_s, after_s)
        self._clock.note("before the run", found, before_s, after_s)
        if candidate.target.is_raw:
            preflight.check_candidate(candidate, found, self._profiles.inventory_file)
            ours = self._layout.daqwriter if machine.is_local else self._layout.portable_daqwriter
            self._check_raw(session, found, ours, is_there=machine.is_local)
        elif not built:
            target = preflight.check_target(candidate, found, session.directory)
            if machine.is_local:
                preflight.check_direct_io(session.directory, target.filesystem, machine, self._layout.daqwriter)
            preflight.check_space(self._profiles.scenario, session.directory, target.free_bytes)
        else:
            preflight.check_capacity(self._profiles.scenario, candidate, found, session.directory)
        return found

    def _check_raw(
        self, session: CandidateSession, found: Survey, daqwriter: Path, *, is_there: bool = True
    ) -> RawDevice:
        """The raw drive may be overwritten and is large enough. Raises RefusedError."""
        candidate = self._profiles.candidate
        target = preflight.check_target(candidate, found, session.directory)
        preflight.check_space(self._profiles.scenario, session.directory, target.free_bytes, reserve=0)
        return preflight.check_raw(candidate, session.machine, session.directory, daqwriter, is_there)

    def _run(self, session: CandidateSession, bundle: Bundle, found: Survey) -> dict[str, Any]:
        plan = self._plan()
        raw = self._profiles.candidate.target.is_raw
        folder = session.directory if raw else session.directory / f"{SCRATCH_PREFIX}{bundle.id}"
        bundle.save_run(
            **run_document(bundle, self._profiles, found, folder, session.directory),
            request=request_document(self._request),
            challenge=self._request.challenge,
            resumes=self._request.resumes,
        )
        if self._request.resumes:
            bundle.event("resumption", "qualify", f"goes on from the interrupted run {self._request.resumes}")
        copy_profiles(bundle, self._profiles)
        bundle.workload_file.touch()
        state, reason = "finished", None
        with ProgressDisplay(Observer(bundle, plan, live=session.machine.is_local), self._console):
            try:
                self._measure(session, bundle, folder)
            except (KeyboardInterrupt, InterruptedRunError):
                state, reason = "interrupted", f"The run was interrupted during {plan.current()}"
            except BenchError as error:
                state, reason = "error", str(error)
            except (
                Exception
            ) as error:  # a fault in the bench itself must not leave a tuned machine or a scratch file behind
                state, reason = "error", f"a fault of the bench: {error!r}; its traceback is in error.txt"
                write_text_atomically(bundle.path / "error.txt", traceback.format_exc())
            with signals_ignored():
                if reason:
                    bundle.event("interruption" if state == "interrupted" else "error", "qualify", reason)
                self._clean_up(session, bundle)
            bundle.save_run(
                state=state, state_reason=reason, finished_utc=now_utc(), further_targets=described_targets(bundle)
            )
            self._derive(bundle)
            return self._conclude(bundle)

    def _plan(self) -> Plan:
        scenario = self._profiles.scenario
        phases = [("provision", 2 * PLAYBOOK_S), ("identity", 2.0)]
        phases += [(workload.name, workload.seconds(scenario)) for workload in workloads_of(scenario)]
        return Plan(
            [*phases, ("verify", PLAYBOOK_S), ("restore", PLAYBOOK_S / 2), ("telemetry", 2.0), ("report", 10.0)]
        )

    def _measure(self, session: CandidateSession, bundle: Bundle, folder: Path) -> None:
        """Provision, watch, load, verify. Every stage leaves its evidence in the bundle before the next begins."""
        influx = self._influx = self._reach_influx(bundle)
        session.influx_token = influx.token
        self._phase(bundle, "provision", "applying the tuning")
        agent, arguments = session.prepare_agent(bundle, influx)
        ansible = session.ansible(bundle.path / "facts", bundle.id, bundle.path)
        self._provisioning = True
        ansible.run("provision", bench_agent_arguments=arguments)
        session.reconnect()
        session.find_raw_drive()  # a reboot may have given it another name
        ansible = session.ansible(bundle.path / "facts", bundle.id, bundle.path)
        self._lease = fan_lease(self._layout, self._profiles.candidate, session.machine, bundle)
        if self._lease:
            self._lease.start()
        ansible.run("verify", "tuning-verified.json")
        bundle.save_run(
            versions={**versions(server_version(influx)), **(bundle.read("facts/versions.json") or {})},
            git=git_state(self._shell, self._layout.repository),
            telemetry=influx.document(),
        )
        self._open_target(session, bundle, folder)
        agent.start()
        self._agent = agent
        self._start_bmc_agent(session, bundle, influx)
        run_suites(
            self._shell,
            self._layout.repository,
            bundle,
            self._profiles.scenario,
            {
                **environment_of(session.machine),
                **bmc_secret(self._layout, self._profiles.candidate),  # for fans, hazards and further targets
                INVENTORY_VARIABLE: str(self._profiles.inventory_file),
            },
        )
        self._clock.note("after the load", *session.survey())
        bundle.write(CLOCK_FILE, self._clock.document(same_clock=session.machine.is_local))
        if not agent.alive():
            raise BenchError("the telemetry agent ended during the run; see telemetry/agent.log in the bundle")
        if self._bmc_agent and not self._bmc_agent.alive():
            raise BenchError(
                "the BMC's telemetry agent ended during the run; see telemetry/bmc/agent.log in the bundle"
            )
        self._phase(bundle, "verify", "reading the tuning back")
        ansible.run("verify", "tuning-after.json")

    def _start_bmc_agent(self, session: CandidateSession, bundle: Bundle, influx: Influx) -> None:
        self._bmc_agent = session.bmc_agent(bundle, influx)
        if self._bmc_agent:
            self._bmc_agent.start()

    def _open_target(self, session: CandidateSession, bundle: Bundle, folder: Path) -> None:
        """Looks at the target once more where provisioning made it or brought daqwriter there, and makes the run's folder on it."""
        candidate, machine = self._profiles.candidate, session.machine
        found, before_s, after_s = session.survey()
        self._clock.note("before the load", found, before_s, after_s)
        if candidate.target.is_raw:
            daqwriter = machine.places(candidate.name, bundle.path).daqwriter
            self._raw = self._check_raw(session, found, daqwriter)
            bundle.save_run(target=target_document(candidate, found, session.directory, session.directory))
            return
        target = preflight.check_target(candidate, found, session.directory)
        if not (machine.is_local and candidate.target.storage is None):
            daqwriter = machine.places(candidate.name, bundle.path).daqwriter
            preflight.check_direct_io(session.directory, target.filesystem, machine, daqwriter)
            reserve = preflight.reserve_of(candidate, target.free_bytes)
            preflight.check_space(self._profiles.scenario, session.directory, target.free_bytes, reserve)
        machine.call("scratch", "create", session.directory, bundle.id)
        bundle.save_run(target=target_document(candidate, found, folder, session.directory))

    def _phase(self, bundle: Bundle, name: str, text: str) -> None:
        bundle.event("phase", name, text, step=1, steps=1)

    def _reach_influx(self, bundle: Bundle) -> Influx:
        """The users' server when they named one, else the bench's own on loopback; the run goes on without either."""
        if self._influx is not None:
            if self._influx_problem:
                self._warn_of_influx(bundle, f"InfluxDB takes no telemetry at present ({self._influx_problem})")
            return self._influx
        server = LocalInflux(self._layout.influxd, self._layout.build / "influxdb")
        try:
            return Influx(server.start(), configured=False)
        except (BenchError, OSError) as error:
            self._warn_of_influx(bundle, f"InfluxDB could not be started ({error})")
            return Influx(f"http://127.0.0.1:{DEFAULT_PORT}", configured=False)

    def _warn_of_influx(self, bundle: Bundle, problem: str) -> None:
        text = f"{problem}; telemetry stays in the bundle, and is delivered when it answers or by `make replay RUN=runs/{bundle.id}`"
        bundle.event("telemetry", "influxdb", text)
        self._say(f"warning: {text}")

    def _clean_up(self, session: CandidateSession, bundle: Bundle) -> None:
        """Whatever happened: scratch files go, the tuning is put back, what was built is undone, the agent closes its account.

        A failure here is recorded and does not hide how the run itself ended."""
        telemetry = ("telemetry", lambda: self._stop_agent(session, bundle))
        tuning = ("tuning", lambda: self._restore(session, bundle))
        # On a candidate behind SSH the agent is a part of what `restore` takes away.
        last = (tuning, telemetry) if session.machine.is_local else (telemetry, tuning)
        targets = [
            (f"target {one.directory}", partial(self._give_back, one, bundle)) for one in (session, *self._further)
        ]
        bmc = ("telemetry of the BMC", lambda: self._stop_bmc_agent(bundle))
        back: list[tuple[str, Callable[[], None]]] = [("reboot", session.await_return)] if self._provisioning else []
        steps: list[tuple[str, Callable[[], None]]] = [*back, *targets, bmc, *last]
        for name, step in steps:
            try:
                step()
            except BenchError as error:
                bundle.event("error", "clean-up", f"{name}: {error}")
                self._say(f"warning: {name} could not be cleaned up: {error}")

    def _give_back(self, session: CandidateSession, bundle: Bundle) -> None:
        """Leaves a target without scratch files, a raw drive without anything that it could be mistaken for."""
        if not session.profiles.candidate.target.is_raw:
            session.machine.call("scratch", "remove", session.directory / f"{SCRATCH_PREFIX}{bundle.id}")
        elif self._raw is not None:
            bundle.write("facts/raw-device-released.json", self._raw.release())

    def _stop_agent(self, session: CandidateSession, bundle: Bundle) -> None:
        if self._agent is None:
            return
        self._phase(bundle, "telemetry", "delivering the last points and closing the account")
        stopped_utc = now_utc()
        try:
            status = self._agent.stop()
        except BenchError:
            self._agent.kill()
            raise
        if self._influx is not None:
            bundle.write(telemetry_account.COUNTS, counts_document(self._influx, bundle, stopped_utc))
        session.forget_run(bundle)
        self._account(bundle, status, OWN)

    def _stop_bmc_agent(self, bundle: Bundle) -> None:
        if self._bmc_agent:
            self._account(bundle, self._bmc_agent.stop(), BMC)

    def _account(self, bundle: Bundle, status: int, spool: Path) -> None:
        """Writes faults in an agent's end, or in the delivery of its spool, as events."""
        summary = bundle.read(f"{spool}/{SUMMARY_FILE}")
        if status != 0 or summary is None:
            text = f"the telemetry agent ended with status {status} and {'a' if summary else 'no'} summary; see {spool}/agent.log"
            bundle.event("telemetry", "agent", text)
        undelivered = summary["points"]["undelivered"] if summary else 0
        if undelivered:
            text = f"{undelivered} telemetry points are not in InfluxDB; the next run or `make replay RUN=runs/{bundle.id}` delivers them"
            bundle.event("telemetry", "agent", text)
            self._say(f"warning: {text}")

    def _derive(self, bundle: Bundle) -> None:
        """Derives the documents from the finished run's telemetry and results; a run that was never watched has none."""
        if self._agent is None:
            return
        made, faults = derived.documents(bundle.path)
        for name, document in made.items():
            bundle.write(name, document)
        for fault in faults:
            text = (
                f"a fault of the bench: {fault.name} could not be made ({fault.reason}); its traceback is in error.txt"
            )
            bundle.event("error", "derive", text)
            write_text_atomically(bundle.path / "error.txt", fault.traceback)
            if bundle.run["state"] == "finished":
                bundle.save_run(state="error", state_reason=text)

    def _restore(self, session: CandidateSession, bundle: Bundle) -> None:
        if self._lease:
            self._lease.stop(keep=self._request.keep_tuning)
        if self._request.keep_tuning or not self._provisioning:
            return
        self._phase(bundle, "restore", "putting the machine back as it was")
        session.reconnect()
        session.ansible(bundle.path / "facts", bundle.id, bundle.path).run("restore")

    def _conclude(self, bundle: Bundle) -> dict[str, Any]:
        """Judges, renders and seals. A report that cannot be rendered does not take the verdict away."""
        verdict = judge_bundle(bundle.path)
        bundle.write("verdict.json", verdict)
        bundle.event("verdict", "judge", verdict["outcome"], reasons=verdict["reasons"])
        rendered = bundle.run["state"] != "interrupted"
        if rendered:
            self._phase(bundle, "report", "sealing the evidence, rendering report.html and report.pdf")
        bundle.end_phase()
        self._seal(bundle, rendered)
        problem = publish(bundle.path, self._influx) if self._influx and "telemetry" in bundle.run else None
        if problem:
            self._say(f"warning: the verdict is not in InfluxDB ({problem}); the next run or `make replay` delivers it")
        return verdict

    def _seal(self, bundle: Bundle, rendered: bool) -> None:
        """The evidence first, because the reports carry its hash. A key that fails now leaves the run unsigned, and says so."""
        signer = self._signer
        try:
            write_columns(bundle.path)
        except ValueError as error:
            self._say(f"warning: {error}")  # what cannot be read is refused by the report, with the same words
        try:
            seal_evidence(bundle.path, signer)
        except BenchError as error:
            signer = None
            self._say(f"warning: the run is not signed: {error}")
        if not rendered:
            return
        try:
            problem = render_and_seal(bundle.path, signer)
        except BenchError as error:
            problem = str(error)
        if problem:
            self._say(f"warning: {problem}")


@contextmanager
def interrupts_as_exceptions() -> Iterator[None]:
    """SIGTERM stops a run as Ctrl-C does: by an exception that every clean-up sees."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers({signal.SIGINT: stop, signal.SIGTERM: stop}):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """A second Ctrl-C must not cut a clean-up short: it would leave a record of many GB, or a tuned machine, behind."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """A handler, not SIG_IGN: children would inherit that and could no longer be ended politely."""

    with _handlers({signal.SIGINT: ignore, signal.SIGTERM: ignore}):
        yield


@contextmanager
def _handlers(wanted: dict[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
