"""Faults of a whole server of which the bench is not told, on the virtual candidate: drives, power, fans, BMC and clock.

Nothing that is emulated can pass: an undisturbed run is INADMISSIBLE as a rehearsal with nothing missed, and what befalls a candidate
must be named beside that."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.documents.verdict import ERROR, FAIL, INADMISSIBLE
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.crash_trials import trial
from daq_bench.crash_trials.hazards import AT_REST, Hazard, Struck, strike
from daq_bench.crash_trials.trial import Bench, wait_until
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.telemetry.influx_server import LocalInflux
from daq_bench.simulation.truth import NAMED, REFUSED
from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.candidate import VirtualCandidate
from daq_bench.virtual_candidate.emulated.machine import VirtualMachine
from daq_bench.virtual_candidate.hardware import POWER
from daq_bench.virtual_candidate.testing import entry_of, fan_readings, running_candidate

DRIVE, OTHER_DRIVE, FAN, TARGET = "VCNA0001", "VCNA0009", "Fan1", "nand-raid0"
DRIVE_BYTES, RECORD_S = 10**9, 45  # the record takes 0.4 GB of the set's 3 GB
SCALE, RING_SIZE = 0.001, "16MiB"  # room for the seconds in which a busy machine gives the emulated CPUs nothing
BURST_S_MAX = 300.0
CLOCK_STEP_S = 30
FULL_RPM = 10000
SLOW_BYTES_PER_S = 10**6
TOOLS = {"snb_record": "daqwriter minidaq", "block_scan": "--name=bs-"}  # whose load a hazard strikes
FLIPS, FLIP_EVERY = 40, 2**20
KEPT = (
    "SNB-01",
    "SNB-02",
    "SNB-03",
    "SNB-04",
    "SNB-05",
)  # not those on heat: an emulated drive's temperature never moves
POWER_BOUND = {
    "id": "HAZ-01",
    "text": "The server draws at most 600 W",
    "metric": "snb_record.power_mean",
    "comparison": "at_most",
    "bound": 600,
    "unit": "W",
    "statistic": "max",
    "severity": "mandatory",
    "source": "[P] so that the BMC's word decides",
}


class Emulated(Bench):
    """A virtual candidate, and the bench beside it. Without acceleration, provisioning takes minutes."""

    phase_s_max, strike_s_max = 900.0, 20.0

    def __init__(self, machine: VirtualCandidate, folder: Path, influx: LocalInflux) -> None:
        self.machine = machine
        super().__init__(machine.instance.name, self.entry(), folder, influx, short_profiles(folder))

    def entry(self) -> dict[str, Any]:
        """The inventory's entry, with one target."""
        entry = entry_of(self.machine.instance)
        entry["bench_candidate"]["targets"] = {TARGET: entry["bench_candidate"]["targets"][TARGET]}
        return entry

    def wait_for_load(self, phase: str) -> None:
        program = TOOLS[phase]
        if not wait_until(lambda: program in self.machine.run("ps -e -o args="), BURST_S_MAX):
            raise BenchError(f"{program} was not started")
        time.sleep(5.0)


