"""Run bundles with a spool of any length, as a long run would leave them, to measure the cost of reports. Nothing in them was measured."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from daq_bench.bench_model.bundle.column_file import write_columns
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import as_document, read, utc_text
from daq_bench.bench_model.verdict.judging import judge_bundle
from daq_bench.rig.base.bundle import Bundle, to_json
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.checking.sealing import seal_evidence

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
PERIOD_NS = 10**8  # ten samples a second, the agent's fastest
DRIVES = ("nvme0n1", "nvme1n1")
CORES = 4
REQUIREMENT = "dune-snb"
CANDIDATE = "synthetic"
SCENARIO: dict[str, Any] = {  # YAML takes JSON as it is; a workload without a result says nothing
    "id": "synthetic", "title": "Synthetic", "source": "made for measuring reports", "requirement": REQUIREMENT, "scale": 1, "seed": 7,
    "workloads": {
        "thread_scan": {
            "tools": ["fio"], "threads": [1, 2], "block_sizes": ["1MiB"], "seconds_per_point": 1, "ramp_s": 0, "io_depth": 1,
            "file_size": "16MiB", "yields": ["thread_scan.plateau_throughput"],
        },
    },
}  # fmt: skip
ENTRY = {
    "description": "made for measuring reports", "identity": {"cpus_min": CORES}, "transient_buffer": "4GB",
    "tuning": {"cpu_governor": "performance"}, "target": {"kind": "scratch-file", "directory": "none"},
}  # fmt: skip
LAB = {"all": {"children": {"candidates": {"hosts": {CANDIDATE: {"bench_candidate": ENTRY}}}}}}
INLET_EVERY = 100  # ticks between two readings of the BMC
RUN = "20260131T120000Z-synthetic-report"
TAGS = f"host={CANDIDATE},run={RUN}"


def make(root: Path, points: int, columns: bool) -> Path:
    """Makes a sealed bundle with `points` lines of telemetry, half of them of measurements that reports draw, and no report yet."""
    for folder in ("telemetry", "results", "facts", "profiles/requirements", "profiles/scenarios"):
        (root / folder).mkdir(parents=True)
    inventory = Layout().inventory
    shutil.copy(inventory / "metrics.yml", root / "profiles")
    shutil.copy(inventory / "requirements" / f"{REQUIREMENT}.yml", root / "profiles" / "requirements")
    (root / "profiles" / "scenarios" / f"{SCENARIO['id']}.yml").write_text(to_json(SCENARIO), encoding="utf-8")
    (root / "profiles" / "lab.yml").write_text(to_json(LAB), encoding="utf-8")
    length_ns = write_spool(root / "telemetry" / "points.lp", points)
    (root / "run.json").write_text(to_json(_run(RUN, length_ns / 1e9)), encoding="utf-8")
    bundle = Bundle(root, read(_run(RUN, length_ns / 1e9), Run, "run.json"), now=lambda: START)
    bundle.event("phase", "synthetic", "made, not measured")
    bundle.event("busy", "synthetic", "made of nothing")
    verdict = judge_bundle(root)
    bundle.write("verdict.json", verdict)
    bundle.event("verdict", "judge", verdict.outcome, reasons=verdict.reasons)
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
    """Makes the bundle one of a history: `number` days later, with drives that were warmer or colder; judged and sealed as a run is."""
    (root / MANIFEST).unlink()
    run = json.loads((root / "run.json").read_text(encoding="utf-8"))
    for key in ("started_utc", "finished_utc"):
        run[key] = (datetime.fromisoformat(run[key]) + timedelta(days=number)).isoformat()
    run["run_id"] = f"{datetime.fromisoformat(run['started_utc']):%Y%m%dT%H%M%SZ}-{CANDIDATE}-report"
    _replace(root / "run.json", run)
    _replace(root / "results" / "drive_temperature.json", _temperatures(50 + number % 3))
    _replace(root / "verdict.json", as_document(judge_bundle(root)))
    seal_evidence(root)


def _replace(file: Path, document: object) -> None:
    file.unlink(missing_ok=True)  # a hard link that other bundles share
    file.write_text(to_json(document), encoding="utf-8")


def _temperatures(hottest: float) -> dict[str, Any]:
    return {
        "schema_version": 1, "device": ", ".join(DRIVES), "samples": 2, "max_degC": hottest, "hottest_sensor": None,
        "warning_degC": 77.0, "headroom_degC": 77.0 - hottest, "critical_degC": 85.0, "critical_headroom_degC": 85.0 - hottest,
        "reasons": {},
    }  # fmt: skip


def _utc(seconds: float) -> str:
    return utc_text(START + timedelta(seconds=seconds))


def _run(name: str, length_s: float) -> dict[str, Any]:
    drives = [
        {"name": name, "model": "synthetic", "serial": None, "firmware": None, "wwn": None, "size_bytes": 10**12, "numa_node": 0,
         "rotational": False, "transport": "nvme", "pcie_link": None}
        for name in DRIVES
    ]  # fmt: skip
    return {
        "schema_version": 1, "run_id": name, "state": "finished", "state_reason": None,
        "started_utc": _utc(0), "finished_utc": _utc(length_s), "request": {"inventory": None},
        "candidate": {"name": CANDIDATE, "description": "made for measuring reports", "cpus": CORES, "virtual": False,
                      "connection": "local", "transient_buffer_bytes": 4 * 10**9},
        "target": {"name": "", "kind": "scratch-file", "path": "none", "filesystem": "none", "device": drives[0], "drives": drives},
        "scenario": {"id": SCENARIO["id"], "title": "Synthetic", "file": "none.yml", "scale": 1.0, "seed": SCENARIO["seed"],
                     "repetitions": 1, "repetitions_max": 1, "parameters": SCENARIO},
        "requirement": {"id": REQUIREMENT, "title": "Synthetic", "file": f"{REQUIREMENT}.yml"},
        "demand": None, "versions": {}, "git": None, "host_environment": {}, "scaled_down": [], "declared_limits": [],
        "telemetry": None,
    }  # fmt: skip
