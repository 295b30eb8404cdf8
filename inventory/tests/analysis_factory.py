"""A made-up results/concurrent_analysis.json whose rates are round numbers: each job fetches what makes its point as fast as asked."""

from __future__ import annotations

from typing import Any

CORES = 2
COUNTS = (1, 2, 3, 4)
EVENTS = 1000
RATES = {  # MB/s by number of workers
    "sparse": {1: 1.0, 2: 2.0, 3: 2.0, 4: 1.9},
    "full": {1: 30.0, 2: 50.0, 3: 45.0, 4: 40.0},
}
TRUTH: dict[str, Any] = {
    "entries": EVENTS, "digest": "a" * 64, "opposite": 800, "signal": 240, "mass": [7] * 100 + [5] * 20,
}  # fmt: skip
FIT: dict[str, Any] = {
    "signal": {"value": 250.0, "error": 20.0}, "mass": {"value": 91.29, "error": 0.1}, "width": {"value": 2.4, "error": 0.1},
    "background": {"value": 560.0, "error": 30.0}, "slope": {"value": 29.0, "error": 2.0}, "chi2": 118.0, "degrees": 115,
}  # fmt: skip


def result(analysis: str, **changes: Any) -> dict[str, Any]:
    full = analysis == "full"
    found = {
        "entries": EVENTS, "digest": TRUTH["digest"], "selected": 800 if full else 0, "balanced": EVENTS if full else 0,
        "mass": list(TRUTH["mass"]), "fit": FIT if full else None,
    }  # fmt: skip
    return {**found, **changes}


def usage(fetched: int, seconds: float, cpu_s: float) -> dict[str, Any]:
    return {
        "pid": 4711, "start_s": 100.0, "end_s": 100.0 + seconds, "user_s": 0.9 * cpu_s, "system_s": 0.1 * cpu_s, "rchar": fetched + 512,
        "read_bytes": fetched + 4096, "fetched_bytes": fetched, "requests": 40, "fits": 0, "entries": EVENTS,
    }  # fmt: skip


def point(analysis: str, workers: int, repetition: int, rate: float, **changes: Any) -> dict[str, Any]:
    """`rate` in MB/s over 2 s; each job uses half of a CPU."""
    each = round(rate * 1e6 * 2 / workers)
    files = [16 // workers + (number < 16 % workers) for number in range(workers)]
    found = {
        "storage": "target", "analysis": analysis, "layout": "ttree", "workers": workers, "repetition": repetition,
        "devices": [{"name": "sda", "read_bytes": 2 * each * workers}],
        "records": [{"worker": number, "files": own, **usage(each, 2.0, 1.0)} for number, own in enumerate(files)],
        "result": result(analysis),
    }  # fmt: skip
    return {**found, **changes}


def run(nodes: list[str], rate: float, result_of: dict[str, Any]) -> dict[str, Any]:
    fetched = round(rate * 1e6)
    return {
        "nodes": nodes, "elapsed_s": 1.0, "devices": [{"name": "sda", "read_bytes": 2 * fetched}],
        "records": [{"node": node, "file": f"{node}.root", **usage(fetched // len(nodes), 1.0, 0.5)} for node in nodes],
        "result": result_of,
    }  # fmt: skip


def farm_round(number: int, together: float = 38.0) -> dict[str, Any]:
    part, whole = result("full", entries=500), result("full")
    runs = [run(["node0"], 20.0, part), run(["node1"], 20.0, part), run(["node0", "node1"], together, whole)]
    return {"round": number, "alone_first": number % 2 == 1, "runs": runs if number % 2 else runs[::-1]}


def of_set(analysis: str, storage: str = "target") -> dict[str, Any]:
    shape = {
        "kind": analysis, "layout": "ttree", "events": EVENTS, "files": 16, "event_bytes": 1000, "cluster_events": 100,
        "compression": "zlib-1", "seed": 1,
        "truth": {"mass": 91.19, "width": 2.5, "slope": 30.0, "signal_share": 0.3, "opposite_share": 0.8},
    }  # fmt: skip
    return {
        "storage": storage,
        "analysis": analysis,
        "layout": "ttree",
        "shape": shape,
        "files": 16,
        "bytes": 800_000,
        "truth": TRUTH,
    }


def found(**changes: Any) -> dict[str, Any]:
    """Six repetitions on one storage, and a farm of two nodes."""
    document = {
        "schema_version": 1, "cores": CORES, "cpus": [0, 1], "drop_caches": True, "layouts": ["ttree"], "compression": "zlib-1",
        "worker_counts": list(COUNTS), "versions": {"uproot": "5"},
        "storages": [
            {"name": "target", "kind": "target", "text": "xfs on a drive", "devices": ["sda"], "limits": None, "reason": None}
        ],
        "sets": [of_set(analysis) for analysis in RATES],
        "points": [
            point(analysis, workers, turn, rate * (1 + 0.01 * turn))
            for analysis, rates in RATES.items()
            for turn in range(1, 7)
            for workers, rate in rates.items()
        ],
        "farm": {
            "analysis": "full",
            "nodes": [{"name": f"node{number}", "workers": 1, "cpus": [number], "files": 8} for number in (0, 1)],
            "rounds": [farm_round(number) for number in range(1, 7)],
        },
        "limits": [],
    }  # fmt: skip
    return {**document, **changes}
