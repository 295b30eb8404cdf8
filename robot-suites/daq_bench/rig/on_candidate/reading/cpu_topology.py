"""Tells which CPUs of this machine share a physical core: `cpu_topology.py`. Reads only /sys and this process's allowed CPUs.

Prints {cpus, smt}: `cpus` lists the usable ones, [{cpu, package, core, thread}], where `core` counts physical cores of the whole
machine and `thread` a core's usable CPUs, from 0; `smt` is the kernel's own word (on, off, forceoff, notsupported, ...) or null.
Prints {error} where the kernel does not tell the siblings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from daq_bench.candidate_kit.sysfs import text_of

CPUS = Path("/sys/devices/system/cpu")
SIBLINGS = ("core_cpus_list", "thread_siblings_list")  # the second is the name in kernels before 5.3


class TopologyError(Exception):
    """The kernel does not tell the topology; the text becomes {error}."""


def parse_list(text: str) -> list[int]:
    """`0-2,8` as numbers."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if not all(number.isascii() and number.isdigit() and len(number) < 6 for number in (first, last or first)):
            raise ValueError(f"{text[:80]!r} is no list of CPUs")
        if int(last or first) < int(first):
            raise ValueError(f"{text[:80]!r} is no list of CPUs: {part} runs backwards")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def topology(allowed: Iterable[int], root: Path = CPUS) -> dict[str, Any]:
    """The document; `allowed` are the CPUs that this process may use."""
    usable = sorted(allowed)
    cores: dict[tuple[int, ...], int] = {}
    seen: dict[int, int] = {}
    cpus = []
    for cpu in usable:
        siblings = tuple(_siblings(root / f"cpu{cpu}" / "topology", cpu))
        core = cores.setdefault(siblings, len(cores))
        thread = seen.get(core, 0)
        seen[core] = thread + 1
        package = text_of(root / f"cpu{cpu}" / "topology" / "physical_package_id")
        # POWER, RISC-V and some ARM firmware name no package: the kernel says -1.
        known = package is not None and package.isascii() and package.isdigit()
        cpus.append(
            {"cpu": cpu, "package": int(package) if package and known else None, "core": core, "thread": thread}
        )
    return {"cpus": cpus, "smt": text_of(root / "smt" / "control")}


def _siblings(folder: Path, cpu: int) -> list[int]:
    for name in SIBLINGS:
        text = text_of(folder / name)
        if text:
            try:
                found = parse_list(text)
            except ValueError as error:
                raise TopologyError(f"{folder / name}: {error}") from None
            if cpu not in found:
                raise TopologyError(f"{folder / name} is {text[:80]!r}, which does not name CPU {cpu} itself")
            return found
    raise TopologyError(f"{folder} does not tell the siblings of CPU {cpu}, so physical cores cannot be told from SMT")


if __name__ == "__main__":
    try:
        print(json.dumps({"result": topology(os.sched_getaffinity(0))}))
    except TopologyError as failure:
        print(json.dumps({"error": str(failure)}))
