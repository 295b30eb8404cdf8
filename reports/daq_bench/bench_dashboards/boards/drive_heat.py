"""Parts of *Drive health* and *Drive history*: heat and throttling, PCIe links, arrays."""

from __future__ import annotations

from functools import partial

from daq_bench.bench_dashboards.boards.drive_source import Source
from daq_bench.bench_dashboards.common import line
from daq_bench.bench_dashboards.influxql import Query, over_time
from daq_bench.bench_dashboards.layout import Row, Section
from daq_bench.bench_dashboards.looks import Colour, Override, Thresholds, Unit
from daq_bench.bench_dashboards.panels import BarGauge, Target, TimeSeries

BY_DRIVE = ("device", "serial")
DRIVE_NAME = "$tag_device $tag_serial"


def heat(source: Source) -> Section:
    def drives(field: str, alias: str) -> Target:
        query = over_time(
            "smart_temperature", source.highest(field), source.drive, "device", "sensor", policy=source.policy
        )
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
        gap_s=source.gap_s,
    )
    read_by_kernel = over_time(
        "temperature", source.mean("temperature_degc"), source.drive, "device", "label", policy=source.policy
    )
    kernel = TimeSeries(
        "As the kernel reads them",
        "Finer in time than the drive's own log.",
        (Target(read_by_kernel, "$tag_device $tag_label"),),
        Unit.CELSIUS,
        needs=("temperature.temperature_degc",),
        legend=("lastNotNull", "max"),
        gap_s=source.gap_s,
    )

    of_drives = partial(line, where=source.drive, policy=source.policy)

    def throttling(what: str, unit: Unit, title: str, description: str) -> TimeSeries:
        fields = [f"thermal_management_{level}_{what}" for level in (1, 2)]
        targets = tuple(
            of_drives("smart", source.highest(field), f"{DRIVE_NAME} TMT{level}", *BY_DRIVE)
            for level, field in enumerate(fields, start=1)
        )
        needs = tuple(f"smart.{field}" for field in fields)
        return TimeSeries(
            title, description, targets, unit, needs=needs, steps=True, legend=("lastNotNull",), gap_s=source.gap_s
        )

    above = tuple(
        of_drives("smart", source.highest(f"{limit}_temperature_time_min"), f"{DRIVE_NAME} {limit}", *BY_DRIVE)
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
                gap_s=source.gap_s,
            ),
        ),
    )


def links_and_arrays(source: Source) -> Section:
    of_drives = partial(line, where=source.drive, policy=source.policy)
    bandwidth = TimeSeries(
        "PCIe bandwidth",
        "The link's present bandwidth. A step down: it was retrained to fewer lanes or a lower speed.",
        (of_drives("pcie_link", source.lowest("bandwidth_bytes_per_s"), "$tag_device", "device"),),
        Unit.BYTES_PER_S,
        needs=("pcie_link.bandwidth_bytes_per_s",),
        steps=True,
        legend=("lastNotNull", "min"),
        gap_s=source.gap_s,
    )
    newest = Query("pcie_link", (source.last("bandwidth_fraction"),), source.drive, ("device",), policy=source.policy)
    width = BarGauge(
        "Link against what both ends can",
        "Below 100 %: fewer lanes or a lower speed than drive and slot have.",
        (Target(newest, "$tag_device"),),
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
            of_drives("pcie_errors", source.highest(field), f"$tag_device {field}", "device", "function")
            for field in ("correctable", "nonfatal", "fatal")
        ),
        Unit.COUNT,
        needs=("pcie_errors.correctable",),
        steps=True,
        legend=("lastNotNull",),
        gap_s=source.gap_s,
    )
    arrays = TimeSeries(
        "Arrays: members missing",
        "0 is healthy. Above: the array runs without redundancy, or is about to.",
        (
            line(
                "md_array", source.highest("degraded"), "$tag_device", "device", where=source.here, policy=source.policy
            ),
        ),
        Unit.COUNT,
        needs=("md_array.degraded",),
        steps=True,
        legend=("lastNotNull",),
        gap_s=source.gap_s,
    )
    return Section("Links and arrays", Row(7, bandwidth, width, errors, arrays, widths=(8, 4, 6, 6)))
