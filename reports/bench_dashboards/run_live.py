"""*Run live*: what the candidate does at this moment. Most important first; the top row is read in two seconds."""

from __future__ import annotations

from bench_dashboards.common import (
    ANNOTATIONS,
    CANDIDATE,
    DEVICE,
    DRIVE,
    DRIVES,
    HERE,
    LIVE,
    REPORT,
    RUN,
    TOTAL,
    VERDICT_COLUMNS,
    links,
    verdict_of,
)
from bench_dashboards.dashboard import Dashboard
from bench_dashboards.influxql import (
    HISTORY,
    INTERVAL,
    Query,
    chosen,
    differs,
    equals,
    growth,
    highest,
    last,
    lowest,
    mean,
    present,
    rate,
)
from bench_dashboards.layout import Row, Section
from bench_dashboards.looks import (
    DECISIONS,
    NONE_ALLOWED,
    OUTCOMES,
    Colour,
    DataLink,
    Override,
    Thresholds,
    Unit,
)
from bench_dashboards.panels import BarGauge, Heatmap, Panel, Stat, Table, Target, TimeSeries

TEMPERATURE = ("temperature.warning_degc",)
TO_DRIVES = DataLink("Drive health", f"/d/{DRIVES}?${{host:queryparam}}&${{run:queryparam}}", new_tab=False)


def _header() -> Row:
    now = Query("bench_event", (last("text"),), (*HERE, equals("kind", "phase")))
    left = Query("daqwriter", ((last("total_s") - last("elapsed_s")).named("left"),), HERE)
    used = Query("daqwriter", ((last("backlog_bytes") / last("buffer_bytes")).named("used"),), HERE)
    margins = Query(
        "temperature",
        ((last("warning_degc") - last("temperature_degc")).named("margin"),),
        (*DRIVE, present("device")),
        by=("device", "sensor"),
    )
    stale = Query("telemetry_agent", (last("staleness_s").named("age"),), HERE, by=("collector",))
    panels: tuple[tuple[Panel, int], ...] = (
        (
            Stat(
                "Now",
                "The phase that the run announced last. Empty: no run in this range.",
                (Target(now, "phase"),),
                Unit.TEXT,
                Thresholds(Colour.CALM),
                text=True,
                no_value="no run",
            ),
            6,
        ),
        (
            Stat(
                "Left of this load",
                "Planned time less elapsed time of the running load. Stays at its last value when the load has ended.",
                (Target(left, "left"),),
                Unit.DURATION,
                Thresholds(Colour.CALM),
                no_value="-",
            ),
            4,
        ),
        (
            Stat(
                "Lost superchunks",
                "Most that one record in this range has lost. Anything but 0 fails the requirement.",
                (Target(Query("daqwriter", (highest("lost_superchunks"),), HERE), "lost"),),
                Unit.COUNT,
                NONE_ALLOWED,
                no_value="-",
            ),
            3,
        ),
        (
            Stat(
                "Buffer in use",
                "Backlog as a share of the transient buffer. At 100 % the next superchunk is lost.",
                (Target(used, "used"),),
                Unit.FRACTION,
                Thresholds(Colour.GOOD, ((0.5, Colour.WATCH), (0.9, Colour.BAD))),
                decimals=0,
                no_value="-",
            ),
            4,
        ),
        (
            Stat(
                "Margin to warning",
                "Distance of the hottest drive to the warning temperature that it states itself (NVMe: WCTEMP).",
                (Target(Query(margins, (lowest("margin"),)), "margin"),),
                Unit.CELSIUS,
                Thresholds(Colour.BAD, ((0, Colour.ALARM), (5, Colour.WATCH), (10, Colour.GOOD))),
                needs=TEMPERATURE,
                decimals=0,
                no_value="no sensor",
                links=(TO_DRIVES,),
            ),
            4,
        ),
        (
            Stat(
                "Telemetry's age",
                "Age of the stalest collector's last good sample, within the last minute. SILENT: no agent answers.",
                (Target(Query(stale, (highest("age"),)), "age"),),
                Unit.SECONDS,
                Thresholds(Colour.GOOD, ((15, Colour.WATCH), (30, Colour.BAD))),
                time_from="1m",
                decimals=1,
                no_value="SILENT",
            ),
            3,
        ),
    )
    return Row(5, panels)


