"""The storage application on a candidate: one run of `daqwriter streams`, and the look at the files that it left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.documents.tools.streams import Streams, VerifyStreams
from daq_bench.bench_model.workloads.streams_checksum.document import Setup
from daq_bench.bench_model.workloads.streams_checksum.setups import Cpus
from daq_bench.rig.workloads.shared.site import COMPLETE, DAMAGED, FAILED, Site

READ_BYTES_PER_S_MIN = 20e6  # a drive that reads more slowly is no storage server's
CALL_S_MIN = 120.0
DEFINITION_BYTES = 32 << 20  # a few seconds of Python
SUM_BYTES_PER_S = 4e6  # of that, on a slow machine


@dataclass(frozen=True)
class Telemetry:
    """Describes where daqwriter's records go while it runs, and the tags that they carry."""

    file: Path
    tags: dict[str, str]

    @property
    def options(self) -> list[str]:
        return [f"--line-protocol={self.file}", *(f"--tag={key}={value}" for key, value in self.tags.items())]


@dataclass(frozen=True)
class Application:
    """`streams`: the scenario's parameters of that name. Every run writes into a directory of its own, or nowhere."""

    site: Site
    streams: dict[str, Any]
    cpus: Cpus
    seed: int

    def options(self, setup: Setup, directory: Path | None) -> list[str]:
        """daqwriter's options for `setup`; `directory` None: no I/O."""
        own = self.streams
        found = [
            f"--target={directory}" if directory else "--sink=null",
            f"--shares={','.join(f'{share:g}' for share in own['shares'])}",
            f"--event-size={setup.event_bytes}",
            f"--event-spread={own['event_spread']:g}",
            f"--file-size={own['file_size']}",
            f"--queue-size={own['queue_size']}",
            f"--block-size={own['block_size']}",
            f"--io-depth={own['io_depth']}",
            f"--checksum-variant={setup.variant}",
            f"--checksum-threads={setup.threads}",
            f"--seed={self.seed}",
        ]
        cpus = self.cpus.of_placement(setup.placement)
        if len(cpus) < len(self.cpus.order):
            found.append(f"--cpus={','.join(map(str, cpus))}")
        return found

    @contextmanager
    def directory(self, name: str) -> Iterator[Path]:
        """A directory of the target for one run, gone afterwards with the run's files, however the block ends."""
        path = self.site.scratch / f"streams-checksum-{name}"
        try:
            yield path
        finally:
            self.site.machine.call("stream_files", "remove", path, timeout_s=CALL_S_MIN)

    def run(self, setup: Setup, directory: Path | None, name: str, seconds: float, *more: str) -> Streams:
        """daqwriter's answer. Raises TargetFailedError where the drive ended the run."""
        options = [*self.options(setup, directory), *more]
        limit_s = CALL_S_MIN + 10 * seconds
        return self.site.run_daqwriter("streams", options, f"streams-{name}", Streams, limit_s)

    def verified(self, setup: Setup, directory: Path, name: str, written_bytes: int) -> dict[str, Any]:
        """Returns one entry of `verification`: the results of daqwriter's own read-back and of one by independent code."""
        limit_s = CALL_S_MIN + written_bytes / READ_BYTES_PER_S_MIN
        verify = self.site.run_daqwriter(
            "verify",
            [f"--target={directory}"],
            f"streams-verify-{name}",
            VerifyStreams,
            limit_s,
            (COMPLETE, FAILED, DAMAGED),
        )
        looked = self.site.machine.call(
            "stream_files",
            "check",
            directory,
            str(DEFINITION_BYTES),
            timeout_s=limit_s + DEFINITION_BYTES / SUM_BYTES_PER_S,
        )
        wrong = [{"name": one["name"], "fault": one["fault"]} for one in looked["files"] if one["fault"]]
        return {
            "name": name,
            "variant": setup.variant,
            "threads": setup.threads,
            "files": len(looked["files"]),
            "bytes": sum(one["bytes"] or 0 for one in looked["files"]),
            "by_definition": sum(1 for one in looked["files"] if one["definition"] is not None),
            "wrong_files": len(wrong),
            "wrong": wrong,
            "closed": looked["closed"],
            "status": verify.status,
            "faults": verify.fault_count,
            "events": {"expected": verify.events.expected, "present": verify.events.present},
            "failed": verify.status == "failed",
            "error": verify.error,
        }
