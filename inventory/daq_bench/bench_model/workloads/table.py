"""Every workload that a scenario may name, with its model: `MODEL` of `daq_bench.workloads.<name>.model` where the workload is a folder;
else of `bench_model.workloads.<name>`, or of `model` in its room."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.workloads.model import Model


def part_of(name: str, part: str, elsewhere: str, own: str) -> str:
    """The module that has a part of a workload: `daq_bench.workloads.<name>.<part>` where the workload is a folder; else the module
    `elsewhere`, or `own` in the room of that name."""
    if find_spec(f"daq_bench.workloads.{name}") is not None:
        return f"daq_bench.workloads.{name}.{part}"
    spec = find_spec(elsewhere)
    return f"{elsewhere}.{own}" if spec is not None and spec.submodule_search_locations is not None else elsewhere


def model_of(name: str) -> Model:
    """Raises ImportError for a workload that the scenario's schema names and that nobody wrote."""
    module = part_of(name, "model", f"daq_bench.bench_model.workloads.{name}", "model")
    found = getattr(import_module(module), "MODEL", None) if find_spec(module) is not None else None
    if not isinstance(found, Model):
        raise ImportError(
            f"workload {name!r} has no model: write {module} with a daq_bench.bench_model.workloads.model.Model called MODEL"
        )
    return found


MODELS: dict[str, Model] = {name: model_of(name) for name in workload_names()}