def _counter_rate(field: str, alias: str, needs: tuple[str, ...] = ()) -> Target:
    return Target(Query("daqwriter", (rate(highest(field)),), HERE, ("run",), INTERVAL), alias, needs=needs)


def _flow() -> tuple[Row, ...]:
    rates = TimeSeries(
        "Offered and stored rate",
        "Stored must lie on offered. A gap between them is backlog that grows; a dip of stored alone is the drive.",
        (
            _counter_rate("offered_bytes", "offered"),
            _counter_rate("stored_bytes", "stored"),
            _counter_rate("written_bytes", "written (synthetic)", ("daqwriter.written_bytes",)),
            _counter_rate("read_bytes", "read back"),
        ),
        Unit.BYTES_PER_S,
        overrides=(
            Override("offered", colour=Colour.OFFERED, dashed=True),
            Override("stored", colour=Colour.GOOD),
            Override("read back", colour=Colour.MUTED),
        ),
    )
    backlog = TimeSeries(
        "Backlog against the transient buffer",
        "What has arrived and is not on the target yet. It must return to zero; at the dashed line superchunks are lost.",
        (
            Target(Query("daqwriter", (highest("backlog_bytes"),), HERE, ("run",), INTERVAL), "backlog"),
            Target(Query("daqwriter", (highest("buffer_bytes"),), HERE, ("run",), INTERVAL), "transient buffer"),
        ),
        Unit.BYTES,
        overrides=(
            Override("backlog", colour=Colour.WATCH),
            Override("transient buffer", colour=Colour.BAD, dashed=True),
        ),
    )
    writes = TimeSeries(
        "Write rate of each drive",
        "The drives of an array should run alike. One that lags holds all the others.",
        (Target(Query("block_device", (mean("written_bytes_per_s"),), DRIVE, ("device",), INTERVAL), "$tag_device"),),
        Unit.BYTES_PER_S,
        legend=("mean", "max"),
    )

    def sensor(field: str, alias: str) -> Target:
        query = Query("temperature", (highest(field),), (*DRIVE, present("device")), ("device", "label"), INTERVAL)
        return Target(query, alias)

    temperatures = TimeSeries(
        "Drive temperature against its own limits",
        "Dashed: where the drive itself warns (yellow) and stops (red). A plateau just below a limit is throttling.",
        (
            sensor("temperature_degc", "$tag_device $tag_label"),
            sensor("warning_degc", "$tag_device $tag_label warning"),
            sensor("critical_degc", "$tag_device $tag_label critical"),
        ),
        Unit.CELSIUS,
        overrides=(
            Override("/ warning$/", colour=Colour.WATCH, dashed=True),
            Override("/ critical$/", colour=Colour.BAD, dashed=True),
        ),
        needs=("temperature.temperature_degc", *TEMPERATURE, "temperature.critical_degc"),
        links=(TO_DRIVES,),
    )
    trouble = TimeSeries(
        "BUSY and lost superchunks",
        "Both should stay at zero. BUSY: the dataflow had to hold the source. Lost: there was no room even so.",
        (
            Target(Query("daqwriter", (highest("busy_count"),), HERE, ("run",), INTERVAL), "BUSY"),
            Target(Query("daqwriter", (highest("lost_superchunks"),), HERE, ("run",), INTERVAL), "lost"),
        ),
        Unit.COUNT,
        overrides=(Override("BUSY", colour=Colour.WATCH), Override("lost", colour=Colour.BAD)),
        steps=True,
    )
    busy = TimeSeries(
        "Drives: share of time with a request in flight",
        "100 % alone is no fault of an NVMe drive, which works at many requests at once; 100 % at a falling rate is.",
        (Target(Query("block_device", (mean("busy_fraction"),), DRIVE, ("device",), INTERVAL), "$tag_device"),),
        Unit.FRACTION,
        most=1,
        legend=("mean", "max"),
    )
    return (
        Row(9, ((rates, 12), (backlog, 12))),
        Row(9, ((writes, 12), (temperatures, 12))),
        Row(7, ((trouble, 12), (busy, 12))),
    )


