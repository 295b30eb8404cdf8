"""Robot Framework listener: each test's begin and end becomes an event of the run bundle, and so an annotation in InfluxDB."""

from __future__ import annotations

from pathlib import Path

from robot import result, running

from rig.bundle import Bundle


class RunListener:
    """Listener API 3. The argument is the run bundle's folder."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, bundle: str) -> None:
        self._bundle = Bundle.open(Path(bundle))

    def start_test(self, data: running.TestCase, result: result.TestCase) -> None:
        self._bundle.event("test", data.parent.name if data.parent else "robot", f"begin: {data.name}")

    def end_test(self, data: running.TestCase, result: result.TestCase) -> None:
        text = f"{result.status}: {data.name}" + (f": {result.message}" if result.message else "")
        self._bundle.event("test", data.parent.name if data.parent else "robot", text, status=result.status)
