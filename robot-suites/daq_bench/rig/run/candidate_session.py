"""The candidate during one run: its machine, folders, agent and Ansible, whether it is this machine or one behind SSH."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.settings import Layout, Profiles, target_directory
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.host import Survey, check_fit, clock_of, denials_cause, survey
from daq_bench.rig.candidate.machine import Machine, SshMachine, machine_of, prepare_folders
from daq_bench.rig.candidate.provision import Provisioner, provisioner
from daq_bench.rig.run.clean_up import CleanUp, Place, socket_folder
from daq_bench.rig.run.preflight import raw_path
from daq_bench.rig.telemetry.agent import PERIOD_S, Agent
from daq_bench.rig.telemetry.bmc_agent import IN_BAND, bmc_agent, may_read_in_band
from daq_bench.rig.telemetry.remote_agent import RemoteAgent, agent_arguments, influx_through
from daq_bench.rig.telemetry.write_relay import WriteRelay

RESTARTING = "restarting.json"  # the bios role's note, in the state directory, while it restarts a candidate
REBOOT_S = 900.0  # the bios role's default
ANSWER_S_MAX, ASK_EVERY_S = 60.0, 5.0
CLOCK_S_MAX, CLOCK_TRIES = 2.0, 3  # [P] an answer that took longer says little of the clock


@contextmanager
def connected(inventory: Path, candidate: str, layout: Layout, *, to_change: bool = False) -> Iterator[Machine]:
    """The candidate's machine; an SSH link is closed at the end. Raises BenchError when it cannot be reached, RefusedError for one that
    is `to_change` and cannot be a candidate.

    One that a killed bench left without power is switched on first."""
    connection = connection_of(inventory, candidate)
    with socket_folder(os.getpid()) as folder:
        machine = machine_of(connection, folder / "ssh", layout)
        if not isinstance(machine, SshMachine):
            yield machine
            return
        wake(layout, inventory, candidate)
        try:
            machine.link.open()
        except BenchError as error:
            raise BenchError(f"{error}{_said_of_power(layout, inventory, candidate)}") from None
        try:
            if to_change:
                check_fit(machine, layout, candidate)
            yield machine
        finally:
            machine.link.close()


def wake(layout: Layout, inventory: Path, candidate: str) -> None:
    """Switches the candidate on where a bench had shut it down and did not live to do so, waits until it answers, and says so."""
    if not (layout.state_directory(candidate) / RESTARTING).exists():
        return
    print(
        f"{candidate} was being restarted by a bench that did not live to see it: looking at its power", file=sys.stderr
    )
    for record in see_to_power(layout, inventory, candidate)["records"]:
        print(printable(f"{candidate}: {record['detail']}"), file=sys.stderr)


def see_to_power(layout: Layout, inventory: Path, candidate: str) -> dict[str, Any]:
    """{power, records} of the playbook power. Raises BenchError when the BMC does not answer, or the candidate does not come back."""
    entry = load_candidate(inventory, candidate)
    facts = layout.build / "facts" / candidate / "power"
    facts.mkdir(parents=True, exist_ok=True)
    machine = machine_of(connection_of(inventory, candidate), facts / "no-link", layout)
    places = machine.places(candidate, facts)
    provisioner(layout, entry, inventory, machine, places, facts, Path("/"), "power").run("power", "power.json")
    found: dict[str, Any] = json.loads((facts / "power.json").read_text(encoding="utf-8"))
    return found


def _said_of_power(layout: Layout, inventory: Path, candidate: str) -> str:
    if "address" not in load_candidate(inventory, candidate).document.get("bmc", {}):
        return ""
    try:
        power = see_to_power(layout, inventory, candidate)["power"]
    except BenchError as error:
        return f". Its BMC says nothing of its power either: {error}"
    off = ". The bench did not do that: switch it on, then try again"
    return f". Its BMC says that it is switched {power}{off if power == 'off' else ''}"


def reboot_s(candidate: Candidate) -> float:
    """The longest time that a reboot by provisioning keeps the candidate away."""
    tuning = candidate.document.get("tuning", {})
    return float(tuning.get("bios_reboot_wait_s", REBOOT_S)) if tuning.get("bios_reboot") == "allowed" else 0.0


@dataclass
class CandidateSession:
    """One run's dealings with its candidate. `directory`: the target's folder on the candidate, or the raw drive's device node."""

    layout: Layout
    profiles: Profiles
    machine: Machine
    directory: Path
    influx_token: str = field(default="", repr=False)  # for the agent's service on a candidate behind SSH

    def find_raw_drive(self) -> None:
        """Finds the present device node of a raw-device target: a reboot may change the name."""
        if self.profiles.candidate.target.is_raw:
            self.directory = raw_path(self.profiles.candidate, survey(self.machine))

    def at(self, target: str) -> CandidateSession:
        """Returns the same candidate with another of its targets."""
        profiles = replace(self.profiles, candidate=self.profiles.candidate.aimed_at(target))
        return replace(self, profiles=profiles, directory=target_directory(self.layout, profiles.candidate))

    def survey(self, *, with_target: bool = True) -> tuple[Survey, float, float]:
        """Returns the survey, and our clock before and after it, s. After the load the target may have failed, and is not asked."""
        before = time.time()
        found = survey(self.machine, self.directory if with_target else None)
        return self._with_clock(found, before, time.time())

    def _with_clock(self, found: Survey, before: float, after: float) -> tuple[Survey, float, float]:
        """A busy candidate takes long for a survey, and its clock may have been read at any moment of it. Asked for the clock alone, it
        answers sooner."""
        for _ in range(CLOCK_TRIES):
            if after - before <= CLOCK_S_MAX:
                break
            since = time.time()
            clock_s = clock_of(self.machine)
            until = time.time()
            if until - since < after - before:
                found, before, after = structs.replace(found, clock_s=clock_s), since, until
        return found, before, after

    def ansible(self, facts: Path, run_id: str, bundle: Path | None = None) -> Provisioner:
        places = self.machine.places(self.profiles.candidate.name, bundle or facts)
        profiles = self.profiles
        return provisioner(
            self.layout,
            profiles.candidate,
            profiles.inventory_file,
            self.machine,
            places,
            facts,
            self.directory,
            run_id,
            self.influx_token,
        )

    def prepare_agent(self, bundle: Bundle, influx: Influx, clean_up: CleanUp) -> tuple[Agent | RemoteAgent, list[str]]:
        """The run's agent, not started yet, and the arguments that its unit on a candidate behind SSH needs.

        It reaches InfluxDB through a relay, which lets a candidate write its own lines and nothing else."""
        name = self.profiles.candidate.name
        tags = {"host": name, "run": bundle.id}
        places = prepare_folders(self.machine, bundle, name)
        period_s = float(self.profiles.scenario.document.get("telemetry_period_s", PERIOD_S))
        own = [] if may_read_in_band(self.profiles.candidate) else [f"--without-collectors={IN_BAND}"]
        if not isinstance(self.machine, SshMachine):
            options = [f"--workload-file={bundle.workload_file}", *own]
            return Agent(places.agent, bundle, influx, tags, period_s, options=options), []
        relay = WriteRelay(influx, tags)
        clean_up.add(Place.AGENT, relay.stop)
        relay.start()
        influx = influx_through(self.machine, relay, influx)
        self.influx_token = influx.token
        arguments = agent_arguments(places, influx, tags, period_s, options=own)
        return RemoteAgent(self.machine, places, bundle), arguments

    def bmc_agent(self, bundle: Bundle, influx: Influx) -> Agent | None:
        """The agent that reads the BMC from here, not started yet; the candidate's own must be running. None where none is needed."""
        candidate = self.profiles.candidate
        return bmc_agent(self.layout, candidate, bundle, influx, {"host": candidate.name, "run": bundle.id})

    def reconnect(self) -> None:
        """Connects again after provisioning, which may have rebooted the candidate."""
        if isinstance(self.machine, SshMachine):
            self.machine.link.ensure()
            if self.machine.lock:
                self.machine.lock.renew()

    def await_return(self) -> None:
        """Waits, before a clean-up, for a candidate that is being rebooted. Raises BenchError when it does not come back."""
        if not isinstance(self.machine, SshMachine):
            return
        candidate = self.profiles.candidate
        wake(self.layout, self.profiles.inventory_file, candidate.name)
        deadline = time.monotonic() + reboot_s(candidate)
        while True:
            try:
                self.reconnect()
                self.machine.run(["true"], timeout_s=ANSWER_S_MAX)
                return
            except BenchError:
                if time.monotonic() > deadline:
                    self.machine.hang_s = ANSWER_S_MAX  # whatever else is tried need not wait so long for each answer
                    raise
            time.sleep(ASK_EVERY_S)

    def denied(self, since_s: float, bundle: Bundle) -> str:
        """Returns what SELinux denied the bench since then by the candidate's clock, with the remedy; empty where nothing."""
        return denials_cause(self.machine, self.machine.places(self.profiles.candidate.name, bundle.path), since_s)

    def forget_run(self, bundle: Bundle) -> None:
        """Removes the run's folders from a candidate behind SSH; their content is in the bundle."""
        if self.machine.is_local:
            return
        run = self.machine.places(self.profiles.candidate.name, bundle.path).raw.parent
        if run.name != bundle.id:
            raise BenchError(f"{run} is not the folder of run {bundle.id}")
        self.machine.run(["rm", "-r", "-f", "--", run], timeout_s=120).check(
            "removing the run's folders from the candidate"
        )
