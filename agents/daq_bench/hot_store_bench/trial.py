"""One run of `hotstore bench`, or of redis-benchmark, as a sample, and the columns that the hot store's tables share."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.workloads.hot_store.figures import SAMPLE_S, rate_of
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import START_S, Tools
from daq_bench.bench_rounds.part import Column
from daq_bench.rig.candidate.travelling import source_of

CAPACITY = 512 << 20
MEMORY = Path("/dev/shm")
SCATTER = "_relative_stdev"


def hotstore_of(tools: Tools) -> Path:
    """Beside daqwriter's build folder, where the same command builds it."""
    return tools.daqwriter.parent.parent / "hot_store" / "hotstore"


def carried_out(tools: Tools, plan: dict[str, Any], seconds: float) -> dict[str, Any]:
    argv = [sys.executable, "-c", source_of("hot_store_nodes"), json.dumps(plan)]
    done = tools.shell.run(argv, START_S + 2 * seconds).check("hot_store_nodes")
    said = json.loads(done.stdout)
    if "error" in said:
        raise BenchError(said["error"])
    result: dict[str, Any] = said["result"][0]
    return result


def plan_of(step: dict[str, Any], masters: int, **more: Any) -> dict[str, Any]:
    folder = str(MEMORY / f"bench-hot-store-{uuid.uuid4().hex[:12]}")
    return {"folder": folder, "masters": masters, "steps": [step], **more}


def load(
    tools: Tools, options: Sequence[str], seconds: float, masters: int = 0, **server: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The document of one `hotstore bench`, alone on the machine with its server, and its command line. `seconds`: all that it may take."""
    result = tools.scratch / f"hot-store-{uuid.uuid4().hex[:12]}.json"
    argv = [str(hotstore_of(tools)), "bench", *options, f"--interval={SAMPLE_S:g}", f"--json={result}"]
    step = {"do": "run", "processes": [{"name": "hotstore", "argv": argv}], "timeout_s": START_S + seconds}
    try:
        said = carried_out(tools, plan_of(step, masters, **server), seconds)["processes"][0]
        if said["returncode"] != 0:
            raise BenchError(f"hotstore ended with exit status {said['returncode']}: {said['stderr']}")
        return json.loads(result.read_text(encoding="utf-8")), tuple(argv)
    finally:
        result.unlink(missing_ok=True)


def sample_from(document: dict[str, Any], value_bytes: int, argv: tuple[str, ...]) -> Sample:
    series = [document[side]["samples_ops_per_s"] for side in ("put", "consume")]
    return sample_of(series[0], series[1], value_bytes, argv)


def sample_of(put: list[float], consume: list[float], value_bytes: int, argv: tuple[str, ...]) -> Sample:
    sides = {"put": rate_of(put), "consume": rate_of(consume)}
    more = {}
    for name, rate in sides.items():
        if not rate["mean_ops_per_s"] or rate["relative_stdev"] is None:
            raise BenchError(f"nothing was done, or too few samples: {name}")
        more[f"{name}_ops_per_s"] = rate["mean_ops_per_s"]
        more[f"{name}_min_ops_per_s"] = rate["min_ops_per_s"]
        more[f"{name}{SCATTER}"] = rate["relative_stdev"]
    return Sample(more["put_ops_per_s"] * value_bytes, more=more, argv=argv)


def kops(header: str, contender: str, quantity: str) -> Column:
    def cell(point: dict[str, Any]) -> str:
        found = point["contenders"].get(contender, {}).get(quantity, {}).get("median")
        return "-" if found is None else f"{found / 1e3:.1f}"

    return f"{header}, KOPS", cell


def ratio(header: str, name: str) -> Column:
    def cell(point: dict[str, Any]) -> str:
        found = point["ratios"].get(name)
        return "**failed**" if not found or not found["n"] else f"{found['median']:.2f} n={found['n']}"

    return header, cell


def limit(point: dict[str, Any]) -> str:
    return "two threads that share one writer's lock"
