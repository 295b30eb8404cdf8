"""The thermal soak's parts: what ends a load, the fans' duty, commanded hazards, and fio itself ended by its trigger on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_helpers import wait_for
from msgspec import structs
from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.bundle.telemetry_tracks import Track, Tracks
from daq_bench.bench_model.documents.run import TargetOfRun
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.workloads.thermal.document import Rule
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.hazard_spans import HazardLog
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.bmc import FanDuty, fan_duty
from daq_bench.rig.candidate.hazard_control import HazardControl
from daq_bench.rig.candidate.load_target import FileTarget
from daq_bench.rig.candidate.machine import LocalMachine
from daq_bench.rig.workloads.thermal.hazard_schedule import HazardSchedule
from daq_bench.rig.workloads.thermal.load import Load, Plan
from daq_bench.rig.workloads.thermal.watch import Watch, decide
from daq_bench.rig.workloads.thermal.workload import WORKLOAD as THERMAL
from daq_bench.rig.workloads.thermal.workload import demand_of
from daq_bench.virtual_candidate.bmc.simulator import Bmc
from daq_bench.virtual_candidate.testing import wait_for_fans

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "inventory" / "studies"))
from series_factory import white, with_dip
from tracks_factory import BEGIN_S, DRIVE, drive, scenery, track

LAYOUT = Layout()
RULE = Rule(window_s=60, slope_max_k_per_min=0.2, min_s=100, max_s=500, hold_s=60, text="the line is level")
COUNT = 600


def telemetry(rates: Any, own: dict[tuple[str, str, str], Track]) -> tuple[Tracks, TargetOfRun]:
    """The telemetry that a soak sees: the device's counter and its drive's own readings."""
    times = BEGIN_S + np.arange(len(rates) + 1.0)
    counter = Track(times, np.concatenate(([0.0], np.cumsum(rates))))
    return Tracks({("block_device", DRIVE, "written_bytes"): counter, **own}), scenery().run.target


def steady() -> Any:
    return white(np.random.default_rng(1), COUNT)


def warming(slope_k_per_min: float) -> dict[tuple[str, str, str], Track]:
    degrees = track(lambda time: 40 + slope_k_per_min * time / 60, COUNT)
    return {**drive(COUNT), ("temperature", DRIVE, "temperature_degc"): degrees}


@pytest.mark.parametrize(
    ("slope", "elapsed", "reason"),
    [(0.0, 90, None), (0.0, 400, None), (1.0, 400, None), (1.0, 510, "time limit")],
)
def test_a_soak_ends_by_equilibrium_or_by_its_limit_and_not_before_its_least_time(
    slope: float, elapsed: float, reason: str | None
) -> None:
    tracks, target = telemetry(steady(), warming(slope))
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + elapsed) == reason


def test_a_soak_ends_by_equilibrium_when_the_asymptote_is_known() -> None:
    """Level for an hour and a half; 25 minutes would hide a slow approach."""
    long = structs.replace(RULE, max_s=7200)
    level = {("temperature", DRIVE, "temperature_degc"): track(lambda _: 50, 5600)}
    tracks, target = telemetry(white(np.random.default_rng(1), 5600), {**drive(5600), **level})
    assert decide(tracks, target, long, BEGIN_S, BEGIN_S + 1500) is None
    assert decide(tracks, target, long, BEGIN_S, BEGIN_S + 5500) == "equilibrium"


@pytest.mark.parametrize(("silent_s", "reason"), [(20, "equilibrium"), (40, None)])
def test_a_sas_drive_settles_by_the_readings_of_its_health_log(silent_s: int, reason: str | None) -> None:
    """The kernel reads none; the log's next one may be 10 s away, and comes late."""
    long, heard_s = structs.replace(RULE, max_s=7200), 5500 - silent_s
    level = {("smart_temperature", DRIVE, "temperature_degc"): track(lambda _: 50, heard_s + 1, 10.0)}
    tracks, target = telemetry(white(np.random.default_rng(1), 5600), level)
    assert decide(tracks, target, long, BEGIN_S, BEGIN_S + 5500) == reason


