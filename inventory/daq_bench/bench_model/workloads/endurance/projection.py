"""results/endurance_projection.json: from what the drives counted to years of life, with intervals, beside rated and published ones.

A pure function of the bundle. It judges the end of the interval that decides: the lower one where even that is
enough, the upper one where even that is not. An interval that holds the bound decides nothing, and says how much more
writing would. Without a requirement on a load its lower end is shown."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.behaviour.wear_of_run import PERCENT_QUANTUM
from daq_bench.bench_model.bundle.files import find_struct, plain_file
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import read
from daq_bench.bench_model.profiles.candidates import load_candidate
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.published import FOLDER, PublishedDevice, load_published
from daq_bench.bench_model.profiles.yaml_source import read_yaml
from daq_bench.bench_model.workloads.endurance import wear
from daq_bench.bench_model.workloads.endurance.document import (
    Drive,
    Endurance,
    EnduranceProjection,
    Health,
    Interval,
    PublishedYears,
    Rating,
    WornDrive,
    YearlyDemand,
    YearsOfLoad,
)

NAME = "results/endurance_projection.json"
LOADS = ("supernova", "continuous", "rating")
NO_LOG = "the drive reports no NVMe health log with percentage used"
NO_NAND = (
    "the drive reports no NAND writes: neither by OCP's log page C0h nor by one of its maker's whose unit is known"
)
NO_RATING = "the inventory declares no rating of this drive (bench_candidate.drive_ratings)"
BELOW = "fewer bytes were counted than one step of the drive's counter"
RESET = "percentage used went backwards or is saturated (255)"
YEARS_METRIC, AMPLIFICATION_METRIC = "endurance.years_{}", "endurance.write_amplification"


def of_bundle(bundle: Path, run: Run) -> EnduranceProjection | None:
    """None for a run without the workload, or one that ended before its first reading."""
    endurance = find_struct(bundle, "results/endurance.json", Endurance)
    if endurance is None:
        return None
    candidate = load_candidate(bundle / "profiles" / "lab.yml", run.candidate.name)
    rated = [read(one, Rating, "drive_ratings") for one in candidate.document.get("drive_ratings", [])]
    ratings = {one.serial: one for one in rated}
    profile = f"profiles/requirements/{run.requirement.id}.yml"
    bounds = _asked_years(plain_file(bundle, profile) or bundle / profile)
    return document(endurance, ratings, load_published(bundle / "profiles" / FOLDER), bounds)


def _asked_years(file: Path) -> dict[str, float]:
    """The longest life that the requirements ask for, by load."""
    asked: dict[str, float] = {}
    for entry in plain(read_yaml(file).data)["requirements"]:
        for name in LOADS:
            if entry["metric"] == YEARS_METRIC.format(name) and not isinstance(entry["bound"], str):
                asked[name] = max(float(entry["bound"]), asked.get(name, 0.0))
    return asked


def document(
    endurance: Endurance,
    ratings: dict[str, Rating],
    published: dict[str, PublishedDevice],
    asked_years: dict[str, float],
) -> EnduranceProjection:
    drives = [_drive(endurance, drive, ratings.get(drive.id), published) for drive in endurance.drives]
    reasons: dict[str, str] = {}
    judged: dict[str, float | None] = {}
    for name in LOADS:
        judged[name], reason = _judged_years(drives, name, asked_years.get(name))
        if reason:
            reasons[YEARS_METRIC.format(name)] = reason
    most = [
        one.write_amplification.high
        for one in drives
        if one.write_amplification and one.write_amplification.high is not None
    ]
    worst = max(most) if most and len(most) == len(drives) else None
    if worst is None:
        unknown = (f"{one.id}: {one.no_write_amplification}" for one in drives if one.no_write_amplification)
        reasons[AMPLIFICATION_METRIC] = next(unknown, NO_NAND)
    return EnduranceProjection(1, drives, judged, worst, reasons)


def _judged_years(drives: list[WornDrive], name: str, asked: float | None) -> tuple[float | None, str | None]:
    """(years, None) or (None, why not) for one load, of the drive that decides."""
    found = []
    for drive in drives:
        projection = next((one for one in drive.projections if one.load == name), None)
        if projection is None:
            return None, f"{drive.id}: {NO_RATING}"
        if projection.years is None:
            return None, f"{drive.id}: {drive.no_wear}"
        found.append((projection.years, drive, projection))
    low = min(years.low for years, _, _ in found)
    if asked is None or low >= asked:
        return low, None
    bounded = [years.high for years, _, _ in found if years.high is not None]
    if bounded and min(bounded) < asked:
        return min(bounded), None
    return None, _undecided(*min(found, key=lambda one: one[0].low), asked)


def _undecided(years: Interval, drive: WornDrive, projection: YearsOfLoad, asked: float) -> str:
    written = drive.host_bytes / wear.TB
    most = "with no upper bound" if years.high is None else f"at most {in_digits(years.high, 3)}"
    enough = asked * projection.bytes_per_year[1] / wear.TB / wear.LIFE_PERCENT * PERCENT_QUANTUM
    return (
        f"{drive.id} lasts at least {in_digits(years.low, 3)} years, {most}, which does not decide about {in_digits(asked, 9)}: "
        f"{in_digits(written)} TB "
        f"moved percentage used from {drive.percentage_used[0]} to {drive.percentage_used[1]}, and it counts whole percents. "
        f"A write_budget of {in_digits(max(enough, written), 3)} TB or more can decide"
    )


def _drive(
    endurance: Endurance, drive: Drive, rating: Rating | None, published: dict[str, PublishedDevice]
) -> WornDrive:
    before, since = _first_reading(endurance, drive.id)
    after = next(one for one in endurance.at_end if one.id == drive.id)
    host = after.written_bytes - before.written_bytes
    cost, no_wear = _wear(before, after, host)
    amplification, no_amplification = _amplification(before, after, host)
    share = _share(endurance, drive.id)
    return WornDrive(
        id=drive.id,
        model=drive.model,
        capacity_bytes=drive.capacity_bytes,
        since=since,
        host_bytes=host,
        percentage_used=[before.percentage_used, after.percentage_used],
        available_spare=[before.available_spare, after.available_spare],
        media_errors=[before.media_errors, after.media_errors],
        wear_percent_per_tb=cost,
        no_wear=no_wear,
        write_amplification=amplification,
        no_write_amplification=no_amplification,
        writes_per_byte=share,
        rating=rating,
        projections=[
            _projection(load, cost, after.percentage_used, rating, drive.capacity_bytes, published)
            for load in _loads(endurance.demand, share, rating, drive.capacity_bytes)
        ],
    )


def _first_reading(endurance: Endurance, drive: str) -> tuple[Health, str]:
    """The account's first reading where its counts still compare, else this run's: the longer stretch, the narrower interval."""
    start = next(one for one in endurance.at_start if one.id == drive)
    opening = endurance.opening
    if opening.epoch == endurance.epoch:
        first = next((one for one in opening.drives if one.id == drive), start)
        if first.written_bytes <= start.written_bytes:
            return first, "the experiment's first run"
    return start, "this run"


def _wear(before: Health, after: Health, host: int) -> tuple[Interval | None, str | None]:
    if before.percentage_used is None or after.percentage_used is None:
        return None, NO_LOG
    if host <= after.step_bytes:
        return None, BELOW
    cost = wear.wear_percent_per_tb(before.percentage_used, after.percentage_used, host, after.step_bytes)
    return cost, None if cost else RESET


def _amplification(before: Health, after: Health, host: int) -> tuple[Interval | None, str | None]:
    if before.nand_bytes is None or after.nand_bytes is None:
        return None, NO_NAND
    # The OCP page counts bytes; drives move on in steps of their own, which the host's counter's step stands for. Others count
    # in larger units.
    nand_step = max(after.step_bytes, after.nand_step_bytes or 0)
    found = wear.write_amplification(host, after.nand_bytes - before.nand_bytes, after.step_bytes, nand_step)
    return found, None if found else BELOW


def _share(endurance: Endurance, drive: str) -> float:
    """Bytes onto this drive per byte written to the target, over all steps as the counts are; the layout's where none did."""
    start = next(one for one in endurance.at_start if one.id == drive)
    end = next(one for one in endurance.at_end if one.id == drive)
    written = sum(step.written_bytes for step in endurance.steps)
    counted = end.written_bytes - start.written_bytes
    if len(endurance.drives) == 1 or written == 0 or counted <= 0:
        return float(endurance.writes_per_byte_max) / len(endurance.drives)
    return counted / written


