"""One qualification from lock to report. Whatever happens, the agent is stopped, scratch files are removed, the tuning is
put back, and the bundle says in which state the run ended."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from bench_model.errors import BenchError, InterruptedRunError
from rig import drive_temperature, preflight, scratch
from rig.agent import Agent
from rig.bundle import Bundle, now_utc, write_text_atomically
from rig.history import publish_verdict, server_version
from rig.host import block_devices, device_of, filesystem_of, host_facts, require_target_directory
from rig.influx_server import DATABASE, DEFAULT_PORT, LocalInflux
from rig.judging import judge_bundle
from rig.lock import exclusive
from rig.progress import Observer, Plan, ProgressDisplay
from rig.provision import Provisioner, provisioner
from rig.record import copy_profiles, git_state, run_document, versions
from rig.settings import Layout, Profiles, Request, load_profiles, target_directory
from rig.shell import LocalShell
from rig.suites import run_suites, suite_files
from rig.workloads import fio_scan, snb_record

REPORT_S_MAX = 300.0
PLAYBOOK_S = 12.0  # what a playbook takes on the machines seen so far; only for the display


class Qualification:
    """One run on one candidate. `execute` returns the verdict."""

    def __init__(self, request: Request, layout: Layout, console: Console) -> None:
        self._request, self._layout, self._console = request, layout, console
        self._shell = LocalShell()
        self._profiles: Profiles = load_profiles(request, layout)
        if self._profiles.candidate.connection != "local":
            raise BenchError(
                f"{self._profiles.inventory_file}: candidate {request.candidate!r} has ansible_connection "
                f"{self._profiles.candidate.connection!r}, but this version drives only the machine it runs on. "
                "Clone the bench onto the candidate and give its entry ansible_connection: local (docs/own-hardware.md)"
            )
        suite_files(layout.repository, self._profiles.scenario)
        self._runs = request.runs or layout.runs
        self._agent: Agent | None = None

    @property
    def _directory(self) -> Path:
        return target_directory(self._layout, self._profiles.candidate, self._request.target_directory)

    def execute(self) -> tuple[Bundle, dict[str, Any]]:
        """Runs everything under the candidate's lock. Raises BenchError only for what stops a run before it began."""
        name = self._profiles.candidate.name
        with exclusive(name, f"make qualify SCENARIO={self._profiles.scenario.id} in {self._layout.repository}"):
            for folder, size in scratch.remove_stale(self._directory):
                self._say(f"removed {folder} ({size / 1e9:.1f} GB), left behind by a run that was killed")
            self._preflight()
            bundle = Bundle.create(self._runs, name, self._profiles.scenario.id)
            self._say(f"run {bundle.id}")
            with interrupts_as_exceptions():
                return bundle, self._run(bundle)

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _preflight(self) -> None:
        require_target_directory(self._directory)
        filesystem = filesystem_of(self._directory, self._shell)
        preflight.check_direct_io(self._directory, filesystem, self._shell, self._layout.daqwriter)
        preflight.check_space(self._profiles.scenario, self._directory)
        candidate, host = self._profiles.candidate, host_facts()
        preflight.check_candidate(candidate, host, self._shell, self._directory, self._profiles.inventory_file)
        preflight.check_memory(candidate, self._profiles.scenario, host["memory_bytes"])

    def _run(self, bundle: Bundle) -> dict[str, Any]:
        plan = self._plan()
        devices = block_devices(self._shell)
        device = device_of(self._directory, devices)
        folder = scratch.create(self._directory, bundle.id)
        filesystem = filesystem_of(self._directory, self._shell)
        bundle.save_run(**run_document(bundle, self._profiles, host_facts(), device, folder, filesystem))
        copy_profiles(bundle, self._profiles)
        bundle.workload_file.touch()
        state, reason = "finished", None
        observer = Observer(bundle, plan, device.name if device else None)
        with ProgressDisplay(observer, self._console):
            try:
                self._measure(bundle)
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
                self._clean_up(bundle, folder)
            bundle.save_run(state=state, state_reason=reason, finished_utc=now_utc())
            return self._conclude(bundle)

    def _plan(self) -> Plan:
        scenario = self._profiles.scenario
        phases = [("provision", 2 * PLAYBOOK_S), ("identity", 2.0)]
        if "block_scan" in scenario.workloads:
            phases.append(("block_scan", fio_scan.estimated_s(scenario.workloads["block_scan"])))
        if "snb_record" in scenario.workloads:
            phases.append(("snb_record", snb_record.estimated_s(scenario.demand, scenario.repetitions)))
        return Plan(
            [*phases, ("verify", PLAYBOOK_S), ("restore", PLAYBOOK_S / 2), ("telemetry", 2.0), ("report", 10.0)]
        )

    def _provisioner(self, bundle: Bundle) -> Provisioner:
        name, inventory = self._profiles.candidate.name, self._profiles.inventory_file
        return provisioner(
            self._shell, self._layout, inventory, name, bundle.path / "facts", self._directory, bundle.id
        )

    def _measure(self, bundle: Bundle) -> None:
        """Provision, watch, load, verify. Every stage leaves its evidence in the bundle before the next begins."""
        influx_url = self._influx_url(bundle)
        self._phase(bundle, "provision", "applying the tuning")
        ansible = self._provisioner(bundle)
        ansible.run("provision")
        ansible.run("verify", "tuning-verified.json")
        installed = self._layout.install_directory(self._profiles.candidate.name)
        daqwriter = installed / "daqwriter"
        bundle.save_run(
            tools={"daqwriter": str(daqwriter)},
            versions={**versions(server_version(influx_url)), **(bundle.read("facts/versions.json") or {})},
            git=git_state(self._shell, self._layout.repository),
            telemetry={"influx_url": influx_url, "database": DATABASE},
        )
        tags = {"host": self._profiles.candidate.name, "run": bundle.id}
        self._agent = Agent(installed / "telemetry_agent.pyz", bundle, influx_url, tags)
        self._agent.start()
        run_suites(self._shell, self._layout.repository, bundle, self._profiles.scenario)
        if not self._agent.alive():
            raise BenchError("the telemetry agent ended during the run; see telemetry/agent.log in the bundle")
        self._phase(bundle, "verify", "reading the tuning back")
        ansible.run("verify", "tuning-after.json")

    def _phase(self, bundle: Bundle, name: str, text: str) -> None:
        bundle.event("phase", name, text, step=1, steps=1)

    def _influx_url(self, bundle: Bundle) -> str:
        """The users' server when they named one, else the bench's own on loopback; the run goes on without either."""
        if self._request.influx_url:
            return self._request.influx_url
        server = LocalInflux(self._layout.influxd, self._layout.build / "influxdb")
        try:
            return server.start()
        except (BenchError, OSError) as error:
            text = f"InfluxDB could not be started ({error}); telemetry stays in the bundle and can be replayed later"
            bundle.event("telemetry", "influxdb", text)
            self._say(f"warning: {text}")
            return f"http://127.0.0.1:{DEFAULT_PORT}"

    def _clean_up(self, bundle: Bundle, folder: Path) -> None:
        """Whatever happened: scratch files go, the tuning is put back, the agent closes its account.

        What fails here is recorded and does not hide how the run itself ended."""
        steps = (
            ("scratch files", lambda: scratch.remove(folder)),
            ("tuning", lambda: self._restore(bundle)),
            ("telemetry", lambda: self._stop_agent(bundle)),
        )
        for name, step in steps:
            try:
                step()
            except BenchError as error:
                bundle.event("error", "clean-up", f"{name}: {error}")
                self._say(f"warning: {name} could not be cleaned up: {error}")

    def _stop_agent(self, bundle: Bundle) -> None:
        if self._agent is None:
            return
        self._phase(bundle, "telemetry", "delivering the last points and closing the account")
        status = self._agent.stop()
        summary = bundle.read("telemetry/summary.json")
        if status != 0 or summary is None:
            text = f"the telemetry agent ended with status {status} and {'a' if summary else 'no'} summary; see telemetry/agent.log"
            bundle.event("telemetry", "agent", text)
        undelivered = summary["points"]["undelivered"] if summary else 0
        if undelivered:
            text = f"{undelivered} telemetry points are not in InfluxDB; the next run or `make replay RUN=runs/{bundle.id}` delivers them"
            bundle.event("telemetry", "agent", text)
            self._say(f"warning: {text}")
        device = bundle.run["target"]["device"]
        points = bundle.path / "telemetry" / "points.lp"
        bundle.write(
            "results/drive_temperature.json", drive_temperature.document(points, device["name"] if device else None)
        )

    def _restore(self, bundle: Bundle) -> None:
        if self._request.keep_tuning or not self._layout.state_directory(self._profiles.candidate.name).exists():
            return
        self._phase(bundle, "restore", "putting the machine back as it was")
        self._provisioner(bundle).run("restore")

    def _conclude(self, bundle: Bundle) -> dict[str, Any]:
        """Judges, renders and seals. A report that cannot be rendered does not take the verdict away."""
        verdict = judge_bundle(bundle.path)
        bundle.write("verdict.json", verdict)
        bundle.event("verdict", "judge", verdict["outcome"], reasons=verdict["reasons"])
        if bundle.run["state"] != "interrupted":
            self._phase(bundle, "report", "rendering report.html and report.pdf")
            try:
                render_report(self._shell, bundle.path)
            except BenchError as error:
                self._say(f"warning: {error}")
        bundle.seal()
        if "telemetry" in bundle.run and not publish_verdict(bundle.path, bundle.run["telemetry"]["influx_url"]):
            self._say("warning: the verdict is not in InfluxDB; the next run or `make replay` delivers it")
        return verdict


def render_report(shell: LocalShell, bundle: Path) -> None:
    """report.html and report.pdf of `bundle`, in a process of its own."""
    shell.run([sys.executable, "-m", "bench_report", "render", bundle], timeout_s=REPORT_S_MAX).check(
        "rendering the report"
    )


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