def test_a_soak_throttles_by_the_drives_own_word_under_an_even_rate() -> None:
    counted = {("smart", DRIVE, "thermal_management_1_transitions"): track(lambda time: time // 300, COUNT, 10.0)}
    tracks, target = telemetry(steady(), {**drive(COUNT), **counted})
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 340) is None
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 370) == "throttling"


def test_a_soak_that_throttles_goes_on_until_the_depth_shows() -> None:
    hot = drive(COUNT, (150.0, float(COUNT)), temperature=True, warning=True)
    tracks, target = telemetry(with_dip(steady(), 150, COUNT - 150, 0.5), hot)
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 205) is None
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 215) == "throttling"


def test_without_a_sensor_only_the_limit_ends_a_soak() -> None:
    tracks, target = telemetry(steady(), {})
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 400) is None
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 500) == "time limit"


def test_heat_that_the_bench_made_ends_a_load_at_once() -> None:
    """84 degC, critical at 85: only where we chose the fans' speed, since otherwise the drive minds itself."""
    hot = {**drive(COUNT), ("temperature", DRIVE, "temperature_degc"): track(lambda _: 84, COUNT)}
    tracks, target = telemetry(steady(), hot)
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 20, by_us=True) == "danger"
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 20) is None
    bmc = {("ipmi_sensor", "CPU Temp", "severity"): track(lambda time: 2 * (time > 15), COUNT)}
    tracks, target = telemetry(steady(), {**drive(COUNT), **bmc})
    assert decide(tracks, target, RULE, BEGIN_S, BEGIN_S + 20, by_us=True) == "danger"


def test_the_watch_takes_whole_lines_as_they_come(tmp_path: Path) -> None:
    file = tmp_path / "points.lp"
    watch = Watch(file)
    assert watch.tracks().found == {}
    line = "temperature,device=nvme0n1,label=Composite,run=r temperature_degc={} {}\n"
    file.write_text(line.format(50, 10**9) + "memory,run=r free_bytes=1i 1\n" + line.format(51, 2 * 10**9)[:-5])
    found = watch.tracks().get("temperature", "nvme0n1", "temperature_degc")
    assert found is not None
    assert found.values.tolist() == [50.0]
    with file.open("a") as stream:
        stream.write(line.format(51, 2 * 10**9)[-5:])
    later = watch.tracks().get("temperature", "nvme0n1", "temperature_degc")
    assert later is not None
    assert later.values.tolist() == [50.0, 51.0]
    with file.open("a") as stream:
        stream.write(
            "block_device,device=nvme0n1 written_bytes=7i,reads=3i 1\nsmart,device=nvme0n1 power_on_hours=9i 1\n"
        )
    assert [key for key in watch.tracks().found if key[0] != "temperature"] == [
        ("block_device", "nvme0n1", "written_bytes")
    ]


def test_hazards_are_commanded_when_due_and_released_once() -> None:
    done: list[str] = []
    steps: list[Any] = [(1.0, "throttle", lambda: done.append("throttle")), (5.0, "fan", lambda: done.append("fan"))]
    schedule = HazardSchedule(steps, lambda: done.append("release"))
    schedule.release()
    schedule.play(0.5)
    assert done == []
    schedule.play(2.0)
    schedule.play(3.0)
    assert done == ["throttle"]
    schedule.play(9.0)
    schedule.release()
    schedule.release()
    assert done == ["throttle", "fan", "release"]
    assert schedule.commanded == ["throttle after 1 s", "fan after 5 s"]


