"""The thermal soak: sequential O_DIRECT writes until the drives throttle, their temperature settles, or time is up.

The load is fio overwriting one file, and not daqwriter: it goes on for as long as it must without laying its file out anew, ends
cleanly when its trigger file appears, and keeps no memory of what it wrote. What ends a soak is decided from the telemetry while it
runs, by the functions that the analysis uses afterwards (bench_model.thermal_soak)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_model import dips, equilibrium, telemetry_tracks, throttling
from bench_model.errors import BenchError, RefusedError
from bench_model.line_protocol import Point, parse_line
from bench_model.load import Demand
from bench_model.load_windows import STEP_S, target_counter
from bench_model.profiles import Candidate, Scenario
from bench_model.telemetry_tracks import Tracks
from bench_model.thermal_soak import PROBE, SOAK
from bench_model.units import GB, decimal_label
from rig.fan_duty import FanDuty
from rig.hazard_schedule import HazardSchedule
from rig.host import Survey
from rig.machine import Machine
from rig.shell import Completed
from rig.workloads.base import Need, Report, Workload
from rig.workloads.fio_scan import parse_bandwidth_log

TELEMETRY_LATE_S_MAX = 15.0  # of the mirrored spool; a sensor that is silent for longer says nothing of equilibrium
NAME = "thermal"
POLL_S = 1.0
DECIDE_EVERY_S = 5.0
START_S_MAX = 60.0
SOAK_S_WANTED = 1800.0  # [P] a drive behind a heat sink takes a quarter of an hour and more to settle
RECORD_S_WANTED = 100.0  # DUNE paper, section 5
DANGER_K = 2.0  # [P] below its own critical temperature a drive that we made hot is relieved
BMC_CRITICAL = 2  # severity of a BMC's sensor: critical
WATCHED = ("temperature,", "smart,", "block_device,", "ipmi_sensor,")


@dataclass(frozen=True)
class Rule:
    """What ends a load."""

    window_s: float
    slope_max_k_per_min: float
    min_s: float
    max_s: float
    hold_s: float

    def as_document(self) -> dict[str, Any]:
        return {**vars(self), "text": equilibrium.rule(self.window_s, self.slope_max_k_per_min)}


@dataclass(frozen=True)
class Plan:
    """Everything that the soak needs of its run. `work` is on the candidate, `raw` and `points` in the bundle."""

    parameters: dict[str, Any]
    demand: Demand
    scratch: Path
    work: Path
    raw: Path
    points: Sequence[Path]
    run: dict[str, Any]

    @property
    def drives(self) -> list[str]:
        return [drive["name"] for drive in self.run["target"]["drives"]]

    def rule(self, min_s: float, max_s: float) -> Rule:
        level = self.parameters["equilibrium"]
        hold = float(self.parameters["soak"]["hold_s"])
        return Rule(level["window_s"], level["slope_max_k_per_min"], min_s, max_s, hold)


def estimated_s(scenario: Scenario) -> float:
    """At most; a soak that settles or throttles early takes less."""
    parameters = scenario.workloads[NAME]
    soak, sweep = parameters["soak"], parameters.get("fan_sweep")
    fans = len(sweep["duties_percent"]) * sweep["max_s"] if sweep else 0.0
    return float(parameters["file_size"] / 2e9 + soak["max_s"] + soak["cool_down_s"] + soak["probe_s"] + fans)


def _need(scenario: Scenario) -> Need:
    size = scenario.workloads[NAME]["file_size"]
    return Need(size, f"the thermal soak's file of {decimal_label(size)}")


def demand_of(scenario: Scenario) -> Demand:
    """The record whose loss is computed."""
    record = scenario.workloads[NAME]["record"]
    size, rate = record["superchunk_bytes"], float(record["superchunk_rate_hz"])
    return Demand(record["links"], size, rate, scenario.scale, float(record["duration_s"]))


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
                f"{place}.{name}.max_s {limits['max_s']:g} is less than min_s {limits['min_s']:g}. Raise it"
            )
        if limits and limits["max_s"] < parameters["equilibrium"]["window_s"]:
            raise RefusedError(
                f"{place}.{name}.max_s {limits['max_s']:g} is less than equilibrium.window_s, so that equilibrium could not be seen. "
                "Raise max_s or shorten the window"
            )


def _limits(scenario: Scenario) -> list[str]:
    parameters = scenario.workloads[NAME]
    demand = demand_of(scenario)
    found = []
    if parameters["soak"]["max_s"] < SOAK_S_WANTED:
        found.append(f"The soak lasts at most {parameters['soak']['max_s']:g} s instead of {SOAK_S_WANTED:g} s")
    if demand.duration_s < RECORD_S_WANTED:
        found.append(
            f"The record whose loss is computed lasts {demand.duration_s:g} s instead of {RECORD_S_WANTED:g} s"
        )
    cap = parameters.get("rate_size")
    if cap and cap < demand.real_bytes_per_s:
        found.append(
            f"The soak's load is held to {cap / GB:.4g} GB/s, below the {demand.real_bytes_per_s / GB:.4g} GB/s of one readout unit"
        )
    if parameters.get("hazards"):
        found.append("Faults are commanded during the soak")
    return found


WORKLOAD = Workload(NAME, estimated_s, _need, check=_check, limits=_limits)


class Watch:
    """The run's telemetry as it grows: only whole lines, only what a soak is decided by."""

    def __init__(self, *files: Path) -> None:
        self._offsets = dict.fromkeys(files, 0)
        self._points: list[Point] = []

    def forget(self) -> None:
        """What was before the load that begins now decides nothing."""
        self._points.clear()

    def tracks(self) -> Tracks:
        for file, offset in self._offsets.items():
            if file.exists():
                self._offsets[file] += self._read(file, offset)
        return telemetry_tracks.from_points(self._points)

    def _read(self, file: Path, offset: int) -> int:
        """The bytes that were new."""
        with file.open("rb") as stream:
            stream.seek(offset)
            text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        lines = whole.decode("utf-8").splitlines()
        self._points += [parse_line(line) for line in lines if line.startswith(WATCHED)]
        return len(whole)


