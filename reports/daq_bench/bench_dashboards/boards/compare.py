"""*Compare two runs*: both laid over each other, the begin of a load at the same place.

InfluxQL cannot shift a series by an amount that a variable names. So the bench writes a copy of each run's main series whose
loads begin at 2000-01-01 00:00:00 UTC (measurement `aligned_run`): the axis reads as time since the trigger."""

from __future__ import annotations

from daq_bench.bench_dashboards.common import (
    COMPARE,
    EPOCH_BEGIN,
    EPOCH_END,
    JUDGED_COLUMNS,
    REPORT_URL,
    VERDICT_COLUMNS,
    links,
    verdict_of,
)
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.furniture import NEWEST_FIRST, FieldTexts, Link, TagValues
from daq_bench.bench_dashboards.influxql import (
    HISTORY,
    INTERVAL,
    Condition,
    Expression,
    Query,
    chosen,
    chosen_text,
    highest,
    highest_of_each,
    last,
    mean,
    mean_of_each,
)
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import OUTCOMES, Colour, DataLink, Override, Thresholds, Unit, recorded
from daq_bench.bench_dashboards.panels import Stat, Table, Target, TimeSeries

SIDES = ("A", "B")
# InfluxDB names the column by the function and the field: A mean_nvme0n1_write_latency_s.
DRIVE_NAME = ("^([AB]) (?:mean|max)_(.+)_(?:written_bytes_per_s|write_latency_s|temperature_degc)$", "$1 $2")
COLOURS = (Override("/^A/", colour=Colour.CALM), Override("/^B/", colour=Colour.ALARM))


def _run(side: str) -> Condition:
    return chosen("run", f"run_{side.lower()}")


def _series(column: Expression, each: bool = False, every: str = INTERVAL) -> tuple[Target, ...]:
    """One target for each side. `each`: the column is one for each drive, whose name is in the field's."""
    return tuple(
        Target(
            Query("aligned_run", (column,), (_run(side), chosen_text("load", "load")), (), every, policy=HISTORY),
            f"{side} $col" if each else side,
        )
        for side in SIDES
    )


def _graph(
    title: str, description: str, column: Expression, unit: Unit, need: str = "", each: bool = False
) -> TimeSeries:
    return TimeSeries(
        title,
        description,
        _series(column, each),
        unit,
        overrides=COLOURS,
        rename=DRIVE_NAME if each else None,
        needs=(need,) if need else (),
        legend=("mean", "max"),
    )


def _figure(title: str, description: str, column: Expression, unit: Unit, need: str = "") -> Stat:
    return Stat(
        title,
        description,
        _series(column, every=""),
        unit,
        Thresholds(Colour.CALM),
        needs=(need,) if need else (),
        per_series=True,
        no_value="-",
    )


def _outcome() -> Stat:
    targets = tuple(
        Target(Query("bench_run", (last("word"),), (_run(side),), policy=HISTORY, in_range=False), side)
        for side in SIDES
    )
    return Stat(
        "Outcomes",
        "The outcomes of run A and of run B. A PASS is grey here: it may be long ago.",
        targets,
        Unit.TEXT,
        words=recorded(OUTCOMES, Colour.MUTED),
        text=True,
        per_series=True,
        links=(
            DataLink("Report of run A", REPORT_URL.replace("${__data.fields.run}", "${run_a:raw}")),
            DataLink("Report of run B", REPORT_URL.replace("${__data.fields.run}", "${run_b:raw}")),
        ),
    )


def _table(side: str) -> Table:
    return Table(
        f"Requirements of run {side}",
        "Each measured value with its bound. Compare row by row with the other run.",
        (Target(verdict_of(chosen_text("of_run", f"run_{side.lower()}"), in_range=False), table=True),),
        Unit.COUNT,
        overrides=JUDGED_COLUMNS,
        columns=VERDICT_COLUMNS,
        sort="Margin",
        ascending=True,
    )


