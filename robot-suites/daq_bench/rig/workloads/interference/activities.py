"""The things that a storage server does on a DAQ day, as commands that run for a given time, and the measure of each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.files import strict
from daq_bench.rig.candidate.load_target import FileTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared.fio import demand_readable
from daq_bench.rig.workloads.shared.fio_job import JobFiles, Value
from daq_bench.rig.workloads.shared.site import minidaq_options

CHECKSUM_COMBINATIONS = 12  # daqwriter checksum: one variant, the reference, and the copies that it always measures
CHECKSUM_REPETITIONS = 5
COPIES = ("crc32", "adler32", "crc32-copy", "adler32-copy")
PORT = 5291


@dataclass(frozen=True)
class Setting:
    """Describes where activities run. `demand`: the burst's; `jobs`: fio's job files, and where tools write."""

    daqwriter: Path
    demand: Demand
    parameters: dict[str, Any]
    scratch: Path
    jobs: JobFiles
    seed: int


@dataclass(frozen=True)
class Measured:
    """One run of an activity. `value` is None, and `reason` says why, when it does not count; `more` goes into the results."""

    value: float | None
    reason: str | None
    more: dict[str, Any]


class Activity(ABC):
    """`work`: the counter that shows its progress (rig.on_candidate.together); `larger_is_better`: whether its value is."""

    name: ClassVar[str]
    work: ClassVar[str]
    measure: ClassVar[str]
    unit: ClassVar[str]
    larger_is_better: ClassVar[bool]

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @abstractmethod
    def command(self, seconds: float, tag: str) -> list[str]:
        """Runs for `seconds`; `tag` names its output and files apart from another one's."""

    @abstractmethod
    def measured(self, output: str, seconds: float, tag: str, machine: Machine) -> Measured:
        """Reads the value from the command's standard output, or its file. Raises BenchError where there is nothing to read."""

    def services(self) -> list[dict[str, Any]]:
        """The services that it needs while it runs, such as a server."""
        return []

    def files(self, tag: str) -> list[Path]:
        """The files that it leaves, which must be removed after each run."""
        return []

    def _json(self, text: str) -> dict[str, Any]:
        try:
            document: dict[str, Any] = strict(text, doubled_keys=True)
        except ValueError as error:
            raise BenchError(f"the output of {self.name} cannot be read: {error}") from None
        return document


class Burst(Activity):
    """The load of snb_record: all that a unit's links send, paced."""

    name, work, unit, larger_is_better = "burst", "write", "us", False
    measure = "99th percentile of the time from a superchunk's intended arrival until it is stored"

    def _target(self, tag: str) -> Path:
        return self.setting.scratch / f"interference-{tag}.daq"

    def files(self, tag: str) -> list[Path]:
        return [self._target(tag)]

    def command(self, seconds: float, tag: str) -> list[str]:
        options = minidaq_options(self.setting.parameters["burst"], self.setting.demand.scale)
        return [
            *(str(self.setting.daqwriter), "minidaq", f"--target={self._target(tag)}", f"--duration={seconds:g}"),
            *(*options, "--preallocate=none", f"--seed={self.setting.seed}"),
            f"--json={self.setting.jobs.work / f'interference-{tag}.json'}",
        ]

    def measured(self, output: str, seconds: float, tag: str, machine: Machine) -> Measured:
        document = self._json(machine.read_text(self.setting.jobs.work / f"interference-{tag}.json"))
        counts, achieved = document["superchunks"], document["source"]["achieved_fraction"]
        more = {
            "offered_superchunks": counts["offered"],
            "lost_superchunks": counts["lost"],
            "busy_count": document["busy"]["count"],
            "busy_s": document["busy"]["total_s"],
            "stored_bytes_per_s": document["stored_bytes_per_s"],
            "buffer_needed_bytes": document["transient_buffer"]["needed_bytes"],
            "source_achieved": achieved,
        }
        if document["status"] != "complete":
            return Measured(None, f"the record ended in state {document['status']}: {document['error']}", more)
        if achieved < 0.99:
            return Measured(None, f"the source offered only {achieved:.1%} of what was due", more)
        return Measured(document["latency_us"]["p99"], None, more)


