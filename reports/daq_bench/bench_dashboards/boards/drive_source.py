"""Where the boards of drives read: points as they came, or what is kept of them for each minute when they are gone."""

from __future__ import annotations

from dataclasses import dataclass

from daq_bench.bench_dashboards import influxql
from daq_bench.bench_dashboards.common import DRIVE, HERE
from daq_bench.bench_dashboards.influxql import MINUTES, Condition, Expression, chosen, over_time
from daq_bench.bench_dashboards.looks import Override, Unit
from daq_bench.bench_dashboards.panels import Target, TimeSeries

BY_DRIVE = ("device", "serial")
DRIVE_NAME = "$tag_device $tag_serial"


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

    def line(self, measurement: str, column: Expression, alias: str = DRIVE_NAME, *by: str, needs: str = "") -> Target:
        """Lines over time of the chosen drives, one for each drive unless `by` names other tags. `needs`: the field as it is collected."""
        query = over_time(measurement, column, self.drive, *(by or BY_DRIVE), policy=self.policy)
        return Target(query, alias, needs=(f"{measurement}.{needs}",) if needs else ())

    def graph(
        self,
        title: str,
        description: str,
        unit: Unit,
        *targets: Target,
        needs: tuple[str, ...] = (),
        steps: bool = True,
        most: float | None = None,
        legend: tuple[str, ...] = ("lastNotNull",),
        overrides: tuple[Override, ...] = (),
    ) -> TimeSeries:
        """A drive's own statements: it answers seldom, and what it says moves by steps."""
        return TimeSeries(
            title, description, targets, unit, needs=needs, steps=steps, most=most, legend=legend, overrides=overrides, gap_s=self.gap_s,
        )  # fmt: skip


RAW = Source("", HERE, DRIVE, 6 * 3600)  # the board shows days, and drives answer every minute or slower
BY_THE_MINUTE = Source(MINUTES, (chosen("host"),), (chosen("host"), chosen("device")), 4 * 86400)  # a long weekend