def _machine() -> Section:
    shares = ("user", "system", "iowait", "irq", "softirq", "steal")
    total = TimeSeries(
        "CPU, the whole machine",
        "Where the time goes. Much system or softirq: the kernel's part of each write. iowait is idle time, no load.",
        tuple(Target(Query("cpu", (mean(f"{name}_fraction"),), TOTAL, ("host",), INTERVAL), name) for name in shares),
        Unit.FRACTION,
        stacked=True,
        most=1,
        legend=("mean", "max"),
    )
    cores = Heatmap(
        "How many cores are how busy",
        "One bright band at the top while the rest is dark: single threads are the limit, not the machine.",
        (
            Target(
                Query("cpu", (mean("busy_fraction"),), (*HERE, differs("core", "total")), ("core",), INTERVAL),
                "$tag_core",
            ),
        ),
        Unit.FRACTION,
    )
    kernel = TimeSeries(
        "Busiest cores in the kernel",
        "Kernel time of single cores. A core near 100 % serves one queue or one interrupt alone.",
        (
            Target(
                Query("cpu", (mean("system_fraction"),), (*HERE, differs("core", "total")), ("core",), INTERVAL),
                "core $tag_core",
            ),
        ),
        Unit.FRACTION,
        most=1,
        legend=("max",),
    )
    memory = TimeSeries(
        "Memory",
        "Dirty and writeback near zero: the load goes past the page cache, as it should. Falling available: a leak.",
        tuple(
            Target(Query("memory", (mean(f"{name}_bytes"),), HERE, ("host",), INTERVAL), name)
            for name in ("available", "cached", "dirty", "writeback")
        ),
        Unit.BYTES,
    )
    pressure = TimeSeries(
        "Stalled tasks (PSI)",
        "Share of the time in which tasks stood still for want of a resource. io under a record is expected, memory never.",
        (
            Target(
                Query(
                    "pressure",
                    (mean("stalled_fraction"),),
                    (*HERE, equals("kind", "some")),
                    ("resource",),
                    INTERVAL,
                ),
                "$tag_resource",
            ),
        ),
        Unit.FRACTION,
        needs=("pressure.stalled_fraction",),
    )
    frequency = TimeSeries(
        "CPU frequency",
        "Slowest and fastest core. A sag under load is a power or a temperature limit.",
        (
            Target(Query("cpu_frequency", (lowest("frequency_hz"),), HERE, ("host",), INTERVAL), "slowest core"),
            Target(Query("cpu_frequency", (highest("frequency_hz"),), HERE, ("host",), INTERVAL), "fastest core"),
        ),
        Unit.HERTZ,
        needs=("cpu_frequency.frequency_hz",),
    )
    return Section(
        "Machine",
        (
            Row(8, ((total, 12), (cores, 12))),
            Row(7, ((kernel, 8), (memory, 8), (pressure, 8))),
            Row(7, ((frequency, 24),)),
        ),
    )


def _cooling() -> Section:
    def bmc(field: str, title: str, description: str, unit: Unit, kind: str) -> TimeSeries:
        where = (*HERE, equals("kind", kind))
        query = Query("ipmi_sensor", (mean(field),), where, ("sensor", "entity"), INTERVAL)
        return TimeSeries(
            title, description, (Target(query, "$tag_sensor"),), unit, needs=(f"ipmi_sensor.{field}",), legend=()
        )

    power = TimeSeries(
        "Power",
        "The server's power as its BMC states it.",
        (Target(Query("ipmi_power", (mean("power_w"),), HERE, ("host",), INTERVAL), "server"),),
        Unit.WATT,
        needs=("ipmi_power.power_w",),
    )
    worst = BarGauge(
        "Sensors that the BMC complains of",
        "Rank of each sensor's worst state: 0 ok, 1 non-critical, 2 critical, 3 non-recoverable.",
        (Target(Query("ipmi_sensor", (highest("severity"),), HERE, ("sensor", "entity")), "$tag_sensor"),),
        Unit.COUNT,
        Thresholds(Colour.GOOD, ((1, Colour.WATCH), (2, Colour.BAD))),
        needs=("ipmi_sensor.severity",),
        least=0,
        most=3,
    )
    return Section(
        "Power and cooling",
        (
            Row(
                8,
                (
                    (bmc("speed_rpm", "Fans", "A fan at 0, or alone below the others, fails.", Unit.RPM, "fan"), 6),
                    (
                        bmc(
                            "temperature_degc",
                            "Temperatures in the server",
                            "Inlet, processors, bays. A rising inlet warms everything else.",
                            Unit.CELSIUS,
                            "temperature",
                        ),
                        6,
                    ),
                    (power, 6),
                    (worst, 6),
                ),
            ),
        ),
    )


