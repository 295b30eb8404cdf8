"""`python -m daq_bench.reporting_bench.history_trial WHAT RUNS`: does the work of a reader of all bundles, prints seconds and memory.

A process of its own for each trial, so that its peak memory is its own. Its helpers' is looked at while they run: the kernel's peak of a
child that has ended holds its parent's too, from before it became another program."""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from daq_bench.bench_model.nights.history_index import forget
from daq_bench.bench_model.nights.run_history import read_all
from daq_bench.reporting_bench.history_bundles import MODEL, candidate

KIB = 1024
LOOK_S = 0.05
ONE = candidate(0, 1)


def rebuild(runs: Path) -> int:
    forget(runs)
    return len(read_all([runs])[0])


def earlier(runs: Path) -> int:
    """As a night does for each run that has ended."""
    return len(read_all([runs], ONE)[0])


def trend(runs: Path) -> int:
    from daq_bench.bench_report.trend.command import render

    with tempfile.TemporaryDirectory() as folder:
        return len(render([runs], ONE, None, Path(folder)))


def site(runs: Path) -> int:
    from daq_bench.bench_report.site import build

    with tempfile.TemporaryDirectory() as folder:
        return len(build([runs], Path(folder) / "nights", Path(folder) / "site")[0])


def lot_rows(runs: Path) -> int:
    """Finds the index that `rebuild` made, not the lot's."""
    from daq_bench.bench_report.lot.choice import bundles_of
    from daq_bench.bench_report.lot.told import tell

    return len(tell(bundles_of([runs], MODEL)))


def lot(runs: Path) -> int:
    from daq_bench.bench_report.__main__ import main as report

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        if status := report(["lot", str(runs), "--model", MODEL, "--output", folder]):
            raise SystemExit(status)
        return len(list(Path(folder).iterdir()))


TRIALS: dict[str, Callable[[Path], int]] = {one.__name__: one for one in (rebuild, lot_rows, earlier, trend, site, lot)}


def resident_bytes() -> int:
    """The memory of this process and of its helpers, at this moment."""
    pids, pages = ["self"], 0
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            pids += (thread / "children").read_text().split()
    for pid in pids:
        with contextlib.suppress(OSError):  # a helper that has just ended
            pages += int(Path("/proc", pid, "statm").read_text().split()[1])
    return pages * resource.getpagesize()


@contextlib.contextmanager
def watched() -> Iterator[list[int]]:
    """Yields a list that grows by what is resident, B, at least once."""
    seen, ended = [resident_bytes()], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            seen.append(resident_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def main(words: Sequence[str]) -> None:
    began, cpu = time.monotonic(), time.process_time()
    with watched() as seen:
        made = TRIALS[words[0]](Path(words[1]))
    seconds = time.monotonic() - began
    own, helpers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "seconds": seconds, "made": made, "cpu_s": time.process_time() - cpu + helpers.ru_utime + helpers.ru_stime,
        "max_rss_bytes": max(KIB * own.ru_maxrss, *seen),
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
