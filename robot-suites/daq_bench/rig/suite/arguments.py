"""The types of the keywords' arguments. libdoc shows what each takes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from functools import wraps
from inspect import signature
from typing import Any, get_args, get_type_hints

from daq_bench.bench_model.base.units import binary_label, convert, dimension, known_units
from daq_bench.candidate_kit.sizes import parse_size

NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
NUMBER_AND_UNIT = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


class Size(int):
    """An amount of data in bytes."""

    def __str__(self) -> str:
        return binary_label(int(self))


class Duration(float):
    """A length of time in s."""

    def __str__(self) -> str:
        return f"{float(self):g} s"


class Temperature(float):
    """A temperature in degC."""

    def __str__(self) -> str:
        return "its own warning temperature" if math.isnan(self) else f"{float(self):g} degC"


class WithoutSensor(Enum):
    """The result of a check whose drive has no temperature sensor: ``FAIL``, since nothing was shown, or ``SKIP``."""

    FAIL = "FAIL"
    SKIP = "SKIP"


EXAMPLES: dict[type, str] = {Size: "4 KiB", Duration: "2 s or 5 min", Temperature: "70 degC"}


def size(text: str | int | float) -> Size:
    """An amount of data with its unit: ``4 KiB``, ``1 GiB`` (powers of 1024), ``500 MB`` or ``2 GB`` (powers of 1000).

    A bare ``k``, ``M`` or ``G`` is refused, because it may mean either, and so is a number without a unit."""
    if not isinstance(text, str) or NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number with a unit; write for example {EXAMPLES[Size]}")
    return Size(parse_size(text))


def duration(text: str | int | float) -> Duration:
    """A length of time with its unit: ``500 ms``, ``2 s``, ``5 min``, ``1 h``. A number without a unit is refused."""
    found = Duration(_in_unit(text, "s", EXAMPLES[Duration]))
    if not math.isfinite(found):
        raise ValueError(f"{text!r} is no finite number")
    if found <= 0:
        raise ValueError(f"{text!r} is not above zero")
    return found


def temperature(text: str | int | float) -> Temperature:
    """A temperature with its unit: ``70 degC``. A number without a unit is refused."""
    return Temperature(_in_unit(text, "degC", EXAMPLES[Temperature]))


def _in_unit(text: str | int | float, unit: str, example: str) -> float:
    found = NUMBER_AND_UNIT.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"{text!r} is no number with a unit; write for example {example}")
    if found[2] not in known_units() or dimension(found[2]) != dimension(unit):
        units = ", ".join(one for one in known_units() if dimension(one) == dimension(unit))
        raise ValueError(f"{text!r} has unit {found[2]!r}; use one of {units}")
    return convert(float(found[1]), found[2], unit)


CONVERTERS: dict[type, Callable[[Any], Any] | Callable[[Any, Any], Any]] = {
    Size: size,
    Duration: duration,
    Temperature: temperature,
}


def in_units(method: Callable[..., Any]) -> Callable[..., Any]:
    """The keyword, which refuses a number without a unit. Where a converter refuses one, Robot Framework takes the type of the default.

    An argument that may be left out (`Size | None`) has the one type for Robot Framework, which drops a converter's words in a union."""
    hints = get_type_hints(method)
    kinds = {name: kind for name, hint in hints.items() for kind in EXAMPLES if kind in (hint, *get_args(hint))}

    @wraps(method)
    def checked(*arguments: Any, **named: Any) -> Any:
        given = signature(method).bind(*arguments, **named).arguments
        for name, kind in kinds.items():
            value = given.get(name)
            for one in value if isinstance(value, tuple) else (value,):
                if one is not None and not isinstance(one, kind):
                    raise ValueError(f"{name} is {one!r}, a number without a unit; write for example {EXAMPLES[kind]}")
        return method(*arguments, **named)

    checked.robot_types = {name: _without_none(hint) for name, hint in hints.items() if name != "return"}  # type: ignore[attr-defined]
    return checked


def _without_none(hint: Any) -> Any:
    kinds = [one for one in get_args(hint) if one is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in get_args(hint) else hint
