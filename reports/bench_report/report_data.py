"""report-data.json: everything that a report states, for machines: each text and cell that the template was given, each plotted point.

Promise: taken from the very content that was rendered, so that a number in the report and not in here cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from .dataset import Bundle
from .figures.canvas import Figure
from .figures.plotted import Panel

SCHEMA_VERSION = 1
LOOKS = frozenset({"css"})  # content of the template that states nothing


def document(
    content: Mapping[str, Any], drawn: Mapping[str, list[Panel]], made_by: Mapping[str, str]
) -> dict[str, Any]:
    """The document of a report whose template gets `content` and whose figures drew `drawn`."""
    stated = {name: plain(value) for name, value in content.items() if name not in LOOKS and not callable(value)}
    return {"schema_version": SCHEMA_VERSION, "made_by": dict(made_by), "content": stated, "figures": dict(drawn)}


def to_text(data: Mapping[str, Any]) -> str:
    return (
        json.dumps(data, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=None, separators=(",", ":")) + "\n"
    )


def plain(value: Any) -> Any:
    """The value in JSON's types."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Bundle):
        return _of_bundle(value)
    if isinstance(value, Figure):
        return {name: getattr(value, name) for name in ("name", "title", "caption", "alt")}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted((plain(one) for one in value), key=str)
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return str(value)


def _of_bundle(bundle: Bundle) -> dict[str, Any]:
    """What templates say of the bundle itself; its series stand with the figures that draw them."""
    return {
        "missing": plain(bundle.missing),
        "findings": plain(bundle.verdict.findings if bundle.verdict else ()),
        "torn": bool(bundle.host and bundle.host.torn),
        "provenance": plain(bundle.provenance),
    }


def differences(stored: Any, made: Any, at: str = "") -> Iterable[str]:
    """Where two documents differ, as paths with both values."""
    if isinstance(stored, dict) and isinstance(made, dict):
        for key in sorted(stored.keys() | made.keys()):
            yield from differences(stored.get(key), made.get(key), f"{at}.{key}".lstrip("."))
    elif isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for index, (one, other) in enumerate(zip(stored, made, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif type(stored) is not type(made) or stored != made:
        yield f"{at} is {_shown(stored)}, recomputed {_shown(made)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def values_in(data: Any) -> int:
    """How many texts and numbers it holds."""
    if isinstance(data, Mapping):
        return sum(values_in(one) for one in data.values())
    return sum(values_in(one) for one in data) if isinstance(data, list) else int(data is not None)
