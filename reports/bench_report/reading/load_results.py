"""Reads results/*.json into the dataset's types.

Promise: a result that is there has every value that the figures draw, or the error names the field; lists that
belong together have the same length.
"""

from __future__ import annotations

from bench_report.base.errors import BundleError
from bench_report.base.fields import Node
from bench_report.base.units import binary_size
from bench_report.reading.dataset.block_scan import BlockPoint, BlockScan, LargeRepetition
from bench_report.reading.dataset.latency import Latency
from bench_report.reading.dataset.record import Fault, Minidaq, Repetition, Series, Verify

PERCENTILE_FIELDS = (
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
    ("max", 100.0),
)
SUPERCHUNK_FIELDS = ("intended", "offered", "stored", "lost", "abandoned")
SHOWN_PARAMETERS = (
    "links", "scale", "block_bytes", "alignment_bytes", "io_depth", "ring_bytes_per_link", "checksum", "preallocate",
    "memory_locked", "seed", "record_id", "placement",
)  # fmt: skip


def block_scan_of(node: Node) -> BlockScan:
    plateau, large = node.find("plateau"), node.find("large_blocks")
    points = tuple(_block_point(item) for item in node.at("points").items())
    return BlockScan(
        tool=node.text("tool"),
        tool_version=node.text("tool_version"),
        io_depth=node.integer("io_depth"),
        threads=node.integer("threads"),
        seconds_per_point=node.number("seconds_per_point"),
        sample_s=node.number("sample_s"),
        condition=node.text("condition"),
        file_bytes=node.number("file_bytes"),
        direct=node.flag("direct"),
        points=tuple(sorted(points, key=lambda point: point.block_bytes)),
        plateau_bytes_per_s=plateau.number("throughput_bytes_per_s") if plateau else None,
        plateau_from_bytes=plateau.integer("from_block_bytes") if plateau else None,
        plateau_rule=plateau.text("rule") if plateau else None,
        reason=_plateau_reason(node),
        large_blocks_bytes_per_s=large.number("throughput_bytes_per_s") if large else None,
        large_blocks_from_bytes=large.integer("from_block_bytes") if large else None,
        others=tuple(block_scan_of(other) for other in node.list("others")),
        repetitions=_large_repetitions(large) if large else (),
    )


def _large_repetitions(large: Node) -> tuple[LargeRepetition, ...]:
    """Returns the repetitions of large blocks; none where there is one, which is the scan's own point and was not measured again."""
    found = tuple(_large_repetition(item) for item in large.list("repetitions"))
    return found if len(found) > 1 else ()


def _large_repetition(node: Node) -> LargeRepetition:
    counts = node.at("admissible").as_flag()
    return LargeRepetition(
        repetition=node.at("repetition").as_integer(),
        block_bytes=node.at("block_bytes").as_integer(),
        throughput_bytes_per_s=node.at("throughput_bytes_per_s").as_number() if counts else None,
        samples=len(node.numbers("throughput_bytes_per_s_samples")),
        runtime_s=node.number("runtime_s"),
        bytes_written=node.number("bytes_written"),
        device_bytes_written=node.number("device_bytes_written"),
        reason=node.text("reason"),
    )


def _plateau_reason(node: Node) -> str | None:
    reasons = node.find("reasons")
    return reasons.text("block_scan.plateau_throughput") if reasons else None


def _block_point(node: Node) -> BlockPoint:
    latency = node.find("latency_us")
    cpu = [value for key in ("cpu_user_percent", "cpu_system_percent") if (value := node.number(key)) is not None]
    block_bytes = node.at("block_bytes").as_integer()
    if block_bytes <= 0:
        raise BundleError(node.at("block_bytes").where, f"a block of {block_bytes} bytes is impossible")
    return BlockPoint(
        block_bytes=block_bytes,
        throughput_bytes_per_s=node.at("throughput_bytes_per_s").as_number(),
        samples_bytes_per_s=node.numbers("throughput_bytes_per_s_samples"),
        iops=node.number("iops"),
        runtime_s=node.number("runtime_s"),
        bytes_written=node.number("bytes_written"),
        latency=latency_of(latency) if latency else None,
        cpu_percent=sum(cpu) if cpu else None,
        device_bytes_written=node.number("device_bytes_written"),
        admissible=node.at("admissible").as_flag(),
        reason=node.text("reason"),
    )


def latency_of(node: Node) -> Latency:
    found = ((percentile, node.number(key)) for key, percentile in PERCENTILE_FIELDS)
    hdr = node.find("hdr")
    return Latency(
        definition=node.text("definition"),
        count=node.integer("count"),
        points_us=tuple((percentile, value) for percentile, value in found if value is not None),
        min_us=node.number("min"),
        mean_us=node.number("mean"),
        hdr=hdr.as_text() if hdr else None,
        hdr_unit=node.text("hdr_unit"),
    )


def repetitions_of(node: Node) -> tuple[Repetition, ...]:
    return tuple(_repetition(item) for item in node.at("repetitions").items())


def _repetition(node: Node) -> Repetition:
    minidaq, verify = node.find("minidaq"), node.find("verify")
    return Repetition(
        _minidaq(minidaq) if minidaq else None, _verify(verify) if verify else None, node.text("condition")
    )


def _section(node: Node, key: str) -> Node:
    """Returns a part that may be absent; an absent one is read as empty, with None for each field."""
    return node.find(key) or Node({}, node.file, f"{node.path}.{key}".lstrip("."))


