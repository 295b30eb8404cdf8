#!/usr/bin/env python3
"""Runs every check of the project and counts: the last line reads `N passed, N failed`.

A failing check does not keep the later ones from running. A linter counts as one test; pytest and ctest count their own,
from the JUnit files that they write. A step that breaks before it could write one counts as a failure of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
BIN = ROOT / ".venv" / "bin"
PYTHON_PARTS = ["inventory", "robot-suites", "reports", "agents", "ansible", "native-writer/bench"]


LAST_LINES = 30  # of a failed step
WORKERS = 2  # the virtual candidate and what runs beside it need 3 GiB each
FUZZ_VARIABLE, FUZZ_SECONDS = "FUZZ_SECONDS", "60"  # of each fuzzer, when SANITIZERS asks and the variable does not
FUZZ_SEED = "1"  # always the same: a failure speaks of the change, and `make fuzz` looks for what is old
SANITIZERS_VARIABLE, CAMPAIGNS_VARIABLE, INFLUX2_VARIABLE = "SANITIZERS", "CAMPAIGNS", "INFLUX2"
CAMPAIGNS_HERE = "here"  # of CAMPAIGNS: those on this machine alone
INFLUX2_ONLY = "only"  # of INFLUX2: nothing else
NOT_INFLUX2 = "not influx2"


@dataclass(frozen=True)
class Step:
    """One check: its command, and the JUnit file that it writes, if it counts tests itself."""

    name: str
    argv: list[str]
    junit: Path | None = None


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def stages() -> list[list[Step]]:
    """The checks in order. Those of one stage run beside each other, as many as there are workers: each keeps one CPU busy at most."""
    asked_influx2 = os.environ.get(INFLUX2_VARIABLE)
    influx2 = pytest(
        "InfluxDB 2", [*(part for part in PYTHON_PARTS if part != "inventory"), "-m", "influx2 and not campaign"]
    )
    if asked_influx2 == INFLUX2_ONLY:
        return [[influx2]]
    native, build = RESULTS / "native.xml", str(ROOT / "build" / "native-writer")
    builds, tests = (
        [Step("native-writer: build", ["cmake", "--build", build])],
        [Step("native-writer: ctest", ctest(build, native), native)],
    )
    # Built and run once more each, they take as long as all the rest: CI asks for them.
    sanitizers = os.environ.get(SANITIZERS_VARIABLE)
    if sanitizers:
        # The hot store's are left out with the thread sanitizer: LMDB itself is not instrumented (see its CMakeLists.txt).
        for made_and_run in (sanitized("asan", "address"), sanitized("tsan", "thread")):
            builds.append(made_and_run[0])
            tests.append(made_and_run[1])
    if fuzz_s := os.environ.get(FUZZ_VARIABLE) or (FUZZ_SECONDS if sanitizers else ""):
        builds.append(
            Step("native-writer: fuzz", [str(ROOT / "native-writer" / "tests" / "fuzz" / "run.sh"), fuzz_s, FUZZ_SEED])
        )
    # The tests wait most of their time, for signals and for silence: the next build uses the CPUs beside them.
    pairs = zip_longest(builds, [None, *tests])
    made: list[list[Step]] = [[step for step in pair if step] for pair in pairs]
    unit, roles, short = "robot-suites", "ansible", f"not campaign and {NOT_INFLUX2}"
    beside = [
        # The longest first. Both spend much of their time waiting: for an emulated CPU, and for SSH.
        pytest("virtual candidate", [unit, roles, "-m", f"virtual and not integration and {short}"]),
        pytest(roles, [roles, "-m", f"not virtual and {NOT_INFLUX2}"]),
        pytest(unit, [unit, "-m", f"not integration and not virtual and {short}"]),
        *(pytest(part, [part, "-m", NOT_INFLUX2]) for part in PYTHON_PARTS if part not in (unit, roles)),
    ]
    for target in ("docs", "python", "types", "imports", "robot", "ansible", "shell", "native"):
        beside.append(Step(f"lint: {target}", ["make", "--no-print-directory", f"lint-{target}"]))
    if asked_influx2:
        beside.insert(3, influx2)
    made.append(beside)
    # Tests that measure are alone on the machine.
    made.append([pytest("main job, end to end", [unit, "-m", f"integration and {short}"])])
    # Whole scenarios, each of some minutes: not for every `make test`. In QEMU without acceleration they take the better part of an hour.
    if campaigns := os.environ.get(CAMPAIGNS_VARIABLE):
        made.append([pytest("scenarios on this machine", [unit, "-m", "campaign and not virtual"])])
        if campaigns != CAMPAIGNS_HERE:
            made.append([pytest("scenarios on the virtual candidate", [unit, "-m", "campaign and virtual"])])
    return made


def ctest(build: str, junit: Path) -> list[str]:
    return ["ctest", "--test-dir", build, "--output-on-failure", "--output-junit", str(junit), "-j2"]


def sanitized(name: str, sanitizer: str) -> tuple[Step, Step]:
    """The native tests built and run once more, with a sanitizer: `address` (and undefined behaviour) or `thread`."""
    name = f"native-writer-{name}"
    build, junit = str(ROOT / "build" / name), RESULTS / f"{name}.xml"
    # Optimised for debugging only: that builds in half the time and keeps the reports readable.
    chosen = [f"-DDAQWRITER_SANITIZE={sanitizer}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-Og -g1"]
    configure = ["cmake", "-S", str(ROOT / "native-writer"), "-B", build, "-G", "Ninja", "--log-level=WARNING", *chosen]
    compile_ = ["cmake", "--build", build, "--target", "all_tests"]
    return (
        Step(f"{name}: build", ["sh", "-c", f"{shlex.join(configure)} && {shlex.join(compile_)}"]),
        Step(f"{name}: ctest", ctest(build, junit), junit),
    )


def plain(name: str) -> str:
    """The name as one of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def pytest(name: str, arguments: list[str]) -> Step:
    junit = RESULTS / f"{plain(name)}.xml"
    return Step(
        f"pytest: {name}", [str(BIN / "pytest"), "-q", "--durations=5", f"--junitxml={junit}", *arguments], junit
    )


