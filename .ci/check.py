#!/usr/bin/env python3
"""`make check`: lints, types and the tests that import what changed, in under two minutes. For work in progress; `make test` decides.

Changed is what differs from BASE (default: HEAD where something is not committed, else the commit before it)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PACKAGES = (
    "inventory",
    "inventory/studies",
    "robot-suites",
    "reports",
    "agents",
    "native-writer/bench",
)  # as mypy_path
TESTS_S_MAX = 75.0  # for the tests, so that all of it stays below two minutes
SHORT = "not integration and not virtual and not campaign and not influx2"
OUT_OF_TIME = -1


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line]


def changed_files() -> list[str]:
    """Files that differ from BASE and still exist."""
    untracked = git("ls-files", "--others", "--exclude-standard")
    base = os.environ.get("BASE") or ("HEAD" if untracked or git("diff", "--name-only", "HEAD") else "HEAD~1")
    return [name for name in dict.fromkeys([*git("diff", "--name-only", base), *untracked]) if (ROOT / name).is_file()]


def module_of(name: str) -> str | None:
    """`robot-suites/rig/workloads/shared/fio.py`: `rig.workloads.shared.fio`; None for what is imported by nobody."""
    for package in sorted(PACKAGES, key=len, reverse=True):
        if name.startswith(f"{package}/") and name.endswith(".py") and "/tests/" not in name:
            return name[len(package) + 1 : -3].replace("/", ".").removesuffix(".__init__")
    return None


def tests_of(changed: list[str]) -> list[str]:
    """Test files that changed, and those that import a module which did."""
    modules = [module for module in map(module_of, changed) if module]
    found = {name for name in changed if re.fullmatch(r".*/tests/test_\w+\.py", name)}
    for file in git("ls-files", "--", "*/tests/test_*.py"):
        text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
        if any(imports(text, module) for module in modules):
            found.add(file)
    return sorted(found)


def imports(text: str, module: str) -> bool:
    parent, _, leaf = module.rpartition(".")
    direct = rf"^\s*(?:from|import) {re.escape(module)}\b"
    by_name = rf"^\s*from {re.escape(parent)} import (?:\([^)]*|[^\n]*)\b{re.escape(leaf)}\b" if parent else direct
    return re.search(f"{direct}|{by_name}", text, re.MULTILINE) is not None


def steps(changed: list[str]) -> Iterator[tuple[str, list[str], float]]:
    """(name, command, most seconds) of each step that the changed files ask for."""
    python = [name for name in changed if name.endswith(".py")]
    if python:
        yield "ruff", [str(BIN / "ruff"), "check", *python], 60
        yield "ruff format", [str(BIN / "ruff"), "format", "--check", *python], 60
        yield "imports", ["make", "--no-print-directory", "lint-imports"], 60
        yield "types", ["make", "--no-print-directory", "lint-types"], 300
    for suffixes, target in (
        ((".robot",), "robot"),
        ((".sh",), "shell"),
        ((".cpp", ".h"), "native"),
        ((".yml", ".j2"), "ansible"),
    ):
        touched = [name for name in changed if name.endswith(suffixes)]
        if touched and (target != "ansible" or any(name.startswith("ansible/") for name in touched)):
            yield f"lint-{target}", ["make", "--no-print-directory", f"lint-{target}"], 120
    if tests := tests_of(changed):
        yield (
            f"tests ({len(tests)} files)",
            [str(BIN / "pytest"), "-q", "--maxfail=5", "-m", SHORT, *tests],
            TESTS_S_MAX,
        )


def run(command: list[str], seconds: float) -> int:
    """The exit status; OUT_OF_TIME when the step was ended."""
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return OUT_OF_TIME


def main() -> int:
    changed = changed_files()
    if not changed:
        print("check: nothing changed")
        return 0
    failed, unfinished, began_s = [], [], time.monotonic()
    for name, command, seconds in steps(changed):
        print(f"== {name}", flush=True)
        since_s = time.monotonic()
        status = run(command, seconds)
        said = {0: "ok", OUT_OF_TIME: f"not finished within {seconds:g} s: `make test` runs all of it"}.get(
            status, "FAILED"
        )
        print(f"-- {name}: {said}, {time.monotonic() - since_s:.0f} s", flush=True)
        if status not in (0, OUT_OF_TIME) and not (
            name.startswith("tests") and status == 5
        ):  # 5: nothing but longer tests
            failed.append(name)
        if status == OUT_OF_TIME:
            unfinished.append(name)
    said = (
        f"failed: {', '.join(failed)}" if failed else f"not finished: {', '.join(unfinished)}" if unfinished else "ok"
    )
    print(f"check: {said}, {time.monotonic() - began_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
