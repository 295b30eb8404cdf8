"""The plan of a night: `all.vars.bench_nightly` of the inventory, narrowed or replaced by the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from daq_bench.bench_model.base.errors import RefusedError
from daq_bench.bench_model.documents.nights import Job
from daq_bench.bench_model.profiles.common import plain
from daq_bench.bench_model.profiles.yaml_source import check, read_yaml
from daq_bench.rig.base.settings import Layout, Request, load_profiles
from daq_bench.rig.nightly.housekeeping import EVERYTHING, Keeping
from daq_bench.rig.nightly.notify import NOBODY, Notify, load_notify
from daq_bench.rig.run.planning import plan_run

KEY = ("all", "vars", "bench_nightly")
DEFAULT = Job("this-machine")  # the smoke run of this machine: what `daq-bench qualify` does


@dataclass(frozen=True)
class Plan:
    """Jobs in order. None: no limit, nothing deleted."""

    jobs: tuple[Job, ...]
    time_limit_s: float | None = None
    run_limit_s: float | None = None
    keeping: Keeping = EVERYTHING
    accept_wear: bool = False
    notify: Notify = NOBODY
    declared: bool = True  # False: the inventory has none


def load_plan(inventory: Path, candidates: Sequence[str] = (), scenario: str | None = None) -> Plan:
    """The inventory's plan. `candidates`: only these; one that the plan does not name runs its own scenario. `scenario`: instead of
    the plan's. Every profile is loaded before the first run begins, so that a misspelt name does not show at four in the morning.

    Raises ProfileError or BenchError that names file, line and remedy."""
    declared = load_declared(inventory)
    jobs = list(declared.jobs)
    if candidates:
        jobs = [job for job in jobs if job.candidate in candidates]
        jobs += [Job(name) for name in candidates if name not in {job.candidate for job in jobs}]
    if scenario:
        jobs = list(dict.fromkeys(structs.replace(job, scenario=scenario, requirement=None) for job in jobs))
    for job in jobs:
        asked = plan_run(load_profiles(request_of_job(job, inventory), Layout()), Layout()).consent
        if asked and not declared.accept_wear:
            raise RefusedError(
                f"{inventory}: {'.'.join(KEY)}: {job.candidate}: {asked}. No run was begun. Write accept_wear: true beside `runs`, or ask "
                "for less"
            )
    return replace(declared, jobs=tuple(jobs))


def request_of_job(job: Job, inventory: Path) -> Request:
    return Request(job.candidate, job.target, job.scenario, job.requirement, job.scale, job.duration_s, inventory)


def load_declared(inventory: Path) -> Plan:
    """The plan as the inventory states it; its profiles are not looked at."""
    source = read_yaml(inventory)
    node = source.data
    for key in KEY:
        node = node.get(key) if isinstance(node, dict) else None
    if node is None:
        return Plan((DEFAULT,), declared=False)
    check(source, "nightly-plan", KEY)
    document = plain(node)
    jobs = tuple(Job(**entry) for entry in document["runs"])
    for place, job in enumerate(jobs):
        if job in jobs[:place]:
            first = source.line_of((*KEY, "runs", jobs.index(job)))
            at = (*KEY, "runs", place)
            raise source.error(at, f"is the same as the run of line {first}", "Remove one: a night runs each once")
    return Plan(
        jobs,
        _seconds(document.get("time_limit_h")),
        _seconds(document.get("run_limit_h")),
        Keeping(
            document.get("keep_passes"),
            document.get("keep_days"),
            document.get("keep_gb"),
            frozenset(document.get("keep", ())),
        ),
        document.get("accept_wear", False),
        load_notify(document.get("notify", {}), source, (*KEY, "notify")),
    )


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else 3600.0 * hours
