"""Units, their conversion, and amounts in words. GB = 10^9 bytes, GiB = 2^30 bytes."""

from __future__ import annotations

from decimal import Decimal

from daq_bench.candidate_kit.sizes import UNITS as SIZE_UNITS

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
MB, GB, TB = 10**6, 10**9, 10**12

YEAR_S = 365.25 * 86400

# Each unit's dimension and its factor to the dimension's base unit (B, B/s, s, degC, K, 1, count, W, J, J/B, ...).
_UNITS: dict[str, tuple[str, float]] = {
    **{name: ("size", float(factor)) for name, factor in SIZE_UNITS.items()},
    **{f"{name}/s": ("rate", float(factor)) for name, factor in SIZE_UNITS.items()},
    "s": ("time", 1.0),
    "ms": ("time", 1e-3),
    "us": ("time", 1e-6),
    "ns": ("time", 1e-9),
    "degC": ("temperature", 1.0),
    "K": ("difference of temperatures", 1.0),
    "1": ("ratio", 1.0),
    "percent": ("ratio", 1e-2),
    "count": ("count", 1.0),
    "W": ("power", 1.0),
    "min": ("time", 60.0),
    "h": ("time", 3600.0),
    "d": ("time", 86400.0),
    "y": ("time", YEAR_S),
    "IOPS": ("operations", 1.0),
    "J": ("energy", 1.0),
    "kWh": ("energy", 3.6e6),
    "J/TB": ("energy per data", 1e-12),
    "W/(GB/s)": ("energy per data", 1e-9),
    "GB/s/U": ("rate per rack unit", 1e9),
    "s/GB": ("CPU time per data", 1e-9),
}
_OF_TEMPERATURE = ("temperature", "difference of temperatures")


def never_negative(unit: str) -> bool:
    """Says whether a quantity in `unit` is at least zero whatever is measured: a difference of temperatures, shares or powers is not."""
    return _UNITS[unit][0] not in (*_OF_TEMPERATURE, "ratio", "power")


def of_temperature(unit: str) -> bool:
    """Says whether `unit` measures a temperature or a difference of two: no ratio of either says anything."""
    return unit in _UNITS and _UNITS[unit][0] in _OF_TEMPERATURE


def dimension(unit: str) -> str:
    """`rate` of GB/s. Raises KeyError for a unit that is not known."""
    return _UNITS[unit][0]


def known_units() -> list[str]:
    return sorted(_UNITS)


def convert(value: float, from_unit: str, to_unit: str) -> float:
    """`value` in `to_unit`. Raises ValueError when the two units measure different things."""
    for unit in (from_unit, to_unit):
        if unit not in _UNITS:
            raise ValueError(f"unit {unit!r} is unknown; use one of {', '.join(known_units())}")
    from_dimension, from_factor = _UNITS[from_unit]
    to_dimension, to_factor = _UNITS[to_unit]
    if from_dimension != to_dimension:
        raise ValueError(f"{from_unit!r} is a {from_dimension} and {to_unit!r} a {to_dimension}")
    return value if from_unit == to_unit else value * from_factor / to_factor


def same_unit(earlier: str, later: str) -> bool:
    """Says whether one metric's unit is the same in an earlier run: a difference of temperatures was in degC before it was in K."""
    return earlier == later or (earlier, later) == ("degC", "K")


def convert_earlier(value: float, earlier: str, later: str) -> float:
    """As `convert`, of one metric in an earlier and in a later run."""
    return value if same_unit(earlier, later) else convert(value, earlier, later)


def binary_label(size_bytes: int) -> str:
    """`4 KiB`, `8 MiB`: the label of a block size."""
    for name, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {name}"
    return f"{size_bytes} B"


def in_digits(value: float | None, digits: int = 4) -> str:
    """`1235000` of 1234567, `0.000012`: at most so many significant digits and no exponent, for whoever reads a sentence."""
    if value is None:
        return "an unknown value"
    text = f"{value:.{digits}g}"
    return f"{Decimal(text):f}" if "e" in text else text


def rate_label(bytes_per_s: float) -> str:
    """`2.7 GB/s`, `512 MB/s`: a rate with at most three significant digits and no exponent."""
    name, factor = ("GB/s", GB) if abs(bytes_per_s) >= 999.5 * MB else ("MB/s", MB)
    value = bytes_per_s / factor
    return (
        f"{value:.0f} {name}" if abs(value) >= 999.5 else f"{value:.3g} {name}" if abs(value) >= 1e-4 else f"0 {name}"
    )


def decimal_label(size_bytes: float) -> str:
    """`18.5 GB`: an amount of data with three or four significant digits and no exponent."""
    for name, factor in (("EB", 10**18), ("PB", 10**15), ("TB", TB), ("GB", GB), ("MB", MB), ("kB", 1000)):
        if abs(size_bytes) >= factor:
            return f"{in_digits(size_bytes / factor)} {name}"
    return f"{size_bytes:.0f} B"
