"""The history in InfluxDB: verdicts, runs and events, and the delivery of data that an outage kept back. The bundles stay the record.

It lies in a retention policy of its own, which outlives the raw telemetry by years: nightly acceptance runs are compared by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from daq_bench.bench_model.base.errors import BenchError, RefusedError
from daq_bench.bench_model.behaviour import aligned
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.bundle.telemetry_files import CURSOR_FILE, POINTS_FILE, spool_folders
from daq_bench.bench_model.documents.run import TelemetryOfRun
from daq_bench.bench_model.documents.struct import moment
from daq_bench.bench_model.documents.telemetry import InfluxCounts, TelemetryAccount
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence import telemetry_account
from daq_bench.bench_model.verdict.advice import advice_of
from daq_bench.bench_model.verdict.conclusion import word_of
from daq_bench.candidate_kit.influx_answers import TOO_LARGE
from daq_bench.rig.base.bundle import Bundle, write_atomically
from daq_bench.rig.base.event_lines import span_line, string, tag
from daq_bench.rig.base.influx import DATABASE, HISTORY, Influx, InfluxError, check
from daq_bench.rig.candidate.lock import exclusive
from daq_bench.rig.telemetry.agent import replay
from daq_bench.rig.telemetry.influx_counts import counts_document

if TYPE_CHECKING:  # a quarter of a command's start: loaded by what speaks to a server
    from influxdb_client import Point  # type: ignore[attr-defined]

TIMEOUT_MS = 5000
DELIVERED = "verdict-delivered"  # file in telemetry/, outside of the sealed evidence
REPLAYED_ACCOUNT = "telemetry/account-after-replay.json"  # outside of it, too
REPORT = "report.html"
BEGUN, JUDGING = "BEGUN", "JUDGING"  # in the place of an outcome's word, while there is no outcome
EVENTS_PER_WRITE = 5000
KEPT_BY_RUN = re.compile(r",kind=(busy|verdict)(,|$)")
RUN_TAG = re.compile(r",run=(?:\\.|[^,\\])*")


def server_version(influx: Influx) -> str | None:
    """The server's version; None when it does not answer."""
    from influxdb_client import InfluxDBClient  # type: ignore[attr-defined]
    from influxdb_client.rest import ApiException
    from urllib3.exceptions import HTTPError

    try:
        with InfluxDBClient(url=influx.url, token=influx.token, org=influx.organisation, timeout=TIMEOUT_MS) as client:
            version: str = client.version()
            return version
    except (ApiException, HTTPError, OSError):
        return None


def verdict_points(bundle: Bundle) -> list[Point]:
    """The run's verdict and each requirement's as points `bench_verdict`, timed at the end of the run."""
    verdict = bundle.read("verdict.json")
    if verdict is None:
        return []
    overall = _verdict_point(bundle, "overall").field("outcome", verdict["outcome"])
    points = [overall.field("word", _word(bundle, verdict))]
    for requirement in verdict["requirements"]:
        point = _verdict_point(bundle, requirement["id"]).field("outcome", requirement["outcome"])
        values = {name: requirement.get(name) for name in ("measured", "margin_percent")}
        for name, value in {**values, "bound": requirement.get("scaled_bound")}.items():
            if value is not None:
                point.field(name, float(value))
        for name in ("decision", "text", "unit"):
            if requirement.get(name):
                point.field(name, requirement[name])
        points.append(point)
    if (bundle.path / REPORT).exists():
        for point in points:
            point.field("report", report_path(bundle))
    return points


def begin_line(bundle: Bundle) -> str:
    """A point `bench_run` at the run's begin: until its verdict comes it is the candidate's newest, also when the run breaks off."""
    line: str = _run_point(bundle, bundle.run.started).field("word", BEGUN).to_line_protocol()
    return line


def judging_line(bundle: Bundle) -> str:
    """A point `bench_run` at the run's end, whose place the verdict's own point takes: of the same time and series."""
    line: str = _run_point(bundle, _end(bundle)).field("word", JUDGING).to_line_protocol()
    return line


