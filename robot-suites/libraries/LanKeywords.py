"""The 100 Gbit/s LAN as keywords. They show that all that was asked for was measured; whether it is enough, the verdict says."""

from __future__ import annotations

from typing import Any

from robot.api.deco import keyword, library

from rig.context import RunContext
from rig.extraction import measured
from rig.lan_peers import reaching_peers
from rig.workloads.lan import NAME, WORKLOAD


@library(scope="SUITE", auto_keywords=False)
class LanKeywords:
    """Keywords over rig.workloads.lan. `bundle` is the run bundle's folder."""

    def __init__(self, bundle: str) -> None:
        self._context = RunContext.open(bundle)

    @keyword
    def measure_the_network(self) -> dict[str, Any]:
        """Runs the whole workload, writes results/lan.json and returns it."""
        with reaching_peers() as reach:
            return measured(self._context, WORKLOAD, reach)

    @keyword
    def every_message_size_should_have_been_measured(self, document: dict[str, Any]) -> None:
        """Fails when a size lacks its bandwidth or its latency in a topology; what was measured may still turn out not to count."""
        asked = self._context.scenario.workloads[NAME]
        for kind, key in (("bandwidth", "message_sizes"), ("latency", "latency_sizes")):
            wanted = {(topology, size) for topology in document["network"]["topologies"] for size in asked[key]}
            found = {(one["topology"], one["message_bytes"]) for one in document["transfers"] if one["kind"] == kind}
            if wanted - found:
                raise AssertionError(f"{kind} not measured: {sorted(wanted - found)}")

    @keyword
    def every_pair_of_settings_should_have_both_halves(self, document: dict[str, Any]) -> None:
        """Fails when a half is missing, or the untuned one did not come first in every other pair."""
        halves = [one["trial"] for one in document["transfers"] if one["trial"]]
        for experiment in {one["experiment"] for one in halves}:
            for quantity in ("bandwidth", "latency"):
                own = [one for one in halves if (one["experiment"], one["quantity"]) == (experiment, quantity)]
                wanted = {
                    (pair, side)
                    for pair in range(1, document["settings"]["pairs"] + 1)
                    for side in ("untuned", "tuned")
                }
                turned = {one["first"] == (one["pair"] % 2 == 1) for one in own if one["side"] == "untuned"}
                if {(one["pair"], one["side"]) for one in own} != wanted or turned != {True}:
                    raise AssertionError(f"{experiment}, {quantity}: halves are missing or in the wrong order")
