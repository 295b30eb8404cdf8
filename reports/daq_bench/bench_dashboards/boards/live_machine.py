"""Parts of *Run live*: processors, memory, interrupts, power and cooling."""

from __future__ import annotations

from daq_bench.bench_dashboards.common import HERE, TOTAL, line
from daq_bench.bench_dashboards.influxql import Query, differs, equals, growth, highest, lowest, mean, over_time
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import Colour, Thresholds, Unit
from daq_bench.bench_dashboards.panels import BarGauge, Heatmap, Target, TimeSeries

PER_CORE_POINTS = 24  # of each core: 128 cores stay below 100 kB a refresh
PER_SENSOR_POINTS = 30  # of each drive, network card or sensor: in 15 min one each 30 s
MACHINE_POINTS = 90  # of a line of the whole machine: one each 10 s


def machine() -> Section:
    shares = ("user", "system", "iowait", "irq", "softirq", "steal")
    total = TimeSeries(
        "CPU, the whole machine",
        "Where the time goes. Much system or softirq: the kernel's part of each write. iowait is idle time, no load.",
        tuple(line("cpu", mean(f"{name}_fraction"), name, "host", where=TOTAL) for name in shares),
        Unit.FRACTION,
        stacked=True,
        most=1,
        legend=("mean", "max"),
        most_points=MACHINE_POINTS,
    )
    cores = Heatmap(
        "How many cores are how busy",
        "One bright band at the top while the rest is dark: single threads are the limit, not the machine.",
        # Percent, since Grafana 11 loses the counts of some rows whose size is a fraction; and a core at 100 % lies in the row of 90 %: one
        # that begins at the axis' end is not drawn.
        (line("cpu", mean("busy_fraction") * 99.99, "$tag_core", "core", where=(*HERE, differs("core", "total"))),),
        Unit.PERCENT,
        most_points=PER_CORE_POINTS,
    )
    kernel = TimeSeries(
        "Kernel time of each core",
        "The busiest first. A core near 100 % serves one queue or one interrupt alone.",
        (line("cpu", mean("system_fraction"), "core $tag_core", "core", where=(*HERE, differs("core", "total"))),),
        Unit.FRACTION,
        most=1,
        legend=("max",),
        most_points=PER_CORE_POINTS,
    )
    memory = TimeSeries(
        "Memory",
        "Dirty and writeback near zero: the load goes past the page cache, as it should. Falling available: a leak.",
        tuple(
            line("memory", mean(f"{name}_bytes"), name, "host")
            for name in ("available", "cached", "dirty", "writeback")
        ),
        Unit.BYTES,
        most_points=MACHINE_POINTS,
    )
    pressure = TimeSeries(
        "Stalled tasks (PSI)",
        "Share of the time in which tasks stood still for want of a resource. io under a record is expected, memory never.",
        (
            line(
                "pressure", mean("stalled_fraction"), "$tag_resource", "resource", where=(*HERE, equals("kind", "some"))
            ),
        ),
        Unit.FRACTION,
        needs=("pressure.stalled_fraction",),
        most=1,
        most_points=MACHINE_POINTS,
    )
    frequency = TimeSeries(
        "CPU frequency",
        "Slowest and fastest core. A sag under load is a power or a temperature limit.",
        (
            line("cpu_frequency", lowest("frequency_hz"), "slowest core", "host"),
            line("cpu_frequency", highest("frequency_hz"), "fastest core", "host"),
        ),
        Unit.HERTZ,
        needs=("cpu_frequency.frequency_hz",),
        most_points=MACHINE_POINTS,
    )
    remote = TimeSeries(
        "NUMA: what crosses between nodes",
        "Pages allocated for the other node, and interrupts taken by a CPU far from the device. Should be near zero.",
        (
            line("numa", mean("remote_fraction"), "memory of node $tag_node", "node", optional=True),
            line(
                "interrupts",
                mean("remote_fraction"),
                "interrupts of $tag_device",
                "device",
                where=(*HERE, equals("core", "total")),
                optional=True,
            ),
        ),
        Unit.FRACTION,
        most=1,
        legend=("max",),
        most_points=PER_SENSOR_POINTS,
    )
    interrupts = TimeSeries(
        "Interrupts of drives and network cards",
        "All vectors of a device. One device far above the others, or a flood while nothing is written, is a fault.",
        (
            line(
                "interrupts", mean("interrupts_per_s"), "$tag_device", "device", where=(*HERE, equals("core", "total"))
            ),
        ),
        Unit.PER_S,
        needs=("interrupts.interrupts_per_s",),
        legend=("max",),
        most_points=PER_SENSOR_POINTS,
    )
    bandwidth = TimeSeries(
        "Memory bandwidth",
        "A record passes memory several times: copy, checksum, DMA. Near the machine's limit the CPUs wait for it.",
        (
            line("memory_bandwidth", mean("total_bytes_per_s"), "$tag_domain", "domain", optional=True),
            line("memory_bandwidth", mean("written_bytes_per_s"), "$tag_domain written", "domain", optional=True),
        ),
        Unit.BYTES_PER_S,
        most_points=MACHINE_POINTS,
    )
    network = TimeSeries(
        "Network",
        "Received and sent by each interface. A record whose data is made in memory leaves it quiet.",
        (
            line("network", mean("received_bytes_per_s"), "$tag_interface received", "interface"),
            line("network", mean("transmitted_bytes_per_s"), "$tag_interface sent", "interface"),
        ),
        Unit.BYTES_PER_S,
        needs=("network.received_bytes_per_s",),
        most_points=MACHINE_POINTS,
    )
    throttle = TimeSeries(
        "CPU throttling",
        "Times per interval that a core or a package was throttled. Anything but zero takes time from the writer.",
        (
            line("cpu_throttle", growth(highest("core_throttle_count")), "cores of package $tag_package", "package"),
            line("cpu_throttle", growth(highest("package_throttle_count")), "package $tag_package", "package"),
        ),
        Unit.COUNT,
        needs=("cpu_throttle.core_throttle_count",),
        most_points=MACHINE_POINTS,
    )
    return Section(
        "Machine",
        Row(8, total, cores),
        Row(7, kernel, memory, pressure),
        Row(7, remote, interrupts, frequency),
        Row(7, bandwidth, network, throttle),
    )


