"""SIGKILL at random moments, again and again: the spool stays whole, and InfluxDB gets every point once."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

from agent_helpers import assert_adds_up, load, running_agent, spooled
from influx_server import InfluxServer
from test_agent_influx import expected, fresh_database, replay, stored
from test_agent_workload import record

KILLS = 20
SEED = 20240611


def test_killed_twenty_times_at_ten_hertz_nothing_is_lost_or_doubled(
    shared_influx: InfluxServer, tmp_path: Path
) -> None:
    """One spool through all lives of the agent, and a workload that goes on writing meanwhile."""
    chance = random.Random(SEED)
    database, spool, workload = fresh_database(shared_influx, "kills"), tmp_path / "s", tmp_path / "workload.lp"
    arguments = ("--influx-url", shared_influx.url, "--database", database, "--period", "0.1", "--tag", "host=h",
                 "--workload-file", str(workload))  # fmt: skip
    written = 0
    for _ in range(KILLS):
        with running_agent(spool, *arguments) as agent:
            with workload.open("a") as stream:
                for _ in range(chance.randrange(1, 20)):
                    stream.write(record(time.time_ns()))
                    written += 1
            time.sleep(chance.uniform(0.0, 1.3))
            agent.kill()
        assert load(spool / "summary.json")["state"] == "running"
    with running_agent(spool, *arguments) as agent:
        time.sleep(0.5)
        summary = agent.terminate()
    assert_adds_up(summary["points"])
    points = replay(shared_influx, database, spool)
    assert_adds_up(points)
    assert points["undelivered"] == points["rejected"] == 0
    in_spool = spooled(spool)  # parses every line: none is torn
    assert summary["measurements"]["daqwriter"]["spooled"] == written
    assert stored(shared_influx, database) == expected(in_spool)
    counts = Counter(point.measurement for point in in_spool)
    assert {name: entry["spooled"] for name, entry in summary["measurements"].items()} == counts
    for name, count in counts.items():
        found = sum(1 for _ in shared_influx.query(f'SELECT * FROM "{name}"', database))
        assert found == count, name
