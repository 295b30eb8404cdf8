"""Bundles of several candidates or drives, small and quick, with profiles like real ones. For tests only: nothing here was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evidence_factory import LOAD_OF_MADE_UP, conclude, made_up, surroundings
from ruamel.yaml import YAML

from daq_bench.bench_model.documents.comparison import ComparedRequirement, ComparisonDocument

START = datetime(2026, 5, 1, 2, 0, 0, tzinfo=UTC)
RATE, TAIL, LOST, HEAT = "TND-01", "TND-02", "TND-03", "TND-04"
MODEL = "SAMSUNG MZWLO7T6HBLA"

METRICS: dict[str, dict[str, str]] = {
    "demo.rate": {"description": "rate", "unit": "B/s", "file": "results/demo.json", "path": "rate"},
    "demo.tail": {
        "description": "tail",
        "unit": "us",
        "nature": "observed",
        "file": "results/demo.json",
        "path": "tail",
    },
    "demo.lost": {"description": "lost", "unit": "count", "file": "results/demo.json", "path": "lost"},
    "demo.heat": {
        "description": "headroom",
        "unit": "K",
        "nature": "observed",
        "file": "results/demo.json",
        "path": "heat",
    },
}
OF_ROUNDS = {"interval": "rate_interval", "rounds": "rate_rounds"}  # enough of them to decide
REQUIREMENTS: list[dict[str, Any]] = [
    {"id": RATE, "text": "Sustains the real demand", "metric": "demo.rate", "comparison": "at_least", "bound": 9.24288,
     "unit": "GB/s", "statistic": "median", "severity": "mandatory", "source": "section 1"},
    {"id": TAIL, "text": "99.9 % are stored in time", "metric": "demo.tail", "comparison": "at_most", "bound": 1000,
     "unit": "ms", "statistic": "median", "severity": "advisory", "source": "[P]"},
    {"id": LOST, "text": "Nothing is lost", "metric": "demo.lost", "comparison": "equal", "bound": 0, "unit": "count",
     "statistic": "max", "severity": "mandatory", "source": "section 5"},
    {"id": HEAT, "text": "Stays below the warning temperature", "metric": "demo.heat", "comparison": "at_least", "bound": 1,
     "unit": "K", "statistic": "min", "severity": "advisory", "source": "WCTEMP"},
]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of one candidate (or drive). `rates`: GB/s, one per repetition; each other list has one value per repetition or none."""

    candidate: str
    number: int = 1
    rates: Sequence[float] = (10.0,)
    tails_ms: Sequence[float] = (50.0,)
    heats: Sequence[float] = (20.0,)
    lost: int = 0
    outcome: str = ""  # by the measured values where empty; INADMISSIBLE and ERROR for a reason of the bench's
    reason: str = "The telemetry has a gap"  # empty: the run was asked for less, and is a rehearsal
    target: str = ""
    drives: Sequence[dict[str, Any]] = ()
    kernel: str = "6.1.0-28-amd64"
    fio: str = "3.33"
    scale: float = 1.0
    watts: float | None = 80.0  # per GB/s
    price: float | None = None
    rack_units: float | None = 1.0
    dwpd: float | None = 1.0
    scenario: str = "demo"
    bound: float = 9.24288
    governor: str = "performance"
    inlet: float | None = None
    smart: dict[str, dict[str, Any]] = field(default_factory=dict)
    ocp: dict[str, dict[str, int]] = field(default_factory=dict)
    spread: float | None = 0.01  # half of each repetition's interval, as a share; None: it has none


def drive(serial: str, model: str = MODEL, firmware: str = "OPPA4B5Q", size: int = 7_681_501_126_656) -> dict[str, Any]:
    return {
        "name": "nvme0n1", "model": model, "serial": serial, "firmware": firmware, "wwn": f"eui.{serial}", "size_bytes": size,
        "numa_node": 0, "rotational": False, "transport": "nvme", "pcie_link": "32.0 GT/s PCIe x4", "raid_level": None, "members": [],
    }  # fmt: skip


