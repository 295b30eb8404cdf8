"""The span that preconditioning must cover before a record counts as one on a used drive (ADR 36). Pure.

SNIA SSS PTS 2.0.2 writes twice over all that a drive lets its user address (its *user capacity*), and tests within the *ActiveRange*: the
addresses that may carry data. On a raw drive both are the whole drive; on a file system the ActiveRange is what it lets one write. Every
address of it is written once, in order, and a quarter of it again: so all addresses carry data, and the spare cells are used up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daq_bench.bench_model.base.units import decimal_label
from daq_bench.bench_model.documents.struct import Document, moment
from daq_bench.bench_model.workloads.plan import INVALIDATES, Plan, Problem, follows, rows

PASSES = 2  # of the standard
FRESH, PRECONDITIONED = "fresh", "preconditioned"
TRIM = "fstrim"  # the purge of a file system, of which nobody can read what is empty
WRITTEN_SHARE = 1.25  # [P] of the span: 1.92 TB sold of 2048 GiB of cells leave 15 % spare; a record or two use up the 37 % of 1.6 TB
FULL_SHARE_MIN = 0.9  # [P] of the user capacity: what a file system keeps for itself and for root is never written
RESERVE_SHARE = (
    0.01  # [P] of a file system's free room, which stays free: a file system without any stalls for other reasons
)
BLOCK_BYTES_MAX = 2**24  # [P] the bench writes blocks of 128 KiB
COUNTED_MIN = 0.95  # of the bytes that the tool says it wrote, by the device's own counter
TIME_SHARE_MIN = 0.95  # of the time that so many bytes take at the rate that stands beside them
LATE_S_MAX = 5.0  # [P] two clocks, and stamps in whole seconds


@dataclass(frozen=True)
class Room:
    """A target's room: `capacity_bytes` of the drive or set beneath, None where nobody knows; `free_bytes` of the file system, of which
    `used_bytes` hold data already. `raw`: a drive without file system. `dedicated`: the file system is the bench's own."""

    capacity_bytes: int | None
    free_bytes: int
    used_bytes: int = 0
    raw: bool = False
    dedicated: bool = False

    @property
    def writable_bytes(self) -> int:
        """The ActiveRange: all of a raw drive, or a file system's free room less the reserve."""
        if self.raw:
            return self.capacity_bytes or self.free_bytes
        return int(self.free_bytes * (1 - RESERVE_SHARE))


def span_of(asked: int | None, room: Room, record_bytes: int) -> int:
    """The bytes that preconditioning writes over: what was `asked` for (precondition_size), else all that the target lets one write. A
    file system that others use, too, is not filled unasked: there it is as much as a record takes."""
    if asked is not None:
        return asked
    return room.writable_bytes if room.raw or room.dedicated else min(record_bytes, room.writable_bytes)


def bytes_due(span_bytes: int, block_bytes: int, written_share: float) -> tuple[int, int]:
    """(size, bytes to write) of a preconditioning: both in whole blocks, as the load generator writes nothing else."""
    size = span_bytes // block_bytes * block_bytes
    return size, int(written_share * size) // block_bytes * block_bytes


def full_share(span_bytes: int, used_bytes: int, capacity_bytes: int | None) -> float | None:
    """The share of the user capacity that holds data once the span is written."""
    return min(1.0, (span_bytes + used_bytes) / capacity_bytes) if capacity_bytes else None


def falls_short(share: float | None, capacity_bytes: int | None) -> str | None:
    """Why a target of which `share` is full is no preconditioned one; None where it is."""
    if share is None or not capacity_bytes:
        return "The target's capacity is not known, so that nobody can tell which share of it was preconditioned"
    if share >= FULL_SHARE_MIN:
        return None
    return (
        f"Preconditioned over {decimal_label(int(share * capacity_bytes))} of {decimal_label(capacity_bytes)}: "
        f"at least {FULL_SHARE_MIN:.0%} of the user capacity must hold data (SNIA PTS: all of it)"
    )


def shortfall(parameters: Mapping[str, Any], room: Room, record_bytes: int) -> str | None:
    """Tells before anything is written what will be missing, with the remedy; None where nothing is."""
    if PRECONDITIONED not in (parameters.get("conditions") or []):
        return None
    asked = parameters.get("precondition_size")
    span = span_of(asked, room, record_bytes)
    why = falls_short(full_share(span, room.used_bytes, room.capacity_bytes), room.capacity_bytes)
    if why is None:
        return None
    capacity = room.capacity_bytes or 0
    least, most = int(FULL_SHARE_MIN * capacity) - room.used_bytes + 1, room.writable_bytes
    if not capacity or least > most:
        remedy = (
            "Choose a raw-device target, or let provisioning build the file system on the whole drives (target.storage)"
        )
    elif asked is not None:
        remedy = f"Leave snb_record.precondition_size out, or make it {least} B at least and {most} B at most"
    else:
        remedy = (
            f"Set snb_record.precondition_size between {least} B and {most} B, which fills this file system while the run lasts; or let "
            "provisioning build it (target.storage)"
        )
    return f"{why}. {remedy}"


