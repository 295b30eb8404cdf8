"""Runs all queries of all dashboards for a run, and says which of them stayed empty without a reason. For tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from daq_bench.bench_dashboards.catalogue import DASHBOARDS
from daq_bench.bench_dashboards.interpolation import Choice
from daq_bench.bench_dashboards.trial import Server, Tried, choices_of, range_of, tried
from daq_bench.bench_model.bundle.line_protocol import points_of
from daq_bench.rig.base.bundle import Bundle


def all_tried(server: Server, run: str, wanted: Mapping[str, Choice]) -> list[Tried]:
    """Every query of every dashboard for one run; `wanted`: what the user chose."""
    found: list[Tried] = []
    for dashboard in DASHBOARDS:
        mine = {name: choice for name, choice in wanted.items() if name in {one.name for one in dashboard.variables}}
        choices = choices_of(server, dashboard, mine)
        found += tried(server, dashboard, choices, range_of(server, dashboard, run))
    return found


def unexcused(found: list[Tried], bundle: Path) -> list[Tried]:
    """The queries without rows whose fields, or whose kind of event, the run did have."""
    measurements = {need.partition(".")[0] for one in found for need in one.needs}
    spool = points_of(bundle / "telemetry" / "points.lp", measurements)
    fields = {f"{point.measurement}.{field}" for point in spool for field in point.fields}
    kinds = {event.kind for event in Bundle.open(bundle).events()}
    return [
        one
        for one in found
        if not one.rows
        and (not (one.needs or one.kinds) or fields.intersection(one.needs) or kinds.intersection(one.kinds))
    ]
