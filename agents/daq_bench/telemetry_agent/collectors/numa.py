"""Memory per NUMA node: where it was allocated, and how much is free, every second.

Promise: the kernel's own counters of pages allocated since boot (`numastat`), and bytes of `meminfo`. The remote share
is that of the pages which a node gave in the interval to processes running on another one; it tells of allocations, and
not of every access. Where nothing was allocated there is none.
"""

from __future__ import annotations

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.collectors.memory import parse_meminfo, require_lines
from daq_bench.telemetry_agent.reading.attributes import read_present, reading_of, table_lines, whole_number
from daq_bench.telemetry_agent.reading.collector import OfRoot, Reading

NODES = "sys/devices/system/node"
PAGES = {
    "numa_hit": "hit_pages",
    "numa_miss": "miss_pages",
    "numa_foreign": "foreign_pages",
    "interleave_hit": "interleave_pages",
    "local_node": "local_pages",
    "other_node": "other_pages",
}
BYTES = {"MemTotal": "total_bytes", "MemFree": "free_bytes", "MemUsed": "used_bytes"}
FILES = ("numastat", "meminfo")


def parse_numastat(text: str, node: str) -> dict[str, int]:
    """The counters above. Raises ValueError on a line that is missing or not understood."""
    where, fields = f"node{node}/numastat", {}
    for line in table_lines(text, where):
        name, _, value = line.partition(" ")
        if name in PAGES:
            fields[PAGES[name]] = whole_number(value, f"{where}: {name}")
    require_lines(fields, PAGES, where, text)
    return fields


class Numa(OfRoot):
    """Collector of the measurement `numa`."""

    name = "numa"
    period_s_min = 2.0

    def read(self) -> Reading:
        """Texts hold one file each, by "node file"."""
        files = {
            f"{folder.name[4:]} {name}": folder / name
            for folder in sorted((self._root / NODES).glob("node[0-9]*"))
            for name in FILES
        }
        texts, faults = read_present(files)
        return reading_of(texts, faults, f"no {self._root / NODES}/node*/numastat (a kernel without NUMA)")

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per node."""
        found: dict[str, dict[str, FieldValue]] = {}
        for key, text in reading.texts.items():
            node, _, name = key.partition(" ")
            fields = found.setdefault(node, {})
            if name == "meminfo":
                fields.update(parse_meminfo(text, f"node{node}/meminfo", BYTES, {}))
                continue
            now = parse_numastat(text, node)
            fields.update(now)
            if previous and key in previous.texts:
                before = parse_numastat(previous.texts[key], node)
                other, local = (now[field] - before[field] for field in ("other_pages", "local_pages"))
                if min(other, local) >= 0 and other + local > 0:
                    fields["remote_fraction"] = other / (other + local)
        return [Point("numa", (("node", node),), fields, reading.time_ns) for node, fields in found.items()]
