"""`python -m fleet_bench.trial CANDIDATES FOLDER`: a fleet of that many simulated candidates, all at once; prints what it cost.

Processes that say a line now and then stand in the place of runs: the control node's own work for each is measured (inventory, lanes,
locks, waiting, the table, the entries), not what runs, Ansible and reports take."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from bench_model.documents.nights import Job
from rig.nightly import job
from rig.nightly.fleet import Fleet
from rig.nightly.job import Where
from rig.nightly.lanes import Stop

RUN = (
    "for i in 1 2 3 4 5; do echo \"record $i of 5\"; sleep 1; done; echo 'error: a simulated run has no bundle'; exit 1"
)
KIB = 1024


def inventory(file: Path, candidates: int) -> Path:
    entry: dict[str, Any] = {
        "description": "simulated", "identity": {"cpus_min": 1}, "transient_buffer": "4GB", "tuning": {},
        "target": {"kind": "scratch-file", "directory": "/var/tmp/bench"},
    }  # fmt: skip
    hosts = {
        f"server-{number:04d}": {"ansible_host": "192.0.2.1", "ansible_user": "bench", "bench_candidate": entry}
        for number in range(candidates)
    }
    file.write_text(json.dumps({"all": {"children": {"candidates": {"hosts": hosts}}}}, indent=1), encoding="utf-8")
    return file


def simulated(job: Job, where: Where) -> list[str]:
    return ["sh", "-c", RUN]


def main(words: list[str]) -> None:
    candidates, folder = int(words[0]), Path(words[1])
    os.environ["DAQ_BENCH_LOCK_DIR"] = str(folder)
    job.command = simulated
    began, cpu = time.monotonic(), time.process_time()
    jobs = [Job(f"server-{number:04d}") for number in range(candidates)]
    where = Where(inventory(folder / f"lab-{candidates}.yml", candidates), folder / "runs")
    with (folder / "table.txt").open("w", encoding="utf-8") as table:
        console = Console(file=table, force_terminal=True, width=120)
        entries = Fleet(jobs, where, folder / "logs", console, candidates, Stop()).execute("the bench")
    if len(entries) != candidates or any("a simulated run has no bundle" not in entry.reason for entry in entries):
        raise SystemExit(f"{len(entries)} of {candidates} candidates ended, or not as simulated ones do")
    print(json.dumps({
        "seconds": time.monotonic() - began, "cpu_s": time.process_time() - cpu,
        "max_rss_bytes": KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
