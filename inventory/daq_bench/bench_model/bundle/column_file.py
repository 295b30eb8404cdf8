"""telemetry/columns.npz: of a large spool the columns that reports draw, read once when the run is sealed instead of for every report.

It is derived and never the truth: it names the spool that it was made of by SHA-256, a reader takes it only where the bundle's manifest
says the same of points.lp, and `daq-bench check-bundle` makes it again and compares."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.whole_files import replace_file
from daq_bench.bench_model.bundle.columns import Column, Columns, Fields, Name, Times, read_columns
from daq_bench.bench_model.bundle.files import open_file, parse_json, plain_file
from daq_bench.bench_model.bundle.provenance import MANIFEST, digest_of, read_manifest

SPOOL, FILE = "telemetry/points.lp", "telemetry/columns.npz"
LEAST_BYTES = 16 << 20  # of a spool: a smaller one is read in a second
FILE_BYTES_MAX = 4 << 30  # the file of ten million points has 0.14 GB
INDEX = "index"
FAULTS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    AttributeError,
    MemoryError,
    RecursionError,
    zipfile.BadZipFile,
)
VERSION = 2
DRAWN: Fields = {
    "block_device": ("written_bytes_per_s", "read_bytes_per_s", "write_latency_s"),
    "cpu": (
        "user_fraction",
        "system_fraction",
        "irq_fraction",
        "softirq_fraction",
        "iowait_fraction",
        "steal_fraction",
    ),
    "temperature": ("temperature_degc",),
    "ipmi_power": ("power_w",),
}


def write_columns(bundle: Path, least_bytes: int = LEAST_BYTES) -> Path | None:
    """Makes the file where the bundle's spool is large; None where it is not, or there is none. Raises ValueError for an unsound spool."""
    spool = bundle / SPOOL
    if not spool.is_file() or spool.stat().st_size < least_bytes:
        return None
    found = read_columns(spool, DRAWN)
    content = to_bytes(found, {"sha256": digest_of(spool), "bytes": spool.stat().st_size})
    target = bundle / FILE
    replace_file(target, content)
    return target


def to_bytes(found: Columns, source: dict[str, Any]) -> bytes:
    arrays: dict[str, Any] = {}
    times: dict[int, str] = {}
    entries = []
    for number, ((measurement, tags, field), column) in enumerate(found.found.items()):
        name = times.setdefault(id(column.times_ns), f"t{number}")
        arrays[name], arrays[f"v{number}"] = column.times_ns, column.values
        entries.append([measurement, tags, field, name, f"v{number}", column.flag])
    index = {"schema_version": VERSION, "source": source, "lines": found.lines, "torn": found.torn, "columns": entries}
    arrays[INDEX] = np.frombuffer(json.dumps(index).encode("utf-8"), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def load_columns(bundle: Path) -> Columns | None:
    """The columns of a bundle: from the file where it belongs to this spool, else from the spool. None where there is no spool."""
    spool = plain_file(bundle, SPOOL)
    if spool is None:
        return None
    stored = _stored(bundle)
    return stored if stored is not None else read_columns(spool, DRAWN)


def _stored(bundle: Path) -> Columns | None:
    """None where the file is not there, or is not of the spool that the manifest lists."""
    if not (bundle / FILE).is_file() or not (bundle / MANIFEST).is_file():
        return None
    source, found = read_file(bundle / FILE)
    listed = read_manifest(bundle / MANIFEST).get(SPOOL)
    fits = source.get("sha256") == listed and source.get("bytes") == (bundle / SPOOL).stat().st_size
    return found if fits else None


def read_file(file: Path) -> tuple[dict[str, Any], Columns]:
    """The source that the file names, and its columns. Raises BenchError for another kind of file."""
    try:
        with open_file(file.parent, file.name, FILE_BYTES_MAX) as stream, np.load(_stored_only(stream)) as arrays:
            index = parse_json(arrays[INDEX].tobytes(), str(file))
            if index["schema_version"] != VERSION:
                raise ValueError(f"its version is {index['schema_version']!r}, and this bench reads {VERSION}")
            times: dict[str, Times] = {name: arrays[name] for *_, name, _, _ in index["columns"]}
            found: dict[Name, Column] = {}
            for measurement, tags, field, time, value, flag in index["columns"]:
                key = (measurement, tuple((tag, text) for tag, text in tags), field)
                found[key] = Column(times[time], arrays[value], flag)
            return index["source"], Columns(found, index["lines"], index["torn"])
    except FAULTS as error:
        raise BenchError(f"{file} is no file of columns ({error}). Remove it: {SPOOL} holds everything in it") from None


def _stored_only(stream: io.BufferedReader) -> io.BufferedReader:
    """The stream itself. Raises ValueError for a file that says to unpack to more than it has."""
    if any(one.compress_type != zipfile.ZIP_STORED for one in zipfile.ZipFile(stream).infolist()):
        raise ValueError("its parts are compressed, which the bench never does")
    stream.seek(0)
    return stream


def difference(bundle: Path) -> str | None:
    """Why the file does not follow from the spool; None where it does, or is not there."""
    if plain_file(bundle, FILE) is None:
        return None
    source, stored = read_file(bundle / FILE)
    spool = bundle / SPOOL
    if not spool.is_file() or source.get("sha256") != digest_of(spool):
        return f"{FILE}: was made of another {SPOOL}"
    made = read_columns(spool, DRAWN)
    same = stored.found.keys() == made.found.keys() and (stored.lines, stored.torn) == (made.lines, made.torn)
    for name, column in made.found.items() if same else ():
        other = stored.found[name]
        same = same and np.array_equal(other.times_ns, column.times_ns) and _equal(other.values, column.values)
    return None if same else f"{FILE}: holds other values than {SPOOL}"


def _equal(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=True))
