#!/usr/bin/env python3
"""`make coverage`: which branches of the rooms that decide, and of daqwriter, the tests take; writes the table in CONTRIBUTING.md.

The rooms are run by the tests of `inventory` and daqwriter by ctest, both without what only other parts' tests reach: a figure here is a
lower bound. Branches that only an exception takes are not counted for C++ (gcovr --exclude-throw-branches)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
FOLDER = ROOT / "build" / "coverage"
MODEL = "inventory/daq_bench/bench_model"
ROOMS = ("verdict", "evidence", "statistics", "nights", "lot", "tender")
NATIVE = "native-writer/src"
PAGE, BEGIN, END = ROOT / "CONTRIBUTING.md", "<!-- coverage -->\n", "<!-- /coverage -->\n"
Share = tuple[int, int]  # covered, of how many


def run(*argv: str | Path, **environment: str) -> None:
    subprocess.run(argv, cwd=ROOT, env={**os.environ, **environment}, check=True)


def of_rooms() -> Iterator[tuple[str, Share, Share]]:
    """(room, statements, branches)."""
    data, found = FOLDER / "python", FOLDER / "python.json"
    sources = ",".join(f"{MODEL}/{room}" for room in ROOMS)
    run(
        BIN / "coverage",
        "run",
        "--branch",
        f"--include={sources.replace(',', '/*,')}/*",
        f"--data-file={data}",
        "-m",
        "pytest",
        "-q",
        "inventory",
    )
    run(BIN / "coverage", "json", "--quiet", f"--data-file={data}", "-o", found)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, file in json.loads(found.read_text(encoding="utf-8"))["files"].items():
        told = file["summary"]
        values = (told["covered_lines"], told["num_statements"], told["covered_branches"], told["num_branches"])
        known = sums[Path(name).relative_to(MODEL).parts[0]]
        known[:] = [one + other for one, other in zip(known, values, strict=True)]
    for room in ROOMS:
        lines, of_lines, branches, of_branches = sums[room]
        yield f"`bench_model.{room}`", (lines, of_lines), (branches, of_branches)


def of_daqwriter() -> Iterator[tuple[str, Share, Share]]:
    build, found = FOLDER / "native", FOLDER / "native.json"
    flags = (
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=--coverage -O0 -fprofile-update=atomic",
        "-DCMAKE_UNITY_BUILD=OFF",
    )
    run("cmake", "-S", "native-writer", "-B", build, "-G", "Ninja", "--log-level=WARNING", *flags)
    run("cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", "all_tests")
    run("ctest", "--test-dir", build, "-j2", "--output-on-failure", "-L", "", "-E", "^fuzz")
    gcovr = (
        BIN / "gcovr",
        "--root",
        ".",
        "--filter",
        f"{NATIVE}/",
        "--exclude-throw-branches",
        "--json-summary",
        found,
    )
    run(*gcovr, "--object-directory", build, build)
    told = json.loads(found.read_text(encoding="utf-8"))
    yield "daqwriter", (told["line_covered"], told["line_total"]), (told["branch_covered"], told["branch_total"])


def table(rows: list[tuple[str, Share, Share]]) -> str:
    lines = ["| room | statements or lines | branches |", "|---|---|---|"]
    lines += [f"| {name} | {words(statements)} | {words(branches)} |" for name, statements, branches in rows]
    commit = subprocess.check_output(["git", "log", "-1", "--format=%h, %cs"], cwd=ROOT, text=True).strip()
    return "\n".join([*lines, "", f"`make coverage` measured this on {commit}.", ""])


def words(share: Share) -> str:
    covered, total = share
    return f"{100 * covered / total:.1f} % of {total}" if total else "none"


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = table([*of_rooms(), *of_daqwriter()])
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}{made}{END}{after}", encoding="utf-8")
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