def make_run(folder: Path, run: Run) -> Path:
    """The bundle `folder/<run id>`."""
    began = START + timedelta(days=run.number, minutes=sum(map(ord, run.candidate + run.target)) % 600)
    run_id = (
        f"{began:%Y%m%dT%H%M%SZ}-{run.candidate.replace('/', '-')[:40]}{run.target and '-'}{run.target}-{run.scenario}"
    )
    root = folder / run_id
    for name in ("facts", "results", "telemetry", "profiles/requirements"):
        (root / name).mkdir(parents=True)
    drives = list(run.drives) or [drive(f"{run.candidate[:12]}-1")]
    written_profiles(root, run, drives)
    document: dict[str, Any] = {
        "schema_version": 1, "rate": [rate * 1e9 for rate in run.rates], "tail": [tail * 1e3 for tail in run.tails_ms],
        "lost": [run.lost] * len(run.rates), "heat": list(run.heats),
    }  # fmt: skip
    if run.outcome == "INADMISSIBLE" and run.reason:
        document["invalid"] = [run.reason]
    if run.spread is not None:
        ends = (1 - run.spread, 1 + run.spread)
        document["rate_interval"] = [[1e9 * rate * end for end in ends] for rate in run.rates]
        document["rate_rounds"] = [6] * len(run.rates)
    write(root, "results/demo.json", document)
    if run.watts is not None:
        known = {"started_utc": "2026-01-31T12:00:00Z", "readings": 1}
        records = [known | {"w_per_gb_per_s": run.watts, "mean_w": run.watts * rate} for rate in run.rates]
        write(root, "results/record_power.json", {"schema_version": 1, "records": records, "reasons": {}})
    told = run_document(run_id, run, drives, began)
    write(root, "run.json", told)
    surroundings(root, told)
    settings = {"settings": [
        {"id": "cpu-governor", "role": "cpu", "subject": "all CPUs", "asked": "performance", "before": "", "applied": run.governor,
         "read_back": run.governor, "status": "applied", "detail": ""}]}  # fmt: skip
    for name in ("tuning", "tuning-verified", "tuning-after"):
        write(root, f"facts/{name}.json", settings)
    write(root, "facts/smart-before.json", {"devices": [
        {"device": f"/dev/{one['name']}", "status": "read", "detail": "", "data": smart(one, run.smart.get(one["serial"], {}))}
        for one in drives]})  # fmt: skip
    telemetry(root, run, drives, began)
    conclude(root)
    return root


def write(root: Path, name: str, document: object) -> None:
    (root / name).write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")


def run_document(run_id: str, run: Run, drives: list[dict[str, Any]], began: datetime) -> dict[str, Any]:
    def stamp(moment: datetime) -> str:
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    broken = run.outcome == "ERROR"
    array = {**drives[0], "name": "md127", "model": None, "serial": None, "firmware": None, "raid_level": "raid0"}
    return {
        "schema_version": 1, "run_id": run_id, "state": "error" if broken else "finished",
        "state_reason": run.reason if broken else None, "started_utc": stamp(began),
        "finished_utc": stamp(began + timedelta(minutes=10)),
        "candidate": {"name": run.candidate, "description": "simulated", "hostname": "x", "kernel": run.kernel, "os": "Debian 12",
                      "cpu_model": "EPYC", "cpus": 32, "memory_bytes": 250 * 10**9, "numa_nodes": 2, "transient_buffer_bytes": 2**30,
                      "connection": "local", "virtual": False},
        "target": {"name": run.target, "kind": "filesystem", "path": "/srv/x", "filesystem": "xfs",
                   "device": drives[0] if len(drives) == 1 else array, "drives": drives},
        "scenario": made_up(
            "demo", id=run.scenario, title="A demonstration", file="demo.yml", scale=run.scale, repetitions=len(run.rates),
            repetitions_max=len(run.rates), parameters={"workloads": {"demo": {"block_size": "8MiB"}}}),
        "requirement": {"id": "tender", "title": "What the tender asks for", "file": "tender.yml"}, "demand": None,
        "versions": {"fio": run.fio, "daqwriter": "0.1.0"}, "git": {"commit": "4f0c2d1", "dirty": False},
        "scaled_down": [], "declared_limits": [] if run.reason else ["The load is a smaller one"],
    }  # fmt: skip


