"""Many telemetry agents on one machine: `python -m daq_bench.telemetry_bench.fleet CONFIG.json` runs each in a process of its own,
with the agent's real encoder, spool, cursor and delivery; only the readings are replayed. It prints `started` with the monotonic time of
the first sample, and at the end, as JSON, how the sums over all agents moved and what became of each agent.

Each has a process of its own, forked from one that has everything loaded: its memory can be measured, and the agents contend only
for the server, as agents on different machines would, and for this machine's CPUs."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.delivery.delivery import Delivery
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter
from daq_bench.telemetry_agent.spool.cursor import Cursor
from daq_bench.telemetry_agent.spool.spool import Spool
from daq_bench.telemetry_bench.simulated_server import readings

STEPS = 10  # replayed one after the other, again and again
SERIES_S = 0.25
DRAIN_POLL_S = 0.1
NAMES = ("collected", "spooled", "delivered", "rejected", "skipped_ticks", "memory_bytes", "cpu_us")
SLOT = struct.Struct(f"{len(NAMES)}q")
START = struct.Struct("d")
READY_S_MAX, READY_POLL_S, HEAD_START_S = 60.0, 0.05, 0.5


@dataclass(frozen=True)
class Fleet:
    """The settings of a fleet. Each agent samples every `period_s` for `sampling_s`, then delivers what is left for `drain_s` at most."""

    url: str
    database: str
    run: str
    agents: int
    period_s: float
    sampling_s: float
    drain_s: float
    directory: str
    seed: int = 1


def host_name(number: int) -> str:
    return f"candidate-{number:03d}"


class Account:
    """Memory that agents write to, one slot each, and their parent reads; at its end the parent writes when to begin."""

    def __init__(self, agents: int) -> None:
        self._memory = mmap.mmap(-1, agents * SLOT.size + START.size)
        self._agents = agents

    def begin_at(self, monotonic_s: float) -> None:
        START.pack_into(self._memory, self._agents * SLOT.size, monotonic_s)

    def begins_at(self) -> float | None:
        """The time to begin; None: not yet known."""
        monotonic_s: float = START.unpack_from(self._memory, self._agents * SLOT.size)[0]
        return monotonic_s or None

    def store(self, number: int, values: Sequence[int]) -> None:
        SLOT.pack_into(self._memory, number * SLOT.size, *values)

    def slots(self) -> list[dict[str, int]]:
        rows = (SLOT.unpack_from(self._memory, number * SLOT.size) for number in range(self._agents))
        return [dict(zip(NAMES, row, strict=True)) for row in rows]


class SimulatedAgent:
    """One agent: the real parts, and a clock that says which of the recorded seconds is next."""

    def __init__(self, fleet: Fleet, number: int, steps: Sequence[Sequence[Point]], account: Account) -> None:
        directory = Path(fleet.directory) / f"agent-{number:03d}"
        self._fleet, self._number, self._steps, self._account = fleet, number, steps, account
        self._encoder = Encoder({"host": host_name(number), "run": fleet.run})
        self._spool = Spool(directory)
        self._cursor = Cursor(directory, self._spool.size_bytes)
        writer = InfluxWriter(Destination(fleet.url, fleet.database))
        self._delivery = Delivery(self._spool.path, self._cursor, writer, lambda: self._spool.size_bytes)
        self._skipped = 0

    def live(self, parent: int) -> None:
        """Samples at absolute deadlines, each agent a little after the one before, as agents that know nothing of each other."""
        fleet = self._fleet
        self._delivery.start()
        self._tell()  # ready
        while (started_s := self._account.begins_at()) is None:
            if os.getppid() != parent:
                return
            time.sleep(READY_POLL_S)
        epoch_s = started_s + fleet.period_s * self._number / fleet.agents
        number = 0
        while number * fleet.period_s < fleet.sampling_s and os.getppid() == parent:
            late_s = time.monotonic() - epoch_s - number * fleet.period_s
            if late_s < 0:
                time.sleep(-late_s)
            skipped = int(late_s / fleet.period_s) if late_s > 0 else 0
            self._skipped += skipped
            number += skipped
            self._sample(number)
            number += 1
        self._drain(parent)

    def _sample(self, number: int) -> None:
        now_ns = time.time_ns()
        points = self._steps[number % len(self._steps)]
        self._spool.put([self._encoder.encode(point._replace(time_ns=now_ns)) for point in points])
        self._tell()

    def _drain(self, parent: int) -> None:
        self._spool.close()
        until_s = time.monotonic() + self._fleet.drain_s
        while self._cursor.offset < self._spool.size_bytes and time.monotonic() < until_s and os.getppid() == parent:
            self._tell()
            time.sleep(DRAIN_POLL_S)
        self._delivery.stop(DRAIN_POLL_S)
        self._cursor.close()
        self._spool.release()
        self._tell()

    def _tell(self) -> None:
        spool, cursor = self._spool, self._cursor
        times = os.times()
        self._account.store(
            self._number,
            (
                spool.collected_points,
                spool.spooled_points,
                cursor.delivered_points,
                cursor.rejected_points,
                self._skipped,
                peak_memory_bytes(),
                int(1e6 * (times.user + times.system)),
            ),
        )


def peak_memory_bytes() -> int:
    """VmHWM. It includes the memory that a forked process shares with its parent at its start."""
    with Path("/proc/self/status").open(encoding="ascii") as stream:
        for line in stream:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def child(fleet: Fleet, number: int, steps: Sequence[Sequence[Point]], account: Account, parent: int) -> NoReturn:
    """An agent's whole life; ends the process."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        SimulatedAgent(fleet, number, steps, account).live(parent)
        status = 0
    except BaseException:  # the boundary of the forked process: no code of the parent may run after it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def fields_of(steps: Sequence[Sequence[Point]]) -> dict[str, str]:
    """For each measurement a field that all its points have, by which they are counted."""
    common: dict[str, set[str]] = {}
    for point in (point for step in steps for point in step):
        common[point.measurement] = common.get(point.measurement, set(point.fields)) & set(point.fields)
    return {measurement: min(fields) for measurement, fields in common.items()}


