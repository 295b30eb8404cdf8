"""Parts of *Drive health* and *Drive history*: heat and throttling, PCIe links, arrays."""

from __future__ import annotations

from daq_bench.bench_dashboards.boards.drive_source import DRIVE_NAME, Source
from daq_bench.bench_dashboards.common import LIMITS, line
from daq_bench.bench_dashboards.influxql import Query
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import Colour, Thresholds, Unit
from daq_bench.bench_dashboards.panels import BarGauge, Target, TimeSeries


def heat(source: Source) -> Section:
    def sensor(field: str, what: str) -> Target:
        column = source.highest(field)
        return source.line("smart_temperature", column, f"$tag_device {what}", "device", "sensor", needs=field)

    sensors = source.graph(
        "Each drive's own sensors",
        "Every temperature that a drive reports, and its own limits (dashed). Composite is the one that the limits are about.",
        Unit.CELSIUS,
        sensor("temperature_degc", "$tag_sensor"),
        sensor("warning_degc", "warning"),
        sensor("critical_degc", "critical"),
        overrides=LIMITS,
        steps=False,
        legend=("lastNotNull", "max"),
    )
    kernel = source.graph(
        "As the kernel reads them",
        "Finer in time than the drive's own log.",
        Unit.CELSIUS,
        source.line("temperature", source.mean("temperature_degc"), "$tag_device $tag_label", "device", "label"),
        needs=("temperature.temperature_degc",),
        steps=False,
        legend=("lastNotNull", "max"),
    )

    def levels(title: str, description: str, unit: Unit, **fields: str) -> TimeSeries:
        """A line for each drive and level; the fields by the words for their level."""
        lines = (source.line("smart", source.highest(field), f"{DRIVE_NAME} {word}") for word, field in fields.items())
        return source.graph(
            title, description, unit, *lines, needs=tuple(f"smart.{field}" for field in fields.values())
        )

    return Section(
        "Heat",
        Row(8, sensors, kernel),
        Row(
            8,
            levels(
                "Times that throttling began",
                "A step during a record explains its dip. TMT1: light, TMT2: heavy.",
                Unit.COUNT,
                TMT1="thermal_management_1_transitions",
                TMT2="thermal_management_2_transitions",
            ),
            levels(
                "Time spent throttling",
                "The slope is the share of the time in which the drive held itself back.",
                Unit.SECONDS,
                TMT1="thermal_management_1_time_s",
                TMT2="thermal_management_2_time_s",
            ),
            levels(
                "Time above its own limits",
                "Minutes above the warning and the critical temperature in the drive's life.",
                Unit.MINUTES,
                warning="warning_temperature_time_min",
                critical="critical_temperature_time_min",
            ),
        ),
    )


def links_and_arrays(source: Source) -> Section:
    bandwidth = source.graph(
        "PCIe bandwidth",
        "The link's present bandwidth. A step down: it was retrained to fewer lanes or a lower speed.",
        Unit.BYTES_PER_S,
        source.line("pcie_link", source.lowest("bandwidth_bytes_per_s"), "$tag_device", "device"),
        needs=("pcie_link.bandwidth_bytes_per_s",),
        legend=("lastNotNull", "min"),
    )
    newest = Query("pcie_link", (source.last("bandwidth_fraction"),), source.drive, ("device",), policy=source.policy)
    width = BarGauge(
        "PCIe link in use",
        "Share of what both ends can. Below 100 %: fewer lanes or a lower speed than drive and slot have.",
        (Target(newest, "$tag_device"),),
        Unit.FRACTION,
        Thresholds(Colour.BAD, ((0.99, Colour.CALM),)),
        needs=("pcie_link.bandwidth_fraction",),
        least=0,
        most=1,
    )
    kinds = ("correctable", "nonfatal", "fatal")
    errors = source.graph(
        "PCIe errors (AER)",
        "Correctable ones cost time, the others data. Growth points at a cable, a riser or a slot.",
        Unit.COUNT,
        *(source.line("pcie_errors", source.highest(one), f"$tag_device {one}", "device", "function") for one in kinds),
        needs=("pcie_errors.correctable",),
    )
    degraded = source.highest("degraded")
    arrays = source.graph(
        "Arrays: members missing",
        "0 is healthy. Above: the array runs without redundancy, or is about to.",
        Unit.COUNT,
        line("md_array", degraded, "$tag_device", "device", where=source.here, policy=source.policy),
        needs=("md_array.degraded",),
    )
    return Section("Links and arrays", Row(7, bandwidth, width, errors, arrays, widths=(8, 4, 6, 6)))
