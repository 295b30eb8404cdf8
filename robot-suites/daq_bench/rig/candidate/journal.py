"""The journal holds each question of a workload to its candidate and each answer; a later extraction replays them.

`Recording` stands in front of a machine and writes each command, with its exit status and all that it said, as one line of JSON into
results/raw/<workload>-journal.jsonl. `Replay` takes the machine's place afterwards and answers from those lines alone: the workload's
own code then makes the same document again, or asks for something that the run never asked. Replay runs, reads and sends nothing."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, InterruptedRunError, RefusedError
from daq_bench.bench_model.bundle.files import parse_json, plain_file, read_bytes
from daq_bench.bench_model.bundle.provenance import digest_of
from daq_bench.rig.base.shell import Completed
from daq_bench.rig.candidate.machine import CALL_S_MAX, Machine, Places

SUFFIX = "-journal.jsonl"
APPENDING = threading.Lock()
WORDS_SHOWN = 300  # characters of a command in a complaint
PLAIN = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]*")  # a file's name that leads nowhere else
ERRORS = {kind.__name__: kind for kind in (BenchError, RefusedError, InterruptedRunError)}
Line = dict[str, Any]
Key = tuple[str, str, tuple[str, ...]]


class DivergedError(Exception):
    """The workload asked for something that the journal does not have. It is no BenchError, so that no workload can handle it."""


def journal_of(raw: Path, workload: str) -> Path:
    return raw / f"{workload}{SUFFIX}"


class Recording(Machine):
    """Passes each call on to `real` and writes down its answer. `at`: empty for the candidate, else the peer's name."""

    def __init__(self, real: Machine, file: Path, at: str = "") -> None:
        self._real, self._file, self._at = real, file, at
        self.is_local, self.from_record = real.is_local, real.from_record
        self._programs: dict[tuple[str, ...], str] = {}
        self._inside = threading.local()  # commands of an observation are part of it

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        said = self._kept("run", self._short(argv), lambda: self._real.run(argv, timeout_s, env), _completed)
        return Completed(tuple(map(str, argv)), said["exit_status"], said["stdout"], said["stderr"])

    def call(self, program: str, *arguments: str | Path, timeout_s: float = CALL_S_MAX) -> Any:
        words = self._short([program, *arguments])
        return self._kept("call", words, lambda: self._real.call(program, *arguments, timeout_s=timeout_s), _value)[
            "value"
        ]

    def observe(self, what: str, make: Callable[[], Any]) -> Any:
        return self._kept("observe", [what], lambda: self._real.observe(what, make), _value)["value"]

    def wait(self, seconds: float) -> None:
        self._real.wait(seconds)

    def stopwatch_s(self) -> float:
        return self._real.stopwatch_s()

    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        return self._real.run_from_here(argv, timeout_s)  # before a workload: no answer that a result rests on

    def read_text(self, path: Path) -> str:
        return str(self._kept("read", [str(path)], lambda: self._real.read_text(path), _value)["value"])

    def fetch(self, path: Path, local: Path) -> None:
        def fetched() -> Path:
            self._real.fetch(path, local)
            return local

        self._kept("fetch", [str(path)], fetched, lambda file: {"file": file.name})

    def places(self, candidate: str, bundle: Path) -> Places:
        found = self._real.places(candidate, bundle)
        self._kept("places", [], lambda: {name: str(path) for name, path in asdict(found).items()}, _value)
        return found

    def remove(self, path: Path) -> None:
        self._real.remove(path)

    def beside(self, name: str, reach: Callable[[], Machine]) -> Machine:
        return Recording(reach(), self._file, name)

    def program(self, name: str, *arguments: str | Path) -> list[str]:
        head = self._real.program(name)
        self._programs[tuple(head)] = name
        return [*head, *map(str, arguments)]

    def _python(self) -> list[str]:
        return self._real._python()

    def _short(self, argv: Sequence[str | Path]) -> list[str]:
        """Replaces the text of the bench's own program by its name: the text is no evidence."""
        words = [str(word) for word in argv]
        for head, name in self._programs.items():
            for start in range(len(words) - len(head) + 1):  # not at the beginning: daqwriter guard ... -- program
                if tuple(words[start : start + len(head)]) == head:
                    words[start : start + len(head)] = [f"program {name}"]
            inner, short = (json.dumps(part)[1:-1] for part in (head, [f"program {name}"]))  # in a plan that is data
            words = [word.replace(inner, short) for word in words]
        return words

    def _kept(self, do: str, words: list[str], act: Callable[[], Any], shown: Callable[[Any], Line]) -> Line:
        """Returns the answer of `act`, in the form that the journal keeps."""
        if getattr(self._inside, "yes", False):
            return shown(act())
        self._inside.yes = True
        try:
            said = shown(act())
        except BenchError as error:
            self._write({"do": do, "words": words, "error": str(error), "kind": _kind(error)})
            raise
        finally:
            self._inside.yes = False
        return self._write({"do": do, "words": words, **said})

    def _write(self, line: Line) -> Line:
        return append(self._file, {"at": self._at, **line})


def append(file: Path, line: Line) -> Line:
    """Adds one line and returns it as a reader will find it. Loads and peers call it from threads of their own."""
    text = json.dumps(line, ensure_ascii=False, allow_nan=False)
    with APPENDING, file.open("a", encoding="utf-8") as journal:
        journal.write(text + "\n")
    found: Line = json.loads(text)
    return found


