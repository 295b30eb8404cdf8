"""Scenarios: workloads with their parameters. Raises ProfileError (file, line, field, remedy) for what a run could trip over later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.calling import typed
from daq_bench.bench_model.base.errors import BenchError, ProfileError
from daq_bench.bench_model.base.load import Demand
from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.profiles.common import check_id, plain
from daq_bench.bench_model.profiles.composed import check_alone, read_scenario
from daq_bench.bench_model.profiles.metrics import ResultMetric
from daq_bench.bench_model.profiles.sizes import sizes_in_bytes
from daq_bench.bench_model.profiles.yaml_source import check, load_schema


def workload_names() -> list[str]:
    """Every workload, in the order of a report: what a scenario's schema names is the table that all rooms read."""
    return list(load_schema("scenario")["properties"]["workloads"]["properties"])


def metric_is_of(metric: str, workload: str, parameters: Mapping[str, Any]) -> bool:
    """A workload yields all metrics that begin with its name, unless its scenario lists which."""
    listed = parameters.get("yields")
    return metric.partition(".")[0] == workload if listed is None else metric in listed


@dataclass(frozen=True)
class Scenario:
    """A scenario: workloads with their parameters (sizes already in bytes), at a scale and for a duration."""

    id: str
    title: str
    file: Path
    scale: float
    duration_s: float | None  # of the paced record; None where the scenario has none
    repetitions: int
    repetitions_max: int  # more than `repetitions`: workloads that can, go on until their requirements are decided
    seed: int
    workloads: dict[str, dict[str, Any]]
    document: dict[str, Any]

    @property
    def demand(self) -> Demand:
        """The paced load of `snb_record`; zero links when the scenario has no such workload."""
        record = self.workloads.get("snb_record", {"links": 0, "superchunk_bytes": 0, "superchunk_rate_hz": 0.0})
        return Demand.of(record, self.scale, self.duration_s or 0.0)

    def answers(self, metric: str) -> bool:
        """Says whether one of the workloads must produce it."""
        return any(metric_is_of(metric, name, own) for name, own in self.workloads.items())

    def altered(self, scale: float | None, duration_s: float | None) -> Scenario:
        """This scenario with the command line's scale and duration in force, also in its document. Raises BenchError."""
        for key, option, value in (("scale", "--scale", scale), ("duration_s", "--duration", duration_s)):
            most = load_schema("scenario")["properties"][key]["maximum"]
            if value is not None and not 0 < value <= most:  # neither is not-a-number
                raise BenchError(
                    f"{typed(option, in_digits(value, 15))} was asked for; it must be above 0 and at most {most}"
                )
        asked = {"scale": scale or self.scale, "duration_s": duration_s or self.duration_s}
        changed = {key: value for key, value in asked.items() if value is not None}
        return replace(self, **changed, document={**self.document, **changed})  # type: ignore[arg-type]


def load_scenario(file: Path, stored: bool = False) -> Scenario:
    """The scenario in `file`, put together with those that it extends, its sizes turned into bytes. `stored`: in a run bundle."""
    source = read_scenario(file)
    if stored:
        check_alone(source)
    check(source, "scenario")
    document = plain(source.data)
    check_id(source, document["id"])
    workloads = {
        name: sizes_in_bytes(source, ("workloads", name), workload) for name, workload in document["workloads"].items()
    }
    if "snb_record" in workloads and "duration_s" not in document:
        raise source.error((), "has the workload snb_record and no duration_s", "Add the record's length in s")
    repetitions = document.get("repetitions", 1)
    if document.get("repetitions_max", repetitions) < repetitions:
        raise source.error(
            ("repetitions_max",),
            f"is less than repetitions, {repetitions}",
            "Write the larger of the two, or remove it",
        )
    return Scenario(
        id=document["id"],
        title=document["title"],
        file=file,
        scale=float(document.get("scale", 1)),
        duration_s=float(document["duration_s"]) if "duration_s" in document else None,
        repetitions=repetitions,
        repetitions_max=document.get("repetitions_max", repetitions),
        seed=document["seed"],
        workloads=workloads,
        document=document,
    )


def check_scenario_metrics(scenario: Scenario, metrics: dict[str, ResultMetric]) -> None:
    """Raises ProfileError when a scenario says that it yields a metric that metrics.yml does not name."""
    for name, workload in scenario.workloads.items():
        for metric in workload.get("yields", ()):
            if metric not in metrics:
                error: ProfileError = read_scenario(scenario.file).error(
                    ("workloads", name, "yields"),
                    f"metric {metric!r} is not in inventory/metrics.yml",
                    "Correct its name",
                )
                raise error