def _sections() -> tuple[Section, ...]:
    header = Row(
        6,
        _outcome(),
        _figure(
            "Mean stored rate",
            "Over the range shown.",
            mean("stored_bytes_per_s"),
            Unit.BYTES_PER_S,
            "daqwriter.stored_bytes",
        ),
        _figure(
            "Largest backlog",
            "The transient buffer that this load needed.",
            highest("backlog_bytes"),
            Unit.BYTES,
            "daqwriter.backlog_bytes",
        ),
        _figure(
            "Mean CPU in the kernel",
            "Mean share of the whole machine's CPU time.",
            mean("system_fraction"),
            Unit.FRACTION,
        ),
    )
    flow = (
        Row(
            9,
            _graph(
                "Stored rate",
                "Where the lines part, one run stored less. Begin of the load at 00:00:00.",
                mean("stored_bytes_per_s"),
                Unit.BYTES_PER_S,
                "daqwriter.stored_bytes",
            ),
            _graph(
                "Backlog",
                "Data that had arrived and was not on the target yet.",
                highest("backlog_bytes"),
                Unit.BYTES,
                "daqwriter.backlog_bytes",
            ),
        ),
        Row(
            9,
            _graph(
                "Write rate of each drive",
                "By the kernel's count.",
                mean_of_each("written_bytes_per_s"),
                Unit.BYTES_PER_S,
                each=True,
            ),
            _graph(
                "Drive temperature",
                "A run that began warmer throttles sooner: look at the left edge first.",
                highest_of_each("temperature_degc"),
                Unit.CELSIUS,
                "temperature.temperature_degc",
                each=True,
            ),
        ),
        Row(
            8,
            _graph(
                "Write latency at the device",
                "Mean time of a write in each interval.",
                mean_of_each("write_latency_s"),
                Unit.SECONDS,
                "block_device.write_latency_s",
                each=True,
            ),
            _graph(
                "CPU in the kernel", "Share of the whole machine's CPU time.", mean("system_fraction"), Unit.FRACTION
            ),
            _graph(
                "Power", "The server's power as its BMC states it.", mean("power_w"), Unit.WATT, "ipmi_power.power_w"
            ),
        ),
    )
    tables = Section("Verdicts", Row(9, _table("A"), _table("B")))
    return (Section("", header, *flow), tables)


def _run_variable(side: str, unlike: str = "") -> TagValues:
    return TagValues(
        f"run_{side.lower()}",
        f"Run {side}",
        f"Run {side}, newest first" + (", but for run A" if unlike else ""),
        "run",
        "aligned_run",
        policy=HISTORY,
        field="busy_fraction",
        unlike=unlike,
        sort=NEWEST_FIRST,
    )


RANGES = (
    ("2 min", "2000-01-01T00:02:00.000Z"),
    ("20 min", "2000-01-01T00:20:00.000Z"),
    ("12 h", "2000-01-01T12:00:00.000Z"),
)


def _range_links() -> tuple[Link, ...]:
    return tuple(
        Link(
            f"First {title}",
            f"/d/{COMPARE}?from={EPOCH_BEGIN}&to={end}",
            f"from 10 s before the begin of the load to {title} after it",
            keep_range=False,
            icon="clock-nine",
        )
        for title, end in RANGES
    )


DASHBOARD = Dashboard(
    uid=COMPARE,
    title="Compare two runs",
    description="Two runs laid over each other, aligned on the begin of a load: the axis is the time since then.",
    sections=_sections(),
    variables=(
        _run_variable("A"),
        _run_variable("B", unlike="run_a"),
        FieldTexts(
            "load",
            "Load",
            "Which load of the runs, by name and number",
            "load",
            "aligned_run",
            policy=HISTORY,
            field="load",
            where=(("run", "run_a"),),
        ),
    ),
    links=(*_range_links(), *links(COMPARE)),
    begin=EPOCH_BEGIN,
    end=EPOCH_END,
    timezone="utc",
)
