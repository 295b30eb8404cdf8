"""*Run live*: the candidate's present state. Most important first; the top row is read in two seconds."""

from __future__ import annotations

from daq_bench.bench_dashboards.boards.live_machine import cooling, machine
from daq_bench.bench_dashboards.boards.live_telemetry import telemetry, verdict
from daq_bench.bench_dashboards.common import (
    ANNOTATIONS,
    CANDIDATE,
    DEVICE,
    DRIVE,
    DRIVES,
    HERE,
    LIMITS,
    LIVE,
    OWN_AGENT,
    RUN,
    line,
    links,
)
from daq_bench.bench_dashboards.dashboard import Dashboard
from daq_bench.bench_dashboards.influxql import (
    Query,
    equals,
    highest,
    last,
    lowest,
    mean,
    over_time,
    present,
    rate_over_time,
    value,
)
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import (
    MARGIN_TO_WARNING,
    NONE_ALLOWED,
    Colour,
    DataLink,
    Override,
    Thresholds,
    Unit,
    without_green,
)
from daq_bench.bench_dashboards.panels import WORST, Stat, Target, TimeSeries

# A refresh of the whole board is to take 600 kB at most with 24 drives and 64 cores. In 15 min these are points each 15 s, 20 s and 30 s,
# and each second or two once the range is a minute.
PER_DRIVE_POINTS = 60
PER_DRIVE_AND_DIRECTION_POINTS = 45
COUNTER_POINTS = 90  # of a counter that should stay at zero
PER_SENSOR_POINTS = 30  # temperatures change slowly, and a drive has several sensors, each with two limits
NOW = "1m"  # an older value is no state: it is neither green nor red
BUFFER = Thresholds(Colour.GOOD, ((0.5, Colour.WATCH), (0.9, Colour.BAD)))
TEMPERATURE = ("temperature.warning_degc",)
TO_DRIVES = DataLink("Drive health", f"/d/{DRIVES}?${{host:queryparam}}&${{run:queryparam}}", new_tab=False)


def _header() -> tuple[Row, ...]:
    # An agent runs only while a run is open: what answered within the last minute runs now, and nothing else does.
    running = Query("telemetry_agent", (last("staleness_s").named("age"),), (*HERE, OWN_AGENT), by=("run",))
    phase = Query("bench_event", (last("text"),), (*HERE, equals("kind", "phase")))
    # By run, so that two at one time are not mixed; the tile shows the worse one.
    left = Query("daqwriter", ((last("total_s") - last("elapsed_s")).named("left"),), HERE, ("run",))
    used = Query("daqwriter", ((last("backlog_bytes") / last("buffer_bytes")).named("used"),), HERE, ("run",))
    # Only the range that is shown, so that the last run's losses are not taken for this one's.
    lost = Query("daqwriter", (highest("lost_superchunks").named("lost"),), HERE, ("run",))
    filled = Query("daqwriter", ((value("backlog_bytes") / value("buffer_bytes")).named("used"),), HERE, ("run",))
    most = Query(filled, (highest("used").named("used"),), by=("run",))
    margins = Query(
        "temperature",
        ((last("warning_degc") - last("temperature_degc")).named("margin"),),
        (*DRIVE, present("device")),
        by=("device", "label"),
    )
    stale = Query("telemetry_agent", (last("staleness_s").named("age"),), (*HERE, OWN_AGENT), by=("collector",))
    tiles = (
        Stat(
            "Runs now",
            "The run whose agent answered within the last minute, and how long ago. Grey: nothing runs, and the other tiles show what was.",
            (Target(running, "$tag_run"),),
            Unit.SECONDS,
            Thresholds(Colour.CALM),
            time_from=NOW,
            decimals=0,
            per_series=True,
            no_value="nothing",
        ),
        Stat(
            "Phase",
            "The phase that was announced last in the range shown: zoom out for one that has lasted longer.",
            (Target(phase, "phase"),),
            Unit.TEXT,
            Thresholds(Colour.MUTED),
            text=True,
            no_value="-",
        ),
        Stat(
            "Left of this load",
            "Planned time less elapsed time of the running load.",
            (Target(Query(left, (highest("left"),)), "left"),),
            Unit.DURATION,
            Thresholds(Colour.CALM),
            time_from=NOW,
            no_value="-",
        ),
        Stat(
            "Lost superchunks",
            "Most that one record has lost, in the range shown. Anything but 0 fails the requirement. Blue: not one.",
            (Target(Query(lost, (highest("lost"),)), "lost"),),
            Unit.COUNT,
            without_green(NONE_ALLOWED, Colour.CALM),
            no_value="-",
        ),
        Stat(
            "Buffer in use",
            "Backlog as a share of the transient buffer, within the last minute. At 100 % the next superchunk is lost.",
            (Target(Query(used, (highest("used"),)), "used"),),
            Unit.FRACTION,
            BUFFER,
            decimals=0,
            time_from=NOW,
            no_value="-",
        ),
        Stat(
            "Fullest buffer",
            "Largest backlog as a share of the transient buffer, in the range shown. Blue: it was small.",
            (Target(Query(most, (highest("used"),)), "used"),),
            Unit.FRACTION,
            without_green(BUFFER, Colour.CALM),
            decimals=0,
            no_value="-",
        ),
        Stat(
            "Margin to warning",
            "Distance of the drive that is nearest to the warning temperature that it states itself (NVMe: WCTEMP), within the last "
            "minute.",
            (Target(Query(margins, (lowest("margin").named(WORST),), tags=("device", "label")), table=True),),
            Unit.KELVIN,
            MARGIN_TO_WARNING,
            needs=TEMPERATURE,
            whose=True,
            decimals=0,
            time_from=NOW,
            no_value="no value",
            links=(TO_DRIVES,),
        ),
        Stat(
            "Telemetry's age",
            "Age of the stalest collector's last good sample, within the last minute. SILENT: no agent answers.",
            (Target(Query(stale, (highest("age"),)), "age"),),
            Unit.SECONDS,
            Thresholds(Colour.GOOD, ((15, Colour.WATCH), (30, Colour.BAD)), missing=Colour.BAD),
            time_from=NOW,
            decimals=1,
            no_value="SILENT",
        ),
    )
    return Row(4, *tiles[:4]), Row(4, *tiles[4:])  # wide enough for their titles


