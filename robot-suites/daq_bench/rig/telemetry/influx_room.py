"""The room that the bench's own InfluxDB takes: how full it is, and old raw points, which go.

Raw points are kept as long as on the server that the role `influxdb` sets up, unless the operator says how long, or how much disk they
may take, or a start finds older ones, which nobody asked to delete. Whole shards go, of a day each, the oldest first, and none with a
point that is younger than a run that is not sealed yet. The bench deletes them itself, since a policy of the server's would look at the
age alone, and refuse the replay of an old run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.bundle.dates import moment_of_id
from daq_bench.bench_model.bundle.files import bytes_on_disk
from daq_bench.bench_model.bundle.provenance import MANIFEST
from daq_bench.candidate_kit.influxql import duration_s, name_in
from daq_bench.candidate_kit.sizes import parse_size
from daq_bench.rig.base.influx import DATABASE
from daq_bench.rig.base.module_utils import use_module_utils
from daq_bench.rig.base.settings import Layout

RETENTION = "DAQ_BENCH_INFLUX_RAW_RETENTION"  # name of a variable; its value is a duration such as 30d, or INF
RAW_MAX = "DAQ_BENCH_INFLUX_RAW_MAX"  # name of a variable; its value is a size such as 200GB
CLOCK_OFF_MAX = timedelta(days=1)  # [P] a candidate's clock may be behind ours, and its points older than its run
FOR_EVER = "INF"


@dataclass(frozen=True)
class Bounds:
    """How long raw points of the bench's own server are kept (None: for ever), and B that they may take (None: any amount). `chosen`: the
    operator said one of them; else it is how long the role's server keeps them."""

    kept: timedelta | None
    bytes_max: int | None
    chosen: bool

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Bounds:
        """Reads the two variables; a size alone is filled, whatever the age. Raises RefusedError for no duration, or no size
        above 0."""
        kept, size = environment.get(RETENTION), environment.get(RAW_MAX)
        try:
            duration = _duration(kept or (FOR_EVER if size else _by_default()))
        except ValueError as error:
            raise RefusedError(f"{RETENTION}: {error}") from None
        return cls(duration, _size(size) if size else None, bool(kept or size))


@dataclass(frozen=True)
class Tidied:
    """Shards that were deleted for their age, and for all shards' size; B that are still too much; and why older points stay, if that has
    to be said."""

    old: int
    large: int
    beyond_bytes: int
    kept: str


