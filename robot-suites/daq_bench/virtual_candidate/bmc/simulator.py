"""The virtual BMC: IPMI over LAN (and in band for a virtual machine) by OpenIPMI's ipmi_sim, and Redfish, over one set of sensors.

Usable without a virtual machine: `with Bmc(directory, ...) as bmc:`; power state and resets are then a file and a log."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any

from daq_bench import bench_model, virtual_candidate
from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.virtual_candidate import processes, tls
from daq_bench.virtual_candidate.bmc import ipmi_config, redfish_service
from daq_bench.virtual_candidate.bmc.bios import Bios
from daq_bench.virtual_candidate.bmc.power import Power
from daq_bench.virtual_candidate.bmc.sensors import Sensors
from daq_bench.virtual_candidate.files import read_json_lines
from daq_bench.virtual_candidate.hardware import DEFAULT_VENDOR
from daq_bench.virtual_candidate.vendors import VENDORS, Vendor

USER = "admin"
START_S_MAX = 20.0
PLUGIN_SOURCE = Path(__file__).parent / "plugin" / "vendor_commands.c"
PROGRAMS = ("ipmi_sim", "sdrcomp", "ipmitool", "gcc")


def new_password() -> str:
    """16 random letters and digits: as long as IPMI 1.5 allows, and without characters that need quoting."""
    return secrets.token_hex(8)


@dataclass
class Bmc:
    """A BMC whose whole state is in `directory`, which it makes and, at `stop`, removes.

    `ipmi_port` is UDP, the other two TCP, all on 127.0.0.1. `system_port` is where a virtual machine's KCS interface connects."""

    directory: Path
    ipmi_port: int = 9623
    redfish_port: int = 9443
    system_port: int = 9624
    vendor: str = DEFAULT_VENDOR
    password: str = field(default_factory=new_password, repr=False)
    tls: Path | None = None  # folder of the certificates; default: below `directory`
    cache: Path | None = None  # folder of the compiled plug-in; default: below `directory`

    user = USER

    def __post_init__(self) -> None:
        self.directory = self.directory.resolve()  # the processes have working directories of their own
        self.tls = (self.tls or self.directory / "tls").resolve()
        self.cache = (self.cache or self.directory / "cache").resolve()
        if self.vendor not in VENDORS:
            raise BenchError(f"there is no virtual BMC of vendor {self.vendor!r}. Choose one of {', '.join(VENDORS)}")

    @property
    def redfish_url(self) -> str:
        return f"https://127.0.0.1:{self.redfish_port}"

    @property
    def ca_file(self) -> Path:
        """The file that verifies the Redfish service's certificate."""
        assert self.tls is not None
        return self.tls / "ca.pem"

    @property
    def sensors(self) -> Sensors:
        return Sensors(self.directory)

    @property
    def sensors_directory(self) -> Path:
        return self.sensors.files

    @property
    def bios(self) -> Bios:
        return Bios(self.directory)

    @property
    def power(self) -> Power:
        return Power(self.directory)

    @property
    def command_log(self) -> Path:
        """JSON lines: vendors' raw IPMI commands and DCMI settings as they arrived, changes asked for through Redfish."""
        return self.directory / "commands.log"

    def commands(self) -> list[dict[str, Any]]:
        """The commands that the BMC got so far, oldest first."""
        return read_json_lines(self.command_log)

    def accepted(self) -> list[str]:
        """The IPMI commands that it has accepted, with their data. A client on a busy host repeats what is not answered in time, and
        ipmi_sim takes that for a new command: here it is one."""
        told = [f"{line['command']} {line['data']}" for line in self.commands() if line.get("completion") == "0x00"]
        return [command for command, _ in groupby(told)]

    def ipmitool(self, *arguments: str, timeout_s: float = 30) -> str:
        """The output of `ipmitool` for a command over LAN. Raises BenchError when it fails."""
        # -C 3: ipmi_sim refuses suite 17 after ten seconds. -E: the password stays off the command line. -N: ipmi_sim takes a
        # repeated request for a new one, so that on a busy host one `power reset` would become two.
        argv = [
            "ipmitool",
            "-I",
            "lanplus",
            "-C",
            "3",
            "-N",
            "10",
            "-H",
            "127.0.0.1",
            "-p",
            str(self.ipmi_port),
            "-U",
            self.user,
        ]
        done = subprocess.run(
            [*argv, "-E", *arguments],
            env={**os.environ, "IPMI_PASSWORD": self.password},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode != 0:
            raise BenchError(f"ipmitool {shlex.join(arguments)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def redfish(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any]:
        """Status and document of a Redfish request, verified and with the BMC's own credentials; errors are answers too."""
        secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")
        request = urllib.request.Request(
            self.redfish_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Basic {secret}", **headers},
        )
        context = ssl.create_default_context(cafile=str(self.ca_file))
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def start(self) -> None:
        """Starts both services and waits until they answer. On any failure nothing stays behind.

        Raises BenchError for a missing program, a port in use, a service that does not come up (with the end of its log)."""
        _require_programs()
        self._require_ports()
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._write_files(VENDORS[self.vendor])
            self._start_ipmi()
            self._start_redfish()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends both services and removes the state directory."""
        for name in ("redfish", "ipmi_sim"):
            processes.stop(self._record(name))
        if self.directory.exists():
            shutil.rmtree(self.directory)

    def __enter__(self) -> Bmc:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def running(self) -> dict[str, bool]:
        """Says whether each service is alive, by its name."""
        return {name: processes.running(self._record(name)) is not None for name in ("ipmi_sim", "redfish")}

    def _record(self, name: str) -> Path:
        return self.directory / f"{name}.process.json"

    def _write_files(self, vendor: Vendor) -> None:
        assert self.tls is not None
        self.sensors.create()
        self.bios.create(vendor)
        tls.create(self.tls)
        chassis = self.directory / "chassis.sh"
        replace_file(chassis, _chassis_script(self.directory), mode=0o755)
        replace_file(self.directory / "plugin.conf", ipmi_config.plugin_conf(vendor))
        replace_file(self.directory / "bmc.emu", ipmi_config.emulator_commands(vendor, self.sensors_directory))
        address = ipmi_config.IpmiAddress(self.ipmi_port, self.system_port)
        configuration = ipmi_config.lan_conf(address, self.user, self.password, chassis, self._plugin(), self.directory)
        replace_file(self.directory / "lan.conf", configuration, mode=0o600)
        source = self.directory / "bmc.sdrs"
        replace_file(source, ipmi_config.sdr_source())
        state = self.directory / "state" / "ipmi_sim" / ipmi_config.NAME
        state.mkdir(parents=True, exist_ok=True)
        _run(["sdrcomp", "-o", str(state / "sdr.20.main"), str(source)], "compiling the sensor data records")

    def _plugin(self) -> Path:
        """The compiled plug-in; its name holds the hash of its source, so that a cache serves many checkouts."""
        assert self.cache is not None
        self.cache.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(PLUGIN_SOURCE.read_bytes()).hexdigest()[:16]
        library = self.cache / f"vendor_commands-{digest}.so"
        if not library.exists():
            fresh = library.with_suffix(f".{os.getpid()}")
            argv = [
                "gcc",
                "-shared",
                "-fPIC",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-o",
                str(fresh),
                str(PLUGIN_SOURCE),
            ]
            _run(argv, "compiling the BMC's plug-in")
            fresh.replace(library)
        return library

    def _start_ipmi(self) -> None:
        argv = ["ipmi_sim", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state", "-n"]
        log = self.directory / "ipmi_sim.log"
        process = processes.start(self._record("ipmi_sim"), argv, self.directory, log)
        self._wait("ipmi_sim", process, self._ipmi_answers)

    def _start_redfish(self) -> None:
        argv = [sys.executable, "-m", "daq_bench.virtual_candidate.bmc.redfish_service"]
        secret = {redfish_service.USER_VARIABLE: self.user, redfish_service.PASSWORD_VARIABLE: self.password}
        process = processes.start(
            self._record("redfish"),
            [*argv, str(self.directory), str(self.redfish_port), str(self.tls)],
            self.directory,
            self.directory / "redfish.log",
            env={"PYTHONPATH": python_path(), **secret},
        )
        self._wait("redfish", process, self._redfish_answers)

    def _wait(self, name: str, process: subprocess.Popen[bytes], answers: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S_MAX
        while not answers():
            if process.poll() is not None or time.monotonic() > deadline:
                log = (self.directory / f"{name}.log").read_text(encoding="utf-8", errors="replace")
                raise BenchError(f"the virtual BMC's {name} did not come up. The end of its log:\n{log[-2000:]}")
            time.sleep(0.05)

    def _ipmi_answers(self) -> bool:
        """Sends an RMCP ping, which a BMC answers without a session."""
        ping = bytes.fromhex("0600ff06000011be80000000")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.settimeout(0.3)
            probe.connect(("127.0.0.1", self.ipmi_port))
            try:
                probe.send(ping)
                return bool(probe.recv(64))
            except OSError:
                return False

    def _redfish_answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        try:
            with urllib.request.urlopen(f"{self.redfish_url}/redfish/v1/", timeout=2, context=context) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _require_ports(self) -> None:
        require_free_port(self.ipmi_port, "IPMI over LAN", "ipmi-port", socket.SOCK_DGRAM)
        require_free_port(self.system_port, "the IPMI system interface", "system-port")
        require_free_port(self.redfish_port, "Redfish", "redfish-port")


def require_free_port(port: int, what: str, option: str, kind: socket.SocketKind = socket.SOCK_STREAM) -> None:
    """Raises BenchError when something listens on 127.0.0.1:`port` already."""
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind == socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a closed connection's rest does not count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            protocol = "udp" if kind == socket.SOCK_DGRAM else "tcp"
            raise BenchError(
                f"port {port}/{protocol} on 127.0.0.1, for {what}, cannot be used: {error.strerror}. "
                f"Stop what listens there (ss -lnp shows it), or choose another one with --{option}"
            ) from None


def python_path() -> str:
    """The folders from which our own processes import this package and `bench_model`."""
    modules = virtual_candidate.__file__, bench_model.__file__  # each: folder/daq_bench/package/__init__.py
    return os.pathsep.join(str(Path(str(module)).parents[2]) for module in modules)


def _chassis_script(directory: Path) -> str:
    """The script that ipmi_sim calls to read or turn the power switch; -S: the standard library is enough, and starts faster."""
    command = shlex.join([sys.executable, "-S", "-m", "daq_bench.virtual_candidate.bmc.power", str(directory)])
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(python_path())} exec {command} "$@"\n'


def _require_programs() -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise BenchError(f"{', '.join(missing)} not found. `make virtual-up` installs what the virtual candidate needs")


def _run(argv: list[str], what: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise BenchError(f"{what} failed: {(done.stderr or done.stdout).strip()[-2000:]}\nCommand: {shlex.join(argv)}")
