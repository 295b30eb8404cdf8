"""Against a real InfluxDB 1.8 (INFLUXD_BIN): rows queried back equal the spool, whatever is killed when."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_helpers import PATIENCE_S, AgentProcess, assert_adds_up, load, run_cli, running_agent, spooled, wait_for
from influx_server import InfluxServer
from test_agent_workload import record

from daq_bench.telemetry_agent.base.point import Encoder, Point
from daq_bench.telemetry_agent.delivery.delivery import Delivery
from daq_bench.telemetry_agent.delivery.influx import Destination, InfluxWriter
from daq_bench.telemetry_agent.spool.cursor import Cursor

FAST = ("--period", "0.2", "--tag", "host=my host", "--tag", "run=r,1", "--drain-seconds", "10")


def fresh_database(server: InfluxServer, name: str) -> str:
    """An empty database."""
    server.query(f'CREATE DATABASE "{name}"')
    return name


def stored(server: InfluxServer, database: str) -> dict[str, dict[str, Any]]:
    """Everything in a database, by line protocol head and time: comparable with the spool."""
    table: dict[str, dict[str, Any]] = {}
    for row in server.query("SHOW MEASUREMENTS", database):
        measurement = row["name"]
        tags = [entry["tagKey"] for entry in server.query(f'SHOW TAG KEYS FROM "{measurement}"', database)]
        for found in server.query(f'SELECT * FROM "{measurement}" GROUP BY *', database):
            pairs = sorted((key, found[key]) for key in tags if found.get(key))
            fields = {k: v for k, v in found.items() if k not in tags and k != "time" and v is not None}
            table[json.dumps([measurement, pairs, found["time"]])] = fields
    return table


def expected(points: list[Point]) -> dict[str, dict[str, Any]]:
    """The same of spooled points."""
    table: dict[str, dict[str, Any]] = {}
    for point in points:
        key = json.dumps([point.measurement, sorted(point.tags), point.time_ns])
        assert key not in table, "two points of one series at one instant would overwrite each other"
        table[key] = dict(point.fields)
    return table


@contextmanager
def agent_on(server: InfluxServer, database: str, spool: Path, *more: str) -> Iterator[AgentProcess]:
    """An agent delivering to a server."""
    target = ("--influx-url", server.url, "--database", database)
    with running_agent(spool, *target, *FAST, *more) as agent:
        yield agent


def replay(server: InfluxServer, database: str, spool: Path) -> dict[str, int]:
    """Replay a spool; returns the summary's points."""
    done = run_cli("replay", "--spool-dir", str(spool), "--influx-url", server.url, "--database", database)
    assert done.returncode == 0, done.stderr
    points: dict[str, int] = load(spool / "replay.json")["points"]
    assert json.loads(done.stdout) == points
    return points


def test_rows_queried_back_equal_the_points_spooled(shared_influx: InfluxServer, tmp_path: Path) -> None:
    """All series, times, values and types of a run, the workload's records included."""
    database, workload = fresh_database(shared_influx, "whole"), tmp_path / "workload.lp"
    with agent_on(shared_influx, database, tmp_path / "s", "--workload-file", str(workload)) as agent:
        workload.write_text("".join(record(time.time_ns() + number) for number in range(50)))
        wait_for(lambda: agent.delivered() > 100, "100 points delivered")
        summary = agent.terminate()
    assert_adds_up(summary["points"])
    assert summary["points"]["undelivered"] == summary["points"]["rejected"] == 0
    assert summary["influx"]["reachable_at_end"] is True
    points = spooled(tmp_path / "s")
    assert sum(point.measurement == "daqwriter" for point in points) == 50
    assert stored(shared_influx, database) == expected(points)


def test_field_types_in_influxdb_are_the_declared_ones(shared_influx: InfluxServer, tmp_path: Path) -> None:
    """Integers stay integers: InfluxDB's own schema says so."""
    database = fresh_database(shared_influx, "types")
    with agent_on(shared_influx, database, tmp_path) as agent:
        wait_for(lambda: agent.delivered() > 50, "50 points delivered")
        agent.terminate()
    kinds = {row["fieldKey"]: row["fieldType"] for row in shared_influx.query("SHOW FIELD KEYS", database)}
    assert kinds["available_bytes"] == kinds["stalled_us"] == "integer"
    assert kinds["busy_fraction"] == kinds["duration_s"] == "float"
    assert kinds["success"] == "boolean"


