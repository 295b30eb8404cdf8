"""The running QEMU: on, off, reset, shutdown, and the way to its control socket. Imports the standard library only."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate import processes
from daq_bench.virtual_candidate.emulated import faults, qemu
from daq_bench.virtual_candidate.emulated.qmp import Qmp, QmpError
from daq_bench.virtual_candidate.files import locked
from daq_bench.virtual_candidate.image import Image
from daq_bench.virtual_candidate.instance import Instance, load

START_S_MAX = 15.0
OVERLAY = "root.qcow2"


@dataclass(frozen=True)
class VirtualMachine:
    """The virtual machine of an instance; "on" means that its QEMU runs."""

    instance: Instance

    @classmethod
    def load(cls, directory: Path) -> VirtualMachine:
        """The machine of the instance in `directory`. Raises BenchError when there is none."""
        instance = load(directory)
        if instance is None:
            raise BenchError(f"no virtual candidate is up in {directory}. Start it with `make virtual-up`")
        return cls(instance)

    @property
    def record(self) -> Path:
        return self.instance.record("qemu")

    def is_on(self) -> bool:
        return processes.running(self.record) is not None

    def on(self) -> None:
        """Starts QEMU with the faults that are in force. Raises BenchError with QEMU's words when it does not come up."""
        instance = self.instance
        assert instance.image is not None
        in_force = faults.read(instance.directory)
        printed = subprocess.run([qemu.PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        overlay = instance.directory / OVERLAY
        argv = qemu.command(instance, Image(instance.image), overlay, in_force, qemu.version(printed))
        log = instance.directory / "qemu.log"
        process = processes.start(self.record, argv, instance.directory, log)
        deadline = time.monotonic() + START_S_MAX
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                self.off()
                said = log.read_text(encoding="utf-8", errors="replace").strip()[-1500:]
                raise BenchError(f"QEMU did not come up. The end of its log:\n{said or 'it is empty'}")
            time.sleep(0.05)

    def off(self) -> None:
        """Ends QEMU like a cut of the power: data that the guest had not flushed is lost."""
        processes.stop(self.record, number=signal.SIGKILL)

    def reset(self) -> None:
        with control(self.instance.directory) as qmp:
            qmp.execute("system_reset")

    def shutdown(self) -> None:
        with control(self.instance.directory) as qmp:
            qmp.execute("system_powerdown")

    def _answers(self) -> bool:
        try:
            with control(self.instance.directory):
                return True
        except QmpError:
            return False


@contextmanager
def control(directory: Path) -> Iterator[Qmp]:
    """Yields a connection to QEMU's control socket, which serves one client at a time."""
    with locked(directory / "control.lock"), Qmp(directory, qemu.CONTROL_SOCKET) as qmp:
        yield qmp
