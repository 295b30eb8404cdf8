"""The result of one run of a tool, read from its own JSON. Pure: text in, a Sample out, or BenchError where it does not count."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.units import GB

UNTIL_LAST_BLOCK = "until_last_block_bytes_per_s"


@dataclass(frozen=True)
class Sample:
    """One measurement. None: the tool does not state it. `buffer_bytes` is what its configuration lets it buffer."""

    bytes_per_s: float | None = None
    cpu_s_per_gb: float | None = None
    max_rss_bytes: int | None = None
    buffer_bytes: int | None = None
    more: dict[str, float] = field(default_factory=dict)
    argv: tuple[str, ...] = ()

    def quantity(self, name: str) -> float | None:
        """`bytes_per_s`, `cpu_s_per_gb`, or one of `more`."""
        if name in self.more:
            return self.more[name]
        value: float | None = getattr(self, name, None)
        return value

    def document(self) -> dict[str, Any]:
        return asdict(self)


def parse_fio(text: str) -> Sample:
    """fio's JSON of a write job per thread. The rate is bytes over the longest job's runtime: `bw` is in KiB/s and rounded,
    and the sum of the jobs' own rates flatters jobs that ended early."""
    start = text.find("{")  # warnings may precede it
    if start < 0:
        raise BenchError(f"fio wrote no JSON: {text.strip()[:200] or 'nothing'}")
    jobs = json.loads(text[start:])["jobs"]
    errors = [job["error"] for job in jobs if job["error"]]
    if errors:
        raise BenchError(f"fio reports error {errors[0]} in {len(errors)} of {len(jobs)} jobs")
    written = sum(job["write"]["io_bytes"] for job in jobs)
    runtime_ms = max(job["write"]["runtime"] for job in jobs)
    if not written or not runtime_ms:
        raise BenchError("fio wrote nothing")
    cpu_s = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
    return Sample(written / (runtime_ms / 1000), cpu_s / (written / GB))


def parse_daqwriter(text: str, with_flush: bool = True) -> Sample:
    """The JSON of `daqwriter write`, `minidaq` or `streams`. The rate includes the final flush, or ends with the last block."""
    document = json.loads(text)
    command = document.get("command", "?")
    if document["status"] != "complete":
        raise BenchError(f"daqwriter {command} is {document['status']}: {document.get('error')}")
    cpu = document["cpu"]
    flushed = next(name for name in ("stored_bytes_per_s", "bytes_per_s_with_flush") if name in document)
    rate = document[flushed] if with_flush else until_last_block(document)
    more = {}
    for name, place in (
        ("copy_share", cpu.get("copy_share", cpu.get("checksum_and_copy_share"))),
        ("lost_superchunks", document.get("superchunks", {}).get("lost")),
        ("achieved_fraction", document.get("source", {}).get("achieved_fraction")),
        ("offered_bytes_per_s", document.get("offered_bytes_per_s")),
    ):
        if place is not None:
            more[name] = float(place)
    more[UNTIL_LAST_BLOCK] = until_last_block(document)
    return Sample(rate, cpu["seconds_per_gb"], cpu["max_rss_bytes"], buffered_bytes(document), more)


def until_last_block(document: dict[str, Any]) -> float:
    """The rate without the work after the last block: flush, a record's trailer, cutting a reserved file to its size."""
    if "bytes_per_s" in document:
        return float(document["bytes_per_s"])
    return float(document["bytes"]["payload"] / (document["time"]["record_s"] + document["time"]["drain_s"]))


def buffered_bytes(document: dict[str, Any]) -> int | None:
    """All that the command's configuration lets it hold in memory: rings and blocks."""
    for section, name in (("backlog", "capacity_bytes"), ("parameters", "buffer_bytes")):
        value = document.get(section, {}).get(name)
        if value is not None:
            return int(value)
    return None
