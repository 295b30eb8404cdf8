"""Every workload that a scenario may name, with its model: `MODEL` of `bench_model.workloads.<name>`, or of `model` in its room."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from daq_bench.bench_model.profiles.scenarios import workload_names
from daq_bench.bench_model.workloads.model import Model


def model_of(name: str) -> Model:
    """Raises ImportError for a workload that the scenario's schema names and that nobody wrote."""
    module = f"daq_bench.bench_model.workloads.{name}"
    spec = find_spec(module)
    if spec is not None and spec.submodule_search_locations is not None:
        module, spec = f"{module}.model", find_spec(f"{module}.model")
    found = getattr(import_module(module), "MODEL", None) if spec is not None else None
    if not isinstance(found, Model):
        raise ImportError(
            f"workload {name!r} has no model: write {module} with a daq_bench.bench_model.workloads.model.Model called MODEL"
        )
    return found


MODELS: dict[str, Model] = {name: model_of(name) for name in workload_names()}