class Load:
    """fio, from `start` to `stop`, while the caller looks on."""

    def __init__(self, machine: Machine, plan: Plan, name: str, max_s: float) -> None:
        self._machine, self._plan, self._name = machine, plan, name
        self._stem = "thermal-" + "".join(letter if letter.isalnum() else "-" for letter in name)
        self._trigger = plan.work / f"{self._stem}.stop"
        self._max_s = max_s
        self._done: Completed | BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self._stem, daemon=True)

    def arguments(self) -> list[str]:
        parameters = self._plan.parameters
        cap = parameters.get("rate_size")
        return [
            *_common(self._plan.scratch / "thermal.bin"),
            f"--name={self._stem}",
            f"--bs={parameters['block_size']}",
            f"--size={parameters['file_size'] // parameters['block_size'] * parameters['block_size']}",
            f"--iodepth={parameters['io_depth']}",
            *([f"--rate={cap}"] if cap else []),
            "--overwrite=1",
            "--time_based",
            f"--runtime={self._max_s:g}s",
            f"--trigger-file={self._trigger}",
            f"--write_bw_log={self._plan.work / self._stem}",
            "--log_avg_msec=1000",
            "--log_unix_epoch=1",
        ]

    def _run(self) -> None:
        try:
            self._done = self._machine.run(self.arguments(), timeout_s=self._max_s + 300)
        except BaseException as error:  # handed to whoever waits in `stop`
            self._done = error

    def start(self) -> None:
        self._thread.start()

    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> dict[str, Any]:
        """Ends fio if it still runs; returns its window, bytes and rate. Raises BenchError for what went wrong with it."""
        try:
            if self.running():
                self._machine.run(["touch", "--", self._trigger], timeout_s=60).check("asking fio to end")
            self._thread.join(120)
        finally:
            self._machine.remove(self._trigger)
        if isinstance(self._done, BaseException):
            raise self._done
        if self._done is None:
            raise BenchError(f"fio ({self._name}) did not end within 120 s of being asked to")
        return self._result(self._done.check(f"fio ({self._name})"))

    def _result(self, done: Completed) -> dict[str, Any]:
        (self._plan.raw / f"{self._stem}.json").write_text(done.stdout, encoding="utf-8")
        log = self._plan.raw / f"{self._stem}_bw.1.log"
        self._machine.fetch(self._plan.work / f"{self._stem}_bw.1.log", log)
        text = log.read_text(encoding="ascii")
        times = [int(line.split(",")[0]) / 1000 for line in text.splitlines() if line.strip()]
        rates = parse_bandwidth_log(text)
        try:
            job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
            write = job["write"]
        except (ValueError, KeyError, IndexError) as error:
            raise BenchError(
                f"fio's output ({self._name}) cannot be read ({error!r}); it is kept in results/raw"
            ) from None
        if job["error"] or not write["io_bytes"] or len(rates) < 2:
            raise BenchError(f"fio ({self._name}) ended with error {job['error']} after {write['io_bytes']} B")
        # A line of the log is the end of its second; the first second, in which fio starts, is left out.
        return {
            "name": self._name,
            "start_utc_s": times[0],
            "end_utc_s": times[-1],
            "bytes_written": write["io_bytes"],
            "throughput_bytes_per_s": write["bw_bytes"],
            "own": [list(pair) for pair in zip(times, rates, strict=True)],
        }


