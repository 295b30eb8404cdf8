"""The load of the thermal soak: fio, overwriting one file, or the begin of a raw drive, for as long as the caller lets it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.workloads.thermal.document import Rule
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.load_target import LoadTarget
from daq_bench.rig.candidate.machine import Machine
from daq_bench.rig.workloads.shared import fio
from daq_bench.rig.workloads.shared.fio_job import JobFiles, Value
from daq_bench.rig.workloads.thermal.watch import rule_of

FILE = "thermal.bin"
WINDOW_MS = 1000  # of fio's log of bandwidth


@dataclass(frozen=True)
class Plan:
    """Everything that the soak needs of its run. `work` is on the candidate, `raw` and `points` in the bundle."""

    parameters: dict[str, Any]
    demand: Demand
    target: LoadTarget
    work: Path
    raw: Path
    points: Sequence[Path]
    run: Run

    def rule(self, min_s: float, max_s: float) -> Rule:
        return rule_of(self.parameters, min_s, max_s)


class Load:
    """fio, from `start` to `stop`, while the caller looks on."""

    def __init__(self, machine: Machine, plan: Plan, name: str, max_s: float) -> None:
        self._machine, self._plan, self._name = machine, plan, name
        self._stem = "thermal-" + "".join(letter if letter.isalnum() else "-" for letter in name)
        self._trigger = plan.work / f"{self._stem}.stop"
        self._max_s = max_s
        self._done: Completed | BaseException | None = None

    def command(self) -> list[str]:
        """fio's command line, whose job file lies on the candidate from now on."""
        parameters = self._plan.parameters
        block = parameters["block_size"]
        values: dict[str, Value] = {
            "NAME": self._stem,
            "BLOCK_BYTES": block,
            "SIZE_BYTES": parameters["file_size"] // block * block,
            "IO_DEPTH": parameters["io_depth"],
            "RATE_BYTES": parameters.get("rate_size") or 0,
            "RUNTIME": f"{self._max_s:g}s",
            "WINDOW_MS": WINDOW_MS,
        }
        # The trigger leaves a state in aux-path, which nobody wants.
        ending = [f"--trigger-file={self._trigger}", f"--aux-path={self._plan.work}"]
        jobs = JobFiles(self._machine, self._plan.work, self._plan.raw)
        return jobs.command("thermal-soak", self._stem, self._plan.target, values, options=ending)

    def _run(self, argv: list[str]) -> None:
        try:
            self._done = self._plan.target.run(argv, timeout_s=self._max_s + 300)
        except BaseException as error:  # handed to whoever waits in `stop`
            self._done = error

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, args=[self.command()], name=self._stem, daemon=True)
        self._thread.start()

    def running(self) -> bool:
        return self._thread.is_alive()

    def _ask_to_end(self) -> bool:
        if running := self.running():
            self._machine.run(["touch", "--", self._trigger], timeout_s=60).check("asking fio to end")
        return running

    def stop(self) -> dict[str, Any]:
        """Ends fio if it still runs; returns its window, bytes and rate. Raises BenchError for what went wrong with it."""
        try:
            self._machine.observe(f"{self._name} asked to end", self._ask_to_end)
            self._thread.join(120)
        finally:
            self._machine.remove(self._trigger)
        if isinstance(self._done, BaseException):
            raise self._done
        if self._done is None:
            raise BenchError(f"fio ({self._name}) did not end within 120 s of being asked to")
        return self._result(fio.ended_well(self._done, f"fio ({self._name})"))

    def _result(self, done: Completed) -> dict[str, Any]:
        (self._plan.raw / f"{self._stem}.json").write_text(done.stdout, encoding="utf-8")
        log = self._plan.raw / f"{self._stem}_bw.1.log"
        self._machine.fetch(self._plan.work / f"{self._stem}_bw.1.log", log)
        logged = fio.bandwidth_rows(log.read_text(encoding="ascii"))
        with fio.readable(self._name):
            job = fio.document_of(done.stdout, self._name, ["bw_bytes"])["jobs"][0]
            write = {name: fio.number(job["write"], name) for name in ("io_bytes", "runtime", "bw_bytes")}
        if job["error"] or not write["io_bytes"] or len(logged) != 1 or len(logged[0]) < 2:
            raise BenchError(f"fio ({self._name}) ended with error {job['error']} after {write['io_bytes']} B")
        # A line of the log is the end of its second; the first second, in which fio starts, is left out. A second without a
        # line is one in which the drive completed nothing: the soak looks for exactly those.
        began_ms = logged[0][0][0] - WINDOW_MS
        windows = fio.Windows(logged, WINDOW_MS, began_ms, write["runtime"], write["io_bytes"])
        rows = windows.filled(logged[0])
        if not rows:
            raise BenchError(
                f"fio ({self._name}) ran for {in_digits(write['runtime'], 9)} ms: too short for one window of its log"
            )
        times = [end_ms / 1000 for end_ms, _ in rows]
        return {
            "name": self._name,
            "start_utc_s": times[0],
            "end_utc_s": times[-1],
            "bytes_written": write["io_bytes"],
            "throughput_bytes_per_s": write["bw_bytes"],
            "own": [[end_ms / 1000, rate] for end_ms, rate in rows],
        }
