"""Parts of *Run live*: processors, memory, interrupts, power and cooling."""

from __future__ import annotations

from bench_dashboards.common import (
    HERE,
    TOTAL,
)
from bench_dashboards.influxql import (
    Query,
    differs,
    equals,
    growth,
    highest,
    lowest,
    mean,
    over_time,
)
from bench_dashboards.layout import Row, Section
from bench_dashboards.looks import (
    Colour,
    Thresholds,
    Unit,
)
from bench_dashboards.panels import BarGauge, Heatmap, Target, TimeSeries

PER_CORE_POINTS = 24  # of each core: 128 cores stay below 100 kB a refresh


def machine() -> Section:
    shares = ("user", "system", "iowait", "irq", "softirq", "steal")
    total = TimeSeries(
        "CPU, the whole machine",
        "Where the time goes. Much system or softirq: the kernel's part of each write. iowait is idle time, no load.",
        tuple(Target(over_time("cpu", mean(f"{name}_fraction"), TOTAL, "host"), name) for name in shares),
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
                over_time("cpu", mean("busy_fraction"), (*HERE, differs("core", "total")), "core"),
                "$tag_core",
            ),
        ),
        Unit.FRACTION,
        most_points=PER_CORE_POINTS,
    )
    kernel = TimeSeries(
        "Busiest cores in the kernel",
        "Kernel time of single cores. A core near 100 % serves one queue or one interrupt alone.",
        (
            Target(
                over_time("cpu", mean("system_fraction"), (*HERE, differs("core", "total")), "core"),
                "core $tag_core",
            ),
        ),
        Unit.FRACTION,
        most=1,
        legend=("max",),
        most_points=PER_CORE_POINTS,
    )
    memory = TimeSeries(
        "Memory",
        "Dirty and writeback near zero: the load goes past the page cache, as it should. Falling available: a leak.",
        tuple(
            Target(over_time("memory", mean(f"{name}_bytes"), HERE, "host"), name)
            for name in ("available", "cached", "dirty", "writeback")
        ),
        Unit.BYTES,
    )
    pressure = TimeSeries(
        "Stalled tasks (PSI)",
        "Share of the time in which tasks stood still for want of a resource. io under a record is expected, memory never.",
        (
            Target(
                over_time("pressure", mean("stalled_fraction"), (*HERE, equals("kind", "some")), "resource"),
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
            Target(over_time("cpu_frequency", lowest("frequency_hz"), HERE, "host"), "slowest core"),
            Target(over_time("cpu_frequency", highest("frequency_hz"), HERE, "host"), "fastest core"),
        ),
        Unit.HERTZ,
        needs=("cpu_frequency.frequency_hz",),
    )
    remote = TimeSeries(
        "NUMA: what crosses between nodes",
        "Pages allocated for the other node, and interrupts taken by a CPU far from the device. Should be near zero.",
        (
            Target(
                over_time("numa", mean("remote_fraction"), HERE, "node"),
                "memory of node $tag_node",
                needs=("numa.remote_fraction",),
            ),
            Target(
                over_time("interrupts", mean("remote_fraction"), (*HERE, equals("core", "total")), "device"),
                "interrupts of $tag_device",
                needs=("interrupts.remote_fraction",),
            ),
        ),
        Unit.FRACTION,
        legend=("max",),
    )
    interrupts = TimeSeries(
        "Interrupts of drives and network cards",
        "All vectors of a device. One device far above the others, or a flood while nothing is written, is a fault.",
        (
            Target(
                over_time("interrupts", mean("interrupts_per_s"), (*HERE, equals("core", "total")), "device"),
                "$tag_device",
            ),
        ),
        Unit.PER_S,
        needs=("interrupts.interrupts_per_s",),
        legend=("max",),
    )
    bandwidth = TimeSeries(
        "Memory bandwidth",
        "A record passes memory several times: copy, checksum, DMA. Near the machine's limit the CPUs wait for it.",
        (
            Target(
                over_time("memory_bandwidth", mean("total_bytes_per_s"), HERE, "domain"),
                "$tag_domain",
                needs=("memory_bandwidth.total_bytes_per_s",),
            ),
            Target(
                over_time("memory_bandwidth", mean("written_bytes_per_s"), HERE, "domain"),
                "$tag_domain written",
                needs=("memory_bandwidth.written_bytes_per_s",),
            ),
        ),
        Unit.BYTES_PER_S,
    )
    network = TimeSeries(
        "Network",
        "Received and sent by each interface. A record whose data is made in memory leaves it quiet.",
        (
            Target(over_time("network", mean("received_bytes_per_s"), HERE, "interface"), "$tag_interface received"),
            Target(over_time("network", mean("transmitted_bytes_per_s"), HERE, "interface"), "$tag_interface sent"),
        ),
        Unit.BYTES_PER_S,
        needs=("network.received_bytes_per_s",),
    )
    throttle = TimeSeries(
        "CPU throttling",
        "Times per interval that a core or a package was throttled. Anything but zero takes time from the writer.",
        (
            Target(
                over_time("cpu_throttle", growth(highest("core_throttle_count")), HERE, "package"),
                "cores of package $tag_package",
            ),
            Target(
                over_time("cpu_throttle", growth(highest("package_throttle_count")), HERE, "package"),
                "package $tag_package",
            ),
        ),
        Unit.COUNT,
        needs=("cpu_throttle.core_throttle_count",),
    )
    return Section(
        "Machine",
        (
            Row(8, ((total, 12), (cores, 12))),
            Row(7, ((kernel, 8), (memory, 8), (pressure, 8))),
            Row(7, ((remote, 8), (interrupts, 8), (frequency, 8))),
            Row(7, ((bandwidth, 8), (network, 8), (throttle, 8))),
        ),
    )


def cooling() -> Section:
    def bmc(field: str, title: str, description: str, unit: Unit, kind: str) -> TimeSeries:
        where = (*HERE, equals("kind", kind))
        query = over_time("ipmi_sensor", mean(field), where, "sensor", "entity")
        return TimeSeries(
            title, description, (Target(query, "$tag_sensor"),), unit, needs=(f"ipmi_sensor.{field}",), legend=()
        )

    power = TimeSeries(
        "Power",
        "The server's power as its BMC states it, and that of processors and memory as they count it themselves (RAPL).",
        (
            Target(
                over_time("ipmi_power", mean("power_w"), HERE, "host"),
                "server",
                needs=("ipmi_power.power_w",),
            ),
            Target(over_time("rapl", mean("power_w"), HERE, "domain"), "$tag_domain", needs=("rapl.power_w",)),
        ),
        Unit.WATT,
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
