"""The targets of one run: checked before the machine is tuned, opened before the load, given back after it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.candidate.host import Survey, require_target_directory
from daq_bench.rig.candidate.load_target import RawDevice
from daq_bench.rig.on_candidate.scratch import PREFIX as SCRATCH_PREFIX
from daq_bench.rig.run import preflight
from daq_bench.rig.run.candidate_session import CandidateSession, connected
from daq_bench.rig.run.clean_up import CleanUp, Place, remove_scratch
from daq_bench.rig.run.readings import ClockLog
from daq_bench.rig.run.record import target_of
from daq_bench.rig.workloads.registry import workloads_of


def check_peers(session: CandidateSession, scenario: Scenario) -> None:
    """Asks the other machines that the scenario's workloads need, and leaves them. Raises RefusedError for one that does not answer."""
    with ExitStack() as links:
        for workload in workloads_of(scenario):
            workload.check_peers(
                scenario,
                session.profiles.candidate,
                session.machine,
                lambda host: links.enter_context(connected(session.profiles.inventory_file, host, session.layout)),
            )


class Targets:
    """`first` is the run's target; `further` are those besides it, where a run measures several."""

    def __init__(self, first: CandidateSession) -> None:
        self.first = first
        self.further = [first.at(name) for name in compared_names(first.profiles.scenario)[1:]]
        self.clock = ClockLog()
        self.found: dict[str, Survey] = {}  # what preflight saw, by the target's name

    def remove_stale(self, say: Callable[[str], None]) -> None:
        """Removes the scratch files of runs that were killed. Raises BenchError for a file system that has failed."""
        for one in (self.first, *self.further):
            if failed := remove_scratch(one.machine, [one.directory], say):
                raise BenchError(
                    f"{failed[0]}. Its file system has failed: `daq-bench restore` gives the candidate back; then look at its drives"
                )

    def preflight(self) -> Survey:
        """Makes all checks that can refuse a run before the machine is tuned. Raises RefusedError."""
        profiles = self.first.profiles
        candidate, scenario = profiles.candidate, profiles.scenario
        found = self._preflight_target(self.first)
        preflight.check_drives(candidate, found)
        for further in self.further:
            seen = self._preflight_target(further)
            preflight.check_candidate(further.profiles.candidate, seen, profiles.inventory_file)
        preflight.check_candidate(candidate, found, profiles.inventory_file)
        preflight.check_memory(candidate, scenario, found.host.memory_bytes or 0)
        preflight.check_workloads(scenario, candidate, found)
        preflight.check_programs(scenario, self.first.layout)
        check_peers(self.first, scenario)
        return found

    def _preflight_target(self, session: CandidateSession) -> Survey:
        """One target: its room and its file system. One that provisioning builds is looked at again after it."""
        candidate, scenario, machine = session.profiles.candidate, session.profiles.scenario, session.machine
        layout, built = session.layout, candidate.target.storage is not None
        preflight.check_path(session.directory)
        if machine.is_local and not built and not candidate.target.is_raw:
            require_target_directory(session.directory)
        found, before_s, after_s = session.survey()
        self.found[candidate.target.name] = found
        if not machine.is_local:
            preflight.check_clock(found.clock_s, before_s, after_s)
        self.clock.note("before the run", found, before_s, after_s)
        if candidate.target.is_raw:
            preflight.check_candidate(candidate, found, session.profiles.inventory_file)
            ours = layout.daqwriter if machine.is_local else layout.portable_daqwriter
            _check_raw(session, found, ours, is_there=machine.is_local)
        elif not built:
            target = preflight.check_target(candidate, found, session.directory)
            preflight.check_leads_to_drive(session.directory, target.memory)
            if machine.is_local:
                preflight.check_direct_io(session.directory, target.filesystem, machine, layout.daqwriter)
            preflight.check_space(scenario, session.directory, target.free_bytes)
        else:
            preflight.check_capacity(scenario, candidate, found, session.directory, preflight.xfs_maps_back(machine))
        return found

    def will_have_scratch(self, bundle: Bundle, clean_up: CleanUp) -> None:
        """From here on each target may hold the run's folder: its removal is registered, the first target's to run first."""
        for one in (*reversed(self.further), self.first):
            if not one.profiles.candidate.target.is_raw:
                folder = one.directory / f"{SCRATCH_PREFIX}{bundle.id}"
                remove = partial(one.machine.call, "scratch", "remove", folder)
                clean_up.add(Place.TARGETS, remove, f"target {one.directory}")

    def open(self, bundle: Bundle, folder: Path, clean_up: CleanUp) -> None:
        """Looks at the target once more where provisioning made it or brought daqwriter there, and makes the run's folder on it."""
        session = self.first
        candidate, machine, directory = session.profiles.candidate, session.machine, session.directory
        found, before_s, after_s = session.survey()
        self.clock.note("before the load", found, before_s, after_s)
        if candidate.target.is_raw:
            raw = _check_raw(session, found, machine.places(candidate.name, bundle.path).daqwriter)
            # It may be written to from now on, and then must hold nothing that it could be mistaken for.
            clean_up.add(Place.TARGETS, partial(_release, raw, bundle), f"target {directory}")
            bundle.save_run(target=target_of(candidate, found, directory, directory))
            return
        target = preflight.check_target(candidate, found, directory)
        if not (machine.is_local and candidate.target.storage is None):
            daqwriter = machine.places(candidate.name, bundle.path).daqwriter
            preflight.check_leads_to_drive(directory, target.memory)
            preflight.check_direct_io(directory, target.filesystem, machine, daqwriter)
            reserve = preflight.reserve_of(candidate, target.free_bytes)
            preflight.check_space(session.profiles.scenario, directory, target.free_bytes, reserve)
        machine.call("scratch", "create", directory, bundle.id)
        bundle.save_run(target=target_of(candidate, found, folder, directory))


def _check_raw(session: CandidateSession, found: Survey, daqwriter: Path, *, is_there: bool = True) -> RawDevice:
    """The raw drive may be overwritten and is large enough. Raises RefusedError."""
    candidate = session.profiles.candidate
    target = preflight.check_target(candidate, found, session.directory)
    preflight.check_space(session.profiles.scenario, session.directory, target.free_bytes, reserve=0)
    return preflight.check_raw(candidate, session.machine, session.directory, daqwriter, is_there)


def _release(raw: RawDevice, bundle: Bundle) -> None:
    bundle.write("facts/raw-device-released.json", raw.release())
