"""Names all that is missing on the control node and on a candidate before a run can begin, each with its remedy. Changes nothing."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.base.units import GB, GIB, decimal_label
from daq_bench.bench_model.documents.struct import Closed, read
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.settings import NOT_PUT_BACK, Layout
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.host import denials, denials_remedy, unfit
from daq_bench.rig.candidate.machine import Machine, SshMachine, machine_of
from daq_bench.rig.candidate.ssh import UnreachableError
from daq_bench.rig.discovery.discover import as_root, known_tools
from daq_bench.rig.discovery.firmware import look
from daq_bench.rig.run.preflight import check_clock
from daq_bench.rig.telemetry.influx_room import fullness

CONTROL, CANDIDATE = "control node", "candidate"
PORTABLE = "daqwriter for candidates over SSH"
PROGRAMS = {"ssh": "openssh-client", "setpriv": "util-linux", "git": "git", "ipmitool": "ipmitool"}
PYTHON_MIN = (3, 11)
MEMORY_BYTES_MIN = 2 * GIB  # [P] reports of long runs take 1 GiB
DENIALS_S = 86400.0  # [P] older ones may have been mended
DISK_BYTES_MIN = 5 * GB  # [P] a build, InfluxDB and some bundles
ROOM_BYTES_MIN = GB  # [P] on a candidate: the programs, and a run's telemetry and outputs
# Services of a candidate that its operator should know to be there.
MET = {
    "tuned": "the bench stops it while the CPUs are tuned, and starts it again",
    "tlp": "the bench stops it while the CPUs are tuned, and starts it again",
    "power-profiles-daemon": "the bench stops it while the CPUs are tuned, and starts it again",
    "irqbalance": "the bench stops it where tuning binds interrupts, and starts it again",
    "firewalld": "the bench comes in by SSH alone; before a network workload it tries the ports, and says which to open",
}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `remedy` is empty where nothing is missing."""

    where: str
    subject: str
    found: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        return not self.remedy

    def __str__(self) -> str:
        line = f"{'ok     ' if self.ok else 'MISSING'}  {self.where}: {self.subject}: {self.found}"
        return line if self.ok else f"{line}. Remedy: {self.remedy}"


