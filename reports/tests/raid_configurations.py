"""A whole bundle of a `raid-vs-3dxp` run, for tests only: simulated rounds under the repository's own profiles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from evidence_factory import conclude, covers_anything, surroundings
from raid_factory import SERIALS, found
from ruamel.yaml import YAML
from tender_factory import START, Run, run_document, write

from daq_bench.bench_model.documents.run import Run as RunJson
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.scenarios import load_scenario
from daq_bench.bench_model.workloads.raid_vs_3dxp.analysis import of_bundle

INVENTORY = Path(__file__).resolve().parents[2] / "inventory"
RATES = {"reference": 12e9, "nand-raid0": 11e9, "nand-raid5": 6e9}


def make_raid_run(root: Path, outcome: str = "PASS") -> Path:
    for name in ("results", "facts", "telemetry", "profiles/requirements"):
        (root / name).mkdir(parents=True)
    rounds = found(lambda turn, name: RATES[name] * (1 + 0.002 * (turn % 3)), tail=lambda turn, name: 2e5 + 1e3 * turn)
    run = Run("server", target="reference", scenario="raid-vs-3dxp")
    document = run_document(root.name, run, rounds["targets"]["reference"]["drives"], START)
    document["scenario"] = _scenario()
    document["requirement"] = {"id": "raid-vs-3dxp", "title": "A RAID set", "file": "raid-vs-3dxp.yml"}
    targets = {
        name: {"kind": "filesystem", "directory": f"/srv/{name}", "declared": {
            "drive_price": {"amount": 400, "currency": "EUR", "date": "2026-11-01", "source": "offer 17"}}}
        for name in SERIALS
    }  # fmt: skip
    entry = {
        "description": "x", "identity": {"cpus_min": 1}, "transient_buffer": "1GiB", "tuning": {"aio_max_nr": 1048576},
        "targets": targets,
    }  # fmt: skip
    hosts = {"server": {"ansible_connection": "local", "bench_candidate": entry}}
    with (root / "profiles" / "lab.yml").open("w", encoding="utf-8") as file:
        YAML().dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    shutil.copy(INVENTORY / "metrics.yml", root / "profiles")
    shutil.copy(INVENTORY / "requirements" / "raid-vs-3dxp.yml", root / "profiles" / "requirements")
    if outcome == "INADMISSIBLE":
        rounds = {**rounds, "invalid": ["simulated"]}
    write(root, "run.json", document)
    write(root, "results/raid_vs_3dxp.json", rounds)
    surroundings(root, document)
    write(root, "results/raid_comparison.json", of_bundle(root, read(document, RunJson, "run.json")))
    conclude(root)
    return root


def _scenario() -> dict[str, Any]:
    """The repository's own, for the sets that were measured."""
    covers_anything("raid_vs_3dxp")
    parameters = load_scenario(INVENTORY / "scenarios" / "raid-vs-3dxp.yml").document
    parameters["workloads"]["raid_vs_3dxp"]["sets"] = [name for name in RATES if name != "reference"]
    told = {key: parameters[key] for key in ("id", "title", "scale", "seed")}
    return {**told, "file": "raid-vs-3dxp.yml", "repetitions": 1, "repetitions_max": 1, "parameters": parameters}