def _completed(done: Completed) -> Line:
    return {"exit_status": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def _value(value: Any) -> Line:
    return {"value": value}


def _kind(error: BenchError) -> str:
    return next(
        name for name in ("InterruptedRunError", "RefusedError", "BenchError") if isinstance(error, ERRORS[name])
    )


class Answers:
    """The lines of one journal, each given once. `raw`: the bundle's folder of that name."""

    def __init__(self, lines: Sequence[Line], raw: Path) -> None:
        self.raw, self._lock = raw, threading.Lock()
        self._left: dict[Key, deque[Line]] = defaultdict(deque)
        for line in lines:
            self._left[_key(line["at"], line["do"], line["words"])].append(line)

    def take(self, at: str, do: str, words: Sequence[str]) -> Line:
        """Returns the next answer to this question. Raises DivergedError, or the error that the run met."""
        with self._lock:
            left = self._left[_key(at, do, words)]
            if not left:
                raise DivergedError(f"the run never did this, which its scenario asks for: {_shown(do, words)}")
            line = left.popleft()
        if "error" in line:
            raise ERRORS[line["kind"]](line["error"])
        return line

    def not_asked(self) -> list[str]:
        """Lists the run's actions that its scenario does not ask for."""
        left = [line for lines in self._left.values() for line in lines if line["do"] != "places"]
        return [
            f"the run did this, which its scenario does not ask for: {_shown(one['do'], one['words'])}" for one in left
        ]


def _key(at: str, do: str, words: Sequence[str]) -> Key:
    return at, do, tuple(words)


def _shown(do: str, words: Sequence[str]) -> str:
    return f"{do} {' '.join(words)}"[:WORDS_SHOWN]


class Replay(Machine):
    """Stands in for a machine: answers from the journal and does nothing."""

    from_record = True

    def __init__(self, answers: Answers, local: bool, at: str = "") -> None:
        self._answers, self.is_local, self._at = answers, local, at

    def _take(self, do: str, *words: str) -> Line:
        return self._answers.take(self._at, do, words)

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(word) for word in argv]
        line = self._take("run", *words)
        return Completed(tuple(words), line["exit_status"], line["stdout"], line["stderr"])

    def call(self, program: str, *arguments: str | Path, timeout_s: float = CALL_S_MAX) -> Any:
        return self._take("call", program, *map(str, arguments))["value"]

    def observe(self, what: str, make: Callable[[], Any]) -> Any:
        return self._take("observe", what)["value"]

    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        raise DivergedError("no program is run when results are extracted again")

    def read_text(self, path: Path) -> str:
        return str(self._take("read", str(path))["value"])

    def fetch(self, path: Path, local: Path) -> None:
        line = self._take("fetch", str(path))
        if line["file"] != local.name or not PLAIN.fullmatch(local.name):
            raise DivergedError(f"{path} was fetched as {line['file']}, and its scenario wants it as {local.name}")
        file = plain_file(self._answers.raw, local.name)
        if file is None:
            raise DivergedError(f"results/raw/{local.name} is missing, or no plain file")
        shutil.copyfile(file, local)

    def places(self, candidate: str, bundle: Path) -> Places:
        return Places(**{name: Path(path) for name, path in self._take("places")["value"].items()})

    def remove(self, path: Path) -> None:
        """There is nothing to remove."""

    def beside(self, name: str, reach: Callable[[], Machine]) -> Machine:
        return Replay(self._answers, False, name)

    def program(self, name: str, *arguments: str | Path) -> list[str]:
        return [f"program {name}", *map(str, arguments)]

    def _python(self) -> list[str]:
        raise DivergedError("no program is run when results are extracted again")


@contextmanager
def recorded(machine: Machine, raw: Path, workload: str) -> Iterator[Recording]:
    """`machine` with a new journal. Its last line says how the workload ended, and which files were there then."""
    file = journal_of(raw, workload)
    file.write_text("", encoding="utf-8")
    append(file, {"at": "", "do": "begin", "words": [workload], "local": machine.is_local})
    error = "it was stopped"
    try:
        yield Recording(machine, file)
        error = ""
    except BenchError as wrong:
        error = str(wrong)
        raise
    finally:
        left = {one.name: digest_of(one) for one in sorted(raw.iterdir()) if not one.name.endswith(SUFFIX)}
        append(file, {"at": "", "do": "end", "words": [workload], "failed": error or None, "files": left})


def read_journal(raw: Path, workload: str) -> list[Line] | None:
    """Returns the lines of a workload's journal, None where there is none. Raises BenchError when it cannot be read."""
    name = journal_of(raw, workload).name
    try:
        text = read_bytes(raw, name)
    except FileNotFoundError:
        return None
    where = f"results/raw/{name}"
    lines = [parse_json(line, f"{where}:{number}") for number, line in enumerate(text.splitlines(), start=1)]
    if any(not _is_line(line) for line in lines) or not lines or lines[0]["do"] != "begin":
        raise BenchError(f"{where}: cannot be read (a line is no journal entry, or the journal has no beginning)")
    return lines


def _is_line(line: object) -> bool:
    return (
        isinstance(line, dict)
        and isinstance(line.get("at"), str)
        and isinstance(line.get("do"), str)
        and isinstance(line.get("words"), list)
        and all(isinstance(word, str) for word in line["words"])
        and ("error" not in line or line.get("kind") in ERRORS)
    )
