"""`python -m daq_bench.rig influx`: the bench's own InfluxDB."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.rig.base.settings import Layout
from daq_bench.rig.cli.arguments import Command
from daq_bench.rig.telemetry.influx_room import (
    RAW_MAX,
    RETENTION,
    delete_beyond,
    delete_old,
    raw_max,
    raw_retention,
    retention_is_chosen,
)
from daq_bench.rig.telemetry.influx_server import LocalInflux


def add_action(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["start", "stop", "status"])


def influx(options: argparse.Namespace) -> int:
    server = LocalInflux(Layout().influxd, Layout().influx_data)
    if options.action == "start":
        kept, bytes_max = raw_retention(), raw_max()
        started = server.start()
        print(f"InfluxDB is running at {started}")
        now = datetime.now(UTC)
        if deleted := delete_old(started, Layout().runs, kept, now, asked=retention_is_chosen()):
            print(
                f"{deleted} days of raw points were deleted: older than {kept} and than every run that is not sealed. Bundles hold them; "
                f"{RETENTION}=INF keeps them here, too"
            )
        deleted, beyond = delete_beyond(started, server.directory, Layout().runs, bytes_max, now)
        if deleted:
            print(f"{deleted} shards of raw points were deleted, the oldest, since all took more than {RAW_MAX}")
        if beyond:
            print(f"{decimal_label(beyond)} more than {RAW_MAX} are left: of today, or of runs that are not sealed")
    elif options.action == "stop":
        print("InfluxDB stopped" if server.stop() else "InfluxDB was not running")
    else:
        url = server.running_url()
        print(f"InfluxDB is running at {url}" if url else "InfluxDB is not running")
        return 0 if url else 1
    return 0


COMMANDS = {"influx": Command("the bench's own InfluxDB on 127.0.0.1", add_action, influx, needs_checkout=True)}
