"""The cost of one target of a comparison beside its throughput: power, room, wear, money. Pure.

Power is the server's, by its BMC, less the idle power of the same round: what writing adds. Everything that is declared in the
inventory keeps its source; a figure that cannot be had is None and has a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from daq_bench.bench_model.base.units import GB, TB, in_digits
from daq_bench.bench_model.behaviour.record_power import Reading
from daq_bench.bench_model.profiles.published import PublishedDevice

DAYS_PER_YEAR = 365.25
PB = 1e15

# md(4): of n members, what holds data
DATA_DRIVES: dict[int, Callable[[int], float]] = {
    0: lambda n: n,
    1: lambda n: 1,
    5: lambda n: n - 1,
    6: lambda n: n - 2,
    10: lambda n: n / 2,
}


@dataclass(frozen=True)
class Figure:
    """A value, or the reason why there is none; `basis` says where it comes from."""

    value: float | None
    basis: str

    def as_document(self) -> dict[str, Any]:
        key = "basis" if self.value is not None else "reason"
        return {"value": self.value, key: self.basis}


def _within(readings: Sequence[Reading], window: Mapping[str, float], name: str) -> Figure:
    """Mean of the readings within the window, W; none where there is none, or one that could not be read."""
    within = [watts for at, watts in readings if window["begin_s"] <= at < window["end_s"]]
    length = window["end_s"] - window["begin_s"]
    read = [watts for watts in within if watts is not None]
    if not read:
        return Figure(None, f"the BMC's power has no reading within the {length:.1f} s of {name}")
    if len(read) < len(within):
        return Figure(None, f"the BMC's power could not be read at some time within the {length:.1f} s of {name}")
    return Figure(fmean(read), name)


def added_power(readings: Sequence[Reading], idle: Mapping[str, float], load: Mapping[str, float]) -> Figure:
    """W that the load adds to the server's idle power."""
    if not readings:
        return Figure(None, "no BMC gives the server's power")
    at_rest, loaded = _within(readings, idle, "the rest before the round"), _within(readings, load, "the write")
    if at_rest.value is None or loaded.value is None:
        return at_rest if at_rest.value is None else loaded
    return Figure(loaded.value - at_rest.value, "server's power by its BMC, less its idle power of the same round")


def amplification(visits: Sequence[Mapping[str, Any]]) -> float | None:
    """Bytes that the drives were asked to write per byte that the set took, over all whole writes; None without counters."""
    writes = [one["write"] for one in visits if one["write"]["admissible"] and one["write"]["device_bytes_written"]]
    taken = sum(one["bytes_written"] for one in writes)
    return sum(sum(one["device_bytes_written"].values()) for one in writes) / taken if taken else None


def rack_units(declared: Mapping[str, Any], candidate: Mapping[str, Any]) -> Figure:
    """Rack units that count for this target."""
    if "rack_units" in declared:
        return Figure(
            float(declared["rack_units"]["value"]), f"share of the set, declared: {declared['rack_units']['source']}"
        )
    if "rack_units" in candidate:
        return Figure(
            float(candidate["rack_units"]["value"]), f"whole server, declared: {candidate['rack_units']['source']}"
        )
    return Figure(None, "the inventory declares no rack_units")


def endurance(
    declared: Mapping[str, Any],
    published: Mapping[str, PublishedDevice],
    sizes_bytes: Sequence[int],
    written_per_taken: float | None,
) -> Figure:
    """B that the set can take: what its drives are rated for, over what it writes to them per byte taken."""
    if not sizes_bytes:
        return Figure(None, "the drives beneath the target are not known")
    per_drive, basis = drive_endurance(declared, published, min(sizes_bytes))
    if per_drive is None:
        return Figure(None, basis)
    if written_per_taken is None:
        return Figure(
            None,
            "what the target writes to its drives per byte taken is not known: they are not its own, or were not counted",
        )
    text = f"{len(sizes_bytes)} x {in_digits(per_drive / PB)} PB of each drive ({basis}), "
    text += f"{in_digits(written_per_taken, 3)} B written to drives per B taken"
    return Figure(len(sizes_bytes) * per_drive / written_per_taken, text)


def drive_endurance(
    declared: Mapping[str, Any], published: Mapping[str, PublishedDevice], size_bytes: int
) -> tuple[float | None, str]:
    """B that one drive is rated for, and where that stands; None, and why, where nobody says it."""
    rating = declared.get("drive_endurance")
    if rating and "pbw" in rating:
        return rating["pbw"] * PB, f"declared: {rating['source']}"
    if rating:
        total = rating["dwpd"] * rating["years"] * DAYS_PER_YEAR * size_bytes
        return (
            total,
            f"{in_digits(rating['dwpd'], 9)} drive writes per day over {in_digits(rating['years'], 9)} years, declared: {rating['source']}",
        )
    if "published" not in declared:
        return None, "the inventory declares neither the drives' endurance nor a published model"
    device = published.get(declared["published"])
    if device is None:
        return None, f"there is no published device {declared['published']!r}"
    total_figure, writes = device.figure("endurance_written"), device.figure("full_drive_writes")
    if total_figure is not None:
        return total_figure.in_base_units, f"published: {total_figure.source}"
    if writes is not None:
        return writes.value * size_bytes, f"published as {in_digits(writes.value, 9)} drive writes: {writes.source}"
    return None, f"no endurance is published of {device.model}"


def cost(declared: Mapping[str, Any], drives: int, capacity_bytes: int | None, rate: float | None) -> dict[str, Any]:
    """Price of the set's drives, per TB of its capacity and per GB/s that it was measured at; None values have reasons."""
    price = declared.get("drive_price")
    if price is None or not drives:
        reason = "the inventory declares no drive_price" if price is None else "the set's drives are not known"
        return {"currency": None, "total": None, "per_tb": None, "per_gb_per_s": None, "reason": reason}
    total = price["amount"] * drives
    return {
        "currency": price["currency"],
        "total": total,
        "per_tb": total / (capacity_bytes / TB) if capacity_bytes else None,
        "per_gb_per_s": total / (rate / GB) if rate else None,
        "basis": f"{drives} x {in_digits(price['amount'], 9)} {price['currency']} of {price['date']}, declared: {price['source']}",
    }
