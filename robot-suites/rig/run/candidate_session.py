"""The candidate during one run: its machine, folders, agent and Ansible, whether it is this machine or one behind SSH."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_model.base.errors import BenchError
from rig.base.bundle import Bundle
from rig.base.influx import Influx
from rig.base.settings import Layout, Profiles, target_directory
from rig.candidate.connection import connection_of
from rig.candidate.host import Survey, survey
from rig.candidate.machine import Machine, SshMachine, machine_of, prepare_folders
from rig.candidate.provision import Provisioner, provisioner
from rig.run.preflight import raw_path
from rig.telemetry.agent import PERIOD_S, Agent
from rig.telemetry.bmc_agent import IN_BAND, bmc_agent, may_read_in_band
from rig.telemetry.remote_agent import RemoteAgent, agent_arguments, reachable_influx


@contextmanager
def connected(inventory: Path, candidate: str, layout: Layout) -> Iterator[Machine]:
    """The candidate's machine; an SSH link is closed at the end. Raises BenchError when it cannot be reached."""
    connection = connection_of(inventory, candidate)
    # A short path of our own: a socket's name may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="daq-bench-") as folder:
        machine = machine_of(connection, Path(folder) / "ssh", layout)
        if not isinstance(machine, SshMachine):
            yield machine
            return
        machine.link.open()
        try:
            yield machine
        finally:
            machine.link.close()


@dataclass
class CandidateSession:
    """What one run does with its candidate. `directory` is the target's folder on the candidate, or the raw drive's device node."""

    layout: Layout
    profiles: Profiles
    machine: Machine
    directory: Path
    influx_token: str = field(default="", repr=False)  # for the agent's service on a candidate behind SSH

    def find_raw_drive(self) -> None:
        """Of a raw-device target: where its drive is at present. A reboot may change the name."""
        if self.profiles.candidate.target.is_raw:
            self.directory = raw_path(self.profiles.candidate, survey(self.machine))

    def at(self, target: str) -> CandidateSession:
        """The same candidate with another of its targets."""
        profiles = replace(self.profiles, candidate=self.profiles.candidate.aimed_at(target))
        return replace(self, profiles=profiles, directory=target_directory(self.layout, profiles.candidate))

    def survey(self) -> tuple[Survey, float, float]:
        """The survey, and our clock before and after it, s."""
        before = time.time()
        found = survey(self.machine, self.directory)
        return found, before, time.time()

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

    def prepare_agent(self, bundle: Bundle, influx: Influx) -> tuple[Agent | RemoteAgent, list[str]]:
        """The run's agent, not started yet, and the arguments that its unit on a candidate behind SSH needs."""
        name = self.profiles.candidate.name
        tags = {"host": name, "run": bundle.id}
        places = prepare_folders(self.machine, bundle, name)
        period_s = float(self.profiles.scenario.document.get("telemetry_period_s", PERIOD_S))
        own = [] if may_read_in_band(self.profiles.candidate) else [f"--without-collectors={IN_BAND}"]
        if not isinstance(self.machine, SshMachine):
            options = [f"--workload-file={bundle.workload_file}", *own]
            return Agent(places.agent, bundle, influx, tags, period_s, options=options), []
        arguments = agent_arguments(places, reachable_influx(self.machine, influx), tags, period_s, options=own)
        return RemoteAgent(self.machine, places, bundle), arguments

    def bmc_agent(self, bundle: Bundle, influx: Influx) -> Agent | None:
        """The agent that reads the BMC from here, not started yet; the candidate's own must be running. None where none is needed."""
        candidate = self.profiles.candidate
        return bmc_agent(self.layout, candidate, bundle, influx, {"host": candidate.name, "run": bundle.id})

    def reconnect(self) -> None:
        """After provisioning, which may have rebooted the candidate."""
        if isinstance(self.machine, SshMachine):
            self.machine.link.ensure()

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
