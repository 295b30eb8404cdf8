"""Robot Framework listener: writes begin and end of each suite and test as events of the run bundle, hence as annotations in InfluxDB."""

from __future__ import annotations

import time
from pathlib import Path

from robot import result, running

from daq_bench.rig.base.bundle import Bundle


class RunListener:
    """Listener API 3. The argument is the run bundle's folder. A test's begin and end become events; suites and tests
    become spans too, which Grafana shades."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, bundle: str) -> None:
        self._bundle = Bundle.open(Path(bundle))
        self._suites: list[int] = []  # begin of each suite that is open, ns since 1970 UTC; suites nest
        self._test_began_ns = 0

    def start_suite(self, data: running.TestSuite, result: result.TestSuite) -> None:
        self._suites.append(time.time_ns())

    def end_suite(self, data: running.TestSuite, result: result.TestSuite) -> None:
        self._bundle.span("suite", data.name, f"{result.status}: {data.name}", self._suites.pop())

    def start_test(self, data: running.TestCase, result: result.TestCase) -> None:
        self._test_began_ns = self._bundle.event("test", self._suite_of(data), f"begin: {data.name}")

    def end_test(self, data: running.TestCase, result: result.TestCase) -> None:
        text = f"{result.status}: {data.name}" + (f": {result.message}" if result.message else "")
        self._bundle.event("test", self._suite_of(data), text, status=result.status)
        self._bundle.span("test", self._suite_of(data), text, self._test_began_ns)

    @staticmethod
    def _suite_of(data: running.TestCase) -> str:
        return data.parent.name if data.parent else "robot"
