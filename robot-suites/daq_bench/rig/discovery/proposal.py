"""The inventory entry that a look at a server suggests, as YAML with comments. Pure: text out.

Promises: what the server says of itself is data in quotes or a comment of one line, whatever it says; `destroy` and a reboot are never
consented to; only what the server can do is asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.units import GB, GIB, MIB, decimal_label
from daq_bench.rig.base.terminal import printable
from daq_bench.rig.discovery.drives import FoundDrive, plain_text
from daq_bench.rig.discovery.firmware import Firmware

TRANSIENT_BYTES_MAX = 12 * GB  # as docs/own-hardware.md has it
SCRATCH_BYTES_MIN = 2 * GB  # [P] a rehearsal's file, and the room that is left free


@dataclass(frozen=True)
class Found:
    """All that a look brought. `connection`: Ansible's variables; `bmc`: the entry's block; `firmware` None: no BMC was named."""

    name: str
    connection: dict[str, Any]
    host: dict[str, Any]
    abilities: dict[str, Any]
    places: list[dict[str, Any]]
    drives: list[FoundDrive]
    bmc: dict[str, Any]
    firmware: Firmware | None
    packages: dict[str, str]  # Debian package of each missing tool


def inventory_text(found: Found) -> str:
    """A whole inventory with this one candidate."""
    head = ["all:", "  children:", "    candidates:", "      hosts:"]
    body = [f"{'  ' * level}{text}" for level, text in _host(found)]
    return "\n".join(line.rstrip() for line in [*_preface(found), *head, *body]) + "\n"


def _comment(text: str) -> str:
    return f"# {printable(' '.join(text.split()))}"


def _scalar(value: Any) -> str:
    """A value as YAML takes it anywhere: JSON's strings are YAML's double-quoted ones, given that all is printable."""
    return json.dumps(printable(value) if isinstance(value, str) else value, ensure_ascii=False)


def _preface(found: Found) -> Iterator[str]:
    free = sum(drive.is_free for drive in found.drives)
    yield _comment(
        f"Proposed by `daq-bench discover`; nothing was written on {found.host['hostname']}. Read it before you use it."
    )
    yield _comment(
        f"{_counted(len(found.drives), 'drive')}: {free} free, {len(found.drives) - free} not to be tested (below, with reasons). "
        "No drive may be erased by this entry as it stands: consent (destroy) is yours to write."
    )


def _host(found: Found) -> Iterator[tuple[int, str]]:
    yield 4, f"{_scalar(found.name)}:"
    for key, value in found.connection.items():
        yield 5, f"{key}: {_scalar(value)}"
    yield 5, "bench_candidate:"
    yield from _candidate(found)


def _candidate(found: Found) -> Iterator[tuple[int, str]]:
    host, able = found.host, found.abilities
    yield 6, f"description: {_scalar(_description(found))}"
    if able["hypervisor"]:
        yield (
            6,
            "virtual: true # its processor says that it is emulated or virtual: it can never come out as a plain PASS",
        )
        yield 6, "scenario: snb-emulated # small; another one by --scenario"
    yield 6, "identity: # what it must turn out to be at each run"
    yield 7, f"architectures: [{_scalar(host['architecture'])}]"
    if plain_text(host["cpu_model"]) and host["cpu_model"] != "unknown":
        yield 7, f"cpu_model: {_scalar(host['cpu_model'])}"
    yield 7, f"cpus_min: {host['cpus']}"
    yield 7, f"memory_min: {_memory(host['memory_bytes'])} # of {host['memory_bytes'] / GIB:.1f} GiB"
    free = [drive for drive in found.drives if drive.is_free]
    if free:
        yield 7, "drives:"
        for drive in free:
            yield 8, f"- {{{', '.join(f'{key}: {_scalar(text)}' for key, text in _identity(drive))}}}"
    yield from _rejected(found.drives)
    yield from _bmc(found)
    yield from _targets(found, free)
    size = min(TRANSIENT_BYTES_MAX, host["memory_bytes"] // 4) // MIB
    yield (
        6,
        f"transient_buffer: {size}MiB # RAM that may hold what the drives have not taken yet: a quarter, at most 12 GB",
    )
    yield from _tuning(found)
    yield from _obstacles(found)


def _description(found: Found) -> str:
    firmware, host = found.abilities["firmware"], found.host
    maker = " ".join(text for text in (firmware["sys_vendor"], firmware["product_name"]) if text and plain_text(text))
    cpu = host["cpu_model"] if plain_text(host["cpu_model"]) else "unknown processor"
    return f"{maker or 'Server'}, {cpu}, {_counted(host['cpus'], 'CPU')} in {_counted(host['numa_nodes'], 'NUMA node')}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _memory(size_bytes: int) -> str:
    """A twentieth less: the kernel and its updates keep some of it, and not always the same."""
    least = size_bytes * 19 // 20
    return f"{least // GIB}GiB" if least >= 16 * GIB else f"{least // MIB}MiB"


def _identity(drive: FoundDrive) -> Iterator[tuple[str, str]]:
    yield "serial", drive.serial
    if plain_text(drive.model):
        yield "model", drive.model
    if plain_text(drive.firmware):
        yield "firmware", drive.firmware
    if drive.size_bytes:
        yield "capacity", f"{drive.size_bytes}B"


def _words(drive: FoundDrive) -> str:
    """One drive for people."""
    name = f"{drive.path}: serial {drive.serial or 'none'}, WWN {drive.wwn or 'none'}, {drive.model or 'no model'}"
    return f"{name}, {decimal_label(drive.size_bytes)} ({drive.size_bytes} B), {drive.place}"


def _rejected(drives: Sequence[FoundDrive]) -> Iterator[tuple[int, str]]:
    rejected = [drive for drive in drives if not drive.is_free]
    if rejected:
        yield 6, "# Drives that are not to be tested:"
    for drive in rejected:
        yield 6, _comment(f"- {_words(drive)}: {'; '.join(drive.reasons)}")


def _bmc(found: Found) -> Iterator[tuple[int, str]]:
    firmware = found.firmware
    if firmware is None:
        yield (
            6,
            "# No BMC was named (--bmc user@address): no firmware settings, and fans only through the server's own IPMI device.",
        )
        return
    mark = ""
    if firmware.fault:
        yield 6, _comment(f"Left out, since its Redfish service cannot be used: {firmware.fault}")
        mark = "# "
    yield 6, f"{mark}bmc:"
    block = {**found.bmc, **({"vendor": firmware.vendor} if firmware.vendor else {})}
    for key, value in block.items():
        yield 6, f"{mark}  {key}: {_scalar(value)}"


def _targets(found: Found, free: Sequence[FoundDrive]) -> Iterator[tuple[int, str]]:
    place = max(found.places, key=lambda one: int(one["free_bytes"]), default=None)
    scratch = place is not None and place["free_bytes"] >= SCRATCH_BYTES_MIN and plain_text(place["directory"])
    yield 6, "targets:"
    if (scratch or not free) and place is not None and plain_text(place["directory"]):
        room = f"{decimal_label(place['free_bytes'])} free, {place['filesystem']} on {place['device']}"
        yield (
            7,
            f"scratch: # {printable(room)}: for a rehearsal, never a full qualification; nothing but its own files is written",
        )
        yield 8, "kind: scratch-file"
        yield 8, f"directory: {_scalar(place['directory'])} # it is there; each run makes a folder of its own in it"
    elif not free:
        yield (
            7,
            "scratch: # no drive is free and no ext4 or xfs has room: a run will be refused until you name a folder that has",
        )
        yield 8, "kind: scratch-file"
        yield 8, "directory: /var/tmp"
    for number, drive in enumerate(free, start=1):
        yield from _drive_target(number, drive, asked_for_only=bool(scratch))


def _drive_target(number: int, drive: FoundDrive, asked_for_only: bool) -> Iterator[tuple[int, str]]:
    yield 7, _comment(f"Free: {_words(drive)}")
    yield 7, f"drive-{number}:"
    if asked_for_only:
        yield (
            8,
            "comparison_only: true # remove this line to have it qualified with every run; --target asks for it alone",
        )
    yield 8, "kind: filesystem"
    yield 8, f"directory: /srv/daq-bench/drive-{number}"
    yield 8, "storage:"
    wwn = (
        f"{{serial: {_scalar(drive.serial)}, wwn: {_scalar(drive.wwn)}}}" if drive.wwn_needed else _scalar(drive.serial)
    )
    yield 9, f"drives: [{wwn}] # several with raid: {{level: 0, chunk: 128KiB}} become an array"
    yield (
        9,
        "# Before it is built you must consent, in a line here, to lose EVERYTHING on this drive (docs/own-hardware.md: destroy).",
    )
    purges = drive.facts.get("purges", [])
    yield 9, f"purge: {'discard' if 'discard' in purges else 'none'} # it offers: {', '.join([*purges, 'none'])}"
    choices = ", ".join(map(str, drive.facts.get("lba_choices", []))) or "no other that is known"
    yield 9, f"# lba_bytes: now {drive.facts.get('lba_bytes')}, it can be formatted to: {choices}"
    if drive.facts.get("abilities_fault"):
        yield 9, _comment(f"Its other abilities are not known: {drive.facts['abilities_fault']}")
    yield 9, "filesystem: xfs"


def _tuning(found: Found) -> Iterator[tuple[int, str]]:
    able = found.abilities
    known = [drive.schedulers for drive in found.drives]
    wishes = [
        ("cpu_governor: performance", "performance" in able["governors"], "no cpufreq driver that offers it"),
        ('cpu_turbo: "on"', bool(able["turbo_control"]), "the kernel has no switch for turbo here"),
        ("cpu_idle_latency_us_max: 2", able["idle_states"] > 1, "the kernel has no C-states to choose from here"),
        ("aio_max_nr: 1048576", bool(able["aio_max_nr"]), "the kernel has no fs.aio-max-nr"),
        ("queue_scheduler: none", all("none" in one for one in known), "not every drive's queue is known to offer it"),
        ("fan_mode: full", not _fans_fault(found), _fans_fault(found)),
    ]
    yield 6, "tuning: # only what this server can do: what it cannot do would forbid a PASS"
    asked = [text for text, possible, _ in wishes if possible]
    if not asked:
        yield 7, 'cpu_turbo: "keep"'
    for text in asked:
        yield 7, text
    for text, possible, why in wishes:
        if not possible:
            yield 7, _comment(f"{text}: cannot be had: {why}")
    for setting in found.firmware.settings if found.firmware else ():
        name = f"bios_{setting.name}: {_scalar(setting.asked)}"
        yield (
            7,
            _comment(
                f"{name}: cannot be had: {setting.obstacle}" if setting.obstacle else f"{name}: {setting.attributes}"
            ),
        )
    if found.firmware and any(not setting.obstacle for setting in found.firmware.settings):
        yield (
            7,
            "# Firmware settings take effect at a reboot: write those that the job needs, and bios_reboot: allowed, if it may be rebooted.",
        )


def _fans_fault(found: Found) -> str:
    if found.firmware is None or found.firmware.fault:
        return (
            ""
            if found.abilities["ipmi_device"] and found.firmware is None
            else "no BMC that can be used, no IPMI device tried"
        )
    return found.firmware.fans_fault


def _obstacles(found: Found) -> Iterator[tuple[int, str]]:
    """Returns the things that the bench cannot do there, and why."""
    able, said = found.abilities, []
    if found.packages:
        tools = ", ".join(found.packages)
        said.append(
            f"programs are missing there: {tools}. Install {', '.join(sorted(set(found.packages.values())))}, or write "
            "bench_install_packages: true beside ansible_host"
        )
    if not able["systemd"]:
        said.append("it does not run systemd: the telemetry agent and isolated CPUs need it, unless it is this machine")
    if not able["ipmi_device"]:
        said.append(
            "it has no IPMI device (modprobe ipmi_si ipmi_devintf): sensors come through the BMC's address, or not at all"
        )
    if not able["firmware"]["bios_version"]:
        said.append("it does not tell its BIOS version (no DMI tables, or not readable)")
    unplaced = [drive.path for drive in found.drives if not drive.pcie_link]
    if unplaced:
        said.append(f"no PCIe link is told for {', '.join(unplaced)}: pcie_link: full cannot be held against it")
    if found.host["numa_nodes"] > 1 and any(drive.numa_node is None for drive in found.drives):
        said.append("it has several NUMA nodes, and not every drive tells its own: placement by node cannot be checked")
    yield 6, "# The bench cannot do there:"
    for text in said or ["nothing that this look has found"]:
        yield 6, _comment(f"- {text}")