def _telemetry() -> Section:
    def agent(field: str, title: str, description: str, unit: Unit, step: bool = False) -> TimeSeries:
        """One of the agent's own series per collector; `step`: growth of a counter."""
        column = growth(highest(field)) if step else highest(field)
        query = Query("telemetry_agent", (column,), HERE, ("collector",), INTERVAL)
        return TimeSeries(title, description, (Target(query, "$tag_collector"),), unit, legend=())

    spool = TimeSeries(
        "Points that wait for InfluxDB",
        "Rises while InfluxDB is away, and falls when it is back. Nothing is lost by it.",
        (
            Target(
                Query("telemetry_agent", (highest("undelivered_points"),), HERE, ("run",), INTERVAL), "in the spool"
            ),
            Target(Query("telemetry_agent", (highest("unspooled_points"),), HERE, ("run",), INTERVAL), "not spooled"),
            Target(Query("telemetry_agent", (highest("rejected_points"),), HERE, ("run",), INTERVAL), "rejected"),
        ),
        Unit.COUNT,
    )
    return Section(
        "Telemetry's own health",
        (
            Row(
                7,
                (
                    (
                        agent(
                            "staleness_s",
                            "Age of each collector's last sample",
                            "A saw-tooth as high as the collector's period. A ramp: it hangs.",
                            Unit.SECONDS,
                        ),
                        6,
                    ),
                    (
                        agent(
                            "missed_samples",
                            "Missed samples",
                            "Deadlines that passed without a good sample, per interval. Should be zero.",
                            Unit.COUNT,
                            step=True,
                        ),
                        6,
                    ),
                    (
                        agent(
                            "duration_s",
                            "Time that a sample takes",
                            "ipmitool takes seconds, /proc under a millisecond. Growth means a sensor that gets slow.",
                            Unit.SECONDS,
                        ),
                        6,
                    ),
                    (spool, 6),
                ),
            ),
        ),
        folded=True,
    )


def _verdict() -> Section:
    overall = Query(
        "bench_verdict",
        (last("outcome"),),
        (chosen("host"), chosen("run"), equals("requirement", "overall")),
        policy=HISTORY,
        in_range=False,
    )
    outcome = Stat(
        "Newest outcome",
        "Of the newest run that has been judged, whenever that was. INADMISSIBLE: the evidence does not count.",
        (Target(overall, "outcome"),),
        Unit.TEXT,
        words=OUTCOMES,
        text=True,
        no_value="none yet",
    )
    table = Table(
        "Requirements of runs judged in this range",
        "What each requirement asked, what was measured, and by how much it was met. A run has its rows when it is judged.",
        (Target(verdict_of(*HERE, in_range=True), table=True),),
        Unit.COUNT,
        overrides=(
            Override("Outcome", words=OUTCOMES, width=140),
            Override("Decision", words=DECISIONS, width=120),
            Override("Margin", unit=Unit.PERCENT),
            Override("run", links=(REPORT,)),
        ),
        columns=(*VERDICT_COLUMNS, ("run", "run")),
        decimals=3,
    )
    return Section("Verdict", (Row(8, ((outcome, 6), (table, 18))),))


DASHBOARD = Dashboard(
    uid=LIVE,
    title="Run live",
    description="What the candidate does now: does the stored rate keep up, how warm are the drives, is the telemetry sound?",
    sections=(Section("", (_header(), *_flow())), _machine(), _cooling(), _verdict(), _telemetry()),
    variables=(CANDIDATE, RUN, DEVICE),
    annotations=ANNOTATIONS,
    links=links(LIVE),
    refresh="5s",
)
