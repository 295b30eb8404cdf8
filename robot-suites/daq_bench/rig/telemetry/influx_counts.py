"""Counts the points of one run in InfluxDB, by measurement, exactly.

COUNT counts values of a field, and points of a series need not have the same fields. So the server counts every field of every series;
where the most frequent field occurs as often as the bundle has points of this series, that is the number. Else the
series' points are fetched, page by page, and counted one by one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import structs

from daq_bench.bench_model.bundle.spool_content import Content, Series, read_content
from daq_bench.bench_model.bundle.telemetry_files import CURSOR_FILE, POINTS_FILE, SPOOLS
from daq_bench.bench_model.documents.telemetry import InfluxCounts
from daq_bench.candidate_kit.influxql import duration_s, name_in, string_in
from daq_bench.rig.base.bundle import Bundle, now_utc
from daq_bench.rig.base.influx import Influx, InfluxError, reading_problem

REJECTED_FILE = "rejected.lp"
PAGE = 20_000
QUERY_S_MAX = 120.0


def count_points(influx: Influx, run: str, bundle: dict[Series, int]) -> dict[str, int]:
    """Points that the default retention policy holds of `run`, by measurement; `bundle`: points by series, as a first guess.

    Measurements that only the server knows are counted too. Raises InfluxError."""
    named = {measurement for measurement, _ in bundle}
    there = influx.query("SHOW MEASUREMENTS", QUERY_S_MAX)
    listed = {str(row[0]) for one in there for row in one["values"]}
    found = dict.fromkeys(named, 0)
    for measurement in sorted(named | listed):
        points = _count_measurement(influx, run, measurement, bundle)
        if points or measurement in named:
            found[measurement] = points
    return found


def _count_measurement(influx: Influx, run: str, measurement: str, bundle: dict[Series, int]) -> int:
    where = f'FROM {name_in(measurement)} WHERE "run" = {string_in(run)}'
    total = 0
    for series in influx.query(f"SELECT COUNT(*) {where} GROUP BY *", QUERY_S_MAX):
        tags: dict[str, str] = series.get("tags", {})
        key = (measurement, tuple(sorted((name, value) for name, value in tags.items() if value)))
        most = max((count for row in series["values"] for count in row[1:] if count is not None), default=0)
        total += most if most == bundle.get(key) else _count_one_by_one(influx, where, tags)
    return total


def _count_one_by_one(influx: Influx, where: str, tags: dict[str, str]) -> int:
    """Points of a single series: their times are all different, so that a page can begin behind the last one's."""
    # A tag that a series does not have equals the empty string.
    chosen = "".join(f" AND {name_in(name)} = {string_in(value)}" for name, value in tags.items())
    total, after = 0, ""
    while True:
        pages = influx.query(f"SELECT * {where}{chosen}{after} ORDER BY time LIMIT {PAGE}", QUERY_S_MAX)
        rows: list[list[Any]] = [row for page in pages for row in page["values"]]
        total += len(rows)
        if len(rows) < PAGE:
            return total
        after = f" AND time > {rows[-1][0]}"


def retention_s(influx: Influx) -> int | None:
    """Returns how long the database keeps telemetry, s; None: for ever. Raises InfluxError."""
    for series in influx.query(f"SHOW RETENTION POLICIES ON {name_in(influx.database)}"):
        for row in series.get("values", []):
            policy = dict(zip(series["columns"], row, strict=True))
            if policy.get("default"):
                try:
                    return duration_s(str(policy.get("duration"))) or None
                except ValueError as error:
                    raise InfluxError(f"the retention of database {influx.database!r}: {error}", 200) from None
    # InfluxDB 2 shows a token that may not read nothing, instead of refusing it.
    raise InfluxError(f"database {influx.database!r} has no retention policy that the token sees", 403)


def counts_document(influx: Influx, bundle: Bundle, stopped_utc: str) -> InfluxCounts:
    """telemetry/influx-counts.json: what InfluxDB holds of the run now, and how far its delivery has come. Never fails: a server that
    cannot be asked is a `reason`."""
    spools = [spool for spool in SPOOLS if (bundle.path / spool / POINTS_FILE).exists()]
    cursors = {spool: bundle.read(f"{spool}/{CURSOR_FILE}") or {"delivered_bytes_offset": 0} for spool in spools}
    workload = bundle.workload_file
    found = InfluxCounts(
        schema_version=1,
        stopped_utc=stopped_utc,
        workload_bytes=workload.stat().st_size if workload.exists() else 0,
        delivered_bytes={str(spool): cursor["delivered_bytes_offset"] for spool, cursor in cursors.items()},
        rejected=rejected(*(bundle.path / spool / REJECTED_FILE for spool in spools)),
        counted_utc=now_utc(),
        retention_s=None,
        points=None,
        reason=None,
    )
    content = Content()
    for spool in spools:
        read_content(bundle.path / spool / POINTS_FILE, content=content)
    try:
        found = structs.replace(found, retention_s=retention_s(influx))
        return structs.replace(found, points=count_points(influx, bundle.id, content.points_by_series()))
    except InfluxError as error:
        return structs.replace(found, reason=reading_problem(error))


def rejected(*paths: Path) -> dict[str, dict[str, int]]:
    """Lines that InfluxDB refused for good, by measurement and its own reason. One comment may stand before several lines."""
    found: dict[str, Counter[str]] = {}
    for path in paths:
        reason = "no reason recorded"
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
            if line.startswith("# "):
                _, _, reason = line[2:].partition(" ")  # behind the time
            elif line:
                measurement = re.split(r"(?<!\\)[, ]", line, maxsplit=1)[0]
                found.setdefault(re.sub(r"\\([, ])", r"\1", measurement), Counter())[general(reason)] += 1
    return {name: dict(reasons) for name, reasons in sorted(found.items())}


def general(reason: str) -> str:
    """Returns a refusal without the parts that differ from line to line, so that thousands of them are one entry."""
    return re.sub(r"'[^']*'", "'...'", reason)[:300]
