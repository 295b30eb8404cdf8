#!/usr/bin/env python3
"""Runs every check of the project and counts: the last line reads `N passed, N failed`.

A failing check does not keep the later ones from running. A linter counts as one test; pytest and ctest count their own,
from the JUnit files that they write. A step that breaks before it could write one counts as a failure of its own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import slow

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "test-results"
BIN = ROOT / ".venv" / "bin"
COMPUTING = ["reports", "inventory"]  # of the parts: their tests wait for nothing
PYTHON_PARTS = ["inventory", "robot-suites", "reports", "agents", "ansible", "native-writer/bench"]


LAST_LINES = 30  # of a failed step
# More than there are CPUs: most tests wait, and what computes has a low priority. The virtual candidate and what runs beside it need
# 3 GiB each.
WORKERS = 4
# Builds take the CPUs that tests leave: those wait most of their time, for an emulated CPU, SSH, signals and silence.
GIVING_WAY = ["nice", "-n", "10"]
FUZZ_VARIABLE, FUZZ_SECONDS = "FUZZ_SECONDS", "30"  # of each fuzzer, when SANITIZERS asks and the variable does not
FUZZ_SEED = "1"  # always the same: a failure speaks of the change, and `make fuzz` looks for what is old
SANITIZERS_VARIABLE, CAMPAIGNS_VARIABLE, INFLUX2_VARIABLE = "SANITIZERS", "CAMPAIGNS", "INFLUX2"
FULL_VARIABLE = "FULL"  # `.ci/run` asks for it: also what boots the virtual candidate, and ansible-test's sanity
SANITIZED = {"asan": "address", "tsan": "thread"}  # of SANITIZERS: one of them, or 1 for each
CAMPAIGNS_HERE, CAMPAIGNS_TENTH = (
    "here",
    "tenth",
)  # of CAMPAIGNS: those on this machine alone; another tenth with each commit
TENTH_VARIABLE, TENTHS = "CAMPAIGN_TENTH", 10  # read by conftest.py
INFLUX2_ONLY = "only"  # of INFLUX2: nothing else
PLAIN = "not influx2 and not grafana"  # needs neither that server nor the packages of npm
LINTS = ("docs", "python", "types", "imports", "robot", "ansible", "shell", "native")
FULL_LINTS = ("collection",)
# A step that takes so long hangs, however busy the machine is; a test has a limit of its own before (conftest.py).
LIMIT_S, CAMPAIGNS_LIMIT_S, CLEANING_UP_S_MAX = 3600.0, 4 * 3600.0, 60.0
CTEST_JOBS = 4  # more than there are CPUs: of ten seconds nine wait for drives that hang
END_VARIABLE = "TESTS_END_S"  # of `.ci/run`, seconds since 1970: CI ends us soon after, and would name no test
PROGRESS_VARIABLE = "TEST_PROGRESS"  # of conftest.py: the file that says which test runs
IN_PARALLEL = [
    "-n",
    "2",
    "--dist",
    "loadfile",
]  # pytest-xdist: for tests that wait, each with ports and folders of its own


@dataclass(frozen=True)
class Step:
    """One check: its command, and the JUnit file that it writes, if it counts tests itself."""

    name: str
    argv: list[str]
    junit: Path | None = None
    after: tuple[str, ...] = ()  # the steps that must have ended
    alone: bool = (
        False  # it measures: only what gives way may run beside it, and what is before it in the list has ended
    )
    limit_s: float = LIMIT_S  # then it is ended and has failed

    @property
    def gives_way(self) -> bool:
        return self.argv[: len(GIVING_WAY)] == GIVING_WAY


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


def steps() -> list[Step]:
    """All checks. The native tests, whose pace other tests would spoil, have beside them only a build at low priority. With a sanitizer
    they are slow anyway: they run at low priority beside the others, as what computes does. Whichever is the first in the list that
    can begin does so."""
    influx2 = pytest(
        "InfluxDB 2",
        [*(part for part in PYTHON_PARTS if part != "inventory"), "-m", "influx2 and not grafana and not campaign"],
    )
    if os.environ.get(INFLUX2_VARIABLE) == INFLUX2_ONLY:
        return [influx2]
    built = native()
    builds = [step.name for step in built if not step.name.endswith("ctest")]
    # Minutes of Go and Rust on a machine that has not built it yet.
    influxd2 = Step("InfluxDB 2: build", [*GIVING_WAY, "make", "--no-print-directory", "influxd2"], after=(builds[-1],))
    full = bool(os.environ.get(FULL_VARIABLE))
    unit, roles, short = "robot-suites", "ansible", f"not campaign and {PLAIN}"
    waiting = [
        # The longest first, so that none is left to run by itself at the end.
        pytest(unit, [*IN_PARALLEL, unit, "-m", f"not integration and not virtual and {short}"]),
        *([pytest("virtual candidate", [unit, "-m", f"virtual and not integration and {short}"])] if full else []),
        pytest(roles, [*IN_PARALLEL, roles, "-m", f"not virtual and not systems and {PLAIN}"]),
        *([pytest("virtual storage", [roles, "-m", "virtual"])] if full else []),
        *([influx2] if os.environ.get(INFLUX2_VARIABLE) else []),
        *(pytest(part, [part, "-m", PLAIN]) for part in PYTHON_PARTS if part not in (unit, roles, *COMPUTING)),
    ]
    virtual = "" if full else "not virtual and "
    done = tuple(one.name for one in built[:2])
    return [
        *built,
        *([influxd2] if influx2 in waiting else []),
        *computing(full, done),
        *(replace(step, after=(*done, influxd2.name) if step is influx2 else done) for step in waiting),
        pytest("main job, end to end", [unit, "-m", f"integration and {virtual}{short}"], alone=True),
        *campaigns(unit),
    ]


def computing(full: bool, before: tuple[str, ...]) -> list[Step]:
    """Steps that fill a CPU and wait for nothing: one after the other, at low priority, once the steps `before` have ended."""
    lints = [
        Step(f"lint: {target}", ["make", "--no-print-directory", f"lint-{target}"])
        for target in (*LINTS, *(FULL_LINTS if full else ()))
    ]
    found = list[Step]()
    for step in (*(pytest(part, [part, "-m", PLAIN]) for part in COMPUTING), *lints):
        found.append(replace(step, argv=[*GIVING_WAY, *step.argv], after=before))
        before = (step.name,)
    return found


def native() -> list[Step]:
    """The builds, one after the other, and after each the tests that it built."""
    build, junit = str(ROOT / "build" / "native-writer"), RESULTS / "native.xml"
    pairs = [(Step("native-writer: build", compile_(build)), Step("native-writer: ctest", ctest(build, junit), junit))]
    # Built and run once more each, they take as long as all the rest: CI asks for them.
    sanitizers = os.environ.get(SANITIZERS_VARIABLE)
    if sanitizers not in (None, "", "1", *SANITIZED.values()):
        known = ", ".join(SANITIZED.values())
        raise SystemExit(f"{SANITIZERS_VARIABLE}={sanitizers}: no such sanitizer. Known: {known}, and 1 for each")
    # The hot store's are left out with the thread sanitizer: LMDB itself is not instrumented (see its CMakeLists.txt).
    pairs += [
        sanitized(name, sanitizer)
        for name, sanitizer in SANITIZED.items()
        if sanitizers and sanitizers in (sanitizer, "1")
    ]
    found, before = list[Step](), tuple[str, ...]()
    for build_step, test_step in pairs:
        found += [replace(build_step, after=before), replace(test_step, after=(build_step.name,))]
        before = (build_step.name,)
    if fuzz_s := os.environ.get(FUZZ_VARIABLE) or (FUZZ_SECONDS if sanitizers else ""):
        fuzz = [str(ROOT / "native-writer" / "tests" / "fuzz" / "run.sh"), fuzz_s, FUZZ_SEED]
        found.append(Step("native-writer: fuzz", [*GIVING_WAY, *fuzz], after=before))
    return found


def campaigns(unit: str) -> list[Step]:
    """Whole scenarios, each of some minutes. In QEMU without acceleration they take the better part of an hour."""
    asked = os.environ.get(CAMPAIGNS_VARIABLE)
    if asked == CAMPAIGNS_TENTH:
        tenth = int(subprocess.check_output(["git", "rev-list", "--count", "HEAD"], cwd=ROOT)) % TENTHS
        os.environ[TENTH_VARIABLE] = str(tenth)
        return [
            pytest(
                f"scenarios, tenth {tenth} of {TENTHS}", [unit, "-m", "campaign"], alone=True, limit_s=CAMPAIGNS_LIMIT_S
            )
        ]
    here = pytest(
        "scenarios on this machine", [unit, "-m", "campaign and not virtual"], alone=True, limit_s=CAMPAIGNS_LIMIT_S
    )
    emulated = pytest(
        "scenarios on the virtual candidate",
        [unit, "-m", "campaign and virtual"],
        alone=True,
        limit_s=CAMPAIGNS_LIMIT_S,
    )
    return [here, *([emulated] if asked != CAMPAIGNS_HERE else [])] if asked else []


def compile_(build: str, *targets: str) -> list[str]:
    return [*GIVING_WAY, "cmake", "--build", build, "--parallel", str(os.cpu_count()), *targets]


def ctest(build: str, junit: Path) -> list[str]:
    return ["ctest", "--test-dir", build, "--output-on-failure", "--output-junit", str(junit), f"-j{CTEST_JOBS}"]


def sanitized(name: str, sanitizer: str) -> tuple[Step, Step]:
    """The native tests built and run once more, with a sanitizer: `address` (and undefined behaviour) or `thread`."""
    name = f"native-writer-{name}"
    build, junit = str(ROOT / "build" / name), RESULTS / f"{name}.xml"
    # Optimised for debugging only: that builds in half the time and keeps the reports readable.
    chosen = [f"-DDAQWRITER_SANITIZE={sanitizer}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-Og -g1"]
    configure = ["cmake", "-S", str(ROOT / "native-writer"), "-B", build, "-G", "Ninja", "--log-level=WARNING", *chosen]
    made = compile_(build, "--target", "all_tests")[len(GIVING_WAY) :]
    return (
        Step(f"{name}: build", [*GIVING_WAY, "sh", "-c", f"{shlex.join(configure)} && {shlex.join(made)}"]),
        # They mostly wait, with limits of time: at low priority they would be kept from the CPU for longer than those.
        Step(f"{name}: ctest", ctest(build, junit), junit),
    )


def plain(name: str) -> str:
    """The name as one of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def pytest(name: str, arguments: list[str], alone: bool = False, limit_s: float = LIMIT_S) -> Step:
    junit = RESULTS / f"{plain(name)}.xml"
    argv = [str(BIN / "pytest"), "-q", "--durations=5", f"--junitxml={junit}", *arguments]
    return Step(f"pytest: {name}", argv, junit, alone=alone, limit_s=limit_s)


