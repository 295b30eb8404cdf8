"""*Drive health*: the drives' own accounts, over days."""

from __future__ import annotations

from daq_bench.bench_dashboards.boards.drive_heat import heat, links_and_arrays
from daq_bench.bench_dashboards.boards.drive_source import BY_DRIVE, DRIVE_NAME, RAW, Source
from daq_bench.bench_dashboards.common import (
    ANNOTATIONS,
    BAR_LASTS,
    CANDIDATE,
    DEVICE,
    DRIVE,
    DRIVES,
    LATELY,
    RUN,
    links,
)
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.influxql import Query, highest, last, lowest
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import (
    MARGIN_TO_WARNING,
    NONE_ALLOWED,
    NONE_EXPECTED,
    Colour,
    Override,
    Thresholds,
    Unit,
    Word,
    without_green,
)
from daq_bench.bench_dashboards.panels import WORST, Stat, Table, Target, TimeSeries

SPARE = Thresholds(Colour.BAD, ((10, Colour.WATCH), (50, Colour.GOOD)))
NOT_READ = f"not read for {BAR_LASTS}"  # what nobody has read since the last night is no state
WORN = Thresholds(Colour.GOOD, ((80, Colour.WATCH), (100, Colour.BAD)))


def _over_time(
    source: Source, field: str, title: str, description: str, unit: Unit, most: float | None = None
) -> TimeSeries:
    """The drive's own account. The lowest value counts where there is a `most`."""
    column = source.lowest(field) if most else source.highest(field)
    return source.graph(title, description, unit, source.line("smart", column), needs=(f"smart.{field}",), most=most)


def _worst(title: str, description: str, field: str, unit: Unit, thresholds: Thresholds, least: bool = False) -> Stat:
    newest = Query("smart", (last(field).named("newest"),), DRIVE, by=BY_DRIVE)
    worst = Query(newest, ((lowest if least else highest)("newest").named(WORST),), tags=BY_DRIVE)
    return Stat(
        title,
        description,
        (Target(worst, title, table=True),),
        unit,
        thresholds,
        needs=(f"smart.{field}",),
        no_value=NOT_READ,
        whose=True,
        time_from=LATELY,
    )


def _nearest_to_its_warning() -> Stat:
    """By each drive's own limit: 60 degC is warm for one and cool for another."""
    by = ("device", "serial", "sensor")
    margin = (last("warning_degc") - last("temperature_degc")).named("margin")
    worst = Query(Query("smart_temperature", (margin,), DRIVE, by), (lowest("margin").named(WORST),), tags=BY_DRIVE)
    return Stat(
        "Margin to warning",
        "Distance of the drive that is nearest to the warning temperature that it states itself. A drive that states none is left out.",
        (Target(worst, "Margin to warning", table=True),),
        Unit.KELVIN,
        MARGIN_TO_WARNING,
        needs=("smart_temperature.warning_degc",),
        no_value=NOT_READ,
        whose=True,
        time_from=LATELY,
        decimals=0,
    )


def _header() -> Row:
    return Row(
        5,
        _worst(
            "Critical warning",
            "Bits of the worst drive: 1 spare, 2 temperature, 4 reliability, 8 read-only, 16 backup. 0 is healthy.",
            "critical_warning",
            Unit.COUNT,
            NONE_ALLOWED,
        ),
        _worst(
            "Most media errors",
            "Unrecovered errors of the worst drive since it was made. They never go back.",
            "media_errors",
            Unit.COUNT,
            NONE_ALLOWED,
        ),
        _worst(
            "Most worn",
            "Endurance used by the drive's own account, of the most worn. May pass 100 %.",
            "percentage_used_percent",
            Unit.PERCENT,
            WORN,
        ),
        _worst(
            "Least spare",
            "Spare capacity left, of the drive that has least.",
            "available_spare_percent",
            Unit.PERCENT,
            SPARE,
            least=True,
        ),
        _nearest_to_its_warning(),
        _worst(
            "Time above critical",
            "Minutes above the critical temperature (CCTEMP) in its life, of the drive that had most.",
            "critical_temperature_time_min",
            Unit.MINUTES,
            NONE_EXPECTED,
        ),
    )