class Asked:
    """Hazards that only write down what they are asked for."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words: self.said.append((name, *words))


def test_the_emulated_scenarios_hazards_are_commanded_as_written_and_noted(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path)
    (tmp_path / "telemetry").mkdir()
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "thermal-emulated.yml")
    asked = Asked()
    control = HazardControl(asked, HazardLog(bundle, "thermal"))  # type: ignore[arg-type]
    schedule = HazardSchedule.of(scenario.workloads["thermal"]["hazards"], control)
    schedule.play(31)
    assert asked.said == []
    schedule.play(33)
    throttle, bay, inlet, fan = asked.said
    assert (throttle, bay) == (("throttle", "VCXP0001", 4_000_000), ("raise_bay", "VCXP0001", 75))
    assert (inlet, fan) == (("raise_inlet", 47), ("stop_fan", "Fan1"))
    schedule.play(66)
    schedule.release()
    assert asked.said[4:] == [("release_all",)]
    assert [event.data for event in bundle.events()] == [{"serial": "VCXP0001"}, {}, {}, {}, {"released": True}]


def vendors() -> dict[str, Any]:
    file = LAYOUT.repository / "ansible" / "roles" / "fans" / "vars" / "main" / "vendors.yml"
    found: dict[str, Any] = YAML(typ="safe").load(file)["__fans_vendors"]
    return found


def test_a_duty_is_sent_as_the_vendors_data_says_and_full_speed_is_given_back() -> None:
    sent: list[str] = []

    def send(words: list[str]) -> Completed:
        sent.append(" ".join(words))
        return Completed(tuple(words), 0, "", "")

    fans = FanDuty(None, vendors()["supermicro"], send)
    assert fans.set(50) is None
    assert sent == ["0x30 0x70 0x66 0x01 0x00 0x32", "0x30 0x70 0x66 0x01 0x01 0x32"]
    assert "25 %, the least" in (fans.set(10) or "")
    assert len(sent) == 2
    fans.give_back(slowed=True)
    assert sent[2] == "0x30 0x45 0x01 0x01"
    assert sent[3:] == ["0x30 0x70 0x66 0x01 0x00 0x64", "0x30 0x70 0x66 0x01 0x01 0x64"]


def test_fans_that_were_never_slowed_need_only_what_must_be_taken() -> None:
    """A BMC without the optional commands refused the duty: that is no fault of giving back."""

    def send(words: list[str]) -> Completed:
        return Completed(tuple(words), int(words[1] == "0x70"), "", "rsp=0xc1: Invalid command")

    fans = FanDuty(None, vendors()["supermicro"], send)
    assert fans.set(50) is not None
    fans.give_back(slowed=False)
    with pytest.raises(BenchError, match="0x64"):
        fans.give_back(slowed=True)


def test_a_bmc_that_refuses_is_quoted_and_fans_that_are_not_given_back_are_an_error() -> None:
    fans = FanDuty(None, vendors()["dell"], lambda words: Completed(tuple(words), 1, "", "rsp=0xc1: Invalid command"))
    assert "Invalid command" in (fans.set(50) or "")
    with pytest.raises(BenchError, match="could not be set to full speed again"):
        fans.give_back(slowed=True)


class Tuned:
    """A bundle whose tuning has, or lacks, the fans' guard."""

    def __init__(self, guard: str | None) -> None:
        self._guard = guard

    def read(self, name: str) -> dict[str, Any]:
        assert name == "facts/tuning.json"
        return {"settings": [{"id": "fan-guard", "status": self._guard}] if self._guard else []}


@pytest.mark.parametrize(
    ("candidate", "guard", "vendor", "obstacle"),
    [
        ("this-machine", None, None, "has no BMC"),
        ("virtual", None, "supermicro", "no guard holds the fans"),
        ("virtual", "mismatch", "supermicro", "no guard holds the fans"),
        ("virtual", "applied", None, "vendor is not named"),
        ("virtual", "applied", "hpe", "iLO takes no fan command"),
    ],
)
def test_why_the_fans_cannot_be_swept_is_said(
    candidate: str, guard: str | None, vendor: str | None, obstacle: str
) -> None:
    known = load_candidate(LAYOUT.inventory / "lab.yml", candidate)
    if "bmc" in known.document:
        known.document["bmc"].pop("vendor")
        known.document["bmc"] |= {"vendor": vendor} if vendor else {}
    found = fan_duty(LAYOUT, known, LocalMachine(), Tuned(guard))  # type: ignore[arg-type]
    assert obstacle in (found.obstacle or "")