def count(junit: Path | None, returncode: int) -> Count:
    """Returns what a step adds to the sum."""
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
    """Describes how long a step took, by the clock and of the CPUs."""

    name: str
    wall_s: float
    cpu_s: float


def run(step: Step, shown: threading.Lock) -> tuple[Took, Count]:
    """Runs a step, whose output is kept back until its end: others may run beside it."""
    tools = ROOT / "build" / "tools"
    environment = {**os.environ, "INFLUXD_BIN": str(tools / "influxd"), "LC_ALL": "C.UTF-8"}
    if os.environ.get(INFLUX2_VARIABLE):
        environment["INFLUXD2_BIN"] = str(tools / "influxd2")
    if step.junit:
        step.junit.unlink(missing_ok=True)
    log, progress = RESULTS / f"{plain(step.name)}.log", RESULTS / f"{plain(step.name)}.progress"
    progress.unlink(missing_ok=True)
    environment[PROGRESS_VARIABLE] = str(progress)
    left_s = float(os.environ.get(END_VARIABLE) or "inf") - time.time()
    if left_s <= 0:
        log.write_text(f"{step.name} was not begun: the time for all steps was over\n", encoding="utf-8")
        with shown:
            print(f"\n== {step.name}\n{log.read_text(encoding='utf-8')}", flush=True)
        return Took(step.name, 0.0, 0.0), Count(failed=1)
    limit_s = min(step.limit_s, left_s)
    with shown:
        print(f"\n== {step.name} begins", flush=True)
    since_s = time.monotonic()
    hung = threading.Event()
    with log.open("wb") as file:
        process = subprocess.Popen(
            step.argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, process_group=0,
            stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
        _running.add(process.pid)
        limit = threading.Timer(limit_s, end, (process.pid, hung))
        limit.start()
        _, status, used = os.wait4(process.pid, 0)
        limit.cancel()
        _running.discard(process.pid)
    returncode = process.returncode = os.waitstatus_to_exitcode(status)
    took = Took(step.name, time.monotonic() - since_s, used.ru_utime + used.ru_stime)
    this = count(step.junit, returncode)
    if hung.is_set():
        with suppress(ProcessLookupError):  # its children
            os.killpg(process.pid, signal.SIGKILL)
        this += Count(failed=1)
        words = f"{step.name} did not end within {limit_s:.0f} s and was ended; {running_tests(progress)}"
        with log.open("a", encoding="utf-8") as file_of_words:
            file_of_words.write(f"\n{words}\n")
    with shown:
        print(f"\n== {step.name}\n{log.read_text(encoding='utf-8', errors='replace')}")
        said = f"{took.wall_s:.0f} s, {took.cpu_s:.0f} s of CPU"
        print(f"-- {step.name}: {this.passed} ok, {this.failed} not ok, {said}", flush=True)
    return took, this


_running: set[int] = set()  # the processes of the steps, each the first of its group


def end(pid: int, hung: threading.Event) -> None:
    """Ends a step that took too long. An interrupt lets pytest end what its fixtures have started, and write what it has."""
    hung.set()
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGINT)
    until_s = time.monotonic() + CLEANING_UP_S_MAX
    while pid in _running and time.monotonic() < until_s:
        time.sleep(0.1)
    if pid in _running:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def end_all() -> None:
    """Ends what still runs: a group of its own does not hear the terminal's Ctrl-C."""
    for pid in list(_running):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGINT)


