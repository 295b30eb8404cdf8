"""The index over a folder of bundles: `<runs>/.history/<key>.parquet`, so that thousands of runs are not judged again for each page. Each
further reader's extract of the bundles (`Kind`) has a file of its own beside it, under the same rules.

It is a cache and no evidence. A row counts only for a bundle whose files are unchanged since this very bench judged it
(`bundle_state`); every other bundle is read and judged. The file counts only with the seal beside it, an HMAC by a key that the user's
own state folder holds: whoever can write into the runs cannot forge it. A damaged, cut short or foreign index is not looked at, and
replaced. Without pyarrow, without a key or in a folder that cannot be written, every bundle is read each time: slower, and the same."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import importlib.util
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import deciding_folders
from daq_bench.bench_model.base.whole_files import OWN, replace_file
from daq_bench.bench_model.bundle.bundle_state import State, state_of
from daq_bench.bench_model.bundle.files import read_bytes
from daq_bench.bench_model.bundle.user_key import user_key
from daq_bench.bench_model.documents.struct import decoder
from daq_bench.bench_model.nights.night import LeftOut, Night, night_or_reason
from daq_bench.bench_model.nights.night_columns import NAME, STATE, nights_of, schema, table_of
from daq_bench.bench_model.profiles.yaml_source import SCHEMAS

FOLDER = ".history"
TOLD = "told"  # the column of what is kept as JSON
SEAL_BYTES_MAX, INDEX_BYTES_MAX = 256, 1 << 30
JUDGES = ("numpy", "scipy", "msgspec", "jsonschema-rs", "ruamel.yaml", "pyarrow")
AT_ONCE = 2000  # bundles that are read before their rows are put away, so that memory stays bounded
WORTH_PROCESSES = 100  # bundles: to start helpers takes as long as to read some dozen
PROCESSES_MAX = 8
_one_at_a_time = threading.Lock()  # a night's candidates end in several threads
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Kind(Generic[Kept]):
    """Rows of one kind. `name`: in the file's name. `read` judges one bundle that may be anything; helpers import it by name.
    `table_of` and `rows_of` make Arrow rows of what was read, and that again of the rows; `schema` has `NAME` and `STATE`. `keeps`: what
    stands for nothing may not be kept. `package`: the code beside `bench_model` that a row follows from; `told`: a digest of what else
    it does. `state`: by which a bundle is known again."""

    name: str
    read: Callable[[Path], Kept]
    schema: Callable[[], Any]
    table_of: Callable[[Sequence[Kept], Sequence[str]], Any]
    rows_of: Callable[[Any, Path], list[Kept]]
    keeps: Callable[[Kept], bool] = lambda one: True
    package: Path | None = None
    told: bytes = b""
    state: Callable[[Path], State | None] = state_of


def _night(bundle: Path) -> Night | LeftOut:
    return night_or_reason(bundle)


NIGHTS: Kind[Night | LeftOut] = Kind("", _night, schema, table_of, nights_of)


def kept_as_told(
    name: str, read: Callable[[Path], Any], kept: type[Any], shown: Sequence[str] = (), **more: Any
) -> Kind[Any]:
    """Keeps what `read` returns as JSON, beside the attributes `shown`, texts for who asks the file itself. Another type than `kept`, and
    a row that would not be read as what it was made of, are read each time."""

    def schema() -> Any:
        import pyarrow as pa

        return pa.schema([(column, pa.string()) for column in (NAME, STATE, *shown, TOLD)])

    def table_of(found: Sequence[Any], states: Sequence[str]) -> Any:
        import pyarrow as pa

        rows = [
            {NAME: one.folder, STATE: state, **{column: getattr(one, column) for column in shown},
             TOLD: msgspec.json.encode(one).decode()}
            for one, state in zip(found, states, strict=True)
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=schema())

    def rows_of(table: Any, folder: Path) -> list[Any]:
        return [decoder(kept).decode(text) for text in table[TOLD].to_pylist()]

    def keeps(one: Any) -> bool:
        return isinstance(one, kept) and bool(decoder(kept).decode(msgspec.json.encode(one)) == one)

    return Kind(name, read, schema, table_of, rows_of, keeps, **more)


def read_kept(kind: Kind[Kept], folder: Path, bundles: Sequence[Path]) -> list[Kept]:
    """Each of `bundles`, which lie in `folder`, in their order, as `kind` reads it."""
    with _one_at_a_time:
        index = Index.of(folder, kind)
        return [kind.read(bundle) for bundle in bundles] if index is None else index.read(bundles)


def read_indexed(folder: Path, bundles: Sequence[Path], candidate: str | None = None) -> list[Night | LeftOut]:
    """Each of `bundles`, which lie in `folder`, in their order, as `night_or_reason` reads it. `candidate`: without the runs of others."""
    with _one_at_a_time:
        index = Index.of(folder)
        found = [_night(bundle) for bundle in bundles] if index is None else index.read(bundles, candidate)
    return [one for one in found if isinstance(one, LeftOut) or candidate in (None, one.candidate)]


def forget(folder: Path) -> None:
    """Removes what the user's index keeps of the bundles in `folder`, of every kind: each is read and judged again."""
    index = Index.of(folder)
    if index is not None:
        for file in index.folder.glob(f"{index.stem}*.parquet"):
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Index(Generic[Kept]):
    """Indexes one folder; `key` seals it. `begun_ns`: the folder's own clock before anything was read."""

    folder: Path
    key: bytes
    begun_ns: int
    kind: Kind[Kept]

    @staticmethod
    def of(runs: Path, kind: Kind[Any] = NIGHTS) -> Index[Any] | None:
        """None where none can be kept."""
        if importlib.util.find_spec("pyarrow") is None:
            return None
        folder = runs / FOLDER
        try:
            folder.mkdir(exist_ok=True)
            key = user_key()
            if folder.is_symlink() or key is None:
                return None
            with _locked(folder, fcntl.LOCK_SH) as handle:
                os.utime(handle)
                return Index(folder, key, os.fstat(handle).st_mtime_ns, kind)
        except (OSError, RuntimeError, BenchError):  # RuntimeError: a user without a home
            return None

    @property
    def stem(self) -> str:
        """Each key has its own files, so that users who share a folder do not replace one another's."""
        return hashlib.sha256(self.key).hexdigest()[:16]

    @property
    def file(self) -> Path:
        return self.folder / f"{self.stem}{f'.{self.kind.name}' if self.kind.name else ''}.parquet"

    def read(self, bundles: Sequence[Path], candidate: str | None = None) -> list[Kept]:
        table = self._load()
        states = {bundle.name: self.kind.state(bundle) for bundle in bundles}
        kept, others = _matching(table, states), self._others(table, states)
        again = [bundle for bundle in bundles if bundle.name not in kept]
        parts, unsettled = [_taken(table, list(kept.values()))], dict[str, Kept]()
        beside = [_taken(table, others)] if others else []
        for some in (again[at : at + AT_ONCE] for at in range(0, len(again), AT_ONCE)):
            settled: list[tuple[Kept, str]] = []
            for one, path in zip(_read(self.kind, some), some, strict=True):
                state = self._settled(states[path.name]) if self.kind.keeps(one) else None
                if state is None:
                    unsettled[path.name] = one
                else:
                    settled.append((one, state))
            parts.append(self.kind.table_of([one for one, _ in settled], [state for _, state in settled]))
            if len(some) == AT_ONCE:
                self._save(_joined([*beside, *parts]))  # a reading of thousands that is cut short is taken up here
        whole = _joined(parts)
        rows = len(whole) + len(others)
        if rows != len(table) or rows != len(kept) + len(others):
            self._save(_joined([*beside, *parts]))
        return _in_order(bundles, self._decoded(whole, bundles, candidate), unsettled)

    def _others(self, table: Any, states: dict[str, State | None]) -> list[int]:
        """The rows of bundles that nobody asks for now and that still lie there: they are held against their bundles when somebody does."""
        names = table[NAME].to_pylist()
        if all(name in states for name in names):
            return []
        there = {entry.name for entry in os.scandir(self.folder.parent)}
        return [at for at, name in enumerate(names) if name not in states and name in there]

    def _decoded(self, table: Any, bundles: Sequence[Path], candidate: str | None) -> dict[str, Kept]:
        from pyarrow import compute

        if candidate is not None:
            table = table.filter(compute.fill_null(compute.equal(table["candidate"], candidate), True))
        if not len(table):
            return {}
        return dict(zip(table[NAME].to_pylist(), self.kind.rows_of(table, bundles[0].parent), strict=True))

    def _settled(self, state: State | None) -> str | None:
        """The state by which a bundle is known again; None for one that may still change without a trace."""
        return state.digest if state is not None and state.settled(self.begun_ns) else None

    def _load(self) -> Any:
        """The stored table; an empty one where there is none that counts."""
        from pyarrow import ArrowException, parquet

        try:
            content = read_bytes(self.folder, self.file.name, INDEX_BYTES_MAX)
            told = read_bytes(self.folder, f"{self.file.name}.seal", SEAL_BYTES_MAX)
            if hmac.compare_digest(told, self._seal(content)):
                # Without threads: they may still be starting when a short process ends, which then aborts (apache/arrow#34314).
                # parquet.read_table() starts some whatever it is told, since it reads by way of a dataset.
                table = parquet.ParquetFile(io.BytesIO(content), pre_buffer=False).read(use_threads=False)
                if table.schema.equals(self.kind.schema()):
                    return table
        except (OSError, BenchError, ArrowException):
            pass  # as good as none: it is made again of the bundles
        return self.kind.schema().empty_table()

    def _save(self, table: Any) -> None:
        """The table, then its seal: whatever a crash leaves between them does not fit together. Nothing is kept where nothing can be."""
        from pyarrow import parquet

        stream = io.BytesIO()
        parquet.write_table(table, stream, compression="zstd")
        content = stream.getvalue()
        with contextlib.suppress(OSError), _locked(self.folder, fcntl.LOCK_EX):
            for left in self.folder.glob(f".{self.file.name}.*"):  # by a process that was killed
                left.unlink()
            replace_file(self.file, content, OWN, durable=True)
            replace_file(self.file.with_name(f"{self.file.name}.seal"), self._seal(content), OWN, durable=True)

    def _seal(self, content: bytes) -> bytes:
        """Returns a digest of the content and of the very code that judged: another version of the bench may judge otherwise."""
        told = (
            judged_by()
            if self.kind.package is None
            else judged_by() + hash_of(self.kind.package) + self.kind.name.encode() + self.kind.told
        )
        return hmac.new(self.key, told + content, "sha256").hexdigest().encode()


