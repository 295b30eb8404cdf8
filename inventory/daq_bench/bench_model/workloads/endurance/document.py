"""The types of results/endurance.json, a bounded wear experiment, and of the years that follow from it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from daq_bench.bench_model.documents.results import WearEntry, WearExperiment
from daq_bench.bench_model.documents.struct import Amount, Closed, Count, Ordinal, Pair, Positive


class Pattern(Closed, frozen=True):
    file_bytes: Count
    step_bytes: Count
    sequential_block_bytes: Count
    random_block_bytes: Count
    random_percent: Amount
    io_depth: Count


class YearlyDemand(Closed, frozen=True):
    """The detector's demand that the projected years are for; nothing of it is written in this run. `links`: data links of one unit.
    `superchunk_bytes`: size of a superchunk in B. `superchunk_rate_hz`: superchunks per second and link. `record_s`: length of one record
    in s. `records_per_year`: how many records a unit takes in a year."""

    links: Annotated[int, Meta(ge=1, le=64)]
    superchunk_bytes: Annotated[int, Meta(ge=64, le=67108864)]
    superchunk_rate_hz: Positive
    record_s: Positive
    records_per_year: Positive


class Drive(Closed, frozen=True):
    id: str
    name: str
    model: str | None
    capacity_bytes: Count


class Health(Closed, frozen=True, kw_only=True):
    """`counter`: who counts: the drive (data units written), or the kernel since the boot. `written_bytes`: B from the host.
    `step_bytes`: B, what the counter counts in. `nand_bytes`: B onto the NAND (OCP's or the maker's log); null where the drive has none.
    `nand_step_bytes`: B, what the NAND counter counts in. `nand_source`: the log that counts it. `faults`: values that the drive states
    and no drive can have; they are null here."""

    id: str
    name: str
    counter: Literal["nvme", "scsi", "ata", "kernel"]
    written_bytes: Count
    step_bytes: Count
    nand_bytes: Count | None
    nand_step_bytes: Ordinal | UnsetType | None = UNSET
    nand_source: str | UnsetType | None = UNSET
    percentage_used: Count | None
    available_spare: Count | None
    available_spare_threshold: Count | None
    media_errors: Count | None
    power_cycles: Count | None
    unsafe_shutdowns: Count | None
    faults: list[str] | UnsetType = UNSET


TOLD = (  # of a drive's health, where it tells it
    "media_errors",
    "percentage_used",
    "power_cycles",
    "unsafe_shutdowns",
    "available_spare",
    "available_spare_threshold",
)


class Opening(Closed, frozen=True):
    """The drives before the experiment's first byte."""

    epoch: str
    drives: list[Health]


class Job(Closed, frozen=True):
    name: str
    written_bytes: Count
    duration_s: Amount
    throughput_bytes_per_s: Amount


class Step(Closed, frozen=True):
    number: Count
    kind: Literal["fill", "mix"]
    asked_bytes: Count
    sequential_bytes: Count
    random_bytes: Count
    counted_bytes: Count | None
    written_bytes: Count
    duration_s: Amount
    throughput_bytes_per_s: Amount
    jobs: list[Job]
    health: list[Health]
    admissible: bool
    reason: str | None


class Endurance(Closed, frozen=True):
    """results/endurance.json: a bounded wear experiment. `writes_per_byte_max`: drive writes per byte, at most (RAID). `opening`: the
    drives before the experiment's first byte. `epoch`: counts compare within one only. `ended`: why no further step was begun; null while
    it goes on or when it was interrupted. `reasons`: why a metric has no value, by metric. `spent_before_bytes`: B, by earlier runs.
    `invalid`: why nothing can be said of the candidate."""

    schema_version: Literal[1]
    tool: str
    pattern: Pattern
    demand: YearlyDemand
    drives: list[Drive]
    writes_per_byte_max: Count
    opening: Opening
    epoch: str
    at_start: list[Health]
    at_end: list[Health]
    steps: list[Step]
    ended: str | None
    limits: list[str]
    reasons: dict[str, str]
    experiment: WearExperiment
    write_budget_bytes: Count
    spent_before_bytes: Count
    spent_bytes: Count
    left_bytes: Count
    overrun_bytes: Count
    invalid: list[str]
    ledger: list[WearEntry]


class Interval(Closed, frozen=True):
    """A value of which bounds are known, and perhaps a best guess between them. `high` null: unbounded. `best` null: nothing between the
    bounds is likelier than the rest."""

    low: float
    best: float | None
    high: float | None


class Rating(Closed, frozen=True):
    """Describes what the candidate's inventory states of a drive."""

    serial: str
    dwpd: Positive
    years: Positive
    source: str


class PublishedYears(Closed, frozen=True):
    device: str
    source: str
    years: Interval


class YearsOfLoad(Closed, frozen=True):
    """`years`: from new; `years_left`: from now; `rated_years`: by the drive's own rating."""

    load: Literal["supernova", "continuous", "rating"]
    text: str
    bytes_per_year: Pair[float]
    years: Interval | None
    years_left: Interval | None
    rated_years: Interval | None
    published_years: list[PublishedYears]


class WornDrive(Closed, frozen=True):
    """`since`: which reading the wear is counted from. Pairs: the first reading and the last. `no_...`: why the figure is missing.
    `writes_per_byte`: onto this drive per byte written to the target."""

    id: str
    model: str | None
    capacity_bytes: Count
    since: str
    host_bytes: int
    percentage_used: Pair[int | None]
    available_spare: Pair[int | None]
    media_errors: Pair[int | None]
    wear_percent_per_tb: Interval | None
    no_wear: str | None
    write_amplification: Interval | None
    no_write_amplification: str | None
    writes_per_byte: float
    rating: Rating | None
    projections: list[YearsOfLoad]


class EnduranceProjection(Closed, frozen=True):
    """results/endurance_projection.json: the years that follow from the wear. `judged_years`: by load, of the drive that decides."""

    schema_version: Literal[1]
    drives: list[WornDrive]
    judged_years: dict[str, float | None]
    write_amplification_at_most: float | None
    reasons: dict[str, str]
