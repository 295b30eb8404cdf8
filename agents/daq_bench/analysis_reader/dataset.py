"""A set of ROOT files on a target: written from a seed, listed with their truth in `set.json`, opened again. Writes into its folder only.

`set.json`: {schema_version, shape, files: [{name, bytes, events}], bytes, truth}. It is written last, so that a folder without it holds
no set; an interrupted or failed generation removes what it wrote."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import uproot

from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.events import cluster
from daq_bench.analysis_reader.shape import FULL, GLOBALS, RNTUPLE, TREE, TTREE, Shape
from daq_bench.analysis_reader.tally import Tally, mass_histogram, tally

MANIFEST = "set.json"
MARGIN = 1.15  # times the uncompressed size, for ROOT's own additions
COMPRESSION = {
    "zlib": uproot.ZLIB, "lz4": uproot.LZ4, "zstd": uproot.ZSTD, "lzma": uproot.LZMA,
}  # fmt: skip


def codec(text: str) -> Any:
    """`zlib-1` and the like, or `none`, as uproot wants it. Raises ReaderError for anything else."""
    name, _, level = text.partition("-")
    if text == "none":
        return None
    if name not in COMPRESSION or not level.isdigit():
        raise ReaderError(
            f"compression {text!r} is not known. Give none, or one of {', '.join(COMPRESSION)} with its level, as in zlib-1"
        )
    return COMPRESSION[name](int(level))


def clusters(shape: Shape, file: int) -> Iterator[tuple[int, int]]:
    """(first event, number of events) of each cluster of a file."""
    whole = shape.events_of(file)
    for first in range(0, whole, shape.cluster_events):
        yield first, min(shape.cluster_events, whole - first)


def flat(arrays: dict[str, Any]) -> dict[str, Any]:
    """Jagged collections as one jagged column for each variable, `collection_name`."""
    found: dict[str, Any] = {name: arrays[name] for name in GLOBALS}
    for group in ("lep", "trk"):
        found |= {f"{group}_{name}": arrays[group][name] for name in arrays[group].fields}
    return found


def write_file(folder: Path, shape: Shape, file: int) -> dict[str, Any]:
    """Writes file number `file`, synced to the drive; returns its entry of `files` with its truth."""
    path = folder / f"events-{file:04d}.root"
    found, opposite, signal = Tally(), 0, 0
    masses = []
    with uproot.recreate(path, compression=codec(shape.compression)) as root:
        writer: Any = None
        for first, count in clusters(shape, file):
            arrays, truth = cluster(shape, file, first, count)
            columns = flat(arrays)
            record = ak.Array(columns) if shape.layout == RNTUPLE else arrays
            if writer is None:
                writer = _writer(root, shape.layout, record)
            writer.extend(record)
            found.add(_own_tally(shape.kind, columns))
            opposite, signal = opposite + truth["opposite"], signal + truth["signal"]
            masses.append(truth["mass"])
    with path.open("rb") as written:
        os.fsync(written.fileno())
    # The spectrum has the generator's own masses, not those that the reader's formula computes from the leptons.
    found.mass = mass_histogram(np.concatenate(masses))
    return {
        "name": path.name,
        "bytes": path.stat().st_size,
        "events": shape.events_of(file),
        "tally": found,
        "opposite": opposite,
        "signal": signal,
    }


def _writer(root: Any, layout: str, record: Any) -> Any:
    if layout == RNTUPLE:
        return root.mkrntuple(TREE, record.layout.form)
    kinds = {
        name: (value.type.content if isinstance(value, ak.Array) else value.dtype) for name, value in record.items()
    }
    return root.mktree(TREE, kinds)


def _own_tally(kind: str, columns: dict[str, Any]) -> Tally:
    """The tally that a perfect reader would find, computed from the arrays before they are written; without the masses."""
    found = tally(kind, columns)
    found.balanced, found.selected = 0, 0
    return found


def generate(folder: Path, shape: Shape, processes: int) -> dict[str, Any]:
    """Writes the whole set into the new folder `folder` by as many processes; returns its `set.json`.

    Raises ReaderError when there is too little space, or the folder cannot be written; nothing is left then."""
    codec(shape.compression)
    if shape.layout not in (TTREE, RNTUPLE):
        raise ReaderError(f"layout {shape.layout!r} is not known. Give {TTREE} or {RNTUPLE}")
    if shape.mean_tracks <= 0:
        raise ReaderError(f"event_bytes {shape.event_bytes} B hold no track. Give more")
    try:
        folder.mkdir()
    except OSError as error:
        raise ReaderError(f"{folder}: {error.strerror}. Name a new folder below one that can be written") from None
    try:
        check_space(folder, shape)
        document = _generate(folder, shape, processes)
        (folder / MANIFEST).write_text(json.dumps(document), encoding="utf-8")
    except BaseException as error:
        remove(folder)
        if isinstance(error, OSError):
            raise ReaderError(
                f"{folder}: {error.strerror or error}: the set was not written, and what there was of it is removed"
            ) from None
        raise
    return document


def check_space(folder: Path, shape: Shape) -> None:
    """Raises ReaderError when the file system cannot hold the set even uncompressed."""
    stat = os.statvfs(folder)
    free, needed = stat.f_bavail * stat.f_frsize, int(MARGIN * shape.raw_bytes)
    if free < needed:
        raise ReaderError(
            f"{folder}: {shape.events} events of {shape.event_bytes} B need up to {needed} B, {free} B are free. "
            "Ask for fewer events, or make room"
        )


def _generate(folder: Path, shape: Shape, processes: int) -> dict[str, Any]:
    whole, files, opposite, signal = Tally(), [], 0, 0
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("fork")) as pool:
        for entry in pool.map(write_file, *zip(*((folder, shape, file) for file in range(shape.files)), strict=False)):
            whole.add(entry.pop("tally"))
            opposite, signal = opposite + entry.pop("opposite"), signal + entry.pop("signal")
            files.append(entry)
    return {
        "schema_version": 1,
        "shape": shape.as_document(),
        "files": files,
        "bytes": sum(entry["bytes"] for entry in files),
        "truth": {
            "entries": whole.entries,
            "digest": whole.digest(),
            "opposite": opposite if shape.kind == FULL else 0,
            "signal": signal,
            "mass": whole.mass.tolist() if shape.kind == FULL else [0] * len(whole.mass),
        },
    }


def load(folder: Path) -> dict[str, Any]:
    """Returns `set.json` after a check that its files are complete. Raises ReaderError that names the first file not as listed."""
    try:
        document: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReaderError(
            f"{folder / MANIFEST}: {getattr(error, 'strerror', None) or error}. Generate the set first"
        ) from None
    for entry in document["files"]:
        path = folder / entry["name"]
        size = path.stat().st_size if path.exists() else None
        if size != entry["bytes"]:
            there = "is not there" if size is None else f"has {size} B"
            raise ReaderError(f"{path}: {there}, {entry['bytes']} B were written. Generate the set again")
    return document


def copy(source: Path, folder: Path) -> None:
    """Copies the set into the new folder `folder`, synced to its drive."""
    load(source)
    folder.mkdir()
    for path in sorted(source.iterdir()):
        target = folder / path.name
        with path.open("rb") as reading, target.open("wb") as writing:
            while piece := reading.read(1 << 22):
                writing.write(piece)
            writing.flush()
            os.fsync(writing.fileno())


def remove(folder: Path) -> None:
    """Removes the set's own files and its folder; anything else in it stays, and the folder with it."""
    for path in [*folder.glob("events-*.root"), folder / MANIFEST]:
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