def _without_series(load: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in load.items() if key != "own"}


def _common(file: Path) -> list[str]:
    return [
        "fio",
        f"--filename={file}",
        "--rw=write",
        "--direct=1",
        "--ioengine=libaio",
        "--verify_state_save=0",
        "--output-format=json",
    ]


def lay_out(machine: Machine, plan: Plan) -> None:
    """Writes the file once, so that no load pays for the file system's allocation."""
    size = plan.parameters["file_size"] // plan.parameters["block_size"] * plan.parameters["block_size"]
    argv = [*_common(plan.scratch / "thermal.bin"), "--name=layout", f"--bs={2**20}", f"--size={size}", "--iodepth=8"]
    machine.run([*argv, "--end_fsync=1", "--fallocate=none"], timeout_s=120 + size / 20e6).check(
        "laying out the soak's file with fio"
    )


def decide(
    tracks: Tracks, run: dict[str, Any], rule: Rule, start_s: float, now_s: float, by_us: bool = False
) -> str | None:
    """Why a load that began at `start_s` should end now; None: it goes on. Times on the candidate's clock.

    `by_us`: the fans are at a speed that we chose, so that heat is our doing and danger a reason to end at once."""
    drives = [drive["name"] for drive in run["target"]["drives"]]
    if by_us and in_danger(tracks, drives, now_s):
        return "danger"
    elapsed = now_s - start_s
    if elapsed < rule.min_s:
        return None
    if elapsed >= rule.max_s:
        return "time limit"
    onset = _onset_s(tracks, run, drives, start_s, now_s)
    if onset is not None:
        return "throttling" if elapsed - onset >= rule.hold_s else None
    levels = []
    for drive in drives:
        track = tracks.get("temperature", drive, "temperature_degc")
        # The telemetry of a candidate behind SSH arrives seconds late: its last sample is "now", unless the sensor fell silent.
        last_s = min(now_s, float(track.times_s[-1])) if track else now_s
        heard = track is not None and now_s - last_s <= TELEMETRY_LATE_S_MAX
        levels.append(equilibrium.level_at(track, last_s, rule.window_s, start_s) if track and heard else None)
    if levels and all(equilibrium.settled(level, rule.slope_max_k_per_min) for level in levels):
        return "equilibrium"
    return None


def _onset_s(tracks: Tracks, run: dict[str, Any], drives: Sequence[str], start_s: float, now_s: float) -> float | None:

    counter, _ = target_counter(run, tracks)
    if counter is None:
        return None
    series = telemetry_tracks.rates(counter, start_s, now_s, STEP_S)
    for dip in dips.analyse(series, STEP_S).dips:
        if throttling.judge_dip(tracks, drives, dip, start_s).throttling:
            return dip.start_s
    return None


def in_danger(tracks: Tracks, drives: Sequence[str], now_s: float) -> bool:
    """A drive near its own critical temperature, or a sensor that the BMC calls critical, within the last seconds."""
    for drive in drives:
        degrees, limit = (tracks.get("temperature", drive, name) for name in ("temperature_degc", "critical_degc"))
        hottest = degrees.max(now_s - 10, now_s + 10) if degrees else None
        if hottest is not None and limit is not None and hottest >= float(limit.values.min()) - DANGER_K:
            return True
    severities = tracks.of("ipmi_sensor", "severity").values()
    return any((track.max(now_s - 15, now_s + 15) or 0) >= BMC_CRITICAL for track in severities)


