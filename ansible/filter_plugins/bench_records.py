"""Filters that build and summarise the records of facts/tuning.json. Pure; they touch no machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ansible.errors import AnsibleFilterError

# As in module_utils.bench_state, which a filter cannot import: Ansible finds it for modules alone.
FIELDS = ("id", "role", "subject", "asked", "before", "applied", "read_back", "status", "detail")
STATUSES = ("applied", "unchanged", "unsupported", "refused", "mismatch")


def tuning_record(setting_id: str, **fields: str) -> dict[str, str]:
    """Return a whole record; fields not given are empty. For settings that no kernel file holds."""
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise AnsibleFilterError(f"{setting_id}: unknown field {unknown[0]}; known: {', '.join(FIELDS)}")
    record = dict.fromkeys(FIELDS, "") | {"id": setting_id}
    record |= {name: str(text) for name, text in fields.items()}
    status = record["status"]
    if status not in STATUSES:
        raise AnsibleFilterError(f"{setting_id}: status is {status!r}; known: {', '.join(STATUSES)}")
    if status not in ("applied", "unchanged") and not record["detail"]:
        raise AnsibleFilterError(f"{setting_id}: status {status} needs its reason in detail")
    return record


def tuning_lines(records: Iterable[dict[str, str]]) -> list[str]:
    """Return one line per record for people."""
    lines = []
    for record in records:
        value = record["read_back"] or "not readable"
        text = f"{record['status']:<11} {record['id']} ({record['subject']}): {value}"
        lines.append(f"{text}. {record['detail']}" if record["detail"] else text)
    return lines


class FilterModule:
    """The class that Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {"tuning_record": tuning_record, "tuning_lines": tuning_lines}
