"""Like with like: engines called in process are separate from those reached through a socket, at each backlog.

In process: raw LMDB, RocksDB and hotstore with one promise; hotstore over raw LMDB is the layer's cost. Client and server: Redis over
TCP and over a Unix socket with several requests under way, and hotstore's own engine on Redis. The load is the same one everywhere: a
put thread beside a thread that gets, compares and removes."""

from __future__ import annotations

import ctypes.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.units import GIB, MIB
from daq_bench.bench_model.workloads.hot_store.figures import SAMPLE_S
from daq_bench.bench_rounds.measuring.rounds import Comparison, Contender, Point
from daq_bench.bench_rounds.measuring.sample import Sample
from daq_bench.bench_rounds.measuring.tools import Tools
from daq_bench.bench_rounds.part import Column, Documents, Part, Settings
from daq_bench.hot_store_bench import trial

SMALL, MIDDLE, LARGE = 2 * MIB, 256 * MIB, 4 * GIB
CELLS = ((1000, SMALL), (10_000, SMALL), (1000, MIDDLE), (10_000, MIDDLE), (10_000, LARGE))  # value size and backlog, B
QUICK_CELLS = ((10_000, SMALL), (10_000, MIDDLE))
WINDOW = SMALL  # how far the backlog may fall below its bound: both threads run freely within it
LARGE_ROOM = (
    3  # backlogs: deleted values are there until RocksDB compacts them, and LMDB's pages until no reader needs them
)
WARM_UP_S = 1.0
ROUNDS = 3  # of each cell: the least that has a median; the matrix has some 70 of them, and a night has an end
FILL_BYTES_PER_S = 20e6  # expected from a slow contender
FILL_LEAST_BYTES_PER_S = 5e6  # hotstore gives up below it
RAW, ROCKS, OWN = "raw LMDB", "RocksDB", "hotstore"
PUT_COST, CONSUME_COST = "put, hotstore / raw LMDB", "get and remove, hotstore / raw LMDB"
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True)
class Server:
    """One way to Redis."""

    name: str
    engine: str
    unix: bool = False
    pipeline: int = 1
    append_only: bool = False

    def options(self) -> list[str]:
        endpoint = "unix:{socket}" if self.unix else "{endpoint}"
        return [f"--engine={self.engine}", f"--endpoint={endpoint}", f"--pipeline={self.pipeline}"]


def _ways() -> tuple[Server, ...]:
    plain = [
        Server(f"Redis, {'Unix' if unix else 'TCP'}, pipeline {pipeline}", "raw-redis", unix, pipeline)
        for unix in (False, True)
        for pipeline in (1, 16, 64)
    ]
    kept = [Server(f"Redis, Unix, pipeline {n}, append-only file", "raw-redis", True, n, True) for n in (1, 64)]
    own = [Server(f"hotstore on Redis, {'Unix' if unix else 'TCP'}", "redis", unix) for unix in (False, True)]
    return (*plain, *kept, *own)


WAYS = _ways()


def rocksdb() -> str | None:
    """The library's name; None: it is not installed."""
    return ctypes.util.find_library("rocksdb")


