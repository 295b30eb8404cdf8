"""The Robot Framework library `DaqBench`: suites of one's own with the bench's loads, checks and evidence."""

from __future__ import annotations

import copy
import inspect
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from robot import result as results
from robot import running
from robot.api import SkipExecution, logger
from robot.api.deco import keyword, library
from robot.errors import DataError
from robot.result import Result

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.nearest import nearest
from daq_bench.bench_model.base.units import KIB, MIB, binary_label, in_digits
from daq_bench.rig.suite import checks
from daq_bench.rig.suite.arguments import CONVERTERS, Duration, Size, Temperature, WithoutSensor, in_units
from daq_bench.rig.suite.session import Session, ending

RECORD, WRITE, SCAN, READ = "snb_record", "saturation", "block_scan", "read_scan"
NO_RUN = "no candidate is provisioned. Call Provision Candidate first, for example as the Suite Setup"
WRITE_BUDGET_BYTES = (
    10**15
)  # one account for all own suites of a target: the drives' owner is asked for consent instead
SCAN_SIZES = (4 * KIB, 64 * KIB, MIB, 8 * MIB)
HALF_A_SECOND, A_SECOND, TWO_SECONDS = Duration(0.5), Duration(1), Duration(2)
ITS_OWN = Temperature("nan")  # the warning temperature that each drive states
A_MIB, QUARTER_GIB, HALF_A_GIB = Size(MIB), Size(256 * MIB), Size(512 * MIB)


