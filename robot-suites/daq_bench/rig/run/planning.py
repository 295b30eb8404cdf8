"""The plan of a run before its load: time, bytes to each drive, room, what is erased, and whether it can end in PASS.

Without a look at the candidate it follows from the inventory alone: a capacity is the one that the entry states, or its published
device's. With one (`qualify`) the real sizes count. The steps are those of the workloads themselves, the reasons against a PASS those of
preflight and of the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.base.numbers import is_number
from daq_bench.bench_model.base.units import GB, decimal_label, in_digits
from daq_bench.bench_model.documents.results import WearExperiment
from daq_bench.bench_model.documents.run import Drive, Host, TargetOfRun
from daq_bench.bench_model.evidence.admissibility import ASK_FOR_ALL, shortfalls
from daq_bench.bench_model.evidence.demanded_load import less_than_demanded
from daq_bench.bench_model.profiles.candidates import Candidate
from daq_bench.bench_model.profiles.candidates import Target as Aim
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.bench_model.profiles.metrics import load_metrics
from daq_bench.bench_model.profiles.published import FOLDER, PublishedDevice, load_published
from daq_bench.bench_model.profiles.requirements import load_requirements
from daq_bench.bench_model.profiles.scenarios import Scenario, load_scenario
from daq_bench.bench_model.verdict.foresight import undecidable
from daq_bench.bench_model.workloads.raid_vs_3dxp.facts import DATA_DRIVES, DAYS_PER_YEAR, drive_endurance
from daq_bench.rig.base.settings import DEFAULT_PROFILE, Layout, Profiles, target_directory
from daq_bench.rig.candidate.host import Node, Survey, Target
from daq_bench.rig.run import preflight
from daq_bench.rig.run.record import planned_run
from daq_bench.rig.workloads.registry import workloads_of
from daq_bench.rig.workloads.shared.plan import UNIT_BYTES_PER_S, Ground, Need, Step, duration_of, need_of, written_by
from daq_bench.rig.workloads.shared.wear_account import LEVEL_NAMES, account_of, copies_of
from daq_bench.rig.workloads.shared.wear_ledger import read_account

PLAYBOOK_S = 12.0  # a playbook's duration on the machines seen so far
REBOOTS = 5  # at most: one for the firmware's settings, and four rounds that put them back (ansible: bench_bmc)
DRIVE_WRITES_MAX = 1.0  # more is said before the load, and needs a word
OWN_BYTES_MAX = 40 * GB  # the same on a file system that the machine uses for other things
ASSUMED = "the demand of one readout unit, since no rate of the drives is known"
FASTER = "at that rate; a faster target is written more (`daq-bench plan --rate` tells how much)"
UNKNOWN = "unknown: the capacity is not stated"
NOT_SERIAL = re.compile(r"loop\d+|zram\d+|ram\d+")  # what wears no drive of its own
Surveys = Mapping[str, Survey]  # by the target's name


@dataclass(frozen=True)
class DriveShare:
    """A run's share of writes to one drive. None: not known."""

    serial: str
    model: str | None
    capacity_bytes: int | None
    bytes_written: float | None
    rated_bytes: float | None
    rating: str

    @property
    def drive_writes(self) -> float | None:
        if self.bytes_written is None or not self.capacity_bytes:
            return None
        return self.bytes_written / self.capacity_bytes

    @property
    def endurance_share(self) -> float | None:
        return self.bytes_written / self.rated_bytes if self.bytes_written is not None and self.rated_bytes else None

    def as_document(self) -> dict[str, Any]:
        return {**vars(self), "drive_writes": self.drive_writes, "endurance_share": self.endurance_share}

    @property
    def text(self) -> str:
        written = "an unknown amount" if self.bytes_written is None else decimal_label(self.bytes_written)
        writes = "drive writes unknown: its capacity is not stated"
        if self.capacity_bytes:
            writes = f"of {decimal_label(self.capacity_bytes)}"
            writes = (
                f"{in_digits(self.drive_writes, 3)} drive writes {writes}" if self.drive_writes is not None else writes
            )
        share = f"share of its rated endurance unknown: {self.rating}"
        if self.endurance_share is not None and self.rated_bytes:
            share = (
                f"{in_digits(self.endurance_share, 2)} of its rated {decimal_label(self.rated_bytes)} ({self.rating})"
            )
        return f"{self.serial}: {written}, {writes}; {share}"


