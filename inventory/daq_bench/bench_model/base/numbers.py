"""One rule says which values of a tool's document are numbers."""

from __future__ import annotations

import math
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[float]:
    """True for a finite number; False for a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
