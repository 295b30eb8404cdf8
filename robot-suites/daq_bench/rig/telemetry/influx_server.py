"""A local InfluxDB 1.8 on loopback: started once, left running as the live view and the history, stopped by its pid."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.candidate_kit.influxql import duration_s, name_in
from daq_bench.rig.base.influx import DATABASE
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import environment_for_children

DEFAULT_PORT = 8086
START_S_MAX = 30.0
STOP_S_MAX = 60.0  # [P] it closes its shards and syncs its log
FOR_EVER = "INF"
MADE_BY_ITSELF = "autogen"  # the policy of a database that was created without naming one

# Every listener is bound to loopback, the RPC port too; nothing is reported to the vendor. The folders are those of the folder that the
# server stands in, so that they follow it when the checkout is moved. [data] is as in the role's template (ansible/roles/influxdb): the
# index is on disk, and no number of series ends writes. Shards from before that keep their index in memory.
CONFIG = """\
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"

[meta]
  dir = "meta"

[data]
  dir = "data"
  wal-dir = "wal"
  index-version = "tsi1"
  series-id-set-cache-size = 100
  max-series-per-database = 0
  max-values-per-tag = 0
  query-log-enabled = false

[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false

[monitor]
  store-enabled = false
"""


@dataclass(frozen=True)
class LocalInflux:
    """The server binary `influxd` and the folder that holds its data, configuration, log, pid and port."""

    influxd: Path
    directory: Path

    @property
    def _pid_file(self) -> Path:
        return self.directory / "influxd.pid"

    @property
    def _url_file(self) -> Path:
        return self.directory / "url"

    @property
    def log_file(self) -> Path:
        return self.directory / "influxd.log"

    def running_url(self) -> str | None:
        """The server's address when the process that we started is alive, else None."""
        pid = self._pid()
        return self._url_file.read_text(encoding="ascii").strip() if pid and self._url_file.exists() else None

    def running_pid(self) -> int | None:
        """Our server's process id while it runs, for those who measure it."""
        return self._pid()

    def _pid(self) -> int | None:
        """Our server's pid; None when it has ended, or the pid belongs to another program or to the server of another folder.

        A server stands in its folder. The kernel follows a folder that is moved; a copy of it, with the same pid in it, is another one."""
        try:
            pid = int(self._pid_file.read_text(encoding="ascii"))
            process = Path("/proc") / str(pid)
            ours = (process / "exe").readlink().name.startswith("influxd") and (process / "cwd").samefile(
                self.directory
            )
        except (OSError, ValueError):
            return None
        return pid if ours else None

    def start(self, port: int = DEFAULT_PORT) -> str:
        """Starts the server, or finds it running; returns its URL. Another program on `port` makes it take the next free one.

        Runs of several candidates begin at the same moment: one of them starts the server, the others wait until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "starting").open("a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            running = self.running_url()
            if running:
                create_database(running, DATABASE)
                return running
            return self._start(port)

    def _start(self, port: int) -> str:
        http_port = free_port(port)
        url = f"http://127.0.0.1:{http_port}"
        config = self.directory / "influxdb.conf"
        config.write_text(CONFIG.format(port=http_port, rpc_port=free_port(http_port + 1)), encoding="utf-8")
        with self.log_file.open("ab") as log:
            process = subprocess.Popen(
                [self.influxd.absolute(), "-config", config.name],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment_for_children(),
            )
        self._url_file.write_text(url, encoding="ascii")
        self._pid_file.write_text(str(process.pid), encoding="ascii")
        self._wait_until_ready(url, process)
        create_database(url, DATABASE)
        return url

    def _wait_until_ready(self, url: str, process: subprocess.Popen[bytes]) -> None:
        from influxdb_client import InfluxDBClient  # type: ignore[attr-defined]  # when it is needed, as in rig.telemetry.history

        deadline = time.monotonic() + START_S_MAX
        with InfluxDBClient(url=url, token="", org="") as client:
            while not client.ping():
                if process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise BenchError(
                        f"InfluxDB did not come up at {url} within {START_S_MAX:.0f} s; its log is {self.log_file}"
                    )
                time.sleep(0.1)

    def stop_with_the_unit(self) -> None:
        """Ends the server where a service of systemd, ours, started it: with the service systemd kills what is left in it, unasked. A
        server that was started elsewhere, by hand or by another unit, goes on."""
        if (
            "INVOCATION_ID" in os.environ
            and (pid := self._pid()) is not None
            and group_of(pid) == group_of(os.getpid())
        ):
            self.finish()

    def finish(self) -> bool:
        """Ends the server, and makes the values of a minute before, which it makes each half hour and would never make of what came since.
        False when there was no server. Raises BenchError, when it is ended, for values that could not be made."""
        url = self.running_url()
        try:
            if url:
                make_minutes(url, DATABASE, time.time())
        finally:
            ended = self.stop()
        return ended

    def stop(self) -> bool:
        """Ends the server that we started; False when there was none."""
        pid = self._pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_S_MAX
        while self._pid() == pid and time.monotonic() < deadline:
            _reap(pid)
            time.sleep(0.05)
        if self._pid() == pid:
            os.kill(pid, signal.SIGKILL)
            _reap(pid)
        self._pid_file.unlink(missing_ok=True)
        return True


def create_database(url: str, name: str) -> list[str]:
    """Brings the database `name` to the state that the role `influxdb` sets up; returns the differences that there were, one line each. Its
    policy of raw points has no end, since not the server deletes them here, but `influx_room`, which spares a run that is not sealed. What
    it finds right it leaves alone: it may be entered twice, or after an end between two statements. Raises BenchError with InfluxDB's own
    words.

    A database from before the bench named its policies keeps its points where they are: its `autogen` is the policy of raw points."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import InfluxError, influxql
    from ansible.module_utils.bench_influx_storage import differences

    ask = partial(influxql, url, "")
    try:
        found = differences(ask, _storage(ask, name))
        for _, statements in found:
            for statement in statements:
                ask(statement)
    except InfluxError as error:
        raise BenchError(f"InfluxDB at {url} did not set up the database {name!r}: {error}") from None
    return [text for text, _ in found]


def _storage(ask: Callable[[str], list[dict[str, Any]]], name: str) -> Any:
    """The description of the database, with the policy in which its raw points are."""
    from ansible.module_utils.bench_influx_storage import Storage

    wanted = Storage(database=name, retention=FOR_EVER)
    if name in [row["name"] for row in ask("SHOW DATABASES")]:
        there = [row["name"] for row in ask(f"SHOW RETENTION POLICIES ON {name_in(name)}")]
        if wanted.raw not in there and MADE_BY_ITSELF in there:
            return replace(wanted, raw=MADE_BY_ITSELF)
    return wanted


def make_minutes(url: str, name: str, now_s: float) -> None:
    """Makes the values of a minute of as long a time as the continuous queries look back. Raises BenchError with InfluxDB's own words."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import InfluxError, influxql
    from ansible.module_utils.bench_influx_storage import MEASUREMENTS

    ask = partial(influxql, url, "")
    try:
        storage = _storage(ask, name)
        begin_s = int(now_s) - duration_s(storage.downsampled_late)
        for measurement in MEASUREMENTS:
            ask(storage.downsampling(measurement, begin_s))
    except InfluxError as error:
        raise BenchError(f"InfluxDB at {url} did not make the values of the last minutes: {error}") from None


def group_of(pid: int) -> str | None:
    """The control groups of a process; None when it has ended."""
    try:
        return (Path("/proc") / str(pid) / "cgroup").read_text(encoding="utf-8")
    except OSError:
        return None


def _reap(pid: int) -> None:
    """Collects the exit status when the server is a child of this very process, so that it does not stay a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def free_port(first: int) -> int:
    """The first port from `first` on that nothing listens on at 127.0.0.1."""
    for port in range(first, first + 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise BenchError(f"no free port on 127.0.0.1 from {first} to {first + 199}. Stop what listens there")
