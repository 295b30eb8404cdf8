"""Tells what `hotstore bench`, `hotstore semantics` and `hotstore verify` (agents/hot_store) write."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Positive
from daq_bench.bench_model.documents.tools.daqwriter import Ended, Latency


class Said(Closed, frozen=True, kw_only=True):
    """`version`: of hotstore."""

    schema_version: Literal[1]
    tool: Literal["hotstore"]
    version: str


class BenchParameters(Closed, frozen=True, kw_only=True):
    """`engine`: raw-lmdb, rocksdb, raw-redis: baselines without hotstore's layer. `transport`: how an operation gets to the engine: a call
    in the same process, TCP, or a Unix socket. `pipeline`: requests under way at once on each connection. `durability`: what an
    acknowledged operation survives: the end of the process, or of the system; null: neither. `value_bytes`: B. `seconds`: s measured.
    `warm_up_s`: s. `interval_s`: s of a sample. `lease_s`: s for which a claimed event is its claimer's. `hold_s`: s between claim and
    removal. `backlog_bytes`: B put and not yet removed at which producers wait. `backlog_floor_bytes`: B put and not yet removed below
    which consumers wait; reached before the warm-up; 0: none."""

    engine: Literal["lmdb", "redis", "redis-cluster", "raw-lmdb", "rocksdb", "raw-redis"]
    transport: Literal["in-process", "tcp", "unix"] | UnsetType = UNSET
    pipeline: Ordinal | UnsetType = UNSET
    durability: Literal["process", "system"] | None
    replicas: Count
    location: str
    key: str
    value_bytes: Count
    seconds: Amount
    warm_up_s: Amount
    interval_s: Amount
    producers: Count
    consumers: Count
    fragments: Count
    consume: Literal["direct", "getany"]
    lease_s: Amount
    hold_s: Amount
    backlog_bytes: Count
    backlog_floor_bytes: Count | UnsetType = UNSET
    events: Count
    level: Count


class Operations(Closed, frozen=True, kw_only=True):
    """`ops_per_s`: 1/s. `samples_ops_per_s`: 1/s of each interval. `min_ops_per_s`, `stdev_ops_per_s`: of the samples; null: none.
    `waited_s`: s that producers waited for room, or consumers for events, all threads together."""

    operations: Count
    ops_per_s: Amount
    samples_ops_per_s: list[Amount]
    min_ops_per_s: Amount | None
    stdev_ops_per_s: Amount | None
    waited_s: Amount
    latency_us: Latency


class Handover(Closed, frozen=True):
    """Tells how long a cache line takes from one thread to another that waits for it, ns: a hypervisor or a scheduler that moves CPUs
    shows. `before` and `after` the load; null: one CPU only, which has nobody to hand over to."""

    before: Positive | None
    after: Positive | None


class BenchCpu(Closed, frozen=True):
    """`user_s`: s. `system_s`: s. `us_per_operation`: CPU us; null: no operation."""

    user_s: Amount
    system_s: Amount
    us_per_operation: Amount | None


class HotstoreBench(Said, frozen=True, kw_only=True):
    """Tells how fast a store took and gave events. `promise`: what an acknowledged operation survives. `measured_s`: s.
    `samples_backlog_bytes`: B put and not yet removed, at the end of each interval. `samples_commits_per_s`: transactions of each
    interval, which threads may share; empty where the engine does not count them. `answers`: operations that were not simply done, by
    answer. `returned_events`: claimed after another one's lease had run out. `corrupt`: events with wrong bytes."""

    command: Literal["bench"]
    status: Ended
    error: str | None
    promise: str
    parameters: BenchParameters
    started_utc: str
    measured_s: Amount
    put: Operations
    consume: Operations
    handover_ns: Handover
    samples_backlog_bytes: list[Count]
    samples_commits_per_s: list[Amount]
    answers: dict[str, Count]
    returned_events: Count
    corrupt: Count
    cpu: BenchCpu


class Check(Closed, frozen=True):
    """Tells how one promise of the store's interface came out."""

    id: str
    text: str
    outcome: Literal["passed", "failed", "not applicable"]
    detail: str


class HotstoreSemantics(Said, frozen=True, kw_only=True):
    """Tells the pass matrix of one engine. `error`: why the checks did not come to their end, e.g. that the process that used the store
    died; there may be no rows then, and the status is failed."""

    command: Literal["semantics"]
    engine: str
    status: Literal["passed", "failed"]
    error: str | UnsetType | None = UNSET
    rows: list[Check]

    def __post_init__(self) -> None:
        if isinstance(self.error, str) and self.status != "failed":
            raise ValueError(f"error says {self.error!r:.60}, but status is {self.status!r}")
        if not isinstance(self.error, str) and not self.rows:
            raise ValueError("rows is empty, and no error says why")


class HotstoreVerify(Said, frozen=True, kw_only=True):
    """Holds a store against the logs of what was acknowledged. `torn_log_records`: ends of logs that are not whole: of processes that died
    while they wrote. `unsynced_crash`: the machine went down while the store was not synchronised. `damage`: of the store itself, named;
    empty when it is intact."""

    command: Literal["verify"]
    status: Literal["intact", "damaged"]
    promise: str
    acknowledged: Count
    removed: Count
    present: Count
    missing: Count
    corrupt: Count
    came_back: Count
    removed_twice: Count
    undecided: Count
    unacknowledged: Count
    torn_log_records: Count | UnsetType = UNSET
    unsynced_crash: bool | UnsetType = UNSET
    damage: list[str] | UnsetType = UNSET
