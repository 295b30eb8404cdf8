"""The sections in the order of the report; they stand between the record and the candidate's telemetry."""

from __future__ import annotations

from ..dataset import Bundle
from .raid_vs_3dxp import raid_section
from .section import Maker, Section

MAKERS: tuple[Maker, ...] = (raid_section,)


def sections_of(bundle: Bundle) -> list[Section]:
    made = (make(bundle) for make in MAKERS)
    return [section for section in made if section is not None]
