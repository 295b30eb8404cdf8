"""A Linux machine's account of what an inventory entry would say of it; reads only, changes nothing: `discovery.py [TOOL ...]`.

Each whole drive is looked at by the parts of the storage role's guard, in a process of its own: one that hangs costs no other its account.
Prints {result: {host, devices, clock_s, drives, places, abilities}} or {error}."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ansible.module_utils.bench_host import firmware_tables, ipmi_device, turbo_control
from ansible.module_utils.bench_lsblk import everything
from ansible.module_utils.bench_pci import describe_pci
from ansible.module_utils.bench_storage.errors import StorageError
from ansible.module_utils.bench_storage.guard import contents, identity_objections, set_objections, usage_objections
from ansible.module_utils.bench_storage.machine import Machine, text_of
from ansible.module_utils.bench_storage.survey import usage_of

from daq_bench.rig.on_candidate.reading import probe
from daq_bench.rig.on_candidate.reading.backing import memory_beneath

DRIVE_S_MAX = 60.0  # [P] a healthy drive answers in milliseconds; one that spins up, within half a minute
NO_DRIVES = ("rom", "loop")
TABLES = ("gpt", "dos", "PMBR", "mac", "sun", "sgi", "bsd", "atari")  # libblkid's names of partition tables
FILESYSTEMS = ("ext4", "xfs")  # those that the bench writes files on


def drive_facts(machine: Machine, drive: Any) -> dict[str, Any]:
    """Everything that the guard would hold against one drive, and its abilities. Raises StorageError, OSError."""
    facts = usage_of(machine, drive)
    parts = [part.name for part in drive.tree() if part.type == "part"]
    tables = [kind for kind in facts.signatures.get(drive.name, []) if kind in TABLES]
    found: dict[str, Any] = {
        "uses": usage_objections(drive, facts),
        "sets": set_objections(facts, frozenset()),
        "identity": identity_objections(drive, facts),
        "partitions": parts,
        "partition_tables": tables,
        "signatures": sorted({kind for kinds in facts.signatures.values() for kind in kinds}),
        "contents": contents(drive, facts),
        "lba_bytes": facts.lba_bytes,
        "can_discard": facts.can_discard,
        "schedulers": text_of(machine.block(drive.name, "queue", "scheduler"))
        .replace("[", "")
        .replace("]", "")
        .split(),
        "pci": describe_pci(machine.block(drive.name)),
        "lba_choices": [],
        "purges": ["discard"] if facts.can_discard else [],
        "abilities_fault": "",
    }
    if machine.is_nvme(drive.name):
        try:
            able = machine.nvme_abilities(drive.path)
        except StorageError as error:
            found["abilities_fault"] = str(error)
        else:
            found["lba_choices"] = list(able.lba_choices())
            found["purges"] += ["format"] * able.can_format + ["sanitize"] * bool(able.sanitize_action)
    return found


def bounded(make: Callable[[], dict[str, Any]], seconds_max: float) -> dict[str, Any]:
    """The result of `make`, from a process of its own, or {fault: why there is none}. One that cannot even be killed is left behind."""
    inner, outer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(outer, make)
    os.close(outer)
    said, end = b"", time.monotonic() + seconds_max
    with os.fdopen(inner, "rb", buffering=0) as stream:
        while select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]:
            piece = stream.read(65536)
            if not piece:
                os.waitpid(child, 0)
                return json.loads(said) if said else {"fault": "its examination ended without a word"}
            said += piece
    os.killpg(child, signal.SIGKILL)
    return {"fault": f"it did not answer within {seconds_max:.0f} s"}


def _answer(outer: int, make: Callable[[], dict[str, Any]]) -> None:
    """The child's part: our caller's output is not kept open by one that hangs."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for own in (0, 1, 2):
            os.dup2(nothing, own)
        try:
            answer = make()
        except (StorageError, OSError, ValueError, KeyError) as error:
            answer = {"fault": " ".join(str(error).split()) or type(error).__name__}
        with os.fdopen(outer, "wb") as stream:
            stream.write(json.dumps(answer).encode())
    finally:
        os._exit(0)


