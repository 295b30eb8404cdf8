"""Runs daqwriter and fio, one measurement each, and reads their JSON. Files lie in the bench's scratch folder."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_rounds.measuring.sample import Sample, parse_daqwriter, parse_fio
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import Shell
from daq_bench.rig.workloads.shared.fio_job import JobFile, Value

START_S = (
    60.0  # allowance for set-up on top of a measurement's own time: preallocation, a span written before, many buffers
)
WRITE_FILE = "bench-write"
INFLUXD_VARIABLE = "INFLUXD_BIN"  # names another influxd than the one that was built
# A process keeps in its ru_maxrss the peak memory from before its exec, here that of this Python with its libraries; a child of
# a shell starts from nothing. It ends with the shell, as the shell ends with the bench.
FRESH_PEAK = ("sh", "-c", 'setpriv --pdeathsig TERM -- "$@"; exit $?', "sh")


@dataclass
class Tools:
    shell: Shell
    daqwriter: Path
    scratch: Path
    agent: Path = Path("build/telemetry_agent.pyz")
    influxd: Path = Path("build/tools/influxd")
    held: dict[str, Any] = field(default_factory=dict)  # objects that a part's `hold` keeps for its points
    _serial: Any = field(default_factory=itertools.count)

    def run_daqwriter(self, command: str, *options: str, timeout_s: float, with_flush: bool = True) -> Sample:
        """Runs once a command that states a rate."""
        text, argv = self._json([command, *options], timeout_s)
        return replace(parse_daqwriter(text, with_flush), argv=argv)

    def record(self, command: str, *options: str, timeout_s: float, with_flush: bool = True) -> Sample:
        """The same on new files, which are removed afterwards: several applications write one each, named after the target."""
        target = self.scratch / f"{command}-{next(self._serial)}.bin"
        try:
            return self.run_daqwriter(
                command, f"--target={target}", *options, timeout_s=timeout_s, with_flush=with_flush
            )
        finally:
            for file in self.scratch.glob(f"{target.name}*"):
                file.unlink()

    def record_on(self, targets: int, command: str, *options: str, timeout_s: float) -> Sample:
        """`record` on several new files at once, in one run."""
        files = [self.scratch / f"{command}-{next(self._serial)}-of-{targets}.bin" for _ in range(targets)]
        try:
            return self.run_daqwriter(command, f"--target={','.join(map(str, files))}", *options, timeout_s=timeout_s)
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def checksum(self, *options: str, timeout_s: float) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The document of `daqwriter checksum`, and how it was called."""
        text, argv = self._json(["checksum", *options], timeout_s)
        document: dict[str, Any] = json.loads(text)
        return document, argv

    def lay_out(self, span_bytes: int) -> Path:
        """A file whose every block was written, by daqwriter, as daqwriter lays out its own: fio then overwrites the same layout."""
        file = self.scratch / f"overwritten-{span_bytes}.bin"
        options = [f"--target={file}", "--block-size=8MiB", f"--bytes={span_bytes}", "--condition=overwrite", "--keep"]
        self._json(["write", *options], START_S + span_bytes / 50e6)
        return file

    def fio(self, file: Path, block: int, threads: int, depth: int, seconds: float, section: str = "libaio") -> Sample:
        """Overwrites `file` sequentially, a thread per disjoint part. `section`: of bench-write.fio."""
        part = file.stat().st_size // threads // block * block
        values: dict[str, Value] = {
            "TARGET": file,
            "BLOCK_BYTES": block,
            "SIZE_BYTES": part,
            "IO_DEPTH": depth,
            "THREADS": threads,
            "RUNTIME": f"{round(seconds * 1000)}ms",
        }
        argv = JobFile.named(WRITE_FILE).command(Layout().fio_jobs / f"{WRITE_FILE}.fio", values, [section])
        done = self.shell.run(argv, START_S + 10 * seconds).check("fio")
        return replace(parse_fio(done.stdout), argv=done.argv)

    def trial(self, what: str, timeout_s: float, module: str, *words: str | Path) -> Sample:
        """Runs once a Python module of ours in a process of its own, which states its seconds, CPU and memory as a line of JSON."""
        argv = (sys.executable, "-m", module, *map(str, words))
        done = self.shell.run([*FRESH_PEAK, *argv], timeout_s).check(what)
        said = json.loads(done.stdout.splitlines()[-1])
        more = {name: float(said[name]) for name in ("seconds", "cpu_s")}
        return Sample(max_rss_bytes=int(said["max_rss_bytes"]), more=more, argv=argv)

    def versions(self) -> dict[str, str]:
        asked: dict[str, Sequence[str | Path]] = {
            "daqwriter": [self.daqwriter, "--version"],
            "fio": ["fio", "--version"],
            "bench": ["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"],
        }
        return {name: self.shell.run(argv, 20).check(name).stdout.strip() for name, argv in asked.items()}

    def _json(self, words: Sequence[str], timeout_s: float) -> tuple[str, tuple[str, ...]]:
        result = self.scratch / f"result-{next(self._serial)}.json"
        try:
            argv = (str(self.daqwriter), *words, f"--json={result}")
            done = self.shell.run([*FRESH_PEAK, *argv], timeout_s)
            replace(done, argv=argv).check(f"daqwriter {words[0]}")
            return result.read_text(encoding="utf-8"), argv
        finally:
            result.unlink(missing_ok=True)
