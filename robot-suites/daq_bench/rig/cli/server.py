"""`python -m daq_bench.rig influx`: the bench's own InfluxDB."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.arguments import Command
from daq_bench.rig.telemetry.influx_room import RETENTION, delete_old, raw_retention
from daq_bench.rig.telemetry.influx_server import LocalInflux


def add_action(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["start", "stop", "status"])


def influx(options: argparse.Namespace) -> int:
    server = LocalInflux(Layout().influxd, Layout().influx_data)
    if options.action == "start":
        kept = raw_retention()
        started = server.start()
        print(f"InfluxDB is running at {started}")
        if deleted := delete_old(started, Layout().runs, kept, datetime.now(UTC)):
            print(
                f"{deleted} shards of raw points were deleted, older than {RETENTION} and than every run that is not sealed"
            )
    elif options.action == "stop":
        print("InfluxDB stopped" if server.stop() else "InfluxDB was not running")
    else:
        url = server.running_url()
        print(f"InfluxDB is running at {url}" if url else "InfluxDB is not running")
        return 0 if url else 1
    return 0


COMMANDS = {"influx": Command("the bench's own InfluxDB on 127.0.0.1", add_action, influx, needs_checkout=True)}
