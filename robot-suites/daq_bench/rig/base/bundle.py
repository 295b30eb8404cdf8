"""The run bundle `runs/<run-id>/`: the source of truth of one run. Files appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from daq_bench.bench_model.base.errors import BenchError, RefusedError, in_words
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.bench_model.bundle import files as bundle_files
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Kind, Struct, as_document, checked, utc_text
from daq_bench.rig.base import event_lines

RUN = "run.json"
FOLDERS = ("facts", "results/raw", "telemetry", "robot", "profiles")


def now_utc() -> str:
    """`2026-01-31T12:00:00.123Z`."""
    return utc_text(_now())


def _now() -> datetime:
    return datetime.now(UTC)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Writes `path`, whole or not at all. Raises OSError that names `path`, also where the system names none (a full disk)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        replace_file(path, content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def to_json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


class Bundle:
    """One run's folder. `now`: the clock that events are stamped by, which in a simulated run is the model's."""

    def __init__(self, path: Path, run: Run | None = None, now: Callable[[], datetime] = _now) -> None:
        self.path, self._run, self._now = path, run, now
        self.told: Callable[[str], str] = str  # what a vendor may read of a message

    @property
    def run(self) -> Run:
        """run.json as this process last read or wrote it."""
        if self._run is None:
            raise BenchError(f"{self.path} has no run.json yet")
        return self._run

    @staticmethod
    def create(runs: Path, candidate: str, target: str, scenario: str, now: Callable[[], datetime] = _now) -> Bundle:
        """Creates an empty bundle; its id holds the time, the candidate, its target (empty: its only one) and the scenario.

        Raises RefusedError where a run by that id is there."""
        stamp = now().strftime("%Y%m%dT%H%M%SZ")
        bundle = Bundle(runs / "-".join(filter(None, (stamp, candidate, target, scenario))), now=now)
        try:
            bundle.path.mkdir(parents=True)
        except FileExistsError:
            raise RefusedError(f"{bundle.path} is another run, which began in this very second. Begin again") from None
        for folder in FOLDERS:
            (bundle.path / folder).mkdir(parents=True)
        point_latest(runs, bundle.path.name)
        return bundle

    @staticmethod
    def open(path: Path) -> Bundle:
        """Opens an existing bundle. Raises BenchError when `path` holds no bundle, or a damaged run.json."""
        run, why = None, ""
        try:
            run = bundle_files.find_struct(path.resolve(), RUN, Run) if path.is_dir() else None
        except OSError as error:
            why = f"run.json: {in_words(error)}"
        if run is None:
            bundle_files.refuse_no_bundle(path, why)
        return Bundle(path.resolve(), run)

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def events_file(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def workload_file(self) -> Path:
        """Line protocol of the running workload and of the bench's events, which the agent carries to InfluxDB."""
        return self.path / "telemetry" / "workload.lp"

    def begin(self, run: Run) -> None:
        """Writes the first run.json."""
        self.write(RUN, run)
        self._run = run

    def save_run(self, **changes: Any) -> None:
        """Updates run.json."""
        self.begin(msgspec.structs.replace(self.run, **changes))

    def write(self, name: str, document: object) -> Path:
        """Writes a document. Raises BenchError for one that is not of its own type: nothing is stored then."""
        path = self.path / name
        write_atomically(path, to_json(checked(document) if isinstance(document, Struct) else document))
        return path

    def find(self, name: str, kind: type[Kind]) -> Kind | None:
        """The document `name` as its type, or None when the run never wrote it. Raises BenchError when it cannot be read."""
        return bundle_files.find_struct(self.path, name, kind)

    def read(self, name: str) -> dict[str, Any] | None:
        """Returns the JSON document `name`, or None when the run never wrote it. Raises BenchError when it cannot be read."""
        return bundle_files.find_document(self.path, name)

    def event(self, kind: str, source: str, text: str, **data: Any) -> int:
        """Appends one event (time, kind, source, text, data) to events.jsonl, and to the telemetry as an annotation.

        A phase ends the one before. Returns the event's time, ns since 1970 UTC, for the `span` that may follow."""
        moment = self._now()
        nanoseconds = int(moment.timestamp() * 1e6) * 1000
        if kind == "phase":
            self.end_phase(nanoseconds)
        text = self.told(text)
        record = Event(utc_text(moment), kind, source, text, data)
        _append(self.events_file, json.dumps(as_document(record), ensure_ascii=False))
        _append(self.workload_file, event_lines.moment_line(self.id, kind, source, text, nanoseconds))
        return nanoseconds

    def span(self, kind: str, source: str, text: str, begin_ns: int, end_ns: int | None = None) -> None:
        """Annotates a stretch that has ended (now if no end is given), in the telemetry alone: the events already hold it."""
        end = int(self._now().timestamp() * 1e6) * 1000 if end_ns is None else end_ns
        _append(self.workload_file, event_lines.span_line(self.id, kind, source, text, begin_ns, end))

    def end_phase(self, end_ns: int | None = None) -> None:
        """Ends the phase that was announced last."""
        phase = event_lines.open_phase(self.events_file)
        if phase:
            self.span("phase", phase.source, phase.text, int(phase.time.timestamp() * 1e3) * 10**6, end_ns)

    def events(self) -> list[Event]:
        return bundle_files.read_structs(self.path, self.events_file.name, Event)


def point_latest(runs: Path, name: str) -> None:
    """Makes `runs`/latest a link to `name` beside it, in one step."""
    temporary = runs / f".latest-{os.getpid()}"
    temporary.symlink_to(name)
    temporary.replace(runs / "latest")


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:  # one write of a whole line: O_APPEND keeps writers apart
        file.write(line + "\n")
