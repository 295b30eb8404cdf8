"""The one way into a file of a run bundle, which may come from anybody: a plain file inside the bundle, of a bounded size, and strict JSON.

Promise: reading ends. A link, a pipe, a device, a file without end, JSON that nests without end or says what JSON cannot say (NaN, 1e400)
is a BenchError that names the file; nothing else reaches the caller but FileNotFoundError, where the bundle does not hold the file."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from daq_bench.bench_model.base.calling import a_run
from daq_bench.bench_model.base.errors import BenchError, in_words
from daq_bench.bench_model.documents.struct import Kind, read

DOCUMENT_BYTES_MAX = 128 << 20  # of a file that is read as a whole
SPOOL_BYTES_MAX = 64 << 30  # of a file that is read piece by piece: telemetry, column files, and what is only hashed
BUNDLE_BYTES_MAX = 256 << 30
ENTRIES_MAX = 100_000  # files and folders of a bundle
TAIL_BYTES = 8192  # of a growing file, of which the end alone counts
LINE_MAX = 1 << 20  # characters; a line of telemetry has some hundred
NESTING_MAX = 64
DIGITS_MAX = 40  # of an integer
REMEDY = "The bundle is damaged, or was made to harm; use a sound copy of it"
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
SURROGATE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")


@dataclass(frozen=True)
class Survey:
    """The entries of a bundle's folder, as paths relative to it; `odd` is neither a plain file nor a folder."""

    files: tuple[str, ...]
    odd: tuple[str, ...]


def survey(bundle: Path) -> Survey:
    """Every entry below `bundle`; links are not followed. Raises BenchError for more than a bundle can hold, and for no folder."""
    if not bundle.is_dir():
        refuse_no_bundle(bundle)
    files: list[str] = []
    odd: list[str] = []
    folders = [""]
    size = seen = 0
    while folders:
        at = folders.pop()
        for entry in _entries(bundle / at):
            seen += 1
            name = f"{at}/{entry.name}".lstrip("/")
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_file(follow_symlinks=False):
                files.append(name)
                size += entry.stat(follow_symlinks=False).st_size
            else:
                odd.append(name)
        if seen > ENTRIES_MAX or size > BUNDLE_BYTES_MAX:
            if not (bundle / "run.json").exists():
                refuse_no_bundle(bundle)
            raise BenchError(f"{bundle}: holds more than {ENTRIES_MAX} files or {BUNDLE_BYTES_MAX >> 30} GiB. {REMEDY}")
    return Survey(tuple(sorted(files)), tuple(sorted(odd)))


def refuse_no_bundle(path: Path, why: str = "") -> NoReturn:
    """Raises BenchError for a path that holds no run bundle, the same in every command. `why`: a reason other than what is missing."""
    missing = "run.json is missing" if path.is_dir() else "it is a file" if path.exists() else "there is no such folder"
    raise BenchError(f"{path} is no run bundle ({why or missing}). Name one: {a_run()}")


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise BenchError(f"{folder}: cannot be listed ({error.strerror}). {REMEDY}") from None


def require_sound(bundle: Path) -> None:
    """Before anything of a foreign bundle is read: nothing in it is a link, a pipe or a device, and it is no larger than one can be."""
    if odd := survey(bundle).odd:
        raise BenchError(f"{bundle / odd[0]}: is a link or a special file, which no run leaves. {REMEDY}")


def open_file(bundle: Path, name: str, at_most: int = DOCUMENT_BYTES_MAX) -> io.BufferedReader:
    """The plain file `name` of `bundle`. Raises FileNotFoundError where there is none, BenchError for anything else that is there."""
    where = bundle / name
    try:
        handle = _handle(bundle, _parts(where, name))
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "the bundle has no such file", str(where)) from None
    except OSError as error:
        raise BenchError(f"{where}: cannot be opened as a plain file ({error.strerror}). {REMEDY}") from None
    if (size := os.fstat(handle).st_size) > at_most:
        os.close(handle)
        raise BenchError(f"{where}: has {size} bytes; such a file has {at_most} at most. {REMEDY}")
    return os.fdopen(handle, "rb")


def _parts(where: Path, name: str) -> list[str]:
    parts = name.split("/")
    if "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
        raise BenchError(f"{where}: {name[:80]!r} names no file inside of a bundle. {REMEDY}")
    return parts


