"""One point of the concurrent analysis (PROOF): what it is worth as a measurement, and why it is not. Pure.

A rate counts only when the device was read: its own counters must have grown at least by what the jobs asked of their files, and so
must what the kernel says it fetched from storage for these processes. Results of the physics are held against what the generator put in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daq_bench.bench_model.documents.struct import Document

MOVED_MIN = 3  # [P] pairs that rounding to 32 bits may carry over the edge of a bin,
MOVED_SHARE = 1e-4  # or this share of all, whichever is more
FITTED = ("mass", "width")
Numbers = Sequence[float]


def worker_counts(cores: int, beyond: float, most: int = 12) -> list[int]:
    """Numbers of workers from 1 to `beyond` times the physical cores, the cores among them; thinned evenly above `most` of them."""
    last = max(cores + 1, round(cores * beyond))
    if last <= most:
        return list(range(1, last + 1))
    step = -(-last // most)
    return sorted({1, cores, last, *range(step, last + 1, step)})


def rates(
    records: Sequence[Document], devices: Sequence[Document], cpus: int, wall_s: float | None = None
) -> dict[str, Any]:
    """Returns the rates of one run of N jobs. `wall_s`: None takes it from the first start to the last end of the jobs."""
    if wall_s is None:
        wall_s = max(one["end_s"] for one in records) - min(one["start_s"] for one in records)
    fetched = sum(one["fetched_bytes"] for one in records)
    stored = sum(one["read_bytes"] for one in records)
    device = sum(one["read_bytes"] for one in devices) if devices else None
    cpu_s = sum(one["user_s"] + one["system_s"] for one in records)
    return {
        "wall_s": wall_s,
        "fetched_bytes": fetched,
        "storage_bytes": stored,
        "device_bytes": device,
        "requests": sum(one["requests"] for one in records),
        "bytes_per_s": fetched / wall_s,
        "device_bytes_per_s": None if device is None else device / wall_s,
        "cpu_share": cpu_s / (wall_s * cpus),
        "reason": why_not_cold(fetched, stored, device),
    }


def why_not_cold(fetched: int, stored: int, device: int | None) -> str | None:
    """None where the counters prove that the data came from the device."""
    if fetched <= 0:
        return "nothing was read"
    if device is None:
        return "no single device is under the files, so that no counter can prove where the data came from"
    for what, value in (("the device was read", device), ("the kernel fetched from storage for the jobs", stored)):
        if value < fetched:
            return f"the cache was not cold: {what} by {value} B only, and {fetched} B were asked of the files"
    return None


def coldness(fetched: int, stored: int, device: int | None) -> float | None:
    """The lesser of both counters over what was asked of the files; 1 or more is cold."""
    return min(stored, device) / fetched if device is not None and fetched > 0 else None


def wrong(result: Document, truth: Document, analysis: str) -> str | None:
    """Why the physics is not what was generated; None where it is."""
    if result["entries"] != truth["entries"]:
        return f"{result['entries']} events were analysed, {truth['entries']} were generated"
    if result["digest"] != truth["digest"]:
        return "a variable's histogram is not the one of what was generated"
    if analysis != "full":
        return None
    if result["balanced"] != truth["entries"]:
        return f"{truth['entries'] - result['balanced']} events have a total energy that is not their tracks'"
    if result["selected"] != truth["opposite"]:
        return f"{result['selected']} pairs of opposite charge were selected, {truth['opposite']} were generated"
    moved = sum(abs(one - other) for one, other in zip(result["mass"], truth["mass"], strict=True)) / 2
    if moved > max(MOVED_MIN, MOVED_SHARE * truth["opposite"]):
        return f"{moved:g} of {truth['opposite']} pairs have a mass in another bin than the generated one"
    return None


def pulls(fit: Document | None, truth: Document, shape: Document) -> dict[str, float] | None:
    """(fitted - generated) / error of mass and width of the resonance and of its number of pairs; None where there is no fit."""
    if fit is None:
        return None
    generated = {"signal": truth["signal"], **{name: shape["truth"][name] for name in FITTED}}
    return {name: (fit[name]["value"] - value) / fit[name]["error"] for name, value in generated.items()}
