"""Runs all queries of all dashboards for a run, and says which of them stayed empty without a reason. For tests."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from ansible.module_utils.bench_influx import converge
from ansible.module_utils.bench_influx_servers.influx2 import Server as AdministeredServer
from ansible.module_utils.bench_influx_storage import MEASUREMENTS, OPTIONS, Storage
from influx2_server import OPERATOR, ORGANISATION, Influx2Server

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


def by_the_minute(on: Server, since_ms: int, until_ms: int = 0) -> None:
    """Has InfluxDB 1.8 make values of a minute now, by the statements of its continuous queries, which run each five minutes."""
    for measurement in MEASUREMENTS:
        select = Storage(database=on.database).downsampling(measurement, since_ms // 1000)
        until = f"AND time < {until_ms}ms " if until_ms else ""
        on.rows(select.replace("GROUP BY", f"{until}GROUP BY"))


def by_the_minute_2(influx2: Influx2Server, database: str, days: int) -> None:
    """Has InfluxDB 2 do it, by the task's own text over a longer time."""
    flux = Storage(database=database, downsampled_late=f"{days}d").task(ORGANISATION)
    request = urllib.request.Request(
        f"{influx2.url}/api/v2/query?org={ORGANISATION}",
        json.dumps({"query": flux, "type": "flux"}).encode(),
        {"Authorization": f"Token {OPERATOR}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read().decode()
    assert "error" not in text.splitlines()[0], text[:500]


def set_up_as_the_role(influx2: Influx2Server, folder: Path, database: str) -> None:
    """By the role's own module; the task waits for an hour, so that a test has values of its own making alone."""
    storage = Storage(database=database, retention="INF", downsampled_every="1h")
    options = {name: getattr(storage, name) for name in OPTIONS}
    names = {
        "url": influx2.url,
        "admin_user": "admin",
        "admin_password": "",
        "admin_token": OPERATOR,
        "writer": f"w {database}",
    }
    more = {"organisation": ORGANISATION, "reader": f"r {database}", "token_directory": str(folder)}
    server = AdministeredServer({**options, **names, **more})
    assert converge(server, True)
    assert converge(server, False) == []