def coverage(plan: Plan, conditioning: list[Document], repetitions: list[Document]) -> Iterator[Problem]:
    """Holds the evidence of each condition against plan, target and records: fresh before each record, preconditioned once."""
    wanted: dict[str, int] = {}  # label: place of the record that comes next
    for place, one in enumerate(repetitions):
        condition = one["condition"]
        if condition == FRESH or (
            condition and condition not in {before["condition"] for before in repetitions[:place]}
        ):
            wanted[f"record-{place + 1}-{condition}"] = place
    yield from rows("the conditioning", list(wanted), [one["label"] for one in conditioning])
    for one in conditioning:
        if one["label"] in wanted:
            place = wanted[one["label"]]
            yield from _of_one(plan, one, repetitions[place], repetitions[place - 1] if place else None)


def on_target(one: Document, capacity_bytes: int | None) -> Iterator[Problem]:
    """A conditioning brought about what it says, on a target of this capacity: the share follows from the span, and a raw drive's purge
    says which share of it was empty afterwards."""
    name, purge = one["label"], one["purge"]
    if (one["preconditioning"] is not None) != (one["condition"] == PRECONDITIONED):
        yield f"{name}: the condition {one['condition']!r} is not what was brought about", INVALIDATES
    if one["capacity_bytes"] != capacity_bytes:
        yield f"{name} is of a target of {one['capacity_bytes']} B, and the run's has {capacity_bytes} B", INVALIDATES
        return
    told = one["span_bytes"] / capacity_bytes if capacity_bytes else None
    yield from follows(f"{name}: its share of the capacity", one["share_of_capacity"], told)
    if capacity_bytes is not None and one["span_bytes"] > capacity_bytes:
        yield f"{name}: {one['span_bytes']} B are more than the target holds", INVALIDATES
    if (purge["zero_share"] is None) is not (purge["method"] == TRIM):
        yield (
            f"{name}: which share of the target read as zeros after the purge by {purge['method']} is {purge['zero_share']}",
            INVALIDATES,
        )


def _of_one(plan: Plan, one: Document, record: Document, before: Document | None) -> Iterator[Problem]:
    name, written, purge = one["label"], one["preconditioning"], one["purge"]
    if one["condition"] != record["condition"]:
        yield f"{name}: the condition {one['condition']!r} is not what was brought about", INVALIDATES
    wrong = list(on_target(one, plan.capacity_bytes))
    yield from wrong
    if wrong:
        return
    began = moment(one["started_utc"]).timestamp()
    took = purge["seconds"] + (written["seconds"] if written else 0.0)
    if not (purge["seconds"] >= 0 and began + took <= _started(record) + LATE_S_MAX):
        yield f"{name} ended after its record had begun", INVALIDATES
    if before is not None and not began >= _started(before) + before["minidaq"]["time"]["record_s"] - LATE_S_MAX:
        yield f"{name} began before the record before it had ended", INVALIDATES
    if written is None:
        return
    yield from written_in_full(one, WRITTEN_SHARE)
    counted = written.get("device_bytes_written")
    if counted is None:
        yield f"{name}: no counter of the device confirms its bytes"
    elif not counted >= COUNTED_MIN * written["bytes_written"]:
        yield f"{name}: the device counted {counted} B of the {written['bytes_written']} B that fio says it wrote"
    gone = one.get("discarded_bytes")
    if gone is None:
        yield f"{name}: no counter of the device shows that nothing of it was discarded again (Linux before 4.18 has none)"
    share = full_share(one["span_bytes"] - (gone or 0), one.get("used_bytes", 0), plan.capacity_bytes)
    if why := falls_short(share, plan.capacity_bytes):
        yield why + (f"; {decimal_label(gone)} of it were discarded again before the last record" if gone else "")


def _started(record: Document) -> float:
    return moment(record["minidaq"]["started_utc"]).timestamp()


def written_in_full(one: Document, share: float) -> Iterator[Problem]:
    """The span was written over `share` times, in the time that this takes."""
    name, written = one["label"], one["preconditioning"]
    if not 1 <= written["block_bytes"] <= BLOCK_BYTES_MAX:  # else hardly anything would be due
        yield (
            f"{name}: its blocks have {written['block_bytes']} B: at least 1 and at most {BLOCK_BYTES_MAX}",
            INVALIDATES,
        )
        return
    _, due = bytes_due(one["span_bytes"], written["block_bytes"], share)
    if not written["bytes_written"] >= due:
        yield f"{name}: {written['bytes_written']} B were written where {due} B were due"
    if not written["seconds"] * written["bytes_per_s"] >= TIME_SHARE_MIN * written["bytes_written"]:
        yield f"{name} contradicts itself: so many bytes take longer at that rate", INVALIDATES
