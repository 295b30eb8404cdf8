"""A candidate as the rig uses it: run a command, ask a question, fetch a file. This machine, or one behind SSH; nothing else differs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.profiles.connection_entries import LOCAL
from daq_bench.rig.base.bundle import Bundle
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.base.shell import HANG_S_MIN, Completed, LocalShell
from daq_bench.rig.candidate.connection import Connection
from daq_bench.rig.candidate.ssh import SshLink
from daq_bench.rig.candidate.travelling import source_of

if TYPE_CHECKING:
    from daq_bench.rig.candidate.lock import MachineLock

PROGRAMS = Path("/opt/daq-storage-bench")
STATE = Path("/var/lib/daq-storage-bench")
CALL_S_MAX = 120.0
ERROR_CHARACTERS_MAX = 2000  # a person reads it
CONNECTION_VARIABLE = (
    "DAQ_BENCH_CONNECTION"  # for Robot Framework's own process: the bundle holds no connection details
)


def answer_of(program: str, completed: Completed) -> Any:
    """Returns the document that a program of `on_candidate` printed. Raises BenchError with its `error`, or when it failed."""
    if completed.returncode != 0:
        said = completed.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        what = f"{program} failed on the candidate with exit status {completed.returncode}"
        raise BenchError(f"{what}: {said[0][:ERROR_CHARACTERS_MAX]}")
    try:
        document = json.loads(completed.stdout)
    except (ValueError, RecursionError):
        raise BenchError(f"{program} gave no answer on the candidate, but {completed.stdout[:200]!r}") from None
    if not isinstance(document, dict):
        raise BenchError(f"{program} gave no answer on the candidate, but a {type(document).__name__}")
    if "error" in document:
        raise BenchError(str(document["error"])[:ERROR_CHARACTERS_MAX])
    return document.get("result", document)


@dataclass(frozen=True)
class Places:
    """Folders on the candidate. One run has its own `raw` (the tools' output), `telemetry` (the agent's spool) and `workload_file`."""

    programs: Path
    state: Path
    raw: Path
    telemetry: Path

    @property
    def workload_file(self) -> Path:
        return self.telemetry / "workload.lp"

    @property
    def daqwriter(self) -> Path:
        return self.programs / "daqwriter"

    @property
    def hotstore(self) -> Path:
        return self.programs / "hotstore"

    @property
    def netprobe(self) -> Path:
        return self.programs / "netprobe"

    @property
    def analysis_reader(self) -> Path:
        return self.programs / "analysis_reader.pyz"

    @property
    def analysis_python(self) -> Path:
        """The Python with uproot and Dask on a candidate behind SSH (docs/adr/0024)."""
        return self.programs / "analysis" / "bin" / "python"

    @property
    def agent(self) -> Path:
        return self.programs / "telemetry_agent.pyz"


class Machine(ABC):
    """Also a `rig.base.shell.Shell`. Paths are the candidate's unless they are called `local`."""

    is_local: bool
    from_record: bool = False  # answers from a run's journal (rig.candidate.journal): nothing is done
    prefix: tuple[str, ...] = ()  # words before each command
    hang_s: float = HANG_S_MIN  # the least that a command gets before it counts as hung
    lock: MachineLock | None = None  # that this process holds on it

    def observe(self, what: str, make: Callable[[], Any]) -> Any:
        """Returns the value of `make` as JSON has it: the time, a decision from telemetry, anything that a result rests on and no command
        of the workload says. The journal keeps it under the name `what`, without the commands of `make` itself."""
        return make()

    def wait(self, seconds: float) -> None:
        """Lets so much time pass on the candidate."""
        time.sleep(seconds)

    def stopwatch_s(self) -> float:
        """A clock that nobody sets; only differences of it count."""
        return time.monotonic()

    def beside(self, name: str, reach: Callable[[], Machine]) -> Machine:
        """Another machine that takes part in a workload."""
        return reach()

    def isolate(self) -> None:
        """Lets commands run on the CPUs that the system's own slices, SSH sessions among them, are kept off (tuning cpu_isolated)."""
        self.prefix = ("systemd-run", "--quiet", "--scope", "--slice=daq_bench.slice", "--")

    @abstractmethod
    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        """Runs `argv` to its end. Raises BenchError when it cannot start, or exceeds `timeout_s` and `hang_s`."""

    @abstractmethod
    def places(self, candidate: str, bundle: Path) -> Places: ...

    @abstractmethod
    def read_text(self, path: Path) -> str:
        """The content of a small text file. Raises BenchError when it cannot be read."""

    def put(self, path: Path, text: str) -> None:
        """Writes a small text file."""
        argv: list[str | Path] = ["sh", "-c", 'printf %s "$1" > "$0"', path, text]
        self.run(argv, timeout_s=60).check(f"writing {path}")

    @abstractmethod
    def fetch(self, path: Path, local: Path) -> None:
        """Copies `path` to `local`, whole or not at all. Raises BenchError when it is not there."""

    @abstractmethod
    def remove(self, path: Path) -> None:
        """Removes a file; none there is fine."""

    @abstractmethod
    def _python(self) -> list[str]:
        """The words that start the candidate's Python."""

    def program(self, name: str, *arguments: str | Path) -> list[str]:
        """The command line of a program of `on_candidate`."""
        return [*self._python(), "-c", source_of(name), *map(str, arguments)]

    def call(self, program: str, *arguments: str | Path, timeout_s: float = CALL_S_MAX) -> Any:
        """The `result` (or the whole document) of a program of `on_candidate`. Raises BenchError with its `error`."""
        return answer_of(program, self.run(self.program(program, *arguments), timeout_s=timeout_s))

    @abstractmethod
    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        """Runs, as `run`, a program of ours that may not be on the candidate yet, and leaves nothing there. Not for loads."""


