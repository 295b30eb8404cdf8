"""The nodes of the workload `lan` from within a suite: the candidate, and a link of our own to each peer that the inventory names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rig.candidate_session import connected
from rig.context import RunContext
from rig.further_targets import INVENTORY_VARIABLE
from rig.settings import Layout
from rig.workloads.lan_site import LanSite, Node

JOURNAL = "lan-settings.json"


@contextmanager
def opened(context: RunContext, emulated: dict[str, Any]) -> Iterator[LanSite]:
    """The site of a run; links to peers are closed at the end. Raises BenchError for a peer that is unknown or cannot be reached."""
    places = context.places
    declared = context.candidate.document.get("network")
    with ExitStack() as stack:
        nodes: list[Node] = []
        if declared:
            inventory = Path(os.environ[INVENTORY_VARIABLE])
            journal = str(places.state / JOURNAL)
            own = (context.candidate.name, context.machine, declared["interface"], declared["address"])
            nodes.append(Node("node0", *own, journal))
            for number, peer in enumerate(declared["peers"], start=1):
                machine = stack.enter_context(connected(inventory, peer["host"], Layout()))
                state = machine.places(peer["host"], context.bundle.path).state
                nodes.append(
                    Node(
                        f"node{number}", peer["host"], machine, peer["interface"], peer["address"], str(state / JOURNAL)
                    )
                )
        yield LanSite(context.machine, tuple(nodes), places.netprobe, places.state, context.raw, emulated)
