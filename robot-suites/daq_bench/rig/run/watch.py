"""The telemetry of one run: the InfluxDB that takes it, the agents that watch the load, and the account that they close."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread

from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.bundle.telemetry_files import BMC, OWN, SUMMARY_FILE
from daq_bench.bench_model.evidence import telemetry_account
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.influx import Influx, InfluxError
from daq_bench.rig.run.candidate_session import CandidateSession
from daq_bench.rig.run.clean_up import CleanUp, Place
from daq_bench.rig.run.progress import announce_clean_up
from daq_bench.rig.telemetry.agent import Agent
from daq_bench.rig.telemetry.history import begin_line, judging_line
from daq_bench.rig.telemetry.influx_counts import counts_document
from daq_bench.rig.telemetry.influx_room import RAW_MAX, Bounds, Room, fullness
from daq_bench.rig.telemetry.influx_server import DEFAULT_PORT, LocalInflux
from daq_bench.rig.telemetry.remote_agent import RemoteAgent

TELL_AGAIN_S = 30.0
CLOSING_PHASE = "telemetry"  # by the event that begins it, alert rules know that the agent will be silent soon


class Watch:
    """`asked`: the InfluxDB that the users named, if any, and `problem`: why it takes no telemetry at present, if it does not."""

    def __init__(
        self,
        session: CandidateSession,
        bundle: Bundle,
        asked: Influx | None,
        problem: str | None,
        say: Callable[[str], None],
    ) -> None:
        self._session, self._bundle, self._problem, self._say = session, bundle, problem, say
        self.influx = asked
        self._watching: list[tuple[Agent | RemoteAgent, str]] = []  # each agent, and the error when it ends too early
        self._ended = Event()

    @property
    def has_begun(self) -> bool:
        return bool(self._watching)

    def reach_influx(self) -> Influx:
        """The users' server when they named one, else the bench's own on loopback; the run goes on without either."""
        if self.influx is not None:
            if self._problem:
                self._warn_of_influx(f"InfluxDB takes no telemetry at present ({self._problem})")
            return self.influx
        server = LocalInflux(self._session.layout.influxd, self._session.layout.influx_data)
        try:
            self.influx = Influx(server.start(), configured=False)
            self._make_room(server, self.influx.url)
        except (BenchError, OSError) as error:
            self._problem = f"InfluxDB could not be started ({in_words(error)})"
            self._warn_of_influx(self._problem)
            self.influx = Influx(f"http://127.0.0.1:{DEFAULT_PORT}", configured=False)
        return self.influx

    def tell_begin(self, influx: Influx) -> None:
        """Writes into the history that the run has begun: a killed one must not leave the verdict before it the newest.

        Where InfluxDB does not take it, it is told again until it does, or the run ends."""
        line = begin_line(self._bundle)
        try:
            if not self._problem:
                influx.write(influx.history, line)
                return
        except InfluxError as error:
            self._say(
                f"warning: InfluxDB's history does not know that the run has begun ({error}); it is told again each {TELL_AGAIN_S:.0f} s"
            )
        Thread(target=self._tell_until_taken, args=(influx, line), daemon=True).start()

    def _tell_until_taken(self, influx: Influx, line: str) -> None:
        while not self._ended.wait(TELL_AGAIN_S):
            with suppress(InfluxError):
                influx.write(influx.history, line)
                return

    def tell_end(self) -> None:
        """Writes into the history that the run is being judged: its agent is silent from here on. The verdict takes this point's place; a
        server that does not take it is told of there."""
        self._ended.set()
        if self.influx and self._bundle.run.telemetry:
            with suppress(InfluxError):
                self.influx.write(self.influx.history, judging_line(self._bundle))

    def _make_room(self, server: LocalInflux, url: str) -> None:
        """Deletes what the operator no longer wants to keep, and warns of a disk that fills; the run goes on with either."""
        try:
            done = Room(url, server.directory, self._bundle.path.parent).tidy(Bounds.of(), datetime.now(UTC))
            if done.kept:
                self._say(f"note: {done.kept}")
            if done.beyond_bytes:
                much = decimal_label(done.beyond_bytes)
                self._say(
                    f"warning: raw points in the bench's own InfluxDB take {much} more than {RAW_MAX} allows: a shard holds a day, and "
                    "those of today and of runs that are not sealed stay"
                )
        except BenchError as error:
            self._say(f"warning: {error}")
        found, remedy = fullness(server.directory)
        if remedy:
            self._say(f"warning: the bench's own InfluxDB takes {found}; {remedy}")

    def _warn_of_influx(self, problem: str) -> None:
        again = f"daq-bench replay runs/{self._bundle.id}"
        text = f"{problem}; telemetry stays in the bundle, and is delivered when it answers or by `{again}`"
        self._bundle.event("telemetry", "influxdb", text)
        self._say(f"warning: {text}")

    def begin(self, agent: Agent | RemoteAgent, influx: Influx, clean_up: CleanUp) -> None:
        """Starts the candidate's agent, then the one that reads the BMC from here where the first cannot."""
        agent.start()
        clean_up.add(Place.AGENT, partial(self._end, agent, influx))
        self._watching.append(
            (agent, "the telemetry agent ended during the run; see telemetry/agent.log in the bundle")
        )
        bmc = self._session.bmc_agent(self._bundle, influx)
        if bmc:
            clean_up.add(Place.BMC_AGENT, partial(self._end_bmc, bmc))
            bmc.start()
            text = "the BMC's telemetry agent ended during the run; see telemetry/bmc/agent.log in the bundle"
            self._watching.append((bmc, text))

    def demand_alive(self) -> None:
        """Raises BenchError for an agent that ended before the load."""
        for agent, error in self._watching:
            if not agent.alive():
                raise BenchError(error)

    def _end(self, agent: Agent | RemoteAgent, influx: Influx) -> None:
        """Ends the agent, and counts what InfluxDB holds only then: its last points are delivered as it ends."""
        announce_clean_up(self._bundle, CLOSING_PHASE, "delivering the last points and closing the account")
        stopped_utc = now_utc()
        try:
            status = agent.stop()
        except BenchError:
            agent.kill()
            raise
        self._bundle.write(telemetry_account.COUNTS, counts_document(influx, self._bundle, stopped_utc))
        self._session.forget_run(self._bundle)
        self._account(status, OWN)

    def _end_bmc(self, agent: Agent) -> None:
        self._account(agent.stop(), BMC)

    def _account(self, status: int, spool: Path) -> None:
        """Writes faults in an agent's end, or in the delivery of its spool, as events."""
        summary = self._bundle.read(f"{spool}/{SUMMARY_FILE}")
        if status != 0 or summary is None:
            text = f"the telemetry agent ended with status {status} and {'a' if summary else 'no'} summary; see {spool}/agent.log"
            self._bundle.event("telemetry", "agent", text)
        undelivered = summary["points"]["undelivered"] if summary else 0
        if undelivered:
            again = f"daq-bench replay runs/{self._bundle.id}"
            text = f"{undelivered} telemetry points are not in InfluxDB; the next run or `{again}` delivers them"
            self._bundle.event("telemetry", "agent", text)
            self._say(f"warning: {text}")
