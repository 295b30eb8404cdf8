"""One analysis job: a process of its own that takes files off a common list until none is left."""

from __future__ import annotations

import ctypes
import os
import signal
import traceback
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.reading import Usage, read_file
from daq_bench.analysis_reader.tally import Tally

PR_SET_PDEATHSIG = 1  # prctl(2)
READY, DONE, FAILED = "ready", "done", "failed"


def end_with_parent(parent: int) -> None:
    """The kernel ends this process when `parent` ends, however that ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def next_file(turn: Synchronized[int], files: int) -> int | None:
    """The number of the next file that nobody has taken yet."""
    with turn.get_lock():
        mine = turn.value
        turn.value = mine + 1
    return mine if mine < files else None


def work(
    number: int, files: list[Path], analysis: str, turn: Synchronized[int], go: Any, pipe: Connection, parent: int
) -> None:
    """Says READY, waits for `go`, reads; then says DONE with its record and its tally, or FAILED with a sentence."""
    end_with_parent(parent)
    pipe.send((READY, None))
    go.wait()
    usage, found = Usage(), Tally()
    record = {"worker": number, "files": 0, "fetched_bytes": 0, "requests": 0, "fits": 0}
    try:
        while (mine := next_file(turn, len(files))) is not None:
            of_file = read_file(files[mine], analysis)
            found.add(of_file["tally"])
            record["files"] += 1
            for key in ("fetched_bytes", "requests", "fits"):
                record[key] += of_file[key]
    except ReaderError as error:
        pipe.send((FAILED, str(error)))
        return
    except Exception:  # a fault of ours: all of it is needed
        pipe.send((FAILED, traceback.format_exc()))
        return
    pipe.send((DONE, ({**record, "entries": found.entries, **usage.so_far()}, found)))
