"""The run bundle `runs/<run-id>/`: the source of truth of one run. Files appear whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_model.base.errors import BenchError
from bench_model.bundle import files as bundle_files
from rig.base import event_lines

FOLDERS = ("facts", "results/raw", "telemetry", "robot", "profiles")


def now_utc() -> str:
    """`2026-01-31T12:00:00.123Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_text_atomically(path: Path, text: str) -> None:
    """Writes `path` so that a reader, or a crash, sees either the old content or the new one."""
    write_bytes_atomically(path, text.encode("utf-8"))


def write_bytes_atomically(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)
    Path(name).replace(path)


def to_json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


class Bundle:
    """One run's folder. `run` is the content of run.json as this process last read or wrote it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run: dict[str, Any] = {}

    @staticmethod
    def create(runs: Path, candidate: str, target: str, scenario: str) -> Bundle:
        """Creates an empty bundle; its id holds the time, the candidate, its target (empty: its only one) and the scenario."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        bundle = Bundle(runs / "-".join(filter(None, (stamp, candidate, target, scenario))))
        bundle.path.mkdir(parents=True)
        for folder in FOLDERS:
            (bundle.path / folder).mkdir(parents=True)
        point_latest(runs, bundle.path.name)
        return bundle

    @staticmethod
    def open(path: Path) -> Bundle:
        """Opens an existing bundle. Raises BenchError when `path` holds no bundle."""
        bundle = Bundle(path.resolve())
        try:
            bundle.run = bundle_files.read_json(bundle.path, "run.json")
        except (OSError, BenchError) as error:
            why = f"run.json: {error}"
            if isinstance(error, FileNotFoundError):
                why = "run.json is missing" if path.is_dir() else "there is no such folder"
            raise BenchError(f"{path} is no run bundle ({why}). Name one with RUN=runs/<run-id>") from None
        if not isinstance(bundle.run, dict):
            raise BenchError(f"{path} is no run bundle (run.json holds no object). Name one with RUN=runs/<run-id>")
        return bundle

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

    def save_run(self, **changes: Any) -> None:
        """Updates run.json."""
        self.run = {**self.run, **changes}
        self.write("run.json", self.run)

    def write(self, name: str, document: object) -> Path:
        path = self.path / name
        write_text_atomically(path, to_json(document))
        return path

    def read(self, name: str) -> dict[str, Any] | None:
        """Returns the JSON document `name`, or None when the run never wrote it. Raises BenchError when it cannot be read."""
        return bundle_files.find_document(self.path, name)

    def event(self, kind: str, source: str, text: str, **data: Any) -> int:
        """Appends one event (time, kind, source, text, data) to events.jsonl, and to the telemetry as an annotation.

        A phase ends the one before. Returns the event's time, ns since 1970 UTC, for the `span` that may follow."""
        moment = datetime.now(UTC)
        nanoseconds = int(moment.timestamp() * 1e6) * 1000
        if kind == "phase":
            self.end_phase(nanoseconds)
        record = {
            "time_utc": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "kind": kind,
            "source": source,
            "text": text,
            "data": data,
        }
        _append(self.events_file, json.dumps(record, ensure_ascii=False))
        _append(self.workload_file, event_lines.moment_line(self.id, kind, source, text, nanoseconds))
        return nanoseconds

    def span(self, kind: str, source: str, text: str, begin_ns: int, end_ns: int | None = None) -> None:
        """Annotates a stretch that has ended (now if no end is given), in the telemetry alone: the events already hold it."""
        end = time.time_ns() if end_ns is None else end_ns
        _append(self.workload_file, event_lines.span_line(self.id, kind, source, text, begin_ns, end))

    def end_phase(self, end_ns: int | None = None) -> None:
        """Ends the phase that was announced last."""
        phase = event_lines.open_phase(self.events_file)
        if phase:
            begin = datetime.fromisoformat(phase["time_utc"])
            self.span("phase", phase["source"], phase["text"], int(begin.timestamp() * 1e3) * 10**6, end_ns)

    def events(self) -> list[dict[str, Any]]:
        return bundle_files.read_json_lines(self.path, self.events_file.name)


def point_latest(runs: Path, name: str) -> None:
    """Makes `runs`/latest a link to `name` beside it, in one step."""
    temporary = runs / f".latest-{os.getpid()}"
    temporary.symlink_to(name)
    temporary.replace(runs / "latest")


def _append(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:  # one write of a whole line: O_APPEND keeps writers apart
        file.write(line + "\n")
