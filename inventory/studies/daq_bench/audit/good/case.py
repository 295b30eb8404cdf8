"""One imaginary run: a scenario of the inventory on a server that meets every demand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.bundle.evidence import Evidence
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, as_document, read
from daq_bench.bench_model.documents.telemetry import AccountOfCollector, AccountRow, InfluxState, TelemetryAccount
from daq_bench.bench_model.profiles.candidates import RAW_DEVICE
from daq_bench.bench_model.profiles.metrics import ResultMetric, load_metrics
from daq_bench.bench_model.profiles.requirements import RequirementProfile, load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.workloads.plan import Plan, plan_of
from daq_bench.rig.workloads.registry import declared_limits

INVENTORY = Path(__file__).resolve().parents[4]
TRANSIENT_BUFFER_BYTES = 128 * 10**9
STARTED_UTC = "2026-01-31T12:00:00.000Z"
RATE = 9.6e9  # B/s: a little more than a readout unit delivers


@dataclass
class Case:
    """One imaginary run. `random` makes the scatter; the same scenario always gives the same evidence. `kind` of target: left out, a file
    system where the profile allows one. `capacity_bytes`: of all `members` together, as their user sees it."""

    scenario: Scenario
    profile: RequirementProfile
    metrics: dict[str, ResultMetric]
    random: random.Random = field(default_factory=lambda: random.Random(20211))
    kind: str = ""
    capacity_bytes: int = 4 * 10**12
    members: int = 1

    @property
    def run(self) -> Run:
        return read(self.document, Run, "run.json")

    @property
    def document(self) -> Document:
        """run.json, as far as a verdict rests on it."""
        scenario, demand = self.scenario, self.scenario.demand
        return {
            "schema_version": 1,
            "run_id": f"20260131T120000Z-imaginary-{scenario.id}",
            "state": "finished",
            "state_reason": None,
            "started_utc": STARTED_UTC,
            "finished_utc": "2026-01-31T14:00:00.000Z",
            "candidate": {
                "name": "imaginary",
                "description": "An imaginary server",
                "transient_buffer_bytes": TRANSIENT_BUFFER_BYTES,
                "virtual": False,
                "connection": "local",
            },
            "target": {
                "name": "",
                "kind": self.target_kind,
                "filesystem": None if self.raw else "xfs",
                "drives": self.drives,
                "device": self.device,
            },
            "scenario": {
                "id": scenario.id,
                "scale": scenario.scale,
                "seed": scenario.seed,
                "repetitions": scenario.repetitions,
                "repetitions_max": scenario.repetitions_max,
                "parameters": scenario.document,
            },
            "requirement": {"id": self.profile.id},
            "demand": demand.as_document() if demand.links else None,
            "declared_limits": declared_limits(scenario),
            "further_targets": [],
        }

    @property
    def rate(self) -> float:
        """B/s that the target takes: a little more than the scenario's load."""
        return RATE * max(1.0, self.scenario.scale)

    @property
    def target_kind(self) -> str:
        kinds = self.profile.conditions.target_kinds
        return self.kind or ("filesystem" if "filesystem" in kinds else kinds[0])

    @property
    def raw(self) -> bool:
        return self.target_kind == RAW_DEVICE

    @property
    def drives(self) -> list[Document]:
        size = self.capacity_bytes // self.members
        return [
            {"name": f"nvme{number}n1", "model": "Imaginary 9000", "serial": f"IMG{number + 1}", "size_bytes": size}
            for number in range(self.members)
        ]

    @property
    def device(self) -> Document:
        """The drive, or the array of all of them."""
        names = [one["name"] for one in self.drives]
        if self.members == 1:
            return self.drives[0]
        array = {"name": "md0", "model": None, "serial": None, "size_bytes": self.capacity_bytes}
        return {**array, "raid_level": "raid0", "members": names}

    def plan(self, workload: str) -> Plan:
        return plan_of(self.run, workload)

    def around(self, value: float, share: float = 0.002) -> float:
        """`value` with some scatter."""
        return value * self.random.gauss(1, share)

    def series(self, mean: float, count: int, share: float = 0.005) -> list[float]:
        """Samples of a steady rate whose mean is exactly `mean`."""
        made = [self.around(mean, share) for _ in range(count)]
        off = mean - sum(made) / count
        return [one + off for one in made]


