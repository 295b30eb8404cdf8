"""One point: the cache emptied, N workers let go at the same moment, the device's counters before and after, all results put together."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from daq_bench.analysis_reader import device
from daq_bench.analysis_reader.errors import ReaderError
from daq_bench.analysis_reader.fits import fit
from daq_bench.analysis_reader.shape import FULL
from daq_bench.analysis_reader.tally import Tally
from daq_bench.analysis_reader.worker import DONE, FAILED, READY, work

Process = multiprocessing.process.BaseProcess
START_S = 60.0


def measure(files: list[Path], analysis: str, workers: int, devices: list[str], drop_caches: bool) -> dict[str, Any]:
    """The document of one point. Raises ReaderError that names a file, or the worker that died; no worker is left then."""
    if workers < 1:
        raise ReaderError(f"{workers} workers read nothing. Give 1 or more")
    device.forget(files, drop_caches)
    before = device.read_bytes(devices)
    records, found = _let_go(files, analysis, workers)
    after = device.read_bytes(devices)
    return {
        "analysis": analysis,
        "workers": workers,
        "files": len(files),
        "drop_caches": drop_caches,
        "devices": [{"name": name, "read_bytes": after[name] - before[name]} for name in devices],
        "records": records,
        "result": result_of(found, analysis),
    }


def result_of(found: Tally, analysis: str) -> dict[str, Any]:
    """The analysis' result, which does not depend on which worker read which file."""
    return {
        "entries": found.entries,
        "digest": found.digest(),
        "selected": found.selected,
        "balanced": found.balanced,
        "mass": found.mass.tolist(),
        "fit": fit(found.mass) if analysis == FULL else None,
    }


def _let_go(files: list[Path], analysis: str, workers: int) -> tuple[list[dict[str, Any]], Tally]:
    context = multiprocessing.get_context("fork")
    turn, go = context.Value("l", 0), context.Event()
    started: list[tuple[Process, Connection]] = []
    try:
        for number in range(workers):
            ours, theirs = context.Pipe(duplex=False)
            process: Process = context.Process(
                target=work, args=(number, files, analysis, turn, go, theirs, os.getpid())
            )
            process.start()
            theirs.close()  # so that its end is seen when the worker dies
            started.append((process, ours))
        _gather(started, READY, START_S)
        go.set()
        answers = _gather(started, DONE, None)
    finally:
        for one, ours in started:
            if one.is_alive():
                one.join(1.0 if go.is_set() else 0)
            one.kill()
            one.join()
            ours.close()
    found = Tally()
    for _, of_worker in answers:
        found.add(of_worker)
    return [record for record, _ in answers], found


def _gather(started: list[tuple[Process, Connection]], wanted: str, limit_s: float | None) -> list[Any]:
    """The workers' messages, in their order. Raises ReaderError as soon as one fails, dies or does not answer."""
    said: dict[int, Any] = {}
    while len(said) < len(started):
        waiting = {ours: number for number, (_, ours) in enumerate(started) if number not in said}
        heard = wait(list(waiting), limit_s)
        if not heard:
            raise ReaderError(
                f"worker {min(waiting.values())} did not start within {limit_s:.0f} s. Free memory and CPUs, or ask for fewer workers"
            )
        for ours in heard:
            number = waiting[ours]  # type: ignore[index]
            said[number] = _answer(started[number], number, wanted)
    return [said[number] for number in range(len(started))]


def _answer(one: tuple[Process, Connection], number: int, wanted: str) -> Any:
    process, ours = one
    try:
        kind, content = ours.recv()
    except EOFError:
        process.join(5.0)
        raise ReaderError(
            f"worker {number} (pid {process.pid}) died with exit status {process.exitcode} before it had read its files: "
            "the point has no result. Look for a lack of memory (dmesg), and measure again"
        ) from None
    if kind == FAILED:
        raise ReaderError(f"worker {number}: {content}")
    if kind != wanted:
        raise ReaderError(f"worker {number} said {kind!r} instead of {wanted!r}: a fault of the reader; report it")
    return content