def running_tests(progress: Path) -> str:
    """Which tests had begun and not ended."""
    lines = progress.read_text(encoding="utf-8").splitlines() if progress.exists() else []
    at = {name: what for what, _, name in (line.partition(" ") for line in lines)}
    names = [name for name, what in at.items() if what == "begins"]
    return f"the test that was running: {', '.join(names)}" if names else "no test was running"


def times(steps: list[Took], wall_s: float) -> str:
    """The steps, the longest first. CPU seconds near the clock's say that a step computes, few that it waits."""
    longest = sorted(steps, key=lambda took: took.wall_s, reverse=True)
    rows = [f"{took.wall_s:8.0f} s {took.cpu_s:8.0f} s of CPU  {took.name}" for took in longest]
    cpu_s = sum(took.cpu_s for took in steps)
    return "\n".join(["== times", *rows, f"{wall_s:8.0f} s {cpu_s:8.0f} s of CPU  all, on {os.cpu_count()} CPUs"])


def next_of(pending: list[Step], running: Collection[Step]) -> Step | None:
    """The first step that can begin beside those that run. One that is to be alone waits for all before it that do not give way."""
    unfinished = {step.name for step in (*pending, *running)}
    loud = [step for step in running if not step.gives_way]
    someone_is_alone = any(step.alone for step in running)
    for step in pending:
        if step.alone:
            if not loud and step is next(one for one in pending if not one.gives_way):
                return step
        elif unfinished.isdisjoint(step.after) and (step.gives_way or not someone_is_alone):
            return step
    return None


