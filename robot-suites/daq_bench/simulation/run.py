"""One simulated run, in the order of rig.run: preflight, provision, identity, load, read-backs, telemetry, derive, judge.

Robot and Ansible are not started: what their keywords and roles do with a candidate is called here in the same order, and so are the
workloads' own checks. Everything from the tools' texts on is the bench's own code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.facts import Identity
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import utc_text
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence import telemetry_account
from daq_bench.bench_model.evidence.admissibility import IDENTITY, TUNING, TUNING_AFTER, TUNING_VERIFIED, scaled_down
from daq_bench.bench_model.evidence.soundness import SENSORS
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.verdict.sequential import Stopping
from daq_bench.bench_model.verdict.verdict import judge
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey, check_identity, differences, planned_checks, survey
from daq_bench.rig.candidate.machine import PROGRAMS
from daq_bench.rig.checking.extraction import failed_target, measured
from daq_bench.rig.run import preflight
from daq_bench.rig.run.conclusion import derive
from daq_bench.rig.run.facilities import described_targets
from daq_bench.rig.run.readings import CLOCK_FILE, FIRMWARE_FILE, ClockLog, FirmwareLog
from daq_bench.rig.run.record import first_run
from daq_bench.rig.telemetry.influx_counts import counts_document
from daq_bench.rig.workloads.registry import workloads_of
from daq_bench.simulation import facts
from daq_bench.simulation.machine import DIRECTORY, SimulatedMachine
from daq_bench.simulation.physics.drawing import Spec
from daq_bench.simulation.physics.server import Server
from daq_bench.simulation.profiles_of import Kit, kit_of, profiles_of
from daq_bench.simulation.targets import SimulatedFacilities, SimulatedTargets
from daq_bench.simulation.tools.agent import SimulatedAgent
from daq_bench.simulation.tools.influxdb import DOWN, SimulatedInflux

REFUSED = "REFUSED"  # by preflight: there is no bundle
BEFORE_LOAD_S = 8
READ_BACKS = (IDENTITY, TUNING, TUNING_VERIFIED, TUNING_AFTER, CLOCK_FILE)


@dataclass(frozen=True)
class SimulatedContext(RunContext):
    """A run's context whose profiles were read once for all runs of a campaign: they are the same files."""

    kit: Kit | None = None

    @property
    def scenario(self) -> Scenario:
        assert self.kit
        return self.kit.scenario

    @property
    def candidate(self) -> Candidate:
        assert self.kit
        return self.kit.candidate

    def stopping(self, workload: str, stages: int = 1) -> Stopping:
        kit, run = self.kit, self.bundle.run
        assert kit

        def cost() -> dict[str, Any]:
            found: dict[str, Any] = self.machine.observe("the cost so far", dict)
            return found

        return Stopping.of(kit.scenario, kit.requirement, kit.metrics, f"results/{workload}.json", run, cost, stages)


@dataclass
class Run:
    """One run's end. `outcome`: the bench's own, if the run were real; `said`: every sentence in which it may name a cause."""

    spec: Spec
    server: Server
    outcome: str
    reasons: list[str]
    said: list[str] = field(default_factory=list)
    bundle: Bundle | None = None
    kit: Kit | None = None
    agrees: bool = True  # the bundle counts what the model did: no superchunk and no point was lost or invented


def simulate(spec: Spec, runs: Path, scenario: str = "record", *, stops: bool = True) -> Run:
    """Makes the run of one server. The bundle in `runs` is marked as simulated, and neither sealed nor rendered yet. `stops`: at an
    identity test that fails, as the suite does; without it the judge alone is left to object."""
    server = Server(spec, scenario)
    lab = runs / f"lab-{spec.seed}.yml"
    kit = _asked(server, kit_of(spec, scenario, lab))
    one = _Qualification(server, kit, lab, stops=stops)
    try:
        found = one.preflight()
    except RefusedError as refused:
        return Run(spec, server, REFUSED, [str(refused)], [str(refused)])
    finally:
        lab_text = lab.read_text(encoding="utf-8")
        lab.unlink()
    bundle = Bundle.create(runs, spec.name, "", kit.scenario.id, one.now)
    one.measure(bundle, found, lab_text)
    _lose(server, bundle)
    derive(bundle)
    _mix_up(server, bundle)
    verdict = unmarked_verdict(bundle, kit)
    said = _said(bundle, verdict)
    return Run(spec, server, verdict.outcome, verdict.reasons, said, bundle, kit, one.agrees(bundle))


def _asked(server: Server, kit: Kit) -> Kit:
    """The profiles with the load that whoever started this run asked for."""
    less = server.spec.has("less_asked")
    if less is None or not less.strength:
        return kit
    server.note("less_asked")
    server.scale = 1 - less.strength
    server.harms["less_asked"] = f"{less.strength:.1%} of the load was left out"
    return replace(kit, scenario=kit.scenario.altered(1 - less.strength, None))


