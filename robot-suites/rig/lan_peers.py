"""Links to the peers of the workload `lan` from within a suite, each a host that the inventory names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rig.candidate_session import connected
from rig.further_targets import INVENTORY_VARIABLE
from rig.machine import Machine
from rig.settings import Layout


@contextmanager
def reaching_peers() -> Iterator[Callable[[str], Machine]]:
    """A function that opens a link to a peer; links are closed at the end. Raises BenchError for one that cannot be reached."""
    with ExitStack() as stack:
        yield lambda host: stack.enter_context(connected(Path(os.environ[INVENTORY_VARIABLE]), host, Layout()))
