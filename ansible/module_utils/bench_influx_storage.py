"""Describes what the bench keeps in an InfluxDB, under which names and for how long, and what reduces it to one value a minute.

Promise: one description for both servers, the one that the role `influxdb` sets up (1.8 or 2) and the bench's own (1.8), which
the rig starts. A comparison changes nothing: each difference carries the statements that put it right, so that a set-up may be
entered twice, or end between two statements. Knows nothing of Ansible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.bench_influxql import duration_s, duration_text, name_in

# The options of the role's modules that describe the storage, by their names in `Storage`.
OPTIONS = (
    "database",
    "retention",
    "downsampled",
    "downsampled_retention",
    "downsampled_every",
    "downsampled_late",
    "history",
    "history_retention",
)
# A difference: the fault in words, and the statements that put it right.
Difference = tuple[str, list[str]]
Ask = Callable[[str], list[dict[str, Any]]]  # runs one statement; returns rows, each with its series' name as `_series`

INTERVAL = "1m"
DAY_S = 86_400
# Means for trends, maxima so that a short peak of temperature or latency is not averaged away, and the last value: that of a
# counter, a text or a yes and no at the end of the minute.
FUNCTIONS = ("mean", "max", "last")
# Each measurement has a query of its own: one for all of them (FROM /.*/) asks each series of each measurement for the fields of all
# others, which takes twelve times as much. As inventory/metrics.yml declares them, without what lies in the history alone.
MEASUREMENTS = (
    "bench_event",
    "block_device",
    "cpu",
    "cpu_frequency",
    "cpu_idle",
    "cpu_throttle",
    "daqwriter",
    "interrupts",
    "ipmi_event",
    "ipmi_power",
    "ipmi_sensor",
    "kernel_event",
    "md_array",
    "memory",
    "memory_bandwidth",
    "memory_errors",
    "network",
    "network_link",
    "numa",
    "nvme_event",
    "pcie_errors",
    "pcie_link",
    "pressure",
    "process",
    "rapl",
    "redfish_sensor",
    "smart",
    "smart_endurance",
    "smart_ocp",
    "smart_query",
    "smart_temperature",
    "telemetry_agent",
    "temperature",
)
# Every tag but `run`: what is kept for ever has then as many series as there are sensors, and not as many again for each run.
# RE2 knows no "all but", so the expression spells it out.
ALL_TAGS_BUT_RUN = "/^([^r].*|r|r[^u].*|ru|ru[^n].*|run.+)$/"

# As the continuous queries name their fields. The range begins with a whole minute: the mean of half of one would overwrite the
# right one. `drop` joins the series of two runs; their rows are sorted again, since `last` takes the last row.
FLUX = """import "date"
import "types"

option task = {{name: "{downsampled}", every: {every}}}

data = from(bucket: "{database}")
    |> range(start: date.truncate(t: -{late}, unit: {interval}))
    |> drop(columns: ["run"])
    |> sort(columns: ["_time"])
numbers = data |> filter(fn: (r) => types.isNumeric(v: r._value))

numbers
    |> aggregateWindow(every: {interval}, fn: mean, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({{r with _field: "mean_" + r._field}}))
    |> to(bucket: "{downsampled}", org: "{organisation}")
numbers
    |> aggregateWindow(every: {interval}, fn: max, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({{r with _field: "max_" + r._field}}))
    |> to(bucket: "{downsampled}", org: "{organisation}")
data
    |> aggregateWindow(every: {interval}, fn: last, createEmpty: false, timeSrc: "_start")
    |> map(fn: (r) => ({{r with _field: "last_" + r._field}}))
    |> to(bucket: "{downsampled}", org: "{organisation}")
