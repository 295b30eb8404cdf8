"""The cost of a run: hours, data written, energy. A pure function of the bundle; a value that was not measured is null, with the reason."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

from daq_bench.bench_model.behaviour import record_power
from daq_bench.bench_model.bundle.files import find_document, read_structs
from daq_bench.bench_model.bundle.line_protocol import Point
from daq_bench.bench_model.bundle.telemetry_files import points_of_bundle
from daq_bench.bench_model.documents.derived import Cost, Phase
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document, moment

MEASUREMENTS = {"block_device", record_power.MEASUREMENT}
FIELDS = ("written_bytes", record_power.FIELD, record_power.UNREAD)
J_PER_KWH = 3.6e6
ENDURANCE = "results/endurance.json"


def of_bundle(bundle: Path, run: Run) -> Cost:
    """results/cost.json of a finished run."""
    events = read_structs(bundle, "events.jsonl", Event)
    ended = run.finished_utc or (events[-1].time_utc if events else run.started_utc)
    return ledger(bundle, run, events, _seconds(ended))


def so_far(bundle: Path, run: Run, now_s: float) -> Document:
    """The totals of a run that is going on, as they stand at `now_s` (s since 1970 UTC)."""
    document = ledger(bundle, run, read_structs(bundle, "events.jsonl", Event), now_s)
    return {key: getattr(document, key) for key in ("hours", "written_bytes", "energy_kwh")}


def ledger(bundle: Path, run: Run, events: list[Event], end_s: float) -> Cost:
    """The whole account from the run's start to `end_s`."""
    begin_s = _seconds(run.started_utc)
    names = run.target.names
    written, energy_j, watched_s = _counted(points_of_bundle(bundle, MEASUREMENTS, FIELDS), names, end_s)
    total = sum(written.values()) if written else None
    reasons = {}
    if total is None:
        which = f"drive {', '.join(names)}" if names else "the target, which no drive carries"
        reasons["cost.written"] = f"no telemetry counts what was written to {which}"
    if energy_j is None:
        reasons["cost.energy"] = "no power meter: the telemetry holds no BMC power readings (DCMI)"
    nand = _nand_written(find_document(bundle, ENDURANCE))
    if nand is None:
        reasons["cost.nand_written"] = "no drive's own log of NAND writes was read in this run"
    return Cost(
        schema_version=1,
        hours=_hours(end_s - begin_s),
        phases=_phases(events, end_s),
        written_bytes=total,
        written_bytes_per_drive=written,
        nand_written_bytes=nand,
        energy_kwh=None if energy_j is None else round(energy_j / J_PER_KWH, 9),
        energy_source=None if energy_j is None else "ipmi_power (the whole server, by its BMC)",
        energy_hours=_hours(watched_s),
        reasons=reasons,
    )


def _counted(points: Iterable[Point], drives: list[str], end_s: float) -> tuple[dict[str, int], float | None, float]:
    """Bytes written per drive; energy in J (None without readings) and the time in s that it covers."""
    last: dict[str, int] = {}
    written: dict[str, int] = {}
    power: list[record_power.Reading] = []
    for point in points:
        at_s = point.time_ns / 1e9
        if at_s > end_s:
            continue
        power += record_power.readings_of([point])
        device = point.tags.get("device", "")
        if device in drives and "written_bytes" in point.fields:
            counter = int(point.fields["written_bytes"])
            before = last.get(device, counter)
            # A counter that fell began again at zero: the candidate was rebooted.
            written[device] = written.get(device, 0) + (counter - before if counter >= before else counter)
            last[device] = counter
    power.sort(key=itemgetter(0))
    ends = [*(at for at, _ in power[1:]), end_s]
    # A reading holds until the next: one that the BMC repeats is not reported again.
    held = [(end - at, watts) for (at, watts), end in zip(power, ends[: len(power)], strict=True) if watts is not None]
    if not held:
        return written, None, 0.0
    return written, sum(seconds * watts for seconds, watts in held), sum(seconds for seconds, _ in held)


def _nand_written(document: Document | None) -> int | None:
    """Bytes onto the NAND during the endurance workload, by the drives' own logs; None where one of them keeps none."""
    if document is None:
        return None
    before, after = ({drive["id"]: drive["nand_bytes"] for drive in document[key]} for key in ("at_start", "at_end"))
    if not after or before.keys() != after.keys() or None in (*before.values(), *after.values()):
        return None
    return sum(int(after[drive]) - int(before[drive]) for drive in after)


def _phases(events: list[Event], end_s: float) -> list[Phase]:
    """The run's phases in order, each until the next begins; the steps of one are added up."""
    starts = [(event.source, event.time_s) for event in events if event.kind == "phase"]
    starts = [(name, at) for name, at in starts if at < end_s]  # what follows a finished run is not its own
    seconds: dict[str, float] = {}
    ends = [*(at for _, at in starts[1:]), end_s][: len(starts)]
    for (name, at), following in zip(starts, ends, strict=True):
        seconds[name] = seconds.get(name, 0.0) + following - at
    return [Phase(name, _hours(value)) for name, value in seconds.items()]


def _seconds(utc: str) -> float:
    return moment(utc).timestamp()


def _hours(seconds: float) -> float:
    return round(seconds / 3600, 6)