def run_point(bundle: Bundle) -> Point | None:
    """The run itself as a point `bench_run`; None before its verdict."""
    verdict = bundle.read("verdict.json")
    if verdict is None:
        return None
    started, finished = bundle.run.started, _end(bundle)
    point = _run_point(bundle, finished)
    point.field("started_ns", nanoseconds(started)).field("outcome", verdict["outcome"])
    point.field("word", _word(bundle, verdict))
    for name, text in _advice(bundle).items():
        point.field(name, text)
    point.field("duration_s", (finished - started).total_seconds())
    trigger = trigger_ns(bundle)
    if trigger is not None:
        point.field("trigger_ns", trigger)
    if (bundle.path / REPORT).exists():
        point.field("report", report_path(bundle))
    return point


def _advice(bundle: Bundle) -> dict[str, str]:
    """The texts of the run's report, each on one line. An empty cause is written, too: it takes the place of an earlier one. A verdict that
    this bench cannot read has none."""
    verdict = _readable(bundle)
    if verdict is None:
        return {}
    advice = advice_of(bundle.path, bundle.run, verdict)
    return {"likely_cause": advice.cause, "next_step": advice.step.line.replace("\n", " ")}


def _word(bundle: Bundle, stored: dict[str, Any]) -> str:
    verdict = _readable(bundle)
    return word_of(verdict) if verdict else str(stored["outcome"])


def _readable(bundle: Bundle) -> Verdict | None:
    """Returns the verdict; None for one of another version of the bench."""
    try:
        return bundle.find("verdict.json", Verdict)
    except BenchError:
        return None


def _verdict_point(bundle: Bundle, requirement: str) -> Point:
    """Its run is a field: as a tag it would make a series for each requirement of each night, for ever."""
    point = _point(bundle, "bench_verdict", _end(bundle), requirement=requirement)
    point.field("of_run", bundle.id)
    return point


def _run_point(bundle: Bundle, at: datetime) -> Point:
    return _point(bundle, "bench_run", at, run=bundle.id, profile=bundle.run.requirement.id)


def _point(bundle: Bundle, measurement: str, at: datetime, **tags: str) -> Point:
    """Returns a point of this run with the tags by which runs are compared."""
    from influxdb_client import Point  # type: ignore[attr-defined]

    run = bundle.run
    first = next(iter(run.target.drives), None)
    known = {
        "host": run.candidate.name,
        "scenario": run.scenario.id,
        "model": first and first.model,
        "firmware": first and first.firmware,
        **tags,
    }
    point: Point = Point(measurement).time(at)
    for key, value in known.items():
        if value:
            point.tag(key, value)
    return point


def _end(bundle: Bundle) -> datetime:
    if bundle.run.finished is None:
        raise BenchError(
            f"{bundle.path}/run.json: finished_utc is null: the run did not end, and has no place in the history"
        )
    return bundle.run.finished


def report_path(bundle: Bundle) -> str:
    """Returns the report's path below the folder of the runs, wherever that is served from."""
    return f"{bundle.id}/{REPORT}"


def nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1e6) * 1000


def trigger_ns(bundle: Bundle) -> int | None:
    """Returns when the run's first record began, on the candidate's clock: two runs are aligned there. None: nothing was loaded."""
    record: dict[str, Any] = bundle.read("results/snb_record.json") or {}
    for repetition in record.get("repetitions", []):
        return nanoseconds(moment(repetition["minidaq"]["started_utc"]))
    starts = []
    for file in sorted((bundle.path / "results").glob("*.json")):
        document = bundle.read(f"results/{file.name}") or {}
        starts += [float(one["start_utc_s"]) for one in document.get("sustained", [])]
    return int(min(starts) * 1e6) * 1000 if starts else None


