"""`python -m daq_bench.reporting_bench.report_trial WHAT BUNDLE...`: does the work of a reader of bundles, prints seconds and memory.

A process of its own for each trial, so that its peak memory is its own; that of its largest helper is added."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from daq_bench.reporting_bench import report_bundle

KIB = 1024


def report(roots: Sequence[Path]) -> int:
    from daq_bench.bench_report.qualification.render import render

    return len(render(roots[0]))


def columns(roots: Sequence[Path]) -> int:
    from daq_bench.bench_model.bundle.column_file import DRAWN, SPOOL, to_bytes
    from daq_bench.bench_model.bundle.columns import read_columns
    from daq_bench.bench_model.bundle.provenance import digest_of

    spool = roots[0] / SPOOL
    return len(to_bytes(read_columns(spool, DRAWN), {"sha256": digest_of(spool), "bytes": spool.stat().st_size}))


def trend(roots: Sequence[Path]) -> int:
    from daq_bench.bench_report.trend.command import render

    with tempfile.TemporaryDirectory() as folder:
        return len(render(roots, report_bundle.CANDIDATE, None, Path(folder)))


def judge(roots: Sequence[Path]) -> int:
    from daq_bench.bench_model.verdict.judging import judge_bundle

    return len(judge_bundle(roots[0]).requirements)


def check(roots: Sequence[Path]) -> int:
    from daq_bench.rig.checking.check_bundle import check_bundle
    from daq_bench.rig.checking.own_profiles import Own
    from daq_bench.rig.checking.sealing import seal_reports

    seal_reports(roots[0])  # those of the trial before, as a run would have
    scenario = roots[0] / "profiles" / "scenarios" / f"{report_bundle.SCENARIO['id']}.yml"
    found = check_bundle(roots[0], own=Own(scenario=scenario))
    if found.problems:
        raise SystemExit("\n".join(found.problems[:5]))
    return len(found.lines)


TRIALS: dict[str, Callable[[Sequence[Path]], int]] = {
    one.__name__: one for one in (report, columns, trend, judge, check)
}


def main(words: Sequence[str]) -> None:
    began, cpu = time.monotonic(), time.process_time()
    made = TRIALS[words[0]]([Path(word) for word in words[1:]])
    seconds = time.monotonic() - began
    own, helpers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "seconds": seconds, "made": made, "cpu_s": time.process_time() - cpu + helpers.ru_utime + helpers.ru_stime,
        "max_rss_bytes": KIB * (own.ru_maxrss + helpers.ru_maxrss),
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