def drives(machine: Machine, roots: list[Any], described: list[dict[str, Any]], limit_s: float) -> list[dict[str, Any]]:
    """Each whole drive: its listing, its place, and its facts or the `fault` that kept them back."""
    by_name = {one["kname"]: one["description"] for one in described}
    found = []
    for drive in roots:
        if drive.type in NO_DRIVES or not drive.size_bytes:
            continue
        listed = {"path": drive.path, "type": drive.type, "description": by_name.get(drive.name)}
        try:
            memory = memory_beneath(Path(drive.path)) if Path(drive.path).exists() else ""
        except (OSError, ValueError) as error:  # it has just gone
            found.append({"name": drive.name, **listed, "fault": f"it cannot be looked at: {error}"})
            continue
        if memory:
            found.append({"name": drive.name, **listed, "fault": f"it does not lead to a drive ({memory})"})
            continue
        facts = bounded(lambda drive=drive: drive_facts(machine, drive), limit_s)  # type: ignore[misc]
        found.append({"name": drive.name, **listed, "fault": "", **facts})
    return found


def places(machine: Machine, roots: list[Any]) -> list[dict[str, Any]]:
    """The mounted file systems of drives in which a scratch file could lie: {directory, filesystem, device, free_bytes}. One that fails
    (its drive has errors) is no such place, and hides no other."""
    known, found = everything(roots), {}
    for mount in machine.mounts():
        device = known.get(mount.number)
        if device is None or mount.filesystem not in FILESYSTEMS or "rw" not in mount.options or mount.number in found:
            continue
        with suppress(OSError):
            if place := place_at(mount.directory):
                found[mount.number] = {**place, "filesystem": mount.filesystem, "device": device.name}
    return list(found.values())


def place_at(directory: str) -> dict[str, Any] | None:
    """{directory, free_bytes} of a mounted file system; None where no measurement has a place. Raises OSError."""
    if directory.startswith("/boot") or not Path(directory).is_dir():
        return None  # another mount may lie upon it, so that nothing is there
    if memory_beneath(Path(directory)):
        return None  # a file system whose layers end in RAM
    own = Path("/var/tmp")
    if directory == "/" and own.is_dir() and own.stat().st_dev == Path("/").stat().st_dev:
        directory = str(own)
    space = os.statvfs(directory)
    return {"directory": directory, "free_bytes": space.f_frsize * space.f_bavail}


def abilities(machine: Machine, tools: list[str]) -> dict[str, Any]:
    """The parts of the machine that tuning and measurement rest on; absent ones are empty, null or false."""
    cpu = Path("/sys/devices/system/cpu")
    flags = next((line for line in text_of("/proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    return {
        "firmware": firmware_tables("/sys"),
        "ipmi_device": ipmi_device(),
        "turbo_control": turbo_control("/sys"),
        "governors": text_of(str(cpu / "cpu0/cpufreq/scaling_available_governors")).split(),
        "idle_states": len(list(cpu.glob("cpu0/cpuidle/state[1-9]*"))),
        "aio_max_nr": text_of("/proc/sys/fs/aio-max-nr"),
        "hypervisor": "hypervisor" in flags.split(),
        "systemd": Path("/run/systemd/system").is_dir(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "root": os.geteuid() == 0,
        "missing_tools": [tool for tool in tools if machine.find(tool) is None],
    }


def main(tools: list[str], limit_s: float = DRIVE_S_MAX) -> dict[str, Any]:
    machine = Machine(lambda line: None)
    try:
        roots = machine.devices()
        seen = probe.probe(None)
        found = {**seen, "drives": drives(machine, roots, seen["devices"], limit_s), "places": places(machine, roots)}
    except (StorageError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        return {"error": f"its drives cannot be listed: {' '.join(str(error).split())}"}
    return {"result": {**found, "abilities": abilities(machine, tools)}}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])), flush=True)
