"""A laboratory's history: thousands of small sealed bundles of many candidates, to measure what reads all of them. Nothing was measured."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import run as run_process
from sys import executable

from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.reporting_bench.report_bundle import DRIVES, TAGS, _replace, _temperatures, make
from daq_bench.rig.checking.sealing import seal_evidence

POINTS = 200  # lines of telemetry of each run
MODEL = "synthetic"


def candidate(number: int, candidates: int) -> str:
    return f"server-{number % candidates:03d}"


def make_history(runs: Path, count: int, candidates: int) -> None:
    """Makes `count` bundles in `runs`, a run of each of `candidates` a day, in processes beside each other."""
    runs.mkdir(parents=True)
    base = make(runs.parent / f".{runs.name}-base", POINTS, columns=False)
    shares = min(8, len(os.sched_getaffinity(0)))
    words = [
        [executable, "-m", __name__, base, runs, str(count), str(candidates), f"{at}/{shares}"] for at in range(shares)
    ]
    with ThreadPoolExecutor(shares) as threads:
        for done in threads.map(lambda argv: run_process(argv, check=False), words):
            done.check_returncode()
    shutil.rmtree(base)


def make_share(base: Path, runs: Path, count: int, candidates: int, share: str) -> None:
    at, shares = map(int, share.split("/"))
    for number in range(at, count, shares):
        _make_one(base, runs, number, candidates)


def _make_one(base: Path, runs: Path, number: int, candidates: int) -> None:
    """A copy of `base` that another candidate left on another day on its one drive, judged and sealed as a run is."""
    run = json.loads((base / "run.json").read_text(encoding="utf-8"))
    name, days = candidate(number, candidates), timedelta(days=number // candidates)
    for key in ("started_utc", "finished_utc"):
        run[key] = (datetime.fromisoformat(run[key]) + days).isoformat()
    run["run_id"] = f"{datetime.fromisoformat(run['started_utc']):%Y%m%dT%H%M%SZ}-{name}-synthetic"
    run["candidate"]["name"] = name
    drives = [
        {
            **run["target"]["device"],
            "name": one,
            "serial": f"{name}-{one}",
            "model": MODEL,
            "firmware": f"1.{days.days // 30}",
        }
        for one in DRIVES[:1]
    ]
    run["target"] |= {"device": drives[0], "drives": drives}
    root = runs / run["run_id"]
    shutil.copytree(base, root)
    (root / MANIFEST).unlink()
    _replace(root / "run.json", run)
    spool = root / "telemetry" / "points.lp"  # no two runs have the very same
    spool.write_text(
        spool.read_text(encoding="utf-8").replace(TAGS, f"host={name},run={run['run_id']}"), encoding="utf-8"
    )
    _replace(root / "results" / "drive_temperature.json", _temperatures(50 + number * 7 % 11))
    _replace(root / "verdict.json", as_document(judge_bundle(root)))
    seal_evidence(root)


if __name__ == "__main__":
    from sys import argv

    make_share(Path(argv[1]), Path(argv[2]), int(argv[3]), int(argv[4]), argv[5])