def control_node(layout: Layout) -> Iterator[Finding]:
    """This machine: programs, Python, what is built, permissions, ports, memory, disk."""

    def finding(subject: str, found: str, ok: bool, remedy: str) -> Finding:
        return Finding(CONTROL, subject, found, "" if ok else remedy)

    version = ".".join(map(str, sys.version_info[:3]))
    newest = ".".join(map(str, PYTHON_MIN))
    yield finding(
        "Python", version, sys.version_info[:2] >= PYTHON_MIN, f"install Python {newest} or newer, then `make setup`"
    )
    for program, package in PROGRAMS.items():
        path = shutil.which(program)
        yield finding(program, path or "not there", path is not None, f"install the package {package}, or `make setup`")
    playbook = Path(sys.executable).parent / "ansible-playbook"
    yield finding("Ansible", str(playbook) if playbook.exists() else "not there", playbook.exists(), "`make setup`")
    checkout = f"{layout.repository}" if layout.is_checkout else "none; this is an installed wheel"
    yield finding("checkout", checkout, layout.is_checkout, "runs need one: stand in it, after `make setup` there")
    built = {
        "daqwriter": layout.daqwriter,
        "telemetry agent": layout.agent,
        "InfluxDB": layout.influxd,
    }
    for subject, file in built.items() if layout.is_checkout else ():
        yield finding(
            subject, "built" if file.is_file() else f"{file} is not there", file.is_file(), "`make setup` builds it"
        )
    if layout.is_checkout:
        portable = layout.portable_daqwriter.is_file()
        only = "not built, and only needed for candidates that are reached over SSH; `make setup` builds it"
        yield Finding(CONTROL, PORTABLE, "built" if portable else only)
    if layout.is_checkout and layout.agent.is_file():
        stale = layout.stale_archive()
        yield finding(
            "telemetry agent's sources",
            f"{stale} is not made of those that lie here now, as after `git pull`" if stale else "as built",
            stale is None,
            "`make agent` makes it anew",
        )
    for folder in (layout.home, Path("/var/tmp")):
        free = os.access(folder, os.W_OK)
        yield finding(
            f"permission to write in {folder}",
            "given" if free else "none",
            free,
            "give this user the right to write there",
        )
    try:
        with socket.create_server(("127.0.0.1", 0)):
            fault = ""
    except OSError as error:
        fault = error.strerror or in_words(error)
    yield finding(
        "ports of 127.0.0.1", fault or "can be opened", not fault, "let programs listen on the loopback interface"
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    yield finding(
        "memory", f"{memory / GIB:.1f} GiB", memory >= MEMORY_BYTES_MIN, f"{MEMORY_BYTES_MIN // GIB} GiB or more"
    )
    room = shutil.disk_usage(layout.home).free
    enough = room >= DISK_BYTES_MIN
    yield finding(
        f"disk of {layout.home}", f"{decimal_label(room)} free", enough, f"free {decimal_label(DISK_BYTES_MIN)}"
    )
    if layout.influx_data.is_dir():
        yield Finding(CONTROL, "data of the bench's own InfluxDB", *fullness(layout.influx_data))


def halves(text: str, otherwise: str = "") -> tuple[str, str]:
    """Returns what is wrong, and the remedy: the last sentences of an obstacle, else `otherwise`."""
    wrong, _, remedy = " ".join(text.split()).partition(". ")
    return wrong, remedy.removeprefix("Remedy: ") or otherwise


class Readiness(Closed, frozen=True):
    """The answer of readiness.py on a machine: `active` services, free bytes by place, `left` files of a tuning, who `held` the lock."""

    clock_s: float
    selinux: str
    active: list[str]
    free_bytes: dict[str, int]
    left: list[str]
    held: str


def candidate(layout: Layout, inventory: Path, name: str) -> Iterator[Finding]:
    """The candidate of an inventory: all that would end a run there. Raises BenchError for a wrong inventory."""
    entry = load_candidate(inventory, name)
    connection = connection_of(inventory, name)
    if connection.kind == "ssh" and not layout.portable_daqwriter.is_file():
        yield Finding(CONTROL, PORTABLE, f"{layout.portable_daqwriter} is not there", "`make setup` builds it")
    yield from management(layout, name, entry.document)
    with tempfile.TemporaryDirectory(prefix="daq-bench-") as folder:
        machine = machine_of(connection, Path(folder) / "ssh", layout)
        try:
            if isinstance(machine, SshMachine):
                machine.link.open()
            sudo = as_root(machine, name)
            obstacles = unfit(machine, layout)
            if obstacles:
                yield from (Finding(CANDIDATE, f"{name}, its system", *halves(text)) for text in obstacles)
                return
            tools = known_tools(layout)
            seen = machine.call("discovery", *tools, timeout_s=300)
            yield from readiness(machine, name)
        except UnreachableError as error:
            yield Finding(CANDIDATE, f"{name}, the way to it", " ".join(error.what.split()), error.remedy)
            return
        except BenchError as error:
            remedy = f"do what it says, then ask again: `daq-bench doctor {name}`"
            yield Finding(CANDIDATE, f"{name}, the way to it", " ".join(str(error).split()), remedy)
            return
        finally:
            if isinstance(machine, SshMachine):
                machine.link.close()
    yield Finding(
        CANDIDATE, "root", "by sudo" if sudo else "yes", "write bench_become: true into its entry" if sudo else ""
    )
    able = seen["abilities"]
    yield Finding(CANDIDATE, "Python", able["python"])
    yield Finding(CANDIDATE, "its system", "can run the bench's programs")
    if not machine.is_local:
        remedy = "" if able["systemd"] else "the agent is a service of systemd: use a system that runs it"
        yield Finding(CANDIDATE, "systemd", "runs" if able["systemd"] else "does not run", remedy)
    for tool, package in tools.items():
        missing = tool in able["missing_tools"]
        remedy = (
            f"install the package {package} there, or write bench_install_packages: true into its entry"
            if missing
            else ""
        )
        yield Finding(CANDIDATE, tool, "not there" if missing else "there", remedy)
    there = {one["description"][key] for one in seen["devices"] for key in ("serial", "wwn")}
    for serial in sorted({serial for target in entry.targets for serial in target.serials}):
        remedy = "" if serial in there else "put it in, or correct the serial in the inventory"
        yield Finding(CANDIDATE, f"drive {serial}", "there" if serial in there else "not there", remedy)


def readiness(machine: Machine, name: str) -> Iterator[Finding]:
    """The machine's clock, lock, room, and what of its system the bench will meet. Raises BenchError."""
    places = machine.places(name, Path("/nowhere/doctor"))
    rooms = [] if machine.is_local else [str(places.programs), str(places.state)]
    asked = {"services": list(MET), "rooms": rooms, "state": str(places.state), "left": NOT_PUT_BACK}
    before_s = time.time()
    seen = read(machine.call("readiness", json.dumps(asked)), Readiness, "the candidate's account of its readiness")
    try:
        off_s = check_clock(seen.clock_s, before_s, time.time())
        yield Finding(CANDIDATE, "clock", f"{off_s:+.1f} s off ours")
    except RefusedError as error:
        yield Finding(CANDIDATE, "clock", *halves(str(error)))
    remedy = f"wait until it has ended; if it is gone, `daq-bench unlock --candidate {name}` forgets it"
    yield Finding(CANDIDATE, "lock", seen.held or "free", remedy if seen.held else "")
    put_back = f"still tuned by the bench ({', '.join(seen.left)}); `daq-bench restore --candidate {name}` puts it back"
    yield Finding(CANDIDATE, "settings", put_back if seen.left else "not tuned by the bench")
    for place, free in seen.free_bytes.items():
        enough = free >= ROOM_BYTES_MIN
        wanted = f"free {decimal_label(ROOM_BYTES_MIN)} there"
        yield Finding(CANDIDATE, f"room for {place}", f"{decimal_label(free)} free", "" if enough else wanted)
    if seen.selinux:
        found = denials(machine, places, seen.clock_s - DENIALS_S)
        denied = f"; denied since yesterday: {printable('; '.join(found.denied))}" if found.denied else ""
        unread = f"; its denials are not known: {found.unread}" if found.unread else ""
        yield Finding(CANDIDATE, "SELinux", f"{seen.selinux}{denied}{unread}", denials_remedy(places) if denied else "")
    for service in seen.active:
        yield Finding(CANDIDATE, service, f"runs; {MET.get(service, 'unknown')}")


def management(layout: Layout, name: str, entry: Mapping[str, Any]) -> Iterator[Finding]:
    """The BMC, asked by Redfish and by IPMI as an administrator; nothing where the entry has none, or none with an address."""
    declared = entry.get("bmc", {})
    if "address" not in declared:
        return
    subject = f"BMC {declared['address']}"
    try:
        found = look(layout, name, declared)
    except BenchError as error:
        yield Finding(CANDIDATE, subject, *halves(str(error), "set its password (docs/own-hardware.md)"))
        return
    correct = "correct address, port, user, password or certificate in bench_candidate.bmc, or in the BMC"
    if found.fault:
        yield Finding(CANDIDATE, f"{subject}, Redfish", *halves(found.fault, correct))
    else:
        yield Finding(CANDIDATE, f"{subject}, Redfish", f"answers; made by {found.manufacturer or 'an unnamed vendor'}")
    if found.fans_fault:
        needed = entry.get("tuning", {}).get("fan_mode", "keep") != "keep"
        wrong, remedy = halves(found.fans_fault, "correct it, or write fan_mode: keep into the entry's tuning")
        yield Finding(CANDIDATE, f"{subject}, fans by IPMI", wrong, remedy if needed else "")
    else:
        yield Finding(CANDIDATE, f"{subject}, fans by IPMI", "can be set")


def in_short(findings: Sequence[Finding]) -> list[str]:
    """Each missing thing with its remedy, below one line for each machine that counts what is well."""
    lines = []
    for where in dict.fromkeys(one.where for one in findings):
        here = [one for one in findings if one.where == where]
        lines.append(f"{where}: {sum(one.ok for one in here)} of {len(here)} are well")
    return lines + [str(one) for one in findings if not one.ok]
