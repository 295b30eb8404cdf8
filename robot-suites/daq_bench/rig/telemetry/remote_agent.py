"""The telemetry agent on a candidate behind SSH: a systemd service there, which the telemetry role installs and the rig starts and stops.

While it runs, its spool is mirrored into the bundle, so that a candidate that dies leaves its telemetry up to that moment; at the end it is
fetched whole. The bench's own events are carried over to the agent, which is the one way to InfluxDB (docs/adr/0001)."""

from __future__ import annotations

import contextlib
import ipaddress
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.influx import Influx
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.base.terminal import printable, printable_lines
from daq_bench.rig.candidate.answers import Mirror
from daq_bench.rig.candidate.machine import Places, SshMachine
from daq_bench.rig.telemetry.agent import DRAIN_S, PERIOD_S
from daq_bench.rig.telemetry.write_relay import WriteRelay

UNIT = "daq-bench-agent.service"
READY_S_MAX = 60.0
STOP_S_MAX = DRAIN_S + 60.0
CARRY_EVERY_S = 1.0
SPOOL_FILES = ("points.lp", "summary.json", "cursor.json", "workload.lp")


def is_on_our_loopback(influx: Influx) -> bool:
    host = urlsplit(influx.url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def influx_through(machine: SshMachine, relay: WriteRelay, influx: Influx) -> Influx:
    """Returns InfluxDB as the candidate sees it: the relay, on a port of its own loopback that leads here through the SSH link.

    A candidate whose sshd forwards no port reaches an InfluxDB elsewhere directly. Raises BenchError where it is on our loopback."""
    try:
        port = machine.link.forward_back("127.0.0.1", relay.port)
    except BenchError as error:
        if is_on_our_loopback(influx):
            raise
        print(f"{printable(str(error))}: it writes to {influx.url} itself, with the writer's token", file=sys.stderr)
        return influx
    return relay.seen_from(f"http://127.0.0.1:{port}")


def agent_arguments(
    places: Places, influx: Influx, tags: Mapping[str, str], period_s: float = PERIOD_S, options: Sequence[str] = ()
) -> list[str]:
    """The agent's command line on the candidate, which the telemetry role writes into its unit."""
    return [
        "run",
        f"--spool-dir={places.telemetry}",
        *influx.agent_arguments,
        f"--period={period_s:g}",
        f"--drain-seconds={DRAIN_S:g}",
        f"--workload-file={places.workload_file}",
        *options,
        *(f"--tag={key}={value}" for key, value in tags.items()),
    ]


def end_service(machine: SshMachine) -> None:
    """Ends the agent of a bench that was killed, so that its spool is closed. Raises BenchError when it does not end."""
    if machine.run(["systemctl", "--quiet", "is-active", UNIT], timeout_s=30).returncode == 0:
        machine.run(["systemctl", "stop", UNIT], timeout_s=STOP_S_MAX).check("ending the agent of a killed run")


class RemoteAgent:
    """The same life as `rig.telemetry.agent.Agent`: start, alive, stop."""

    def __init__(self, machine: SshMachine, places: Places, bundle: Bundle) -> None:
        self._machine, self._places, self._bundle = machine, places, bundle
        self._carrier = EventCarrier(machine, bundle.workload_file, places.workload_file)
        self._mirror: Mirror | None = None

    @property
    def _spool(self) -> Path:
        return self._bundle.path / "telemetry"

    def start(self) -> None:
        """Returns once the agent collects. Raises BenchError when it does not come up."""
        self._machine.append(self._places.workload_file, "")
        self._systemctl("start", timeout_s=READY_S_MAX).check("starting the telemetry agent on the candidate")
        deadline = time.monotonic() + READY_S_MAX
        while self._machine.run(["test", "-e", self._places.telemetry / "summary.json"], timeout_s=30).returncode != 0:
            if not self.alive() or time.monotonic() > deadline:
                raise BenchError(f"the telemetry agent did not start on the candidate: {self._log().strip()[-500:]}")
            time.sleep(0.2)
        argv = ["tail", "--lines=+1", "--follow=name", "--retry", str(self._places.telemetry / "points.lp")]
        self._mirror = self._machine.link.stream(argv, self._spool / "points.lp")
        self._carrier.start()

    def _systemctl(self, *words: str, timeout_s: float) -> Completed:
        return self._machine.run(["systemctl", *words, UNIT], timeout_s=timeout_s)

    def _log(self) -> str:
        argv = ["journalctl", "--no-pager", "--output=cat", "--lines=1000", f"--unit={UNIT}"]
        return self._machine.run(argv, timeout_s=60).stdout

    def alive(self) -> bool:
        return self._machine.run(["systemctl", "--quiet", "is-active", UNIT], timeout_s=30).returncode == 0

    def stop(self) -> int:
        """Lets the agent finish, fetches its spool; returns its exit status. Raises BenchError when the candidate is gone."""
        try:
            self._carrier.stop()
            self._systemctl("stop", timeout_s=STOP_S_MAX)
            # Before the fetch: both write points.lp, and what is fetched is the last word (its oldest part may be thinned).
            self._end_mirror()
            self._fetch()
            shown = self._machine.run(
                ["systemctl", "show", "--property=ExecMainStatus", "--value", UNIT], timeout_s=30
            ).stdout.strip()
            return int(shown) if shown.isdigit() else 1
        finally:
            self._end_mirror()

    def _fetch(self) -> None:
        for name in SPOOL_FILES:
            self._machine.fetch(self._places.telemetry / name, self._spool / name)
        (self._spool / "agent.log").write_text(printable_lines(self._log()), encoding="utf-8")

    def _end_mirror(self) -> None:
        if self._mirror is not None:
            self._mirror.end()
        self._mirror = None

    def kill(self) -> None:
        """Ends only the processes that run here, for a candidate that answers no more."""
        self._carrier.abandon()
        self._end_mirror()


class EventCarrier:
    """Appends what the bench writes into its own line-protocol file to the one on the candidate, from a thread."""

    def __init__(self, machine: SshMachine, local: Path, remote: Path) -> None:
        self._machine, self._local, self._remote = machine, local, remote
        self._offset = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="event-carrier", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Carries the rest. Raises BenchError when the candidate does not take it."""
        self.abandon()
        self._carry()

    def abandon(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        while not self._stop.wait(CARRY_EVERY_S):
            # A link that is down for a moment: the lines stay in our file and go over with the next turn.
            with contextlib.suppress(BenchError):
                self._carry()

    def _carry(self) -> None:
        with self._local.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        if whole:
            self._machine.append(self._remote, whole.decode("utf-8"))
            self._offset += len(whole)