class LocalMachine(LocalShell, Machine):
    """This machine: tools write straight into the bundle."""

    is_local = True

    def __init__(self, layout: Layout | None = None) -> None:
        self._layout = layout or Layout()

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        return super().run([*self.prefix, *argv], max(timeout_s, HANG_S_MIN), env)

    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        return self.run(argv, timeout_s)

    def places(self, candidate: str, bundle: Path) -> Places:
        return Places(
            programs=self._layout.install_directory(candidate),
            state=self._layout.state_directory(candidate),
            raw=bundle / "results" / "raw",
            telemetry=bundle / "telemetry",
        )

    def read_text(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise BenchError(f"{path}: {error.strerror}") from None

    def fetch(self, path: Path, local: Path) -> None:
        if path == local and path.exists():
            return
        try:
            shutil.copyfile(path, local)
        except OSError as error:
            raise BenchError(f"{path}: {error.strerror}") from None

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise BenchError(f"removing {path}: {error.strerror}") from None

    def _python(self) -> list[str]:
        return [sys.executable]


class SshMachine(Machine):
    """A machine behind an SSH link. Its tools write into folders of its own; what they wrote is fetched into the bundle."""

    is_local = False

    def __init__(self, link: SshLink) -> None:
        self.link = link

    @property
    def _connection(self) -> Connection:
        return self.link.connection

    def run(self, argv: Sequence[str | Path], timeout_s: float, env: Mapping[str, str] | None = None) -> Completed:
        words = [str(word) for word in argv]
        full = [*self._as_root(), *self.prefix, *_with_environment(words, env)]
        return self.link.run(full, max(timeout_s, self.hang_s), shown=words)

    def _as_root(self) -> list[str]:
        return ["sudo", "--non-interactive", "--"] if self._connection.become else []

    def places(self, candidate: str, bundle: Path) -> Places:
        run = STATE / "runs" / bundle.name
        return Places(programs=PROGRAMS, state=STATE / "state", raw=run / "raw", telemetry=run / "telemetry")

    def read_text(self, path: Path) -> str:
        return self.run(["cat", "--", path], timeout_s=60).check(f"reading {path} of {self._connection.name}").stdout

    def fetch(self, path: Path, local: Path) -> None:
        self.link.fetch(self._as_root(), str(path), local, f"{self._connection.name}:{path}")

    def remove(self, path: Path) -> None:
        self.run(["rm", "-f", "--", path], timeout_s=60).check(f"removing {path} of {self._connection.name}")

    def run_from_here(self, argv: Sequence[str | Path], timeout_s: float) -> Completed:
        words = [*self._as_root(), *self.program("from_memory", *argv)]
        return self.link.feed(words, Path(argv[0]).read_bytes(), max(timeout_s, HANG_S_MIN))

    def append(self, path: Path, text: str) -> None:
        """Appends whole lines to a file, in one write."""
        words = [*self._as_root(), "sh", "-c", 'cat >> "$0"', str(path)]
        self.link.feed(words, text.encode()).check(f"writing {path} of {self._connection.name}")

    def _python(self) -> list[str]:
        return [self._connection.python]


def _with_environment(words: list[str], env: Mapping[str, str] | None) -> list[str]:
    return ["env", *(f"{key}={value}" for key, value in env.items()), *words] if env else words


def machine_of(connection: Connection, control: Path, layout: Layout | None = None) -> Machine:
    """The machine behind `connection`; `control` is where the SSH link's socket is or will be."""
    return LocalMachine(layout) if connection.kind == LOCAL else SshMachine(SshLink(connection, control))


def environment_of(machine: Machine) -> dict[str, str]:
    """Returns the variables that let a child process reach the same machine over the link that is already up; no secret."""
    if not isinstance(machine, SshMachine):
        return {}
    link = machine.link
    return {CONNECTION_VARIABLE: json.dumps({"connection": link.connection.to_json(), "control": str(link.control)})}


def machine_from_environment() -> Machine:
    """The counterpart of `environment_of`, in the child."""
    text = os.environ.get(CONNECTION_VARIABLE)
    if not text:
        return LocalMachine()
    values = json.loads(text)
    return SshMachine(SshLink(Connection.from_json(values["connection"]), Path(values["control"])))


def prepare_folders(machine: Machine, bundle: Bundle, candidate: str) -> Places:
    """Makes the run's folders on the candidate."""
    places = machine.places(candidate, bundle.path)
    if not machine.is_local:
        argv: list[str | Path] = ["mkdir", "--parents", "--", places.raw, places.telemetry]
        machine.run(argv, timeout_s=60).check("making the run's folders on the candidate")
    return places
