"""An interval: a value of which bounds are known, and perhaps a best guess between them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """`high` None: unbounded. `best` None: nothing between the bounds is likelier than the rest."""

    low: float
    best: float | None
    high: float | None

    def as_document(self) -> dict[str, Any]:
        return asdict(self)
