"""Traffic between the processors and their memory: by resctrl where it is mounted, else by perf on Intel's memory
controllers, every few seconds.

Promise: what the hardware counted, per L3 domain (resctrl, Intel and AMD; all control groups together) or per socket
(perf: a sample of a second). The agent mounts nothing and changes no setting; where neither is to be had, it says what
would help.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from daq_bench.telemetry_agent.base.point import FieldValue, Point
from daq_bench.telemetry_agent.reading.attributes import excerpt, read_present, reading_of, whole_number
from daq_bench.telemetry_agent.reading.collector import Reading, Unsupported, per_second, rate_interval_s, reading_now

PERIOD_S_MIN = 5.0
SAMPLE_S = 1
PERF = "perf"
COUNTERS = {"mbm_total_bytes": "total_bytes", "mbm_local_bytes": "local_bytes"}
# The kernel writes these in the place of a count that it does not have at the moment.
NO_COUNT = ("Unavailable", "Error", "Unassigned")
NOT_SUPPORTED = "<not supported>"
EVENTS = {"uncore_imc/cas_count_read/": "read_bytes_per_s", "uncore_imc/cas_count_write/": "written_bytes_per_s"}
TIME = "duration_time"
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
UNSUPPORTED = (
    "no {resctrl}/mon_data/mon_L3_*/mbm_total_bytes and no {imc} with perf: mount resctrl before the run (`mount -t resctrl "
    "resctrl {resctrl}`; kernel with CONFIG_X86_CPU_RESCTRL, processor with the flags cqm_mbm_total and cqm_mbm_local), or "
    "install perf on an Intel server; a virtual machine has neither"
)


def parse_perf(text: str) -> dict[str, dict[str, FieldValue]]:
    """Bytes per second by socket from `perf stat -x, --per-socket`. Raises ValueError on anything else."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    seconds = None
    for line in text.splitlines():
        columns = line.split(",")
        if not line or line.startswith("#"):
            continue
        if len(columns) < 5 or not columns[0].startswith("S"):
            raise ValueError(f"perf stat: not understood: {excerpt(line)}")
        socket, _, value, unit, event = columns[:5]
        if event == TIME and NUMBER.fullmatch(value):
            seconds = float(value) / 1e9
        elif event in EVENTS and NUMBER.fullmatch(value) and unit == "MiB":
            values[socket[1:]][EVENTS[event]] = float(value) * 2**20
        elif event in EVENTS or (event == TIME and socket == "S0"):
            raise ValueError(f"perf stat: no count in MiB in {excerpt(line)}")
    if not values or not seconds:
        raise ValueError(f"perf stat: no memory traffic, or no duration, in {excerpt(text)}")
    return {
        f"socket-{socket}": {field: amount / seconds for field, amount in fields.items()}
        for socket, fields in values.items()
    }


class MemoryBandwidth:
    """Collector of the measurement `memory_bandwidth`."""

    name = "memory_bandwidth"
    pace = "slow"

    def __init__(self, period_s: float, root: Path = Path("/")) -> None:
        self.period_s = max(PERIOD_S_MIN, period_s)
        self._resctrl = root / "sys/fs/resctrl"
        self._controllers = root / "sys/bus/event_source/devices"

    def read(self) -> Reading:
        """Texts hold one resctrl counter each, by "group|domain|file", or perf's output."""
        groups = [self._resctrl, *(path.parent for path in sorted(self._resctrl.glob("*/mon_data")))]
        files = {
            f"{group.name}|{domain.name}|{name}": domain / name
            for group in groups
            for domain in sorted((group / "mon_data").glob("mon_L3_*"))
            for name in COUNTERS
        }
        texts, faults = read_present(files)
        for key in [key for key, text in texts.items() if text.strip() in NO_COUNT]:
            faults.append(f"{files[key]}: the kernel says {texts.pop(key).strip()}")
        if not texts and faults and all(fault.endswith(NO_COUNT[-1]) for fault in faults):
            raise Unsupported(f"{faults[0]}: assign its counters to the default group (info/L3_MON/mbm_assign_mode)")
        if texts or faults:
            return reading_of(texts, faults, "")
        return self._sampled()

    def parse(self, reading: Reading, previous: Reading | None) -> list[Point]:
        """One point per domain."""
        found = parse_perf(reading.texts[PERF]) if PERF in reading.texts else self._counted(reading, previous)
        return [
            Point("memory_bandwidth", (("domain", name),), fields, reading.time_ns) for name, fields in found.items()
        ]

    def _counted(self, reading: Reading, previous: Reading | None) -> dict[str, dict[str, FieldValue]]:
        interval_s = rate_interval_s(reading, previous, self.period_s)
        earlier = _sums(previous) if previous else {}
        found: dict[str, dict[str, FieldValue]] = {}
        for domain, sums in _sums(reading).items():
            before = earlier.get(domain, {})
            fields: dict[str, FieldValue] = dict(sums)
            rates = {name: per_second(count, before.get(name), interval_s) for name, count in sums.items()}
            fields.update({f"{name}_per_s": rate for name, rate in rates.items() if rate is not None})
            total, local = rates.get("total_bytes"), rates.get("local_bytes")
            if total and local is not None:
                # The two counters are not read at the same instant.
                fields["remote_fraction"] = max(0.0, 1.0 - local / total)
            found[domain] = fields
        return found

    def _sampled(self) -> Reading:
        """A sample by perf."""
        program = shutil.which(PERF, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        controllers = list(self._controllers.glob("uncore_imc_*/events/cas_count_read"))
        if program is None or not controllers:
            raise Unsupported(UNSUPPORTED.format(resctrl=self._resctrl, imc=self._controllers / "uncore_imc_*"))
        events = ",".join((*EVENTS, TIME))
        done = subprocess.run(
            [program, "stat", "--log-fd", "1", "-x,", "-a", "--per-socket", "-e", events, "--", "sleep", str(SAMPLE_S)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SAMPLE_S + 10,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        # perf that may not, or cannot here, is no reason to discard a run: at the first time it is unsupported.
        if done.returncode or NOT_SUPPORTED in done.stdout:
            words = excerpt((done.stderr or done.stdout).strip())
            raise Unsupported(f"perf stat: {words} (perf_event_paranoid above 0 wants root)")
        return reading_now({PERF: done.stdout})


def _sums(reading: Reading) -> dict[str, dict[str, int]]:
    """Bytes by domain and counter, the groups' summed."""
    sums: dict[str, dict[str, int]] = {}
    for key, text in reading.texts.items():
        group, domain, name = key.rsplit("|", 2)
        number = whole_number(text, f"{group}/mon_data/{domain}/{name}")
        fields = sums.setdefault(f"L3-{domain[len('mon_L3_') :]}", {})
        fields[COUNTERS[name]] = fields.get(COUNTERS[name], 0) + number
    return sums
