"""`from daq_bench import Bundle` reads a run bundle (docs/reading-a-bundle.md). Several folders of the checkout share this package."""

from __future__ import annotations

from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daq_bench.bundle import Bundle

__all__ = ["Bundle"]
# In place: the module's specification holds the same list, by which import-linter finds the modules of all folders.
__path__[:] = extend_path(__path__, __name__)


def __getattr__(name: str) -> Any:
    """Imports the reader when it is asked for: most of what imports this package needs none, and the agent has no library that it needs."""
    if name == "Bundle":
        from daq_bench.bundle import Bundle

        return Bundle
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
