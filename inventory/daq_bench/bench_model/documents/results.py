"""Parts of results that several workloads share."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Document, Struct


class Reasoned(Struct, frozen=True):
    """Describes what a verdict reads of a derived document: metrics may be null, each with its reason."""

    schema_version: Literal[1]
    reasons: dict[str, str]


class WriteLatency(Closed, frozen=True):
    """us, submission to completion."""

    p50: float
    p99: float
    p99_9: float
    max: float
    mean: float


class WritePoint(Closed, frozen=True):
    """Sequential writes with one block size. Throughput in B/s of all threads, its samples one per window of `sample_s`. CPU in percent of
    one CPU, of several threads the mean. `device_bytes_written`: by the device's own counter, ramp included. `reason`: why the point is
    masked, and not drawn."""

    block_bytes: Annotated[int, Meta(ge=512)]
    throughput_bytes_per_s: Amount
    iops: Amount
    bytes_written: Count
    runtime_s: Amount
    throughput_bytes_per_s_samples: list[Amount]
    latency_us: WriteLatency
    cpu_user_percent: float
    cpu_system_percent: Amount
    device_bytes_written: int | None
    admissible: bool
    reason: str | None


class Purge(Closed, frozen=True):
    """Describes how a target was emptied. `zero_share`: share of the sampled places that read as zeros."""

    method: str
    text: str
    done: bool
    zero_share: float | None
    seconds: float


class Preconditioning(Closed, frozen=True):
    """Workload-independent preconditioning: `passes` whole ones, and what `bytes_written` has besides. `device_bytes_written`: by the
    device's own counter."""

    passes: Count
    block_bytes: Count
    io_depth: Count
    bytes_written: Count
    bytes_per_s: float
    seconds: float
    device_bytes_written: int | UnsetType | None = UNSET


class Conditioning(Closed, frozen=True):
    """Evidence of the condition that a target was brought into. `share_of_capacity`: of the drive or set, what the span covers;
    `used_bytes`: what the file system held besides. `discarded_bytes`: B given back to the drive from then on to the last record in this
    condition, by the device's own counter; null where the kernel has none. `remarks`: what is no limit and ought to be known."""

    condition: Literal["fresh", "preconditioned"]
    label: str
    started_utc: str
    span_bytes: Count
    capacity_bytes: Count | None
    share_of_capacity: float | None
    purge: Purge
    preconditioning: Preconditioning | None
    limits: list[str]
    used_bytes: Count | UnsetType = UNSET
    discarded_bytes: Count | UnsetType | None = UNSET
    remarks: list[str] | UnsetType = UNSET


class WearExperiment(Closed, frozen=True):
    """The owner of an account: these drives, this scenario, this target of this candidate."""

    candidate: str
    scenario: str
    target: str
    serials: tuple[str, ...]

    @property
    def file_name(self) -> str:
        parts = ("+".join(self.serials), self.scenario, self.target)
        return "--".join(re.sub(r"[^A-Za-z0-9.+-]", "_", part) for part in parts if part) + ".json"

    @property
    def text(self) -> str:
        return f"experiment {self.scenario} on {', '.join(self.serials)}"


class Counters(Closed, frozen=True):
    """B that hosts wrote to each drive, by its own count; counts of one epoch compare."""

    epoch: str
    written_bytes: Annotated[dict[str, Count], Meta(min_length=1)]


WearKind = Literal["fill", "mix", "pass"]


class WearEntry(Closed, frozen=True):
    """One step in the account of a write budget. `counted_bytes`: B by the drives' counters; null where they cannot be compared.
    `charged_bytes`: B taken from the budget; null: reserved, not settled."""

    run: str
    number: Count
    kind: WearKind
    reserved_utc: str
    asked_bytes: Count
    reserved_bytes: Count
    before: Counters | None
    settled_utc: str | None
    after: Counters | None
    counted_bytes: Count | None
    charged_bytes: Count | None
    charged_by: Literal["drives", "tool", "reservation"] | None

    def __post_init__(self) -> None:
        told = [value is not None for value in (self.settled_utc, self.charged_bytes, self.charged_by)]
        if any(told) and not all(told):
            raise ValueError("settled_utc, charged_bytes and charged_by stand together or not at all")

    @property
    def spent_bytes(self) -> int:
        """B that count as written: what was charged, or the whole reservation of a step that is not settled."""
        return self.reserved_bytes if self.charged_bytes is None else self.charged_bytes


class WearAccount(Closed, frozen=True):
    """The account of a write budget, on the control node and as results/*_ledger.json. `opening`: the drives' counts and health before
    the experiment's first byte, by `drive_wear`."""

    schema_version: Literal[1]
    experiment: WearExperiment
    opened_utc: str
    opening: Document | None
    entries: list[WearEntry]
    write_budget_bytes: Count

    @property
    def spent_bytes(self) -> int:
        return sum(entry.spent_bytes for entry in self.entries)
