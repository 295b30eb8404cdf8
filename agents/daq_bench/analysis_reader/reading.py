"""Reads files of a set with uproot and tallies them; counts the bytes asked of the file and those this process fetched from storage."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uproot

from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.fits import fit
from daq_bench.analysis_reader.shape import FULL, TREE
from daq_bench.analysis_reader.tally import Tally, names_of, tally

STEP_BYTES = 100_000_000  # of columns in memory at a time


def process_io() -> dict[str, int]:
    """proc(5): `rchar`, bytes by read calls; `read_bytes`, what the storage layer fetched because of them, read-ahead included."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    found = {key: int(value) for key, value in (line.split(": ") for line in lines)}
    return {key: found[key] for key in ("rchar", "read_bytes")}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The file of a set, without any cache of uproot's."""
    try:
        root = uproot.open(
            path, handler=uproot.MultithreadedFileSource, num_workers=1, object_cache=None, array_cache=None
        )
    except Exception as error:
        raise _unreadable(path, error) from None
    with root:
        yield root


def _unreadable(path: Path, error: Exception) -> ReaderError:
    """The one error for the many kinds of exception that uproot and its decompressors raise for a damaged ROOT file."""
    said = str(error).strip().splitlines()[:1] or [type(error).__name__]
    return ReaderError(f"{path}: cannot be read as a ROOT file of the set ({said[0]}). Generate the set again")


def steps(path: Path, root: Any, names: list[str]) -> Iterator[Any]:
    """Yields the columns of all events, some clusters at a time."""
    try:
        tree = root[TREE]
        for first, end in _bounds(tree, names):
            columns = tree.arrays(names, entry_start=first, entry_stop=end, library="ak")
            yield {name: columns[name] for name in names}
    except Exception as error:
        raise _unreadable(path, error) from None


def _bounds(tree: Any, names: list[str]) -> Iterator[tuple[int, int]]:
    """Ranges of events of about STEP_BYTES, each a multiple of a cluster, so that no basket is fetched twice."""
    whole = tree.num_entries
    offsets = (
        list(tree.common_entry_offsets(filter_name=names)) if hasattr(tree, "common_entry_offsets") else [0, whole]
    )
    each = max(1, int(STEP_BYTES / max(1, 4 * 40 * len(names))))
    first = 0
    for offset in offsets[1:]:
        if offset - first >= each or offset == offsets[-1]:
            yield first, offset
            first = offset


def read_file(path: Path, analysis: str) -> dict[str, Any]:
    """Everything that `analysis` takes from one file: {tally, fits, fetched_bytes, requests}. Raises ReaderError that names the file."""
    found, names = Tally(), names_of(analysis)
    with opened(path) as root:
        for columns in steps(path, root, names):
            found.add(tally(analysis, columns))
        source = root.file.source
        fetched, requests = int(source.num_requested_bytes), int(source.num_requested_chunks)
    # One fit for each file, as an analysis looks at its periods of data taking.
    fits = 1 if analysis == FULL and fit(found.mass) else 0
    return {"tally": found, "fits": fits, "fetched_bytes": fetched, "requests": requests}


class Usage:
    """The CPU time and bytes that this process has used since the object was made."""

    def __init__(self) -> None:
        self._usage, self._io, self.start_s = resource.getrusage(resource.RUSAGE_SELF), process_io(), time.monotonic()

    def so_far(self) -> dict[str, Any]:
        """{pid, start_s, end_s, user_s, system_s, rchar, read_bytes}; times by the monotonic clock, which all processes share."""
        usage, io, end_s = resource.getrusage(resource.RUSAGE_SELF), process_io(), time.monotonic()
        return {
            "pid": os.getpid(),
            "start_s": self.start_s,
            "end_s": end_s,
            "user_s": usage.ru_utime - self._usage.ru_utime,
            "system_s": usage.ru_stime - self._usage.ru_stime,
            **{key: io[key] - self._io[key] for key in io},
        }
