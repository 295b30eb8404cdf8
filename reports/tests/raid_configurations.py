"""A whole bundle of a `raid-vs-3dxp` run, for tests only: simulated rounds under the repository's own profiles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from raid_factory import SERIALS, found
from ruamel.yaml import YAML
from tender_factory import START, Run, run_document

INVENTORY = Path(__file__).resolve().parents[2] / "inventory"
RATES = {"reference": 12e9, "nand-raid0": 11e9, "nand-raid5": 6e9}


def make_raid_run(root: Path, outcome: str = "PASS") -> Path:
    for name in ("results", "profiles/requirements"):
        (root / name).mkdir(parents=True)
    rounds = found(lambda turn, name: RATES[name] * (1 + 0.002 * (turn % 3)), tail=lambda turn, name: 2e5 + 1e3 * turn)
    run = Run("server", target="reference", scenario="raid-vs-3dxp")
    document = run_document(root.name, run, rounds["targets"]["reference"]["drives"], START)
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
    hosts = {"server": {"ansible_connection": "ssh", "bench_candidate": entry}}
    with (root / "profiles" / "lab.yml").open("w", encoding="utf-8") as file:
        YAML().dump({"all": {"children": {"candidates": {"hosts": hosts}}}}, file)
    shutil.copy(INVENTORY / "metrics.yml", root / "profiles")
    shutil.copy(INVENTORY / "requirements" / "raid-vs-3dxp.yml", root / "profiles" / "requirements")
    verdict = {"schema_version": 1, "outcome": outcome, "reasons": ["simulated"], "scale": 1.0, "requirements": []}
    for name, content in (("run", document), ("verdict", verdict), ("results/raid_vs_3dxp", rounds)):
        (root / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return root
