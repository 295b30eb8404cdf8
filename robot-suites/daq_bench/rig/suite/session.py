"""The suite's end of the pipe to its run (rig.suite.serving)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.bench_model.base.places import IN_CHECKOUT, checkout_here
from daq_bench.rig.base.shell import UNTIL_PARENT_DIES

Answer = dict[str, Any]
ENDED = "the run's process ended without a word: see its messages above. The next run removes what it left"


def python() -> tuple[str, dict[str, str]]:
    """The Python of the checkout that the user stands in, where ours is that of a wheel; and its environment."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}  # with InfluxDB's token, as of a user's `daq-bench qualify`
    checkout = None if IN_CHECKOUT else checkout_here()
    if checkout is None:
        return sys.executable, environment
    own = checkout / ".venv" / "bin" / "python"
    if not own.is_file():
        raise BenchError(f"{checkout} is not set up yet: run `make setup` there")
    return str(own), {name: value for name, value in environment.items() if name != "PYTHONPATH"}


class Session:
    """One run. `final`: how it ended, once it has. `said`: what it printed for people since the last answer."""

    def __init__(self, title: str, request: Answer) -> None:
        own, environment = python()
        self.final: Answer | None = None
        self.said = ""
        # Another session: Ctrl-C reaches it through us, once, and a second one does not cut its clean-up short.
        self._process = subprocess.Popen(
            [*UNTIL_PARENT_DIES, own, "-m", "daq_bench.rig.suite"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.bundle = Path(self._asked({"title": title, "request": request})["bundle"])

    def ask(self, do: str, **what: Any) -> Answer:
        """Returns the answer to one request. Raises BenchError with the run's objection, or with the reason why it has ended."""
        return self._asked({"do": do, **what})

    def _asked(self, request: Answer) -> Answer:
        if self.final is not None:
            raise BenchError(f"the run has ended: {ending(self.final)}")
        try:
            if (told := self._told(request)) is not None:
                return told
        except BaseException as error:
            if not isinstance(
                error, BenchError
            ):  # Ctrl-C or a timeout of Robot Framework's: the load ends, all is given back
                self.interrupt()
            raise
        raise BenchError(ending(self.final or {}))

    def _told(self, request: Answer) -> Answer | None:
        """The answer to `request`; None where the run ended instead."""
        assert self._process.stdin and self._process.stdout
        with suppress(BrokenPipeError):  # its last words may still be there to be read
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: Answer = json.loads(line) if line.endswith("\n") else {"final": {"state": "gone", "reason": ENDED}}
        self.said = answer.get("said", "")
        if "final" in answer:
            self.final = answer["final"]
            return None
        if "error" in answer:
            raise BenchError(answer["error"])
        found: Answer = answer["ok"]
        return found

    def interrupt(self) -> None:
        """Ends the run as Ctrl-C ends `daq-bench qualify`, and waits until everything was given back."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self.wait()

    def end(self, output: Path | None) -> None:
        """Lets the run be judged and sealed, with the suite's output so far."""
        if self.final is None:
            try:
                self.ask("end", output=str(output) if output else None)
            except BenchError:
                if self.final is None:
                    raise

    def wait(self) -> None:
        """Reads what the run still says, and waits for its end."""
        assert self._process.stdin and self._process.stdout
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        lines = [line for line in self._process.stdout.read().splitlines() if line]
        self._process.wait()
        if self.final is None:
            self.final = {"state": "gone", "reason": ENDED}
            for line in lines:
                try:
                    self.final = json.loads(line).get("final", self.final)
                except ValueError:  # the rest of an answer that was being read when the interruption came
                    continue

    @property
    def process(self) -> int:
        return self._process.pid


def ending(final: Answer) -> str:
    """How a run ended, in words."""
    where = f" ({final['bundle']})" if "bundle" in final else ""
    return f"{final.get('line') or final.get('reason') or ENDED}{where}"
