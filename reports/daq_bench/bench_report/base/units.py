"""Numbers as a person reads them.

Promise: GB is 1e9 bytes and GiB is 2**30 bytes, and a function's name says which one it writes; a measured
value keeps three or four significant digits and never degenerates into "0.0"; the unit is chosen after
rounding, so that 999.96 MB/s reads 1.000 GB/s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

T = TypeVar("T")
GB = 1e9
GIB = float(2**30)
THIN = "\u202f"  # narrow no-break space: groups digits, keeps a number and its unit on one line
MINUS = "\u2212"
TIMES = "\u00d7"
NONE = "\u2013"
SIDES = {"at_least": "at least", "at_most": "at most", "equal": "exactly"}  # of a bound
SUPERSCRIPTS = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")

DECIMAL_PREFIXES = ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
BINARY_PREFIXES = ((1.0, ""), (2.0**10, "Ki"), (2.0**20, "Mi"), (2.0**30, "Gi"), (2.0**40, "Ti"))

# Units that differ by powers of ten, with their exponents. Binary ones are not here: a block of 64 KiB is a name.
DECIMAL_FAMILIES = (
    {"ns": -9, "\u00b5s": -6, "ms": -3, "s": 0},
    *({f"{prefix}{unit}": 3 * step for step, (_, prefix) in enumerate(DECIMAL_PREFIXES)} for unit in ("B/s", "B")),
)
LEAST_SHOWN, MOST_SHOWN = Decimal("0.001"), Decimal(100_000)
WHOLE_MINUTES = f"{THIN}min"  # "2 min 04 s" has no point that could move
LONG_NUMBER = re.compile(r"(?<![\w.:/-])\d{5,}(?![\w.:/-]*\w)")
WITH_UNIT = re.compile(rf"(?P<number>{MINUS}?\d[\d{THIN}]*(?:\.\d+)?){THIN}(?P<unit>[^\W\d]\w*(?:/s)?)")


def grouped(digits: str) -> str:
    """Returns the digits in groups of three from five digits on, as ISO 80000 recommends."""
    if len(digits) < 5:
        return digits
    head = len(digits) % 3
    parts = ([digits[:head]] if head else []) + [digits[i : i + 3] for i in range(head, len(digits), 3)]
    return THIN.join(parts)


def grouped_in(sentence: str) -> str:
    """The sentence with its whole numbers of five digits or more in groups; names and fractions stay as they are."""
    return LONG_NUMBER.sub(lambda match: grouped(match[0]), sentence)


def count(value: float) -> str:
    """A number of things; a fractional one keeps its significant digits."""
    if value != int(value):
        return significant(value)
    return (MINUS if value < 0 else "") + grouped(str(abs(int(value))))


def significant(value: float, digits: int = 4, *, trim: bool = False) -> str:
    """The value to so many significant digits; `trim` drops zeros that carry nothing (for exact bounds)."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a measurement")
    sign = MINUS if value < 0 else ""
    mantissa, exponent_text = f"{abs(value):.{digits - 1}e}".split("e")
    exponent = int(exponent_text)
    if exponent < -4 or exponent > 14:
        mantissa = _trimmed(mantissa) if trim else mantissa
        return f"{sign}{mantissa}{THIN}{TIMES}{THIN}10{str(exponent).translate(SUPERSCRIPTS)}"
    rounded = float(f"{mantissa}e{exponent}")
    text = f"{rounded:.{max(0, digits - 1 - exponent)}f}"
    whole, _, fraction = (_trimmed(text) if trim else text).partition(".")
    return sign + grouped(whole) + ("." + fraction if fraction else "")


def together(values: Sequence[float], digits: int = 4) -> tuple[str, ...]:
    """A value and the ends of its interval: `10`, not `10.00`, where all are whole numbers; else so many significant digits each."""
    whole = len(values) == 1 or all(value == int(value) for value in values)
    return tuple(significant(value, digits, trim=whole) for value in values)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(
    value: float, prefixes: tuple[tuple[float, str], ...], step: float, unit: str, digits: int, trim: bool
) -> str:
    """The value with the largest prefix that leaves at least 1 in front of the point, after rounding."""
    factor, prefix = prefixes[0]
    for index, (candidate, name) in enumerate(prefixes):
        factor, prefix = candidate, name
        shown = float(f"{abs(value) / factor:.{digits - 1}e}")
        if shown < step or index == len(prefixes) - 1:
            break
    if prefix == "" and value == int(value):
        return f"{count(value)}{THIN}{unit}"
    return f"{significant(value / factor, digits, trim=trim)}{THIN}{prefix}{unit}"


def decimal_rate(bytes_per_s: float, digits: int = 4, *, trim: bool = False) -> str:
    return _scaled(bytes_per_s, DECIMAL_PREFIXES, 1000.0, "B/s", digits, trim)


def decimal_size(size_bytes: float, digits: int = 4, *, trim: bool = False) -> str:
    return _scaled(size_bytes, DECIMAL_PREFIXES, 1000.0, "B", digits, trim)


def binary_rate(bytes_per_s: float) -> str:
    return _scaled(bytes_per_s, BINARY_PREFIXES, 1024.0, "B/s", 4, False)


def binary_size(size_bytes: float, digits: int = 4, *, trim: bool = True) -> str:
    return _scaled(size_bytes, BINARY_PREFIXES, 1024.0, "B", digits, trim)


def in_gb_per_s(bytes_per_s: float, digits: int = 4, *, trim: bool = True) -> str:
    return f"{significant(bytes_per_s / GB, digits, trim=trim)}{THIN}GB/s"