TABLE_FIELDS = (
    ("passed", "Self-test"),
    ("critical_warning", "Critical warning"),
    ("percentage_used_percent", "Worn"),
    ("available_spare_percent", "Spare"),
    ("media_errors", "Media errors"),
    ("error_log_entries", "Error log"),
    ("reallocated_sectors", "Reallocated"),
    ("temperature_degc", "Temperature"),
    ("data_written_bytes", "Written"),
    ("power_on_hours", "Powered on"),
    ("unsafe_shutdowns", "Unsafe shutdowns"),
)


# A 14th of a screen of 1440 pixels would cut some headings off; other columns need less.
WIDTHS = (
    ("Drive", 80), ("Serial", 130), ("Critical warning", 130), ("Worn", 60), ("Spare", 65), ("Media errors", 105), ("Error log", 80),
    ("Reallocated", 102), ("Temperature", 105), ("Written", 75), ("Powered on", 102), ("Unsafe shutdowns", 145),
)  # fmt: skip


def newest(source: Source) -> Row:
    columns = tuple(source.last(field).named(field) for field, _ in TABLE_FIELDS)
    query = Query("smart", columns, source.drive, by=("device", "serial", "model"), policy=source.policy)
    table = Table(
        "Newest values of each drive",
        "One row for each drive, with the last values of this range: a good one has no colour, since it may be old. A column stays empty "
        "where its kind of drive has no such value.",
        (Target(query, table=True),),
        Unit.COUNT,
        overrides=(
            *(Override(heading, width=pixels) for heading, pixels in WIDTHS),
            Override(
                "Self-test",
                words=(Word("true", "passed", Colour.CLEAR), Word("false", "FAILED", Colour.BAD)),
                width=80,
            ),
            Override("Critical warning", thresholds=without_green(NONE_ALLOWED)),
            Override("Worn", unit=Unit.PERCENT, thresholds=without_green(WORN)),
            Override("Spare", unit=Unit.PERCENT, thresholds=without_green(SPARE)),
            Override("Media errors", thresholds=without_green(NONE_ALLOWED)),
            Override("Reallocated", thresholds=without_green(NONE_EXPECTED)),
            Override("Temperature", unit=Unit.CELSIUS),
            Override("Written", unit=Unit.BYTES),
            Override("Powered on", unit=Unit.HOURS),
        ),
        needs=tuple(f"smart.{field}" for field, _ in TABLE_FIELDS),
        columns=(("device", "Drive"), ("serial", "Serial"), ("model", "Model"), *TABLE_FIELDS),
    )
    return Row(8, table)


def wear(source: Source) -> Section:
    def amount(field: str, what: str) -> Target:
        return source.line("smart", source.highest(field), f"{DRIVE_NAME} {what}", needs=field)

    written = source.graph(
        "Written by the host and onto the NAND",
        "Slope: the load. NAND over host is the write amplification, where a drive counts it.",
        Unit.BYTES,
        amount("data_written_bytes", "host"),
        amount("nand_written_bytes", "NAND"),
    )
    return Section(
        "Wear",
        Row(
            8,
            _over_time(
                source,
                "percentage_used_percent",
                "Endurance used",
                "The drive's own estimate, in whole percent: it moves by steps.",
                Unit.PERCENT,
            ),
            _over_time(
                source,
                "available_spare_percent",
                "Spare left",
                "Falls when blocks are retired. Below the drive's threshold it warns.",
                Unit.PERCENT,
                most=100,
            ),
            written,
        ),
        Row(
            8,
            _over_time(
                source,
                "media_errors",
                "Media errors",
                "Any step is data that the drive could not give back.",
                Unit.COUNT,
            ),
            _over_time(
                source,
                "error_log_entries",
                "Error log entries",
                "Also counts commands that a drive merely refuses; compare with media errors.",
                Unit.COUNT,
            ),
            _over_time(
                source, "unsafe_shutdowns", "Unsafe shutdowns", "A step: power went away without notice.", Unit.COUNT
            ),
        ),
    )


DASHBOARD = Dashboard(
    uid=DRIVES,
    title="Drive health",
    description="Each drive's own account of its wear, errors, heat and link, over time.",
    sections=(Section("", _header(), newest(RAW)), wear(RAW), heat(RAW), links_and_arrays(RAW)),
    variables=(CANDIDATE, RUN, DEVICE),
    annotations=ANNOTATIONS,
    links=links(DRIVES),
    begin="now-7d",
    refresh="1m",
)
