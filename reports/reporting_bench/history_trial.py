"""`python -m reporting_bench.history_trial WHAT RUNS`: does the work of a reader of all bundles; prints its seconds and its memory.

A process of its own for each trial, so that its peak memory is its own; that of its largest helper is added."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_model.nights.history_index import forget
from bench_model.nights.run_history import read_all
from reporting_bench.history_bundles import candidate

KIB = 1024
ONE = candidate(0, 1)


def rebuild(runs: Path) -> int:
    forget(runs)
    return len(read_all([runs])[0])


def earlier(runs: Path) -> int:
    """As a night does for each run that has ended."""
    return len(read_all([runs], ONE)[0])


def trend(runs: Path) -> int:
    from bench_report.trend.command import render

    with tempfile.TemporaryDirectory() as folder:
        return len(render([runs], ONE, None, Path(folder)))


def site(runs: Path) -> int:
    from bench_report.site import build

    with tempfile.TemporaryDirectory() as folder:
        return len(build([runs], Path(folder) / "nights", Path(folder) / "site"))


TRIALS: dict[str, Callable[[Path], int]] = {one.__name__: one for one in (rebuild, earlier, trend, site)}


def main(words: Sequence[str]) -> None:
    began, cpu = time.monotonic(), time.process_time()
    made = TRIALS[words[0]](Path(words[1]))
    seconds = time.monotonic() - began
    own, helpers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "seconds": seconds, "made": made, "cpu_s": time.process_time() - cpu + helpers.ru_utime + helpers.ru_stime,
        "max_rss_bytes": KIB * (own.ru_maxrss + helpers.ru_maxrss),
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