class Fio(Activity):
    """A load of fio's on a file of its own."""

    unit, larger_is_better = "B/s", True
    direction: ClassVar[str]
    default_pattern: ClassVar[str]

    @property
    def target(self) -> FileTarget:
        return FileTarget(self.setting.jobs.machine, self.setting.scratch / f"interference-{self.name}.bin")

    def command(self, seconds: float, tag: str) -> list[str]:
        own = self.setting.parameters[self.name]
        values: dict[str, Value] = {
            "NAME": self.name,
            "PATTERN": own.get("pattern", self.default_pattern),
            "BLOCK_BYTES": own["block_size"],
            "SIZE_BYTES": own["file_size"],
            "THREADS": own["threads"],
            "IO_DEPTH": own["io_depth"],
            "RUNTIME": f"{seconds:g}s",
            "RATE_BYTES": own["rate_size"] // own["threads"] if "rate_size" in own else 0,
        }
        return self.setting.jobs.command("interference", f"interference-{tag}", self.target, values)

    def lay_out(self) -> None:
        """Writes the file once, so that a reader reads what is on the drive and a writer overwrites."""
        size, name = self.setting.parameters[self.name]["file_size"], f"layout-interference-{self.name}"
        done = self.setting.jobs.run("layout", name, self.target, {"SIZE_BYTES": size}, 120 + size / 50e6)
        done.check(f"laying out the file of the {self.name}")

    def measured(self, output: str, seconds: float, tag: str, machine: Machine) -> Measured:
        text = output[output.find("{") :]  # fio says something in front of its JSON when it is disturbed
        try:
            document = self._json(text)
            demand_readable(document, self.name, ["bw_bytes"])
            job = document["jobs"][0]
            part = job[self.direction]
            rate, runtime_s, error = float(part["bw_bytes"]), part["runtime"] / 1000, job["error"]
        except (KeyError, IndexError, TypeError) as wrong:
            raise BenchError(f"the output of {self.name} (fio) cannot be read: {wrong!r}") from None
        more = {"bytes_per_s": rate, "runtime_s": runtime_s}
        if error or rate <= 0:
            return Measured(None, f"fio ended with error {error} at {rate:.0f} B/s", more)
        if runtime_s < 0.97 * seconds:
            return Measured(None, f"ran for {runtime_s:.2f} s of {in_digits(seconds, 9)} s", more)
        return Measured(rate, None, more)


class Writers(Fio):
    """Other triggers' data, onto the same target."""

    name, work, direction, default_pattern = "writers", "write", "write", "write"
    measure = "rate of the other writers together"


class Readers(Fio):
    """Those who fetch earlier data from the same target."""

    name, work, direction, default_pattern = "readers", "read", "read", "randread"
    measure = "rate of the readers together"


class Network(Activity):
    """iperf3 over TCP: to the declared peer, else over loopback, which costs CPU and memory bandwidth but uses no interface."""

    name, work, unit, larger_is_better = "network", "cpu", "B/s", True
    measure = "TCP throughput that arrives at the receiver"

    @property
    def _peer(self) -> str | None:
        peer: str | None = self.setting.parameters["network"].get("peer")
        return peer

    @property
    def _port(self) -> int:
        port: int = self.setting.parameters["network"].get("port", PORT)
        return port

    def services(self) -> list[dict[str, Any]]:
        if self._peer:
            return []
        argv = ["iperf3", "--server", "--bind", "127.0.0.1", "--port", str(self._port)]
        return [{"name": "the iperf3 server", "argv": argv}]

    def command(self, seconds: float, tag: str) -> list[str]:
        own = self.setting.parameters["network"]
        argv = ["iperf3", "--client", self._peer or "127.0.0.1", "--port", str(self._port), "--json"]
        return [*argv, "--time", str(math.ceil(seconds)), "--parallel", str(own["streams"])]

    def measured(self, output: str, seconds: float, tag: str, machine: Machine) -> Measured:
        document = self._json(output)
        if "error" in document:
            return Measured(None, f"iperf3: {document['error']}", {})
        try:
            received = document["end"]["sum_received"]
            return Measured(received["bits_per_second"] / 8, None, {"seconds": received["seconds"]})
        except (KeyError, TypeError):
            version = (document.get("start") or {}).get("version", "iperf3 of an unknown version")
            raise BenchError(f"{version} reports no end.sum_received with bits_per_second and seconds") from None


class Checksums(Activity):
    """daqwriter checksum: adler32 by several threads, and copies with checksums. It keeps CPUs and memory busy, no drive."""

    name, work, unit, larger_is_better = "checksums", "cpu", "B/s", True
    measure = "geometric mean of the rates of adler32 by its threads and of checksums with and without copies"

    def command(self, seconds: float, tag: str) -> list[str]:
        own = self.setting.parameters["checksums"]
        each = seconds / CHECKSUM_COMBINATIONS / CHECKSUM_REPETITIONS
        return [
            *(str(self.setting.daqwriter), "checksum", "--variants=pool-cv", f"--threads={own['threads']}"),
            *(f"--sizes={own['event_size']}", f"--repetitions={CHECKSUM_REPETITIONS}", f"--time={each:.4f}"),
            *("--working-set=64MiB", f"--json={self.setting.jobs.work / f'interference-{tag}.json'}"),
        ]

    def measured(self, output: str, seconds: float, tag: str, machine: Machine) -> Measured:
        document = self._json(machine.read_text(self.setting.jobs.work / f"interference-{tag}.json"))
        if document["status"] != "complete":
            return Measured(None, f"the checksums ended in state {document['status']}: {document['error']}", {})
        rates = [one["bytes_per_s"]["median"] for one in document["variants"] if one["variant"] == "pool-cv"]
        rates += [
            one["bytes_per_s"]["median"]
            for one in document["memory"]
            if one["threads"] == 1 and one["operation"] in COPIES
        ]
        value = math.exp(sum(math.log(rate) for rate in rates) / len(rates))
        return Measured(value, None, {"adler32_bytes_per_s": rates[0]})


KINDS: dict[str, type[Activity]] = {kind.name: kind for kind in (Burst, Writers, Readers, Network, Checksums)}
