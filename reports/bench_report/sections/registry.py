"""The sections in the order of the report; they stand between the record and the candidate's telemetry."""

from __future__ import annotations

from ..dataset import Bundle
from . import record_conditions, steady_state
from .section import Maker, Section

MAKERS: tuple[Maker, ...] = (record_conditions.make, steady_state.make)


def sections_of(bundle: Bundle) -> list[Section]:
    made = (make(bundle) for make in MAKERS)
    return [section for section in made if section is not None]
