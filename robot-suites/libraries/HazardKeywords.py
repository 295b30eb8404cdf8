"""Hazards of a virtual candidate as keywords, for suites that show what the bench sees of a fault. Every hazard ends with the suite."""

from __future__ import annotations

from robot.api.deco import keyword, library

from bench_model.units import parse_size
from rig.context import RunContext
from rig.hazards import hazards_of


@library(scope="SUITE", auto_keywords=False)
class HazardKeywords:
    """Keywords over rig.hazards. `bundle` is the run bundle's folder; drives are named by serial."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)
        self._hazards = hazards_of(self._context.candidate)

    def _note(self, text: str) -> None:
        self._context.bundle.event("hazard", "rig", text)

    @keyword
    def throttle_drive(self, serial: str, bandwidth: str) -> None:
        """Holds a drive to a bandwidth such as `50MB` (per second), its critical-warning bit for temperature set."""
        self._hazards.throttle(serial, parse_size(bandwidth))
        self._note(f"drive {serial} is held to {bandwidth}/s, critical warning set")

    @keyword
    def fail_writes_of_drive(self, serial: str) -> None:
        """Lets every write to a drive end in an I/O error."""
        self._hazards.fail_writes(serial)
        self._note(f"writes to drive {serial} fail")

    @keyword
    def pull_drive(self, serial: str) -> None:
        """Takes a drive out of its slot."""
        self._hazards.pull(serial)
        self._note(f"drive {serial} is pulled")

    @keyword
    def raise_inlet_temperature(self, celsius: int) -> None:
        """Raises what the BMC reads at the air inlet, degC."""
        self._hazards.raise_inlet(celsius)
        self._note(f"inlet at {celsius} degC")

    @keyword
    def raise_bay_temperature(self, serial: str, celsius: int) -> None:
        """Raises what the BMC reads in a drive's bay, degC."""
        self._hazards.raise_bay(serial, celsius)
        self._note(f"bay of drive {serial} at {celsius} degC")

    @keyword
    def stop_fan(self, name: str) -> None:
        """Lets a fan stand still."""
        self._hazards.stop_fan(name)
        self._note(f"fan {name} stands still")

    @keyword
    def cut_power(self) -> None:
        """Cuts the candidate's power at once."""
        self._hazards.cut_power()
        self._note("power is cut")

    @keyword
    def restore_power(self) -> None:
        """Switches the candidate on again."""
        self._hazards.restore_power()
        self._note("power is back")

    @keyword
    def release_all_hazards(self) -> None:
        """Ends every hazard but a power cut."""
        self._hazards.release_all()
        self._note("every hazard is released")