@library(scope="GLOBAL", version="1", doc_format="ROBOT", converters=CONVERTERS, auto_keywords=False)
class DaqBench:
    """Loads a storage server as a data-acquisition job does, and checks what it made of it.

    A suite of your own is a run like every other: it holds the candidate's lock, tunes the candidate and gives it back, watches it all
    the time, and leaves a run bundle with report below ``runs/``. The bundle is marked *own suite*: its outcome is INADMISSIBLE, because
    whoever wrote the suite chose the load. It shows you what a candidate does; only a scenario of the inventory qualifies one.

    = First suite =

    | ***** Settings *****
    | Library           DaqBench
    | Suite Setup       Provision Candidate
    | Suite Teardown    Restore Candidate
    |
    | ***** Test Cases *****
    | A Short Burst Is Stored Whole
    |     Record Burst    2 s
    |     No Superchunk Should Be Lost
    |     Read Back

    ``robot my.robot`` runs it, inside of a checkout that ``make setup`` has set up. Without arguments the candidate is this machine, on a
    scratch file, at a fiftieth of one readout unit's load.

    = What is guarded =

    - Nobody else can use the candidate meanwhile: a second run is refused.
    - A raw drive is written to only if the inventory gives it up; more than 40 GB on a machine's own file system, or more than one drive
      write, need ``yes=True``.
    - The candidate is given back when the suite ends, also when keywords fail, on Ctrl-C, and when Robot Framework is killed. ``daq-bench
      restore`` and the next run remove what is left if the bench itself is killed.

    One run holds each load once: ``Record Burst``, ``Write`` and ``Scan Block Sizes`` may each be called once between
    ``Provision Candidate`` and ``Restore Candidate``.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, *given: str, **named: str) -> None:
        """Takes no arguments: those that name a candidate are for `Provision Candidate`."""
        if given or named:
            raise _of_keyword([*(one.partition("=")[0] for one in given if "=" in one), *named])
        self.ROBOT_LIBRARY_LISTENER = self
        self._session: Session | None = None
        self._given_back = False
        self._refused: object = None  # the suite whose candidate could not be provisioned
        self._written: str | None = None  # the load whose data were written last
        self._write: dict[str, Any] = {}
        self._is_local = True
        self._suites: list[running.TestSuite] = []
        self._owner: running.TestSuite | None = None
        self._bodies: dict[str, results.TestCase] = {}

    # ---------------------------------------------------------------- keywords

    @keyword
    def provision_candidate(
        self,
        candidate: str = "this-machine",
        target: str | None = None,
        scale: float = 0.02,
        requirement: str | None = None,
        inventory: str | None = None,
        runs: str | None = None,
        directory: str | None = None,
        influx_url: str | None = None,
        yes: bool = False,
    ) -> str:
        """Takes the candidate's lock, checks and tunes the candidate, and begins to watch it. Returns the folder of the run bundle.

        ``candidate`` and ``target`` are names of ``inventory`` (``inventory/lab.yml``). ``scale`` is the share of one readout unit's
        load, 9.243 GB/s. ``requirement`` names the profile that `Requirement Should Be Met` takes its bounds from: an id of
        ``inventory/requirements``, or a YAML file of your own; without it the candidate's own choice. ``runs`` is the folder for
        bundles, ``directory`` a folder for the load instead of the inventory's, ``influx_url`` an InfluxDB of yours. ``yes=True`` agrees
        to more than 40 GB on a file system in other use, and to more than one drive write.

        | Provision Candidate
        | Provision Candidate    scale=0.1    requirement=block-scan
        | Provision Candidate    smc-01    target=scratch    inventory=/etc/daq/lab.yml    yes=True
        """
        if self._session is not None:
            raise AssertionError(
                "a candidate is provisioned already. Call Restore Candidate first; one suite makes one run"
            )
        request = {
            "candidate": candidate,
            "target": target,
            "scale": scale,
            "requirement": requirement,
            "inventory": _absolute(inventory),
            "runs": _absolute(runs),
            "target_directory": _absolute(directory),
            "influx_url": influx_url,
            "yes": yes,
        }
        owner = self._suites[-1] if self._suites else None
        title = f"Own suite {owner.full_name}" if owner else "Own suite"
        self._refused = owner or self
        with _in_words():
            self._session = Session(title, {name: value for name, value in request.items() if value is not None})
        self._refused = None
        self._owner, self._given_back, self._written, self._bodies = owner, False, None, {}
        self._tell()
        return str(self._session.bundle)

    @in_units
    @keyword
    def record_burst(
        self,
        duration: Duration = TWO_SECONDS,
        repetitions: int = 1,
        links: int | None = None,
        superchunk_rate_hz: float | None = None,
        block_size: Size | None = None,
        ring_size: Size | None = None,
    ) -> dict[str, Any]:
        """Records a supernova burst: ``links`` sources offer superchunks at their own pace, one writer stores them.

        Each record is read back whole before its file goes; `Read Back` says what was found. Omitted arguments are as in the shipped
        rehearsal (``inventory/scenarios/dune-snb.yml``): 10 links, 166 kHz times the run's scale, blocks of 8 MiB, rings of 64 MiB for
        each link. Returns ``results/snb_record.json`` as a dictionary.

        | Record Burst
        | Record Burst    5 s    repetitions=3
        | ${record}=    Record Burst    2 s    block_size=1 MiB
        | Log    ${record}[repetitions][0][minidaq][superchunks][offered]
        """
        parameters = {
            "links": links,
            "superchunk_rate_hz": superchunk_rate_hz,
            "block_size": block_size,
            "ring_size": ring_size,
        }
        return self._load(RECORD, parameters, {"duration_s": float(duration), "repetitions": repetitions})

    @in_units
    @keyword
    def write(self, size: Size = HALF_A_GIB, block_size: Size = A_MIB, io_depth: int = 4) -> dict[str, Any]:
        """Writes a fresh file, or a raw drive from its begin on, once and as fast as the target takes it.

        Samples every 10 ms show where the rate falls. Returns ``results/saturation.json`` as a dictionary.

        | Write
        | Write    2 GiB    block_size=128 KiB
        """
        parameters = {
            "span_size": size,
            "block_size": block_size,
            "io_depth": io_depth,
            "sample_s": 0.01,
            "purge": "discard",
            "cliff_free_size": block_size,
            "write_budget": WRITE_BUDGET_BYTES,
        }
        found = self._load(WRITE, parameters, {})
        self._write = {"file_size": size, "block_sizes": [block_size], "io_depths": [io_depth]}
        return found

    @in_units
    @keyword
    def read_back(self, duration: Duration = A_SECOND) -> dict[str, Any]:
        """Reads back what `Record Burst` or `Write` put on the target, and fails unless all of it is unchanged.

        After `Record Burst`: every superchunk was there once, in order and intact; the result is that of the record. After `Write`: an
        amount of the same size and block size is written anew, read for ``duration``, and each block compared with what was written.
        Returns the result as a dictionary.

        | Record Burst
        | Read Back
        """
        self._running()
        if self._written == RECORD:
            record = self._result(RECORD, "Record Burst")
            logger.info(f"{checks.read_back_whole(record)} superchunks were read back, each once, in order and intact")
            return record
        if self._written != WRITE:
            raise AssertionError("nothing was written that could be read back. Call Record Burst or Write first")
        parameters = {
            **self._write,
            "tools": ["daqwriter"],
            "patterns": ["sequential"],
            "jobs": [1],
            "seconds_per_point": max(1.0, float(duration)),
            "ramp_s": 0,
        }
        return self._load(READ, parameters, {})

    @in_units
    @keyword
    def scan_block_sizes(
        self,
        *block_sizes: Size,
        seconds_per_point: Duration = HALF_A_SECOND,
        file_size: Size = QUARTER_GIB,
        io_depth: int = 8,
        repetitions: int | None = None,
        seconds_per_repetition: Duration = A_SECOND,
    ) -> dict[str, Any]:
        """Writes sequentially with each block size for ``seconds_per_point``, and measures rate and latency.

        Without block sizes: 4 KiB, 64 KiB, 1 MiB and 8 MiB. ``repetitions`` measures sizes of 8 MiB and more so often again, which is
        what a requirement on ``block_scan.large_block_throughput`` is decided by. Returns ``results/block_scan.json`` as a dictionary.

        | Scan Block Sizes
        | Scan Block Sizes    4 KiB    1 MiB    16 MiB    seconds_per_point=2 s    file_size=1 GiB
        | Scan Block Sizes    1 MiB    8 MiB    repetitions=6
        """
        confirm = {"repetitions": repetitions, "seconds_per_repetition": float(seconds_per_repetition)}
        parameters = {
            "block_sizes": sorted(set(block_sizes or SCAN_SIZES)),
            "seconds_per_point": float(seconds_per_point),
            "file_size": file_size,
            "io_depth": io_depth,
            "confirm": confirm if repetitions else None,
        }
        found = self._load(SCAN, parameters, {})
        for point in found["points"]:
            rate = f"{in_digits(point['throughput_bytes_per_s'] / 1e9)} GB/s"
            logger.info(f"{binary_label(point['block_bytes'])}: {point['reason'] or rate}")
        return found

    @in_units
    @keyword
    def drive_temperature_should_stay_below(
        self, limit: Temperature = ITS_OWN, without_sensor: WithoutSensor = WithoutSensor.FAIL
    ) -> float | None:
        """Fails if a drive of the target has reached ``limit`` at any moment of the run so far. Returns the highest temperature, degC.

        Without ``limit`` it is the warning temperature that the drive states itself. A drive that has no sensor shows nothing: the
        keyword then fails, or skips the test with ``without_sensor=SKIP``.

        | Drive Temperature Should Stay Below    70 degC
        | Drive Temperature Should Stay Below
        | Drive Temperature Should Stay Below    60 degC    without_sensor=SKIP
        """
        with _in_words():
            try:
                found = checks.temperature_below(self._bundle(), None if limit is ITS_OWN else float(limit))
            except checks.NoReadingError as error:
                if without_sensor is WithoutSensor.SKIP:
                    raise SkipExecution(str(error)) from None
                raise
        logger.info(f"the highest temperature was {found:g} degC")
        return found

    @keyword
    def no_superchunk_should_be_lost(self) -> int:
        """Fails if a superchunk that `Record Burst` offered was not stored. Returns how many were.

        | Record Burst    2 s
        | No Superchunk Should Be Lost
        """
        offered = checks.no_superchunk_lost(self._result(RECORD, "Record Burst"))
        logger.info(f"all of {offered} superchunks were stored")
        return offered

    @keyword
    def requirement_should_be_met(self, identifier: str) -> str:
        """Fails unless the evidence so far meets a requirement of the run's profile, by the bench's own statistics.

        Missed, undecided (too little data) and not measured all fail, each with its reason. A bound that scales with the load is held at
        the run's scale. Returns the sentence with number and bound.

        | Requirement Should Be Met    SNB-01
        """
        with _in_words():
            found = checks.requirement(self._bundle(), identifier)
        logger.info(found)
        return found

    @keyword
    def telemetry_should_have_no_gap(self) -> None:
        """Fails if a collector of the telemetry was silent for so long that a dip could hide there.

        During the run it waits for the agent's next account, which comes every 10 s. Behind SSH the candidate's account is known after
        `Restore Candidate`.

        | Telemetry Should Have No Gap
        """
        with _in_words():
            checks.no_telemetry_gap(self._bundle(), self._is_local)

    @keyword
    def restore_candidate(self) -> None:
        """Gives the candidate back: ends the telemetry, removes the scratch files, puts the tuning back, releases the lock.

        Checks may still follow; loads may not. The run is judged and sealed when the suite ends that provisioned the candidate. A suite
        that does not call this keyword gives the candidate back at its end all the same.

        Fails where `Provision Candidate` was never called: nothing was tuned or watched, and the suite measured nothing. Where
        `Provision Candidate` failed it passes with a note, since that failure is told already.

        | Suite Teardown    Restore Candidate
        """
        if self._session is None and self._refused is None:
            raise AssertionError(f"there is nothing to give back: {NO_RUN}")
        if self._session is None:
            logger.info("Provision Candidate failed: there is nothing to give back")
            return
        self._give_back(self._session)

    # ---------------------------------------------------------------- the run

    def _running(self) -> Session:
        if self._session is None:
            raise AssertionError(NO_RUN)
        return self._session

    def _load(self, workload: str, parameters: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
        session = self._running()
        if self._given_back:
            raise AssertionError("the candidate was given back already: no load can follow Restore Candidate")
        try:
            with _in_words():
                found = session.ask("load", workload=workload, parameters=parameters, top=top)
        finally:
            self._tell()
        if workload in (RECORD, WRITE):
            self._written = workload
        return found

    def _bundle(self) -> Path:
        return self._running().bundle

    def _result(self, workload: str, name: str) -> dict[str, Any]:
        with _in_words():
            found = checks.result_of(self._bundle(), workload)
        if found is None:
            raise AssertionError(f"nothing was recorded yet. Call {name} first")
        return found

    def _give_back(self, session: Session) -> None:
        if self._given_back:
            return
        self._given_back = True
        try:
            with _in_words():
                session.ask("restore")
        finally:
            self._tell()

    def _tell(self) -> None:
        if self._session and self._session.said.strip():
            logger.info(self._session.said)
            self._session.said = ""

    def _end(self, suite: results.TestSuite | None) -> None:
        """Lets the run be judged, whatever became of the suite, and says where its bundle is."""
        session = self._session
        if session is None:
            return
        with tempfile.TemporaryDirectory(prefix="daq-bench-output-") as folder:
            output = Path(folder) / "output.xml" if suite is not None else None
            if suite is not None:
                Result(suite=self._whole(suite)).save(output)
            try:
                if session.final is None:
                    self._give_back(session)
            except AssertionError as error:
                logger.error(f"DaqBench: {error}")
            try:
                session.end(output)
            except BenchError as error:
                logger.error(f"DaqBench: {error}")
            session.wait()
        self._session, self._owner = None, None
        logger.console(f"\nDaqBench: {ending(session.final or {})}")

    def _whole(self, suite: results.TestSuite) -> results.TestSuite:
        """The suite with its tests' keywords, which Robot Framework forgets when a test has ended."""
        found: results.TestSuite = suite.deepcopy()
        for test in found.all_tests:
            if test.id in self._bodies:
                test.body = self._bodies[test.id].body
        return found

    # ---------------------------------------------------------------- listener

    def start_suite(self, data: running.TestSuite, result: results.TestSuite) -> None:
        self._suites.append(data)

    def end_suite(self, data: running.TestSuite, result: results.TestSuite) -> None:
        if self._suites:
            self._suites.pop()
        if self._refused is data:
            self._refused = None
        if self._session is not None and data is self._owner:
            self._end(result)

    def start_test(self, data: running.TestCase, result: results.TestCase) -> None:
        self._note(data, f"begin: {data.name}", {})

    def end_test(self, data: running.TestCase, result: results.TestCase) -> None:
        if self._session is not None:
            self._bodies[result.id] = copy.deepcopy(result)
        message = f": {result.message}" if result.message else ""
        self._note(data, f"{result.status}: {data.name}{message}", {"status": result.status})

    def _note(self, data: running.TestCase, text: str, more: dict[str, str]) -> None:
        session = self._session
        if session is not None and session.final is None:
            try:
                session.ask("event", source=data.parent.name if data.parent else "robot", text=text, data=more)
            except BenchError as error:
                logger.error(f"DaqBench: {error}")

    def close(self) -> None:
        """Robot Framework is done with the library: a run whose suite could not end it ends now."""
        self._end(None)


def _of_keyword(names: Sequence[str]) -> DataError:
    """The refusal of an argument of the library, with the keyword that may have been meant."""
    known = list(inspect.signature(DaqBench.provision_candidate).parameters)[1:]
    name = names[0] if names else ""
    given = f"{name!r}" if name else "some"
    words = f"Library DaqBench takes no arguments, and was given {given}"
    if name and name not in known:
        return DataError(f"{words}. Arguments of a run are for the keyword Provision Candidate. {nearest(name, known)}")
    return DataError(f"{words}. Name the candidate in the keyword: Provision Candidate    {name or 'candidate'}=...")


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().resolve())


@contextmanager
def _in_words() -> Iterator[None]:
    """A complaint of the bench as Robot Framework shows it best: the sentence alone."""
    try:
        yield
    except BenchError as error:
        raise AssertionError(str(error)) from None