@contextlib.contextmanager
def _locked(folder: Path, how: int) -> Iterator[int]:
    """Yields the lock's handle. A link in its place is refused by the kernel."""
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
        yield handle
    finally:
        os.close(handle)


def _matching(table: Any, states: dict[str, State | None]) -> dict[str, int]:
    """By folder the row that belongs to it as it is now."""
    rows = zip(table[NAME].to_pylist(), table[STATE].to_pylist(), strict=True)
    return {
        name: at for at, (name, state) in enumerate(rows)
        if (now := states.get(name)) is not None and now.digest == state
    }  # fmt: skip


def _taken(table: Any, rows: list[int]) -> Any:
    import pyarrow as pa

    if rows == list(range(len(table))):
        return table  # nothing changed, as mostly: no second copy of thousands of verdicts
    return table.take(pa.array(rows, pa.int64()))


def _joined(parts: list[Any]) -> Any:
    import pyarrow as pa

    filled = [one for one in parts if len(one)] or parts[:1]
    return pa.concat_tables(filled).combine_chunks()


def _in_order(bundles: Sequence[Path], indexed: dict[str, Kept], unsettled: dict[str, Kept]) -> list[Kept]:
    found = indexed | unsettled
    return [found[bundle.name] for bundle in bundles if bundle.name in found]


