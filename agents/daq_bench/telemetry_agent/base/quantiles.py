"""Quantiles of many small durations in little memory: counts in buckets of 1/16 of their size."""

from __future__ import annotations

_SUB_BITS = 4


class Quantiles:
    """Durations in seconds, to the microsecond; a quantile is at most 6 % too large and never too small."""

    def __init__(self) -> None:
        self.count = 0
        self.max_s = 0.0
        self._counts: dict[int, int] = {}

    def add(self, duration_s: float) -> None:
        """One more; negative ones count as 0."""
        microseconds = max(0, int(duration_s * 1e6))
        shift = max(0, microseconds.bit_length() - _SUB_BITS - 1)
        bucket = (microseconds >> shift) << shift
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        if duration_s > self.max_s:
            self.max_s = duration_s

    def quantile_s(self, share: float) -> float:
        """The upper edge of the bucket that this share of the durations does not exceed; 0 when there are none."""
        wanted = share * self.count
        passed = 0
        for bucket in sorted(self._counts):
            passed += self._counts[bucket]
            if passed >= wanted:
                width = 1 << max(0, bucket.bit_length() - _SUB_BITS - 1)
                return min((bucket + width) / 1e6, self.max_s)
        return 0.0

    def summary(self) -> dict[str, float]:
        """Half, 99 % and all of them, in seconds."""
        return {
            "p50": round(self.quantile_s(0.5), 6),
            "p99": round(self.quantile_s(0.99), 6),
            "max": round(self.max_s, 6),
        }
