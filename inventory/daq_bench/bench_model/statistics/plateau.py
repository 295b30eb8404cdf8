"""Tells where a throughput scan levels out, by one stated rule."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

PLATEAU_SHARE = 0.95
LARGE_BLOCK_BYTES = 8 * 2**20  # from here on the DUNE paper's drive is level (section 4, figure 1)
RULE = (
    "The plateau starts at the smallest block size from which on every larger admissible block size reaches at least "
    f"{PLATEAU_SHARE:.0%} of the scan's maximum; its throughput is the median of these points"
)


@dataclass(frozen=True)
class Plateau:
    """`throughput_bytes_per_s` of the plateau and the block size in B from which on it holds."""

    throughput_bytes_per_s: float
    from_block_bytes: int

    @property
    def start(self) -> int:
        """Says where it begins, for a scan over something else than block sizes: threads, or sizes of requests."""
        return self.from_block_bytes


class Rate(Protocol):
    """A point of a scan over block sizes."""

    @property
    def block_bytes(self) -> int: ...
    @property
    def throughput_bytes_per_s(self) -> float: ...
    @property
    def admissible(self) -> bool: ...


Point = TypeVar("Point", bound=Rate)


def is_large(block_bytes: int) -> bool:
    """Says whether a block is as large as those of a writer that fills its drive."""
    return block_bytes >= LARGE_BLOCK_BYTES


def deciding_point(points: Sequence[Point]) -> Point | None:
    """The lowest of the scan's points of at least 8 MiB: the throughput that a writer with large blocks can rely on. None without any.

    Unlike the plateau it exists for a drive whose throughput wavers, and it errs on the careful side: a point that does not count comes
    before all that do, since it might have been the lowest."""
    large = [point for point in points if is_large(point.block_bytes)]
    return min(large, key=lambda point: (point.admissible, point.throughput_bytes_per_s), default=None)


def find_plateau(points: Sequence[tuple[int, float]]) -> Plateau | None:
    """The plateau of (block size in B, throughput in B/s), ascending in size.

    None without two points on it: a single point at the end of a scan is still rising, not level."""
    if not points:
        return None
    floor = PLATEAU_SHARE * max(rate for _, rate in points)
    start = len(points)
    while start and points[start - 1][1] >= floor:
        start -= 1
    level = points[start:]
    if len(level) < 2:
        return None
    return Plateau(statistics.median(rate for _, rate in level), level[0][0])
