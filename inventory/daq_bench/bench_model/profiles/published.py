"""Devices as others published them: references to draw and to compare with, never measurements of this bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from daq_bench.bench_model.base.units import convert
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import YamlSource, check, parsed, text_of
from daq_bench.candidate_kit.sizes import parse_size

FOLDER = Path("devices") / "published"  # below the inventory, and below a bundle's profiles/

# The unit in which bench_model and the report compare figures of one metric.
BASE_UNITS = {
    "sequential_write_throughput": "B/s",
    "plateau_block_size": "B",
    "thread_ratio_32KiB": "1",
    "system_cpu_per_thread_4MiB": "1",
    "minidaq_throughput": "B/s",
    "minidaq_plateau_request_size": "B",
    "minidaq_copy_share": "1",
    "full_drive_writes": "1",
    "drive_writes_per_day": "1",
    "endurance_written": "B",
    "active_write_power": "W",
    "checksum_gain": "1",
    "checksum_combine_time": "s",
    "busiest_stream_share": "1",
    "sparse_analysis_rate": "B/s",
    "full_analysis_rate": "B/s",
}


@dataclass(frozen=True)
class PublishedFigure:
    """One figure with where it comes from. `qualifier`: how the source limits it ("more than", "about", "up to", "at most"), or empty."""

    metric: str
    value: float
    unit: str
    conditions: str
    source: str
    basis: Literal["measured", "nameplate", "stated"]
    qualifier: str = ""
    workers: int | None = None  # of analysis rates: jobs at the same time

    @property
    def in_base_units(self) -> float:
        """The value in B/s, B, W or as a plain number."""
        return convert(self.value, self.unit, BASE_UNITS[self.metric])


@dataclass(frozen=True)
class PublishedDevice:
    """`capacity_bytes` and `form_factor` are None where no source says for which variant its figures hold."""

    id: str
    model: str
    kind: str
    capacity_bytes: int | None
    form_factor: str | None
    figures: tuple[PublishedFigure, ...]

    def figure(self, metric: str, basis: str | None = None) -> PublishedFigure | None:
        """The first figure of `metric`, of that basis where one is asked for; what was measured comes before nameplates."""
        found = [one for one in self.figures if one.metric == metric and basis in (None, one.basis)]
        return min(found, key=lambda one: one.basis != "measured") if found else None


def load_published(folder: Path) -> dict[str, PublishedDevice]:
    """The devices in `folder` by id, in the order of their names; empty when there is no such folder.

    Raises ProfileError for a file that breaks its schema, a figure in a unit that its metric cannot have, or an id that
    is not the file's name."""
    devices = [_device(file) for file in sorted(folder.glob("*.yml"))]
    return {device.id: device for device in devices}


def of_metric(devices: Mapping[str, PublishedDevice], metric: str) -> list[tuple[PublishedDevice, PublishedFigure]]:
    """Every device that has a figure of `metric`, the largest first."""
    found = [(device, figure) for device in devices.values() if (figure := device.figure(metric)) is not None]
    return sorted(found, key=lambda pair: -pair[1].in_base_units)


_known: dict[
    tuple[str, str], PublishedDevice
] = {}  # by the file's name and its text: every run and plan reads them all


def _device(file: Path) -> PublishedDevice:
    key = file.stem, text_of(file)
    if key not in _known:
        _known[key] = _read(parsed(file, key[1]))
    return _known[key]


def _read(source: YamlSource) -> PublishedDevice:
    check(source, "published-device")
    data = source.data
    if data["id"] != source.file.stem:
        raise source.error(("id",), f"id {data['id']!r} differs from the file's name", f"Write id: {source.file.stem}")
    return PublishedDevice(
        id=str(data["id"]),
        model=str(data["model"]),
        kind=str(data["kind"]),
        capacity_bytes=_capacity(source),
        form_factor=None if data["form_factor"] is None else str(data["form_factor"]),
        figures=tuple(_figure(source, index) for index in range(len(data["figures"]))),
    )


def _capacity(source: YamlSource) -> int | None:
    try:
        return None if source.data["capacity"] is None else parse_size(source.data["capacity"])
    except ValueError as error:
        raise source.error(("capacity",), str(error), "Correct it") from None


def _figure(source: YamlSource, index: int) -> PublishedFigure:
    entry = source.data["figures"][index]
    try:
        convert(1.0, entry["unit"], BASE_UNITS[entry["metric"]])
    except ValueError as error:
        raise source.error(("figures", index, "unit"), str(error), f"Use a unit of {entry['metric']}") from None
    return PublishedFigure(**{**plain(entry), "value": float(entry["value"])})
