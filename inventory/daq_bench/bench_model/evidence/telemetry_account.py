"""The account of every telemetry point of a run: expected, collected, stored in the bundle, present in InfluxDB; each difference named.

The bundle is the truth: InfluxDB may be absent, and then the account says how many points wait for it. A difference that has no
name is `invalid` evidence, because nobody can say any more what else is missing.

Inputs of the bundle: summary.json (the agent's own account) and points.lp of each spool, workload.lp and influx-counts.json, where the rig
wrote at the run's end what it counted in InfluxDB, and how far delivery had come by then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import convert

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.bundle.files import find_struct, open_file, plain_file, read_text
from daq_bench.bench_model.bundle.spool_content import Content, read_content
from daq_bench.bench_model.bundle.telemetry_files import POINTS_FILE
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, moment
from daq_bench.bench_model.documents.telemetry import (
    AccountOfCollector,
    ClockStep,
    InfluxCounts,
    InfluxState,
    Outage,
    TelemetryAccount,
)
from daq_bench.bench_model.evidence.admissibility import CLOCK_DIFFERENCE_S_MAX
from daq_bench.bench_model.evidence.agent_accounts import accounted_spools, combined_account
from daq_bench.bench_model.evidence.telemetry_differences import (
    DELIVERING,
    Row,
    account_delivery,
    account_spool,
    account_whole,
    expect,
    unnamed,
)
from daq_bench.bench_model.profiles.yaml_source import without_lines

NAME = "results/telemetry_account.json"
COUNTS = "telemetry/influx-counts.json"
WORKLOAD = "telemetry/workload.lp"
METRICS = "profiles/metrics.yml"

COLLECTOR_SOURCE = "telemetry_agent/collectors/"  # also of bundles whose packages had no common root


def of_bundle(bundle: Path, run: Run) -> TelemetryAccount | None:
    """results/telemetry_account.json; None for a run whose InfluxDB was never counted (it ended early, or is older than the account)."""
    counts = find_struct(bundle, COUNTS, InfluxCounts)
    return of_counts(bundle, counts) if counts is not None else None


def of_counts(bundle: Path, counts: InfluxCounts) -> TelemetryAccount | None:
    """The same with what was counted at another time, say after a replay; None without an agent's account."""
    spools = accounted_spools(bundle)
    if not spools:
        return None
    content = Content()
    for spool in spools:
        read_content(bundle / spool / POINTS_FILE, counts.delivered_bytes.get(str(spool), 0), content)
    summary = combined_account(bundle)
    return account(summary, content, counts, collectors_of(bundle / METRICS), workload_lines(bundle, counts))


def collectors_of(metrics: Path) -> dict[str, str]:
    """Says which collector makes a measurement, by its `source` in metrics.yml."""
    return dict(_collectors_in(read_text(metrics.parent, metrics.name))) if metrics.exists() else {}


@lru_cache(maxsize=4)  # all bundles of one bench hold the same text; an older bench's takes a second to read
def _collectors_in(text: str) -> dict[str, str]:
    declared = without_lines(Path(METRICS), text).data["measurements"]
    found = {}
    for name, entry in declared.items():
        _, mark, file = str(entry["source"]).partition(COLLECTOR_SOURCE)
        if mark:
            found[name] = file.partition(".py")[0].rpartition("/")[2]  # a collector may stand in a room of its own
    return found


def workload_lines(bundle: Path, counts: InfluxCounts) -> tuple[Counter[str], int]:
    """Records in workload.lp when the agent had ended, by measurement, and how many of them were written while it was ending."""
    found: Counter[str] = Counter()
    late = 0
    path, until = plain_file(bundle, WORKLOAD), counts.workload_bytes
    stopped_ns = int(moment(counts.stopped_utc).timestamp() * 1e9)
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
    counts: InfluxCounts,
    collectors: dict[str, str],
    workload: tuple[Counter[str], int] = (Counter(), 0),
) -> TelemetryAccount:
    """The whole account, from documents alone."""
    present = counts.points
    rows = {name: Row(name, collectors.get(name)) for name in sorted({*content.lines(), *(present or {})})}
    for name in summary.get("measurements", {}):
        rows.setdefault(name, Row(name, collectors.get(name)))
    expect(rows, summary, workload)
    account_spool(rows, summary, content)
    account_delivery(rows, summary, content, counts)
    whole = account_whole(summary, rows, workload)
    named = [difference for row in [*rows.values(), whole] for difference in row.differences]
    waiting, steps = waiting_points(content), convert(summary.get("clock", {}).get("steps", []), list[ClockStep])
    return TelemetryAccount(
        schema_version=1,
        state=summary["state"],
        influxdb=InfluxState(counts.counted_utc, present is not None, counts.reason, counts.retention_s, waiting),
        outages=convert(summary["influx"].get("outages", []), list[Outage]),
        clock_steps=steps,
        collectors=[_collector(one) for one in summary["collectors"]],
        measurements={name: row.told() for name, row in sorted(rows.items())},
        whole=whole.told(),
        sentence=sentence(rows, present is not None, counts.reason, waiting),
        limits=sorted({one.reason for one in named if one.name == "unspooled"}),
        invalid=[*unnamed([*rows.values(), whole]), *_stepped(steps)],
    )


def waiting_points(content: Content) -> int:
    """Points that delivery had not come to."""
    return sum(content.points().values()) - sum(content.points_before().values())


def sentence(rows: dict[str, Row], reached: bool, reason: str | None, waiting: int) -> str:
    """Says how the run stands in InfluxDB, in words."""
    stored = sum(row.stored for row in rows.values())
    if not reached:
        return (
            f"InfluxDB was not counted ({reason}): the bundle holds {stored} points, of which {waiting} wait for replay"
        )
    present = sum(row.present or 0 for row in rows.values())
    lacking = Counter[str]()
    for row in rows.values():
        for one in row.differences:
            if one.step == DELIVERING:
                lacking[one.name] += one.points
    why = f" ({', '.join(f'{points} {name}' for name, points in sorted(lacking.items()))})" if lacking else ""
    return f"InfluxDB holds {present} of the bundle's {stored} points{why}"


def _collector(one: Document) -> AccountOfCollector:
    """A collector's deadlines, and why it missed some."""
    return AccountOfCollector(
        name=one["name"],
        status=one["status"],
        expected_samples=one["expected_samples"],
        collected_samples=one["collected_samples"],
        missed_samples=one["missed_samples"],
        points=one["points"],
        reason=missed_reason(one),
    )


def missed_reason(one: Document) -> str | None:
    """Why samples are missing; None when none is."""
    if one["status"] == "unsupported":
        return one["detail"] or "not supported on this machine"
    if not one["missed_samples"]:
        return None
    sample, silence = (in_digits(one[key], 3) for key in ("duration_s_max", "longest_gap_s"))
    longest = f"deadlines passed: a sample took up to {sample} s, the longest silence was {silence} s"
    return f"{one['detail']}; {longest}" if one["detail"] else longest


def _stepped(steps: list[ClockStep]) -> Iterator[str]:
    for step in steps:
        if abs(step.step_s) > CLOCK_DIFFERENCE_S_MAX:
            by = f"{step.step_s:+.1f} s at {step.utc}"
            yield f"The candidate's clock stepped by {by}, so that its telemetry does not lie beside the bench's events"