@dataclass(frozen=True)
class Reason:
    """Why the request cannot end in PASS, and the change that would make one possible."""

    reason: str
    remedy: str


@dataclass(frozen=True)
class RunPlan:
    """One run as it will be. `steps` by workload; `memory`: the most that buffers take. `looked`: the candidate was asked."""

    candidate: str
    target: str
    scenario: str
    requirement: str
    scale: float
    looked: bool
    steps: tuple[tuple[str, Step], ...]
    drives: tuple[DriveShare, ...]
    memory: Need
    reboots: int
    erases: tuple[str, ...]
    rate_bytes_per_s: float
    rate_basis: str
    grows: bool  # nobody knows how fast the target is, and a faster one is written more
    reasons: tuple[Reason, ...]
    consent: str  # what somebody has to agree to before it is done; empty: nothing

    @property
    def phases(self) -> list[tuple[str, float]]:
        """The run's phases with their expected durations, for the display; a workload of an unknown one counts nothing."""
        names = list(dict.fromkeys(name for name, _ in self.steps))
        measured = [(name, duration_of(self._of(name)) or 0.0) for name in names]
        return [
            *(("provision", 2 * PLAYBOOK_S), ("identity", 2.0), *measured, ("verify", PLAYBOOK_S)),
            *(("restore", PLAYBOOK_S / 2), ("telemetry", 2.0), ("report", 10.0)),
        ]

    def _of(self, workload: str) -> list[Step]:
        return [step for name, step in self.steps if name == workload]

    @property
    def duration_s(self) -> float | None:
        if duration_of([step for _, step in self.steps]) is None:
            return None
        return sum(seconds for _, seconds in self.phases)

    @property
    def bytes_written(self) -> float | None:
        return written_by([step for _, step in self.steps])

    @property
    def drive_writes(self) -> float | None:
        """Drive writes of the drive that gets most; None where those of one drive are not known."""
        return _if_all_known(max, [one.drive_writes for one in self.drives] or [None])

    @property
    def need(self) -> Need:
        return need_of([step for _, step in self.steps])

    @property
    def can_pass(self) -> bool:
        return not self.reasons

    def as_document(self) -> dict[str, Any]:
        asked = ("candidate", "target", "scenario", "requirement", "scale")
        found = ("duration_s", "bytes_written", "drive_writes", "can_pass", "reboots", "rate_bytes_per_s", "rate_basis")
        step = ("name", "times", "duration_s", "bytes_written", "room_bytes")
        return {
            **{key: getattr(self, key) for key in (*asked, *found)},
            "reasons": [vars(one) for one in self.reasons],
            "looked_at_the_candidate": self.looked,
            "drives": [one.as_document() for one in self.drives],
            "room_bytes": self.need.size_bytes,
            "memory_bytes": self.memory.size_bytes,
            "erases": list(self.erases),
            "consent": self.consent or None,
            "steps": [
                {"workload": workload, **{key: getattr(one, key) for key in step}} for workload, one in self.steps
            ],
        }

    def lines(self, reasons_max: int | None = None) -> Iterator[str]:
        """The plan for people, with so many reasons at most."""
        where = f"{self.candidate}, target {self.target}" if self.target else self.candidate
        yield f"plan     {self.scenario} at scale {in_digits(self.scale, 6)} on {where}, judged by {self.requirement}"
        time, written, need = self.duration_s, self.bytes_written, self.need
        at = f" (timed at {in_digits(self.rate_bytes_per_s / GB)} GB/s: {self.rate_basis})" if time and written else ""
        yield f"time     {UNKNOWN if time is None else duration_text(time)}{at}"
        most = FASTER if self.grows else "at most"
        yield f"writes   {UNKNOWN if written is None else f'{decimal_label(written)} {most}' if written else 'nothing'}"
        for drive in self.drives:
            if drive.bytes_written != 0:
                yield f"  drive  {drive.text}"
        room = f"{decimal_label(need.size_bytes)} ({need.arithmetic})" if need.size_bytes else need.arithmetic
        yield f"room     {room or 'none'}"
        yield f"RAM      {decimal_label(self.memory.size_bytes) if self.memory.size_bytes else 'none'} for buffers"
        reboots = f"{self.reboots} at most, for BIOS settings" if self.reboots else "none"
        yield f"reboots  {reboots}"
        lost = ", ".join(self.erases)
        yield f"erases   {f'EVERYTHING on {lost}' if lost else 'nothing; only files of its own are written'}"
        yield f"PASS     {'possible' if self.can_pass else 'NOT possible:'}"
        shown = self.reasons[:reasons_max]
        for one in shown:
            yield f"  - {one.reason}. To make it possible: {one.remedy}"
        if len(shown) < len(self.reasons):
            yield f"  - and {len(self.reasons) - len(shown)} more, which `daq-bench plan` lists"

    def lines_in_short(self) -> Iterator[str]:
        """The plan's run, time, writes, reboots if any, and erased drives, and whether it can end in PASS."""
        wanted = ("plan", "time", "writes", "erases", *(("reboots",) if self.reboots else ()))
        yield from (line for line in self.lines() if line.startswith(wanted))
        why = f"NOT possible: `daq-bench plan` with the same options gives the reasons ({len(self.reasons)})"
        yield f"PASS     {'possible' if self.can_pass else why}"


