"""Writes what provisioning would have left of the modelled server: the tuning, its two read-backs, the drives' health before and after."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_model.documents.facts import Setting, Tuning
from daq_bench.bench_model.documents.struct import as_document
from daq_bench.rig.base.bundle import Bundle
from daq_bench.simulation.physics.server import Server
from daq_bench.simulation.tools import smartctl

ASKED = (  # id, role, subject, asked, before
    ("cpu-governor", "cpu", "all CPUs", "performance", "schedutil"),
    ("aio-max-nr", "kernel", "fs.aio-max-nr", "1048576", "65536"),
    ("queue-scheduler", "storage", "all drives", "none", "mq-deadline"),
    ("fan-mode", "fans", "BMC", "full", "standard"),
)
TUNING = {"cpu_governor": "performance", "aio_max_nr": 1048576, "queue_scheduler": "none", "fan_mode": "full"}
RESET = {"governor_reset": "cpu-governor", "sysctl_reset": "aio-max-nr"}  # what a hazard takes back
RESTORED_S = 20.0  # a reset that lasts less is put right by the daemon that watches it


def tuning(server: Server, *, applied: bool) -> dict[str, Any]:
    """facts/tuning.json, or with `applied` False what is read back at this moment."""
    settings = []
    for name, role, subject, asked, before in ASKED:
        now = before if _is_reset(server, name) else asked
        status = "applied" if applied else "unchanged" if now == asked else "drifted"
        settings.append(Setting(name, role, subject, asked, before, asked if applied else "", now, status, ""))
    return as_document(Tuning(settings))


def _is_reset(server: Server, setting: str) -> bool:
    for kind, name in RESET.items():
        if name != setting:
            continue
        hazard = server.has_struck(kind)
        if hazard and not (kind == "governor_reset" and hazard.length_s < RESTORED_S):
            server.harms[kind] = f"{setting} was reset during the run and stayed so"
            return True
    return False


def write_smart(bundle: Bundle, server: Server, name: str) -> None:
    """facts/smart-before.json and smart-after.json: smartctl's documents."""
    rows = [
        {
            "device": f"/dev/{one.spec.name}",
            "status": "read",
            "detail": "",
            "data": smartctl.document(one.spec, one, one.composite_degc),
        }
        for one in server.drives
        if one.present
    ]
    bundle.write(f"facts/{name}.json", {"devices": rows})
