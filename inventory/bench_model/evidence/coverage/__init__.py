"""Did the run measure what it planned to, and did each tool end well? The plan is the scenario in force, in run.json.

A row of the plan that the results lack, that stands there twice, or that does not count is a hole: a *limiting* finding with its name.
Metrics are taken over the rows that are there, so that without this a row that died would let the others pass. A tool that did not
end as `complete` or `intact` speaks of the candidate where its target failed, and of the bench otherwise (see `OF_STATUS`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

from bench_model.bundle.evidence import Document
from bench_model.evidence.coverage import applications, drives, nodes, scans, sets
from bench_model.evidence.coverage.scans import disturbers_of
from bench_model.profiles.scenarios import workload_names
from bench_model.workloads.plan import (
    FAILS,
    INVALIDATES,
    LIMITS,
    Beside,
    Coverage,
    Gap,
    Plan,
    Problem,
    as_asked,
    plan_of,
)
from bench_model.workloads.saturation import analysis as saturation

__all__ = ["FAILS", "INVALIDATES", "LIMITS", "Gap", "Plan", "disturbers_of", "gaps", "plan_of"]

COVERAGE: dict[str, Coverage] = {
    "snb_record": scans.snb_record,
    "block_scan": scans.block_scan,
    "thread_scan": scans.thread_scan,
    "minidaq_scan": scans.minidaq_scan,
    "latency_under_load": scans.latency_under_load,
    "interference": scans.interference,
    "steady_state": drives.steady_state,
    "thermal": drives.thermal,
    "endurance": drives.endurance,
    "saturation": drives.saturation,
    "raid_vs_3dxp": sets.raid_vs_3dxp,
    "lan": nodes.lan,
    "hot_store": nodes.hot_store,
    "streams_checksum": applications.streams_checksum,
    "concurrent_analysis": applications.concurrent_analysis,
}
# Any other workload of the scenario's schema says itself what covers its plan.
COVERAGE |= {
    name: import_module(f"bench_model.workloads.{name}").coverage for name in workload_names() if name not in COVERAGE
}
# The document that a workload's result follows from, or that follows from it, where a verdict rests on both.
BESIDE: dict[str, tuple[str, Beside]] = {
    "raid_vs_3dxp": ("results/raid_comparison.json", sets.raid_comparison),
    "lan": ("results/lan_analysis.json", nodes.lan_analysis),
    "saturation": (saturation.NAME, drives.saturation_analysis),
    "hot_store": ("results/hot_store_runs.json", nodes.hot_store_runs),
    "streams_checksum": ("results/streams_checksum_analysis.json", applications.streams_analysis),
    "concurrent_analysis": ("results/concurrent_analysis_rates.json", applications.analysis_rates),
}


def gaps(run: Document, results: dict[str, Document]) -> Iterator[Gap]:
    """All gaps of all workloads that the scenario names. A result that was never written is left to the metrics that read it."""
    scenario = run["scenario"]
    workloads = scenario["parameters"].get("workloads")
    if not isinstance(workloads, dict) or not workloads:
        yield Gap("The scenario in run.json names no workload, so that nothing was planned", INVALIDATES, "run.json")
        return
    for key in ("scale", "seed", "repetitions", "repetitions_max"):
        told = scenario["parameters"].get(key, scenario[key])
        if told != scenario[key] or isinstance(told, bool):
            text = f"run.json contradicts itself: scenario.{key} is {scenario[key]} and its parameters say otherwise"
            yield Gap(text, INVALIDATES, "run.json")
    for name in COVERAGE.keys() - workloads.keys():
        file = f"results/{name}.json"
        if file in results:
            yield Gap(f"{name}: there is a result, and the scenario does not name it", INVALIDATES, file)
    for name in workloads:
        yield from _of_workload(run, name, results)


def _of_workload(run: Document, name: str, results: dict[str, Document]) -> Iterator[Gap]:
    file, covered = f"results/{name}.json", COVERAGE.get(name)
    if covered is None:
        yield Gap(f"{name}: this bench does not know how to tell whether the plan was covered", INVALIDATES, file)
        return
    document = results.get(file)
    if document is None:
        yield Gap(f"{name}: {file} was not written, or is not what the bench writes", LIMITS, file)
        return
    yield from _counted(name, file, lambda: _problems(plan_of(run, name), document, covered))
    if name not in BESIDE:
        return
    other, held = BESIDE[name]
    beside = results.get(other)
    if beside is None:
        yield Gap(f"{name}: {other} was not written, or is not what the bench writes", LIMITS, other)
    else:
        yield from _counted(name, other, lambda: held(plan_of(run, name), document, beside))


def _problems(plan: Plan, document: Document, covered: Coverage) -> Iterator[Problem]:
    yield from as_asked(plan, document)
    yield from covered(plan, document)


def _counted(name: str, file: str, count: Callable[[], Iterable[Problem]]) -> Iterator[Gap]:
    try:
        problems = list(count())
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, StopIteration) as error:
        # The document or the plan has another form than the workload gives it: nothing can be counted.
        text = f"{name}: its plan cannot be held against its result ({type(error).__name__}: {error})"
        yield Gap(text, INVALIDATES, file)
        return
    for problem in problems:
        text, effect = (problem, LIMITS) if isinstance(problem, str) else problem
        yield Gap(f"{name}: {text}", effect, file)