def _if_all_known(of: Callable[[Sequence[float]], float], values: Sequence[float | None]) -> float | None:
    """The sum, or the most, of the values; None where one of them is not known."""
    known = [value for value in values if value is not None]
    return float(of(known)) if len(known) == len(values) else None


def duration_text(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 3 * 86400 else f"{seconds / 86400:.1f} days"


def together(plans: Sequence[RunPlan]) -> dict[str, Any]:
    """The plan of a command that makes one run for each target."""
    several = len(plans) > 1
    return {
        "duration_s": _if_all_known(sum, [one.duration_s for one in plans]),
        "bytes_written": _if_all_known(sum, [one.bytes_written for one in plans]),
        "drive_writes": _if_all_known(max, [one.drive_writes for one in plans] or [None]),
        "can_pass": all(one.can_pass for one in plans),
        "reasons": [
            {**({"target": one.target} if several else {}), **vars(why)} for one in plans for why in one.reasons
        ],
        "runs": [one.as_document() for one in plans],
    }


def plan_run(
    profiles: Profiles,
    layout: Layout,
    found: Surveys | None = None,
    rate_bytes_per_s: float | None = None,
    directory: Path | None = None,
) -> RunPlan:
    """The plan of one run. `found`: what the candidate said of each target that the run uses; None: nobody asked it. `rate_bytes_per_s`:
    what the target takes, where somebody knows it."""
    candidate, scenario = profiles.candidate, profiles.scenario
    published = load_published(layout.inventory / FOLDER)
    names = compared_names(scenario) or [candidate.target.name]
    aims = {
        name: _beneath(candidate.aimed_at(name) if name else candidate, published, (found or {}).get(name))
        for name in names
    }
    own = aims[names[0]]
    rate, basis = own.rate(published, rate_bytes_per_s)
    ground = Ground(own.capacity_bytes, own.room_bytes, rate, candidate.target.is_raw, candidate, 0, own.copies)
    ground = replace(ground, spent_bytes=_spent(candidate, scenario.id, own))
    steps = _steps(scenario, ground)
    written, faster = (
        written_by([step for _, step in one])
        for one in (steps, _steps(scenario, replace(ground, rate_bytes_per_s=2 * rate)))
    )
    drives = tuple(_shares(candidate, aims, [step for _, step in steps], names[0]))
    memory = max(
        (workload.memory(scenario) for workload in workloads_of(scenario)),
        key=lambda one: one.size_bytes,
        default=Need(0, "no workload"),
    )
    survey = (found or {}).get(names[0])
    folder = Path(target_directory(layout, candidate, directory))
    plan = RunPlan(
        candidate=candidate.name,
        target=candidate.target.name,
        scenario=scenario.id,
        requirement=profiles.requirement.id,
        scale=scenario.scale,
        looked=found is not None,
        steps=steps,
        drives=drives,
        memory=memory,
        reboots=REBOOTS if candidate.document.get("tuning", {}).get("bios_reboot") == "allowed" else 0,
        erases=tuple(dict.fromkeys(serial for one in aims.values() for serial in one.erased)),
        rate_bytes_per_s=rate,
        rate_basis=basis,
        grows=basis == ASSUMED and (faster or 0) > (written or 0),
        reasons=tuple(_reasons(profiles, layout, own, survey, folder)),
        consent="",
    )
    return replace(plan, consent=_consent(plan, candidate))


def _steps(scenario: Scenario, ground: Ground) -> tuple[tuple[str, Step], ...]:
    return tuple(
        (workload.name, step) for workload in workloads_of(scenario) for step in workload.plan(scenario, ground)
    )


@dataclass(frozen=True)
class _Beneath:
    """The drives of one target, as far as they are known. `level`: of md RAID, None for a single drive."""

    aim: Aim
    drives: tuple[Drive, ...]
    level: int | None
    ratings: dict[str, tuple[float | None, str]]
    free_bytes: int | None
    found: bool

    @property
    def smallest_bytes(self) -> int | None:
        """The drives of an array are used as far as the smallest of them goes."""
        sizes = [one.size_bytes for one in self.drives]
        return min(size for size in sizes if size) if sizes and all(sizes) else None

    @property
    def data_drives(self) -> float:
        return DATA_DRIVES[self.level](len(self.drives)) if self.level is not None and self.drives else 1.0

    @property
    def capacity_bytes(self) -> int | None:
        size = self.smallest_bytes
        return None if size is None else int(size * self.data_drives)

    @property
    def room_bytes(self) -> int | None:
        """Returns B that a run may fill: an upper bound where nobody looked, and none for a folder that may hold other files."""
        if self.free_bytes is not None:
            return self.free_bytes
        if self.aim.storage and self.capacity_bytes:
            return preflight.room_once_built(self.aim.storage.get("filesystem", "xfs"), self.capacity_bytes)
        return self.capacity_bytes if self.aim.is_raw else None

    @property
    def copies(self) -> int:
        """Drive writes per byte, at most. A target of which no drive is known writes each byte once at least."""
        return copies_of(LEVEL_NAMES[self.level] if self.level is not None else None, max(1, len(self.drives)))

    @property
    def erased(self) -> list[str]:
        return self.aim.serials if self.aim.storage or self.aim.is_raw else []

    def rate(self, published: Mapping[str, PublishedDevice], stated: float | None) -> tuple[float, str]:
        """Returns the rate that the target is taken to write at, and why."""
        if stated is not None:
            return stated, "as stated"
        device = published.get(self.aim.declared.get("published", ""))
        figure = device.figure("sequential_write_throughput") if device else None
        if device and figure:
            return figure.in_base_units * self.data_drives, f"published of {device.model}: {figure.source}"
        return UNIT_BYTES_PER_S, ASSUMED


def _beneath(candidate: Candidate, published: Mapping[str, PublishedDevice], found: Survey | None) -> _Beneath:
    aim, device = candidate.target, found.target.device if found and found.target else None
    level = (aim.storage or {}).get("raid", {}).get("level")
    drives: list[Drive] = []
    if found and device is not None and not aim.storage:
        drives = found.drives_of(device)
        names = {name: number for number, name in LEVEL_NAMES.items()}
        level = names.get(device.raid_level or "")
    elif found:
        there = {drive: [one.description for one in found.named(*drive)] for drive in aim.drives}
        drives = [found_as[0] if found_as else Drive(serial, None, serial) for (serial, _), found_as in there.items()]
    if not drives:
        drives = [_declared_drive(candidate, serial, published) for serial in aim.serials]
    drives = [_sized(one, None) if not one.size_bytes else one for one in drives]
    ratings = {_key(one): _rating(candidate, one, published) for one in drives}
    free = found.target.free_bytes if found and found.target and not aim.storage else None
    return _Beneath(aim, tuple(drives), level, ratings, free, found is not None)


def _sized(drive: Drive, size: int | None) -> Drive:
    return Drive(drive.name, drive.model, drive.serial, drive.firmware, drive.wwn, size)


def _key(drive: Drive) -> str:
    return drive.serial or drive.name


def _declared_drive(candidate: Candidate, serial: str, published: Mapping[str, PublishedDevice]) -> Drive:
    """A drive as the entry describes it."""
    said: dict[str, Any] = next((one for one in candidate.identity.get("drives", []) if one["serial"] == serial), {})
    device = published.get(candidate.target.declared.get("published", ""))
    size = candidate.capacities.get(serial) or (device.capacity_bytes if device else None)
    return Drive(serial, said.get("model"), serial, said.get("firmware"), None, size)


def _rating(candidate: Candidate, drive: Drive, published: Mapping[str, PublishedDevice]) -> tuple[float | None, str]:
    """B that the drive may be written, and where that stands."""
    if not drive.size_bytes:
        return None, "its capacity is not stated"
    for one in candidate.document.get("drive_ratings", []):
        if one["serial"] == drive.serial:
            return one["dwpd"] * one["years"] * DAYS_PER_YEAR * drive.size_bytes, f"declared: {one['source']}"
    return drive_endurance(candidate.target.declared, published, drive.size_bytes)


def _shares(
    candidate: Candidate, aims: Mapping[str, _Beneath], steps: Sequence[Step], first: str
) -> Iterator[DriveShare]:
    """Every drive once, also where it carries several targets."""
    written: dict[str, float | None] = {}
    known: dict[str, tuple[Drive, _Beneath]] = {}
    for name, beneath in aims.items():
        total = written_by([step for step in steps if (step.on or first) == name])
        for drive in beneath.drives:
            key = _key(drive)
            known.setdefault(key, (drive, beneath))
            before = written.get(key, 0.0)
            written[key] = None if before is None or total is None else before + total / beneath.data_drives
    for key, (drive, beneath) in known.items():
        rated, why = beneath.ratings[key]
        yield DriveShare(key, drive.model, drive.size_bytes, written[key], rated, why)


def _spent(candidate: Candidate, scenario: str, own: _Beneath) -> int:
    """Returns B that earlier runs of the scenario wrote out of its budget, by the account that the control node keeps."""
    serials = tuple(sorted(_key(one) for one in own.drives))
    try:
        found = read_account(account_of(WearExperiment(candidate.name, scenario, candidate.target.name, serials)))
    except RefusedError:  # it is told where the workload's own check meets it
        return 0
    return found.spent_bytes if found else 0


def _reasons(profiles: Profiles, layout: Layout, own: _Beneath, found: Survey | None, folder: Path) -> Iterator[Reason]:
    candidate, scenario, requirement = profiles.candidate, profiles.scenario, profiles.requirement
    survey = found or foreseen_survey(candidate, own)
    for refusal in _refusals(profiles, survey, own, folder, looked=found is not None):
        yield Reason(*_halves(refusal))
    target = TargetOfRun(
        kind=candidate.target.kind,
        filesystem=survey.target.filesystem if survey.target else (candidate.target.storage or {}).get("filesystem"),
        drives=list(own.drives),
        name=candidate.target.name,
        directory=str(folder),
    )
    run = planned_run("plan", profiles, survey.host, target)
    for one in shortfalls(run, requirement.conditions):
        asked = "--scenario " + (" or ".join(_asking_for_all(layout.inventory, requirement.file)) or "one of your own")
        remedy = f"{asked}, or correct these parameters in a copy" if one.remedy == ASK_FOR_ALL else one.remedy
        yield Reason(one.text.replace(" on None,", ","), remedy)
    for text, remedy in undecidable(run, scenario, requirement, profiles.metrics):
        yield Reason(text, remedy)


@cache
def _asking_for_all(inventory: Path, file: Path) -> tuple[str, ...]:
    """The shipped scenarios that ask for no less than a requirement profile demands, and are judged by it."""
    profile, found = load_requirements(file, load_metrics(inventory / "metrics.yml")), []
    for one in sorted((inventory / "scenarios").glob("*.yml")):
        scenario = load_scenario(one)
        own = scenario.document.get("requirement", DEFAULT_PROFILE) == profile.id
        whole = own and scenario.scale >= profile.conditions.scale_min
        if whole and not list(less_than_demanded(scenario.document, profile.conditions.load)):
            found.append(scenario.id)
    return tuple(found)


def foreseen_survey(candidate: Candidate, own: _Beneath) -> Survey:
    """The candidate as its entry describes it. A target of an unknown size is not there, as one that is yet to be built."""
    target = None
    if own.capacity_bytes and not candidate.target.storage and len(own.drives) == 1:
        target = Target(None if candidate.target.is_raw else "a file system", own.capacity_bytes, own.drives[0])
    nodes = [Node(one.name, f"/dev/{one.name}", "disk", "", one) for one in own.drives]
    return Survey(Host(), nodes, target, 0.0)


def _refusals(profiles: Profiles, survey: Survey, own: _Beneath, folder: Path, *, looked: bool) -> Iterator[str]:
    """Lists what preflight will object to, as far as the entry alone shows it."""
    candidate, scenario = profiles.candidate, profiles.scenario
    checks: list[Callable[[], None]] = [
        lambda workload=workload: preflight.check_workload(workload, scenario, candidate, survey)  # type: ignore[misc]
        for workload in workloads_of(scenario)
    ]
    checks.append(lambda: preflight.check_path(folder))
    checks.append(lambda: preflight.check_buffers(scenario, candidate.transient_buffer_bytes))
    if candidate.target.storage and own.capacity_bytes:
        checks.append(lambda: preflight.check_built_space(scenario, candidate, folder, own.capacity_bytes or 0))
    elif not looked and own.room_bytes:
        checks.append(lambda: preflight.check_space(scenario, folder, own.room_bytes or 0, reserve=0))
    for check in checks:
        try:
            check()
        except BenchError as error:
            yield str(error)


def _halves(text: str) -> tuple[str, str]:
    """A refusal's reason and its remedy, which the bench's errors give in sentences of their own."""
    sentences = re.split(r"(?<=[^.]{3})\. (?=[A-Z`])", text.removesuffix("."))
    told = [one for one in sentences[1:] if not one.startswith("Nothing was")]
    return sentences[0], ". ".join(told) or "Correct that"


def _consent(plan: RunPlan, candidate: Candidate) -> str:
    """Says what has to be agreed to. Emulated drives and files in memory wear nothing that anybody bought."""
    written = plan.bytes_written
    if candidate.virtual or written == 0:
        return ""
    amount = "an unknown amount of data" if written is None else decimal_label(written)
    worn = [one for one in plan.drives if not NOT_SERIAL.fullmatch(one.serial)]
    for one in sorted(worn, key=lambda one: -(one.drive_writes or 0.0)):
        if is_number(one.drive_writes) and one.drive_writes is not None and one.drive_writes > DRIVE_WRITES_MAX:
            return f"This run writes {amount}: {in_digits(one.drive_writes, 3)} times the whole of drive {one.serial}, which wears it"
    unknown = not worn or any(one.drive_writes is None for one in worn)
    if (candidate.target.kind == "scratch-file" or unknown) and (written is None or written > OWN_BYTES_MAX):
        where = f"the file system of {candidate.target.directory}" if candidate.target.directory else "the target"
        why = (
            "which this machine uses for other things"
            if candidate.target.kind == "scratch-file"
            else "whose capacity is not known"
        )
        return f"This run writes {amount} to {where}, {why}"
    return ""
