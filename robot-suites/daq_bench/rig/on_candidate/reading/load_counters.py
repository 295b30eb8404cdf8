"""The machine's counters so far: CPU time, md's own threads, bytes that drives were asked to write. Reads /proc and /sys only.

`load_counters.py [--array NAME] DEVICE ...`; prints {clock_s, kernel_cpu_s, total_cpu_s, md_threads_s, written_bytes}."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from daq_bench.rig.on_candidate.reading import disk_counters

CPU_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # proc(5)
IN_KERNEL = ("system", "irq", "softirq")
BUSY = ("user", "nice", *IN_KERNEL)


def cpu_times(stat: str, ticks: int) -> dict[str, float]:
    """Seconds of all CPUs since boot by kind, from /proc/stat."""
    values = stat.splitlines()[0].split()[1:]
    return {name: int(value) / ticks for name, value in zip(CPU_FIELDS, values)}


def thread_times(array: str, ticks: int, proc: Path = Path("/proc")) -> dict[str, float]:
    """CPU seconds of the kernel's threads of one md array, such as md127_raid5, by name."""
    found = {}
    for file in proc.glob("[0-9]*/stat"):
        try:
            head, _, rest = file.read_text(encoding="ascii", errors="replace").rpartition(")")
        except OSError:  # the thread ended meanwhile
            continue
        name = head.partition("(")[2]
        if name.startswith(array + "_"):
            fields = rest.split()
            found[name] = (int(fields[11]) + int(fields[12])) / ticks
    return found


def counters(array: str | None, devices: list[str]) -> dict[str, Any]:
    ticks = os.sysconf("SC_CLK_TCK")
    cpu = cpu_times(Path("/proc/stat").read_text(encoding="ascii"), ticks)
    return {
        "clock_s": time.time(),
        "kernel_cpu_s": sum(cpu[name] for name in IN_KERNEL),
        "total_cpu_s": sum(cpu[name] for name in BUSY),
        "md_threads_s": thread_times(array, ticks) if array else {},
        "written_bytes": {
            name: disk_counters.counters(name)[disk_counters.WRITTEN_SECTORS] * disk_counters.SECTOR_BYTES
            for name in devices
        },
    }


def main(arguments: list[str]) -> dict[str, Any]:
    array = arguments[1] if arguments[:1] == ["--array"] else None
    try:
        return counters(array, arguments[2:] if array else arguments)
    except (OSError, ValueError, IndexError) as error:
        return {"error": f"the machine's counters cannot be read: {error}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