def test_every_escape_survives_influxdb(shared_influx: InfluxServer, tmp_path: Path) -> None:
    """InfluxDB reads back the same values as our parser."""
    database = fresh_database(shared_influx, "escapes")
    names = [
        "a b",
        "a,b",
        "a=b",
        'a"b',
        "a\\b",
        "\\\\x",
        "é√",
        "'q'",
        "{}",
        "#x",
        "a\tb",
        '"',
        "=",
        ",",
        'a",b',
    ]
    points = [
        Point(
            "m " + name,
            (("k" + name, name + "\\,\\ \\=."),),
            {"f" + name: name, "n": index, "y": name + "\\"},
            index + 1,
        )
        for index, name in enumerate(names)
    ]
    (tmp_path / "points.lp").write_text("".join(map(Encoder({}).encode, points)), encoding="utf-8")
    cursor = Cursor(tmp_path, 10**9)
    writer = InfluxWriter(Destination(shared_influx.url, database))
    path = tmp_path / "points.lp"
    Delivery(path, cursor, writer, lambda: path.stat().st_size).drain(PATIENCE_S)
    assert (cursor.delivered_points, cursor.rejected_points) == (len(points), 0)
    for index, point in enumerate(points):
        (tag,) = point.tags
        quoted = point.measurement.replace("\\", "\\\\").replace('"', '\\"')
        (row,) = shared_influx.query(f'SELECT * FROM "{quoted}" GROUP BY *', database)
        assert row == {"time": index + 1, tag[0]: tag[1], **point.fields}


def test_a_type_conflict_is_rejected_alone(shared_influx: InfluxServer, tmp_path: Path) -> None:
    """The conflicting line is put aside with InfluxDB's reason, its neighbours are stored."""
    database = fresh_database(shared_influx, "conflict")
    lines = [f"m x={n}i {n}\n" for n in range(1, 100)]
    lines.insert(60, "m x=1.5 1000\n")
    (tmp_path / "points.lp").write_text("".join(lines))
    points = replay(shared_influx, database, tmp_path)
    assert (points["delivered"], points["rejected"], points["undelivered"]) == (99, 1, 0)
    assert shared_influx.query("SELECT count(x) FROM m", database)[0]["count"] == 99
    comment, line = (tmp_path / "rejected.lp").read_text().splitlines()
    assert line == "m x=1.5 1000"
    assert "field type conflict" in comment


def test_a_missing_database_costs_no_point(shared_influx: InfluxServer, tmp_path: Path) -> None:
    """404 is a matter of set-up: the points stay, the message says what to do, later all are delivered."""
    (tmp_path / "points.lp").write_text("m x=1i 1\nm x=2i 2\n")
    target = ("--influx-url", shared_influx.url, "--database", "forgotten", "--drain-seconds", "0.3")
    done = run_cli("replay", "--spool-dir", str(tmp_path), *target)
    assert done.returncode == 1
    assert "create the database" in done.stderr
    fresh_database(shared_influx, "forgotten")
    assert replay(shared_influx, "forgotten", tmp_path)["delivered"] == 2


def test_influxdb_killed_during_the_run_and_started_again_gets_everything(
    own_influx: InfluxServer, tmp_path: Path
) -> None:
    """The outage is recorded and closed; nothing is missing afterwards."""
    own_influx.start()
    database = fresh_database(own_influx, "bench")
    with agent_on(own_influx, database, tmp_path / "s") as agent:
        wait_for(lambda: agent.delivered() > 30, "30 points delivered")
        own_influx.kill()
        before = agent.spooled_lines()
        spool = tmp_path / "s" / "points.lp"
        wait_for(lambda: "influx_reachable=false" in spool.read_text(), "the outage noticed")
        wait_for(lambda: agent.spooled_lines() > before + 60, "sampling goes on without InfluxDB")
        delivered = agent.delivered()
        own_influx.start()
        wait_for(lambda: agent.delivered() > delivered + 60, "the backlog delivered")
        summary = agent.terminate()
    assert_adds_up(summary["points"])
    assert summary["points"]["undelivered"] == 0
    (outage,) = summary["influx"]["outages"]
    assert outage["to_utc"] is not None
    gaps = {one["name"]: one["longest_gap_s"] for one in summary["collectors"]}
    assert gaps["cpu"] < 5.0 and gaps["memory"] < 6.0  # ten times and once a second; a busy machine is late
    assert stored(own_influx, database) == expected(spooled(tmp_path / "s"))


