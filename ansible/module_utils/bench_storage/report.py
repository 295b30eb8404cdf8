"""The storage role's records in the form of facts/tuning.json: what was asked, what the kernel says. Pure.

Runs on the candidate: Python 3.9, standard library only.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.bench_storage.layout import Layout
from ansible.module_utils.bench_storage.survey import Stack, differences


def records_of(layout: Layout, stack: Stack, state: dict[str, Any] | None, just_built: bool) -> list[dict[str, str]]:
    """Return one record per aspect; `state` is None where the bench did not build what is there."""
    wrong = differences(layout, stack)
    serials = ", ".join(drive.serial for drive in layout.drives)
    options = ",".join(option for option in stack.options if option in ("rw", "ro", "noatime", "relatime"))
    members, blocks = ", ".join(stack.members), ", ".join(f"{size} B" for size in sorted(set(stack.lba_bytes)))
    array = f"{stack.raid} of {members}, {stack.array_state}" if stack.raid else "no array"
    asked_array = f"{layout.raid} of {serials}" if layout.raid else "no array"
    array_id = f"md {layout.array_name}, UUID {state['array']['uuid']}" if state and state["array"] else ""
    fs_id = f"label {state['filesystem']['label']}, UUID {state['filesystem']['uuid']}" if state else ""
    before_lba = ", ".join(sorted({f"{drive['lba_bytes_before']} B" for drive in state["drives"]})) if state else ""

    def record(what: str, asked: str, found: str, detail: str = "", before: str = "") -> dict[str, str]:
        missing = stack.device is None
        bad = wrong.get(what, "") or (wrong.get("mount", "") if missing else "")
        made = just_built and asked not in ("keep", "no array")
        status = "mismatch" if bad else "applied" if made else "unchanged"
        return {
            "id": f"storage-{what}", "role": "storage", "subject": f"{layout.target} ({serials})", "asked": asked,
            "before": before, "applied": asked if status == "applied" else "",
            "read_back": "" if missing else found, "status": status, "detail": bad or detail,
        }  # fmt: skip

    lba = record("lba", f"{layout.lba_bytes} B" if layout.lba_bytes else "keep", blocks, before=before_lba)
    if just_built and blocks == before_lba:  # no drive was formatted
        lba.update(status="unchanged", applied="")
    return [
        purge_record(layout, state, just_built),
        lba,
        record("array", asked_array, array, array_id),
        record("filesystem", layout.filesystem, stack.filesystem, fs_id),
        record("mount", layout.directory, f"{layout.directory} ({options})", "until the next reboot; not in fstab"),
    ]


def purge_record(layout: Layout, state: dict[str, Any] | None, just_built: bool) -> dict[str, str]:
    """Say how the drives were purged; nothing on a drive tells it, so that only the bench's own memory can."""
    done = "; ".join(f"{drive['serial']}: {drive['purged']}" for drive in state["drives"]) if state else ""
    asked = layout.purge != "none"
    status, detail = "unchanged", done
    if just_built and asked:
        status, detail = "applied", f"{done}. The drives' former content is gone"
    elif not asked:
        detail = "nothing asked; only signatures were erased when it was built" if state else ""
    elif state is None:
        status = "unsupported"
        detail = "the bench did not build this target, so it was not purged: give destroy: true, or purge: none"
    return {
        "id": "storage-purge", "role": "storage",
        "subject": f"{layout.target} ({', '.join(drive.serial for drive in layout.drives)})", "asked": layout.purge,
        "before": "", "applied": layout.purge if status == "applied" else "", "read_back": layout.purge if state else "none",
        "status": status, "detail": detail,
    }  # fmt: skip