class Soak:
    """The whole workload: soak, cooling, probe, fan sweep."""

    def __init__(self, machine: Machine, plan: Plan, hazards: HazardSchedule, fans: FanDuty, report: Report) -> None:
        self._machine, self._plan, self._hazards, self._fans, self._report = machine, plan, hazards, fans, report
        self._watch = Watch(*plan.points)

    def run(self) -> dict[str, Any]:
        """results/thermal.json. The file is removed however it ends."""
        parameters, limits = self._plan.parameters, self._plan.parameters["soak"]
        version = self._machine.run(["fio", "--version"], timeout_s=20).check("fio").stdout.strip()
        rule = self._plan.rule(limits["min_s"], limits["max_s"])
        try:
            self._report("laying out the soak's file", 0, 4, parameters["file_size"] / 2e9)
            lay_out(self._machine, self._plan)
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
            self._machine.remove(self._plan.scratch / "thermal.bin")
        cap = parameters.get("rate_size")
        return {
            "schema_version": 1,
            "tool": "fio",
            "tool_version": version,
            "load": {
                "block_bytes": parameters["block_size"],
                "io_depth": parameters["io_depth"],
                "file_bytes": parameters["file_size"],
                "rate_limit_bytes_per_s": cap,
                "condition": "overwrite of a file that was written once before",
            },
            "rule": rule.as_document(),
            "record": {
                "demand_bytes_per_s": self._plan.demand.offered_bytes_per_s,
                "duration_s": self._plan.demand.duration_s,
            },
            "sustained": [
                {key: load[key] for key in ("name", "start_utc_s", "end_utc_s", "own")}
                for load in [*loads, *sweep["points"]]
            ],
            "soak": _without_series(loads[0]),
            "cool_down": cooling,
            "hazards": self._hazards.commanded,
            "fan_sweep": {**sweep, "points": [_without_series(point) for point in sweep["points"]]},
        }

    def _load(
        self, name: str, rule: Rule, tick: Callable[[float], None] | None = None, by_us: bool = False
    ) -> dict[str, Any]:
        load = Load(self._machine, self._plan, name, rule.max_s)
        self._watch.tracks()
        self._watch.forget()
        load.start()
        reason = "time limit"
        try:
            begin = time.monotonic()
            start_s = self._clock_s()
            decided = 0.0
            while load.running():
                time.sleep(POLL_S)
                elapsed = time.monotonic() - begin
                if tick:
                    tick(elapsed)
                # A long soak is looked at more rarely, since each look goes through all of it.
                if elapsed - decided >= max(DECIDE_EVERY_S, elapsed / 100):
                    decided = elapsed
                    found = decide(self._watch.tracks(), self._plan.run, rule, start_s, start_s + elapsed, by_us)
                    if found:
                        reason = found
                        break
        finally:
            result = load.stop()
        return {**result, "stopped_by": reason}

    def _clock_s(self) -> float:
        return float(self._machine.run(["date", "+%s.%N"], timeout_s=30).check("reading the candidate's clock").stdout)

    def _cool_down(self, seconds: float) -> dict[str, float]:
        start = self._clock_s()
        time.sleep(seconds)
        return {"start_utc_s": start, "end_utc_s": self._clock_s()}

    def _sweep(self) -> dict[str, Any]:
        asked = self._plan.parameters.get("fan_sweep")
        if not asked:
            return {"status": "not asked", "reason": None, "points": []}
        obstacle = self._fans.obstacle or self._blind()
        if obstacle:
            return {"status": "unsupported", "reason": obstacle, "points": []}
        points: list[dict[str, Any]] = []
        slowed = False
        rule = self._plan.rule(asked["min_s"], asked["max_s"])
        duties = asked["duties_percent"]
        try:
            for step, percent in enumerate(duties, start=1):
                self._report(f"fans at {percent} %", step, len(duties), asked["max_s"])
                refusal = self._fans.set(percent)
                slowed = slowed or refusal is None
                if refusal:
                    return {"status": "unsupported", "reason": refusal, "points": points}
                point = {**self._load(f"fans at {percent} %", rule, by_us=True), "duty_percent": percent}
                points.append(point)
                if point["stopped_by"] == "danger":
                    reason = f"at {percent} % a drive came within {DANGER_K:g} K of its critical temperature, or the BMC warned"
                    return {"status": "stopped", "reason": reason, "points": points}
        finally:
            self._fans.give_back(slowed)
        return {"status": "done", "reason": None, "points": points}

    def _blind(self) -> str | None:
        """Slowing fans without seeing what becomes hot could damage a drive."""
        tracks = self._watch.tracks()
        blind = [name for name in self._plan.drives if not tracks.get("temperature", name, "critical_degc")]
        if blind or not self._plan.drives:
            which = ", ".join(blind) or "the target"
            return f"no temperature of {which} with its critical limit, without which fans must not be slowed down"
        return None
