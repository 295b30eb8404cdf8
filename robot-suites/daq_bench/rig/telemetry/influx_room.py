"""The room that the bench's own InfluxDB takes: how full it is, and old raw points, which go.

Raw points are kept as long as on the server that the role `influxdb` sets up, unless the operator says how long, or how much disk they
may take. Whole shards go, of a day each, the oldest first, and none with a point that is younger than a run that is not sealed yet. The
bench deletes them itself, since a policy of the server's would look at the age alone, and refuse the replay of an old run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label, parse_size
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.rig.base.influx import DATABASE
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout

RETENTION = "DAQ_BENCH_INFLUX_RAW_RETENTION"  # name of a variable; its value is a duration such as 30d, or INF
RAW_MAX = "DAQ_BENCH_INFLUX_RAW_MAX"  # name of a variable; its value is a size such as 200GB
CLOCK_OFF_MAX = timedelta(days=1)  # [P] a candidate's clock may be behind ours, and its points older than its run
SHARD_BY_DEFAULT = timedelta(days=1)
STAMP = re.compile(r"(\d{8}T\d{6})Z-")


def raw_retention(environment: Mapping[str, str] = os.environ) -> timedelta | None:
    """Returns how long raw points of the bench's own server are kept; None: for ever. Where nobody says, as long as on the role's server;
    but an operator who gives a size alone gets it filled. Raises RefusedError for no duration."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import duration_s
    from ansible.module_utils.bench_influx_storage import Storage

    text = environment.get(RETENTION) or ("INF" if environment.get(RAW_MAX) else Storage().retention)
    try:
        seconds = duration_s(text)
    except ValueError as error:
        raise RefusedError(f"{RETENTION}: {error}") from None
    return timedelta(seconds=seconds) if seconds else None


def raw_max(environment: Mapping[str, str] = os.environ) -> int | None:
    """Returns B that raw points of the bench's own server may take; None: any amount. Raises RefusedError for no size."""
    text = environment.get(RAW_MAX)
    if not text:
        return None
    try:
        size = parse_size(text)
    except ValueError as error:
        raise RefusedError(f"{RAW_MAX}: {error}") from None
    if size == 0:
        raise RefusedError(
            f"{RAW_MAX}: 0 would delete all raw points of sealed runs at each start; unset it to keep them"
        )
    return size


def retention_is_chosen(environment: Mapping[str, str] = os.environ) -> bool:
    """Says whether the operator chose how long raw points are kept."""
    return bool(environment.get(RETENTION))


def delete_old(
    url: str, runs: Path, kept: timedelta | None, now: datetime, database: str = DATABASE, *, asked: bool = True
) -> int:
    """Deletes shards of the default policy whose points are all older than `kept` and than every unsealed run in `runs`; returns how many.
    None: nothing is deleted. Not asked: shards of more than a day stay, since they are from when raw points were kept for ever. Raises
    BenchError with InfluxDB's own words."""
    if kept is None:
        return 0
    before = _needed_since(now - kept, runs)
    old = [
        shard
        for shard in _raw_shards(url, database)
        if shard.end <= before and (asked or shard.span <= SHARD_BY_DEFAULT)
    ]
    _drop(url, old)
    return len(old)


def delete_beyond(
    url: str, folder: Path, runs: Path, bytes_max: int | None, now: datetime, database: str = DATABASE
) -> tuple[int, int]:
    """Deletes the oldest shards of the default policy until its shards take at most `bytes_max` on disk, and none that may hold points of
    now or of an unsealed run in `runs`. Returns how many it deleted, and B that are still too much. `folder`: the server's own. None:
    nothing is deleted. Raises BenchError with InfluxDB's own words."""
    if bytes_max is None:
        return 0, 0
    before = _needed_since(now, runs)
    shards = _raw_shards(url, database)
    sizes = {shard.id: sum(_taken(folder / part / shard.place) for part in ("data", "wal")) for shard in shards}
    beyond, old = sum(sizes.values()) - bytes_max, []
    for shard in shards:
        if beyond > 0 and shard.end <= before:
            old.append(shard)
            beyond -= sizes[shard.id]
    _drop(url, old)
    return len(old), max(beyond, 0)


@dataclass(frozen=True)
class _Shard:
    """`place`: its folder below the server's `data` and `wal`."""

    id: int
    end: datetime
    span: timedelta
    place: Path


def _needed_since(wanted: datetime, runs: Path) -> datetime:
    return min([wanted, *(began - CLOCK_OFF_MAX for began in unsealed_since(runs))])


def _raw_shards(url: str, database: str) -> list[_Shard]:
    """Shards of the default policy, the oldest first."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx_storage import name_in

    raw = [row["name"] for row in _ask(url, "SHOW RETENTION POLICIES ON " + name_in(database)) if row["default"]]
    found = [
        _Shard(
            row["id"],
            datetime.fromisoformat(row["end_time"]),
            datetime.fromisoformat(row["end_time"]) - datetime.fromisoformat(row["start_time"]),
            Path(database) / row["retention_policy"] / str(row["id"]),
        )
        for row in _ask(url, "SHOW SHARDS")
        if row["database"] == database and row["retention_policy"] in raw
    ]
    return sorted(found, key=lambda shard: shard.end)


def _drop(url: str, shards: list[_Shard]) -> None:
    for shard in shards:
        _ask(url, f"DROP SHARD {shard.id}")


def _ask(url: str, statement: str) -> list[dict[str, Any]]:
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx import InfluxError, influxql

    try:
        rows: list[dict[str, Any]] = influxql(url, "", statement)
    except InfluxError as error:
        raise BenchError(f"InfluxDB at {url} did not delete raw points: {error}") from None
    return rows


def _taken(folder: Path) -> int:
    """B that a folder takes on disk; 0 for one that is not there. A file may go meanwhile: the server is at work."""
    taken = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            taken += path.lstat().st_blocks * 512
    return taken


def unsealed_since(runs: Path) -> Iterator[datetime]:
    """When each run in `runs` began whose evidence is not sealed yet, by its folder's name, which is the run's id."""
    for folder in runs.iterdir() if runs.is_dir() else ():
        stamp = STAMP.match(folder.name)
        if stamp and folder.is_dir() and not folder.is_symlink() and not (folder / MANIFEST).exists():
            yield datetime.strptime(stamp[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def fullness(folder: Path) -> tuple[str, str]:
    """Says how much room the server's folder takes and how much is left beside it; and what to do where it takes the greater part of
    the two, else an empty text. Its budget is that sum: the disk is full when all of it is used."""
    taken = _taken(folder)
    free = shutil.disk_usage(folder).free
    found = f"{decimal_label(taken)} of {decimal_label(taken + free)} that it may take"
    if taken <= free:
        return found, ""
    return found, (
        f"set {RETENTION} (7d, for example) or {RAW_MAX} (200GB, for example), so that the next start deletes the oldest raw points of "
        f"sealed runs; or, with the server "
        f"stopped (`daq-bench influx stop`), remove {folder}: bundles hold all telemetry"
    )