def event_lines(bundle: Bundle) -> list[str]:
    """The run's events in line protocol, with those from after the agent's end."""
    if not bundle.workload_file.exists():
        return []
    host = re.sub(r"([,= ])", r"\\\1", bundle.run.candidate.name)
    # Not by read_text, for which a CR, as an older bench stored it in a text, ends a line.
    text = bundle.workload_file.read_bytes().decode("utf-8", "replace")  # a full disk tears a line within a character
    return [
        kept_event(line.replace("bench_event,", f"bench_event,host={host},", 1))
        for line in text.replace("\r", " ").split("\n")
        if line.startswith("bench_event,")
    ]


def kept_event(line: str) -> str:
    """Returns an event's line as the history keeps it: without the tag `run`, unless dashboards and alerts look for it there by run. The
    run of any other follows from its candidate and time (`bench_run` has both): runs of one candidate never overlap."""
    head, space, rest = line.partition(" text=")
    if KEPT_BY_RUN.search(head):
        return line
    return RUN_TAG.sub("", head) + space + rest


def publish(path: Path, influx: Influx) -> str | None:
    """Writes verdict, run, events and aligned series into the history; returns why InfluxDB did not take them, or None.

    A line that InfluxDB will never take, as a full disk may leave one, is set aside with its reason (`set_aside`): it keeps back nothing
    else. Doing it again changes nothing."""
    bundle = Bundle.open(path)
    run = run_point(bundle)
    points = [*verdict_points(bundle), *([run] if run else [])]
    events = [*event_lines(bundle), *busy_lines(bundle), *aligned_lines(bundle)]
    batches = [[point.to_line_protocol() for point in points]]
    batches += [events[at : at + EVENTS_PER_WRITE] for at in range(0, len(events), EVENTS_PER_WRITE)]
    try:
        refused = [one for batch in batches for one in _refused(influx, batch)]
    except InfluxError as error:
        return f"{error}{_remedy(influx, error)}"
    write_atomically(path / "telemetry" / DELIVERED, "".join(refused))
    return None


def _refused(influx: Influx, lines: list[str]) -> Iterator[str]:
    """Writes lines, and yields those that InfluxDB will never take, each below its reason: it does not say which, halves tell. Raises
    InfluxError for whatever is no line's fault."""
    try:
        influx.write(influx.history, "\n".join(lines))
    except InfluxError as error:
        if len(lines) == 1 and error.blames_lines:
            yield f"# {error}\n{lines[0]}\n"
            return
        if len(lines) < 2 or not (error.blames_lines or error.status == TOO_LARGE):
            raise
        middle = len(lines) // 2
        yield from _refused(influx, lines[:middle])
        yield from _refused(influx, lines[middle:])


def set_aside(path: Path) -> str:
    """Returns what to tell of lines that InfluxDB refused for good when the run was published; empty without any."""
    file = path / "telemetry" / DELIVERED
    count = sum(line.startswith("# ") for line in file.read_text(encoding="utf-8").split("\n")) if file.exists() else 0
    return f"InfluxDB refused {count} lines of the history for good; {file} has them and the reasons" if count else ""


def _remedy(influx: Influx, error: InfluxError) -> str:
    if HISTORY not in str(error):
        return ""
    create = f'CREATE RETENTION POLICY "{HISTORY}" ON "{influx.database}" DURATION INF REPLICATION 1'
    return f". `make observability` creates it; by hand, on 1.8: {create}; on 2.x: a bucket named {influx.history}"


def undelivered(path: Path) -> bool:
    """Says whether the finished run in `path` holds telemetry or a verdict that InfluxDB has not got."""
    folders = spool_folders(path)
    if not folders or not (path / "verdict.json").exists():
        return False
    return any(map(_is_behind, folders)) or not (path / "telemetry" / DELIVERED).exists()


def _is_behind(folder: Path) -> bool:
    cursor = find_document(folder, CURSOR_FILE) or {"delivered_bytes_offset": 0}
    return bool(cursor["delivered_bytes_offset"] < (folder / POINTS_FILE).stat().st_size)


