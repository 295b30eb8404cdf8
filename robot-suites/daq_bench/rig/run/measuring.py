"""The part of a run that touches the candidate: provision, watch, load, verify."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.shell import LocalShell
from daq_bench.rig.candidate.bmc import fan_lease
from daq_bench.rig.candidate.machine import environment_of
from daq_bench.rig.candidate.provision import Provisioner, bmc_secret, memory_folder
from daq_bench.rig.run.candidate_session import CandidateSession
from daq_bench.rig.run.clean_up import CleanUp, Place
from daq_bench.rig.run.facilities import INVENTORY_VARIABLE
from daq_bench.rig.run.progress import announce, announce_clean_up
from daq_bench.rig.run.readings import CLOCK_FILE, FIRMWARE_FILE, FirmwareLog
from daq_bench.rig.run.record import git_state, versions
from daq_bench.rig.run.suites import Loads
from daq_bench.rig.run.targets import Targets
from daq_bench.rig.run.watch import Watch
from daq_bench.rig.telemetry.history import server_version


def measure(
    targets: Targets,
    watch: Watch,
    bundle: Bundle,
    folder: Path,
    clean_up: CleanUp,
    loads: Loads,
    *,
    keep_tuning: bool,
) -> None:
    """Every stage leaves its evidence in the bundle before the next begins, and in `clean_up` what it has to give back."""
    session, shell = targets.first, LocalShell()
    layout, candidate = session.layout, session.profiles.candidate
    targets.will_have_scratch(bundle, clean_up)
    influx = watch.reach_influx()
    bundle.save_run(telemetry=influx.told())  # from here on the history gets the run's end, however it ends
    watch.tell_begin(influx)
    announce(bundle, "provision", "applying the tuning")
    agent, arguments = session.prepare_agent(bundle, influx, clean_up)
    ansible = _ansible(session, bundle)
    clean_up.add(Place.RETURN, session.await_return)
    if not keep_tuning:
        clean_up.add(Place.TUNING, partial(_restore, session, bundle))
    ansible.run("provision", bench_agent_arguments=arguments)
    session.reconnect()
    session.find_raw_drive()  # a reboot may have given it another name
    ansible = _ansible(session, bundle)
    lease = fan_lease(layout, candidate, session.machine, bundle)
    if lease:
        clean_up.add(Place.TUNING, partial(lease.stop, keep=keep_tuning))  # before `restore`, which releases it
        lease.start()
    ansible.run("verify", "tuning-verified.json")
    bundle.save_run(
        versions={**versions(server_version(influx)), **(bundle.read("facts/versions.json") or {})},
        git=git_state(shell, layout.repository),
    )
    firmware = FirmwareLog(layout, candidate, session.machine)
    firmware.note("before the load")
    bundle.write(FIRMWARE_FILE, firmware.document())
    targets.open(bundle, folder, clean_up)
    watch.begin(agent, influx, clean_up)
    loads.load(
        targets,
        bundle,
        {
            **environment_of(session.machine),
            **bmc_secret(layout, candidate),  # for fans, hazards and further targets
            INVENTORY_VARIABLE: str(session.profiles.inventory_file),
        },
    )
    targets.clock.note("after the load", *session.survey(with_target=False))
    bundle.write(CLOCK_FILE, targets.clock.document(same_clock=session.machine.is_local))
    firmware.note("after the load")
    bundle.write(FIRMWARE_FILE, firmware.document())
    watch.demand_alive()
    announce(bundle, "verify", "reading the tuning back")
    ansible.run("verify", "tuning-after.json", bench_after_load=True)
    if session.machine.lock:
        session.machine.lock.demand_held()


def _restore(session: CandidateSession, bundle: Bundle) -> None:
    announce_clean_up(bundle, "restore", "undoing every change to the machine")
    session.reconnect()
    try:
        _ansible(session, bundle).run("restore")
    except OSError:  # the bundle's disk is full: what is given back needs no room on it
        with memory_folder() as folder:
            replace(session.ansible(folder, bundle.id, bundle.path), scratch=folder).run("restore")


def _ansible(session: CandidateSession, bundle: Bundle) -> Provisioner:
    return session.ansible(bundle.path / "facts", bundle.id, bundle.path)
