"""Rules for every test of the project: its time limit, the mark `slow`, and what it tells `.ci`.

`.ci/slow.txt` names files and tests that use more than half a second of CPU (`make slow`); `make check` leaves them out.
TEST_PROGRESS names a file that gets a line as a test begins and as it ends, so that a step that hangs can name the test."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SLOW = Path(__file__).parent / ".ci" / "slow.txt"
GENERATED = Path(__file__).parent / "ansible" / "bootstrap" / "generated.sh"
PROGRESS_VARIABLE = "TEST_PROGRESS"
TENTH_VARIABLE = "CAMPAIGN_TENTH"  # of .ci/checks.py: each tenth campaign, from this one on
# A test that takes so long hangs, however busy the machine is: the longest takes a tenth of it on two quiet cores.
TIMEOUT_S = {"campaign": 7200, "integration": 2400, "virtual": 3300, "influx2": 2400}
COLLECTOR = (
    50_000,
    20,
    20,
)  # thresholds of Python's collector of cycles; 700, 10 and 10 take a fifth of a report's time
DEFAULT_TIMEOUT_S = 1200  # the first container of a machine is made of packages, in up to 900 s


# No property fails because a machine is busy: how long its examples take to draw says nothing of it.
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")


def pytest_configure(config: pytest.Config) -> None:
    """Tests read the schemas and dashboards of the sources that lie here: git does not hold them."""
    if not hasattr(config, "workerinput"):  # once, and not in each process of pytest-xdist
        subprocess.run([GENERATED], check=True)


def listed() -> frozenset[str]:
    """The files and tests of the committed list; a `#` begins a remark."""
    lines = (line.partition("#")[0].strip() for line in SLOW.read_text(encoding="utf-8").splitlines())
    return frozenset(filter(None, lines))


def is_slow(nodeid: str, names: frozenset[str]) -> bool:
    """Whether the list names the test, without its parameters, or its file."""
    return nodeid.partition("[")[0] in names or nodeid.partition("::")[0] in names


def timeout_s(marks: set[str]) -> int:
    return max((TIMEOUT_S[mark] for mark in marks & TIMEOUT_S.keys()), default=DEFAULT_TIMEOUT_S)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = listed()
    if tenth := os.environ.get(TENTH_VARIABLE):
        campaigns = sorted(item.nodeid for item in items if item.get_closest_marker("campaign"))
        chosen = set(campaigns[int(tenth) :: 10])
        items[:] = [item for item in items if item.nodeid in chosen or not item.get_closest_marker("campaign")]
    for item in items:
        if is_slow(item.nodeid, names):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(timeout_s({mark.name for mark in item.iter_markers()})))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Notes the CPU time of the test itself and of the processes that it has waited for, for JUnit; fixtures are shared."""
    before_s = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", f"{sum(os.times()[:4]) - before_s:.2f}"))


def _tell(what: str, nodeid: str) -> None:
    if (progress := os.environ.get(PROGRESS_VARIABLE)) and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(progress).open("a", encoding="utf-8") as file:
            file.write(f"{what} {nodeid}\n")


def pytest_collection_finish(session: pytest.Session) -> None:
    # Modules and tests stay until the end: the collector need not go through them again and again, nor through young objects as often.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)
    for item in session.items:
        _tell("chosen", item.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell("begins", nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    _tell("ends", nodeid)
