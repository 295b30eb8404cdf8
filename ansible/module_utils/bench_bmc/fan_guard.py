"""The fan guard as seen from a module: arm it, look at it, end it.

The guard itself is roles/fans/files/fan_guard.py, a program of its own on the machine that sends the fan commands.
Python 3.9, standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from typing import Any

from ansible.module_utils.bench_bmc.errors import BmcError
from ansible.module_utils.bench_bmc.ipmi import Ipmi

GUARD_CALL_S_MAX = 60.0


class GuardControl:
    """The guard's command line: roles/fans/files/fan_guard.py on the machine that this runs on."""

    def __init__(self, program: str, directory: str, unit: str) -> None:
        """Name program and files; runs nothing."""
        self.program, self.unit = program, unit
        self.lease = os.path.join(directory, "fans-lease.json")
        self.plan = os.path.join(directory, "fans-guard-plan.json")
        self.log = os.path.join(directory, "fans-guard.log")

    def _call(self, command: str, *arguments: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
        argv = [sys.executable, self.program, command, "--lease", self.lease, *arguments]
        try:
            done = subprocess.run(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=GUARD_CALL_S_MAX,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BmcError(f"the fan guard cannot be used: {error}") from error
        if done.returncode != 0:
            raise BmcError(f"the fan guard cannot be used: {' '.join(done.stderr.split())}")
        with contextlib.suppress(ValueError):
            answer = json.loads(done.stdout)
            if isinstance(answer, dict):
                return answer
        raise BmcError(f"{self.program} answers {done.stdout[:100]!r}, as no fan guard does; provision again")

    def status(self) -> dict[str, Any]:
        """Describe lease and guard; needs the program only where there is a lease."""
        if not os.path.exists(self.lease) and not os.path.exists(f"{self.lease}.guard"):
            return {"guard": False, "remaining_s": 0.0}
        return self._call("status")

    def arm(self, ipmi: Ipmi, steps: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
        """Set the lease and see that a guard is at work."""
        os.makedirs(os.path.dirname(self.lease), mode=0o755, exist_ok=True)
        with open(self.plan, "w", encoding="utf-8") as stream:
            json.dump({"command": ipmi.command, "automatic": steps}, stream)
        arguments = ["--plan", self.plan, "--log", self.log, "--seconds", str(seconds)]
        if self.unit:
            arguments += ["--unit", self.unit]
        return self._call("start", *arguments, environment=ipmi.environment())

    def release(self) -> bool:
        """End the guard; True where there was something to end. The log stays."""
        present = [path for path in (self.lease, f"{self.lease}.guard", self.plan) if os.path.exists(path)]
        if present:
            self._call("release")
        if os.path.exists(self.plan):
            os.unlink(self.plan)
        return bool(present)