def in_gib_per_s(bytes_per_s: float, digits: int = 4, *, trim: bool = True) -> str:
    return f"{significant(bytes_per_s / GIB, digits, trim=trim)}{THIN}GiB/s"


def latency(us: float, digits: int = 3) -> str:
    if us == 0:
        return f"0{THIN}\u00b5s"
    rounded = float(f"{abs(us):.{digits - 1}e}")
    for limit, factor, unit in ((1.0, 1e-3, "ns"), (1e3, 1.0, "\u00b5s"), (1e6, 1e3, "ms")):
        if rounded < limit:
            return f"{significant(us / factor, digits)}{THIN}{unit}"
    return f"{significant(us / 1e6, digits)}{THIN}s"


def duration(seconds: float) -> str:
    """Seconds up to two minutes, then minutes and seconds, then hours and minutes."""
    if abs(seconds) < 1e-3 and seconds != 0:
        return latency(seconds * 1e6)
    if abs(seconds) < 120:
        return f"{significant(seconds, 3, trim=True)}{THIN}s"
    whole = round(seconds)
    if whole < 7200:
        return f"{whole // 60}{THIN}min {whole % 60:02d}{THIN}s"
    return f"{whole // 3600}{THIN}h {whole % 3600 // 60:02d}{THIN}min"


def utc(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def percent(value: float, digits: int = 3) -> str:
    return f"{significant(value, digits, trim=True)}{THIN}%"


def share_or_count(part: int, whole: int) -> str:
    """`24 %`; so small a share that nobody reads it as one is the count: `17 of 166 250 000`."""
    if 0 < part < LEAST_SHARE * whole:
        return f"{count(part)} of {count(whole)}"
    return percent(100 * part / whole)


def known(value: T | None, form: Callable[[T], str]) -> str:
    """The value as `form` writes it, or the dash of what is not known."""
    return NONE if value is None else form(value)


def share(fraction: float) -> str:
    """`0.24` as `24 %`."""
    return percent(100 * fraction)


def three(value: float) -> str:
    """Three digits: of a ratio, or of a number whose unit stands in the column's head."""
    return significant(value, 3)


def three_of_rate(bytes_per_s: float) -> str:
    return decimal_rate(bytes_per_s, 3)


def span(ends: Sequence[float], form: Callable[[float], str] | None = None) -> str:
    """`1.8 to 2.1`: both ends of an interval, or of what was seen."""
    low, high = together(ends, 3) if form is None else map(form, ends)
    return f"{low} to {high}"


def factor_text(scale: float) -> str:
    return significant(scale, 4, trim=True)


LEAST_SHARE = 1e-5  # 0.001 %
RATE_UNITS = frozenset({"B/s", "bytes_per_s"})
SIZE_UNITS = frozenset({"B", "bytes"})
BARE_UNITS = frozenset({"", "1", "count", "ratio"})
SPELLED = {"degC": "\u00b0C", "us": "\u00b5s", "percent": "%"}
MOST_DIGITS = 15  # a double holds no more


def quantity(value: float, unit: str, digits: int = 4, *, trim: bool = False) -> str:
    """A requirement's value in the requirement's own unit, so that bound and measured value compare at sight."""
    if unit in RATE_UNITS:
        return decimal_rate(value, digits, trim=trim)
    if unit in SIZE_UNITS:
        return decimal_size(value, digits, trim=trim)
    whole = value == int(value) and abs(value) < 1e15
    number = count(value) if whole else significant(value, digits, trim=trim)
    return number if unit in BARE_UNITS else f"{number}{THIN}{SPELLED.get(unit, unit)}"


def quantity_beside(value: float, bound: float, unit: str) -> str:
    """The value with as many digits as it takes to tell it from the bound: 0.9999998 is never shown as 1."""
    against = {quantity(bound, unit, digits, trim=trim) for digits in (4, MOST_DIGITS) for trim in (True, False)}
    for digits in range(4, MOST_DIGITS + 1):
        text = quantity(value, unit, digits)
        if value == bound or (text not in against and significant(value, digits) != significant(bound, digits)):
            return text
    return text


def in_one_unit(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts with one unit, where theirs differ by powers of ten: the largest in which the smallest number is at least 0.001.

    Only the point moves, so that each number keeps its significant digits. Numbers that lie too far apart stay as they are."""
    found = [match for text in texts for match in WITH_UNIT.finditer(text)]
    units = {match["unit"] for match in found}
    family = next((one for one in DECIMAL_FAMILIES if units <= one.keys()), None)
    if family is None or len(units) < 2 or any(WHOLE_MINUTES in text for text in texts):
        return texts
    sizes = [size for match in found if (size := abs(_number(match)).scaleb(family[match["unit"]]))]
    fitting = [
        unit
        for unit in units
        if sizes and min(sizes).scaleb(-family[unit]) >= LEAST_SHOWN and max(sizes).scaleb(-family[unit]) < MOST_SHOWN
    ]
    if not fitting:
        return texts
    chosen = max(fitting, key=family.__getitem__)

    def shifted(match: re.Match[str]) -> str:
        value = abs(_number(match))
        whole, _, fraction = f"{value and value.scaleb(family[match['unit']] - family[chosen]):f}".partition(".")
        sign = MINUS if match["number"].startswith(MINUS) else ""
        return f"{sign}{grouped(whole)}{'.' * bool(fraction)}{fraction}{THIN}{chosen}"

    return tuple(WITH_UNIT.sub(shifted, text) for text in texts)


def _number(match: re.Match[str]) -> Decimal:
    return Decimal(match["number"].replace(THIN, "").replace(MINUS, "-"))
