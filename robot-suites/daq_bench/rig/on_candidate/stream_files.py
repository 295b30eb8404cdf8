"""The files of a `daqwriter streams` run, looked at by other code than daqwriter's: `check DIRECTORY DEFINITION_BYTES`, `remove DIRECTORY`.

`check` reads every file of the directory back, after asking the kernel to forget what it holds of it, and takes its adler32 with
Python's zlib in one go over the whole, without splits, threads or copies. For the smallest file of up to DEFINITION_BYTES it takes it once
more by RFC 1950's definition, with sums and no library at all. Prints {result: {closed, files: [{name, bytes, recorded, zlib, definition,
fault}]}} or {error}; checksums are 8 hexadecimal digits. `remove` takes the run's own files and the directory away."""

from __future__ import annotations

import json
import os
import sys
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

MANIFEST = "manifest.jsonl"
PATTERN = "*.events"
PIECE_BYTES = 1 << 22
SUM_BYTES = 1 << 16
BASE = 65521  # the largest prime below 2^16, RFC 1950


class FilesError(Exception):
    """A file cannot be looked at; the text becomes {error}."""


def adler32_by_definition(pieces: Any) -> int:
    """RFC 1950, 8.2: s1 is 1 plus the sum of all bytes, s2 the sum of all values of s1; modulo BASE."""
    low, high = 1, 0
    for piece in pieces:
        for begin in range(0, len(piece), SUM_BYTES):
            part = piece[begin : begin + SUM_BYTES]
            high = (high + len(part) * low + sum(accumulate(part))) % BASE
            low = (low + sum(part)) % BASE
    return high << 16 | low


def adler32_by_zlib(pieces: Any) -> int:
    value = 1
    for piece in pieces:
        value = zlib.adler32(piece, value)
    return value & 0xFFFFFFFF


def pieces_of(file: Path) -> Any:
    """Yields the file's bytes from the drive: its pages in the page cache are dropped before."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        while True:
            piece = os.read(descriptor, PIECE_BYTES)
            if not piece:
                return
            yield piece
    finally:
        os.close(descriptor)


def check(directory: Path, definition_bytes: int) -> dict[str, Any]:
    """One row per file that is there or that the manifest lists; `fault` says what is wrong with it, or is null."""
    listed, closed = _manifest(directory)
    names = sorted(set(listed) | {file.name for file in directory.glob(PATTERN)})
    rows = [_row(directory / name, listed.get(name)) for name in names]
    small = [row for row in rows if row["bytes"] is not None and 0 < row["bytes"] <= definition_bytes]
    if small:
        row = min(small, key=lambda one: one["bytes"])
        value = _hex(adler32_by_definition(pieces_of(directory / row["name"])))
        row["definition"] = value
        if row["recorded"] is not None and value != row["recorded"] and row["fault"] is None:
            row["fault"] = f"adler32 {row['recorded']} was recorded, by definition it is {value}"
    return {"closed": closed, "files": rows}


def _manifest(directory: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """(a line for each closed file by its name, whether the run was closed)."""
    listed: dict[str, dict[str, Any]] = {}
    closed = False
    try:
        lines = (directory / MANIFEST).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FilesError(f"{directory / MANIFEST}: {error.strerror}") from None
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            raise FilesError(f"{directory / MANIFEST} has a line that is no JSON: {line[:60]!r}") from None
        if "file" in entry:
            listed[entry["file"]] = entry
        closed = closed or "end" in entry
    return listed, closed


def _row(file: Path, line: dict[str, Any] | None) -> dict[str, Any]:
    recorded = line.get("adler32") if line else None
    row: dict[str, Any] = {"name": file.name, "bytes": None, "recorded": recorded, "zlib": None, "definition": None}
    if not file.exists():
        return {**row, "fault": "is in the manifest and not in the directory"}
    row["bytes"] = file.stat().st_size
    row["zlib"] = _hex(adler32_by_zlib(pieces_of(file)))
    if line is None:
        fault = "is not in the manifest"
    elif recorded is None:
        fault = "has no recorded checksum"
    elif line["bytes"] != row["bytes"]:
        fault = f"has {row['bytes']} B, {line['bytes']} B were recorded"
    elif recorded != row["zlib"]:
        fault = f"adler32 {recorded} was recorded, zlib finds {row['zlib']}"
    else:
        return {**row, "fault": None}
    return {**row, "fault": fault}


def _hex(value: int) -> str:
    return f"{value:08x}"


def remove(directory: Path) -> int:
    """Removes the run's files and the directory; returns how many files. None there is fine."""
    count = 0
    for file in [*directory.glob(PATTERN), directory / MANIFEST]:
        if file.exists():
            file.unlink()
            count += 1
    if directory.exists():
        directory.rmdir()
    return count


def main(arguments: list[str]) -> dict[str, Any]:
    command, directory = arguments[0], Path(arguments[1])
    try:
        return {"result": check(directory, int(arguments[2])) if command == "check" else remove(directory)}
    except FilesError as failure:
        return {"error": str(failure)}
    except OSError as failure:
        return {"error": f"{failure.filename or directory}: {failure.strerror}"}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