"""


@dataclass(frozen=True)
class Policy:
    """A retention policy of 1.8, or a bucket of 2 and the name that InfluxQL knows it by. `shard_s`: a shard's span; 0: the server's."""

    name: str
    bucket: str
    duration: str
    default: bool = False
    shard_s: int = 0


@dataclass(frozen=True)
class Storage:
    """The wanted state of one database. Durations are InfluxQL's, such as 30d; INF is for ever."""

    database: str = "bench"
    retention: str = "14d"
    downsampled: str = "bench_1m"
    downsampled_retention: str = "INF"
    # Each execution reads the whole of `late` again: a server of 24 drives takes 8 % of a core at 5m and 30m, a third of it so.
    downsampled_every: str = "30m"
    downsampled_late: str = "1h"
    history: str = "history"
    history_retention: str = "INF"
    raw: str = "raw"

    def policies(self) -> tuple[Policy, ...]:
        """Return what is kept for how long; the first is the default."""
        return (
            Policy(self.raw, self.database, self.retention, default=True, shard_s=self.raw_shard_s()),
            Policy(self.downsampled, self.downsampled, self.downsampled_retention),
            Policy(self.history, f"{self.database}/{self.history}", self.history_retention),
        )

    def raw_shard_s(self) -> int:
        """Return the span of a shard of raw points, s: a day, whatever the retention, since series live as long as their last shard. It is
        what 1.8 chooses for 14 d; for less than two days it takes an hour."""
        return DAY_S if not 0 < duration_s(self.retention) < 2 * DAY_S else 3600

    def downsampling(self, measurement: str, begin_s: int = 0) -> str:
        """Return the SELECT of 1.8 that makes values of one a minute, as the server words it. `begin_s`: from the minute in which this time
        lies, since a mean of half a minute would overwrite the right one; else of a range that the server puts in."""
        functions = ", ".join(f"{function}(*)" for function in FUNCTIONS)
        base, name = name_in(self.database), name_in(measurement)
        where = f"WHERE time >= {begin_s // 60 * 60}s " if begin_s else ""
        return (
            f"SELECT {functions} INTO {base}.{name_in(self.downsampled)}.{name} "
            f"FROM {base}.{name_in(self.raw)}.{name} {where}GROUP BY time({INTERVAL}), {ALL_TAGS_BUT_RUN}"
        )

    def continuous_queries(self) -> dict[str, str]:
        """Return the continuous queries of 1.8 by name, each as the statement that creates it."""
        every, reach = (duration_text(duration_s(one)) for one in (self.downsampled_every, self.downsampled_late))
        found = {}
        for measurement in MEASUREMENTS:
            name = f"{self.downsampled}_{measurement}"
            found[name] = (
                f"CREATE CONTINUOUS QUERY {name_in(name)} ON {name_in(self.database)} "
                f"RESAMPLE EVERY {every} FOR {reach} BEGIN {self.downsampling(measurement)} END"
            )
        return found

    def task(self, organisation: str) -> str:
        """Return the Flux of the task of 2 that does the same."""
        return FLUX.format(
            database=self.database,
            downsampled=self.downsampled,
            every=self.downsampled_every,
            late=self.downsampled_late,
            interval=INTERVAL,
            organisation=organisation,
        )


def storage_of(parameters: dict[str, Any]) -> Storage:
    """Return what a module's parameters ask for."""
    return Storage(**{name: parameters[name] for name in OPTIONS})


def same_statement(one: str, other: str) -> bool:
    """Say whether two statements differ in quotes and blanks at most."""
    return one.replace('"', "").split() == other.replace('"', "").split()


def differences(ask: Ask, wanted: Storage) -> list[Difference]:
    """Compare a server of 1.8 with what is wanted: database, policies, then the continuous queries, which need them."""
    return [*_policy_differences(ask, wanted), *_query_differences(ask, wanted)]


def _policy_differences(ask: Ask, wanted: Storage) -> list[Difference]:
    base = name_in(wanted.database)
    found: list[Difference] = []
    present = wanted.database in [row["name"] for row in ask("SHOW DATABASES")]
    policies = {row["name"]: row for row in ask(f"SHOW RETENTION POLICIES ON {base}")} if present else {}
    for policy in wanted.policies():
        seconds = duration_s(policy.duration)
        shard = f" SHARD DURATION {duration_text(policy.shard_s)}" if policy.shard_s else ""
        terms = f"DURATION {duration_text(seconds)} REPLICATION 1{shard}"
        if not present and policy.default:
            create = f"CREATE DATABASE {base} WITH {terms} NAME {name_in(policy.name)}"
            found.append((f"database {wanted.database} is missing", [create]))
            continue
        there, suffix = policies.get(policy.name), " DEFAULT" if policy.default else ""
        target = f"RETENTION POLICY {name_in(policy.name)} ON {base} {terms}{suffix}"
        if there is None:
            found.append((f"retention policy {policy.name} is missing", [f"CREATE {target}"]))
        elif duration_s(there["duration"]) != seconds or (policy.default and not there["default"]):
            before = f"{there['duration']}{', default' if there['default'] else ''}"
            text = f"retention policy {policy.name} is {before}, not {policy.duration}{suffix.lower()}"
            found.append((text, [f"ALTER {target}"]))
        elif policy.shard_s and duration_s(there["shardGroupDuration"]) != policy.shard_s:
            # Shards that are there keep their span.
            text = f"retention policy {policy.name} has shards of {there['shardGroupDuration']}"
            found.append((f"{text}, not {duration_text(policy.shard_s)}", [f"ALTER {target}"]))
    return found


def _query_differences(ask: Ask, wanted: Storage) -> list[Difference]:
    rows = ask("SHOW CONTINUOUS QUERIES")
    present = {row["name"]: row["query"] for row in rows if row["_series"] == wanted.database}
    created = wanted.continuous_queries()
    found: list[Difference] = []
    for name in present:
        if name not in created and (name == wanted.downsampled or name.startswith(f"{wanted.downsampled}_")):
            # The one query of before, for all measurements, among them.
            found.append((f"continuous query {name} is not wanted", [_drop(name, wanted)]))
    for name, create in created.items():
        if name not in present:
            found.append((f"continuous query {name} is missing", [create]))
        elif not same_statement(present[name], create):
            found.append((f"continuous query {name} differs", [_drop(name, wanted), create]))
    return found


def _drop(name: str, wanted: Storage) -> str:
    return f"DROP CONTINUOUS QUERY {name_in(name)} ON {name_in(wanted.database)}"
