"""Tells how far apart several candidates' bursts began, by their own records: each on its own clock, held against the control node's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import find_document
from daq_bench.bench_model.documents.struct import moment
from daq_bench.rig.candidate.trigger import FILE
from daq_bench.rig.run.readings import CLOCK_FILE as CLOCK

RECORD = "results/snb_record.json"
RECORD_S = 0.001  # daqwriter writes its start to the millisecond


@dataclass(frozen=True)
class Begun:
    """One burst of one candidate: when it began by the control node's clock, and how well that is known. `together`: the others."""

    candidate: str
    burst: int
    begin_s: float
    uncertainty_s: float
    together: tuple[str, ...]
    without: Mapping[str, str]


@dataclass(frozen=True)
class Skew:
    """From the first to the last beginning of one burst; the true one differs by `uncertainty_s` at most."""

    burst: int
    candidates: tuple[str, ...]
    skew_s: float
    uncertainty_s: float
    first: str
    last: str
    without: dict[str, str]

    @property
    def words(self) -> str:
        who = ", ".join(self.candidates)
        if len(self.candidates) < 2:
            text = f"burst {self.burst}: {who} began alone"
        else:
            text = (
                f"burst {self.burst}: {who} began within {self.skew_s:.3f} s (known to {self.uncertainty_s:.3f} s; "
                f"{self.first} first, {self.last} last)"
            )
        return text + "".join(f"; without {name}: {reason}" for name, reason in self.without.items())


def begun(candidate: str, bundle: Path) -> Iterator[Begun]:
    """The bursts that the bundle recorded and was triggered for. Raises BenchError where it does not say when they began."""
    told = find_document(bundle, FILE)
    if told is None:
        raise BenchError(f"{bundle.name} was given no trigger: its run ended before its burst")
    record, clock = find_document(bundle, RECORD), find_document(bundle, CLOCK)
    if record is None or clock is None:
        raise BenchError(
            f"{bundle.name} holds no {RECORD if record is None else CLOCK}: its run broke after the trigger"
        )
    try:
        difference_s, uncertainty_s = _clock(clock)
        for number, (said, one) in enumerate(zip(told["bursts"], record["repetitions"], strict=False), start=1):
            minidaq = one["minidaq"]
            # daqwriter notes its start while it prepares: the source begins between that moment and the preparation's length later.
            half_s = float(minidaq["time"]["prepare_s"]) / 2
            begin_s = moment(minidaq["started_utc"]).timestamp() + half_s - difference_s
            known_s = uncertainty_s + half_s + RECORD_S
            yield Begun(candidate, number, begin_s, known_s, tuple(said["with"]), dict(said["without"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchError(f"{bundle.name} does not say when its bursts began ({error!r})") from None


def _clock(document: Mapping[str, Any]) -> tuple[float, float]:
    """The candidate's clock minus the control node's over the load, and how well that is known, the drift between the readings included."""
    if document["same_clock"]:
        return 0.0, 0.0
    readings = [one for one in document["readings"] if one["when"] != "before the run"]
    if len(readings) < 2:
        raise ValueError("its clock was not compared before and after the load")
    differences = [float(one["difference_s"]) for one in readings]
    widest = max(float(one["uncertainty_s"]) for one in readings)
    return sum(differences) / len(differences), widest + (max(differences) - min(differences)) / 2


def skews(found: list[Begun]) -> list[Skew]:
    """One for each group that was given one trigger: a candidate that was late and began alone is a group of its own."""
    groups: dict[tuple[int, frozenset[str]], list[Begun]] = {}
    for one in found:
        groups.setdefault((one.burst, frozenset((one.candidate, *one.together))), []).append(one)
    return [_skew(burst, members, own) for (burst, members), own in sorted(groups.items(), key=lambda pair: pair[0][0])]


def _skew(burst: int, members: frozenset[str], own: list[Begun]) -> Skew:
    first, last = (pick(own, key=lambda one: one.begin_s) for pick in (min, max))
    without = {name: reason for one in own for name, reason in one.without.items()}
    without |= dict.fromkeys(members - {one.candidate for one in own}, "its record does not say when it began")
    uncertainty_s = first.uncertainty_s + last.uncertainty_s if len(own) > 1 else first.uncertainty_s
    names = tuple(sorted(one.candidate for one in own))
    return Skew(burst, names, last.begin_s - first.begin_s, uncertainty_s, first.candidate, last.candidate, without)


def document(found: list[Skew], unknown: Mapping[str, str]) -> dict[str, Any]:
    """together.json beside the runs' logs."""
    return {"schema_version": 1, "bursts": [asdict(one) for one in found], "unknown": dict(unknown)}
