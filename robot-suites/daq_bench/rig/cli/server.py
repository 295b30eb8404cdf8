"""`python -m daq_bench.rig influx`: the bench's own InfluxDB."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.arguments import Command
from daq_bench.rig.telemetry.influx_room import RAW_MAX, RETENTION, Bounds, Room
from daq_bench.rig.telemetry.influx_server import LocalInflux


def add_action(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["start", "stop", "status"])


def influx(options: argparse.Namespace) -> int:
    server = LocalInflux(Layout().influxd, Layout().influx_data)
    if options.action == "start":
        bounds = Bounds.of()
        started = server.start()
        print(f"InfluxDB is running at {started}")
        done = Room(started, server.directory, Layout().runs).tidy(bounds, datetime.now(UTC))
        if done.old:
            print(
                f"{done.old} shards of raw points were deleted: older than they are kept and than every run that is not sealed. "
                f"Bundles hold them; {RETENTION}=INF keeps them here, too"
            )
        if done.kept:
            print(done.kept)
        if done.large:
            print(f"{done.large} shards of raw points were deleted, the oldest, since all took more than {RAW_MAX}")
        if done.beyond_bytes:
            left = decimal_label(done.beyond_bytes)
            print(f"{left} more than {RAW_MAX} are left: of today, or of runs that are not sealed")
    elif options.action == "stop":
        print("InfluxDB stopped" if server.finish() else "InfluxDB was not running")
    else:
        url = server.running_url()
        print(f"InfluxDB is running at {url}" if url else "InfluxDB is not running")
        return 0 if url else 1
    return 0


COMMANDS = {"influx": Command("the bench's own InfluxDB on 127.0.0.1", add_action, influx, needs_checkout=True)}