def test_the_duty_reaches_a_bmc_over_the_lan_and_full_speed_comes_back(
    start_bmc: Callable[..., Bmc], tmp_path: Path
) -> None:
    """ipmitool against OpenIPMI's simulator with Supermicro's commands; the password is in no argument."""
    bmc = start_bmc(vendor="supermicro")
    bmc.ipmitool("raw", "0x30", "0x45", "0x01", "0x01")
    wait_for_fans(bmc, [10000] * 4)
    known = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(bmc.password, encoding="ascii")
    known.document["bmc"] |= {"ipmi_port": bmc.ipmi_port, "password_file": str(secret)}
    fans = fan_duty(LAYOUT, known, LocalMachine(), Tuned("applied"))  # type: ignore[arg-type]
    assert fans.obstacle is None
    assert fans.set(40) is None
    wait_for_fans(bmc, [4000] * 4)
    fans.give_back(slowed=True)
    wait_for_fans(bmc, [10000] * 4)


def test_faults_are_refused_for_real_hardware_before_anything_is_written() -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "thermal-emulated.yml")
    real = load_candidate(LAYOUT.inventory / "lab.yml", "this-machine")
    with pytest.raises(RefusedError, match=r"thermal-emulated.yml: workloads.thermal.hazards commands faults"):
        THERMAL.check(scenario, real, None)  # type: ignore[arg-type]
    THERMAL.check(scenario, replace(real, virtual=True), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_s": 50}, "max_s 50 is less than min_s 90"),
        ({"min_s": 20, "max_s": 29}, "less than equilibrium.window_s"),
    ],
)
def test_a_soak_that_cannot_show_anything_is_refused(change: dict[str, float], message: str) -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "thermal-emulated.yml")
    scenario.workloads["thermal"]["soak"] |= change
    virtual = load_candidate(LAYOUT.inventory / "lab.yml", "virtual")
    with pytest.raises(RefusedError, match=message):
        THERMAL.check(scenario, virtual, None)  # type: ignore[arg-type]


def test_commanded_faults_are_said_whatever_is_demanded() -> None:
    limits = {
        name: THERMAL.limits(load_scenario(LAYOUT.inventory / "scenarios" / f"{name}.yml"))
        for name in ("thermal", "thermal-emulated", "thermal-rehearsal")
    }
    assert limits["thermal"] == []
    assert any("Faults are commanded" in text for text in limits["thermal-emulated"])
    assert limits["thermal-rehearsal"] == []


@pytest.mark.integration  # it measures at a pace
def test_fio_ends_when_it_is_asked_to_and_leaves_its_account(disk: Path) -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "thermal-rehearsal.yml")
    parameters = {**scenario.workloads["thermal"], "file_size": 2**25, "block_size": 2**20, "rate_size": 20_000_000}
    target = FileTarget(LocalMachine(), disk / "thermal.bin")
    plan = Plan(parameters, demand_of(scenario), target, disk, disk, [disk / "points.lp"], scenery().run)
    load = Load(LocalMachine(), plan, "fans at 50 %", 120)
    begin = time.monotonic()
    load.start()
    time.sleep(5)
    result = load.stop()
    assert time.monotonic() - begin < 100  # of 120
    assert not load.running()
    assert 0 < result["throughput_bytes_per_s"] < 1.3 * 20e6  # at its pace; below it where the machine stalls
    assert 2 <= result["end_utc_s"] - result["start_utc_s"] <= 25
    assert abs(result["end_utc_s"] - time.time()) < 10
    assert not list(disk.glob("*.stop"))


def test_fio_that_cannot_write_is_an_error_in_its_own_words(disk: Path) -> None:
    scenario = load_scenario(LAYOUT.inventory / "scenarios" / "thermal-rehearsal.yml")
    (disk / "nowhere").touch()  # a file, where a folder should be
    target = FileTarget(LocalMachine(), disk / "nowhere" / "thermal.bin")
    plan = Plan(scenario.workloads["thermal"], demand_of(scenario), target, disk, disk, [disk], scenery().run)
    load = Load(LocalMachine(), plan, "soak", 30)
    load.start()
    wait_for(lambda: not load.running(), "fio's end", 60)
    with pytest.raises(BenchError, match="nowhere"):
        load.stop()
