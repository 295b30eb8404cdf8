"""Whatever stands in a typed document in the place of what the bench writes is refused, with file, field and remedy. One test for all
documents: a good one is made from its type, and then spoiled at every place."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.bundle.files import parse_json
from daq_bench.bench_model.documents.events import Event
from daq_bench.bench_model.documents.nights import Baselines, NightDocument
from daq_bench.bench_model.documents.run import FurtherTarget
from daq_bench.bench_model.documents.struct import DEPTH_MAX, REMEDY, Closed, Struct, read
from daq_bench.bench_model.documents.verdict import Verdict
from daq_bench.bench_model.evidence.schemas import TOOLS, TYPES

DOCUMENTS: dict[str, type[Struct]] = {
    **TYPES,
    **TOOLS,
    "verdict.json": Verdict,
    "events.jsonl": Event,
    "facts/target-nand.json": FurtherTarget,
    "nightly.json": NightDocument,
    "baselines.json": Baselines,
}
WRITTEN_ELSEWHERE = {"Collector", "TelemetrySummary", "Outage", "ClockStep"}  # by the agent, of whatever version
READ_IN_PART = {"Reasoned"}  # what a verdict reads of documents without a type of their own
TEXTS = ("text", "2026-01-31T12:00:00.000Z", "HISTFAAA", "lan-1.txt", "hot-store-1", "EIO", 16 * "0f", 32 * "0f")
Path = tuple[str | int, ...]


def sample(kind: inspect.Type, inside: tuple[type, ...] = ()) -> Any:
    """A value of the type: the first that it allows. `inside`: the structs around it; one that holds others of itself ends there."""
    match kind:
        case inspect.StructType():
            # A value that counts has no reason why not.
            made = {one.encode_name: sample(one.type, (*inside, kind.cls)) for one in kind.fields}
            return {
                name: None if name == "reason" and "throughput_bytes_per_s" in made else one
                for name, one in made.items()
            }
        case inspect.UnionType():
            return sample(some(kind), inside)
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.ListType() | inspect.VarTupleType():
            again = isinstance(kind.item_type, inspect.StructType) and kind.item_type.cls in inside
            return [] if again else [sample(kind.item_type, inside) for _ in range(kind.min_length or 1)]
        case inspect.TupleType():
            return [sample(one, inside) for one in kind.item_types]
        case inspect.DictType():
            return {("key", "other", "third")[n]: sample(kind.value_type, inside) for n in range(kind.min_length or 1)}
        case inspect.StrType():
            return next(text for text in TEXTS if re.search(kind.pattern or "", text))
        case inspect.IntType():
            least = max(4096, kind.ge or 0)
            return least if kind.le is None else min(least, kind.le)
        case inspect.FloatType():
            return 0.5
        case inspect.BoolType():
            return True
        case inspect.AnyType():
            return "anything"
    raise TypeError(f"no sample is known of {kind}: add it here, so that documents with it are spoilt too")


def some(kind: inspect.UnionType) -> inspect.Type:
    return next(one for one in kind.types if not isinstance(one, inspect.NoneType))


def structs(
    kind: inspect.Type, at: Path = (), inside: tuple[type, ...] = ()
) -> Iterator[tuple[Path, inspect.StructType]]:
    """Each struct of the sample, and where it stands there."""
    match kind:
        case inspect.StructType() if kind.cls not in inside:
            yield at, kind
            for one in kind.fields:
                yield from structs(one.type, (*at, one.encode_name), (*inside, kind.cls))
        case inspect.UnionType():
            yield from structs(some(kind), at, inside)
        case inspect.ListType() | inspect.VarTupleType():
            yield from structs(kind.item_type, (*at, 0), inside)
        case inspect.DictType():
            yield from structs(kind.value_type, (*at, "key"), inside)


def places(kind: inspect.Type) -> Iterator[tuple[Path, inspect.Type, bool]]:
    """(where, type, may it be left out) of each field of each struct of the sample."""
    for at, part in structs(kind):
        for one in part.fields:
            yield (*at, one.encode_name), one.type, not one.required


def allowed(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def wrongs(kind: inspect.Type) -> Iterator[Any]:
    """Values that the type does not allow."""
    kinds = allowed(kind)
    if any(isinstance(one, inspect.AnyType) for one in kinds):
        return
    if not any(isinstance(one, inspect.NoneType) for one in kinds):
        yield None
    numbers = (inspect.FloatType, inspect.IntType)
    yield from () if any(isinstance(one, inspect.StrType) for one in kinds) else ("5",)
    yield from () if any(isinstance(one, inspect.BoolType) for one in kinds) else (True,)
    yield from () if any(isinstance(one, inspect.DictType | inspect.StructType) for one in kinds) else ({"a": 1},)
    yield from (
        ()
        if any(isinstance(one, inspect.ListType | inspect.VarTupleType | inspect.TupleType) for one in kinds)
        else ([1],)
    )
    yield from (math.nan, math.inf, 10**400) if any(isinstance(one, inspect.FloatType) for one in kinds) else ()
    yield from () if any(isinstance(one, numbers) for one in kinds) else (17.25,)


def spoiled(document: Any, at: Path, value: Any) -> Any:
    found = deepcopy(document)
    node = found
    for step in at[:-1]:
        node = node[step]
    node[at[-1]] = value
    return found


def without(document: Any, at: Path) -> Any:
    found = deepcopy(document)
    node = found
    for step in at[:-1]:
        node = node[step]
    del node[at[-1]]
    return found


def refused(document: Any, kind: type[Struct], file: str, field: str) -> None:
    with pytest.raises(BenchError) as said:
        read(document, kind, file)
    text = str(said.value)
    assert text.startswith(file) and REMEDY in text, text
    assert field in text or "[...]" in text, (field, text)


every = pytest.mark.parametrize(("file", "kind"), DOCUMENTS.items(), ids=DOCUMENTS.keys())


@every
def test_a_document_of_the_type_is_read(file: str, kind: type[Struct]) -> None:
    read(sample(inspect.type_info(kind)), kind, file)


@every
def test_a_value_of_another_type_is_refused_at_every_place(file: str, kind: type[Struct]) -> None:
    good = sample(inspect.type_info(kind))
    for at, expected, _ in places(inspect.type_info(kind)):
        for wrong in wrongs(expected):
            refused(spoiled(good, at, wrong), kind, file, str(at[-1]))


@every
def test_a_field_that_is_missing_is_named(file: str, kind: type[Struct]) -> None:
    good = sample(inspect.type_info(kind))
    for at, _, optional in places(inspect.type_info(kind)):
        if not optional:
            refused(without(good, at), kind, file, str(at[-1]))


@every
def test_a_field_that_nobody_knows_is_refused(file: str, kind: type[Struct]) -> None:
    good = sample(inspect.type_info(kind))
    for at, part in structs(inspect.type_info(kind)):
        if issubclass(part.cls, Closed):
            refused(spoiled(good, (*at, "forged"), 1), kind, file, "forged")
        elif part.cls.__module__.startswith("daq_bench.bench_model.documents"):
            assert part.cls.__name__ in WRITTEN_ELSEWHERE | READ_IN_PART, part.cls


@every
def test_a_key_that_stands_twice_and_nesting_without_end_are_no_document(file: str, kind: type[Struct]) -> None:
    text = json.dumps(sample(inspect.type_info(kind)))
    with pytest.raises(BenchError, match=r"twice|duplicate"):
        parse_json(f"{text[:-1]}, {text[1:]}".encode(), file)
    deep: Any = {}
    for _ in range(2 * DEPTH_MAX):
        deep = {"a": deep}
    refused(deep, kind, file, "nested")


@every
def test_what_is_no_object_is_refused(file: str, kind: type[Struct]) -> None:
    for odd in (None, [], "text", 7, True, math.nan):
        refused(odd, kind, file, "")


def test_every_type_gives_a_schema() -> None:
    for kind in DOCUMENTS.values():
        assert msgspec.json.schema(kind)