def _came_to_its_end(server: Server, bundle: Bundle) -> bool:
    """Says whether the run made all that it had planned. These mishaps befall such runs alone."""
    return bundle.run.state == FINISHED and "pulled" not in server.harms


def _lose(server: Server, bundle: Bundle) -> None:
    """One of the bench's own read-backs of a finished run never reaches the bundle."""
    hazard = server.spec.has("unrecorded")
    if hazard is not None and _came_to_its_end(server, bundle):
        name = READ_BACKS[round(hazard.strength)]
        server.note("unrecorded")
        server.harms["unrecorded"] = f"{name} was not written"
        (bundle.path / name).unlink()


def _mix_up(server: Server, bundle: Bundle) -> None:
    """The document on the sensors of a finished run is replaced by that of a server with other drives."""
    if server.spec.has("mixed_up") and _came_to_its_end(server, bundle):
        found = bundle.read(SENSORS)
        assert found
        server.note("mixed_up")
        server.harms["mixed_up"] = f"{SENSORS} is that of another server"
        silences = found["longest_silence_s"].values()
        bundle.write(SENSORS, {**found, "longest_silence_s": {f"sd{place}": one for place, one in enumerate(silences)}})


def unmarked_verdict(bundle: Bundle, kit: Kit) -> Verdict:
    """Returns what the bench says of this evidence if it is not told that it is simulated. No file holds it."""
    evidence = Evidence.load(bundle.path)
    run = {key: value for key, value in evidence.run.items() if key != "simulated"}
    return judge(replace(evidence, run=run), kit.requirement, kit.metrics)