def _minidaq(node: Node) -> Minidaq:
    busy, backlog, time = _section(node, "busy"), _section(node, "backlog"), _section(node, "time")
    source, buffer, cpu = _section(node, "source"), _section(node, "transient_buffer"), _section(node, "cpu")
    chunks, parameters = _section(node, "superchunks"), _section(node, "parameters")
    arrival, write, series = node.find("latency_us"), node.find("write_latency_us"), node.find("series")
    lost_per_link = chunks.find("lost_per_link")
    shown = ((key, parameters.find(key)) for key in SHOWN_PARAMETERS)
    return Minidaq(
        status=node.at("status").as_text(),
        error=node.text("error"),
        offered_bytes_per_s=node.number("offered_bytes_per_s"),
        stored_bytes_per_s=node.number("stored_bytes_per_s"),
        superchunks=_counts(chunks, SUPERCHUNK_FIELDS),
        lost_per_link=lost_per_link.as_numbers() if lost_per_link else (),
        written_bytes=_section(node, "bytes").number("written"),
        record_s=time.number("record_s"),
        drain_s=time.number("drain_s"),
        busy_count=busy.integer("count"),
        busy_total_s=busy.number("total_s"),
        busy_episodes=tuple(
            (item.at("start_s").as_number(), item.at("duration_s").as_number()) for item in busy.list("episodes")
        ),
        backlog_high_bytes=backlog.number("high_water_bytes"),
        backlog_high_s=backlog.number("high_water_s"),
        backlog_capacity_bytes=backlog.number("capacity_bytes"),
        buffer_needed_bytes=buffer.number("needed_bytes"),
        buffer_method=buffer.text("method"),
        source_achieved=source.number("achieved_fraction"),
        source_late_superchunks=source.integer("late_superchunks"),
        source_late_threshold_us=source.number("late_threshold_us"),
        source_worst_lateness_us=source.number("worst_lateness_us"),
        arrival=latency_of(arrival) if arrival else None,
        write=latency_of(write) if write else None,
        series=_series(series) if series else None,
        parameters=tuple((key, _parameter_text(key, child)) for key, child in shown if child),
        cpu_s_per_gb=cpu.number("seconds_per_gb"),
        copy_share=cpu.number("copy_share"),
    )


def _parameter_text(key: str, node: Node) -> str:
    if "_bytes" in key or key.startswith("bytes"):
        return binary_size(node.as_number())
    if isinstance(node.value, dict):
        return ", ".join(
            f"{name.replace('_', ' ')} {child.shown()}" for name, child in node.entries() if child.value is not None
        )
    if isinstance(node.value, bool):
        return "yes" if node.value else "no"
    return node.shown()


def _counts(node: Node, keys: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    found = ((key, node.integer(key)) for key in keys)
    return tuple((key, value) for key, value in found if value is not None)


def _series(node: Node) -> Series | None:
    times = node.at("t_s").as_numbers()
    columns = [node.at(key).as_numbers() for key in ("offered_bytes", "stored_bytes", "backlog_bytes")]
    for key, column in zip(("offered_bytes", "stored_bytes", "backlog_bytes"), columns, strict=True):
        if len(column) != len(times):
            raise BundleError(node.at(key).where, f"{len(column)} values for {len(times)} times")
    for time, before in zip(times, (0.0, *times), strict=False):
        if time <= before:
            raise BundleError(node.at("t_s").where, f"times must increase, but {time} does not")
    times, columns = _without_splinter(times, columns)
    offered, stored, backlog = columns
    # divides by the true length of each interval: the last one may be shorter, and the others' lengths vary slightly
    lengths = [time - before for before, time in zip((0.0, *times), times, strict=False)]
    return Series(
        t_s=times,
        offered_bytes_per_s=tuple(value / length for value, length in zip(offered, lengths, strict=True)),
        stored_bytes_per_s=tuple(value / length for value, length in zip(stored, lengths, strict=True)),
        backlog_bytes=backlog,
    )


def _without_splinter(
    times: tuple[float, ...], columns: list[tuple[float, ...]]
) -> tuple[tuple[float, ...], list[tuple[float, ...]]]:
    """Joins a last interval of under half the usual length to the one before: a rate over a millisecond means nothing."""
    if len(times) < 3 or times[-1] - times[-2] >= 0.5 * times[-1] / len(times):
        return times, columns
    offered, stored, backlog = columns
    joined = [(*column[:-2], column[-2] + column[-1]) for column in (offered, stored)]
    return (*times[:-2], times[-1]), [*joined, (*backlog[:-2], backlog[-1])]


def _verify(node: Node) -> Verify:
    keys = ("expected", "present", "missing", "duplicated", "out_of_order", "corrupt", "torn", "stale")
    return Verify(
        status=node.at("status").as_text(),
        complete_trailer=node.flag("complete_trailer"),
        superchunks=_counts(_section(node, "superchunks"), keys),
        faults=tuple(_fault(item) for item in node.list("faults")),
        bytes_read=node.number("bytes_read"),
        duration_s=node.number("duration_s"),
        read_bytes_per_s=node.number("read_bytes_per_s"),
    )


def _fault(node: Node) -> Fault:
    return Fault(
        kind=node.at("kind").as_text(),
        offset_bytes=node.integer("offset_bytes"),
        link=node.integer("link"),
        sequence=node.integer("sequence"),
        detail=node.text("detail"),
    )