def short_profiles(folder: Path, scan: bool = False) -> tuple[Path, Path]:
    """The shipped scenario for emulated drives with its record alone, or with a block scan of minutes before it, and what of dune-snb its
    judge can tell here."""
    scenario = load_scenario(Layout().inventory / "scenarios" / "snb-emulated.yml").document
    scenario |= {"id": "hazards", "scale": SCALE, "duration_s": RECORD_S}
    if scan:
        scenario["workloads"]["block_scan"] |= {"file_size": "64MiB", "seconds_per_point": RECORD_S}
    else:
        del scenario["workloads"]["block_scan"]
    scenario["workloads"]["snb_record"]["ring_size"] = RING_SIZE
    requirement = YAML(typ="safe").load(Layout().inventory / "requirements" / "dune-snb.yml")
    requirement["id"] = "hazards"
    requirement["requirements"] = [one for one in requirement["requirements"] if one["id"] in KEPT] + [POWER_BOUND]
    files = folder / "scenarios" / "hazards.yml", folder / "requirements" / "hazards.yml"
    for file, document in zip(files, (scenario, requirement), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        YAML(typ="safe").dump(document, file)
    return files


def _freeze_bmc(place: Emulated, number: signal.Signals) -> None:
    """SIGSTOP: the BMC's firmware hangs; SIGCONT: it goes on."""
    simulator = processes.running(place.machine.instance.record("ipmi_sim"))
    if simulator is None:
        raise BenchError("the BMC's simulator does not run")
    os.kill(simulator.pid, number)


def _step_clock(place: Emulated, seconds: int) -> None:
    place.machine.run(f"date --set=@$(($(date +%s) + {seconds}))")


def _reset_sysctl(place: Emulated) -> None:
    place.machine.run("echo 65536 > /proc/sys/fs/aio-max-nr")


def _flip_bits(place: Emulated) -> None:
    """Turns one bit in each of 40 blocks of what the set's first drive has stored, once it has stored enough."""
    file = place.machine.instance.drive_file(place.machine.instance.drive(DRIVE))

    def stored() -> list[int]:
        with file.open("rb") as stream:
            return [at for at in _data(stream.fileno()) if at > DRIVE_BYTES // 16]  # behind the file system's own

    if not wait_until(lambda: len(stored()) > 2 * FLIPS, BURST_S_MAX):
        raise BenchError(f"drive {DRIVE} stores nothing")
    with file.open("r+b", buffering=0) as stream:
        for at in stored()[:FLIPS]:
            old = os.pread(stream.fileno(), 1, at + 2000)
            os.pwrite(stream.fileno(), bytes([old[0] ^ 0x40]), at + 2000)


def _data(descriptor: int) -> Iterator[int]:
    """The file's places with data, at most one in each MiB, B."""
    end, at = os.fstat(descriptor).st_size, 0
    while at < end:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError:  # nothing behind
            return
        yield at
        at += FLIP_EVERY


def _power_back(place: Emulated) -> None:
    place.machine.hazards.restore_power()
    place.machine.wait()


def _nothing(place: Emulated) -> None:
    """Nothing befalls the candidate."""


def _on_drive(name: str) -> Callable[[Emulated], None]:
    return lambda place: getattr(place.machine.hazards, name)(DRIVE)


def _swap_drive(place: Emulated) -> None:
    """Another drive sits in the declared one's slot, of the same size and make, with its content."""
    place.machine.hazards.swap(DRIVE, OTHER_DRIVE)


def _declare_another_make(place: Emulated) -> None:
    """The plan says what was bought; the drive has the serial, and is of another make."""
    entry = place.entry()
    for drive in entry["bench_candidate"]["identity"]["drives"]:
        if drive["serial"] == DRIVE:
            drive["model"] = "Genuine 9000"
    place.declare(entry)


def _hang_and_flip(place: Emulated) -> None:
    _freeze_bmc(place, signal.SIGSTOP)
    _flip_bits(place)


HAZARDS: tuple[Hazard[Emulated], ...] = (
    Hazard("nothing", "", frozenset({INADMISSIBLE}), (), _nothing, harmless=True),
    Hazard(
        "swapped_drive", "another drive, of the same make, is in its slot before the run", frozenset({REFUSED}),
        (rf"no drive (with the serial )?{DRIVE}",), _swap_drive, _on_drive("swap_back"), phase=AT_REST,
    ),
    Hazard(
        "counterfeit_serial", "a drive has the serial of the plan, and another model", frozenset({REFUSED}),
        (rf"model of {DRIVE}",), _declare_another_make, lambda place: place.declare(place.entry()), phase=AT_REST,
    ),
    Hazard(
        "drive_pulled", "one member of the set leaves its slot", frozenset({FAIL}), (NAMED["pulled"],), _on_drive("pull"),
        _on_drive("put_back"), wrecks=True,
    ),
    Hazard(
        "drive_pulled_in_scan", "the same, while fio scans block sizes", frozenset({FAIL}), (NAMED["pulled"],), _on_drive("pull"),
        _on_drive("put_back"), wrecks=True, phase="block_scan",
    ),
    Hazard(
        "write_errors", "one member ends every write in an I/O error", frozenset({FAIL}), (NAMED["pulled"],), _on_drive("fail_writes"),
        _on_drive("release_writes"), wrecks=True,
    ),
    Hazard(
        "slow_drive", "one member is held to 1 MB/s", frozenset({FAIL}), (NAMED["lost"],),
        lambda place: place.machine.hazards.throttle(DRIVE, SLOW_BYTES_PER_S), _on_drive("release_throttle"),
    ),
    Hazard(
        "bit_flips", "one bit in each of 40 stored places of one member", frozenset({FAIL}), (NAMED["bit_flips"],), _flip_bits,
    ),
    Hazard(
        "power_cut", "the power goes", frozenset({ERROR}), (r"connection to .* lost",), lambda place: place.machine.hazards.cut_power(),
        _power_back, wrecks=True,
    ),
    Hazard(
        "reset", "the machine restarts by itself", frozenset({ERROR}), (r"connection to .* lost",),
        lambda place: VirtualMachine(place.machine.instance).reset(), lambda place: place.machine.wait(), wrecks=True,
    ),
    Hazard(
        "bmc_hangs", "the BMC's firmware stops until the run has ended", frozenset({INADMISSIBLE}), (NAMED["bmc_hangs"],),
        lambda place: _freeze_bmc(place, signal.SIGSTOP), lambda place: _freeze_bmc(place, signal.SIGCONT), wrecks=True,
    ),
    Hazard(
        "bmc_zero_watts", "the BMC answers 0 W", frozenset({INADMISSIBLE}), (NAMED["bmc_zero_watts"],),
        lambda place: place.machine.bmc.sensors.write(POWER, 0), lambda place: place.machine.bmc.sensors.release(POWER),
    ),
    Hazard(
        "fan_stopped", "one fan stands still; nothing gets warm by it here", frozenset({INADMISSIBLE}),
        (rf"{FAN} 0 RPM",), lambda place: place.machine.hazards.stop_fan(FAN), lambda place: place.machine.hazards.release_fan(FAN),
    ),
    Hazard(
        "clock_step", "30 s forward", frozenset({INADMISSIBLE}), (NAMED["clock_step"],), lambda place: _step_clock(place, CLOCK_STEP_S),
        lambda place: _step_clock(place, -CLOCK_STEP_S),
    ),
    Hazard("sysctl_reset", "`fs.aio-max-nr` is set back", frozenset({INADMISSIBLE}), (NAMED["sysctl_reset"],), _reset_sysctl),
    Hazard(
        "several", "bmc_hangs and bit_flips", frozenset({INADMISSIBLE}), (NAMED["bmc_hangs"], NAMED["bit_flips"]), _hang_and_flip,
        lambda place: _freeze_bmc(place, signal.SIGCONT), wrecks=True,
    ),
)  # fmt: skip


def left_behind(machine: VirtualCandidate) -> list[str]:
    """Returns what a candidate that was given back must not have: it asks the guest, its drives and its BMC, not the bench."""
    asked = {
        "files": "find /opt /srv /var/lib/daq-storage-bench -mindepth 1 -type f ! -name .lock 2>/dev/null; true",
        "units": "ls /etc/systemd/system | grep daq-bench; true",
        "arrays": "grep ' active ' /proc/mdstat; true",
        "signatures": "wipefs --noheadings /dev/nvme*n1",
        "processes": "ps -e -o args= | grep -E 'daqwriter|telemetry_agent|fio ' | grep -v grep; true",
    }
    found = {what: machine.run(command).strip() for what, command in asked.items()}
    said = [f"{what} left: {' '.join(text.split())[:200]}" for what, text in found.items() if text]
    if (aio := machine.run("cat /proc/sys/fs/aio-max-nr").strip()) != "65536":
        said.append(f"left tuned: aio_max_nr {aio}")
    if max(fan_readings(machine.bmc)) >= FULL_RPM:
        said.append("the fans are left at full speed")
    return said


def befallen(place: Emulated, hazard: Hazard[Emulated], seed: int) -> Struck:
    """One run with the hazard under its load, and one `restore` after it."""
    place.profiles = short_profiles(place.folder, scan=hazard.phase == "block_scan")
    struck = strike(place, hazard, seed)
    verdict = trial.document(place.newest(), "verdict.json")
    objections = list(struck.objections)
    if hazard.kind == "nothing":
        objections += _undisturbed(verdict)
    if not hazard.wrecks:
        objections += left_behind(place.machine)
    if (restored := place.rig("restore", *place.who, "--runs", str(place.runs))).status != 0:
        objections.append(f"restore ended with {restored.status}: {' '.join(restored.text.split())[-300:]}")
    return replace(struck, objections=objections + left_behind(place.machine))


def _undisturbed(verdict: dict[str, Any]) -> list[str]:
    """Without a fault no requirement is missed, and no cause is named: else the words that name one prove nothing."""
    missed = [one["id"] for one in verdict["requirements"] if one["outcome"] == FAIL]
    named = [
        one.kind for one in HAZARDS if any(re.search(cause, said) for cause in one.named for said in verdict["reasons"])
    ]
    found = [f"undisturbed, but missed: {', '.join(missed)}"] if missed else []
    return found + ([f"undisturbed, but the reasons name {', '.join(named)}"] if named else [])


@contextmanager
def emulated(folder: Path) -> Iterator[Emulated]:
    """A virtual candidate with all that its runs need. Ends and removes everything but the bundles."""
    folder.mkdir(parents=True, exist_ok=True)
    influx = LocalInflux(Layout().influxd, folder / "influxdb")
    try:
        with running_candidate(DRIVE_BYTES) as machine:
            yield Emulated(machine, folder, influx)
    finally:
        influx.stop()
