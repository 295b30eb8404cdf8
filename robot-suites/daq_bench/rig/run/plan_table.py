"""The table of docs/scenarios.md: what each scenario costs a drive of 7.68 TB, by the plan of the sample server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from daq_bench.bench_model.base.marked_page import renew
from daq_bench.bench_model.base.units import TB, in_digits
from daq_bench.bench_model.profiles.compared_targets import compared_names
from daq_bench.rig.base.settings import Layout, Request, load_profiles
from daq_bench.rig.run.planning import RunPlan, duration_text, plan_run

SERVER, RAW = "sample", "raw"
BEGIN, END = "<!-- daq-bench plan --table -->", "<!-- end of daq-bench plan --table -->"
HEAD = "| scenario | target | time | written, TB | drive writes | can end in PASS |\n|---|---|---|---|---|---|"
SHOWS_THE_BENCH = ("-rehearsal", "-emulated")


def plan_of(scenario: str, layout: Layout) -> RunPlan:
    """The scenario on the sample server's drive: as a file system, and raw where it takes a whole drive."""
    request = Request(SERVER, scenario=scenario, inventory=layout.inventory / "sample.yml")
    profiles = load_profiles(request, layout)
    plan = plan_run(profiles, layout)
    if plan.can_pass or compared_names(profiles.scenario):
        return plan
    raw = plan_run(replace(profiles, candidate=profiles.candidate.aimed_at(RAW)), layout)
    return raw if len(raw.reasons) < len(plan.reasons) else plan


def rows(layout: Layout) -> Iterator[str]:
    for file in sorted((layout.inventory / "scenarios").glob("*.yml")):
        if file.stem.endswith(SHOWS_THE_BENCH):
            continue
        plan = plan_of(file.stem, layout)
        time = "unknown" if plan.duration_s is None else duration_text(plan.duration_s)
        written = "unknown" if plan.bytes_written is None else in_digits(plan.bytes_written / TB, 3)
        writes = "unknown" if plan.drive_writes is None else in_digits(plan.drive_writes, 2)
        kind = "raw drive" if plan.target == RAW else "file system"
        yield f"| `{plan.scenario}` | {kind} | {time} | {written} | {writes} | {'yes' if plan.can_pass else 'no'} |"


def table(layout: Layout) -> str:
    return "\n".join([HEAD, *rows(layout)])


def renew_table(page: Path, layout: Layout) -> None:
    renew(page, BEGIN, END, table(layout))