def case_of(
    scenario: str, requirement: str | None = None, kind: str = "", capacity_bytes: int = 4 * 10**12, members: int = 1
) -> Case:
    """The case of a scenario of the inventory under the profile that it names."""
    metrics = load_metrics(INVENTORY / "metrics.yml")
    loaded = _with_a_peer(load_scenario(INVENTORY / "scenarios" / f"{scenario}.yml"))
    named = requirement or loaded.document.get("requirement", "dune-snb")
    profile = load_requirements(INVENTORY / "requirements" / f"{named}.yml", metrics)
    return Case(loaded, profile, metrics, kind=kind, capacity_bytes=capacity_bytes, members=members)


def _with_a_peer(scenario: Scenario) -> Scenario:
    """The scenario with a second host: a shipped one cannot name it, the person who qualifies does."""
    if "interference" not in scenario.workloads:
        return scenario
    document, workloads = deepcopy(scenario.document), deepcopy(scenario.workloads)
    for each in (document["workloads"], workloads):
        each["interference"]["network"]["peer"] = "second-host"
    return replace(scenario, document=document, workloads=workloads)


def evidence_of(case: Case, results: dict[str, Document]) -> Evidence:
    """The evidence of a run in which everything besides the workloads is right, too."""
    checks = [_check("architecture", "x86_64"), _check("CPUs", "32"), _check("drive under the target folder", "IMG1")]
    identity = {"schema_version": 1, "planned": [one["subject"] for one in checks], "checks": checks}
    return Evidence(
        run=case.document,
        identity=identity,
        tuning={"settings": [_setting("applied")]},
        tuning_verified={"settings": [_setting("unchanged")]},
        tuning_after={"settings": [_setting("unchanged")]},
        telemetry=telemetry(COLLECTORS),
        results={
            "results/identity.json": identity,
            "results/sensor_coverage.json": {
                "schema_version": 1,
                "limit_s": 10.0,
                "longest_silence_s": {one["name"]: 1.0 for one in case.drives},
                "invalid": [],
                "limits": [],
            },
            "results/telemetry_account.json": account(COLLECTORS),
            **results,
        },
        clock={"schema_version": 1, "same_clock": True, "readings": []},
        scenario=deepcopy(case.scenario.document),
    )


def _check(subject: str, found: str) -> dict[str, Any]:
    return {"subject": subject, "declared": found, "found": found, "ok": True}


def _setting(status: str) -> dict[str, str]:
    return {
        "id": "cpu-governor",
        "role": "cpu",
        "subject": "all CPUs",
        "asked": "performance",
        "before": "powersave",
        "applied": "performance",
        "read_back": "performance",
        "status": status,
        "detail": "",
    }


COLLECTORS = ("block_device", "cpu", "temperature")


def account(collectors: Sequence[str]) -> Document:
    """results/telemetry_account.json where nothing was lost."""
    every = [AccountOfCollector(name, "ok", 7200, 7200, 0, 7200, None) for name in collectors]
    whole = AccountRow(None, None, 7200 * len(every), 7200 * len(every), None, [])
    counted = InfluxState("2026-01-31T14:00:01.000Z", False, "no server was named", None, 0)
    return as_document(
        TelemetryAccount(1, "finished", counted, [], every, {}, whole, "InfluxDB was not counted", [], [])
    )


def telemetry(collectors: Sequence[str]) -> Document:
    """telemetry/summary.json of an agent that missed nothing."""
    return {
        "schema_version": 1,
        "state": "finished",
        "collectors": [
            {"name": name, "status": "ok", "period_s": 1.0, "longest_gap_s": 1.01, "duration_s_mean": 0.001}
            for name in collectors
        ],
    }
