"""`python -m daq_bench.fleet_bench.trial CANDIDATES FOLDER STAGED`: as many simulated candidates at once, by `qualify`; prints the cost.

A process that says a line now and then, and leaves the bundle that was simulated for it in STAGED, stands in the place of each run: the
command's own work is measured (inventory, profiles, lanes, locks, waiting, the live table, each bundle read and judged), not what runs,
Ansible and reports take."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from daq_bench.bench_model.documents.nights import Job, Word
from daq_bench.bench_model.nights.outcome import STATUS, WORST_FIRST
from daq_bench.rig.cli import main as rig
from daq_bench.rig.nightly import job
from daq_bench.rig.nightly.job import Where

RUN = (
    'for i in 1 2 3 4 5; do echo "record $i of 5"; sleep 1; done; '
    'name=$(ls "$1") && cp -r "$1/$name" "$2/.$name" && mv "$2/.$name" "$2/$name"'
)
KIB = 1024


def inventory(file: Path, candidates: int) -> Path:
    entry: dict[str, Any] = {
        "description": "simulated", "identity": {"cpus_min": 1}, "transient_buffer": "4GB", "tuning": {},
        "target": {"kind": "scratch-file", "directory": "/var/tmp/bench"},
    }  # fmt: skip
    hosts = {
        name_of(number): {"ansible_host": "192.0.2.1", "ansible_user": "bench", "bench_candidate": entry}
        for number in range(candidates)
    }
    file.write_text(json.dumps({"all": {"children": {"candidates": {"hosts": hosts}}}}, indent=1), encoding="utf-8")
    return file


def name_of(number: int) -> str:
    return f"server-{number:04d}"


def worst_of(staged: Path, names: list[str]) -> int:
    """The exit status that the staged bundles of these candidates ask for: a run that broke is an ERROR, whatever its verdict."""
    found: set[Word] = set()
    for bundle in (bundle for name in names for bundle in (staged / name).iterdir()):
        run, verdict = (
            json.loads((bundle / file).read_text(encoding="utf-8")) for file in ("run.json", "verdict.json")
        )
        found.add("ERROR" if run["state"] == "error" else verdict["outcome"])
    return STATUS[min(found, key=WORST_FIRST.index)]


def main(words: list[str]) -> None:
    candidates, folder, staged = int(words[0]), Path(words[1]), Path(words[2])
    os.environ |= {"DAQ_BENCH_LOCK_DIR": str(folder), "FORCE_COLOR": "1", "COLUMNS": "80", "LINES": "24"}
    (runs := folder / "runs").mkdir()

    def simulated(job: Job, where: Where) -> list[str]:
        return ["sh", "-c", RUN, "run", str(staged / job.candidate), str(where.runs)]

    job.command = simulated
    job.CLOCK_STEP = timedelta(
        days=36500
    )  # each run was simulated before, and must count as that of its process all the same
    names = [name_of(number) for number in range(candidates)]
    lab = inventory(folder / f"lab-{candidates}.yml", candidates)
    asked = ["--candidates", ",".join(names), "--jobs", str(candidates), "--inventory", str(lab), "--runs", str(runs)]
    began, cpu = time.monotonic(), time.process_time()
    table = folder / "table.txt"
    with table.open("w", encoding="utf-8") as said, contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = rig(["qualify", *asked])
    spent, seconds = time.process_time() - cpu, time.monotonic() - began
    made = len(list(runs.glob("*/run.json")))
    if (status, made) != (worst_of(staged, names), candidates) or "no run began" in table.read_text(encoding="utf-8"):
        raise SystemExit(
            f"status {status}, {made} bundles of {candidates} candidates: {table.read_text(encoding='utf-8')[-2000:]}"
        )
    print(json.dumps({
        "seconds": seconds, "cpu_s": spent, "max_rss_bytes": KIB * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
