"""Did the run measure what it planned to, and did each tool end well? The plan is the scenario in force, in run.json.

A row of the plan that the results lack, that stands there twice, or that does not count is a hole: a *limiting* finding with its name.
Metrics are taken over the rows that are there, so that without this a row that died would let the others pass. A tool that did not
end as `complete` or `intact` speaks of the candidate where its target failed, and of the bench otherwise (see `OF_STATUS`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from daq_bench.bench_model.documents.run import Run
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.target_failures import PURGE_FAILURE, failure_of, sentence
from daq_bench.bench_model.workloads.plan import (
    EMPTY,
    INVALIDATES,
    LIMITS,
    Coverage,
    Gap,
    Held,
    Plan,
    Problem,
    as_asked,
    plan_of,
)
from daq_bench.bench_model.workloads.table import MODELS


def gaps(run: Run, results: dict[str, Document]) -> Iterator[Gap]:
    """All gaps of all workloads that the scenario names. A result that was never written is left to the metrics that read it."""
    scenario = run.scenario
    workloads = scenario.parameters.get("workloads")
    if not isinstance(workloads, dict) or not workloads:
        yield Gap("The scenario in run.json names no workload, so that nothing was planned", INVALIDATES, "run.json")
        return
    if unpurged := failure_of(results):
        yield Gap(sentence(unpurged), EMPTY, PURGE_FAILURE)
    for key in ("scale", "seed", "repetitions", "repetitions_max"):
        own = getattr(scenario, key)
        told = scenario.parameters.get(key, own)
        if told != own or isinstance(told, bool):
            text = f"run.json contradicts itself: scenario.{key} is {own} and its parameters say otherwise"
            yield Gap(text, INVALIDATES, "run.json")
    for name in MODELS.keys() - workloads.keys():
        file = f"results/{name}.json"
        if file in results:
            yield Gap(f"{name}: there is a result, and the scenario does not name it", INVALIDATES, file)
    for name in workloads:
        if unpurged and f"results/{name}.json" not in results:
            continue  # what the run lacks after that, it lacks because of it
        yield from _of_workload(run, name, results)


def nothing_counts(run: Run, results: dict[str, Document]) -> bool:
    """Says whether all rows of some measurement were refused, so that nobody knows what it would have missed."""
    return any(gap.effect == EMPTY for gap in gaps(run, results))


def _of_workload(run: Run, name: str, results: dict[str, Document]) -> Iterator[Gap]:
    file, model = f"results/{name}.json", MODELS.get(name)
    if model is None:
        yield Gap(f"{name}: this bench does not know how to tell whether the plan was covered", INVALIDATES, file)
        return
    document = results.get(file)
    if document is None:
        yield Gap(f"{name}: {file} was not written, or is not what the bench writes", LIMITS, file)
        return
    yield from _counted(name, file, lambda: _problems(plan_of(run, name), document, model.coverage))
    for one in model.beside:
        if one.held is not None:
            yield from _of_beside(run, name, document, one.file, one.held, results.get(one.file))


def _of_beside(
    run: Run, name: str, document: Document, file: str, held: Held, beside: Document | None
) -> Iterator[Gap]:
    if beside is None:
        yield Gap(f"{name}: {file} was not written, or is not what the bench writes", LIMITS, file)
    else:
        yield from _counted(name, file, lambda: held(plan_of(run, name), document, beside))


def _problems(plan: Plan, document: Document, covered: Coverage) -> Iterator[Problem]:
    yield from as_asked(plan, document)
    yield from covered(plan, document)


def _counted(name: str, file: str, count: Callable[[], Iterable[Problem]]) -> Iterator[Gap]:
    try:
        problems = list(count())
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RuntimeError) as error:
        # The document or the plan has another form than the workload gives it: nothing can be counted. RuntimeError: a StopIteration in a
        # generator.
        text = f"{name}: its plan cannot be held against its result ({type(error).__name__}: {error})"
        yield Gap(text, INVALIDATES, file)
        return
    for problem in problems:
        text, effect = (problem, LIMITS) if isinstance(problem, str) else problem
        yield Gap(f"{name}: {text}", effect, file)
