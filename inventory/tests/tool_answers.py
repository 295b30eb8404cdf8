"""Answers of tools as their types, made of what a tool once wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from daq_bench.bench_model.documents.struct import Kind, read

RECORDED = Path(__file__).parent / "recorded"
OF_THE_RIG = Path(__file__).resolve().parents[2] / "robot-suites" / "tests" / "recorded"


def answer(kind: type[Kind], file: Path, **changes: Any) -> Kind:
    """The recorded answer with `changes`, each of an object's fields by itself. A field that the type does not have is refused."""
    return read(_merged(json.loads(file.read_text(encoding="utf-8")), changes), kind, file.name)


def _merged(node: Any, changes: Any) -> Any:
    if not isinstance(node, dict) or not isinstance(changes, dict):
        return changes
    return node | {key: _merged(node.get(key), one) for key, one in changes.items()}