def _read(kind: Kind[Kept], bundles: Sequence[Path]) -> list[Kept]:
    """Reads and judges each; many of them in processes beside each other, which know nothing of the program that asks."""
    workers = min(PROCESSES_MAX, len(os.sched_getaffinity(0)))
    if len(bundles) < WORTH_PROCESSES or workers == 1:
        return [kind.read(bundle) for bundle in bundles]
    with ThreadPoolExecutor(workers) as threads:
        shares = list(threads.map(lambda some: _helped(kind, some), [bundles[at::workers] for at in range(workers)]))
    return [shares[at % workers][at // workers] for at in range(len(bundles))]


def _helped(kind: Kind[Kept], bundles: Sequence[Path]) -> list[Kept]:
    words = [sys.executable, "-c", f"from {__name__} import help_reading; help_reading()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    asked = pickle.dumps((kind.read, [bundle.absolute() for bundle in bundles]))
    done = subprocess.run(words, input=asked, stdout=subprocess.PIPE, env=environment, check=False)
    if done.returncode != 0:
        raise BenchError(
            f"a helper that reads {len(bundles)} bundles ended with status {done.returncode}. Free memory, and repeat the command"
        )
    read: list[Kept] = pickle.loads(done.stdout)
    return read


def help_reading() -> None:
    """The process that `_helped` starts."""
    read, bundles = pickle.loads(sys.stdin.buffer.read())
    sys.stdout.buffer.write(pickle.dumps([read(bundle) for bundle in bundles]))


@cache
def judged_by() -> bytes:
    """A digest of all that a verdict follows from beside the bundle: the packages, the schemas, the libraries that compute."""
    hashed = hashlib.sha256(" ".join(version(name) for name in JUDGES).encode())
    for folder, names in (*((one, "*.py") for one in deciding_folders()), (SCHEMAS, "*.json")):
        hashed.update(hash_of(folder, names))
    return hashed.digest()


@cache
def hash_of(folder: Path, names: str = "*.py") -> bytes:
    """A digest of the files below `folder`, by name and content."""
    hashed = hashlib.sha256()
    for file in sorted(folder.rglob(names)):
        hashed.update(file.relative_to(folder).as_posix().encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return hashed.digest()
