"""One qualification from lock to report. Whatever happens, the agent is stopped, scratch files are removed, the tuning is
put back, and the bundle says in which state the run ended."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.rig.base.bundle import Bundle, now_utc, write_atomically
from daq_bench.rig.base.influx import INVENTORY_KEY, check, chosen
from daq_bench.rig.base.module_utils import check_storage
from daq_bench.rig.base.settings import Layout, Profiles, Request, load_profiles, target_directory
from daq_bench.rig.base.terminal import agree, say
from daq_bench.rig.candidate.connection import variables_of
from daq_bench.rig.candidate.disclosure import secrets_of, without
from daq_bench.rig.candidate.host import Survey
from daq_bench.rig.candidate.lock import all_exclusive, machine_locked
from daq_bench.rig.checking.reporting import signing_for
from daq_bench.rig.checking.signing import Signer
from daq_bench.rig.on_candidate.scratch import PREFIX as SCRATCH_PREFIX
from daq_bench.rig.run.candidate_session import CandidateSession, connected, reboot_s
from daq_bench.rig.run.clean_up import CleanUp, interrupts_as_exceptions, signals_ignored, take_back
from daq_bench.rig.run.conclusion import conclude, derive
from daq_bench.rig.run.facilities import described_targets
from daq_bench.rig.run.measuring import measure
from daq_bench.rig.run.planning import plan_run
from daq_bench.rig.run.progress import Observer, Plan, ProgressDisplay
from daq_bench.rig.run.record import asked_for, copy_profiles, first_run
from daq_bench.rig.run.suites import Loads, ScenarioSuites, suite_files
from daq_bench.rig.run.targets import Targets
from daq_bench.rig.run.watch import Watch
from daq_bench.rig.telemetry.influx_room import Bounds

DRIVES_A_RUN = "daq-bench qualify"  # how the words in a lock begin that a run holds
REASONS_MAX = 3  # against a PASS: the first lines of a run are no page


class Qualification:
    """One run on one target of one candidate. `execute` returns the verdict."""

    def __init__(
        self,
        request: Request,
        layout: Layout,
        console: Console,
        profiles: Profiles | None = None,
        loads: Loads | None = None,
    ) -> None:
        """`loads`: what loads the candidate instead of the suites of the request's scenario; `profiles`: what it runs by."""
        self._request, self._layout, self._console = request, layout, console
        self._profiles: Profiles = profiles or load_profiles(request, layout)
        check_storage(layout, self._profiles.candidate)
        self._loads: Loads = loads or ScenarioSuites()
        suite_files(layout.repository, self._profiles.scenario)
        self._runs = request.runs or layout.runs
        candidate = self._profiles.candidate.name
        asked = variables_of(self._profiles.inventory_file, candidate, (INVENTORY_KEY,)).get(INVENTORY_KEY)
        self._influx = chosen(request.influx_url, asked)
        Bounds.of()  # a wrong setting is refused before anything is changed
        self._signer = Signer.of(signing_for(self._profiles.inventory_file, candidate).key)

    def execute(self) -> tuple[Bundle, Verdict]:
        """Runs everything under the candidate's lock. Raises BenchError only for what stops a run before it began."""
        candidate = self._profiles.candidate
        directory = target_directory(self._layout, candidate, self._request.target_directory)
        influx_problem = check(self._influx) if self._influx is not None else None
        what = f"{DRIVES_A_RUN} --scenario {self._profiles.scenario.id} in {self._layout.repository}"
        with (
            all_exclusive(candidate, what),
            connected(self._profiles.inventory_file, candidate.name, self._layout, to_change=True) as machine,
            machine_locked(machine, candidate.name, what, reboot_s(candidate)) as left_behind,
        ):
            if left_behind:
                self._say(left_behind)
            session = CandidateSession(self._layout, self._profiles, machine, directory)
            session.find_raw_drive()
            targets = Targets(session)
            targets.remove_stale(self._say)
            take_back(machine, self._runs, self._say)
            found = targets.preflight()
            plan = plan_run(self._profiles, self._layout, targets.found, directory=self._request.target_directory)
            for line in plan.lines(REASONS_MAX):
                self._say(line)
            agree(plan.consent, self._request.yes, self._console)
            bundle = Bundle.create(self._runs, candidate.name, candidate.target.name, self._profiles.scenario.id)
            secrets = secrets_of(self._profiles.inventory_file, candidate.name, candidate.document)
            bundle.told = lambda text: without(text, secrets)
            self._say(f"run {bundle.id}")
            with interrupts_as_exceptions():
                watch = Watch(session, bundle, self._influx, influx_problem, self._say)
                try:
                    return bundle, self._run(targets, watch, bundle, found, Plan(plan.phases))
                except OSError as error:  # everything was given back on the way here; what could not be is named above
                    raise BenchError(_not_written(bundle, candidate.name, error)) from None

    def _say(self, text: str) -> None:
        say(self._console, text)

    def _run(self, targets: Targets, watch: Watch, bundle: Bundle, found: Survey, plan: Plan) -> Verdict:
        session = targets.first
        raw = self._profiles.candidate.target.is_raw
        folder = session.directory if raw else session.directory / f"{SCRATCH_PREFIX}{bundle.id}"
        bundle.begin(first_run(bundle, self._profiles, found, folder, session.directory))
        bundle.save_run(
            request=asked_for(self._request), challenge=self._request.challenge, resumes=self._request.resumes
        )
        if self._request.resumes:
            bundle.event("resumption", "qualify", f"goes on from the interrupted run {self._request.resumes}")
        copy_profiles(bundle, self._profiles)
        bundle.workload_file.touch()
        is_local = session.machine.is_local
        with (
            ProgressDisplay(Observer(bundle, plan, live=is_local), self._console),
            CleanUp(bundle, self._say, is_local=is_local) as clean_up,
        ):
            state, reason = self._measured(targets, watch, bundle, folder, clean_up, plan)
            with signals_ignored():
                denied = session.denied(found.clock_s, bundle)
                if denied:
                    bundle.event("selinux", "candidate", denied)
                    reason = reason and f"{reason}. {denied}"
                if reason:
                    bundle.event("interruption" if state == "interrupted" else "error", "qualify", reason)
                clean_up.close()
            self._loads.given_back(bundle)
            bundle.save_run(
                state=state,
                state_reason=reason and bundle.told(reason),
                finished_utc=now_utc(),
                further_targets=described_targets(bundle),
            )
            watch.tell_end()
            if watch.has_begun:  # a run that was never watched has no telemetry to derive anything from
                derive(bundle)
            return conclude(bundle, self._signer, watch.influx, self._say)

    def _measured(
        self, targets: Targets, watch: Watch, bundle: Bundle, folder: Path, clean_up: CleanUp, plan: Plan
    ) -> tuple[str, str | None]:
        """The state in which the measurement ended, and why if it broke."""
        try:
            measure(targets, watch, bundle, folder, clean_up, self._loads, keep_tuning=self._request.keep_tuning)
        except (KeyboardInterrupt, InterruptedRunError):
            return "interrupted", f"The run was interrupted during {plan.current()}"
        except BenchError as error:
            return "error", str(error)
        except (
            Exception
        ) as error:  # a fault in the bench itself must not leave a tuned machine or a scratch file behind
            with suppress(OSError):  # of a full disk, on which the next write ends the run
                write_atomically(bundle.path / "error.txt", bundle.told(traceback.format_exc()))
            return "error", f"a fault of the bench: {error!r}; its traceback is in error.txt"
        return "finished", None


def _not_written(bundle: Bundle, candidate: str, error: OSError) -> str:
    where = error.filename or bundle.path
    return (
        f"run {bundle.id} could not be written to its end: {where}: {error.strerror or error}. It is no evidence and has no verdict. "
        f"Make room, then `daq-bench resume {bundle.path}` starts it again; if a warning above says that something could not be cleaned "
        f"up, `daq-bench restore --candidate {candidate}` does it"
    )