def cooling() -> Section:
    def bmc(field: str, title: str, description: str, unit: Unit, kind: str, *more: Target) -> TimeSeries:
        where = (*HERE, equals("kind", kind))
        query = over_time("ipmi_sensor", mean(field), where, "sensor", "entity")
        ours = Target(query, "$tag_sensor", needs=(f"ipmi_sensor.{field}",))
        return TimeSeries(title, description, (ours, *more), unit, legend=(), most_points=PER_SENSOR_POINTS)

    redfish = line(
        "redfish_sensor",
        mean("temperature_degc"),
        "$tag_sensor (Redfish)",
        "sensor",
        "chassis",
        "resource",
        optional=True,
    )

    power = TimeSeries(
        "Power",
        "The server's power as its BMC states it, and that of processors and memory as they count it themselves (RAPL).",
        (
            line("ipmi_power", mean("power_w"), "server", "host", optional=True),
            line("rapl", mean("power_w"), "$tag_domain", "domain", optional=True),
        ),
        Unit.WATT,
        most_points=MACHINE_POINTS,
    )
    worst = BarGauge(
        "Sensors that the BMC complains of",
        "Rank of each sensor's worst state in the range shown: 0 ok, 1 non-critical, 2 critical, 3 non-recoverable.",
        (Target(Query("ipmi_sensor", (highest("severity"),), HERE, ("sensor", "entity")), "$tag_sensor"),),
        Unit.COUNT,
        Thresholds(Colour.CALM, ((1, Colour.WATCH), (2, Colour.BAD))),
        needs=("ipmi_sensor.severity",),
        least=0,
        most=3,
    )
    return Section(
        "Power and cooling",
        Row(
            8,
            bmc("speed_rpm", "Fans", "A fan at 0, or alone below the others, fails.", Unit.RPM, "fan"),
            bmc(
                "temperature_degc",
                "Temperatures in the server",
                "Inlet, processors, bays. A rising inlet warms everything else. By IPMI, and the inlet by Redfish too where it is asked.",
                Unit.CELSIUS,
                "temperature",
                redfish,
            ),
            power,
            worst,
        ),
    )