def written_profiles(root: Path, run: Run, drives: list[dict[str, Any]]) -> None:
    declared: dict[str, Any] = {}
    if run.price is not None:
        declared["drive_price"] = {"amount": run.price, "currency": "EUR", "date": "2026-05-01", "source": "offer 17"}
    if run.rack_units is not None:
        declared["rack_units"] = {"value": run.rack_units, "source": "data sheet"}
    if run.dwpd is not None:
        declared["drive_endurance"] = {"dwpd": run.dwpd, "years": 5, "source": "data sheet"}
    target: dict[str, Any] = {"kind": "filesystem", "directory": "/srv/x", "drive_serial": drives[0]["serial"]}
    if declared:
        target["declared"] = declared
    entry: dict[str, Any] = {
        "description": "simulated", "identity": {"cpus_min": 1}, "transient_buffer": "1GiB", "tuning": {"cpu_governor": "performance"},
        **({"targets": {run.target: target}} if run.target else {"target": target}),
    }  # fmt: skip
    hosts = {run.candidate: {"ansible_connection": "local", "bench_candidate": entry}}
    yaml(root, "lab.yml", {"all": {"children": {"candidates": {"hosts": hosts}}}})
    metrics = {name: dict(one) for name, one in METRICS.items()}
    if run.spread is not None:
        metrics["demo.rate"] |= OF_ROUNDS
    yaml(root, "metrics.yml", {"version": 1, "measurements": {}, "results": metrics})
    yaml(root, "requirements/tender.yml", {"id": "tender", "title": "What the tender asks for", "source": "tender",
         "conditions": {"scale_min": 0.1, "target_kinds": ["filesystem"], "load": LOAD_OF_MADE_UP},
         "requirements": requirements(run)})  # fmt: skip


def requirements(run: Run) -> list[dict[str, Any]]:
    return [{**one, "bound": run.bound if one["id"] == RATE else one["bound"]} for one in REQUIREMENTS]


def yaml(root: Path, name: str, document: object) -> None:
    with (root / "profiles" / name).open("w", encoding="utf-8") as file:
        YAML().dump(document, file)


def smart(one: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    blocks = one["size_bytes"] // 4096
    return {
        "device": {"name": "/dev/nvme0n1", "protocol": "NVMe"}, "model_name": one["model"], "serial_number": one["serial"],
        "firmware_version": one["firmware"], "nvme_pci_vendor": {"id": 0x144D, "subsystem_id": 0x144D},
        "nvme_ieee_oui_identifier": 0x2538, "nvme_version": {"string": "2.0", "value": 131072}, "nvme_number_of_namespaces": 32,
        "nvme_total_capacity": one["size_bytes"], "nvme_controller_id": 6, "logical_block_size": 4096,
        "nvme_namespaces": [{"id": 1, "size": {"blocks": blocks, "bytes": one["size_bytes"]}, "formatted_lba_size": 4096}],
        "nvme_smart_health_information_log": {"available_spare": 100, "available_spare_threshold": 10, "percentage_used": 0},
        **changes,
    }  # fmt: skip


def telemetry(root: Path, run: Run, drives: list[dict[str, Any]], began: datetime) -> None:
    lines = []
    for second in range(3):
        at = int((began + timedelta(seconds=second)).timestamp() * 1e9)
        if run.inlet is not None:
            lines.append(
                f"ipmi_sensor,host=x,sensor=Inlet,kind=temperature,entity=55.1 temperature_degc={run.inlet} {at}"
            )
        for one in drives:
            fields = {"erases_min": 10 + second, "free_blocks_percent": 90, **run.ocp.get(one["serial"], {})}
            body = ",".join(f"{key}={value}i" for key, value in fields.items())
            lines.append(f"smart_ocp,host=x,device=nvme0n1,serial={one['serial']},model=M {body} {at}")
    (root / "telemetry" / "points.lp").write_text("\n".join(lines) + "\n", encoding="utf-8")


def rate_of(found: ComparisonDocument) -> ComparedRequirement:
    return next(one for one in found.requirements if one.id == RATE)