def replay_run(agent: Path, path: Path, influx: Influx) -> str | None:
    """Delivers all that InfluxDB lacks of one run, and accounts for it again; returns why something was kept back, or None."""
    for folder in spool_folders(path):
        replayed = replay(agent, folder, influx)
        if replayed.returncode != 0:
            return replayed.stderr.strip() or f"the replay ended with status {replayed.returncode}"
    problem = publish(path, influx)
    account_again(Bundle.open(path), influx)
    return problem


def forget_delivery(path: Path) -> None:
    """Lets the next replay deliver the run from its begin. Points that InfluxDB has are overwritten by equal ones."""
    for name in ("cursor.json", DELIVERED):
        (path / "telemetry" / name).unlink(missing_ok=True)


def account_again(bundle: Bundle, influx: Influx) -> TelemetryAccount | None:
    """The account as it stands now, beside the sealed one of the run's end; None for a run without an agent's account."""
    before = bundle.find(telemetry_account.COUNTS, InfluxCounts)
    if before is None:
        return None
    counts = structs.replace(counts_document(influx, bundle, before.stopped_utc), workload_bytes=before.workload_bytes)
    account = telemetry_account.of_counts(bundle.path, counts)
    if account is not None:
        bundle.write(REPLAYED_ACCOUNT, account)
    return account


def replay_earlier(agent: Path, runs: Path, influx: Influx) -> Iterator[str]:
    """Delivers what outages kept back, run by run; yields the id of each run that is now complete.

    A run whose candidate is being qualified is left alone: it may be that very run, which delivers for itself."""
    for file in sorted(runs.glob("*/run.json")):
        candidate = (find_document(file.parent, file.name) or {}).get("candidate", {}).get("name")
        if file.parent.is_symlink() or not candidate or not _is_due(file.parent):
            continue
        try:
            with exclusive(candidate, "delivering what an outage kept back"):
                kept_back = replay_run(agent, file.parent, influx)
        except BenchError:  # in use, or damaged: `daq-bench replay` reports it
            continue
        if not kept_back:
            yield file.parent.name
        elif not _takes_writes(influx):
            return


def _takes_writes(influx: Influx) -> bool:
    """Says whether a run that was kept back is at fault itself: the next one may be delivered all the same."""
    try:
        return check(influx) is None
    except RefusedError:
        return False


def _is_due(path: Path) -> bool:
    """Says whether a run has undelivered telemetry; False for a damaged one, which `daq-bench replay` reports."""
    try:
        return undelivered(path)
    except BenchError:
        return False


def influx_of(telemetry: TelemetryOfRun) -> Influx:
    """Returns the server that a run used, by its run.json; without its tokens."""
    return Influx(
        url=telemetry.influx_url,
        database=telemetry.database or DATABASE,
        organisation=telemetry.organisation,
        configured=telemetry.configured,
    )


def aligned_lines(bundle: Bundle) -> Iterator[str]:
    """Yields the measurement `aligned_run`: two runs are compared by it (reports/daq_bench/bench_dashboards/boards/compare.py).

    One series for a run, for ever: loads are told apart by a field, drives by the names of fields. Two loads have points of one time, of
    which InfluxDB would keep one; so those of the n-th load come n - 1 ns later. Steps are whole milliseconds."""
    head = f"aligned_run,host={tag(bundle.run.candidate.name)},run={tag(bundle.id)}"
    places: dict[str, int] = {}
    for point in aligned.points(bundle.path, bundle.run):
        device = f"{tag(point.device)}_" if point.device else ""
        fields = ",".join(f"{device}{name}={value!r}" for name, value in point.fields.items())
        later_ns = places.setdefault(point.load, len(places))
        yield f"{head} load={string(point.load)},{fields} {point.time_ns + later_ns}"


def busy_lines(bundle: Bundle) -> Iterator[str]:
    """Yields each time that a record's dataflow was BUSY, as a span: only the record's own account knows them."""
    host = f",host={tag(bundle.run.candidate.name)}"
    for begin_s, end_s, text in aligned.busy_spans(bundle.path):
        line = span_line(bundle.id, "busy", "snb_record", text, round(begin_s * 1e9), round(end_s * 1e9))
        yield line.replace("bench_event", f"bench_event{host}", 1)