@dataclass(frozen=True)
class Room:
    """Raw points of one database of the bench's own server. `folder`: the server's; `runs`: where runs are, whose points stay until they
    are sealed. Every method raises BenchError with InfluxDB's own words."""

    url: str
    folder: Path
    runs: Path
    database: str = DATABASE

    def tidy(self, bounds: Bounds, now: datetime) -> Tidied:
        """Deletes what the operator no longer wants. Unasked, it deletes by age only where a start found nothing that is older, as in each
        new database; else older points stay, which is said once."""
        kept, text = bounds.kept, ""
        if bounds.chosen:
            self._agreed.unlink(missing_ok=True)
        else:
            kept, text = self._unasked(now)
        old = self.delete_old(kept, now)
        return Tidied(old, *self.delete_beyond(bounds.bytes_max, now), text)

    def delete_old(self, kept: timedelta | None, now: datetime) -> int:
        """Deletes shards whose points are all older than `kept` and than every unsealed run; returns how many. None: nothing is deleted."""
        if kept is None:
            return 0
        before = self._needed_since(now - kept)
        return self._drop([shard for shard in self._shards() if shard.end <= before])

    def delete_beyond(self, bytes_max: int | None, now: datetime) -> tuple[int, int]:
        """Deletes the oldest shards until all take at most `bytes_max` on disk, and none that may hold points of now or of an unsealed run.
        Returns how many it deleted, and B that are still too much. None: nothing is deleted."""
        if bytes_max is None:
            return 0, 0
        before = self._needed_since(now)
        shards = self._shards()
        beyond, old = sum(shard.taken for shard in shards) - bytes_max, []
        for shard in shards:
            if beyond > 0 and shard.end <= before:
                old.append(shard)
                beyond -= shard.taken
        return self._drop(old), max(beyond, 0)

    @property
    def _agreed(self) -> Path:
        """Holds how long points are kept where the operator says nothing; FOR_EVER: and was told so."""
        return self.folder / f"{self.database}.raw-retention"

    def _unasked(self, now: datetime) -> tuple[timedelta | None, str]:
        """How long points are kept where the operator says nothing, and what he has to be told."""
        agreed = _read(self._agreed)
        if agreed and (kept := _duration(agreed)):
            return kept, ""
        wanted = _by_default()
        limit = _duration(wanted)
        older = [shard for shard in self._shards() if limit and shard.end <= now - limit]
        self._agreed.write_text(FOR_EVER if older else wanted, encoding="ascii")
        if not older:
            return limit, ""
        if agreed:
            return None, ""
        size = decimal_label(sum(shard.taken for shard in older))
        return None, (
            f"the bench's own InfluxDB keeps raw points since {older[0].begin:%Y-%m-%d}: {size} on disk are older than {wanted}, "
            f"after which a new server deletes them; {RETENTION}={wanted} or {RAW_MAX}=200GB, for example, bounds them here, too"
        )

    def _needed_since(self, wanted: datetime) -> datetime:
        return min([wanted, *(began - CLOCK_OFF_MAX for began in unsealed_since(self.runs))])

    def _shards(self) -> list[_Shard]:
        """Shards of the default policy, the oldest first."""
        policies = self._ask("SHOW RETENTION POLICIES ON " + name_in(self.database))
        raw = [row["name"] for row in policies if row["default"]]
        found = [
            _Shard(
                row["id"],
                datetime.fromisoformat(row["start_time"]),
                datetime.fromisoformat(row["end_time"]),
                tuple(
                    self.folder / part / self.database / row["retention_policy"] / str(row["id"])
                    for part in ("data", "wal")
                ),
            )
            for row in self._ask("SHOW SHARDS")
            if row["database"] == self.database and row["retention_policy"] in raw
        ]
        return sorted(found, key=lambda shard: shard.end)

    def _drop(self, shards: list[_Shard]) -> int:
        for shard in shards:
            self._ask(f"DROP SHARD {shard.id}")
        return len(shards)

    def _ask(self, statement: str) -> list[dict[str, Any]]:
        use_module_utils(Layout())
        from ansible.module_utils.bench_influx import InfluxError, influxql

        try:
            rows: list[dict[str, Any]] = influxql(self.url, "", statement)
        except InfluxError as error:
            raise BenchError(f"InfluxDB at {self.url} did not delete raw points: {error}") from None
        return rows


@dataclass(frozen=True)
class _Shard:
    id: int
    begin: datetime
    end: datetime
    folders: tuple[Path, ...]

    @property
    def taken(self) -> int:
        """B on disk."""
        return sum(map(bytes_on_disk, self.folders))


def _by_default() -> str:
    """How long the role's server keeps raw points."""
    use_module_utils(Layout())
    from ansible.module_utils.bench_influx_storage import Storage

    return str(Storage().retention)


def _duration(text: str) -> timedelta | None:
    """None: for ever. Raises ValueError."""
    seconds = duration_s(text)
    return timedelta(seconds=seconds) if seconds else None


def _size(text: str) -> int:
    try:
        size = parse_size(text)
    except ValueError as error:
        raise RefusedError(f"{RAW_MAX}: {error}") from None
    if size == 0:
        raise RefusedError(
            f"{RAW_MAX}: 0 would delete all raw points of sealed runs at each start; unset it to keep them"
        )
    return size


def _read(file: Path) -> str:
    """A duration that a start wrote; empty for none, or for what is no duration."""
    try:
        text = file.read_text(encoding="ascii").strip()
        _duration(text)
    except (FileNotFoundError, ValueError):
        return ""
    return text


def unsealed_since(runs: Path) -> Iterator[datetime]:
    """When each run in `runs` began whose evidence is not sealed yet, by its folder's name, which is the run's id."""
    for folder in runs.iterdir() if runs.is_dir() else ():
        began = moment_of_id(folder.name)
        if began and folder.is_dir() and not folder.is_symlink() and not (folder / MANIFEST).exists():
            yield began


def fullness(folder: Path) -> tuple[str, str]:
    """Says how much room the server's folder takes and how much is left beside it; and what to do where it takes the greater part of
    the two, else an empty text. Its budget is that sum: the disk is full when all of it is used."""
    taken = bytes_on_disk(folder)
    free = shutil.disk_usage(folder).free
    found = f"{decimal_label(taken)} of {decimal_label(taken + free)} that it may take"
    if taken <= free:
        return found, ""
    return found, (
        f"set {RETENTION} (7d, for example) or {RAW_MAX} (200GB, for example), so that the next start deletes the oldest raw points of "
        f"sealed runs; or, with the server "
        f"stopped (`daq-bench influx stop`), remove {folder}: bundles hold all telemetry"
    )
