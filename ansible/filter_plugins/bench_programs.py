"""Filter that tells why a program would not run on a candidate. Pure; it touches no machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def version_key(text: str) -> tuple[int, ...]:
    """Return a dotted version for comparing."""
    return tuple(int(part) for part in text.split("."))


def program_obstacles(needs: dict[str, Any], runtime: dict[str, Any]) -> list[str]:
    """Compare the findings of bench_program_needs with those of bench_runtime; each obstacle names its remedy."""
    if not needs["machine"]:
        return []
    if needs["machine"] != runtime["machine"]:
        return [
            f"it is built for {needs['machine']} and the candidate is {runtime['machine']}. Build it on a machine of the "
            "candidate's kind (make native-portable) and name that file with bench_daqwriter_source"
        ]
    found = []
    if needs["glibc_min"] and not runtime["glibc"]:
        found.append(f"it needs glibc {needs['glibc_min']} and the candidate has another C library")
    elif needs["glibc_min"] and version_key(needs["glibc_min"]) > version_key(runtime["glibc"]):
        found.append(
            f"it needs glibc {needs['glibc_min']} and the candidate has {runtime['glibc']}. Build it (make native-portable) on a "
            "system that is no newer than the candidate's, and name that file with bench_daqwriter_source"
        )
    absent = sorted(set(needs["libraries"]) - set(runtime["libraries"]))
    if absent:
        found.append(
            f"the candidate lacks {', '.join(absent)}. Build it with make native-portable, which needs none of them, and name "
            "build/native-writer/portable/daqwriter with bench_daqwriter_source; the folder lib that the build made stays beside it"
        )
    return found


class FilterModule:
    """The class that Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Name the filters."""
        return {"program_obstacles": program_obstacles}
