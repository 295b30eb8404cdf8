"""The sensor files, which IPMI and Redfish both read: base values, faults laid over them, fans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.virtual_candidate.files import locked
from daq_bench.virtual_candidate.hardware import (
    DEFAULT_FAN_MODE,
    FAN_MODES,
    FANS,
    RPM_PER_DUTY,
    SENSORS,
    FanMode,
    sensor,
)


@dataclass(frozen=True)
class Sensors:
    """The sensors of the BMC whose state is in `directory`."""

    directory: Path

    @property
    def files(self) -> Path:
        return self.directory / "sensors"

    @property
    def _stopped(self) -> Path:
        return self.directory / "stopped-fans"

    @property
    def _control(self) -> Path:
        return self.directory / "fan-control"

    def create(self) -> None:
        """Sets every sensor to its base value and the fans to their automatic mode."""
        self.files.mkdir(parents=True, exist_ok=True)
        self._stopped.mkdir(exist_ok=True)
        for each in SENSORS:
            self.write(each.name, each.value)
        self.set_fan_mode(DEFAULT_FAN_MODE.name)

    def read(self, name: str) -> int:
        """The value in the sensor's unit."""
        return int((self.files / sensor(name).file).read_text(encoding="ascii"))

    def write(self, name: str, value: int) -> None:
        """Sets a sensor. Raises BenchError for a value that one byte of a reading cannot hold."""
        known = sensor(name)
        highest = 255 * known.step
        if not 0 <= value <= highest:
            raise BenchError(f"{name}: {value} is out of range. Choose a value from 0 to {highest} {known.unit}")
        replace_file(self.files / known.file, f"{value}\n")

    def release(self, name: str) -> None:
        """Sets the sensor back to its base value."""
        self.write(name, sensor(name).value)

    def fan_mode(self) -> FanMode:
        code = self._read_control()[0]
        return next(mode for mode in FAN_MODES if mode.code == code)

    def set_fan_mode(self, name: str) -> None:
        """Does the work of the BMC's own control when a mode is chosen through Redfish; the C plug-in does the same for IPMI."""
        mode = next(each for each in FAN_MODES if each.name == name)
        with locked(self.directory / "fans.lock"):
            replace_file(self._control, f"{mode.code} {mode.duties[0]} {mode.duties[1]}\n")
            self._turn_fans()

    def stop_fan(self, name: str) -> None:
        """Makes the fan stand still until `start_fan`, whatever mode and duty say. Raises BenchError for an unknown fan."""
        self._require_fan(name)
        (self._stopped / name).touch()
        self._turn_fans()

    def start_fan(self, name: str) -> None:
        self._require_fan(name)
        (self._stopped / name).unlink(missing_ok=True)
        self._turn_fans()

    def stopped_fans(self) -> list[str]:
        return sorted(path.name for path in self._stopped.iterdir())

    def _turn_fans(self) -> None:
        _, *duties = self._read_control()
        for fan in FANS:
            stopped = (self._stopped / fan.name).exists()
            self.write(fan.name, 0 if stopped else duties[fan.zone] * RPM_PER_DUTY)

    def _read_control(self) -> list[int]:
        return [int(word) for word in self._control.read_text(encoding="ascii").split()]

    @staticmethod
    def _require_fan(name: str) -> None:
        if name not in [fan.name for fan in FANS]:
            raise BenchError(f"there is no fan {name!r}. The fans are {', '.join(fan.name for fan in FANS)}")
