"""The account of every telemetry point of a run: expected, collected, stored in the bundle, present in InfluxDB; each difference named.

The bundle is the truth: InfluxDB may be absent, and then the account says how many points wait for it. A difference that has no
name is `invalid` evidence, because nobody can say any more what else is missing.

Inputs of the bundle: summary.json (the agent's own account) and points.lp of each spool, workload.lp and influx-counts.json, where the rig
wrote at the run's end what it counted in InfluxDB, and how far delivery had come by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from bench_model.bundle.evidence import Document
from bench_model.bundle.files import find_document, open_file, plain_file, read_text
from bench_model.bundle.spool_content import Content, read_content
from bench_model.bundle.telemetry_files import POINTS_FILE
from bench_model.evidence.admissibility import CLOCK_DIFFERENCE_S_MAX
from bench_model.evidence.agent_accounts import accounted_spools, combined_account
from bench_model.evidence.telemetry_differences import (
    DELIVERING,
    Row,
    account_delivery,
    account_spool,
    account_whole,
    expect,
    unnamed,
)

NAME = "results/telemetry_account.json"
COUNTS = "telemetry/influx-counts.json"
WORKLOAD = "telemetry/workload.lp"
METRICS = "profiles/metrics.yml"

COLLECTOR_SOURCE = "agents/telemetry_agent/collectors/"


def of_bundle(bundle: Path, run: Document) -> Document | None:
    """results/telemetry_account.json; None for a run whose InfluxDB was never counted (it ended early, or is older than the account)."""
    counts = find_document(bundle, COUNTS)
    return of_counts(bundle, counts) if counts is not None else None


def of_counts(bundle: Path, counts: Document) -> Document | None:
    """The same with what was counted at another time, say after a replay; None without an agent's account."""
    spools = accounted_spools(bundle)
    if not spools:
        return None
    content = Content()
    for spool in spools:
        read_content(bundle / spool / POINTS_FILE, counts["delivered_bytes"].get(str(spool), 0), content)
    summary = combined_account(bundle)
    return account(summary, content, counts, collectors_of(bundle / METRICS), workload_lines(bundle, counts))


def collectors_of(metrics: Path) -> dict[str, str]:
    """Which collector makes a measurement, by its `source` in metrics.yml."""
    if not metrics.exists():
        return {}
    declared = YAML(typ="safe").load(read_text(metrics.parent, metrics.name))["measurements"]
    found = {}
    for name, entry in declared.items():
        _, mark, file = str(entry["source"]).partition(COLLECTOR_SOURCE)
        if mark:
            found[name] = file.partition(".py")[0].rpartition("/")[2]  # a collector may stand in a room of its own
    return found


def workload_lines(bundle: Path, counts: Document) -> tuple[Counter[str], int]:
    """Records in workload.lp when the agent had ended, by measurement, and how many of them were written while it was ending."""
    found: Counter[str] = Counter()
    late = 0
    path, until = plain_file(bundle, WORKLOAD), int(counts["workload_bytes"])
    stopped_ns = int(datetime.fromisoformat(counts["stopped_utc"]).timestamp() * 1e9)
    if path is None:
        return found, late
    with open_file(bundle, WORKLOAD) as stream:
        for line in stream.read(max(until, 0)).split(b"\n")[:-1]:
            if not line.strip() or line.startswith(b"#"):
                continue
            found[line.replace(b" ", b",").partition(b",")[0].decode("utf-8", "replace")] += 1
            stamp = line.rpartition(b" ")[2]
            late += stamp.isdigit() and int(stamp) >= stopped_ns
    return found, late


def account(
    summary: Document,
    content: Content,
    counts: Document,
    collectors: dict[str, str],
    workload: tuple[Counter[str], int] = (Counter(), 0),
) -> Document:
    """The whole account, from documents alone."""
    present: dict[str, int] | None = counts["points"]
    rows = {name: Row(name, collectors.get(name)) for name in sorted({*content.lines(), *(present or {})})}
    for name in summary.get("measurements", {}):
        rows.setdefault(name, Row(name, collectors.get(name)))
    expect(rows, summary, workload)
    account_spool(rows, summary, content)
    account_delivery(rows, summary, content, counts)
    whole = account_whole(summary, rows, workload)
    named = [difference for row in [*rows.values(), whole] for difference in row.differences]
    return {
        "schema_version": 1,
        "state": summary["state"],
        "influxdb": {
            "counted_utc": counts["counted_utc"],
            "reached": present is not None,
            "reason": counts["reason"],
            "retention_s": counts["retention_s"],
            "waiting": waiting_points(content),
        },
        "outages": summary["influx"].get("outages", []),
        "clock_steps": summary.get("clock", {}).get("steps", []),
        "collectors": [_collector(one) for one in summary["collectors"]],
        "measurements": {name: row.document() for name, row in sorted(rows.items())},
        "whole": whole.document(),
        "sentence": sentence(rows, present is not None, counts["reason"], waiting_points(content)),
        "limits": sorted({one["reason"] for one in named if one["name"] == "unspooled"}),
        "invalid": [*unnamed([*rows.values(), whole]), *_stepped(summary)],
    }


def waiting_points(content: Content) -> int:
    """Points that delivery had not come to."""
    return sum(content.points().values()) - sum(content.points_before().values())


def sentence(rows: dict[str, Row], reached: bool, reason: str | None, waiting: int) -> str:
    """How the run stands in InfluxDB, in words."""
    stored = sum(row.stored for row in rows.values())
    if not reached:
        return (
            f"InfluxDB was not counted ({reason}): the bundle holds {stored} points, of which {waiting} wait for replay"
        )
    present = sum(row.present or 0 for row in rows.values())
    lacking = Counter[str]()
    for row in rows.values():
        for one in row.differences:
            if one["step"] == DELIVERING:
                lacking[one["name"]] += one["points"]
    why = f" ({', '.join(f'{points} {name}' for name, points in sorted(lacking.items()))})" if lacking else ""
    return f"InfluxDB holds {present} of the bundle's {stored} points{why}"


def _collector(one: Document) -> Document:
    """A collector's deadlines, and why it missed some."""
    return {
        "name": one["name"],
        "status": one["status"],
        "expected_samples": one["expected_samples"],
        "collected_samples": one["collected_samples"],
        "missed_samples": one["missed_samples"],
        "points": one["points"],
        "reason": missed_reason(one),
    }


def missed_reason(one: Document) -> str | None:
    """Why samples are missing; None when none is."""
    if one["status"] == "unsupported":
        return one["detail"] or "not supported on this machine"
    if not one["missed_samples"]:
        return None
    longest = f"deadlines passed: a sample took up to {one['duration_s_max']:.3g} s, the longest silence was {one['longest_gap_s']:.3g} s"
    return f"{one['detail']}; {longest}" if one["detail"] else longest


def _stepped(summary: Document) -> Iterator[str]:
    steps: list[dict[str, Any]] = summary.get("clock", {}).get("steps", [])
    for step in steps:
        if abs(step["step_s"]) > CLOCK_DIFFERENCE_S_MAX:
            by = f"{step['step_s']:+.1f} s at {step['utc']}"
            yield f"The candidate's clock stepped by {by}, so that its telemetry does not lie beside the bench's events"
