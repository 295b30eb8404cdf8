"""Starts and stops the telemetry agent on the candidate. Its spool in the bundle is the record; InfluxDB may come and go."""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.telemetry_files import OWN
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.shell import UNTIL_PARENT_DIES, environment_for_children

READY_S_MAX = 15.0
LOG_FILE = "agent.log"
DRAIN_S = 10.0
PERIOD_S = 1.0  # of the fast sensors, unless the scenario states another
STOP_S_MAX = DRAIN_S + 20.0


class Agent:
    """The agent's process. `stop` ends it and waits until its spool is closed and accounted for.

    `options` instead of the file of the workload's records that the candidate's agent passes on; `environment` comes on top of ours."""

    def __init__(
        self,
        artefact: Path,
        bundle: Bundle,
        influx: Influx,
        tags: Mapping[str, str],
        period_s: float = PERIOD_S,
        *,
        spool: Path | None = None,
        options: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._spool = spool or bundle.path / OWN
        self._environment = {**environment_for_children(), **influx.agent_environment, **(environment or {})}
        self._argv = [
            *UNTIL_PARENT_DIES,
            sys.executable,
            str(artefact),
            "run",
            f"--spool-dir={self._spool}",
            *influx.agent_arguments,
            f"--period={period_s:g}",
            f"--drain-seconds={DRAIN_S:g}",
            *([f"--workload-file={bundle.workload_file}"] if options is None else options),
            *(f"--tag={key}={value}" for key, value in tags.items()),
        ]
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    def start(self) -> None:
        """Returns once the agent collects. Raises BenchError when it does not come up."""
        self._log = (self._spool / LOG_FILE).open("a", encoding="utf-8")
        self._process = subprocess.Popen(
            self._argv,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        ready = False
        try:
            ready = self._says_ready(self._process)
        finally:
            if not ready:  # Ctrl-C while it starts, too
                self.kill()
        if not ready:
            raise BenchError(f"the telemetry agent did not start; see {self._spool / LOG_FILE}")

    @staticmethod
    def _says_ready(process: subprocess.Popen[str]) -> bool:
        """Waits for the agent's line `ready`; False when it ends or stays silent."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            return bool(selector.select(READY_S_MAX)) and process.stdout.readline().strip() == "ready"

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """Asks the agent to finish; returns its exit status. Kills it when it does not end in time."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            status = -signal.SIGKILL
        if self._log:
            self._log.close()
        return status

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def replay(artefact: Path, spool: Path, influx: Influx, timeout_s: float = 3600.0) -> subprocess.CompletedProcess[str]:
    """Sends what InfluxDB lacks of one of a bundle's spools. Never raises: the bundle stays the record."""
    argv: Sequence[str] = [
        sys.executable,
        str(artefact),
        "replay",
        f"--spool-dir={spool}",
        *influx.agent_arguments,
    ]
    try:
        return subprocess.run(
            argv,
            env={**environment_for_children(), **influx.agent_environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        slow = f"InfluxDB did not take all within {timeout_s:.0f} s; the next replay goes on there"
        return subprocess.CompletedProcess(argv, 1, "", slow)
