"""The records of facts/tuning.json: one for each setting, whoever set it. Pure.

Runs on the candidate, too: Python 3.9, standard library only.
"""

from __future__ import annotations

FIELDS = ("id", "role", "subject", "asked", "before", "applied", "read_back", "status", "detail")


def tuning_record(setting_id: str, **fields: str) -> dict[str, str]:
    """Return a whole record; fields not given are empty."""
    record = dict.fromkeys(FIELDS, "")
    record.update(id=setting_id, **fields)
    return record