def _handle(bundle: Path, parts: list[str]) -> int:
    """Folder by folder from the bundle on; refuses links. The last is looked at first: to open a device is an act by itself."""
    at = os.open(bundle, DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        _require_plain(os.stat(parts[-1], dir_fd=at, follow_symlinks=False))
        handle = os.open(parts[-1], PLAIN, dir_fd=at)
    finally:
        os.close(at)
    _require_plain(os.fstat(handle))
    return handle


def _require_plain(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is a link, a folder, a pipe or a device")


def plain_file(bundle: Path, name: str) -> Path | None:
    """Says where the plain file `name` is, for a reader that wants a path; None where the bundle does not hold it."""
    try:
        with open_file(bundle, name, SPOOL_BYTES_MAX):
            return bundle / name
    except FileNotFoundError:
        return None


def read_bytes(bundle: Path, name: str, at_most: int = DOCUMENT_BYTES_MAX) -> bytes:
    """The file's content. Raises FileNotFoundError where there is none."""
    with open_file(bundle, name, at_most) as stream:
        content = stream.read(at_most + 1)
    if len(content) > at_most:
        raise BenchError(f"{bundle / name}: has more than {at_most} bytes. {REMEDY}")
    return content


def read_text(bundle: Path, name: str, errors: str = "strict") -> str:
    """The same as text."""
    try:
        return read_bytes(bundle, name).decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise BenchError(f"{bundle / name}: byte {error.start} is not UTF-8. {REMEDY}") from None


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a spool, of which the last may lack its newline. Raises UnicodeDecodeError, BenchError for one without end."""
    with io.TextIOWrapper(open_file(path.parent, path.name, SPOOL_BYTES_MAX), encoding="utf-8") as stream:
        for line in iter(partial(stream.readline, LINE_MAX), ""):
            if len(line) >= LINE_MAX:
                raise _without_end(path)
            yield line


def byte_lines(path: Path) -> Iterator[bytes]:
    """The same as bytes."""
    with open_file(path.parent, path.name, SPOOL_BYTES_MAX) as stream:
        for line in iter(partial(stream.readline, LINE_MAX), b""):
            if len(line) >= LINE_MAX:
                raise _without_end(path)
            yield line


def bytes_on_disk(folder: Path) -> int:
    """B that a folder's content takes on disk; 0 for one that is not there. Some may go meanwhile: others are at work there."""
    names = (Path(at, name) for at, folders, files in os.walk(folder) for name in (*folders, *files))
    return sum(found.st_blocks * 512 for found in states_of(names))


def states_of(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """Yields what the file system says about each path that is there; it follows no link."""
    for path in paths:
        with suppress(FileNotFoundError):
            yield path.lstat()


def last_lines(path: Path, at_most: int = TAIL_BYTES) -> list[str]:
    """The whole lines within the last bytes of a growing file; an empty list for anything but a plain file."""
    try:
        with open_file(path.parent, path.name, SPOOL_BYTES_MAX) as file:
            begin = max(0, file.seek(0, 2) - at_most)
            file.seek(begin)
            text = file.read(at_most).decode("utf-8", "replace")
    except (FileNotFoundError, BenchError):
        return []
    lines = text.split("\n")
    return lines[1:-1] if begin else lines[:-1]


def _without_end(path: Path) -> BenchError:
    return BenchError(f"{path}: has a line of more than {LINE_MAX} characters. {REMEDY}")


def find_json(bundle: Path, name: str) -> Any:
    """The content of the JSON file `name`; None where the bundle does not hold it."""
    try:
        return read_json(bundle, name)
    except FileNotFoundError:
        return None


def read_json(bundle: Path, name: str) -> Any:
    """The content of the JSON file `name`. Raises FileNotFoundError where the bundle does not hold it."""
    return parse_json(read_bytes(bundle, name), str(bundle / name))


def read_json_lines(bundle: Path, name: str) -> list[Any]:
    """One value for each line that has its newline; empty where the bundle does not hold the file."""
    try:
        lines = read_bytes(bundle, name).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [parse_json(line, f"{bundle / name}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]


def find_struct(bundle: Path, name: str, kind: type[Kind]) -> Kind | None:
    """The document `name` as its type; None where the bundle does not hold it. Raises BenchError for any other content."""
    try:
        return read(read_json(bundle, name), kind, str(bundle / name))
    except FileNotFoundError:
        return None


def read_structs(bundle: Path, name: str, kind: type[Kind]) -> list[Kind]:
    """The same of each line of a file of JSON lines."""
    found = enumerate(read_json_lines(bundle, name), start=1)
    return [read(one, kind, f"{bundle / name}:{number}") for number, one in found]


def find_document(bundle: Path, name: str) -> dict[str, Any] | None:
    """The JSON object in `name`; None where the bundle does not hold it. Raises BenchError for JSON that is no object."""
    try:
        document = read_json(bundle, name)
    except FileNotFoundError:
        return None
    if not isinstance(document, dict):
        raise BenchError(f"{bundle / name} holds no JSON object. {REMEDY}")
    return document


def parse_json(content: bytes, where: str) -> Any:
    """Returns the value of bounded JSON that obeys RFC 8259 to the letter; else raises BenchError that names `where`."""
    try:
        return strict(content.decode("utf-8"))
    except ValueError as error:
        raise BenchError(f"{where} is not valid JSON ({in_words(error)}). {REMEDY}") from None


def strict(text: str, *, doubled_keys: bool = False) -> Any:
    """The same; raises ValueError that says what is wrong. `doubled_keys`: of a key that stands twice the last counts."""
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte-order mark")
    require_shallow(STRING.sub(b"", text.encode("utf-8", "surrogatepass")))
    try:
        found = json.loads(
            text,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
            object_pairs_hook=dict if doubled_keys else _object,
        )
        if SURROGATE.search(text):  # half a character can be written so, and is invalid
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"it needs too much to be read ({type(error).__name__})") from None
    return found


def require_shallow(content: bytes) -> None:
    """Raises ValueError where brackets nest beyond the bound, before a parser follows them."""
    brackets = content.translate(None, NOT_BRACKETS)
    if len(brackets) <= NESTING_MAX:
        return
    marks = np.frombuffer(brackets, dtype=np.uint8)
    steps = np.where((marks == ord("[")) | (marks == ord("{")), 1, -1)
    if int(np.cumsum(steps).max()) > NESTING_MAX:
        raise ValueError(f"it nests deeper than {NESTING_MAX} levels")


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:DIGITS_MAX]} is beyond every number that a computer holds")
    return number


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise ValueError(f"an integer of {len(text)} characters is no measurement")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twice[:DIGITS_MAX]!r} stands twice")
    return found
