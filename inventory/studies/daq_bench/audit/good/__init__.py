"""Evidence of imaginary runs in which everything is right: for each scenario of the inventory, as its programs would have left it.

Each workload has one maker, `documents(case) -> {file: document}`; where a workload's own pure functions make a document from its points,
they make it here too."""

from __future__ import annotations

from collections.abc import Callable

from daq_bench.audit.good import applications, drives, interference, nodes, record, scans, sets
from daq_bench.audit.good.case import Case

from daq_bench.bench_model.documents.struct import Document

MAKERS: dict[str, Callable[[Case], dict[str, Document]]] = {
    "snb_record": record.documents,
    "block_scan": scans.block_scan,
    "thread_scan": scans.thread_scan,
    "read_scan": scans.read_scan,
    "minidaq_scan": scans.minidaq_scan,
    "latency_under_load": scans.latency_under_load,
    "interference": interference.documents,
    "steady_state": drives.steady_state,
    "endurance": drives.endurance,
    "saturation": drives.saturation,
    "thermal": drives.thermal,
    "raid_vs_3dxp": sets.documents,
    "lan": nodes.lan,
    "hot_store": nodes.hot_store,
    "streams_checksum": applications.streams_checksum,
    "concurrent_analysis": applications.concurrent_analysis,
}


def results_of(case: Case) -> dict[str, Document]:
    """results/*.json of every workload of the case's scenario."""
    found: dict[str, Document] = {}
    for name in case.scenario.workloads:
        found |= MAKERS[name](case)
    return found
