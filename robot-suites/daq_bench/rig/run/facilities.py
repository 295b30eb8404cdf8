"""The facilities of a run that is under way (`rig.candidate.facilities`), from its bundle and the users' inventory.

Targets besides the run's own are built on their drives from within a suite, looked at, described and taken away again.

Ansible does the building, under the same guard as for the run's own target. `restore` undoes whatever is still there when a run
ends, however it ends. Each target that was opened leaves `facts/target-<name>.json`, which becomes `further_targets` of run.json."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.facts import Tuning
from daq_bench.bench_model.documents.run import FurtherTarget
from daq_bench.bench_model.profiles.candidates import Candidate, load_candidate
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.hazard_spans import HazardLog
from daq_bench.rig.base.settings import Layout, target_directory
from daq_bench.rig.candidate.bmc import FanDuty, fan_duty
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.facilities import Builder, OpenTarget
from daq_bench.rig.candidate.hazard_control import HazardControl, hazards_of
from daq_bench.rig.candidate.host import Survey, check_identity, differences, survey
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.candidate.provision import Provisioner, drift, provisioner
from daq_bench.rig.candidate.trigger import await_trigger
from daq_bench.rig.on_candidate.scratch import PREFIX as SCRATCH_PREFIX
from daq_bench.rig.run import preflight
from daq_bench.rig.run.candidate_session import connected
from daq_bench.rig.run.record import target_of

INVENTORY_VARIABLE = (
    "DAQ_BENCH_INVENTORY"  # the users' inventory, for Robot Framework's own process: the bundle has none
)


def with_bmc(candidate: Candidate) -> Candidate:
    """The bundle's candidate with the way to its BMC, which only the inventory knows."""
    if "bmc" not in candidate.document:
        return candidate
    known = load_candidate(Path(os.environ[INVENTORY_VARIABLE]), candidate.name).document
    return replace(candidate, document={**candidate.document, "bmc": known.get("bmc", {})})


class FurtherTargets:
    """The further targets of one run. `open` and `close` raise BenchError that names the target."""

    def __init__(self, context: RunContext, layout: Layout | None = None) -> None:
        self._context = context
        self._layout = layout or Layout()

    def open(self, name: str) -> OpenTarget:
        """Builds what the inventory asks for, makes the run's folder on it and describes it."""
        context = self._context
        candidate = context.candidate.aimed_at(name)
        directory = target_directory(self._layout, candidate)
        try:
            tuning = f"tuning-{name}.json"
            self._ansible(name, directory).run("build_target", tuning)
            found = survey(context.machine, directory)
            target = preflight.check_target(candidate, found, directory)
            wrong = differences(check_identity(candidate, found))
            if wrong:
                raise BenchError(f"it is not what the inventory declares: {wrong}")
            preflight.check_leads_to_drive(directory, target.memory)
            preflight.check_direct_io(directory, target.filesystem, context.machine, context.daqwriter)
            reserve = preflight.reserve_of(candidate, target.free_bytes)
            preflight.check_space(context.scenario, directory, target.free_bytes, reserve)
            context.machine.call("scratch", "create", directory, context.bundle.id)
        except BenchError as error:
            raise BenchError(f"set {name!r} could not be made ready: {error}") from None
        opened = OpenTarget(
            name, directory / f"{SCRATCH_PREFIX}{context.bundle.id}", self._describe(name, found, directory)
        )
        context.bundle.write(f"facts/target-{name}.json", opened.document)
        return opened

    def close(self, target: OpenTarget) -> None:
        """Removes the run's folder and takes away what was built."""
        try:
            self._context.machine.call("scratch", "remove", target.scratch)
            if target.document.layout:
                self._ansible(target.name, target.scratch.parent).run("undo_target", f"undo-{target.name}.json")
        except BenchError as error:
            raise BenchError(f"set {target.name!r} could not be taken away: {error}") from None

    def _ansible(self, name: str, directory: Path) -> Provisioner:
        context = self._context
        facts = context.bundle.path / "facts"
        return provisioner(
            self._layout,
            with_bmc(context.candidate).aimed_at(name),
            Path(os.environ[INVENTORY_VARIABLE]),
            context.machine,
            context.places,
            facts,
            directory,
            context.bundle.id,
        )

    def _describe(self, name: str, found: Survey, directory: Path) -> FurtherTarget:
        candidate = self._context.candidate.aimed_at(name)
        scratch = directory / f"{SCRATCH_PREFIX}{self._context.bundle.id}"
        facts = self._context.bundle.find(f"facts/tuning-{name}.json", Tuning) or Tuning([])
        return FurtherTarget.of(
            target_of(candidate, found, scratch, directory), candidate.target.storage, drift(facts.settings)
        )


def described_targets(bundle: Bundle) -> list[FurtherTarget]:
    """Returns the further targets that the run's suites have described; empty for a run on one."""
    files = sorted((bundle.path / "facts").glob("target-*.json"))
    return [one for file in files if (one := bundle.find(f"facts/{file.name}", FurtherTarget))]


class LiveFacilities:
    """The facilities of one run. `stack` closes the links to peers at the workload's end."""

    def __init__(self, context: RunContext, stack: ExitStack) -> None:
        self._context, self._stack = context, stack

    def targets(self) -> Builder:
        return FurtherTargets(self._context)

    def peer(self, host: str) -> Machine:
        return self._stack.enter_context(connected(Path(os.environ[INVENTORY_VARIABLE]), host, Layout()))

    def fans(self) -> FanDuty:
        context = self._context
        return fan_duty(Layout(), with_bmc(context.candidate), context.machine, context.bundle)

    def hazards(self, source: str) -> HazardControl:
        return HazardControl(hazards_of(self._context.candidate), HazardLog(self._context.bundle, source))

    def begin(self) -> None:
        await_trigger(self._context.bundle, self._context.candidate.name)


@contextmanager
def live_facilities(context: RunContext) -> Iterator[LiveFacilities]:
    with ExitStack() as stack:
        yield LiveFacilities(context, stack)
