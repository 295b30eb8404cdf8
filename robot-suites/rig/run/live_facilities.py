"""The facilities of a run that is under way (`rig.candidate.facilities`), from its bundle and the users' inventory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rig.base.hazard_spans import HazardLog
from rig.base.settings import Layout
from rig.candidate.context import RunContext
from rig.candidate.facilities import Builder
from rig.candidate.fan_duty import FanDuty, fan_duty
from rig.candidate.hazard_control import HazardControl
from rig.candidate.hazards import hazards_of
from rig.candidate.machine import Machine
from rig.run.candidate_session import connected
from rig.run.further_targets import INVENTORY_VARIABLE, FurtherTargets


class LiveFacilities:
    """The facilities of one run. `stack` closes the links to peers at the workload's end."""

    def __init__(self, context: RunContext, stack: ExitStack) -> None:
        self._context, self._stack = context, stack

    def targets(self) -> Builder:
        return FurtherTargets(self._context)

    def peer(self, host: str) -> Machine:
        return self._stack.enter_context(connected(Path(os.environ[INVENTORY_VARIABLE]), host, Layout()))

    def fans(self) -> FanDuty:
        context = self._context
        return fan_duty(Layout(), context.candidate, context.machine, context.bundle)

    def hazards(self, source: str) -> HazardControl:
        return HazardControl(hazards_of(self._context.candidate), HazardLog(self._context.bundle, source))


@contextmanager
def live_facilities(context: RunContext) -> Iterator[LiveFacilities]:
    with ExitStack() as stack:
        yield LiveFacilities(context, stack)
