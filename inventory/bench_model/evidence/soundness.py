"""Is each document of a bundle what its writer leaves?

A document that lacks a field, has null where a number belongs, or holds a number that is not finite, is named and read no further.
A document with a type (`bench_model.evidence.schemas`) is held against it, any other against its JSON schema."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from bench_model.base.errors import ProfileError
from bench_model.bundle.evidence import Document, Evidence
from bench_model.evidence.schemas import TYPES
from bench_model.profiles.yaml_source import SCHEMAS, check_document
from bench_model.workloads.snb_record import SnbRecord

DEPTH_MAX = 64  # deeper than anything that the bench writes


def faults(evidence: Evidence) -> dict[str, str]:
    """The complaint, by file, about each document of a run that is not what its writer leaves."""
    found = {file: fault_of(file, document) for file, document in evidence.documents()}
    return {file: complaint for file, complaint in found.items() if complaint}


def fault_of(file: str, document: Document) -> str:
    """Returns the fault of one document; empty when it has none."""
    odd = _not_finite(document, file, 0)
    if odd:
        return odd
    kind = TYPES.get(file)
    try:
        if kind is not None:
            msgspec.convert(document, kind, strict=True)
        if kind is None and (SCHEMAS / f"{schema_of(file)}.schema.json").is_file():
            check_document(document, schema_of(file), file)
        for number, one in enumerate(document["repetitions"] if kind is SnbRecord else (), start=1):
            check_document(one["minidaq"], "daqwriter-minidaq", f"{file}, record {number}")
            check_document(one["verify"], "daqwriter-verify", f"{file}, read-back {number}")
    except msgspec.ValidationError as error:
        return f"{file} is not what the bench writes: {error}"
    except ProfileError as error:
        return f"{file} is not what the bench writes: {error}"
    return ""


def schema_of(file: str) -> str:
    """`results/block_scan.json`: `block-scan`."""
    return file.rpartition("/")[2].removesuffix(".json").replace("_", "-")


def _not_finite(node: Any, at: str, depth: int) -> str:
    """Names the first number that is not finite, and a document that is nested beyond anything that the bench writes."""
    if depth > DEPTH_MAX:
        return f"{at} is nested more than {DEPTH_MAX} levels deep"
    if isinstance(node, float):
        return "" if math.isfinite(node) else f"{at} is {node}: no finite number"
    if isinstance(node, dict):
        return next(filter(None, (_not_finite(one, f"{at}: {key}", depth + 1) for key, one in node.items())), "")
    if isinstance(node, list):
        if all(type(one) is float and math.isfinite(one) for one in node):
            return ""
        return next(filter(None, (_not_finite(one, f"{at}[{place}]", depth + 1) for place, one in enumerate(node))), "")
    return ""
