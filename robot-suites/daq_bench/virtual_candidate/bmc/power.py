"""The one switch that IPMI chassis control, Redfish and the hazards turn: `python -m daq_bench.virtual_candidate.bmc.power DIRECTORY ...`.

With a virtual machine in the state directory, on is "QEMU runs"; without one the state is a file, and a reset is only noted.
ipmi_sim waits for every call of the script, so that this module imports little."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.virtual_candidate.bmc.bios import Bios
from daq_bench.virtual_candidate.files import append_json_line, locked, read_json_lines

SHUTDOWN_S_MAX = 90.0  # how long a graceful restart waits for the guest before it cuts the power


class Machine(Protocol):
    """The machine that the switch turns on and off."""

    def is_on(self) -> bool: ...

    def on(self) -> None: ...

    def off(self) -> None:
        """Turns the machine off at once, like a cut of the power."""

    def reset(self) -> None: ...

    def shutdown(self) -> None:
        """Asks the operating system; returns at once."""


@dataclass(frozen=True)
class NoMachine:
    """A BMC on its own: the state is a file."""

    directory: Path

    @property
    def _file(self) -> Path:
        return self.directory / "power"

    def is_on(self) -> bool:
        return not self._file.exists() or self._file.read_text(encoding="ascii").strip() == "on"

    def on(self) -> None:
        replace_file(self._file, "on\n")

    def off(self) -> None:
        replace_file(self._file, "off\n")

    def reset(self) -> None:
        """Does nothing: there is no machine to reset."""

    def shutdown(self) -> None:
        self.off()


@dataclass(frozen=True)
class Power:
    """The switch of the candidate whose state is in `directory`."""

    directory: Path

    @property
    def log(self) -> Path:
        """One JSON line per turn of the switch: time, action."""
        return self.directory / "power.log"

    def actions(self) -> list[str]:
        """The actions on the switch so far, oldest first: on, off, reset, shutdown, guest-reset."""
        return [line["action"] for line in read_json_lines(self.log)]

    def is_on(self) -> bool:
        return self._machine().is_on()

    def on(self) -> None:
        """Starts the machine; its BIOS brings pending attributes into force. Does nothing when it runs already."""
        self._turn("on", when_on=False, self_test=True)

    def off(self) -> None:
        """Cuts the power."""
        self._turn("off")

    def reset(self) -> None:
        """Presses the reset button; without effect when the power is off, as on hardware."""
        self._turn("reset", self_test=True)

    def shutdown(self) -> None:
        """Presses the power button: the operating system shuts down by itself."""
        self._turn("shutdown")

    def _turn(self, action: str, when_on: bool = True, self_test: bool = False) -> None:
        """Does what the machine's method of the same name does, where the machine is in the state in which that has an effect."""
        with locked(self.directory / "power.lock"):
            machine = self._machine()
            if machine.is_on() is when_on:
                self._note(action)
                if self_test:
                    Bios(self.directory).power_on_self_test()
                getattr(machine, action)()

    def guest_reset(self) -> None:
        """Records that the guest has restarted by itself: to the BIOS that is a reset like any other."""
        with locked(self.directory / "power.lock"):
            self._note("guest-reset")
            Bios(self.directory).power_on_self_test()

    def cycle(self) -> None:
        self.off()
        self.on()

    def restart_gracefully(self) -> None:
        """Shuts down, waits for it (at most SHUTDOWN_S_MAX), and starts again."""
        self.shutdown()
        deadline = time.monotonic() + SHUTDOWN_S_MAX
        while self.is_on() and time.monotonic() < deadline:
            time.sleep(0.2)
        self.cycle()

    def _note(self, action: str) -> None:
        append_json_line(self.log, {"action": action})

    def _machine(self) -> Machine:
        # Here, since machine.py is not needed for a BMC on its own, and every chassis command would wait for its import.
        if (self.directory / "instance.json").exists():
            from daq_bench.virtual_candidate.emulated.machine import VirtualMachine

            return VirtualMachine.load(self.directory)
        return NoMachine(self.directory)


def chassis_control(power: Power, arguments: list[str]) -> list[str]:
    """Answers in ipmi_sim's protocol: `get power boot ...` or `set power 0|1 reset 1 shutdown 1 boot <where> ...`.

    Returns the lines of the answer. Raises ValueError for a word outside of it."""
    operation, *words = arguments
    if operation == "get":
        answers = {"power": f"power:{int(power.is_on())}", "boot": "boot:default"}
        return [answers[word] if word in answers else _unknown(word) for word in words]
    if operation != "set":
        _unknown(operation)
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name == "power":
            power.on() if value == "1" else power.off()
        elif name == "reset":
            power.reset()
        elif name == "shutdown":
            power.shutdown()
        elif name not in ("boot", "identify"):
            _unknown(name)
    return []


def _unknown(word: str) -> str:
    raise ValueError(f"unknown word: {word}")


def main() -> int:
    directory, *arguments = sys.argv[1:]
    try:
        lines = chassis_control(Power(Path(directory)), arguments)
    except ValueError as error:
        print(error)  # where ipmi_sim looks for the reason
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
