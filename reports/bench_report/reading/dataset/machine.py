"""The state of the machine under test: its tuning and what its drives say of themselves."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    id: str
    role: str | None
    subject: str | None
    asked: str | None
    before: str | None
    applied: str | None
    read_back: str | None
    status: str
    detail: str | None

    @property
    def as_wanted(self) -> bool:
        """Says whether the asked value is in force, or nothing was asked."""
        return not self.asked or self.asked == "keep" or self.status in ("applied", "unchanged")


@dataclass(frozen=True)
class Smart:
    """A drive's account of itself; `readings` in the drive's own words and units, in its order. `errors`: those that count errors."""

    device: str
    status: str
    detail: str | None
    readings: tuple[tuple[str, float | str], ...] = ()
    errors: frozenset[str] = frozenset()
