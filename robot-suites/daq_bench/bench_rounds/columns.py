"""Columns of the tables: how medians, intervals and failures are written."""

from __future__ import annotations

from typing import Any

from daq_bench.bench_rounds.part import Column


def median_of(point: dict[str, Any], contender: str, quantity: str) -> float | None:
    """The contender's median; None also when it has no such quantity, or is not among the point's."""
    found: float | None = point["contenders"].get(contender, {}).get(quantity, {}).get("median")
    return found


def stated(point: dict[str, Any], contender: str, quantity: str) -> float | None:
    """`median_of` a contender that did not fail once."""
    found = median_of(point, contender, quantity)
    return None if found is None or contender in point["errors"] else float(found)


def scaled(header: str, contender: str, quantity: str, scale: float, digits: int) -> Column:
    """The stated median in units of `scale`."""

    def cell(point: dict[str, Any]) -> str:
        found = stated(point, contender, quantity)
        return "-" if found is None else f"{found / scale:.{digits}f}"

    return header, cell


def rate(header: str, contender: str, quantity: str = "bytes_per_s") -> Column:
    """GB/s, three decimals; `failed` where the tool failed."""

    def cell(point: dict[str, Any]) -> str:
        if contender in point["errors"]:
            return "failed"
        value = median_of(point, contender, quantity)
        return "-" if value is None else f"{value / 1e9:.3f}"

    return f"{header}, GB/s", cell


def value(header: str, contender: str, quantity: str, form: str = "{:.3f}") -> Column:
    def cell(point: dict[str, Any]) -> str:
        found = median_of(point, contender, quantity)
        return "-" if found is None else form.format(found)

    return header, cell


def ratio(header: str, name: str) -> Column:
    """`1.03 [0.99, 1.08] n=5`: median of the paired ratios, its interval, number of pairs."""

    def cell(point: dict[str, Any]) -> str:
        found = point["ratios"].get(name)
        if found is None:
            return "-"
        if not found["n"]:
            return "**failed**"
        low, high = found["interval"] or (found["min"], found["max"])
        return f"{found['median']:.3f} [{low:.3f}, {high:.3f}] n={found['n']}"

    return header, cell


def ranged(header: str, contender: str, quantity: str, form: str = "{:.2f}", unit: float = 1.0) -> Column:
    """`0.52 [0.49, 0.55] n=5`: median, range and number of repetitions, in units of `unit`."""

    def cell(point: dict[str, Any]) -> str:
        if contender in point["errors"]:
            return "failed"
        found = point["contenders"].get(contender, {}).get(quantity, {})
        if found.get("median") is None:
            return "-"
        middle, low, high = (form.format(found[name] / unit) for name in ("median", "min", "max"))
        return middle if found["n"] == 1 else f"{middle} [{low}, {high}] n={found['n']}"

    return header, cell
