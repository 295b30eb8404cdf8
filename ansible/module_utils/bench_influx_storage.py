"""What the bench keeps in an InfluxDB: for how long, under which names, and what makes one value a minute of it.

Promise: one description for both servers, the one that the role `influxdb` sets up (1.8 or 2) and the bench's own (1.8), which
the rig starts. A comparison changes nothing: each difference carries the statements that put it right, so that a set-up may be
entered twice, or end between two statements. Knows nothing of Ansible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ansible.module_utils.bench_influx import duration_s, duration_text

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
# Means for trends, maxima so that a short peak of temperature or latency is not averaged away, and the last value: that of a
# counter, a text or a yes and no at the end of the minute.
FUNCTIONS = ("mean", "max", "last")
# Every tag but `run`: what is kept for ever has then as many series as there are sensors, and not as many again for each run.
# RE2 knows no "all but", so the expression spells it out.
ALL_TAGS_BUT_RUN = "/^([^r].*|r|r[^u].*|ru|ru[^n].*|run.+)$/"

# As the continuous query names its fields. The range begins with a whole minute: the mean of half of one would overwrite the
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
    """A retention policy of 1.8, or a bucket of 2 and the name that InfluxQL knows it by."""

    name: str
    bucket: str
    duration: str
    default: bool = False


@dataclass(frozen=True)
class Storage:
    """The wanted state of one database. Durations are InfluxQL's, such as 30d; INF is for ever."""

    database: str = "bench"
    retention: str = "30d"
    downsampled: str = "bench_1m"
    downsampled_retention: str = "INF"
    downsampled_every: str = "5m"
    downsampled_late: str = "30m"
    history: str = "history"
    history_retention: str = "INF"
    raw: str = "raw"

    def policies(self) -> tuple[Policy, ...]:
        """Return what is kept for how long; the first is the default."""
        return (
            Policy(self.raw, self.database, self.retention, default=True),
            Policy(self.downsampled, self.downsampled, self.downsampled_retention),
            Policy(self.history, f"{self.database}/{self.history}", self.history_retention),
        )

    def downsampling(self) -> str:
        """Return the SELECT that makes values of one a minute, worded as a server of 1.8 words it; a time range may be put in."""
        functions = ", ".join(f"{function}(*)" for function in FUNCTIONS)
        base = name_in(self.database)
        return (
            f"SELECT {functions} INTO {base}.{name_in(self.downsampled)}.:MEASUREMENT "
            f"FROM {base}.{name_in(self.raw)}./.*/ GROUP BY time({INTERVAL}), {ALL_TAGS_BUT_RUN}"
        )

    def continuous_query(self) -> str:
        """Return the statement of 1.8 that creates the continuous query."""
        every, reach = (duration_text(duration_s(one)) for one in (self.downsampled_every, self.downsampled_late))
        return (
            f"CREATE CONTINUOUS QUERY {name_in(self.downsampled)} ON {name_in(self.database)} "
            f"RESAMPLE EVERY {every} FOR {reach} BEGIN {self.downsampling()} END"
        )

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


def name_in(text: str) -> str:
    """Quote an identifier."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def same_statement(one: str, other: str) -> bool:
    """Say whether two statements differ in quotes and blanks at most."""
    return one.replace('"', "").split() == other.replace('"', "").split()


def differences(ask: Ask, wanted: Storage) -> list[Difference]:
    """Compare a server of 1.8 with what is wanted: database, policies, then the continuous query, which needs them."""
    return [*_policy_differences(ask, wanted), *_query_differences(ask, wanted)]


def _policy_differences(ask: Ask, wanted: Storage) -> list[Difference]:
    base = name_in(wanted.database)
    found: list[Difference] = []
    present = wanted.database in [row["name"] for row in ask("SHOW DATABASES")]
    policies = {row["name"]: row for row in ask(f"SHOW RETENTION POLICIES ON {base}")} if present else {}
    for policy in wanted.policies():
        seconds = duration_s(policy.duration)
        terms = f"DURATION {duration_text(seconds)} REPLICATION 1"
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
    return found


def _query_differences(ask: Ask, wanted: Storage) -> list[Difference]:
    rows = ask("SHOW CONTINUOUS QUERIES")
    present = {row["name"]: row["query"] for row in rows if row["_series"] == wanted.database}
    name, create = wanted.downsampled, wanted.continuous_query()
    if name not in present:
        return [(f"continuous query {name} is missing", [create])]
    if same_statement(present[name], create):
        return []
    drop = f"DROP CONTINUOUS QUERY {name_in(name)} ON {name_in(wanted.database)}"
    return [(f"continuous query {name} differs", [drop, create])]