def _loads(demanded: YearlyDemand, share: float, rating: Rating | None, capacity: int) -> list[wear.YearlyLoad]:
    demand = Demand.of(structs.asdict(demanded), 1.0, demanded.record_s)
    loads = [wear.supernova_cadence(demand, demanded.records_per_year, share), wear.continuous(demand, share)]
    return [*loads, wear.rated_writes(rating.dwpd, capacity)] if rating else loads


def _projection(
    load: wear.YearlyLoad,
    cost: Interval | None,
    used_percent: int | None,
    rating: Rating | None,
    capacity: int,
    published: dict[str, PublishedDevice],
) -> YearsOfLoad:
    total = rating.dwpd * capacity * wear.DAYS_PER_YEAR * rating.years if rating else None
    figures = ((device, device.figure("full_drive_writes")) for device in published.values())
    return YearsOfLoad(
        load=load.name,
        text=load.text,
        bytes_per_year=[load.low_bytes, load.high_bytes],
        years=wear.years(load, cost) if cost else None,
        years_left=wear.years(load, cost, wear.percent_left(used_percent))
        if cost and used_percent is not None
        else None,
        rated_years=wear.years_of_total(total, load) if total is not None else None,
        published_years=[
            PublishedYears(
                device.model,
                f"{figure.conditions}; {figure.source}",
                wear.years_of_total(figure.in_base_units * capacity, load),
            )
            for device, figure in figures
            if figure
        ],
    )
