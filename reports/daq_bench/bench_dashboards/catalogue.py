"""All dashboards and alert rules, and their files in reports/dashboards/."""

from __future__ import annotations

from pathlib import Path

from daq_bench.bench_dashboards import alerts
from daq_bench.bench_dashboards.boards import compare, drive_health, drive_history, fleet, run_live
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.declared import Declared
from daq_bench.bench_model.base.places import IN_CHECKOUT, REPOSITORY

DASHBOARDS: tuple[Dashboard, ...] = (
    run_live.DASHBOARD,
    drive_health.DASHBOARD,
    drive_history.DASHBOARD,
    fleet.DASHBOARD,
    compare.DASHBOARD,
)
ALERTS_FILE = Path("alerting") / "daq-bench.json"  # a folder of its own: Grafana takes alert rules from another place
FOLDER = REPOSITORY / "reports" / "dashboards" if IN_CHECKOUT else Path("dashboards")


def files(declared: Declared) -> dict[str, str]:
    """Name and content of each file. Raises BenchError for a query of an undeclared name."""
    return {f"{one.uid}.json": one.text(declared) for one in DASHBOARDS}


def write(folder: Path = FOLDER) -> list[Path]:
    """Writes all files and removes those of ours that no dashboard has; nothing is written when one cannot be made."""
    declared = Declared.load()
    made, rules = files(declared), alerts.text(declared)
    (folder / ALERTS_FILE).parent.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("daq-bench-*.json"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ALERTS_FILE).write_text(rules, encoding="utf-8")
    return [*(folder / name for name in made), folder / ALERTS_FILE]
