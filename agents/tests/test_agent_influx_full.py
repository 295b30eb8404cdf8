"""An InfluxDB whose own disk is full: it answers 500, the points wait, and all arrive when there is room."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from agent_helpers import assert_adds_up, load, running_agent, spooled, wait_for
from influx_server import InfluxServer
from test_agent_influx import expected, fresh_database, stored
from test_agent_thinning import MIB, fill_disk, small_disk


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_an_influxdb_without_disk_space_costs_no_point(tmp_path: Path) -> None:
    """Filled by somebody else in mid-run, then freed. InfluxDB 1.8 refuses on until it is started again: its log's writer
    keeps its first error."""
    with small_disk(tmp_path, "ext4", 64 * MIB) as disk:
        server = InfluxServer(disk / "influx")
        server.start()
        try:
            database = fresh_database(server, "bench")
            target = ("--influx-url", server.url, "--database", database, "--period", "0.1")
            with running_agent(tmp_path / "s", *target) as agent:
                wait_for(lambda: agent.delivered() > 30, "30 points delivered")
                fill_disk(disk / "hog")
                points = tmp_path / "s" / "points.lp"
                wait_for(lambda: "influx_reachable=false" in points.read_text(), "the refusal noticed", 60)
                before = agent.delivered()
                time.sleep(1.0)
                assert agent.delivered() == before
                (disk / "hog").unlink()
                server.kill()
                server.start()
                wait_for(lambda: agent.delivered() > before + 100, "the backlog delivered", 60)
                summary = agent.terminate()
            assert_adds_up(summary["points"])
            assert summary["points"]["undelivered"] == summary["points"]["rejected"] == 0
            assert "no space left on device" in summary["influx"]["outages"][0]["error"]
            assert stored(server, database) == expected(spooled(tmp_path / "s"))
            assert load(tmp_path / "s" / "cursor.json")["rejected_points"] == 0
        finally:
            server.kill()
