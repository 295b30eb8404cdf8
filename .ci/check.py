#!/usr/bin/env python3
"""`make check`: lints, types and the tests that import what changed, in under a minute. For work in progress; `make test` decides.
The tests run beside the lints; each step's output comes as a whole at its end. Tests that import what changed by other modules count
too; the nearest come first, slow ones (.ci/slow.txt) are left out, and what did not run in time is named and fails the command.

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
STEP_S_MAX, CLEANING_UP_S_MAX = 50.0, 10.0  # of a step, so that all of it stays below a minute
WORKERS = 2
SHORT = "not integration and not virtual and not campaign and not influx2 and not grafana and not slow"
PROGRESS_VARIABLE = "TEST_PROGRESS"  # of conftest.py: the file that says which tests were chosen and which have ended
IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w., ]+))", re.MULTILINE)
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


def imported(text: str) -> set[str]:
    """Every module that a source may import: `from a import b` may mean a, and a.b."""
    found: set[str] = set()
    for parent, names, plain in IMPORT.findall(text):
        words = re.findall(r"[\w.]+", re.sub(r"#.*|\bas\s+\w+", "", names or plain))
        found |= {parent, *(f"{parent}.{word}" for word in words)} if parent else set(words)
    return found


def tests_of(changed: list[str], sources: dict[str, str]) -> list[str]:
    """Test files that changed, and those that import a module which did, by itself or by others: the nearest first."""
    names = {
        file: module_of(file) or Path(file).stem for file in sources
    }  # helpers beside tests are imported by their stem
    importers: dict[str, set[str]] = {}
    for file, text in sources.items():
        for module in imported(text):
            importers.setdefault(module, set()).add(file)
    reached = dict.fromkeys(name for name in changed if name in sources)
    for file in reached.copy():
        nearest = [file]
        while nearest:
            nearest = [one for far in nearest for one in sorted(importers.get(names[far], ())) if one not in reached]
            reached |= dict.fromkeys(nearest)
    return [file for file in reached if re.fullmatch(r".*/tests/test_\w+\.py", file)]


def python_sources() -> dict[str, str]:
    files = [*git("ls-files", "--", "*.py"), *git("ls-files", "--others", "--exclude-standard", "--", "*.py")]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in files if (ROOT / name).is_file()}


def not_ended(progress: str) -> list[str]:
    """Files with a test that was chosen and has not ended; nothing chosen: it had not come so far."""
    tests: dict[str, set[str]] = {"chosen": set(), "begins": set(), "ends": set()}
    for line in progress.splitlines():
        what, _, test = line.partition(" ")
        tests[what].add(test)
    return sorted({test.partition("::")[0] for test in tests["chosen"] - tests["ends"]})


def steps(changed: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(name, command) of each step that the changed files ask for, the longest first."""
    if tests := tests_of(changed, python_sources()):
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
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile("r", encoding="utf-8") as progress:
        environment = {**os.environ, PROGRESS_VARIABLE: progress.name}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            status = process.wait(STEP_S_MAX)
        except subprocess.TimeoutExpired:
            status = OUT_OF_TIME
            end(process)
        output.seek(0)
        text = output.read().decode(errors="replace")
        left = not_ended(progress.read()) if status == OUT_OF_TIME else []
    if name.startswith("tests") and status == NO_TESTS:  # nothing but longer tests
        status = 0
    said = {0: "ok", OUT_OF_TIME: f"not finished within {STEP_S_MAX:g} s"}
    ended = f"-- {name}: {said.get(status, 'FAILED')}, {time.monotonic() - since_s:.0f} s"
    if left:
        ended += f"\nnot run to their end, `make test` does: {' '.join(left)}"
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
    words = (("failed", failed), ("not finished", unfinished))
    said = "; ".join(f"{what}: {', '.join(names)}" for what, names in words if names) or "ok"
    print(f"check: {said}, {time.monotonic() - began_s:.0f} s")
    return 1 if failed or unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