def _counter_rate(field: str, alias: str, needs: tuple[str, ...] = ()) -> Target:
    return Target(rate_over_time("daqwriter", field, HERE, "run"), alias, needs=needs)


def _flow() -> tuple[Row, ...]:
    rates = TimeSeries(
        "Offered and stored rate",
        "Stored must lie on offered. A gap between them is backlog that grows; a dip of stored alone is the drive.",
        (
            _counter_rate("offered_bytes", "offered $tag_run"),
            _counter_rate("stored_bytes", "stored $tag_run"),
            _counter_rate("written_bytes", "written (synthetic) $tag_run", ("daqwriter.written_bytes",)),
            _counter_rate("read_bytes", "read back $tag_run"),
        ),
        Unit.BYTES_PER_S,
        overrides=(
            Override("/^offered /", colour=Colour.OFFERED, dashed=True),
            Override("/^stored /", colour=Colour.GOOD),
            Override("/^read back /", colour=Colour.MUTED),
        ),
    )
    backlog = TimeSeries(
        "Backlog against the transient buffer",
        "Data that has arrived and is not on the target yet. It must return to zero; at the dashed line superchunks are lost.",
        (
            line("daqwriter", highest("backlog_bytes"), "backlog $tag_run", "run"),
            line("daqwriter", highest("buffer_bytes"), "transient buffer $tag_run", "run"),
        ),
        Unit.BYTES,
        overrides=(
            Override("/^backlog /", colour=Colour.WATCH),
            Override("/^transient buffer /", colour=Colour.BAD, dashed=True),
        ),
    )
    writes = TimeSeries(
        "Write rate of each drive",
        "The drives of an array should run alike. One that lags holds all the others.",
        (line("block_device", mean("written_bytes_per_s"), "$tag_device", "device", where=DRIVE),),
        Unit.BYTES_PER_S,
        legend=("mean", "max"),
        most_points=PER_DRIVE_POINTS,
    )

    def sensor(field: str, alias: str) -> Target:
        query = over_time("temperature", highest(field), (*DRIVE, present("device")), "device", "label")
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
        overrides=LIMITS,
        needs=("temperature.temperature_degc", *TEMPERATURE, "temperature.critical_degc"),
        links=(TO_DRIVES,),
        most_points=PER_SENSOR_POINTS,
    )
    trouble = TimeSeries(
        "BUSY and lost superchunks",
        "Both should stay at zero. BUSY: the dataflow had to hold the source. Lost: there was no room even so.",
        (
            line("daqwriter", highest("busy_count"), "BUSY $tag_run", "run"),
            line("daqwriter", highest("lost_superchunks"), "lost $tag_run", "run"),
        ),
        Unit.COUNT,
        overrides=(Override("/^BUSY /", colour=Colour.WATCH), Override("/^lost /", colour=Colour.BAD)),
        steps=True,
        most_points=COUNTER_POINTS,
    )

    def drive(field: str, alias: str) -> Target:
        return line("block_device", mean(field), alias, "device", where=DRIVE)

    latency = TimeSeries(
        "Request latency of each drive",
        "Mean time of a request at the device. A rise at constant queue depth is the drive; with the queue, the load.",
        (drive("write_latency_s", "$tag_device write"), drive("read_latency_s", "$tag_device read")),
        Unit.SECONDS,
        needs=("block_device.write_latency_s", "block_device.read_latency_s"),
        most_points=PER_DRIVE_AND_DIRECTION_POINTS,
    )
    queue = TimeSeries(
        "Queue depth of each drive",
        "Mean number of requests in flight. At zero during a record the writer is late, not the drive.",
        (drive("queue_depth", "$tag_device"),),
        Unit.COUNT,
        needs=("block_device.queue_depth",),
        decimals=1,
        most_points=PER_DRIVE_AND_DIRECTION_POINTS,
    )
    return (Row(9, rates, backlog), Row(9, writes, temperatures), Row(8, latency, queue, trouble))


DASHBOARD = Dashboard(
    uid=LIVE,
    title="Run live",
    description="The candidate now: does the stored rate keep up, how warm are the drives, is the telemetry sound?",
    sections=(Section("", *_header(), *_flow()), machine(), cooling(), verdict(), telemetry()),
    variables=(CANDIDATE, RUN, DEVICE),
    annotations=ANNOTATIONS,
    links=links(LIVE),
    refresh="10s",
)
