#!/usr/bin/env python3
"""`make check`: lints, types and the tests that import what changed, in under two minutes. For work in progress; `make test` decides.
The tests run beside the lints; each step's output comes as a whole at its end.

Changed is what differs from BASE (default: HEAD where something is not committed, else the commit before it)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
STEP_S_MAX, CLEANING_UP_S_MAX = 100.0, 10.0  # of a step, so that all of it stays below two minutes
WORKERS = 2
SHORT = "not integration and not virtual and not campaign and not influx2"
OUT_OF_TIME = -1
NO_TESTS = 5  # pytest's exit status


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line]


def changed_files() -> list[str]:
    """Files that differ from BASE and still exist."""
    untracked = git("ls-files", "--others", "--exclude-standard")
    base = os.environ.get("BASE") or ("HEAD" if untracked or git("diff", "--name-only", "HEAD") else "HEAD~1")
    return [name for name in dict.fromkeys([*git("diff", "--name-only", base), *untracked]) if (ROOT / name).is_file()]


def module_of(name: str) -> str | None:
    """`robot-suites/daq_bench/rig/workloads/shared/fio.py`: `rig.workloads.shared.fio`; None for what is imported by nobody."""
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


def steps(changed: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(name, command) of each step that the changed files ask for, the longest first."""
    if tests := tests_of(changed):
        yield f"tests ({len(tests)} files)", [str(BIN / "pytest"), "-q", "--maxfail=5", "-m", SHORT, *tests]
    python = [name for name in changed if name.endswith(".py")]
    if python:
        yield "types", ["make", "--no-print-directory", "lint-types"]
        yield "ruff", [str(BIN / "ruff"), "check", *python]
        yield "ruff format", [str(BIN / "ruff"), "format", "--check", *python]
        yield "imports", ["make", "--no-print-directory", "lint-imports"]
    for suffixes, target in (
        ((".robot",), "robot"),
        ((".sh",), "shell"),
        ((".cpp", ".h"), "native"),
        ((".yml", ".j2"), "ansible"),
        ((".md",), "docs"),
    ):
        touched = [name for name in changed if name.endswith(suffixes)]
        if touched and (target != "ansible" or any(name.startswith("ansible/") for name in touched)):
            yield f"lint-{target}", ["make", "--no-print-directory", f"lint-{target}"]


def end(process: subprocess.Popen[bytes]) -> None:
    """Interrupts the process: pytest then ends what its fixtures have started."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(CLEANING_UP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(step: tuple[str, list[str]]) -> tuple[str, int]:
    """(name, exit status) of a step that has been run and shown; OUT_OF_TIME when it was ended."""
    name, command = step
    since_s = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            status = process.wait(STEP_S_MAX)
        except subprocess.TimeoutExpired:
            status = OUT_OF_TIME
            end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if name.startswith("tests") and status == NO_TESTS:  # nothing but longer tests
        status = 0
    said = {0: "ok", OUT_OF_TIME: f"not finished within {STEP_S_MAX:g} s: `make test` runs all of it"}
    ended = f"-- {name}: {said.get(status, 'FAILED')}, {time.monotonic() - since_s:.0f} s"
    print(f"== {name}\n{text}{ended}", flush=True)
    return name, status


def main() -> int:
    changed = changed_files()
    if not changed:
        print("check: nothing changed")
        return 0
    began_s = time.monotonic()
    with ThreadPoolExecutor(WORKERS) as workers:
        ended = list(workers.map(run, steps(changed)))
    failed = [name for name, status in ended if status not in (0, OUT_OF_TIME)]
    unfinished = [name for name, status in ended if status == OUT_OF_TIME]
    said = (
        f"failed: {', '.join(failed)}" if failed else f"not finished: {', '.join(unfinished)}" if unfinished else "ok"
    )
    print(f"check: {said}, {time.monotonic() - began_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
