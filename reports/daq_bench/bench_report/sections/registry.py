"""The sections in the order of the report; they stand between the record and the candidate's telemetry."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.workloads.table import part_of
from daq_bench.bench_report.document.section import Maker, Section
from daq_bench.bench_report.reading.dataset.bundle import Bundle
from daq_bench.bench_report.sections.cost import cost_section
from daq_bench.bench_report.sections.dips import dips_section

DRAWN_ELSEWHERE = ("block_scan",)  # the first pages show it


def _of_workload(name: str) -> Maker:
    module = part_of(name, "report", f"daq_bench.bench_report.workloads.{name}", "section")
    if find_spec(module) is None:
        raise ImportError(f"workload {name!r} has no section: write {module} with a function `section`")
    made: Maker = import_module(module).section
    return made


MAKERS: tuple[Maker, ...] = (
    *(_of_workload(name) for name in workload_names() if name not in DRAWN_ELSEWHERE),
    dips_section,
    cost_section,
)


def sections_of(bundle: Bundle) -> list[Section]:
    made = (make(bundle) for make in MAKERS)
    return [section for section in made if section is not None]
