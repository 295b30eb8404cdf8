"""The accounts (summary.json) of a run's telemetry agents as one: the candidate's, and the control node's where that read the BMC."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.files import plain_file, read_json
from daq_bench.bench_model.bundle.telemetry_files import OWN, POINTS_FILE, SPOOLS, SUMMARY_FILE
from daq_bench.bench_model.documents.run import FINISHED
from daq_bench.bench_model.documents.struct import Document


def accounted_spools(bundle: Path) -> list[Path]:
    """The spools of `bundle`, relative to it, whose agent left an account."""
    return [
        spool for spool in SPOOLS if all(plain_file(bundle, f"{spool}/{name}") for name in (POINTS_FILE, SUMMARY_FILE))
    ]


def combined_account(bundle: Path) -> Document:
    """One account of all the agents that left one: counts added, collectors and outages side by side. At least one must be there."""
    accounts = {spool: read_json(bundle, f"{spool}/{SUMMARY_FILE}") for spool in accounted_spools(bundle)}
    return combined(accounts)


def combined(accounts: dict[Path, Document]) -> Document:
    """The same of documents by spool."""
    first, *others = accounts.values()
    if not others:
        return first
    everyone = [first, *others]
    made: Document = {
        **first,
        "state": next((one["state"] for one in everyone if one["state"] != FINISHED), FINISHED),
        "collectors": [
            collector if spool == OWN else {**collector, "name": f"{collector['name']} ({spool.name})"}
            for spool, one in accounts.items()
            for collector in one["collectors"]
        ],
        "points": _added([one["points"] for one in everyone]),
        "spool": {
            **first["spool"],
            "last_error": next((error for one in everyone if (error := one["spool"].get("last_error"))), None),
            "thinnings": [entry for one in everyone for entry in one["spool"].get("thinnings", [])],
        },
        "influx": {**first["influx"], "outages": _in_order(everyone, "influx", "outages", "from_utc")},
        "clock": {**first.get("clock", {}), "steps": _in_order(everyone, "clock", "steps", "utc")},
    }
    if all("measurements" in one for one in everyone):
        names = sorted({name for one in everyone for name in one["measurements"]})
        made["measurements"] = {
            name: _added([one["measurements"][name] for one in everyone if name in one["measurements"]])
            for name in names
        }
    return made


def _added(counts: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _in_order(accounts: list[Document], section: str, entries: str, time: str) -> list[dict[str, Any]]:
    found = [entry for one in accounts for entry in one.get(section, {}).get(entries, [])]
    return sorted(found, key=lambda entry: str(entry[time]))
