"""The state of the machine under test: what its drives say of themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Smart:
    """A drive's account of itself; `readings` in the drive's own words and units, in its order. `errors`: those that count errors."""

    device: str
    status: str
    detail: str | None
    readings: tuple[tuple[str, float | str], ...] = ()
    errors: frozenset[str] = frozenset()