def test_without_influxdb_the_run_goes_on_and_replay_delivers_later(own_influx: InfluxServer, tmp_path: Path) -> None:
    """Undelivered is counted, one warning is given; replay is complete and may be repeated."""
    spool = tmp_path / "s"
    with agent_on(own_influx, "bench", spool, "--drain-seconds", "0.2") as agent:
        wait_for(lambda: agent.spooled_lines() > 60, "60 points")
        summary = agent.terminate()
    assert_adds_up(summary["points"])
    assert summary["points"]["undelivered"] == summary["points"]["spooled"]
    assert summary["influx"]["reachable_at_end"] is False
    assert [outage["to_utc"] for outage in summary["influx"]["outages"]] == [None]
    assert agent.stderr.count("does not take points") == 1
    own_influx.start()
    fresh_database(own_influx, "bench")
    for _ in range(2):
        points = replay(own_influx, "bench", spool)
        assert points["delivered"] == points["collected"] == summary["points"]["collected"]
    assert stored(own_influx, "bench") == expected(spooled(spool))
    assert load(spool / "summary.json") == summary  # the run's own account is evidence and stays
    final = load(spool / "replay.json")
    assert (final["state"], final["replayed"]) == ("finished", True)
    assert final["collectors"] == summary["collectors"]


@pytest.mark.parametrize("lose_cursor", [False, True])
def test_after_sigkill_replay_delivers_what_was_spooled(
    shared_influx: InfluxServer, tmp_path: Path, lose_cursor: bool
) -> None:
    """Also when the cursor is lost: equal points overwrite, so the database holds each once."""
    database = fresh_database(shared_influx, f"killed{lose_cursor}")
    with agent_on(shared_influx, database, tmp_path) as agent:
        wait_for(lambda: agent.delivered() > 30, "30 points delivered")
        agent.kill()
    if lose_cursor:
        (tmp_path / "cursor.json").write_text("")
    with (tmp_path / "points.lp").open("ab") as stream:
        stream.write(b"cpu,core=0 busy_fr")
    points = replay(shared_influx, database, tmp_path)
    assert_adds_up(points)
    assert points["undelivered"] == points["rejected"] == 0
    assert load(tmp_path / "replay.json")["state"] == "interrupted"
    assert stored(shared_influx, database) == expected(spooled(tmp_path))


def test_points_beyond_the_retention_policy_are_rejected_and_all_others_stored(
    shared_influx: InfluxServer, tmp_path: Path
) -> None:
    """InfluxDB 1.8 answers 400 "partial write ... dropped=N" and stores the rest: each line ends on its side of the account."""
    database = fresh_database(shared_influx, "short")
    shared_influx.query('CREATE RETENTION POLICY "hour" ON "short" DURATION 1h REPLICATION 1 DEFAULT')
    now = time.time_ns()
    old = [f"m x={n}i {now - 7200 * 10**9 - n}\n" for n in range(40)]
    new = [f"m x={n}i {now - n}\n" for n in range(60)]
    mixed = [line for pair in zip(old, new, strict=False) for line in pair] + new[40:] + old
    (tmp_path / "points.lp").write_text("".join(mixed))
    points = replay(shared_influx, database, tmp_path)
    assert (points["delivered"], points["rejected"], points["undelivered"]) == (60, 80, 0)
    assert shared_influx.query("SELECT count(x) FROM m", database)[0]["count"] == 60
    rejected = [line + "\n" for line in (tmp_path / "rejected.lp").read_text().splitlines() if not line.startswith("#")]
    assert sorted(rejected) == sorted(old + old)


def test_conflicts_of_several_kinds_in_one_batch_cost_their_own_lines_only(
    shared_influx: InfluxServer, tmp_path: Path
) -> None:
    """Types, syntax and another field in between, over several shards: InfluxDB names only one of its reasons."""
    database = fresh_database(shared_influx, "conflicts")
    week = 7 * 86400 * 10**9
    good = [f"m,t={n % 7} x={n}i,y=0.5 {1 + n % 3 * week + n}\n" for n in range(300)]
    bad = [f'm,t=1 x="text" {5000 + n % 3 * week + n}\n' for n in range(9)] + [
        "m,t=1 x=1i,z= 77\n",
        "m,t=1 x=1i soon\n",
    ]
    lines = good[:100] + bad[:4] + good[100:200] + bad[4:] + good[200:]
    (tmp_path / "points.lp").write_text("".join(lines))
    points = replay(shared_influx, database, tmp_path)
    assert (points["delivered"], points["rejected"], points["undelivered"]) == (300, len(bad), 0)
    assert shared_influx.query("SELECT count(x) FROM m", database)[0]["count"] == 300
    kept = [line + "\n" for line in (tmp_path / "rejected.lp").read_text().splitlines() if not line.startswith("#")]
    assert sorted(kept) == sorted(bad)
