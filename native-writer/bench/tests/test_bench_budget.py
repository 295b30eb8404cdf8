"""The budget follows from measured costs, and nothing follows from missing ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daq_bench.bench_rounds import cli
from daq_bench.writer_bench import budget


def point(where: str, count: int, **costs: float | None) -> dict[str, Any]:
    return {
        "key": {"where": where, "count": count},
        "label": f"{where} {count}",
        "errors": {},
        "contenders": {
            name.replace("_", "-"): {"cpu_s_per_gb": {"median": cost}, "bytes_per_s": {"median": 1e9}}
            for name, cost in costs.items()
        },
        "ratios": {},
    }


def measured() -> list[dict[str, Any]]:
    return [
        point(budget.NULL, 1, copy=0.05, zero_copy=0.03),
        point(budget.NULL, 2, copy=0.06, zero_copy=0.04),
        point(budget.NULL, 4, copy=0.50, zero_copy=0.50),  # more applications than CPUs
        point(budget.FILES, 1, copy=0.10, zero_copy=0.08),
    ]


def test_the_dearest_cost_of_a_core_of_its_own_decides() -> None:
    rows = {(row["rate_gb_per_s"], row["path"]): row for row in budget.needs(measured(), cpus=2)}
    assert list(rows) == [(rate, path) for rate in (25, 50, 100) for path in ("copy", "zero-copy")]
    dear = rows[100, "copy"]
    assert dear["cores_memory_only"] == 8  # 0.06 CPU s/GB x 100 GB/s / 0.8 = 7.5
    assert dear["cores"] == 13  # 0.10 x 100 / 0.8 = 12.5
    assert dear["memory_bytes_per_s"] == 400e9 and dear["ddr5_4800_channels"] == 15  # 400 / (0.7 x 38.4) = 14.9
    assert rows[25, "zero-copy"]["pcie4_lanes_each_way"] == 15  # 25 / 1.674 = 14.9


@pytest.mark.parametrize("lost", range(4))
def test_nothing_follows_where_a_cost_is_missing(lost: int) -> None:
    points = measured()
    points[lost]["contenders"]["copy"]["cpu_s_per_gb"]["median"] = None
    told = budget.needs(points, cpus=4)
    assert told == [] and budget.needs([], cpus=4) == []
    points[lost]["contenders"].clear()
    assert budget.needs(points, cpus=4) == []


def test_measured_for_real_on_tiny_targets(disk: Path, daqwriter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "APPLICATIONS", (1,))
    monkeypatch.setattr(budget, "TARGETS", (2,))
    monkeypatch.setattr(budget, "TARGET_BYTES", 64 << 20)
    monkeypatch.setattr(budget, "seconds", lambda settings: 0.2)
    options = [f"--scratch={disk / 'scratch'}", f"--output={disk / 'out'}", f"--daqwriter={daqwriter}", "--quick"]
    assert cli.main([*options, "--parts=budget"]) == cli.ALL_HOLD
    made = json.loads((disk / "out" / "budget.json").read_text())
    assert [one["errors"] for one in made["points"]] == [{}, {}]
    assert len(budget.needs(made["points"], cpus=2)) == 6
    summary = (disk / "out" / "summary.md").read_text()
    assert "| 100 | copy |" in summary and "Nothing here was measured at these rates." in summary
    assert list((disk / "scratch").iterdir()) == []
