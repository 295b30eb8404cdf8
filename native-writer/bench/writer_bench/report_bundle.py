"""Run bundles with a spool of any length, as a long run would leave them, for measuring what reports cost. Nothing in them was measured."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench_model.column_file import write_columns
from bench_model.provenance import MANIFEST
from rig.bundle import to_json
from rig.judging import judge_bundle
from rig.sealing import seal_evidence
from rig.settings import Layout

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
PERIOD_NS = 10**8  # ten samples a second, the agent's fastest
DRIVES = ("nvme0n1", "nvme1n1")
CORES = 4
REQUIREMENT = "dune-snb"
CANDIDATE = "synthetic"
INLET_EVERY = 100  # ticks between two readings of the BMC
TAGS = "host=synthetic,run=20260131T120000Z-synthetic-report"


def make(root: Path, points: int, columns: bool) -> Path:
    """A sealed bundle with `points` lines of telemetry, half of them of measurements that reports draw, and no report yet."""
    for folder in ("telemetry", "results", "facts", "profiles/requirements"):
        (root / folder).mkdir(parents=True)
    inventory = Layout().inventory
    shutil.copy(inventory / "metrics.yml", root / "profiles")
    shutil.copy(inventory / "requirements" / f"{REQUIREMENT}.yml", root / "profiles" / "requirements")
    length_ns = write_spool(root / "telemetry" / "points.lp", points)
    (root / "run.json").write_text(to_json(_run(length_ns / 1e9)), encoding="utf-8")
    (root / "events.jsonl").write_text(json.dumps(_event()) + "\n", encoding="utf-8")
    (root / "verdict.json").write_text(to_json(judge_bundle(root)), encoding="utf-8")
    if columns:
        write_columns(root, least_bytes=0)
    seal_evidence(root)
    return root


def write_spool(file: Path, points: int) -> int:
    """Writes the lines and returns the time that they span, in ns."""
    rng = np.random.default_rng(7)
    start_ns, written, tick = int(START.timestamp()) * 10**9, 0, 0
    with file.open("w", encoding="utf-8") as stream:
        while written < points:
            shares = rng.random((1000, 2 * CORES)).tolist()
            rates = (1e9 * rng.random((1000, len(DRIVES)))).tolist()
            for row, rate in zip(shares, rates, strict=True):
                lines = _tick(start_ns + tick * PERIOD_NS, tick, row, rate)[: points - written]
                stream.writelines(lines)
                written += len(lines)
                tick += 1
                if written == points:
                    break
    return tick * PERIOD_NS


def _tick(at: int, tick: int, shares: list[float], rates: list[float]) -> list[str]:
    lines = []
    for drive, rate in zip(DRIVES, rates, strict=True):
        lines.append(
            f"block_device,device={drive},{TAGS} read_ios={tick}i,written_bytes={tick * 4096}i,written_bytes_per_s={rate!r} {at}\n"
        )
        lines.append(
            f"temperature,device={drive},{TAGS},label=Composite temperature_degc={40 + 10 * rate / 1e9!r},warning_degc=77.0 {at}\n"
        )
    for core in range(CORES):
        user, system = shares[2 * core] / 2, shares[2 * core + 1] / 2
        lines.append(
            f"cpu,core={core},{TAGS} user_fraction={user!r},system_fraction={system!r},iowait_fraction=0.01,irq_fraction=0.0 {at}\n"
        )
        lines.append(f"cpu_frequency,core={core},{TAGS} frequency_hz={2_400_000_000 + tick % 1000}i {at}\n")
    lines += [
        f"pressure,kind=some,resource={name},{TAGS} stalled_us={tick}i,avg10_percent=0.2 {at}\n"
        for name in ("cpu", "io")
    ]
    lines.append(f"memory,{TAGS} total_bytes=25276502016i,available_bytes={24_000_000_000 - tick}i {at}\n")
    lines.append(f"interrupts,core=total,device={DRIVES[0]},{TAGS} count={tick}i {at}\n")
    if tick % INLET_EVERY == 0:
        lines.append(f"ipmi_sensor,entity=55.1,sensor=Inlet,{TAGS} temperature_degc={20 + tick % 7 / 10} {at}\n")
    return lines


def make_another_night(root: Path, number: int) -> None:
    """Makes the bundle one of a history: `number` days later, with values as if they had been measured; it is sealed no more."""
    (root / MANIFEST).unlink()
    run, verdict = (json.loads((root / name).read_text(encoding="utf-8")) for name in ("run.json", "verdict.json"))
    for key in ("started_utc", "finished_utc"):
        run[key] = (datetime.fromisoformat(run[key]) + timedelta(days=number)).isoformat()
    run["run_id"] = f"{datetime.fromisoformat(run['started_utc']):%Y%m%dT%H%M%SZ}-{CANDIDATE}-report"
    verdict |= {"run_id": run["run_id"], "outcome": "PASS"}
    for entry in verdict["requirements"]:
        middle = entry["scaled_bound"] * (1 + number % 3 / 100)
        entry |= {
            "measured": middle, "confidence_interval": [0.99 * middle, 1.01 * middle], "n": 10, "decision": "met", "outcome": "PASS",
        }  # fmt: skip
    for name, document in (("run.json", run), ("verdict.json", verdict)):
        (root / name).unlink()  # a hard link that other bundles share
        (root / name).write_text(to_json(document), encoding="utf-8")


def _utc(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event() -> dict[str, Any]:
    return {"time_utc": _utc(0), "kind": "phase", "source": "synthetic", "text": "made, not measured", "data": {}}


def _run(length_s: float) -> dict[str, Any]:
    drives = [
        {"name": name, "model": "synthetic", "serial": None, "firmware": None, "wwn": None, "size_bytes": 1e12, "numa_node": 0,
         "rotational": False, "transport": "nvme", "pcie_link": None}
        for name in DRIVES
    ]  # fmt: skip
    return {
        "schema_version": 1, "run_id": "20260131T120000Z-synthetic-report", "state": "finished", "state_reason": None,
        "started_utc": _utc(0), "finished_utc": _utc(length_s), "request": {"inventory": None},
        "candidate": {"name": CANDIDATE, "description": "made for measuring reports", "cpus": CORES, "transient_buffer_bytes": 4e9},
        "target": {"name": "", "kind": "scratch-file", "path": "none", "filesystem": "none", "device": drives[0], "drives": drives},
        "scenario": {"id": "synthetic", "title": "Synthetic", "file": "none.yml", "scale": 1.0, "seed": 7, "repetitions": 1,
                     "parameters": {"workloads": {}}},
        "requirement": {"id": REQUIREMENT, "title": "Synthetic", "file": f"{REQUIREMENT}.yml"},
        "demand": None, "versions": {}, "git": None, "host_environment": {}, "scaled_down": [], "telemetry": None,
    }  # fmt: skip
