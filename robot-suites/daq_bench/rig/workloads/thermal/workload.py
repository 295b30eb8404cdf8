"""The thermal soak: sequential O_DIRECT writes until the drives throttle, their temperature settles, or time is up.

The load is fio overwriting one file, or the begin of a raw drive, and not daqwriter: it goes on for as long as it must without laying its
file out anew, ends cleanly when its trigger file appears, and keeps no memory of what it wrote. The end of a soak is decided from the
telemetry while it runs, by the functions that the analysis uses afterwards (bench_model.workloads.thermal)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import decimal_label, in_digits
from daq_bench.bench_model.bundle.telemetry_files import POINTS_FILE, SPOOLS
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.scenarios import Scenario
from daq_bench.bench_model.workloads.thermal.document import Rule, Thermal
from daq_bench.bench_model.workloads.thermal.soak import PROBE, SOAK
from daq_bench.rig.candidate.bmc import FanDuty
from daq_bench.rig.candidate.context import RunContext
from daq_bench.rig.candidate.host import Survey, clock_of
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.base import Report, Workload
from daq_bench.rig.workloads.shared.fio_job import JobFiles
from daq_bench.rig.workloads.shared.plan import Ground, Step
from daq_bench.rig.workloads.thermal.hazard_schedule import HazardSchedule
from daq_bench.rig.workloads.thermal.load import FILE, Load, Plan
from daq_bench.rig.workloads.thermal.watch import DANGER_K, Watch, decide

NAME = "thermal"
POLL_S = 1.0
DECIDE_EVERY_S = 5.0
START_S_MAX = 60.0


def plan(scenario: Scenario, ground: Ground) -> list[Step]:
    """At most: a soak that settles or throttles early is shorter, and only one that throttled is followed by the probe."""
    parameters = scenario.workloads[NAME]
    soak, sweep, size = parameters["soak"], parameters.get("fan_sweep"), parameters["file_size"]
    cap, room = parameters.get("rate_size"), f"the thermal soak's file of {decimal_label(size)}"

    def load(name: str, seconds: float, times: int = 1) -> Step:
        return Step(name, seconds, ground.written(seconds, cap), size, room, times=times)

    return [
        Step("laying out the soak's file", ground.seconds(size), size, size, room),
        load(SOAK, soak["max_s"]),
        Step("cooling down", soak["cool_down_s"], 0.0, size, room),
        load(PROBE, soak["probe_s"]),
        *([load("fan speeds", sweep["max_s"], len(sweep["duties_percent"]))] if sweep else []),
    ]


def demand_of(scenario: Scenario) -> Demand:
    """The record whose loss is computed."""
    record = scenario.workloads[NAME]["record"]
    return Demand.of(record, scenario.scale, record["duration_s"])


def _check(scenario: Scenario, candidate: Candidate, found: Survey) -> None:
    parameters = scenario.workloads[NAME]
    place = f"{scenario.file}: workloads.thermal"
    if parameters.get("hazards") and not candidate.virtual:
        raise RefusedError(
            f"{place}.hazards commands faults, and {candidate.name} is no virtual candidate: the bench causes faults on emulated "
            "hardware only. Remove hazards, or choose a scenario without"
        )
    for name, limits in (("soak", parameters["soak"]), ("fan_sweep", parameters.get("fan_sweep"))):
        if limits and limits["max_s"] < limits["min_s"]:
            raise RefusedError(
                f"{place}.{name}.max_s {in_digits(limits['max_s'], 9)} is less than min_s {in_digits(limits['min_s'], 9)}. Raise it"
            )
        if limits and limits["max_s"] < parameters["equilibrium"]["window_s"]:
            raise RefusedError(
                f"{place}.{name}.max_s {in_digits(limits['max_s'], 9)} is less than equilibrium.window_s, so that equilibrium "
                "could not be seen. "
                "Raise max_s or shorten the window"
            )


def _limits(scenario: Scenario) -> list[str]:
    return ["Faults are commanded during the soak"] if scenario.workloads[NAME].get("hazards") else []


def run(context: RunContext, report: Report) -> dict[str, Any]:
    """results/thermal.json of this run. Every hazard that was commanded ends with it."""
    parameters = context.scenario.workloads[NAME]
    plan = Plan(
        parameters=parameters,
        demand=demand_of(context.scenario),
        target=context.load_target(FILE),
        work=context.places.raw,
        raw=context.raw,
        points=[context.bundle.path / spool / POINTS_FILE for spool in SPOOLS],
        run=context.bundle.run,
    )
    facilities, asked = context.facilities, parameters.get("hazards", [])
    hazards = HazardSchedule([], lambda: None)
    if facilities and asked:
        hazards = HazardSchedule.of(asked, facilities.hazards(NAME))
    fans = facilities.fans() if facilities else FanDuty("nobody turns them", {})
    try:
        return Soak(context.machine, plan, hazards, fans, report).run()
    finally:
        hazards.release()


def soak_should_have_lasted(context: RunContext, thermal: Thermal) -> None:
    """Fails when the load ended before its least time, although nothing had stopped it."""
    soak, least = thermal.soak, thermal.rule.min_s
    lasted = soak.end_utc_s - soak.start_utc_s
    if lasted < 0.9 * least:
        raise AssertionError(f"the soak wrote for {lasted:.0f} s only, its least time is {in_digits(least, 9)} s")


def fan_sweep_should_be_accounted_for(context: RunContext, thermal: Thermal) -> None:
    """Fails when a sweep was asked for and neither measured nor given a reason."""
    sweep = thermal.fan_sweep
    asked = context.scenario.workloads[NAME].get("fan_sweep", {"duties_percent": []})
    if sweep.status == "done" and len(sweep.points) != len(asked["duties_percent"]):
        raise AssertionError(f"asked for fan duties {asked['duties_percent']}, measured {len(sweep.points)} of them")
    if sweep.status in ("unsupported", "stopped") and not sweep.reason:
        raise AssertionError(f"the fan sweep is {sweep.status} without a reason")


WORKLOAD = Workload(
    NAME,
    plan,
    run,
    action="write_until_drives_throttle_or_settle",
    check=_check,
    limits=_limits,
    raw=True,
    checks=(soak_should_have_lasted, fan_sweep_should_be_accounted_for),
)


def _without_series(load: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in load.items() if key != "own"}


def document(
    version: str,
    plan: Plan,
    rule: Rule,
    loads: list[dict[str, Any]],
    cooling: dict[str, Any],
    hazards: Any,
    sweep: dict[str, Any],
) -> dict[str, Any]:
    """results/thermal.json. `loads`: the soak, and the load after cooling where there was one."""
    parameters, points = plan.parameters, sweep["points"]
    return {
        "schema_version": 1,
        "tool": "fio",
        "tool_version": version,
        "load": {
            "block_bytes": parameters["block_size"],
            "io_depth": parameters["io_depth"],
            "file_bytes": parameters["file_size"],
            "rate_limit_bytes_per_s": parameters.get("rate_size"),
            "condition": "overwrite of a file that was written once before",
        },
        "rule": as_document(rule),
        "record": {"demand_bytes_per_s": plan.demand.offered_bytes_per_s, "duration_s": plan.demand.duration_s},
        "sustained": [
            {key: load[key] for key in ("name", "start_utc_s", "end_utc_s", "own") if key in load}
            for load in [*loads, *points]
        ],
        "soak": _without_series(loads[0]),
        "cool_down": cooling,
        "hazards": hazards,
        "fan_sweep": {**sweep, "points": [_without_series(point) for point in points]},
    }


class Soak:
    """The whole workload: soak, cooling, probe, fan sweep."""

    def __init__(self, machine: Machine, plan: Plan, hazards: HazardSchedule, fans: FanDuty, report: Report) -> None:
        self._machine, self._plan, self._hazards, self._fans, self._report = machine, plan, hazards, fans, report
        self._watch = Watch(*plan.points)

    def run(self) -> dict[str, Any]:
        """results/thermal.json. The file is removed however it ends."""
        parameters, limits = self._plan.parameters, self._plan.parameters["soak"]
        version = fio.version_on(self._machine)
        rule = self._plan.rule(limits["min_s"], limits["max_s"])
        try:
            self._report("laying out the soak's file", 0, 4, parameters["file_size"] / 2e9)
            jobs = JobFiles(self._machine, self._plan.work, self._plan.raw)
            fio.lay_out(jobs, "thermal", self._plan.target, self._plan.parameters["file_size"])
            self._report("soak", 1, 4, limits["max_s"])
            loads = [self._load(SOAK, rule, self._hazards.play)]
            self._hazards.release()
            self._report("cooling down", 2, 4, limits["cool_down_s"])
            cooling = self._cool_down(limits["cool_down_s"])
            if loads[0]["stopped_by"] == "throttling":
                self._report("load after cooling", 3, 4, limits["probe_s"])
                short = self._plan.rule(limits["probe_s"], limits["probe_s"])
                loads.append({**self._load(PROBE, short), "stopped_by": "time limit"})
            sweep = self._sweep()
        finally:
            self._plan.target.remove()
        hazards = self._machine.observe("the hazards that were commanded", lambda: self._hazards.commanded)
        return document(version, self._plan, rule, loads, cooling, hazards, sweep)

    def _load(
        self, name: str, rule: Rule, tick: Callable[[float], None] | None = None, by_us: bool = False
    ) -> dict[str, Any]:
        load = Load(self._machine, self._plan, name, rule.max_s)
        load.start()
        try:
            reason = self._machine.observe(f"what ended {name}", lambda: self._until(load, rule, tick, by_us))
        finally:
            result = load.stop()
        return {**result, "stopped_by": reason}

    def _until(self, load: Load, rule: Rule, tick: Callable[[float], None] | None, by_us: bool) -> str:
        """Looks on while the load runs; returns what is to end it, or has. The telemetry decides (bench_model.workloads.thermal)."""
        self._watch.tracks()
        self._watch.forget()
        begin = self._machine.stopwatch_s()
        start_s = self._clock_s()
        decided = 0.0
        while load.running():
            self._machine.wait(POLL_S)
            elapsed = self._machine.stopwatch_s() - begin
            if tick:
                tick(elapsed)
            # A long soak is looked at more rarely, since each look goes through all of it; and not at all while nothing can end it.
            if (by_us or elapsed >= rule.min_s) and elapsed - decided >= max(DECIDE_EVERY_S, elapsed / 100):
                decided = elapsed
                found = decide(self._watch.tracks(), self._plan.run.target, rule, start_s, start_s + elapsed, by_us)
                if found:
                    return found
        return "time limit"

    def _clock_s(self) -> float:
        return clock_of(self._machine)

    def _cool_down(self, seconds: float) -> dict[str, float]:
        start = self._clock_s()
        self._machine.observe("a rest", lambda: self._machine.wait(seconds))
        return {"start_utc_s": start, "end_utc_s": self._clock_s()}

    def _sweep(self) -> dict[str, Any]:
        asked = self._plan.parameters.get("fan_sweep")
        if not asked:
            return {"status": "not asked", "reason": None, "points": []}
        obstacle = self._machine.observe(
            "what keeps fans from being turned", lambda: self._fans.obstacle or self._blind()
        )
        if obstacle:
            return {"status": "unsupported", "reason": obstacle, "points": []}
        points: list[dict[str, Any]] = []
        slowed = False
        rule = self._plan.rule(asked["min_s"], asked["max_s"])
        duties = asked["duties_percent"]
        try:
            for step, percent in enumerate(duties, start=1):
                self._report(f"fans at {percent} %", step, len(duties), asked["max_s"])
                refusal = self._machine.observe(f"fans at {percent} %", partial(self._fans.set, percent))
                slowed = slowed or refusal is None
                if refusal:
                    return {"status": "unsupported", "reason": refusal, "points": points}
                point = {**self._load(f"fans at {percent} %", rule, by_us=True), "duty_percent": percent}
                points.append(point)
                if point["stopped_by"] == "danger":
                    reason = f"at {percent} % a drive came within {DANGER_K:g} K of its critical temperature, or the BMC warned"
                    return {"status": "stopped", "reason": reason, "points": points}
        finally:
            self._machine.observe("fans at full speed", lambda: self._fans.give_back(slowed))
        return {"status": "done", "reason": None, "points": points}

    def _blind(self) -> str | None:
        """Slowing fans without seeing what becomes hot could damage a drive."""
        tracks = self._watch.tracks()
        blind = [name for name in self._plan.run.target.names if not tracks.get("temperature", name, "critical_degc")]
        if blind or not self._plan.run.target.names:
            which = ", ".join(blind) or "the target"
            return f"no temperature of {which} with its critical limit, without which fans must not be slowed down"
        return None
