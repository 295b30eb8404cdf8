"""Where the boards of drives read: points as they came, or what is kept of them for each minute when they are gone."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_dashboards import influxql
from daq_bench.bench_dashboards.common import DRIVE, HERE
from daq_bench.bench_dashboards.influxql import MINUTES, Condition, Expression, chosen


@dataclass(frozen=True)
class Source:
    """A policy, the conditions that choose a candidate or its drives there, and how long a line may bridge."""

    policy: str
    here: tuple[Condition, ...]
    drive: tuple[Condition, ...]
    gap_s: float

    def _name(self, function: str, field: str) -> str:
        return f"{function}_{field}" if self.policy else field

    def highest(self, field: str) -> Expression:
        return influxql.highest(self._name("max", field))

    def lowest(self, field: str) -> Expression:
        """The lowest value; in the policy of minutes, the lowest of their last values, since no minimum is kept there."""
        return influxql.lowest(self._name("last", field))

    def mean(self, field: str) -> Expression:
        return influxql.mean(self._name("mean", field))

    def last(self, field: str) -> Expression:
        return influxql.last(self._name("last", field))


RAW = Source("", HERE, DRIVE, 6 * 3600)  # the board shows days, and drives answer every minute or slower
BY_THE_MINUTE = Source(MINUTES, (chosen("host"),), (chosen("host"), chosen("device")), 4 * 86400)  # a long weekend
