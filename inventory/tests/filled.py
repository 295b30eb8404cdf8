"""Documents that a test composes by hand: what the test does not speak of is filled in with the least value that its type allows."""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from daq_bench.bench_model.documents.struct import Struct

LIKE = {
    "^HIST": "HIST",
    "^hot-store": "hot-store-x",
    "^lan-": "lan-x.txt",
    "64}": 64 * "0",
    "32}": 32 * "0",
    "T": "2026-01-01T00:00:00.000Z",
}


def filled(document: Any, kind: type[Struct]) -> Any:
    """The document with every field that its type demands."""
    return _filled(document, inspect.type_info(kind))


def _filled(node: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType) and node is not None:
        fitting = [one for one in kind.types if isinstance(one, _OF.get(type(node), ()))]
        return _filled(node, fitting[0]) if fitting else node
    if isinstance(kind, inspect.StructType) and isinstance(node, dict):
        made = {
            one.encode_name: _filled(node[one.encode_name], one.type) for one in kind.fields if one.encode_name in node
        }
        missing = [one for one in kind.fields if one.encode_name not in node and one.required]
        return {**node, **made, **{one.encode_name: _least(one.type) for one in missing}}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(node, list | tuple):
        return [_filled(one, kind.item_type) for one in node]
    if isinstance(kind, inspect.DictType) and isinstance(node, dict):
        return {key: _filled(one, kind.value_type) for key, one in node.items()}
    return node


_OF: dict[type, tuple[type, ...]] = {
    dict: (inspect.StructType, inspect.DictType),
    list: (inspect.ListType, inspect.VarTupleType),
    tuple: (inspect.ListType, inspect.VarTupleType),
}


def _least(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType):
        return None if any(isinstance(one, inspect.NoneType) for one in kind.types) else _least(kind.types[0])
    if isinstance(kind, inspect.StructType):
        return _filled({}, kind)
    if isinstance(kind, inspect.LiteralType):
        return kind.values[0]
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return kind.ge if kind.ge is not None else kind.gt + 1 if kind.gt is not None else 0
    if isinstance(kind, inspect.StrType):
        return next((text for part, text in LIKE.items() if part in (kind.pattern or "")), "x")
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return [_least(kind.item_type) for _ in range(kind.min_length or 0)]
    if isinstance(kind, inspect.DictType):
        return {f"name{place}": _least(kind.value_type) for place in range(kind.min_length or 0)}
    return True if isinstance(kind, inspect.BoolType) else None