def run(fleet: Fleet) -> dict[str, Any]:
    """Forks the agents, watches them to their end, and returns what they did."""
    steps = readings(Path(fleet.directory) / "server", STEPS, fleet.seed)
    account = Account(fleet.agents)
    pids: set[int] = set()
    parent = os.getpid()
    try:
        for number in range(fleet.agents):
            pid = os.fork()
            if pid == 0:
                child(fleet, number, steps, account, parent)
            pids.add(pid)
        failed = await_ready(account, pids)
        started_s = time.monotonic() + HEAD_START_S
        account.begin_at(started_s)
        points = sum(len(step) for step in steps) / len(steps)
        print(json.dumps({"started_s": started_s, "points_per_sample": points}), flush=True)
        series = []
        while pids:
            slots = account.slots()
            series.append([time.monotonic(), *(sum(slot[name] for slot in slots) for name in NAMES[:4])])
            failed += reap(pids)
            time.sleep(SERIES_S)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
    return {
        "series_columns": ["monotonic_s", *NAMES[:4]],
        "series": series,
        "agents": account.slots(),
        "failed_agents": failed,
        "fields": fields_of(steps),
    }


def await_ready(account: Account, pids: set[int]) -> int:
    """Waits until all agents could begin, so that no agent begins late; returns how many have failed already."""
    until_s, failed = time.monotonic() + READY_S_MAX, 0
    while not failed and any(slot["memory_bytes"] == 0 for slot in account.slots()):
        if time.monotonic() > until_s:
            raise RuntimeError(f"the simulated agents were not ready within {READY_S_MAX:g} s")
        failed += reap(pids)
        time.sleep(READY_POLL_S)
    return failed


def reap(pids: set[int]) -> int:
    """Takes those that have ended out of `pids`; returns how many of them failed."""
    failed = 0
    while pids:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return failed
        pids.discard(pid)
        failed += status != 0
    return failed


def main() -> int:
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # also where SIGINT was ignored at the start, as a shell's background jobs do
        signal.signal(number, signal.default_int_handler)
    fleet = Fleet(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print(json.dumps(run(fleet)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
