"""The room that the bench's own InfluxDB takes: how full it is, and old raw points that its operator no longer wants.

Nothing is deleted unless the operator says how long raw points are to be kept. Then whole shards go, when every point in them is older than
that and than each run that is not sealed yet. The bench deletes them itself, since a policy of the server's would look at the age alone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.rig.base.influx import DATABASE
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout

RETENTION = "DAQ_BENCH_INFLUX_RAW_RETENTION"  # name of a variable; its value is a duration such as 30d, or INF
CLOCK_OFF_MAX = timedelta(days=1)  # [P] a candidate's clock may be behind ours, and its points older than its run
STAMP = re.compile(r"(\d{8}T\d{6})Z-")


def raw_retention(environment: Mapping[str, str] = os.environ) -> timedelta | None:
    """Returns how long raw points of the bench's own server are kept; None: for ever. Raises RefusedError for no duration."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import duration_s

    text = environment.get(RETENTION) or "INF"
    try:
        seconds = duration_s(text)
    except ValueError as error:
        raise RefusedError(f"{RETENTION}: {error}") from None
    return timedelta(seconds=seconds) if seconds else None


def delete_old(url: str, runs: Path, kept: timedelta | None, now: datetime, database: str = DATABASE) -> int:
    """Deletes shards of the default policy whose points are all older than `kept` and than every unsealed run in `runs`; returns how many.
    None: nothing is deleted. Raises BenchError with InfluxDB's own words."""
    if kept is None:
        return 0
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import InfluxError, influxql
    from ansible.module_utils.bench_influx_storage import name_in

    ask = partial(influxql, url, "")
    before = min([now - kept, *(began - CLOCK_OFF_MAX for began in unsealed_since(runs))])
    try:
        policies = ask(f"SHOW RETENTION POLICIES ON {name_in(database)}")
        raw = [row["name"] for row in policies if row["default"]]
        old = [
            row["id"]
            for row in ask("SHOW SHARDS")
            if row["database"] == database
            and row["retention_policy"] in raw
            and datetime.fromisoformat(row["end_time"]) <= before
        ]
        for shard in old:
            ask(f"DROP SHARD {shard}")
    except InfluxError as error:
        raise BenchError(
            f"InfluxDB at {url} did not delete raw points from before {before:%Y-%m-%d}: {error}"
        ) from None
    return len(old)


def unsealed_since(runs: Path) -> Iterator[datetime]:
    """When each run in `runs` began whose evidence is not sealed yet, by its folder's name, which is the run's id."""
    for folder in runs.iterdir() if runs.is_dir() else ():
        stamp = STAMP.match(folder.name)
        if stamp and folder.is_dir() and not folder.is_symlink() and not (folder / MANIFEST).exists():
            yield datetime.strptime(stamp[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def fullness(folder: Path) -> tuple[str, str]:
    """Says how much room the server's folder takes and how much is left beside it; and what to do where it takes the greater part of
    the two, else an empty text. Its budget is that sum: the disk is full when all of it is used."""
    taken = sum(one.lstat().st_blocks * 512 for one in folder.rglob("*"))
    free = shutil.disk_usage(folder).free
    found = f"{decimal_label(taken)} of {decimal_label(taken + free)} that it may take"
    if taken <= free:
        return found, ""
    return found, (
        f"set {RETENTION} (30d, for example), so that the next start deletes older raw points of sealed runs; or, with the server "
        f"stopped (`daq-bench influx stop`), remove {folder}: bundles hold all telemetry"
    )
