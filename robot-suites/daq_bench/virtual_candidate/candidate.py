"""Brings one virtual candidate up, from nothing to a guest that lets users in, and down to nothing again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.virtual_candidate import image, instance, processes, ssh
from daq_bench.virtual_candidate.bmc.simulator import Bmc, new_password, require_free_port
from daq_bench.virtual_candidate.emulated import faults, machine, qemu
from daq_bench.virtual_candidate.files import locked
from daq_bench.virtual_candidate.hazards import Hazards
from daq_bench.virtual_candidate.instance import Instance

PROGRAMS = (qemu.PROGRAM, "qemu-img", "mmdebstrap", "mke2fs", "busybox", "cpio", "modprobe", "ssh", "ssh-keygen")
BOOT_S_MAX = 300.0  # a boot costs some 35 s of CPU time, of which a busy host gives little
READY = "ready"  # this file in the state directory says that `up` came to its end


def silent(_: str) -> None:
    """Default callback for progress: does nothing."""


@dataclass(frozen=True)
class VirtualCandidate:
    """A virtual candidate; `instance` says where its files and ports are."""

    instance: Instance

    @property
    def bmc(self) -> Bmc:
        """The BMC of the candidate that is up."""
        secret = self.instance.password_file.read_text(encoding="ascii").strip()
        return self._bmc(secret)

    @property
    def hazards(self) -> Hazards:
        return Hazards(self.instance)

    def run(self, remote: str, timeout_s: float = 60) -> str:
        """The output of a shell command on the guest. Raises BenchError when it fails."""
        done = ssh.run(self.instance.ssh, self.instance.ports.ssh, remote, timeout_s)
        if done.returncode != 0:
            raise BenchError(f"`{remote}` on the guest ended with {done.returncode}: {done.stderr.strip()[-1000:]}")
        return done.stdout

    def boot_id(self) -> str:
        """Changes with every start of the guest."""
        return self.run("cat /proc/sys/kernel/random/boot_id").strip()

    def wait(self, timeout_s: float = BOOT_S_MAX, after_boot: str | None = None) -> None:
        """Returns when the guest lets us in and has found its drives; `after_boot`: when it is another boot than that one.

        Raises BenchError with the place of its console's log."""
        deadline = time.monotonic() + timeout_s
        log = self.instance.directory / "console.log"
        while True:
            ssh.wait(self.instance.ssh, self.instance.ports.ssh, deadline - time.monotonic(), self._record, log)
            with suppress(BenchError, subprocess.TimeoutExpired):  # it may be on its way down
                if self.boot_id() != after_boot:
                    break
            time.sleep(0.5)
        in_force = faults.read(self.instance.directory)
        there = (drive.serial for drive in self.instance.drives if drive.serial not in in_force.pulled)
        wanted = {in_force.swapped.get(serial, serial) for serial in there}
        serials = 'for file in /sys/class/nvme/nvme*/serial; do [ ! -r "$file" ] || cat "$file"; done'
        while missing := wanted - set(self.run(serials).split()):
            if time.monotonic() > deadline:
                raise BenchError(f"the guest has not found {', '.join(sorted(missing))}. Its console is in {log}")
            time.sleep(0.2)

    def up(self, say: Callable[[str], None] = silent) -> bool:
        """Starts the candidate and waits for its SSH. False when it was up already, with the same settings.

        It first removes the remains of a crashed or half-finished start. On any failure nothing stays behind.
        Raises BenchError: a missing program, a taken port, an image that cannot be built, other settings in force."""
        _require_programs()
        self.instance.cache.mkdir(parents=True, exist_ok=True)
        with locked(self._lock):
            found = instance.load(self.instance.directory)
            if found and self._is_whole():
                self._require_same(found)
                return False
            self._clear()
            try:
                self._start(say)
            except BaseException:
                self._clear()
                raise
        return True

    def down(self) -> bool:
        """Ends every process of the candidate and removes all of its files but the caches. False when there was nothing."""
        if not self.instance.cache.exists():
            return False
        with locked(self._lock):
            return self._clear()

    def status(self) -> dict[str, Any]:
        """The candidate's parts and the hazards in force, as JSON-able values."""
        found = instance.load(self.instance.directory)
        if found is None:
            return {"name": self.instance.name, "up": False}
        return {
            "name": found.name,
            "up": self._is_whole(),
            "processes": {**self.bmc.running(), "qemu": processes.running(self._record) is not None},
            "ssh": {"address": "127.0.0.1", "port": found.ports.ssh, "user": "root", "keys": str(found.ssh)},
            "bmc": {
                "vendor": found.vendor,
                "ipmi": f"127.0.0.1:{found.ports.ipmi}/udp",
                "redfish": f"https://127.0.0.1:{found.ports.redfish}",
                "ca_file": str(found.tls / "ca.pem"),
                "user": self.bmc.user,
                "password_file": str(found.password_file),
            },
            "drives": [asdict(drive) for drive in found.drives],
            "hazards": Hazards(found).in_force(),
        }

    @property
    def _lock(self) -> Path:
        """The lock file, beside the caches, since the state directory comes and goes."""
        return self.instance.cache / f"{self.instance.name}.lock"

    @property
    def _record(self) -> Path:
        return self.instance.record("qemu")

    def _bmc(self, password: str) -> Bmc:
        at = self.instance
        ports = at.ports
        return Bmc(
            at.directory, ports.ipmi, ports.redfish, ports.system, at.vendor, password, tls=at.tls, cache=at.cache
        )

    def _is_whole(self) -> bool:
        """True if `up` finished and the BMC's services run. The machine itself may be switched off."""
        return (self.instance.directory / READY).exists() and all(self.bmc.running().values())

    def _require_same(self, found: Instance) -> None:
        if replace(found, image=None) != replace(self.instance, image=None):
            wanted, there = asdict(self.instance), asdict(found)
            different = [name for name in wanted if name != "image" and wanted[name] != there[name]]
            raise BenchError(
                f"the virtual candidate {found.name!r} is up with other settings ({', '.join(different)}). "
                "End it first with `make virtual-down`"
            )

    def _start(self, say: Callable[[str], None]) -> None:
        self._require_ports()
        built = image.ensure(self.instance.cache, say)
        at = replace(self.instance, image=built.directory)
        say("starting the BMC")
        ssh.create_keys(at.ssh, at.ports.ssh)
        password = new_password()
        replace_file(at.password_file, password + "\n", mode=0o600)
        self._bmc(password).start()
        self._create_drives(at)
        _create_overlay(built.root, at.directory / machine.OVERLAY)
        at.save()
        say("booting the guest")
        self.bmc.power.on()
        self.wait()
        (at.directory / READY).touch()

    def _require_ports(self) -> None:
        ports = self.instance.ports
        require_free_port(ports.ssh, "SSH", "ssh-port")
        require_free_port(ports.ipmi, "IPMI over LAN", "ipmi-port", socket.SOCK_DGRAM)
        require_free_port(ports.system, "the IPMI system interface", "system-port")
        require_free_port(ports.redfish, "Redfish", "redfish-port")

    @staticmethod
    def _create_drives(at: Instance) -> None:
        """Makes sparse files, which take only the room of the data written to them."""
        at.drive_files.mkdir(parents=True, exist_ok=True)
        for drive in at.drives:
            with at.drive_file(drive).open("wb") as file:
                file.truncate(drive.size_bytes)

    def _clear(self) -> bool:
        """Ends all processes and removes all files; True when there was anything."""
        # A candidate that was started with other settings has its drives elsewhere.
        at = instance.load(self.instance.directory) or self.instance
        found = False
        for name in ("qemu", "redfish", "ipmi_sim"):
            found = processes.stop(at.record(name)) or found
        for stray in processes.strays(at.directory):
            processes.end(stray)
            found = True
        for folder in (at.drive_files, at.ssh, at.tls, at.directory):
            if folder.exists():
                shutil.rmtree(folder)
                found = True
        if at.password_file.exists():
            at.password_file.unlink()
            found = True
        return found


def _create_overlay(base: Path, overlay: Path) -> None:
    """Makes the guest's root: it reads from the cached image and keeps its changes to itself until `down`."""
    argv = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base), str(overlay)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise BenchError(f"qemu-img cannot make {overlay}: {done.stderr.strip()}")


def _require_programs() -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise BenchError(
            f"{', '.join(missing)} not found. `make packages-virtual` installs them, "
            "or use `make virtual-up`, which does"
        )
