"""`daqwriter minidaq` and `daqwriter verify` on the modelled server: their documents, exit statuses and records in line protocol.

The writer is followed second by second: superchunks arrive as they are due, wait in the links' rings, and leave at the array's pace."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from random import Random

from daq_bench.bench_model.documents.struct import Document, utc_text
from daq_bench.simulation.physics.drawing import NOT_IN_SOAK
from daq_bench.simulation.physics.server import Server, Visit
from daq_bench.simulation.tools.hdr_writer import encode

Emit = Callable[[str], None]  # takes one line of line protocol

VERSION = "daqwriter 0.1.0\n"
COMPLETE, FAILED, DAMAGED = 0, 1, 3
BUSY_ABOVE, BUSY_UNTIL = 0.8, 0.5  # occupancy of the fullest ring (native-writer/src/source/busy.h)
IO_ERROR = "{target}: write at offset {offset} B: Input/output error (errno 5)"
METHOD = (
    "service curve: max over t of arrived(t) - durable(t), arrivals by intended time and including lost superchunks"
)
KINDS = ("missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
READ_BYTES_PER_S = 14e9
RANKS = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999, "max": 1.0}
STEPS = 16  # of a histogram between two percentiles
# native-writer/src/record/minidaq_json.cpp, native-writer/src/write/synthetic_json.cpp
TO_DURABLE = (
    "per superchunk: intended arrival until the completions of all blocks holding a part of it were reaped; the final "
    "flush is not part of it"
)
OF_A_RECORDED_BLOCK = "per block: io_submit until the completion of its last part was reaped"
OF_A_WRITTEN_BLOCK = "per block: submission until its last part was reaped"


@dataclass
class Stored:
    """A record as it lies on the array: what the writer wrote, and what became of it."""

    record_id: str
    number: int
    superchunks: int
    size_bytes: int
    lost: int
    closed: bool  # by a trailer
    damage: dict[str, int] = field(default_factory=dict)


def options_of(argv: list[str]) -> dict[str, str]:
    pairs = (word[2:].partition("=") for word in argv if word.startswith("--") and "=" in word)
    return {name: value for name, _, value in pairs if name != "tag"}


class Recording:
    """One `minidaq`. `run` takes it through its seconds."""

    def __init__(self, server: Server, argv: list[str], emit: Emit) -> None:
        self.server, self.emit, told = server, emit, options_of(argv)
        self.told = told
        self.links, self.size = int(told["links"]), int(told["superchunk-bytes"])
        self.rate_hz, self.scale = float(told["superchunk-rate"]), float(told["scale"])
        self.duration_s = float(told["duration"])
        self.lasts_s = round(self.duration_s * self._share_of_time())
        self.ring = int(told["ring-size"]) // self.size * self.size * self.links
        self.block, self.depth = int(told["block-size"]), int(told["io-depth"])
        self.random = Random(f"record {server.spec.seed} {told['seed']}")
        self.tags = sorted(word[6:] for word in argv if word.startswith("--tag="))
        self.base = self.block * self.depth * self.random.uniform(0.4, 1.0)  # always under way
        self.arrived = self.durable = self.lost = self.not_offered = 0.0
        self.most_owed = self.most_waiting = self.most_at_s = 0.0
        self.is_busy, self.episodes = False, []  # type: ignore[var-annotated]
        self.series: dict[str, list[int]] = {key: [] for key in ("offered_bytes", "stored_bytes", "backlog_bytes")}
        self.times: list[float] = []
        self.slowest_s = 0.0
        self.error: str | None = None
        self.abandoned = 0

    def _share_of_time(self) -> float:
        short = self.server.spec.has("short_record")
        if short is None or short.record != self.server.records_made + 1:
            return 1.0
        self.server.note("short_record")
        return 1.0 - short.strength

    @property
    def demand(self) -> float:
        return self.links * self.rate_hz * self.scale * self.size

    def run(self) -> None:
        self.server.begin_record()
        self.started_s = self.server.now_s + self.server.clock_offset_s
        for second in range(self.lasts_s):
            self._second(self.demand, second + 1.0, "record")
            if self.error:
                break
        self.drain_from_s = len(self.times)
        while not self.error and self.arrived - self.lost - self.durable > 1:
            self._second(0.0, len(self.times) + 1.0, "drain")
        self.server.end_record()

    def _second(self, due: float, t: float, phase: str) -> None:
        server = self.server
        for hazard in server.active("governor_reset"):
            server.note(hazard.kind)
            self.not_offered += hazard.strength * due
            due *= 1 - hazard.strength
        pace = server.pace()
        pulled = server.has_struck("drive_pulled")
        if pulled and pulled.drive in server.group.drives:
            offset = int(self.durable)
            self.error = IO_ERROR.format(target=self.told["target"], offset=offset)
            server.lose(pulled)
            pace = 0.0
        waiting = self.arrived - self.lost - self.durable
        keeps = 1.0 - self.random.random() * 0.01  # of its pace: a stripe is never wholly in step
        lag = min(self.base, due) if phase == "record" else 0.0
        server.paces.setdefault(server.record, []).append(pace * keeps)
        takes = min(pace * keeps, max(0.0, waiting + due - lag))
        self.arrived += due
        room = self.ring + self.base
        over = max(0.0, waiting + due - takes - room)
        self.lost += over
        self.durable += takes
        owed, held = self.arrived - self.durable, self.arrived - self.lost - self.durable
        self.most_owed = max(self.most_owed, owed)
        if held > self.most_waiting:
            self.most_waiting, self.most_at_s = held, t
        self.slowest_s = max(self.slowest_s, held / pace if pace else t)
        self._busy((held - self.base) / self.ring, t)
        server.second(takes, 0.0)
        self.times.append(t)
        self.series["offered_bytes"].append(self._whole(due))
        self.series["stored_bytes"].append(self._whole(takes))
        self.series["backlog_bytes"].append(round(held))
        self._emit(phase, t, held)

    def _busy(self, occupancy: float, t: float) -> None:
        if not self.is_busy and occupancy > BUSY_ABOVE:
            self.is_busy = True
            self.episodes.append({"start_s": t, "duration_s": 0.0})
        elif self.is_busy and occupancy <= BUSY_UNTIL:
            self.is_busy = False
        if self.is_busy:
            self.episodes[-1]["duration_s"] = t - self.episodes[-1]["start_s"] + 1.0

    def _whole(self, size: float) -> int:
        return round(size / self.size) * self.size

    def _emit(self, phase: str, t: float, held: float) -> None:
        head = ",".join(["daqwriter", *sorted(["command=minidaq", *self.tags, f"phase={phase}"])])
        time_ns = int((self.server.now_s + self.server.clock_offset_s) * 1e9)
        self.emit(
            f"{head} offered_bytes={int(self.arrived)}i,stored_bytes={int(self.durable)}i,backlog_bytes={int(held)}i,"
            f"busy_count={len(self.episodes)}i,lost_superchunks={int(self.lost // self.size)}i,elapsed_s={t!r},"
            f"total_s={self.duration_s!r},buffer_bytes={self.ring + self.block * self.depth}i {time_ns}"
        )

    def result(self) -> tuple[Document, Stored]:
        """The document, and the record that lies on the array."""
        intended = int(self.links * self.rate_hz * self.scale * self.lasts_s)
        failed = self.error is not None
        offered = round(self.arrived / self.size) if failed or self.not_offered else intended
        lost = round(self.lost / self.size)
        stored = min(offered - lost, round(self.durable / self.size)) if failed else offered - lost
        self.abandoned = offered - stored - lost
        self._settle("offered_bytes", offered * self.size)
        self._settle("stored_bytes", stored * self.size)
        record_id = hashlib.md5(
            f"{self.server.spec.seed} {self.told['seed']}".encode(), usedforsecurity=False
        ).hexdigest()
        kept = Stored(record_id, self.server.records_made, stored, self.size, lost, not failed)
        return self._document(record_id, intended, offered, lost, stored), kept

    def _settle(self, name: str, total: int) -> None:
        """Whole superchunks in each second, whose sum is the record's."""
        series = self.series[name]
        last = next((place for place in reversed(range(len(series))) if series[place]), None)
        if last is not None:
            series[last] += total - sum(series)

    def _document(self, record_id: str, intended: int, offered: int, lost: int, stored: int) -> Document:
        payload, status = stored * self.size, "failed" if self.error else "complete"
        record_s = float(min(self.lasts_s, len(self.times)))
        drain_s = round(self.random.uniform(0.01, 0.05) + len(self.times) - self.drain_from_s, 6)
        total_s = record_s + drain_s + 0.004
        cpu = {"user_s": 0.3 * record_s, "system_s": 0.05 * record_s}
        placement = {"writer_cpu": 1, "source_cpu": 2, "numa_node": 0, "note": "pinned to the drive's NUMA node"}
        if next(self.server.active("wrong_numa_node"), None):
            placement["numa_node"], placement["note"] = 1, "pinned; the drive's NUMA node gives no choice"
        busy_s = float(sum(one["duration_s"] for one in self.episodes))
        share = [lost // self.links + (number < lost % self.links) for number in range(self.links)]
        counts = {"offered": offered, "stored": stored, "lost": lost}
        raw = self.server.spec.raw
        return {
            "schema_version": 1, "tool": "daqwriter", "command": "minidaq", "version": "0.1.0", "engine": "libaio",
            "engine_note": None, "status": status, "error": self.error, "errno": "EIO" if self.error else None,
            "started_utc": utc_text(datetime.fromtimestamp(self.started_s, UTC)),
            "parameters": {
                "target": self.told["target"], "target_kind": "raw-device" if raw else "scratch-file",
                "filesystem": None if raw else self.server.spec.filesystem, "mode": "continuous", "paced": True,
                "data_path": "copy", "applications": 1, "links": self.links, "superchunk_bytes": self.size,
                "superchunk_rate_hz": self.rate_hz, "scale": self.scale, "offered_bytes_per_s": self.demand,
                "duration_s": self.duration_s, "ring_bytes_per_link": int(self.told["ring-size"]),
                "ring_slots_per_link": int(self.told["ring-size"]) // self.size, "block_bytes": self.block,
                "alignment_bytes": 4096, "io_depth": self.depth, "checksum": self.told["checksum"], "preallocate": True,
                "seed": int(self.told["seed"]), "record_id": record_id, "memory_locked": True, "placement": placement,
            },
            "superchunks": {
                "intended": intended, "emitted": offered, **counts, "abandoned": self.abandoned, "lost_per_link": share,
            },
            "bytes": {"payload": payload, "written": payload + 8192, "padding": 0},
            "time": {"prepare_s": 1.0, "record_s": record_s, "drain_s": drain_s, "flush_s": 0.004, "total_s": total_s},
            "offered_bytes_per_s": offered * self.size / record_s,
            "stored_bytes_per_s": payload / total_s,
            "source": {
                "achieved_fraction": offered / intended if not self.error else 1.0, "worst_lateness_us": 40.0,
                "late_superchunks": 0, "late_threshold_us": 2000.0,
            },
            "trigger": None,
            "applications": [{
                "target": self.told["target"], "offset_bytes": 0, "record_id": record_id, "status": status, "error": self.error,
                "errno": "EIO" if self.error else None, **counts, "busy_count": len(self.episodes), "drained_s": record_s + drain_s,
                "writer_cpu_s": 30.0,
                "placement": placement,
            }],
            "busy": {"count": len(self.episodes), "total_s": busy_s, "episodes": self.episodes[:100]},
            "backlog": {
                "high_water_bytes": int(self.most_waiting), "high_water_s": self.most_at_s,
                "capacity_bytes": self.ring + self.block * self.depth,
            },
            "transient_buffer": {
                "needed_bytes": int(self.most_owed), "method": METHOD, "busy_fraction": 0.8, "busy_bytes_per_s": self.demand,
                "extrapolated": [], "extrapolation_method": "the measured service replayed against another load",
            },
            "latency_us": latency(1e6 * max(0.004, self.slowest_s), stored, TO_DURABLE),
            "write_latency_us": latency(
                4e6 * self.block / max(1.0, self.server.pace()), max(1, payload // self.block), OF_A_RECORDED_BLOCK
            ),
            "cpu": {
                **cpu, "seconds_per_gb": 0.04, "writer": cpu, "source": cpu, "writer_seconds_per_gb": 0.03, "copy_s": 20.0,
                "copy_share": 0.4, "voluntary_context_switches": 1000, "involuntary_context_switches": 10,
                "copied_bytes": payload, "max_rss_bytes": self.ring + 200_000_000,
            },
            "series": {"interval_s": 1.0, "t_s": self.times, **self.series},
        }  # fmt: skip


def write(server: Server, argv: list[str]) -> tuple[Document, int, str]:
    """`daqwriter write`: as fast as the target takes it, once from begin to end. The document, exit status and words."""
    told = {"span": "0", "pattern": "sequential", "interval": "1", **options_of(argv)}
    told["span"] = told["span"] if int(told["span"]) else told["bytes"]
    asked, block, depth = int(told["bytes"]), int(told["block-size"]), int(told["io-depth"])
    random = Random(f"write {server.spec.seed} {told['seed']}")
    started_s, times, parts, total, error = server.now_s + server.clock_offset_s, list[float](), list[int](), 0, ""
    could = list[float]()
    server.begin_record()
    while total < asked:
        pace = server.pace() * (1.0 - random.random() * 0.01)
        pulled = server.has_struck("drive_pulled")
        if pulled and pulled.drive in server.group.drives:
            server.lose(pulled)
            error = IO_ERROR.format(target=told["target"], offset=total // block * block)
            break
        taken = min(asked - total, max(block, int(pace) // block * block))
        server.in_bulk = not server.spec.hazards and bool(times)
        server.second(float(taken), 0.0)
        total += taken
        could.append(pace)
        parts.append(taken)
        times.append(len(times) + min(1.0, max(0.01, taken / pace)))
    server.in_bulk = False
    server.end_record()
    server.passes.append(could)
    document = write_document(server, told, asked, started_s, (times, parts), error, depth * block)
    if server.compares:
        server.visits.append(Visit(server.group.name, tuple(could), document["bytes_per_s_with_flush"]))
    return document, 1 if error else 0, error


def write_document(
    server: Server,
    told: dict[str, str],
    asked: int,
    started_s: float,
    series: tuple[list[float], list[int]],
    error: str,
    buffer: int,
) -> Document:
    """daqwriter's answer to `write`. `series`: the times in s at which so many bytes each were written."""
    times, parts = series
    block, total, write_s = int(told["block-size"]), sum(parts), times[-1] if times else 0.0
    rate, gb, placement = total / write_s if write_s else 0.0, max(total / 1e9, 1e-9), "pinned to the drive's NUMA node"
    switches = {"voluntary_context_switches": 1000, "involuntary_context_switches": 10}
    raw = server.spec.raw
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "write", "version": "0.1.0", "engine": "libaio", "engine_note": None,
        "status": "failed" if error else "complete", "error": error or None, "errno": "EIO" if error else None,
        "started_utc": utc_text(datetime.fromtimestamp(started_s, UTC)),
        "parameters": {
            "target": told["target"], "target_kind": "raw-device" if raw else "scratch-file",
            "filesystem": None if raw else server.spec.filesystem, "pattern": told["pattern"], "preallocate": not raw,
            "block_bytes": block, "threads": int(told["threads"]), "io_depth": int(told["io-depth"]), "bytes": asked,
            "duration_s": None, "span_bytes": int(told["span"]), "buffer_bytes": buffer, "seed": int(told["seed"]), "numa_node": 0,
            "placement_note": placement, "condition": told["condition"], "data": "incompressible",
        },
        "ended_by": "error" if error else "bytes", "passes": total / int(told["span"]), "bytes_per_s": rate, "iops": rate / block,
        "written_bytes": total, "time": {"prepare_s": 1.0, "write_s": write_s, "flush_s": 0.004},
        "bytes_per_s_with_flush": total / (write_s + 0.004),
        "latency_us": latency(2e6 * buffer / max(rate, 1.0), max(1, total // block), OF_A_WRITTEN_BLOCK),
        "cpu": {
            "user_s": 0.02 * gb, "system_s": 0.03 * gb, "seconds_per_gb": 0.05, "user_seconds_per_gb": 0.02, "system_seconds_per_gb": 0.03,
            "max_rss_bytes": buffer + 20_000_000, **switches,
        },
        "threads": [{"cpus": [1], "bytes": total, "end_s": write_s, "user_s": 0.02 * gb, "system_s": 0.03 * gb, **switches}],
        "series": {"interval_s": float(told["interval"]), "t_s": times, "written_bytes": parts},
    }  # fmt: skip


def latency(worst_us: float, count: int, definition: str) -> Document:
    """Percentiles that are in order, and a histogram that has them."""
    shares = {"min": 0.01, "mean": 0.1, "p50": 0.08, "p90": 0.3, "p99": 0.8, "p99_9": 0.98, "p99_99": 0.99, "max": 1.0}
    values = {name: worst_us * share for name, share in shares.items()}
    return {"definition": definition, "count": count, **values, "hdr_unit": "ns", "hdr": encode(spread(values, count))}


def spread(values: Mapping[str, float], count: int) -> Counter[int]:
    """Returns how often each latency in ns occurs, so that `count` of them have these percentiles."""
    found: Counter[int] = Counter()
    for (low, begin), (high, end) in pairwise(RANKS.items()):
        for step in range(1, STEPS + 1):
            before, until = (round(count * (begin + (end - begin) * part / STEPS)) for part in (step - 1, step))
            value = values[low] * (values[high] / values[low]) ** (step / STEPS)
            found[round(1e3 * value)] += until - before
    return +found


def damage(server: Server, kept: Stored, block: int) -> None:
    """Returns what storage did to the record while nobody looked: the fault atlas. A fault that hits padding alone harms nobody."""
    per_block = max(1, block // kept.size_bytes)
    for hazard in server.spec.hazards:
        if hazard.record != kept.number or hazard.kind not in NOT_IN_SOAK:
            continue
        server.note(hazard.kind)
        hits = int(hazard.strength)
        if hazard.kind == "bit_flips":
            hits, kind = (hits if hits >= 4 else 0), "corrupt"  # so few of them fell between the superchunks
        elif hazard.kind == "torn_writes":
            kind = "torn"
        elif hazard.kind == "misplaced_writes":
            kind = "out_of_order"
        else:
            hits, kind = hits * per_block, "stale" if kept.number > 1 else "missing"
        hits = min(hits, kept.superchunks - sum(kept.damage.values()))
        if hazard.kind == "trailer_lost":
            kept.closed, hits = False, 0
            server.harms[hazard.kind] = f"record {kept.number} has no trailer"
        if hits > 0:
            kept.damage[kind] = kept.damage.get(kind, 0) + hits
            server.harms[hazard.kind] = f"{hits} superchunks of record {kept.number} are {kind}"


def verify(server: Server, kept: Stored | None, argv: list[str], emit: Emit) -> tuple[Document | None, int, str]:
    """The document, exit status and words of a read-back."""
    if kept is None:
        return None, FAILED, f"daqwriter: {options_of(argv)['target']}: does not begin with a daqwriter record"
    if server.has_struck("drive_pulled"):
        said = f"{options_of(argv)['target']}: the read at offset 0 failed: Input/output error (EIO)"
        return _unread(kept, said), FAILED, f"daqwriter: {said}"
    counts = {kind: kept.damage.get(kind, 0) for kind in KINDS}
    bad = sum(counts.values())
    away = bad - counts["out_of_order"] - counts["duplicated"]  # the others are there, if not where they belong
    size = kept.superchunks * kept.size_bytes
    seconds = max(1, round(size / READ_BYTES_PER_S))
    tags = sorted(["command=verify", "phase=verify", *(word[6:] for word in argv if word.startswith("--tag="))])
    for second in range(1, seconds + 1):
        server.second(0.0, size / seconds)
        time_ns = int((server.now_s + server.clock_offset_s) * 1e9)
        done = size * second // seconds
        emit(
            f"{','.join(['daqwriter', *tags])} read_bytes={done}i,elapsed_s={float(second)!r},total_s={float(seconds)!r} {time_ns}"
        )
    faults = [
        {
            "kind": kind,
            "offset_bytes": 4096 * 1000 * (number + 1),
            "link": number % 10,
            "sequence": 1000 * (number + 1),
            "detail": kind,
        }
        for kind in KINDS
        for number in range(min(20, counts[kind]))
    ]
    document = {
        "schema_version": 1, "tool": "daqwriter", "command": "verify", "version": "0.1.0",
        "status": "damaged" if bad else "intact", "error": None, "errno": None, "other_record": None,
        "record_id": kept.record_id, "complete_trailer": kept.closed,
        "trailer_status": "complete" if kept.closed else None, "trailer_bound": kept.closed or None,
        "lost_at_source": kept.lost if kept.closed else None,
        "superchunks": {"expected": kept.superchunks, "present": kept.superchunks - away, **counts},
        "faults": faults[:100], "bytes_read": size, "duration_s": float(seconds), "read_bytes_per_s": size / seconds,
    }  # fmt: skip
    return document, DAMAGED if bad else COMPLETE, ""


def _unread(kept: Stored, error: str) -> Document:
    """The document of a read-back whose first request failed."""
    return {
        "schema_version": 1, "tool": "daqwriter", "command": "verify", "version": "0.1.0", "status": "failed", "error": error,
        "errno": "EIO", "other_record": None, "record_id": kept.record_id, "complete_trailer": False, "trailer_status": None,
        "trailer_bound": None, "lost_at_source": None, "superchunks": dict.fromkeys(("expected", "present", *KINDS), 0), "faults": [],
        "bytes_read": 0, "duration_s": 0.0, "read_bytes_per_s": 0.0,
    }  # fmt: skip
