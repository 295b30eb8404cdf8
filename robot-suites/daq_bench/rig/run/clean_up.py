"""Gives back what a run has taken, whatever happens: every resource registers its clean-up as soon as it may have to be given back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from types import FrameType, TracebackType
from typing import Any

from daq_bench.bench_model.base.errors import BenchError
from daq_bench.rig.base.bundle import Bundle


class Place(Enum):
    """A resource's place in the order of clean-up; its value is how messages call it."""

    RETURN = "reboot"  # a candidate that is being rebooted can give nothing else back
    TARGETS = "target"
    BMC_AGENT = "telemetry of the BMC"
    TUNING = "tuning"
    AGENT = "telemetry"


class CleanUp:
    """One stack of clean-ups. The places have a fixed order; within a place the latest resource goes first.

    An error of a clean-up is recorded, keeps no other from running, and does not hide how the run itself ended."""

    def __init__(self, bundle: Bundle, say: Callable[[str], None], *, is_local: bool) -> None:
        self._bundle, self._say = bundle, say
        self._stack = ExitStack()
        # The stack is emptied from its end. On a candidate behind SSH the agent is a part of what `restore` takes away.
        last = (Place.AGENT, Place.TUNING) if is_local else (Place.TUNING, Place.AGENT)
        places = (*last, Place.BMC_AGENT, Place.TARGETS, Place.RETURN)
        self._places = {place: self._stack.enter_context(ExitStack()) for place in places}

    def add(self, place: Place, step: Callable[[], object], name: str | None = None) -> None:
        """Registers `step`; `name` replaces the place's name in messages. Raises KeyError after `close`."""
        self._places[place].callback(self._tried, name or place.value, step)

    def _tried(self, name: str, step: Callable[[], object]) -> None:
        try:
            step()
        except (BenchError, OSError) as error:
            self._say(f"warning: {name} could not be cleaned up: {error}")
            with suppress(OSError):  # of the bundle's disk: said above, and it ends the run (`Qualification`)
                self._bundle.event("error", "clean-up", f"{name}: {error}")

    def close(self) -> None:
        """Gives everything back; a second call does nothing. Raises a fault of the bench itself after all have had their turn."""
        with signals_ignored():
            self._places.clear()
            self._stack.close()

    def __enter__(self) -> CleanUp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def interrupts_as_exceptions() -> Iterator[None]:
    """SIGTERM stops a run as Ctrl-C does: by an exception that every clean-up sees."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handlers({signal.SIGINT: stop, signal.SIGTERM: stop}):
        yield


@contextmanager
def signals_ignored() -> Iterator[None]:
    """A second Ctrl-C must not cut a clean-up short: it would leave a record of many GB, or a tuned machine, behind."""

    def ignore(number: int, frame: FrameType | None) -> None:
        """A handler, not SIG_IGN: children would inherit that and could no longer be ended politely."""

    with _handlers({signal.SIGINT: ignore, signal.SIGTERM: ignore}):
        yield


@contextmanager
def _handlers(wanted: dict[int, Callable[[int, FrameType | None], Any]]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