class _Qualification:
    """The stages of rig.run.qualify on the modelled server."""

    def __init__(self, server: Server, kit: Kit, lab: Path, *, stops: bool = True) -> None:
        self.server, self.kit, self.stops = server, kit, stops
        self.machine = SimulatedMachine(server)
        self.profiles = profiles_of(kit, lab)
        self.clock = ClockLog()
        self.directory = DIRECTORY  # or the raw drive

    def now(self) -> datetime:
        """The control node's clock."""
        return datetime.fromtimestamp(self.server.now_s, UTC)

    def _survey(self, when: str) -> Survey:
        before = self.server.now_s
        found = survey(self.machine, self.directory)
        self.server.now_s += 0.1
        self.clock.note(when, found, before, self.server.now_s)
        return found

    def preflight(self) -> Survey:
        """As rig.run.targets. Raises RefusedError."""
        candidate, scenario = self.kit.candidate, self.kit.scenario
        if candidate.target.is_raw:
            self.directory = preflight.raw_path(candidate, survey(self.machine))
        found = self._survey("before the run")
        if candidate.target.is_raw:
            preflight.check_candidate(candidate, found, self.profiles.inventory_file)
            target = preflight.check_target(candidate, found, self.directory)
            preflight.check_space(scenario, self.directory, target.free_bytes, reserve=0)
            preflight.check_raw(candidate, self.machine, self.directory, PROGRAMS / "daqwriter", is_there=False)
        else:
            preflight.check_capacity(scenario, candidate, found, DIRECTORY)
        preflight.check_drives(candidate, found)
        preflight.check_candidate(candidate, found, self.profiles.inventory_file)
        preflight.check_memory(candidate, scenario, found.host.memory_bytes or 0)
        preflight.check_workloads(scenario, candidate, found)
        for name in compared_names(scenario)[1:]:
            further = candidate.aimed_at(name)
            preflight.check_capacity(scenario, further, found, Path(further.target.directory or DIRECTORY))
            preflight.check_candidate(further, found, self.profiles.inventory_file)
        return found

    def measure(self, bundle: Bundle, found: Survey, lab_text: str) -> None:
        """Leaves the bundle as a run leaves it before anything is derived."""
        is_raw = self.kit.candidate.target.is_raw
        scratch = self.directory if is_raw else self.directory / f".run-{bundle.id}"
        told = first_run(bundle, self.profiles, found, scratch, self.directory)
        told = structs.replace(told, started_utc=utc_text(self.now()), simulated=True)
        bundle.begin(structs.replace(told, scaled_down=scaled_down(told, self.kit.requirement.conditions)))
        self.kit.copy_into(bundle, lab_text)
        bundle.workload_file.touch()
        self.machine.workload_file = bundle.workload_file
        tags = {"host": self.kit.candidate.name, "run": bundle.id}
        agent = SimulatedAgent(self.server, bundle.path / "telemetry", tags, bundle.workload_file)
        state, reason = "finished", None
        try:
            self._stages(bundle, agent)
        except BenchError as error:
            state, reason = "error", str(error)
            bundle.event("error", "qualify", reason)
        self._end_agent(bundle, agent, broken=state == "error")
        further = described_targets(bundle)
        bundle.save_run(state=state, state_reason=reason, finished_utc=utc_text(self.now()), further_targets=further)

    def _stages(self, bundle: Bundle, agent: SimulatedAgent) -> None:
        server, machine = self.server, self.machine
        bundle.event("phase", "provision", "applying the tuning", step=1, steps=1, expected_s=12.0)
        server.idle(12)
        server.provisioned = True
        bundle.write("facts/tuning.json", facts.tuning(server, applied=True))
        bundle.write("facts/tuning-verified.json", facts.tuning(server, applied=False))
        facts.write_smart(bundle, server, "smart-before")
        firmware = FirmwareLog(Layout(), self.kit.candidate, machine)
        firmware.note("before the load")
        bundle.write(FIRMWARE_FILE, firmware.document())
        seen = self._survey("before the load")
        agent.start()
        if server.is_sold and seen.target and not server.spec.raw:
            reserve = preflight.reserve_of(self.kit.candidate, seen.target.free_bytes)
            preflight.check_space(self.kit.scenario, self.directory, seen.target.free_bytes, reserve)
        server.idle(BEFORE_LOAD_S)
        context = SimulatedContext(bundle, machine, None, self.kit)
        if server.spec.sets:
            context = replace(context, facilities=SimulatedFacilities(SimulatedTargets(context, server, machine)))
        self._identity(context)
        for workload in workloads_of(self.kit.scenario):
            result = None if failed_target(bundle) else measured(context, workload)
            if result is None:
                continue
            for check in workload.checks:
                try:
                    check(context, result)
                except AssertionError as error:
                    raise BenchError(f"{workload.name} / {check.__name__}: {error}") from None
        self._survey("after the load")
        bundle.write(CLOCK_FILE, self.clock.document(same_clock=False))
        firmware.note("after the load")
        bundle.write(FIRMWARE_FILE, firmware.document())
        server.idle(5)
        bundle.write("facts/tuning-after.json", facts.tuning(server, applied=False))
        facts.write_smart(bundle, server, "smart-after")

    def agrees(self, bundle: Bundle) -> bool:
        """Says whether results and telemetry hold what the model did and nothing else."""
        account = bundle.read("results/telemetry_account.json") or {"measurements": {}}
        stored = sum(row["stored"] for row in account["measurements"].values())
        return stored == self.agent.kept and all(_whole(bundle, self.server)) and all(_soaked(bundle, self.machine))

    def _identity(self, context: RunContext) -> None:
        """As robot-suites/libraries/IdentityKeywords.py."""
        context.phase("identity", "comparing the candidate with the inventory", 1, 1, 1.0)
        checks = check_identity(context.candidate, survey(self.machine, self.directory))
        planned = planned_checks(context.candidate)
        context.bundle.write("results/identity.json", Identity(1, planned, checks))
        if self.stops and (wrong := differences(checks)):
            raise BenchError(f"identity: this is not the candidate that the inventory declares: {wrong}")

    def _end_agent(self, bundle: Bundle, agent: SimulatedAgent, *, broken: bool) -> None:
        """As rig.run.watch: the agent ends, then InfluxDB is counted."""
        bundle.event("phase", "telemetry", "delivering the last points", step=1, steps=1, expected_s=2.0)
        bundle.end_phase()
        down = self.server.spec.has("influxdb_down") is not None
        if down:
            self.server.note("influxdb_down")
        self.agent = agent
        agent.finish("running" if broken else "finished", 0.0 if down else 1.0, DOWN if down else None)
        cursor = bundle.read("telemetry/cursor.json") or {}
        influx = SimulatedInflux("http://127.0.0.1:8086").of(
            bundle.path / "telemetry", cursor["delivered_bytes_offset"], down
        )
        counted = counts_document(influx, bundle, utc_text(self.now()))
        bundle.write(telemetry_account.COUNTS, structs.replace(counted, counted_utc=utc_text(self.now())))


def _whole(bundle: Bundle, server: Server) -> Iterator[bool]:
    """The superchunks of each record in the result against those that the model counted."""
    result = bundle.read("results/snb_record.json") or {"repetitions": []}
    for number, one in enumerate(result["repetitions"], start=1):
        found, told = one["minidaq"]["superchunks"], server.counted[number]
        yield (found["offered"], found["stored"], found["lost"], one["damaged_superchunks"]) == told


def _soaked(bundle: Bundle, machine: SimulatedMachine) -> Iterator[bool]:
    """The bytes of the soak in the result against those that the model's fio wrote."""
    result = bundle.read("results/thermal.json")
    if result is not None:
        yield result["soak"]["bytes_written"] == machine.soaks["thermal-soak"]


def _said(bundle: Bundle, verdict: Verdict) -> list[str]:
    """Every place in which a reader of the report is told of a cause."""
    said = [*verdict.reasons, *(finding.text for finding in verdict.findings)]
    said += [row.reason for row in verdict.requirements]
    for window in (bundle.read("results/dips.json") or {}).get("windows", []):
        said += [f"dip: {one['cause']}: {one['text']}" for dip in window["dips"] for one in dip["evidence"]]
    for episode in (bundle.read("results/throttling.json") or {}).get("episodes", []):
        said += [f"throttling: {signal['text']}" for signal in episode["signals"]]
    said += (bundle.read("results/hardware_events.json") or {}).get("sentences", [])
    return said
