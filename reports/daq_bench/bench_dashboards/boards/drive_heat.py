"""Parts of *Drive health*: heat and throttling, PCIe links, arrays."""

from __future__ import annotations

from daq_bench.bench_dashboards.common import DRIVE, line
from daq_bench.bench_dashboards.influxql import Query, chosen, highest, last, lowest, mean, over_time
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import Colour, Override, Thresholds, Unit
from daq_bench.bench_dashboards.panels import BarGauge, Target, TimeSeries

BY_DRIVE = ("device", "serial")
DRIVE_NAME = "$tag_device $tag_serial"
GAP_S = 6 * 3600  # these dashboards show days, and drives answer every minute or slower


def heat() -> Section:
    def drives(field: str, alias: str) -> Target:
        query = over_time("smart_temperature", highest(field), DRIVE, "device", "sensor")
        return Target(query, alias, needs=(f"smart_temperature.{field}",))

    sensors = TimeSeries(
        "Each drive's own sensors",
        "Every temperature that a drive reports, and its own limits (dashed). Composite is the one that the limits are about.",
        (
            drives("temperature_degc", "$tag_device $tag_sensor"),
            drives("warning_degc", "$tag_device warning"),
            drives("critical_degc", "$tag_device critical"),
        ),
        Unit.CELSIUS,
        overrides=(
            Override("/ warning$/", colour=Colour.WATCH, dashed=True),
            Override("/ critical$/", colour=Colour.BAD, dashed=True),
        ),
        legend=("lastNotNull", "max"),
        gap_s=GAP_S,
    )
    read_by_kernel = over_time("temperature", mean("temperature_degc"), DRIVE, "device", "label")
    kernel = TimeSeries(
        "As the kernel reads them",
        "Finer in time than the drive's own log.",
        (Target(read_by_kernel, "$tag_device $tag_label"),),
        Unit.CELSIUS,
        needs=("temperature.temperature_degc",),
        legend=("lastNotNull", "max"),
        gap_s=GAP_S,
    )

    def throttling(what: str, unit: Unit, title: str, description: str) -> TimeSeries:
        fields = [f"thermal_management_{level}_{what}" for level in (1, 2)]
        targets = tuple(
            line("smart", highest(field), f"{DRIVE_NAME} TMT{level}", *BY_DRIVE, where=DRIVE)
            for level, field in enumerate(fields, start=1)
        )
        needs = tuple(f"smart.{field}" for field in fields)
        return TimeSeries(
            title, description, targets, unit, needs=needs, steps=True, legend=("lastNotNull",), gap_s=GAP_S
        )

    above = tuple(
        line("smart", highest(f"{limit}_temperature_time_min"), f"{DRIVE_NAME} {limit}", *BY_DRIVE, where=DRIVE)
        for limit in ("warning", "critical")
    )
    return Section(
        "Heat",
        Row(8, sensors, kernel),
        Row(
            8,
            throttling(
                "transitions",
                Unit.COUNT,
                "Times that throttling began",
                "A step during a record explains its dip. TMT1: light, TMT2: heavy.",
            ),
            throttling(
                "time_s",
                Unit.SECONDS,
                "Time spent throttling",
                "The slope is the share of the time in which the drive held itself back.",
            ),
            TimeSeries(
                "Time above its own limits",
                "Minutes above the warning and the critical temperature in the drive's life.",
                above,
                Unit.MINUTES,
                needs=("smart.warning_temperature_time_min", "smart.critical_temperature_time_min"),
                steps=True,
                legend=("lastNotNull",),
                gap_s=GAP_S,
            ),
        ),
    )


def links_and_arrays() -> Section:
    bandwidth = TimeSeries(
        "PCIe bandwidth",
        "The link's present bandwidth. A step down: it was retrained to fewer lanes or a lower speed.",
        (line("pcie_link", lowest("bandwidth_bytes_per_s"), "$tag_device", "device", where=DRIVE),),
        Unit.BYTES_PER_S,
        needs=("pcie_link.bandwidth_bytes_per_s",),
        steps=True,
        legend=("lastNotNull", "min"),
        gap_s=GAP_S,
    )
    width = BarGauge(
        "Link against what both ends can",
        "Below 100 %: fewer lanes or a lower speed than drive and slot have.",
        (Target(Query("pcie_link", (last("bandwidth_fraction"),), DRIVE, ("device",)), "$tag_device"),),
        Unit.FRACTION,
        Thresholds(Colour.BAD, ((0.99, Colour.GOOD),)),
        needs=("pcie_link.bandwidth_fraction",),
        least=0,
        most=1,
    )
    errors = TimeSeries(
        "PCIe errors (AER)",
        "Correctable ones cost time, the others data. Growth points at a cable, a riser or a slot.",
        tuple(
            line("pcie_errors", highest(field), f"$tag_device {field}", "device", "function", where=DRIVE)
            for field in ("correctable", "nonfatal", "fatal")
        ),
        Unit.COUNT,
        needs=("pcie_errors.correctable",),
        steps=True,
        legend=("lastNotNull",),
        gap_s=GAP_S,
    )
    arrays = TimeSeries(
        "Arrays: members missing",
        "0 is healthy. Above: the array runs without redundancy, or is about to.",
        (line("md_array", highest("degraded"), "$tag_device", "device", where=(chosen("host"), chosen("run"))),),
        Unit.COUNT,
        needs=("md_array.degraded",),
        steps=True,
        legend=("lastNotNull",),
        gap_s=GAP_S,
    )
    return Section("Links and arrays", Row(7, bandwidth, width, errors, arrays, widths=(8, 4, 6, 6)))
