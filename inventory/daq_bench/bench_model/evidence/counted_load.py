"""The load that was offered, as the results count it, against the one that the scenario in force asked for.

Each workload's model has its counts; bench_model.evidence.demanded_load compares the scenario with the requirement profile. A count that
is missing or no number, and a complete measurement that counts less than was asked for, contradict the run: they invalidate it. A
shortfall of a measurement that its own tool calls failed, or that is masked, is only a limit: the candidate may be the cause."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from daq_bench.bench_model.base.units import in_digits
from daq_bench.bench_model.documents.struct import Document
from daq_bench.bench_model.evidence.demanded_load import in_bytes
from daq_bench.bench_model.workloads.model import Asked, Count
from daq_bench.bench_model.workloads.table import MODELS

CUT_SHORT, CUT = ("failed", "interrupted"), "(cut short)"


def miscounted(parameters: Document, results: Mapping[str, Document]) -> Iterator[tuple[str, str, bool]]:
    """(file, sentence, invalidates) for each count that is missing, no number, or short of what the scenario asked for."""
    workloads = parameters.get("workloads")
    for name, own in workloads.items() if isinstance(workloads, dict) else ():
        file = f"results/{name}.json"
        if name not in MODELS or file not in results:
            continue
        try:
            asked = Asked(
                in_bytes(name, own),
                float(parameters.get("scale", 1)),
                float(parameters.get("duration_s", math.nan)),
                int(parameters.get("repetitions", 1)),
            )
            for count in MODELS[name].counts:
                yield from _short(file, count, asked, results[file])
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            yield (
                file,
                f"{file} cannot be held against what the scenario asked for ({type(error).__name__}: {error})",
                True,
            )


def _short(file: str, count: Count, asked: Asked, document: Document) -> Iterator[tuple[str, str, bool]]:
    found = list(_values(document, count.path.split("."), "", {}))
    if not found:
        yield file, f"{file} counts nothing under {count.path}", True
    for at, value, around in found:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            shown = "missing" if value is None else repr(value)[:60]
            yield file, f"{file}: {at} is {shown}, so that the load is not known", True
            continue
        least = count.least(asked, around)
        if least is not None and not value >= count.share * least:
            yield (
                file,
                f"{file}: {at} counts {in_digits(value, 15)} where the scenario asked for {in_digits(least, 15)}",
                not around[CUT],
            )


def _values(node: Any, path: list[str], at: str, around: Document) -> Iterator[tuple[str, Any, Document]]:
    """(path in words, number, what stands beside and above it). Unlike of a JMESPath, of this nothing missing is passed over."""
    own = node if isinstance(node, dict) else {}
    around = {**around, **own, CUT: around.get(CUT, False) or _cut_short(own)}
    key, many = path[0].removesuffix("[]"), path[0].endswith("[]")
    here, below = f"{at}.{key}" if at else key, own.get(key)
    if len(path) == 1:
        yield here, below, around
    elif not many:
        yield from _values(below, path[1:], here, around)
    else:
        for index, one in enumerate(below if isinstance(below, list) else [None]):
            yield from _values(one, path[1:], f"{here}[{index}]", around)


def _cut_short(node: Document) -> bool:
    return node.get("status") in CUT_SHORT or node.get("failed") is True or node.get("admissible") is False
