"""Faults on command, each with its release. A drive is named by its serial, a fan by its name.

Drive faults outlive a power cycle, as real ones do; they can be set while the power is off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.virtual_candidate.bmc.power import Power
from daq_bench.virtual_candidate.bmc.sensors import Sensors
from daq_bench.virtual_candidate.emulated import faults, qemu
from daq_bench.virtual_candidate.emulated.machine import VirtualMachine, control
from daq_bench.virtual_candidate.emulated.qmp import Qmp
from daq_bench.virtual_candidate.hardware import FANS, INLET, SENSORS, Drive
from daq_bench.virtual_candidate.instance import Instance

# The guest's driver waits five seconds after the attention button; the rest is margin for a busy machine.
PULL_S_MAX = 40.0


@dataclass(frozen=True)
class Hazards:
    """The hazards of one instance, which must be up. Every method returns when its effect is there."""

    instance: Instance

    @property
    def _directory(self) -> Path:
        return self.instance.directory

    @property
    def _sensors(self) -> Sensors:
        return Sensors(self._directory)

    def throttle(self, serial: str, bytes_per_s: int) -> None:
        """Holds a drive to `bytes_per_s` (reads and writes together), with its temperature's critical-warning bit set."""
        if bytes_per_s < 1:
            raise BenchError(f"a drive cannot be throttled to {bytes_per_s} B/s. Give at least 1 B/s")
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            in_force.throttled[serial] = bytes_per_s
            self._set_limits(drive, bytes_per_s)

    def release_throttle(self, serial: str) -> None:
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            in_force.throttled.pop(serial, None)
            self._set_limits(drive, 0)

    def fail_writes(self, serial: str) -> None:
        """Makes every write to the drive end in an I/O error; reads go on."""
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            if serial not in in_force.failing_writes:
                in_force.failing_writes.append(serial)
                with self._running() as qmp:
                    if qmp:
                        qmp.execute("blockdev-add", **qemu.failing_node(drive))
                        qmp.execute("blockdev-reopen", options=[qemu.throttle_node(drive, fails_writes=True)])

    def release_writes(self, serial: str) -> None:
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            if serial in in_force.failing_writes:
                in_force.failing_writes.remove(serial)
                with self._running() as qmp:
                    if qmp:
                        qmp.execute("blockdev-reopen", options=[qemu.throttle_node(drive, fails_writes=False)])
                        qmp.execute("blockdev-del", **{"node-name": qemu.failing_id(drive)})

    def pull(self, serial: str) -> None:
        """Takes a drive out of its slot, through the slot's attention button: some six seconds. Its content is kept.

        Raises BenchError when the guest does not let go of it."""
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            if serial in in_force.pulled:
                return
            in_force.pulled.append(serial)
            with self._running() as qmp:
                if qmp:
                    _take_out(qmp, drive)

    def put_back(self, serial: str) -> None:
        drive = self.instance.drive(serial)
        with faults.changing(self._directory) as in_force:
            if serial in in_force.pulled:
                in_force.pulled.remove(serial)
                with self._running() as qmp:
                    if qmp:
                        qmp.execute("device_add", **qemu.controller(drive, in_force))

    def swap(self, serial: str, another: str) -> None:
        """Puts another drive, of the same make and content, into the drive's slot: `another` is its serial.

        Raises BenchError as `pull` does, and for a serial that no drive here can have."""
        self._change_drive(serial, another)

    def swap_back(self, serial: str) -> None:
        self._change_drive(serial, None)

    def _change_drive(self, serial: str, another: str | None) -> None:
        drive, own = self.instance.drive(serial), {one.serial for one in self.instance.drives}
        if another is not None and (another in own or not re.fullmatch(r"[A-Z0-9]{1,20}", another)):
            raise BenchError(
                f"{another!r} is no serial of another drive. Give one of capitals and digits, at most 20, other than "
                f"{', '.join(sorted(own))}"
            )
        with faults.changing(self._directory) as in_force:
            if in_force.swapped.get(serial) == another:
                return
            was_in = serial not in in_force.pulled
            if another is None:
                del in_force.swapped[serial]
            else:
                in_force.swapped[serial] = another
                in_force.pulled = [one for one in in_force.pulled if one != serial]
            with self._running() as qmp:
                if qmp:
                    if was_in:
                        _take_out(qmp, drive)
                    if serial not in in_force.pulled:
                        qmp.execute("device_add", **qemu.controller(drive, in_force))

    def raise_inlet(self, celsius: int) -> None:
        self._sensors.write(INLET, celsius)

    def release_inlet(self) -> None:
        self._sensors.release(INLET)

    def raise_bay(self, serial: str, celsius: int) -> None:
        """Sets the temperature of the drive's bay, as the BMC sees it; QEMU's drives themselves stay at theirs."""
        self._sensors.write(self.instance.drive(serial).bay, celsius)

    def release_bay(self, serial: str) -> None:
        self._sensors.release(self.instance.drive(serial).bay)

    def stop_fan(self, name: str) -> None:
        """Makes the fan stand still, whatever the BMC tells it."""
        self._sensors.stop_fan(name)

    def release_fan(self, name: str) -> None:
        self._sensors.start_fan(name)

    def cut_power(self) -> None:
        """Cuts the power at once and without a warning to the guest; the BMC lives on its standby supply."""
        Power(self._directory).off()

    def restore_power(self) -> None:
        """Starts the machine again; returns when QEMU runs, long before the guest is up."""
        Power(self._directory).on()

    def release_all(self) -> None:
        """Releases every hazard but a power cut."""
        in_force = faults.read(self._directory)
        for serial in list(in_force.swapped):
            self.swap_back(serial)
        for serial in list(in_force.pulled):
            self.put_back(serial)
        for serial in list(in_force.failing_writes):
            self.release_writes(serial)
        for serial in list(in_force.throttled):
            self.release_throttle(serial)
        self.release_inlet()
        for drive in self.instance.drives:
            self.release_bay(drive.serial)
        for fan in FANS:
            self.release_fan(fan.name)

    def in_force(self) -> dict[str, Any]:
        """The hazards in force now; empty lists and objects where there are none."""
        raised = {
            sensor.name: self._sensors.read(sensor.name)
            for sensor in SENSORS
            if sensor.unit == "degrees_C" and self._sensors.read(sensor.name) != sensor.value
        }
        return {
            **asdict(faults.read(self._directory)),
            "raised_temperatures_c": raised,
            "stopped_fans": self._sensors.stopped_fans(),
            "power_on": Power(self._directory).is_on(),
        }

    def _set_limits(self, drive: Drive, bytes_per_s: int) -> None:
        """Sets the limit and the warning; 0 lifts the limit, and takes the warning back."""
        with self._running() as qmp:
            if qmp is None:
                return
            path, limits = f"/objects/{qemu.group_id(drive)}", qemu.limits(bytes_per_s)
            qmp.execute("qom-set", path=path, property="limits", value=limits)
            if drive.serial not in faults.read(self._directory).pulled:
                warning = qemu.TEMPERATURE_WARNING if bytes_per_s else 0
                path = f"/machine/peripheral/{qemu.controller_id(drive)}"
                qmp.execute("qom-set", path=path, property="smart_critical_warning", value=warning)

    @contextmanager
    def _running(self) -> Iterator[Qmp | None]:
        """Yields QEMU's control socket; None while the power is off, since the next start then applies the faults."""
        if VirtualMachine(self.instance).is_on():
            with control(self._directory) as qmp:
                yield qmp
        else:
            yield None


def _take_out(qmp: Qmp, drive: Drive) -> None:
    """Presses the slot's attention button. Raises BenchError when the guest does not let go of the drive."""
    name = qemu.controller_id(drive)
    qmp.execute("device_del", id=name)
    if not qmp.wait_event("DEVICE_DELETED", PULL_S_MAX, device=name):
        raise BenchError(
            f"the guest did not let go of {drive.serial} within {PULL_S_MAX:.0f} s. "
            "Is its operating system up? Otherwise cut the power first"
        )