def count(junit: Path | None, returncode: int) -> Count:
    """What a step adds to the sum."""
    if junit is None or not junit.exists():
        return Count(passed=1) if returncode == 0 and junit is None else Count(failed=1)
    found = Count()
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            found += Count(failed=1)
        elif "skipped" in outcomes or case.get("status") == "notrun":
            found += Count(skipped=1)
        else:
            found += Count(passed=1)
    # A non-zero exit without a failed test (nothing collected, a crash at the end) is a failure too.
    return found + Count(failed=1) if returncode != 0 and not found.failed else found


@dataclass(frozen=True)
class Took:
    """How long a step took, by the clock and of the CPUs."""

    name: str
    wall_s: float
    cpu_s: float


def run(step: Step, shown: threading.Lock, beside: bool) -> tuple[Took, Count]:
    """Runs a step. One that has others beside it keeps its output back until its end."""
    tools = ROOT / "build" / "tools"
    environment = {**os.environ, "INFLUXD_BIN": str(tools / "influxd"), "LC_ALL": "C.UTF-8"}
    if os.environ.get(INFLUX2_VARIABLE):
        environment["INFLUXD2_BIN"] = str(tools / "influxd2")
    if step.junit:
        step.junit.unlink(missing_ok=True)
    log = RESULTS / f"{plain(step.name)}.log"
    with shown:
        print(f"\n== {step.name}{' begins' if beside else ''}", flush=True)
    since_s = time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            step.argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
            stdout=file if beside else None, stderr=subprocess.STDOUT if beside else None,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
    returncode = process.returncode = os.waitstatus_to_exitcode(status)
    took = Took(step.name, time.monotonic() - since_s, used.ru_utime + used.ru_stime)
    this = count(step.junit, returncode)
    with shown:
        if beside:
            print(f"\n== {step.name}\n{log.read_text(encoding='utf-8', errors='replace')}")
        said = f"{took.wall_s:.0f} s, {took.cpu_s:.0f} s of CPU"
        print(f"-- {step.name}: {this.passed} ok, {this.failed} not ok, {said}", flush=True)
    return took, this


def times(steps: list[Took], wall_s: float) -> str:
    """The steps, the longest first. CPU seconds near the clock's say that a step computes, few that it waits."""
    longest = sorted(steps, key=lambda took: took.wall_s, reverse=True)
    rows = [f"{took.wall_s:8.0f} s {took.cpu_s:8.0f} s of CPU  {took.name}" for took in longest]
    cpu_s = sum(took.cpu_s for took in steps)
    return "\n".join(["== times", *rows, f"{wall_s:8.0f} s {cpu_s:8.0f} s of CPU  all, on {os.cpu_count()} CPUs"])


def main() -> int:
    RESULTS.mkdir(parents=True, exist_ok=True)
    total, failures, steps, began_s = Count(), [], [], time.monotonic()
    shown = threading.Lock()
    for stage in stages():
        with ThreadPoolExecutor(WORKERS) as workers:
            for took, this in workers.map(partial(run, shown=shown, beside=len(stage) > 1), stage):
                steps.append(took)
                if this.failed:
                    failures.append(took.name)
                total += this
    print(f"\n{times(steps, time.monotonic() - began_s)}")
    for name in failures:  # again, where whoever reads the end of the output finds it
        said = (RESULTS / f"{plain(name)}.log").read_text(encoding="utf-8", errors="replace").splitlines()
        print(f"\n== {name}: its last lines", *said[-LAST_LINES:], sep="\n")
    if failures:
        print(f"\nFailed: {'; '.join(failures)}")
    if total.skipped:
        print(f"\n{total.skipped} skipped, each with its reason above")
    print(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
