"""Names all that is missing on the control node and on a candidate before a run can begin, each with its remedy. Changes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.units import GB, GIB, decimal_label
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.candidate.connection import connection_of
from daq_bench.rig.candidate.fitness import unfit
from daq_bench.rig.candidate.machine import SshMachine, machine_of
from daq_bench.rig.candidate.ssh import UnreachableError
from daq_bench.rig.discovery.discover import as_root, known_tools

CONTROL, CANDIDATE = "control node", "candidate"
PROGRAMS = {"ssh": "openssh-client", "setpriv": "util-linux", "git": "git", "ipmitool": "ipmitool"}
PYTHON_MIN = (3, 11)
MEMORY_BYTES_MIN = 2 * GIB  # [P] reports of long runs take 1 GiB
DISK_BYTES_MIN = 5 * GB  # [P] a build, InfluxDB and some bundles


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
        "daqwriter for candidates": layout.portable_daqwriter,
        "telemetry agent": layout.agent,
        "InfluxDB": layout.influxd,
    }
    for subject, file in built.items() if layout.is_checkout else ():
        yield finding(
            subject, "built" if file.is_file() else f"{file} is not there", file.is_file(), "`make setup` builds it"
        )
    if layout.is_checkout and layout.agent.is_file():
        stale = layout.stale_archive()
        yield finding(
            "sources of the agent",
            f"not those of {stale}" if stale else "as built",
            stale is None,
            "`make agent` builds it anew",
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


def halves(text: str) -> tuple[str, str]:
    """What is wrong, and the remedy: the last sentences of an obstacle."""
    wrong, _, remedy = text.partition(". ")
    return wrong, remedy


def candidate(layout: Layout, inventory: Path, name: str) -> Iterator[Finding]:
    """The candidate of an inventory: the way to it, root, Python, programs, its drives. Raises BenchError for a wrong inventory."""
    entry = load_candidate(inventory, name)
    connection = connection_of(inventory, name)
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