def room_bytes() -> int:
    """The room that a store in memory may take here: the lesser of the memory's and of the memory folder's."""
    lines = (line.split() for line in MEMINFO.read_text(encoding="ascii").splitlines())
    available = next(int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:")
    return min(available, shutil.disk_usage(trial.MEMORY).free)


def cells(settings: Settings) -> tuple[tuple[int, int], ...]:
    chosen, room = QUICK_CELLS if settings.quick else CELLS, room_bytes()
    return tuple((value, backlog) for value, backlog in chosen if LARGE_ROOM * backlog <= room)


def left_out(settings: Settings) -> list[str]:
    notes = []
    if settings.quick:
        notes.append("Quick look: values of 10000 B, no backlog of 4 GiB.")
    elif (10_000, LARGE) not in cells(settings):
        notes.append(
            f"The backlog of 4 GiB was not measured: it may need {LARGE_ROOM} times as much, {LARGE_ROOM * LARGE / GIB:.1f} GiB, in "
            f"memory and in {trial.MEMORY}, and {room_bytes() / GIB:.1f} GiB are free."
        )
    return notes


@contextmanager
def told(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    yield left_out(settings)


@contextmanager
def told_with_rocksdb(settings: Settings, tools: Tools) -> Iterator[list[str]]:
    missing = [] if rocksdb() else ["RocksDB was not measured: its library is not installed (Debian: librocksdb7.8)."]
    yield [*left_out(settings), *missing]


def floor_of(backlog: int) -> int:
    return backlog - WINDOW


def measured(
    tools: Tools, options: list[str], value_bytes: int, backlog: int, seconds: float, masters: int = 0, **server: Any
) -> Sample:
    common = [
        f"--backlog={backlog}", f"--backlog-floor={floor_of(backlog)}", f"--value-size={value_bytes}", f"--seconds={seconds:g}",
        f"--warm-up={WARM_UP_S:g}",
    ]  # fmt: skip
    longest = WARM_UP_S + seconds + 60 + floor_of(backlog) / FILL_LEAST_BYTES_PER_S
    document, argv = trial.load(tools, [*options, *common], longest, masters, **server)
    found = trial.sample_from(document, value_bytes, argv)
    seen = document["samples_backlog_bytes"]
    found.more["backlog_bytes"] = sum(seen) / len(seen)
    found.more["cpu_us_per_operation"] = document["cpu"]["us_per_operation"]
    return found


def in_process(tools: Tools, engine: str, value_bytes: int, backlog: int, seconds: float) -> Sample:
    options = [f"--engine={engine}", "--dir={folder}/store"]
    if engine == "rocksdb":
        options.append(f"--rocksdb-library={rocksdb()}")
    else:
        options.append(f"--capacity={backlog + backlog // 2 + trial.CAPACITY}")
    return measured(tools, options, value_bytes, backlog, seconds)


def served(tools: Tools, way: Server, value_bytes: int, backlog: int, seconds: float) -> Sample:
    server = {"unix_socket": True, "append_only": way.append_only}
    return measured(tools, way.options(), value_bytes, backlog, seconds, masters=1, **server)


def label(value_bytes: int, backlog: int) -> str:
    size = f"{backlog // GIB} GiB" if backlog >= GIB else f"{backlog // MIB} MiB"
    return f"values of {value_bytes} B, backlog {size} ({backlog} B)"


def point(cell: tuple[int, int], contenders: list[Contender], comparisons: list[Comparison]) -> Point:
    value_bytes, backlog = cell
    key = {"value_bytes": value_bytes, "backlog_bytes": backlog, "backlog_floor_bytes": floor_of(backlog)}
    return Point(key, label(*cell), contenders, comparisons, ROUNDS, ROUNDS)


def expected_s(backlog: int, seconds: float) -> float:
    return WARM_UP_S + seconds + 2 + floor_of(backlog) / FILL_BYTES_PER_S / 10


def embedded_points(settings: Settings, tools: Tools) -> list[Point]:
    seconds = settings.seconds(5.0, 1.5)
    engines = {RAW: "raw-lmdb", **({ROCKS: "rocksdb"} if rocksdb() else {}), OWN: "lmdb"}
    found = []
    for cell in cells(settings):
        contenders = [
            Contender(name, partial(in_process, tools, engine, *cell, seconds), expected_s(cell[1], seconds))
            for name, engine in engines.items()
        ]
        comparisons = [
            Comparison(PUT_COST, OWN, RAW, "put_ops_per_s", steers=False),
            Comparison(CONSUME_COST, OWN, RAW, "consume_ops_per_s", steers=False),
        ]
        found.append(point(cell, contenders, comparisons))
    return found


def served_points(settings: Settings, tools: Tools) -> list[Point]:
    seconds = settings.seconds(5.0, 1.5)
    found = []
    for cell in cells(settings):
        contenders = [
            Contender(way.name, partial(served, tools, way, *cell, seconds), expected_s(cell[1], seconds))
            for way in WAYS
            if not (way.append_only and cell[1] == LARGE)  # its file and its rewriting take the room once more each
        ]
        found.append(point(cell, contenders, []))
    return found


def conditions(settings: Settings) -> dict[str, Any]:
    return {
        "load": "1 put thread that refuses a key which is there, 1 thread that gets, compares and removes; one connection each",
        "backlog": f"filled before the warm-up, then kept between its size and {WINDOW} B below it; 2 MiB is a bound only",
        "in process": f"in {trial.MEMORY}; survives kill -9 of any process, not a crash of the machine. raw LMDB: MDB_WRITEMAP | "
        "MDB_NOSYNC, a transaction for each operation. RocksDB: WriteOptions disableWAL false, sync false; default Options. hotstore: the "
        "same environment as raw LMDB, with checksums, locks and shared commits",
        "Redis": "SET NX; GET, then DEL: volatile unless it says append-only file (appendfsync everysec: what is acknowledged survives "
        "kill -9 of the server; not at 4 GiB, for want of room). A pipeline of n: n puts in one round trip; n gets in one and n removals "
        "in another",
        "hotstore on Redis": "a Lua script for each operation, volatile, no pipeline",
        "sample_s": SAMPLE_S,
    }


def pair_column(name: str) -> Column:
    put, consume = (trial.kops("", name, f"{side}_ops_per_s")[1] for side in ("put", "consume"))

    def cell(one: dict[str, Any]) -> str:
        return f"{put(one)}; {consume(one)}"

    return f"{name}: put; get and remove, KOPS", cell


def nothing_to_judge(measured_points: Documents) -> list[Any]:
    return []


EMBEDDED = Part(
    name="hot_store_embedded",
    title="hot store, called in process (all survive kill -9): the layer's cost over raw LMDB, at each backlog",
    points=embedded_points,
    conditions=conditions,
    judge=nothing_to_judge,
    columns=[
        *(pair_column(name) for name in (RAW, ROCKS, OWN)),
        trial.ratio(PUT_COST, PUT_COST),
        trial.ratio(CONSUME_COST, CONSUME_COST),
    ],
    limit=trial.limit,
    hold=told_with_rocksdb,
    space_bytes=lambda settings: 1 << 20,
    along="hot_store",
)
SERVED = Part(
    name="hot_store_served",
    title="hot store, client and server through a socket: Redis with pipelining, and hotstore's own engine on Redis, at each backlog",
    points=served_points,
    conditions=conditions,
    judge=nothing_to_judge,
    columns=[pair_column(way.name) for way in WAYS],
    limit=lambda point: "the server's one thread, or the round trip",
    hold=told,
    space_bytes=lambda settings: 1 << 20,
    along="hot_store",
)
