"""A real InfluxDB 1.8 for a part: on loopback, in the scratch folder, ended by its process id."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_rounds.measuring.processes import CpuTime, cpu_time, present_memory
from daq_bench.bench_rounds.measuring.tools import INFLUXD_VARIABLE, Tools
from daq_bench.rig.base.influx import DATABASE, Influx
from daq_bench.rig.telemetry.influx_server import LocalInflux

QUERY_S_MAX = 120.0
BACKUP_S_MAX = 600.0


def require_influxd(binary: Path) -> None:
    """Raises RefusedError, with the remedy, when there is no server to start."""
    if not binary.is_file() or not os.access(binary, os.X_OK):
        raise RefusedError(
            f"no InfluxDB server at {binary}: `make influxd` builds it there, or set {INFLUXD_VARIABLE} to an influxd 1.8"
        )


@dataclass(frozen=True)
class Server:
    url: str
    pid: int
    directory: Path
    binary: Path
    database: str = DATABASE

    def cpu_time(self) -> CpuTime:
        return cpu_time(self.pid)

    def memory(self) -> int:
        """Resident at this moment, bytes: the peak may be that of a query by which the bench counted."""
        return present_memory(self.pid)

    def stop_answering(self) -> None:
        """Sends SIGSTOP: the kernel then accepts connections and nobody answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def answer_again(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def count(self, fields: Mapping[str, str], run: str, hosts: Iterable[str]) -> int:
        """Points of `run`; `fields` names for each measurement a field that all its points have. Host by host: a query opens all
        series that it looks at at once, and those of all hosts took the server gigabytes."""
        total, client = 0, Influx(self.url, self.database)
        for host in hosts:
            where = f"\"run\" = '{run}' AND \"host\" = '{host}'"
            for name, field in fields.items():
                series = client.query(f'SELECT count("{field}") FROM "{name}" WHERE {where}', QUERY_S_MAX)
                total += int(series[0]["values"][0][1]) if series else 0
        return total

    def disk_bytes(self) -> int:
        """Bytes that index, blocks and log of all data take."""
        return sum(path.stat().st_size for part in ("data", "wal") for path in (self.directory / part).rglob("*.*"))

    def settle(self, tools: Tools) -> None:
        """Has everything that is only in memory and in the write-ahead log stored in its blocks: a backup does that first."""
        config = (self.directory / "influxdb.conf").read_text(encoding="utf-8")
        found = re.search(r'^bind-address = "([^"]+)"', config, re.MULTILINE)
        if found is None:
            raise BenchError(f"{self.directory}/influxdb.conf has no bind-address")
        copy = self.directory / "backup"
        argv = [self.binary, "backup", "-portable", "-db", self.database, "-host", found.group(1), copy]
        try:
            tools.shell.run(argv, BACKUP_S_MAX).check("influxd backup")
        finally:
            with suppress(FileNotFoundError):
                shutil.rmtree(copy)


@contextmanager
def influxd(tools: Tools) -> Iterator[Server]:
    """Started empty; on leaving, ended and its data removed."""
    require_influxd(tools.influxd)
    directory = tools.scratch / "influxd"
    local = LocalInflux(tools.influxd, directory)
    url = local.start()
    try:
        pid = local.running_pid()
        if pid is None:
            raise BenchError(f"influxd ended after its start; its log is {local.log_file}")
        yield Server(url, pid, directory, tools.influxd)
    finally:
        pid = local.running_pid()
        if pid is not None:
            os.kill(pid, signal.SIGCONT)  # a stopped process would not see SIGTERM
        local.stop()
        with suppress(FileNotFoundError):
            shutil.rmtree(directory)


def version(tools: Tools) -> str:
    return tools.shell.run([tools.influxd, "version"], 20).check("influxd").stdout.strip()