def run_all(pending: list[Step]) -> Iterator[tuple[Took, Count]]:
    """Runs the steps, as many beside each other as there are workers; yields each as it ends."""
    shown, running = threading.Lock(), dict[Future[tuple[Took, Count]], Step]()
    with ThreadPoolExecutor(WORKERS) as workers:
        try:
            while pending or running:
                while len(running) < WORKERS:
                    step = next_of(pending, running.values())
                    if step is None:
                        break
                    pending.remove(step)
                    running[workers.submit(run, step, shown)] = step
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[ended]
                    yield ended.result()
        except KeyboardInterrupt:
            end_all()
            raise


def main() -> int:
    RESULTS.mkdir(parents=True, exist_ok=True)
    total, failures, ended, began_s = Count(), [], [], time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the steps end with us
    for took, this in run_all(steps()):
        ended.append(took)
        if this.failed:
            failures.append(took.name)
        total += this
    unmarked = slow.missing(slow.listed(slow.LIST.read_text(encoding="utf-8")), slow.measured(RESULTS))
    if unmarked:
        print(
            f"\n{len(unmarked)} tests use more than {slow.CPU_S_MAX} s of CPU and are not in .ci/slow.txt (make slow):"
        )
        print(*unmarked[:LAST_LINES], sep="\n")
    print(f"\n{times(ended, time.monotonic() - began_s)}")
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
