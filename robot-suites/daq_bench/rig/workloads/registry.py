"""Every workload that a scenario may name: `daq_bench.workloads.<name>.run` has it as WORKLOAD where the workload is a folder; else
`rig.workloads.<name>`, or the module `workload` of that room."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from daq_bench.bench_model.profiles.scenarios import Scenario, workload_names
from daq_bench.bench_model.workloads.table import part_of
from daq_bench.rig.workloads.shared.base import Workload


def _workload(name: str) -> Workload:
    elsewhere = f"daq_bench.rig.workloads.{name}"
    module = part_of(name, "run", elsewhere, "workload")
    written = next(filter(find_spec, (module, elsewhere)), None)
    loaded = import_module(written) if written else None
    if loaded is None or not hasattr(loaded, "WORKLOAD"):
        raise ImportError(f"workload {name!r} has no run: write {module} with a {Workload.__name__} called WORKLOAD")
    found: Workload = loaded.WORKLOAD
    if found.name != name:
        raise TypeError(f"{loaded.__name__} holds the workload {found.name!r}, which a scenario calls {name!r}")
    return found


WORKLOADS: dict[str, Workload] = {name: _workload(name) for name in workload_names()}


def workloads_of(scenario: Scenario) -> list[Workload]:
    """The scenario's workloads in the order of its file."""
    return [WORKLOADS[name] for name in scenario.workloads]


def declared_limits(scenario: Scenario) -> list[str]:
    """Returns the respects in which the scenario, as asked for, is no real measurement."""
    return [text for workload in workloads_of(scenario) for text in workload.limits(scenario)]
