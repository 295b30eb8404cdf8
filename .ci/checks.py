#!/usr/bin/env python3
"""Runs every check of the project, one after the other, and counts: the last line reads `N passed, N failed`.

A failing check does not keep the later ones from running. A linter counts as one test; pytest and ctest count their own,
from the JUnit files that they write. A step that breaks before it could write one counts as a failure of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
BIN = ROOT / ".venv" / "bin"
PYTHON_PARTS = ["inventory", "robot-suites", "reports", "agents", "ansible", "native-writer/bench"]


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
    beside: Step | None = None  # runs at the same time, its output is printed afterwards


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def steps() -> list[Step]:
    """Cheap checks first, the whole bench last."""
    asked_influx2 = os.environ.get(INFLUX2_VARIABLE)
    influx2 = pytest(
        "InfluxDB 2", [*(part for part in PYTHON_PARTS if part != "inventory"), "-m", "influx2 and not campaign"]
    )
    if asked_influx2 == INFLUX2_ONLY:
        return [influx2]
    native, build = RESULTS / "native.xml", str(ROOT / "build" / "native-writer")
    made: list[Step] = [
        Step(f"lint: {target}", ["make", "--no-print-directory", f"lint-{target}"])
        for target in ("python", "types", "imports", "robot", "ansible", "shell", "native")
    ]
    made.append(Step("native-writer: build", ["cmake", "--build", build]))
    made.append(Step("native-writer: ctest", ctest(build, native), native))
    # Built and run once more each, they take as long as all the rest: CI asks for them.
    if os.environ.get(SANITIZERS_VARIABLE):
        made += sanitized("asan", "address") + sanitized("tsan", "thread")
    for part in PYTHON_PARTS:
        if part not in ("robot-suites", "ansible"):
            made.append(pytest(part, [part, "-m", NOT_INFLUX2]))
    unit, roles, virtual, job = "robot-suites", "ansible", "virtual candidate", "main job, end to end"
    short = "not campaign"
    made.append(pytest(unit, [unit, "-m", f"not integration and not virtual and {short} and {NOT_INFLUX2}"]))
    # Both spend most of their time waiting: for SSH, and for an emulated CPU.
    emulated = pytest(virtual, [unit, roles, "-m", f"virtual and not integration and {short} and {NOT_INFLUX2}"])
    made.append(replace(pytest(roles, [roles, "-m", f"not virtual and {NOT_INFLUX2}"]), beside=emulated))
    made.append(pytest(job, [unit, "-m", f"integration and {short} and {NOT_INFLUX2}"]))
    if asked_influx2:
        made.append(influx2)
    # Whole scenarios, each of some minutes: not for every `make test`. In QEMU without acceleration they take the better part of an hour.
    if campaigns := os.environ.get(CAMPAIGNS_VARIABLE):
        made.append(pytest("scenarios on this machine", [unit, "-m", "campaign and not virtual"]))
        if campaigns != CAMPAIGNS_HERE:
            made.append(pytest("scenarios on the virtual candidate", [unit, "-m", "campaign and virtual"]))
    return made


def ctest(build: str, junit: Path) -> list[str]:
    return ["ctest", "--test-dir", build, "--output-on-failure", "--output-junit", str(junit), "-j2"]


def sanitized(name: str, sanitizer: str) -> list[Step]:
    """The native tests once more, with a sanitizer: `address` (and undefined behaviour) or `thread`."""
    name = f"native-writer-{name}"
    build, junit = str(ROOT / "build" / name), RESULTS / f"{name}.xml"
    # Optimised a little only: that builds in half the time and keeps the reports readable.
    chosen = [f"-DDAQWRITER_SANITIZE={sanitizer}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1"]
    configure = ["cmake", "-S", str(ROOT / "native-writer"), "-B", build, "-G", "Ninja", "--log-level=WARNING", *chosen]
    return [
        Step(f"{name}: configure", configure),
        Step(f"{name}: build", ["cmake", "--build", build, "--target", "daqwriter", "daqwriter_tests"]),
        Step(f"{name}: ctest", ctest(build, junit), junit),
    ]


def pytest(name: str, arguments: list[str]) -> Step:
    junit = RESULTS / f"{name.replace(' ', '-').replace('/', '-').replace(',', '')}.xml"
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


def started(step: Step, output: int | None) -> subprocess.Popen[bytes]:
    """The step's process; `output` is where it writes, None: where we do."""
    tools = ROOT / "build" / "tools"
    environment = {**os.environ, "INFLUXD_BIN": str(tools / "influxd"), "LC_ALL": "C.UTF-8"}
    if os.environ.get(INFLUX2_VARIABLE):
        environment["INFLUXD2_BIN"] = str(tools / "influxd2")
    if step.junit:
        step.junit.unlink(missing_ok=True)
    return subprocess.Popen(
        step.argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
    )


def finished(step: Step, process: subprocess.Popen[bytes], since_s: float) -> Count:
    """Waits for the step and says how it went."""
    this = count(step.junit, process.wait())
    print(f"-- {step.name}: {this.passed} ok, {this.failed} not ok, {time.monotonic() - since_s:.0f} s", flush=True)
    return this


def run(step: Step) -> list[tuple[str, Count]]:
    """Runs a step, and the one beside it."""
    print(f"\n== {step.name}", flush=True)
    since_s = time.monotonic()
    if step.beside is None:
        return [(step.name, finished(step, started(step, None), since_s))]
    other = step.beside
    log = RESULTS / f"{other.name.replace(' ', '-')}.log"
    with log.open("wb") as file:
        process = started(other, file.fileno())
        this = finished(step, started(step, None), since_s)
        print(f"\n== {other.name}", flush=True)
        process.wait()
    print(log.read_text(encoding="utf-8", errors="replace"), flush=True)
    return [(step.name, this), (other.name, finished(other, process, since_s))]


def main() -> int:
    RESULTS.mkdir(parents=True, exist_ok=True)
    total, failures = Count(), []
    for step in steps():
        for name, this in run(step):
            if this.failed:
                failures.append(name)
            total += this
    if failures:
        print(f"\nFailed: {'; '.join(failures)}")
    if total.skipped:
        print(f"\n{total.skipped} skipped, each with its reason above")
    print(f"\n{total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
