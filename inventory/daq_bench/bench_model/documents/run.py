"""run.json: what ran, on what, by which profiles, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.documents.struct import Closed, Count, Utc, moment, read

OWN_SUITE = (
    "own-suite"  # the scenario's id of every run that somebody's own suite loads: no shipped or written scenario has it
)
State = Literal["running", "finished", "interrupted", "error"]
FINISHED: Final = "finished"  # of a run, of its telemetry agent and of a night


class Drive(Closed, frozen=True):
    """A drive or an array as the candidate names it; what it does not tell is None. `members`: names of an array's drives."""

    name: str
    model: str | None
    serial: str | None
    firmware: str | None = None
    wwn: str | None = None
    size_bytes: Count | None = None
    numa_node: int | None = None
    rotational: bool | None = None
    transport: str | None = None
    pcie_link: str | None = None
    raid_level: str | None = None
    members: list[str] = msgspec.field(default_factory=list)


class Host(Closed, frozen=True):
    """A machine's account of itself."""

    hostname: str | None = None
    kernel: str | None = None
    os: str | None = None
    architecture: str | None = None
    cpu_model: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    numa_nodes: int | None = None


class CandidateOfRun(Host, frozen=True, kw_only=True):
    name: str
    description: str
    transient_buffer_bytes: Count
    virtual: bool
    connection: str


class TargetOfRun(Closed, frozen=True):
    """`device`: the drive or array beneath; None where there is none, and until provisioning has made it. `drives`: those that carry it."""

    kind: str
    filesystem: str | None
    drives: list[Drive]
    name: str = ""
    directory: str = ""
    path: str = ""
    device: Drive | None = None

    @property
    def names(self) -> list[str]:
        """The kernel's names of the drives that carry it."""
        return [drive.name for drive in self.drives]

    @property
    def devices(self) -> list[Drive]:
        """An array first, then its drives; a single drive stands in both places."""
        array = [self.device] if self.device else []
        return array + [drive for drive in self.drives if not self.device or drive.name != self.device.name]


class FurtherTarget(TargetOfRun, frozen=True, kw_only=True):
    """facts/target-<name>.json: a target besides the run's own. `layout`: what was built; `tuning_wrong`: settings that do not hold."""

    layout: dict[str, Any] | None = None
    tuning_wrong: list[str] = msgspec.field(default_factory=list)

    @staticmethod
    def of(target: TargetOfRun, layout: dict[str, Any] | None, tuning_wrong: list[str]) -> FurtherTarget:
        return FurtherTarget(**msgspec.structs.asdict(target), layout=layout, tuning_wrong=tuning_wrong)


class ScenarioOfRun(Closed, frozen=True):
    """`parameters`: the scenario in force, in the form of scenario.schema.json; a wrong one is a finding with words of its own."""

    id: str
    scale: float
    seed: int
    repetitions: int
    repetitions_max: int
    parameters: dict[str, Any]
    title: str = ""
    file: str = ""

    @property
    def duration_s(self) -> float | None:
        """Returns how long the record lasts, s."""
        found = self.parameters.get("duration_s")
        return float(found) if isinstance(found, int | float) else None

    @property
    def workloads(self) -> tuple[str, ...]:
        """Returns what the scenario asks for, in its order."""
        asked = self.parameters.get("workloads")
        return tuple(asked) if isinstance(asked, dict) else ()

    @property
    def lengths(self) -> dict[str, float]:
        """The numbers that a longer or repeated measurement would change, such as `workloads.block_scan.seconds_per_point`: 3."""
        return dict(_lengths(self.parameters, ""))


def _lengths(node: dict[str, Any], place: str) -> Iterator[tuple[str, float]]:
    for key, child in node.items():
        if isinstance(child, dict):
            yield from _lengths(child, f"{place}{key}.")
        number = isinstance(child, int | float) and not isinstance(child, bool)
        if number and (key in ("duration_s", "repetitions", "rounds") or key.startswith("seconds_per_")):
            yield place + key, float(child)


class RequirementOfRun(Closed, frozen=True):
    id: str
    title: str = ""
    file: str = ""


class DemandOfRun(Closed, frozen=True):
    links: int
    superchunk_bytes: int
    superchunk_rate_hz: float
    scale: float
    duration_s: float
    real_bytes_per_s: float
    offered_bytes_per_s: float
    record_bytes: int
    nominal_bytes_per_s: float = 0.0

    @staticmethod
    def of(demand: Demand) -> DemandOfRun:
        return read(demand.as_document(), DemandOfRun, "the demand")


class Git(Closed, frozen=True):
    """Both None outside of a git checkout."""

    commit: str | None
    dirty: bool | None


class TelemetryOfRun(Closed, frozen=True):
    """The InfluxDB that took the run's points, for a later replay. `configured`: somebody named it."""

    influx_url: str
    database: str | None = None
    organisation: str = ""
    configured: bool = False


class AskedFor(Closed, frozen=True):
    """The command line's choices beyond the profiles."""

    inventory: str | None = None
    scale: float | None = None
    duration_s: float | None = None
    target_directory: str | None = None
    influx_url: str | None = None
    keep_tuning: bool = False


class Run(Closed, frozen=True):
    """run.json. `versions`, `git` and `telemetry` are None until the run has come to them; `resumes`: the run that was interrupted."""

    schema_version: Literal[1]
    run_id: str
    state: State
    state_reason: str | None
    started_utc: Utc
    finished_utc: Utc | None
    candidate: CandidateOfRun
    target: TargetOfRun
    scenario: ScenarioOfRun
    requirement: RequirementOfRun
    demand: DemandOfRun | None
    declared_limits: list[str]
    scaled_down: list[str] = msgspec.field(default_factory=list)
    request: AskedFor | None = None
    challenge: str | None = None
    resumes: str | None = None
    versions: dict[str, str | None] | None = None
    git: Git | None = None
    telemetry: TelemetryOfRun | None = None
    further_targets: list[FurtherTarget] = msgspec.field(default_factory=list)
    simulated: bool = False  # no server was measured: a physical model made up what the tools said
    host_environment: dict[str, Any] | None = None  # as a bundle may state it

    def __post_init__(self) -> None:
        for name in ("started_utc", "finished_utc"):
            try:
                moment(getattr(self, name) or self.started_utc)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None

    @property
    def own_suite(self) -> bool:
        """Says whether a suite of somebody's own chose the load: evidence for whoever wrote it, and no qualification."""
        return self.scenario.id == OWN_SUITE

    @property
    def started(self) -> datetime:
        return moment(self.started_utc)

    @property
    def finished(self) -> datetime | None:
        return moment(self.finished_utc) if self.finished_utc else None
