"""Keeps the hazards that are in force, so that each is annotated as a stretch once it has ended."""

from __future__ import annotations

from typing import Any

from daq_bench.rig.base.bundle import Bundle


class HazardLog:
    """Notes hazards in the bundle under `source`."""

    def __init__(self, bundle: Bundle, source: str) -> None:
        self._bundle, self._source = bundle, source
        self._open: dict[str, tuple[str, int]] = {}  # subject -> the hazard's words and its begin, ns

    def begin(self, subject: str, text: str, **data: Any) -> None:
        """Notes that a hazard was commanded; it ends an earlier one about the same subject."""
        self._close(subject)
        self._open[subject] = (text, self._bundle.event("hazard", self._source, text, **data))

    def end(self, subjects: list[str] | None, text: str, **data: Any) -> None:
        """Notes that hazards were released: those about `subjects`, or all that are open."""
        self._bundle.event("hazard", self._source, text, **data)
        for subject in list(self._open) if subjects is None else subjects:
            self._close(subject)

    def except_for(self, subject: str) -> list[str]:
        """Returns the open subjects other than `subject`."""
        return [one for one in self._open if one != subject]

    def _close(self, subject: str) -> None:
        if subject in self._open:
            text, began_ns = self._open.pop(subject)
            self._bundle.span("hazard", self._source, text, began_ns)
