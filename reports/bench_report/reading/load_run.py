"""Reads run.json, verdict.json, facts/ and events.jsonl into the dataset's types.

Promise: fields that the report cannot do without (run id, candidate, scenario, requirement, dates) are demanded by name;
any other field may be absent and then is None, but never of the wrong type.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench_model.base.errors import BenchError
from bench_model.documents.struct import read
from bench_model.documents.verdict import Verdict
from bench_report.base.errors import BundleError
from bench_report.base.fields import Node, parse_document, read_text
from bench_report.reading.dataset.machine import Setting
from bench_report.reading.dataset.run import Candidate, Demand, Device, Run, Target
from bench_report.reading.dataset.telemetry import Event

STATES = ("running", "finished", "interrupted", "error")


def choice(node: Node, allowed: tuple[str, ...]) -> str:
    value = node.as_text()
    if value not in allowed:
        raise BundleError(node.where, f"expected one of {', '.join(allowed)}, found '{value}'")
    return value


def moment(node: Node) -> datetime:
    text = node.as_text()
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise BundleError(node.where, f"'{text}' is not a time in ISO 8601") from error
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def run_of(node: Node) -> Run:
    scenario, requirement, git = node.at("scenario"), node.at("requirement"), node.find("git")
    finished, target, demand = node.find("finished_utc"), node.find("target"), node.find("demand")
    return Run(
        run_id=node.at("run_id").as_text(),
        state=choice(node.at("state"), STATES),
        state_reason=node.text("state_reason"),
        started=moment(node.at("started_utc")),
        finished=moment(finished) if finished else None,
        candidate=_candidate(node.at("candidate")),
        target=_target(target) if target else None,
        scenario_id=scenario.at("id").as_text(),
        scenario_title=scenario.text("title"),
        scenario_file=scenario.text("file"),
        scale=scenario.number("scale"),
        seed=scenario.integer("seed"),
        repetitions=scenario.integer("repetitions"),
        workloads=_workloads(scenario.find("parameters")),
        lengths=tuple(_lengths(scenario.find("parameters"))),
        scenario_source=parameters.text("source") if (parameters := scenario.find("parameters")) else None,
        requirement_id=requirement.at("id").as_text(),
        requirement_title=requirement.text("title"),
        requirement_file=requirement.text("file"),
        demand=_demand(demand) if demand else None,
        versions=_shown_entries(node.find("versions")),
        environment=_shown_entries(node.find("host_environment")),
        git_commit=git.text("commit") if git else None,
        git_dirty=bool(git.flag("dirty")) if git else False,
        scaled_down=node.texts("scaled_down"),
    )


def _workloads(parameters: Node | None) -> tuple[str, ...]:
    asked = parameters.find("workloads") if parameters else None
    return tuple(name for name, _ in asked.entries()) if asked else ()


def _lengths(node: Node | None, place: str = "") -> Iterator[tuple[str, float]]:
    """Yields the numbers that a longer or repeated measurement would change, such as `workloads.block_scan.seconds_per_point`, 3."""
    if node is None or not isinstance(node.value, dict):
        return
    for key, child in node.entries():
        yield from _lengths(child, f"{place}{key}.")
        number = isinstance(child.value, int | float) and not isinstance(child.value, bool)
        if number and (key in ("duration_s", "repetitions", "rounds") or key.startswith("seconds_per_")):
            yield place + key, child.as_number()


def _shown_entries(node: Node | None) -> tuple[tuple[str, str], ...]:
    if node is None:
        return ()
    return tuple((key, child.shown()) for key, child in node.entries() if child.value is not None)


def _candidate(node: Node) -> Candidate:
    return Candidate(
        name=node.at("name").as_text(),
        description=node.text("description"),
        hostname=node.text("hostname"),
        kernel=node.text("kernel"),
        os=node.text("os"),
        cpu_model=node.text("cpu_model"),
        cpus=node.integer("cpus"),
        memory_bytes=node.number("memory_bytes"),
        numa_nodes=node.integer("numa_nodes"),
        transient_buffer_bytes=node.number("transient_buffer_bytes"),
    )


def _target(node: Node) -> Target:
    single = node.find("device")
    # An array first, then its drives; a single drive stands in both places.
    array = single.text("name") if single else None
    members = [drive for drive in node.list("drives") if drive.text("name") != array]
    nodes = ([single] if single else []) + members
    return Target(
        name=node.text("name") or None,
        kind=node.at("kind").as_text(),
        path=node.text("path"),
        filesystem=node.text("filesystem"),
        devices=tuple(_device(item) for item in nodes),
    )


def _device(node: Node) -> Device:
    link = node.find("pcie_link")
    return Device(
        name=node.at("name").as_text(),
        model=node.text("model"),
        serial=node.text("serial"),
        firmware=node.text("firmware"),
        wwn=node.text("wwn"),
        size_bytes=node.number("size_bytes"),
        numa_node=node.integer("numa_node"),
        rotational=node.flag("rotational"),
        transport=node.text("transport"),
        pcie_link=link.shown() if link else None,
        raid_level=node.text("raid_level") or None,
    )


def _demand(node: Node) -> Demand:
    return Demand(
        links=node.integer("links"),
        superchunk_bytes=node.number("superchunk_bytes"),
        superchunk_rate_hz=node.number("superchunk_rate_hz"),
        real_bytes_per_s=node.at("real_bytes_per_s").as_number(),
        nominal_bytes_per_s=node.at("nominal_bytes_per_s").as_number(),
        offered_bytes_per_s=node.number("offered_bytes_per_s"),
        duration_s=node.number("duration_s"),
    )


def verdict_of(node: Node) -> Verdict:
    """Reads a verdict. Raises BundleError that names a field which the bench does not write like that."""
    try:
        return read(node.value, Verdict, node.where)
    except BenchError as error:
        raise BundleError(node.where, str(error).removeprefix(f"{node.where}: ")) from None


def settings_of(node: Node) -> tuple[Setting, ...]:
    return tuple(_setting(item) for item in node.at("settings").items())


def _setting(node: Node) -> Setting:
    return Setting(
        id=node.at("id").as_text(),
        role=node.text("role"),
        subject=node.text("subject"),
        asked=node.text("asked"),
        before=node.text("before"),
        applied=node.text("applied"),
        read_back=node.text("read_back"),
        status=node.at("status").as_text(),
        detail=node.text("detail"),
    )


def read_events(root: Path, name: str) -> tuple[Event, ...]:
    """Every event in time order. A last line without its newline is an interrupted run's torn end."""
    text = read_text(root, name) or ""
    lines = text.split("\n")[:-1]
    nodes = (parse_document(line, f"{name}: line {number}") for number, line in enumerate(lines, 1) if line)
    return tuple(sorted((_event(node) for node in nodes), key=lambda event: event.time))


def _event(node: Node) -> Event:
    data = node.find("data")
    return Event(
        time=moment(node.at("time_utc")),
        kind=node.at("kind").as_text(),
        source=node.text("source"),
        text=node.text("text") or "",
        data=_shown_entries(data) if data and isinstance(data.value, dict) else (),
    )
