"""Trees of /proc and /sys as text, in the form that Prometheus' ttar writes: unpacked, and read by the agent's collectors and by what
places a run's threads and interrupts: CPUs, cores, NUMA nodes, PCI devices.

Promise: nothing outside of the folder is written, whatever paths and links a text holds."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from daq_bench.bench_model.workloads.streams_checksum.setups import Cpus
from daq_bench.candidate_kit.cpu_model import cpu_model
from daq_bench.rig.on_candidate.reading import cpu_topology
from daq_bench.telemetry_agent.base.point import Encoder
from daq_bench.telemetry_agent.collectors import system_collectors
from daq_bench.telemetry_agent.reading.collector import Unsupported

MODULE_UTILS = Path(__file__).parent.parent / "ansible/module_utils"
# Those that answer from files alone, at one reading.
COLLECTORS = ("pressure", "temperature", "md_array", "numa", "edac", "pcie_link", "pcie_errors", "rapl")
BETWEEN = re.compile(r"^# ttar (?:- )+-\n", re.MULTILINE)
ENTRY = re.compile(r"(?:# Archive .*\n)?(?:Path|Directory): (?P<path>[^\n]+)\n(?P<rest>.*)", re.DOTALL)
FILE = re.compile(r"Lines: (?P<lines>\d+)\n(?P<content>.*)", re.DOTALL)
LINK = "SymlinkTo: "
NO_LINE_BREAK = "EOF"  # ends a text whose last line has none


def unpack(text: str, root: Path) -> None:
    """Raises ValueError for a text of another form, and for a path or link that leads out of `root`."""
    for part in BETWEEN.split(text):
        entry = ENTRY.fullmatch(part)
        if entry is None:
            raise ValueError(f"it is no archive of ttar: {part[:80]!r}")
        path = root / entry["path"].lstrip("/")
        if not _inside(path, root):
            raise ValueError(f"it has a path that leads out: {entry['path'][:80]!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        rest = entry["rest"]
        if rest.startswith(LINK):
            target = rest[len(LINK) :].splitlines()[0]
            if target.startswith("/") or not _inside(path.parent / target, root):
                raise ValueError(f"it has a link that leads out: {target[:80]!r}")
            path.symlink_to(target)
        elif (file := FILE.fullmatch(rest)) is not None:
            lines = file["content"].splitlines(keepends=True)[: int(file["lines"])]
            path.write_text(
                "".join(lines).replace("NULLBYTE", "\0").removesuffix(NO_LINE_BREAK + "\n"), encoding="utf-8"
            )


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def module_util(name: str) -> ModuleType:
    """One of provisioning's modules that need nothing of Ansible, such as `bench_pci` or `bench_bmc/bios`."""
    own = f"corpus_{name.replace('/', '_')}"
    spec = importlib.util.spec_from_file_location(own, MODULE_UTILS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def found_of(text: str) -> dict[str, Any]:
    """Returns what is read of the tree: {"points": line protocol without times, "faults": ...}, and where it has CPUs "placement"."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        unpack(text, root)
        found = _points(root)
        if (root / "sys/devices/system/cpu/online").is_file():
            found["placement"] = _placement(root)
    if not found["points"] and "placement" not in found:
        raise ValueError("no collector reads anything of this tree")
    return found


def _points(root: Path) -> dict[str, Any]:
    encoder = Encoder({})
    lines: list[str] = []
    faults: list[str] = []
    for collector in system_collectors(1.0, root):
        if collector.name not in COLLECTORS:
            continue
        try:
            reading = collector.read()
        except Unsupported:
            continue
        except OSError as error:
            faults.append(str(error).replace(f"{root}/", ""))
            continue
        faults += [fault.replace(f"{root}/", "") for fault in reading.faults]
        lines += [encoder.encode(point._replace(time_ns=0)).strip() for point in collector.parse(reading, None)]
    return {"points": sorted(lines), "faults": sorted(faults)}


def _placement(root: Path) -> dict[str, Any]:
    """Returns where threads and interrupts would go, by the readers of the rig and of provisioning, which must agree."""
    lists, pci, host = (module_util(name) for name in ("bench_cpus", "bench_pci", "bench_host"))
    cpus = root / "sys/devices/system/cpu"
    online = lists.parse_cpus((cpus / "online").read_text())
    if not online:
        raise ValueError("sys/devices/system/cpu/online names no CPU")
    try:
        topology = cpu_topology.topology(online, cpus)
    except cpu_topology.TopologyError as error:
        raise ValueError(str(error).replace(f"{root}/", "")) from None
    told = Cpus.of(topology)
    cpuinfo = root / "proc/cpuinfo"
    text = cpuinfo.read_text(errors="replace") if cpuinfo.is_file() else ""
    devices = {}
    for path in sorted((root / "sys/bus/pci/devices").glob("*")):
        placed = pci.placed({"name": path.name}, str(path), str(root / "sys"))
        devices[path.name] = {key: placed[key] for key in ("numa_node", "node_cpus")}
    return {
        "cpu_model": cpu_model(text),
        "online": lists.format_cpus(online),
        "cores": lists.format_cpus(told.cores),
        "threads_of_a_core": max(one["thread"] for one in topology["cpus"]) + 1,
        "packages": told.packages,
        "smt": told.smt,
        "nodes": {str(node["node"]): node["cpus"] for node in host.numa(str(root / "sys"))},
        "devices": devices,
    }
