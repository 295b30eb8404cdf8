"""Commands faults on a candidate whose hardware is emulated, and notes each in the run's events. Real hardware is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.rig.base.hazard_spans import HazardLog

if TYPE_CHECKING:  # no wheel holds the virtual candidate (setup.py)
    from daq_bench.virtual_candidate.hazards import Hazards

POWER = "power"  # the subject of a power cut


class HazardControl:
    """The hazards of one virtual candidate; drives are named by serial. Each method raises the candidate's answer as BenchError."""

    def __init__(self, hazards: Hazards, log: HazardLog) -> None:
        self._hazards, self._log = hazards, log

    def throttle(self, serial: str, bytes_per_s: int) -> None:
        """Holds a drive to a rate, its critical-warning bit for temperature set."""
        self._hazards.throttle(serial, bytes_per_s)
        self._log.begin(
            f"rate {serial}",
            f"drive {serial} is held to {decimal_label(bytes_per_s)}/s, critical warning set",
            serial=serial,
        )

    def release_throttle(self, serial: str) -> None:
        """Gives a drive its own rate back."""
        self._hazards.release_throttle(serial)
        self._log.end([f"rate {serial}"], f"drive {serial} is released", serial=serial, released=True)

    def fail_writes(self, serial: str) -> None:
        """Lets every write to a drive end in an I/O error."""
        self._hazards.fail_writes(serial)
        self._log.begin(f"writes {serial}", f"writes to drive {serial} fail")

    def pull(self, serial: str) -> None:
        """Takes a drive out of its slot."""
        self._hazards.pull(serial)
        self._log.begin(f"slot {serial}", f"drive {serial} is pulled")

    def raise_inlet(self, celsius: int) -> None:
        """Raises the temperature that the BMC reads at the air inlet, degC."""
        self._hazards.raise_inlet(celsius)
        self._log.begin("inlet", f"inlet at {celsius} degC")

    def raise_bay(self, serial: str, celsius: int) -> None:
        """Raises the temperature that the BMC reads in a drive's bay, degC."""
        self._hazards.raise_bay(serial, celsius)
        self._log.begin(f"bay {serial}", f"bay of drive {serial} at {celsius} degC")

    def stop_fan(self, name: str) -> None:
        """Lets a fan stand still."""
        self._hazards.stop_fan(name)
        self._log.begin(f"fan {name}", f"fan {name} stands still")

    def cut_power(self) -> None:
        """Cuts the candidate's power at once."""
        self._hazards.cut_power()
        self._log.begin(POWER, "power is cut")

    def restore_power(self) -> None:
        """Switches the candidate on again."""
        self._hazards.restore_power()
        self._log.end([POWER], "power is back")

    def release_all(self) -> None:
        """Ends every hazard but a power cut."""
        self._hazards.release_all()
        self._log.end(self._log.except_for(POWER), "every hazard is released", released=True)


def hazards_of(candidate: Candidate, base: Path | None = None) -> Hazards:
    """Returns the hazards of the virtual candidate of that name below `base` (the checkout's own). Raises BenchError for real hardware,
    or when it is not up."""
    if not candidate.virtual:
        raise BenchError(
            f"{candidate.name} is no virtual candidate: the bench causes faults on emulated hardware only (bench_candidate.virtual)"
        )
    from daq_bench.virtual_candidate import instance
    from daq_bench.virtual_candidate.hazards import Hazards

    found = instance.load((base or instance.DEFAULT_BASE) / candidate.name)
    if found is None:
        raise BenchError(f"virtual candidate {candidate.name} is not up. `make virtual-up` starts it")
    return Hazards(found)
